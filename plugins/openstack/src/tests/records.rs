//! Old migration records: Nova keeps those of deleted servers.

use scupper_sdk::http::Response;
use scupper_sdk::testing::Host;
use scupper_sdk::{Outcome, Phase};
use serde_json::json;

use super::nova::{Cloud, HOST};
use super::{failed, step};

/// One finished migration away from the host for each server, and a second one for the first ten.
fn records(cloud: &Cloud, servers: u64) {
    for record in 0..servers + 10 {
        let server = format!("gone-{:03}", record % servers);
        cloud.migration(record + 1, &server, HOST, "compute-b", "finished", "migration");
        cloud.with(|state| {
            let record = state.migrations.last_mut().unwrap();
            for key in ["created_at", "updated_at"] {
                record[key] = json!("2026-01-01T00:00:00.000000");
            }
        });
    }
}

/// Those of 600 servers, all of which have ended; Nova lists so many at once.
fn ended_records(cloud: &Cloud, at_once: usize) {
    records(cloud, 600);
    cloud.with(|state| {
        for migration in &mut state.migrations {
            migration["status"] = json!("confirmed");
        }
        state.records = at_once;
    });
}

/// The progress of all steps until the hook ends.
fn steps(host: &Host) -> (Vec<String>, Option<String>) {
    let mut reported = Vec::new();
    for _ in 0..30 {
        match step(host, Phase::BeforeDrain) {
            Outcome::Pending(pending) => reported.push(pending.progress),
            Outcome::Done => return (reported, None),
            Outcome::Failed(failure) => return (reported, Some(failure.message)),
        }
    }
    panic!("no end in sight: {reported:#?}");
}

#[test]
fn each_recorded_server_is_checked_once() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    records(&cloud, 200);
    let (reported, failure) = steps(&host);
    assert_eq!(failure, None);
    for server in 0..200 {
        let path = format!("GET /servers/gone-{server:03}");
        assert_eq!(cloud.count(&path), 1, "{path}");
    }
    let checked: Vec<&String> = reported
        .iter()
        .filter(|reported| reported.contains("; checked "))
        .collect();
    assert_eq!(checked.len(), 4, "{reported:#?}");
    assert!(
        checked[0].starts_with("no servers on compute-a; checked ")
            && checked[0].ends_with(" of 210 migration records"),
        "{reported:#?}"
    );
}

#[test]
fn a_lost_state_costs_only_requests() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    records(&cloud, 70);
    assert!(matches!(step(&host, Phase::BeforeDrain), Outcome::Pending(_)));
    let again = Host::new();
    let other = Cloud::new(&again);
    other.with(|state| std::mem::swap(&mut state.migrations, &mut cloud.0.borrow_mut().migrations));
    assert_eq!(steps(&again).1, None);
}

/// The servers of the records exist on another host, and no resize is confirmed.
fn unconfirmed(cloud: &Cloud, servers: u64) {
    records(cloud, servers);
    for server in 0..servers {
        let id = format!("gone-{server:03}");
        cloud.server(&id, "resized");
        cloud.set(&id, "host", json!("compute-b"));
    }
}

#[test]
fn unconfirmed_resizes_beyond_one_step_are_counted_and_fail_the_drain() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    unconfirmed(&cloud, 120);
    let (_, failure) = steps(&host);
    let failure = failure.unwrap();
    assert!(
        failure.starts_with("120 of 120 servers stay on compute-a: server vm-gone-"),
        "{failure}"
    );
    assert!(failure.ends_with("and 112 more"), "{failure}");
}

#[test]
fn unconfirmed_resizes_stay_if_configured() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    host.config("others", "ignore");
    unconfirmed(&cloud, 120);
    assert_eq!(steps(&host).1, None);
    let reported = host.events().pop().unwrap();
    assert!(
        reported.contains("120 servers stay on compute-a, as configured: server vm-gone-010")
            && reported.ends_with("and 112 more"),
        "{reported}"
    );
}

#[test]
fn only_busy_servers_are_checked_again() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    records(&cloud, 20);
    cloud.server("gone-003", "resized");
    cloud.set("gone-003", "host", json!("compute-b"));
    cloud.set("gone-003", "OS-EXT-STS:task_state", json!("resize_reverting"));
    for _ in 0..3 {
        assert!(matches!(step(&host, Phase::BeforeDrain), Outcome::Pending(_)));
    }
    assert_eq!(cloud.count("GET /servers/gone-003"), 3);
    assert_eq!(cloud.count("GET /servers/gone-004"), 1);
    cloud.set("gone-003", "OS-EXT-STS:task_state", json!(null));
    let failure = failed(&host, Phase::BeforeDrain);
    assert!(failure.contains("vm-gone-003"), "{failure}");
}

#[test]
fn after_an_outage_no_server_is_checked_twice() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    records(&cloud, 20);
    let mut once = true;
    cloud.with(|state| {
        state.instead = Box::new(move |request| {
            let now = once && request.url.ends_with("/servers/gone-012");
            once &= !now;
            now.then(|| Ok(Response::new(503, "busy")))
        });
    });
    assert_eq!(steps(&host).1, None);
    assert_eq!(cloud.count("GET /servers/gone-012"), 2);
    assert_eq!(cloud.count("GET /servers/gone-011"), 1);
}

#[test]
fn more_busy_servers_than_the_state_holds_are_all_checked() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    unconfirmed(&cloud, 40);
    let all = |key: &str, value: serde_json::Value| {
        for server in 0..40 {
            cloud.set(&format!("gone-{server:03}"), key, value.clone());
        }
    };
    all("OS-EXT-STS:task_state", json!("resize_confirming"));
    for _ in 0..2 {
        assert!(matches!(step(&host, Phase::BeforeDrain), Outcome::Pending(_)));
    }
    // The checked resizes are confirmed, and an unchecked one is not.
    all("OS-EXT-STS:task_state", json!(null));
    all("OS-EXT-STS:vm_state", json!("active"));
    cloud.set("gone-009", "OS-EXT-STS:vm_state", json!("resized"));
    let (_, failure) = steps(&host);
    let failure = failure.unwrap();
    assert!(
        failure.starts_with("1 of 1 server stays") && failure.contains("vm-gone-009"),
        "{failure}"
    );
}

/// Most records are of migrations that have ended.
#[test]
fn any_number_of_ended_migrations_is_no_hindrance() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    ended_records(&cloud, 10);
    cloud.migration(1000, "s1", HOST, "compute-b", "finished", "resize");
    cloud.migration(1001, "late", "compute-b", HOST, "queued", "live-migration");
    cloud.server("late", "active");
    cloud.set("late", "host", json!("compute-b"));
    cloud.set("late", "OS-EXT-STS:task_state", json!("migrating"));
    cloud.with(|state| {
        for migration in state.migrations.iter_mut().skip(610) {
            migration["created_at"] = json!("2025-01-01T00:00:00.000000");
            migration["updated_at"] = json!("2025-01-01T00:00:00.000000");
        }
    });
    let Outcome::Pending(waiting) = step(&host, Phase::BeforeDrain) else {
        panic!("a server is coming");
    };
    assert!(super::waits(&waiting)[0].contains("incoming"), "{waiting:?}");
    cloud.with(|state| state.migrations[611]["status"] = json!("cancelled"));
    let (reported, failure) = steps(&host);
    assert_eq!((reported.len(), failure), (1, None));
}

/// A request for each status would cost more than a few pages.
#[test]
fn a_few_pages_of_records_are_read_as_they_are() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    ended_records(&cloud, 100);
    assert!(matches!(step(&host, Phase::BeforeDrain), Outcome::Pending(_)));
    let asked = cloud.with(|state| state.asked.clone());
    let by_status = asked.iter().filter(|asked| asked.contains("limit=500&status="));
    assert_eq!(by_status.count(), 0, "{asked:#?}");
}

#[test]
fn a_step_whose_time_ends_with_its_lists_is_not_repeated_at_once() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    records(&cloud, 70);
    let (inner, mut lists) = (cloud.clone(), 0);
    cloud.with(|state| {
        state.instead = Box::new(move |request| {
            // The first one looks for migrations to the host; the others are the last list of each step.
            if request.url.contains("/os-migrations?host=") && !request.url.contains("changes-since") {
                lists += 1;
                inner.with(|state| state.seconds += if lists > 1 { 15 } else { 0 });
            }
            None
        });
    });
    for _ in 0..3 {
        let Outcome::Pending(waiting) = step(&host, Phase::BeforeDrain) else {
            panic!("no record is checked");
        };
        assert_eq!(waiting.again_after, 3_000, "{waiting:?}");
    }
    assert_eq!(cloud.count("GET /servers/gone-"), 0);
}
