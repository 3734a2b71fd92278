//! Mistakes of a simple policy for Slurm, by number.

use std::time::Duration;

use scupper_sdk::{Outcome, Phase, Verdict, http, testing::pod};
use serde_json::json;

use super::fake::{Fake, NODE, OURS, error, ok};
use crate::Slurm;
use crate::tests::slurmd;

#[test]
fn naive_01_the_drain_flag_is_not_the_end_of_the_drain() {
    for state in [
        &["ALLOCATED", "DRAIN"][..],
        &["MIXED", "DRAIN"],
        &["IDLE", "DRAIN", "COMPLETING"],
    ] {
        let fake = Fake::new();
        fake.node(NODE, state, OURS);
        assert!(
            matches!(fake.run_until_stable(), Outcome::Pending(_)),
            "{state:?}"
        );
    }
}

#[test]
fn naive_02_a_missing_response_or_list_is_not_idle() {
    let drained = || {
        let fake = Fake::new();
        fake.node(NODE, &["IDLE", "DRAIN"], OURS);
        fake
    };
    assert_eq!(drained().run_until_stable(), Outcome::Done);
    for body in [
        json!({}),
        json!({"nodes": null}),
        json!({"nodes": []}),
        json!({"nodes": [{}]}),
    ] {
        let fake = drained();
        fake.serves(&[44]);
        fake.fault("GET nodes/", false, move || Ok(ok(body)));
        assert!(matches!(fake.step(Phase::BeforeDrain), Outcome::Failed(_)));
    }
    for body in [json!({}), json!({"jobs": null})] {
        let fake = drained();
        fake.fault("GET jobs/", false, move || Ok(ok(body)));
        fake.fails(Phase::BeforeDrain, false, "it contains no `jobs`");
    }
    for status in [204, 301, 400, 403, 500, 502, 503, 504] {
        let fake = drained();
        fake.fault("GET jobs/", false, move || Ok(http::Response::new(status, "")));
        fake.fails(Phase::BeforeDrain, false, "");
    }
    // The token was valid for the previous request.
    for status in [401, 511] {
        let fake = drained();
        fake.fault("GET jobs/", false, move || Ok(http::Response::new(status, "")));
        assert!(fake.waits().progress.starts_with("Slurm rejects the token"));
    }
    for failure in [
        http::Error::Unreachable("refused".to_owned()),
        http::Error::TooLarge("8 MiB".to_owned()),
        http::Error::TooMany("32".to_owned()),
    ] {
        let fake = drained();
        fake.fault("GET jobs/", false, move || Err(failure));
        fake.fails(Phase::BeforeDrain, false, "");
    }
}

#[test]
fn naive_03_the_name_in_kubernetes_need_not_be_the_name_in_slurm() {
    let fake = Fake::new();
    fake.host.config("slurm-node-table", "node-1=gpu-07");
    fake.node("gpu-07", &["IDLE"], "");
    assert_eq!(fake.run_until_stable(), Outcome::Done);
    assert_eq!((fake.state("gpu-07").len(), fake.state(NODE).len()), (2, 1));
}

#[test]
fn naive_04_a_state_is_many_words_in_any_order_and_case() {
    for state in [
        &["drain", "idle"][..],
        &["PLANNED", "DRAIN", "IDLE"],
        &["Idle", "Drain"],
    ] {
        let fake = Fake::new();
        fake.node(NODE, state, OURS);
        assert_eq!(fake.run_until_stable(), Outcome::Done, "{state:?}");
    }
}

#[test]
fn naive_05_nodes_of_a_job_are_an_expression() {
    for (nodes, is_here) in [
        ("node-[1-3]", true),
        ("node-[01-13]", false),
        ("node-[10-12],node-11", false),
        ("xnode-1", false),
        ("a[0-999999999],node-[0-999999999]", true),
        ("node-[", true),
    ] {
        let fake = Fake::new();
        fake.node(NODE, &["IDLE", "DRAIN"], OURS);
        fake.job(1, &["RUNNING"], nodes);
        assert_eq!(fake.run_until_stable() != Outcome::Done, is_here, "{nodes}");
    }
    let fake = Fake::new();
    fake.node(NODE, &["IDLE", "DRAIN"], OURS);
    fake.job(1, &["RUNNING"], "");
    assert!(
        fake.waits().waiting_for[0]
            .detail
            .ends_with("Slurm does not say on which nodes")
    );
}

#[test]
fn naive_06_completing_suspended_and_configuring_jobs_count() {
    for (state, words) in [
        (
            &["COMPLETED", "COMPLETING"][..],
            "train of alice: completed+completing",
        ),
        (&["SUSPENDED"], "train of alice: suspended"),
        (&["CONFIGURING"], "train of alice: configuring"),
    ] {
        let fake = Fake::new();
        fake.node(NODE, &["IDLE", "DRAIN"], OURS);
        fake.job(1, state, NODE);
        assert_eq!(fake.waits().waiting_for[0].detail, words);
    }
}

#[test]
fn naive_07_a_server_that_cannot_drain_is_reported_without_a_request() {
    let fake = Fake::new();
    fake.serves(&[36, 37, 38]);
    fake.fails(
        Phase::BeforeCordon,
        true,
        "serves v0.0.38 at most, which cannot drain a node: Slurm 23.02 or later can",
    );
    fake.fails(Phase::BeforeCordon, true, "set `way` to `operator`");
    assert!(fake.requests().iter().all(|line| line.starts_with("GET ")));
}

#[test]
fn naive_08_a_drain_has_a_reason() {
    let fake = Fake::new();
    fake.run_until_stable();
    assert_eq!(fake.reason(NODE), OURS);
    let posts: Vec<_> = fake
        .requests()
        .into_iter()
        .filter(|line| line.starts_with("POST"))
        .collect();
    assert_eq!(posts, [format!("POST node/node-1 DRAIN {OURS}")]);
}

#[test]
fn naive_09_undrain_revives_no_node() {
    let fake = Fake::new();
    fake.node(NODE, &["DOWN", "DRAIN"], OURS);
    assert_eq!(fake.step(Phase::AfterUncordon), Outcome::Done);
    assert_eq!(fake.state(NODE), ["DOWN"]);
}

#[test]
fn naive_10_an_operators_drain_survives_a_cancel() {
    let fake = Fake::busy();
    fake.waits();
    // An operator has taken the drain over.
    fake.node(NODE, &["MIXED", "DRAIN"], "bad disk");
    assert!(matches!(fake.run_until_stable(), Outcome::Pending(_)));
    assert_eq!(fake.step(Phase::OnCancel), Outcome::Done);
    assert_eq!(
        (fake.state(NODE), fake.reason(NODE).as_str()),
        (vec!["MIXED".to_owned(), "DRAIN".to_owned()], "bad disk")
    );
}

#[test]
fn naive_11_pods_with_jobs_are_neither_deleted_nor_first() {
    let fake = Fake::new();
    fake.host.pods([slurmd("worker-0", &[]), pod("shop/cart")]);
    let plan = fake.host.plan::<Slurm>().unwrap();
    assert_eq!(plan.waves(), ["all: shop/cart", "slurm: slurm/worker-0"]);
    assert_eq!(plan.verdict("slurm/worker-0"), Some(Verdict::Evict));
}

#[test]
fn naive_12_cancelled_is_not_gone() {
    let fake = Fake::busy();
    fake.host.config("ladder", "5m cancel");
    fake.host.config("ladder-too-long", "scale");
    fake.host.deadline_in(Duration::from_secs(200));
    assert!(matches!(fake.run_until_stable(), Outcome::Pending(_)));
    assert!(fake.requests().contains(&"DELETE job/4711".to_owned()));
    fake.node(NODE, &["IDLE", "DRAIN"], OURS);
    assert!(
        matches!(fake.run_until_stable(), Outcome::Pending(_)),
        "it is completing"
    );
}

#[test]
fn naive_13_a_recreated_pod_is_another_pod() {
    let fake = Fake::new();
    fake.host.config("slurm-node", "pods");
    fake.host.pods([slurmd("worker-0", &[])]);
    fake.node("worker-0", &["IDLE"], "");
    assert_eq!(fake.run_until_stable(), Outcome::Done);
    // The same name, and the same node in Slurm, which is already drained.
    fake.host
        .pods([slurmd("worker-0", &[]).replaced_at(fake.host.now())]);
    fake.requests();
    assert_eq!(fake.run_until_stable(), Outcome::Done);
    assert!(fake.requests().iter().all(|line| line.starts_with("GET ")));
}

#[test]
fn naive_21_the_token_is_sent_by_name_and_a_bad_one_may_become_valid() {
    for (status, number, text) in [
        (511, 1007, "Protocol authentication error"),
        (401, 0, "Authentication failure"),
    ] {
        let fake = Fake::busy();
        fake.waits();
        fake.fault("GET nodes/", false, move || Ok(error(status, number, text)));
        let waits = fake.waits();
        assert!(
            waits.progress.starts_with("Slurm rejects the token"),
            "{}",
            waits.progress
        );
        fake.waits();
    }
}
