//! The API server refuses (401, 403) a request that it grants a moment later, as after a restart: this ends no drain.

use scupper_simulator::api::{Action, Fault, Forbidden, objects};

use crate::objects::{closed_budget, pod};
use crate::policies;
use crate::rig::{DRIVER, NODE, Rig};

const BUDGETS: &str = "/apis/policy/v1/poddisruptionbudgets";
const DAEMON_SETS: &str = "/apis/apps/v1/daemonsets";
/// What a driver logs that does without budgets.
const DEGRADED: &str = "forbidden to list poddisruptionbudgets; treating them as empty";
/// With the pauses between its tries, a driver is refused for some seconds.
const TRIES: u32 = 4;

const LEASES: &str = "leases.coordination.k8s.io";

/// With the API server's message.
const REFUSALS: [(u16, &str); 2] = [(403, "forbidden"), (401, "Unauthorized")];

/// The driver is refused this until the faults are cleared.
fn refuse(rig: &Rig, code: u16, method: &str, path: &str) {
    let fault = Fault::new(Action::Status(code, None))
        .method(method)
        .path(path)
        .user_agent("scupper");
    rig.api.faults([fault]);
}

#[tokio::test]
async fn a_short_refusal_in_the_middle_of_a_hook_fails_no_drain() {
    for (code, words) in REFUSALS {
        let rig = Rig::start().await;
        rig.apply(policies::slurm_pod(pod("slurm-worker")));
        rig.pods(&["a", "b"]);
        let policy = policies::argument("slurm");
        let more = [
            "--policy",
            policy.as_str(),
            "--grant",
            "slurm=node-annotations:nodeset.slinky.slurm.net/",
            "--policy-config",
            "slurm.poll-seconds=1",
        ];
        let driver = rig.driver(&more).await;
        rig.event("drain", DRIVER);
        rig.until("the hook waits for its jobs", || rig.is_cordoned())
            .await;
        refuse(&rig, code, "PATCH", &format!("/api/v1/nodes/{NODE}"));
        policies::finish_jobs(&rig, "slurm-worker");
        let refused = format!("save: {words}");
        rig.until("what the hook has done is refused", || {
            driver.output().contains(&refused)
        })
        .await;
        assert!(rig.evictions().is_empty(), "before the hook is saved");
        rig.api.clear_faults();
        assert_eq!(rig.end_of("drain").await, "Succeeded", "{code}");
        assert!(rig.pod_names().is_empty());
        rig.check_evicted_at_most_once();
    }
}

#[tokio::test]
async fn a_drain_waits_for_a_lease_that_is_refused_for_a_moment() {
    for (code, _) in REFUSALS {
        let rig = Rig::start().await;
        rig.pods(&["a", "b"]);
        rig.apply(closed_budget());
        let mut driver = rig.driver(&[]).await;
        let mark = rig.api.mark();
        refuse(&rig, code, "POST", "*/leases");
        rig.event("drain", DRIVER);
        rig.until("the lease is asked for again", || {
            assert!(driver.is_running());
            assert!(!rig.is_cordoned(), "begun without the lease of the node");
            let since = rig.api.requests_since(mark);
            let asked = since.iter().filter(|it| it.path.ends_with("/leases"));
            asked.count() >= 2
        })
        .await;
        rig.api.clear_faults();
        rig.until("the budget refuses", || !rig.evictions().is_empty())
            .await;
        assert_eq!(rig.list(LEASES).len(), 1, "the drain holds its lease");
        rig.delete_budget();
        assert_eq!(rig.end_of("drain").await, "Succeeded", "{code}");
    }
}

#[tokio::test]
async fn a_lasting_refusal_fails_the_drain_and_reports_its_duration() {
    let rig = Rig::start().await;
    rig.pods(&["a"]);
    let driver = rig.driver(&["--forbidden-timeout", "3s"]).await;
    refuse(&rig, 403, "PATCH", &format!("/api/v1/nodes/{NODE}"));
    rig.event("drain", DRIVER);
    assert_eq!(rig.end_of("drain").await, "Failed");
    let output = driver.output();
    assert!(
        output.contains("the API server has refused to cordon the node for 3s: forbidden"),
        "{output}"
    );
    assert_eq!(rig.pod_names(), ["a"]);
}

/// The driver is refused this for some seconds.
fn refuse_for_seconds(rig: &Rig, code: u16, path: &str) {
    let fault = Fault::new(Action::Status(code, None))
        .method("GET")
        .path(path)
        .user_agent("scupper");
    rig.api.faults([fault.count(TRIES)]);
}

#[tokio::test]
async fn a_short_refusal_of_any_read_changes_nothing_about_a_drain() {
    let reads = [
        BUDGETS,
        DAEMON_SETS,
        "/api/v1/pods",
        "/api/v1/nodes",
        "/api/v1/nodes/*",
        "/apis/lifecycle.k8s.io/v1alpha1/*",
        "/apis/coordination.k8s.io/*",
    ];
    for (number, path) in reads.into_iter().enumerate() {
        let (code, _) = REFUSALS[number % REFUSALS.len()];
        let rig = Rig::start().await;
        rig.pods(&["a"]);
        rig.apply(closed_budget());
        // Its DaemonSet is gone, so it leaves.
        let orphan = objects::pod("default", "orphan", NODE).daemonset("gone");
        rig.apply(orphan.build());
        let driver = rig.driver(&["--force"]).await;
        refuse_for_seconds(&rig, code, path);
        rig.event("drain", DRIVER);
        rig.until("the budget holds the only pod that is left", || {
            rig.pod_names() == ["a"] && driver.output().contains("default/web")
        })
        .await;
        // As after a restart of the API server: all watches end, and the read is refused again.
        rig.api.clear_faults();
        refuse_for_seconds(&rig, code, path);
        rig.api.break_watches();
        rig.delete_budget();
        assert_eq!(rig.end_of("drain").await, "Succeeded", "{path} {code}");
        assert!(rig.pod_names().is_empty(), "{path} {code}");
        assert!(!driver.log().contains("treating them as"), "{path} {code}");
        assert!(!driver.log().contains("taking them for"), "{path} {code}");
    }
}

#[tokio::test]
async fn a_drain_without_the_right_to_read_budgets_says_so_and_ends() {
    let rig = Rig::start().await;
    rig.pods(&["a"]);
    rig.apply(closed_budget());
    let driver = rig.driver(&[]).await;
    rig.api.set_forbidden(Forbidden {
        resource: "poddisruptionbudgets.policy".to_owned(),
        ..Forbidden::default()
    });
    rig.event("drain", DRIVER);
    rig.until("the API server enforces the budget", || {
        !rig.evictions().is_empty()
    })
    .await;
    assert!(driver.log().contains(DEGRADED), "{}", driver.log());
    rig.delete_budget();
    assert_eq!(rig.end_of("drain").await, "Succeeded");
}
