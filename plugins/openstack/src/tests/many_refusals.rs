//! Nova refuses more servers than the hook's state can hold.

use scupper_sdk::http::{Method, Response};
use scupper_sdk::testing::Host;
use scupper_sdk::{Outcome, Phase};
use serde_json::{Value, json};

use super::nova::Cloud;
use super::step;

fn refuses_all(cloud: &Cloud) {
    cloud.with(|state| {
        state.instead = Box::new(|request| {
            let refused = request.method == Method::Post && request.url.ends_with("/action");
            let body = r#"{"conflictingRequest": {"message": "not supported for vTPM"}}"#;
            refused.then(|| Ok(Response::new(409, body)))
        });
    });
}

#[test]
fn a_drain_ends_however_many_servers_nova_refuses_to_migrate() {
    for (servers, attempts) in [(40, "1"), (200, "2")] {
        let host = Host::new();
        let cloud = Cloud::new(&host);
        host.config("attempts", attempts);
        host.config("parallel", "10");
        for number in 0..servers {
            cloud.server(&format!("{number:04}aaaa-bbbb"), "active");
        }
        refuses_all(&cloud);
        let mut steps = 0;
        let message = loop {
            steps += 1;
            assert!(steps <= 100, "{} requests", cloud.count("POST /servers"));
            match step(&host, Phase::BeforeDrain) {
                Outcome::Pending(pending) => cloud.pass(&host, pending.again_after / 1000),
                Outcome::Failed(failure) => break failure.message,
                Outcome::Done => panic!("it is not done"),
            }
        };
        let stay = format!("{servers} of {servers} servers stay");
        assert!(
            message.starts_with(&stay) && message.contains("not supported for vTPM"),
            "{message}"
        );
    }
}

/// The hook's state cannot hold all servers that Nova refuses to migrate.
#[test]
fn each_server_is_tried_however_many_others_nova_refuses() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    host.config("attempts", "1");
    host.config("parallel", "10");
    for number in 0..155 {
        let is_good = (20..25).contains(&number);
        let id = format!("{number:04}{}-bbbb", if is_good { "good" } else { "held" });
        cloud.server(&id, "active");
        cloud.set(&id, "flavor", json!({"ram": if is_good { 256 } else { 1024 }}));
    }
    // Others like it are asked for meanwhile, and it is not forgotten.
    let task = |task: Value| cloud.set("0020good-bbbb", "OS-EXT-STS:task_state", task);
    task(json!("image_snapshot"));
    cloud.with(|state| {
        state.instead = Box::new(|request| {
            let refused = request.method == Method::Post && request.url.contains("held-bbbb/action");
            refused.then(|| Ok(Response::new(409, "locked")))
        });
    });
    let mut steps = 0;
    let message = loop {
        steps += 1;
        assert!(steps <= 100, "{} requests", cloud.count("POST /servers"));
        if steps == 60 {
            task(Value::Null);
        }
        match step(&host, Phase::BeforeDrain) {
            Outcome::Pending(pending) => cloud.pass(&host, pending.again_after / 1000),
            Outcome::Failed(failure) => break failure.message,
            Outcome::Done => panic!("it is not done"),
        }
        cloud.end_all("completed");
    };
    assert!(message.starts_with("150 of 155 servers stay"), "{message}");
    for number in 20..25 {
        let path = format!("POST /servers/{number:04}good-bbbb/action");
        assert_eq!(cloud.count(&path), 1, "{path}");
    }
}
