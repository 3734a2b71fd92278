//! The API server refuses (401, 403) a request that it grants a moment later, as after a restart: this ends no drain.

use scupper_simulator::api::{Action, Fault};

use crate::objects::{closed_budget, pod};
use crate::policies;
use crate::rig::{DRIVER, NODE, Rig};

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
