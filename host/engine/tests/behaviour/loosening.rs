//! Which decisions of a later policy protect a pod less.

use scupper_engine::{Decision, Plan, Uid, Verdict, Wave, loosened};

/// A plan for one pod.
fn plan(policy: &str, verdict: Verdict, wave: &str) -> Plan {
    let pod = Uid::new("a");
    let decision = Decision {
        pod: pod.clone(),
        verdict,
        reason: String::new(),
        policy: String::from(policy),
    };
    let wave = Wave {
        name: String::from(wave),
        pods: Vec::from([pod]),
        max_parallel: None,
        timeout: None,
        max_grace_seconds: None,
        policy: String::from("holder"),
    };
    Plan {
        decisions: Vec::from([decision]),
        waves: Vec::from([wave]),
        ..Plan::default()
    }
}

#[test]
fn a_looser_verdict_or_a_shorter_hold_is_found() {
    use Verdict::{AwaitCompletion, Delete, Evict, Keep, Refuse};
    for (earlier, later, wanted) in [
        (
            ("modes", AwaitCompletion, "completion"),
            (Evict, "jobs-after-4h"),
            Some("modes: await completion / jobs: evict after 4h00m"),
        ),
        (
            ("modes", Evict, "modes-after-1h-grace-5s"),
            (Evict, "jobs-after-10m"),
            Some("modes: evict after 1h00m / jobs: evict after 10m00s"),
        ),
        // The decision is the host's, and only the hold is a policy's.
        (
            ("kubectl", Evict, "holder-after-90s"),
            (Evict, "all"),
            Some("holder: evict after 1m30s / jobs: evict"),
        ),
        (
            ("modes", Evict, "all"),
            (Delete, "all"),
            Some("modes: evict / jobs: delete"),
        ),
        (
            ("modes", Keep, ""),
            (Evict, "all"),
            Some("modes: keep / jobs: evict"),
        ),
        (
            ("modes", Refuse, ""),
            (Keep, ""),
            Some("modes: refuse / jobs: keep"),
        ),
        (("kubectl", Keep, ""), (Delete, "all"), None),
        (
            ("modes", Delete, "modes-after-2m"),
            (Evict, "jobs-after-4h"),
            None,
        ),
        (
            ("modes", Evict, "modes-after-2m"),
            (AwaitCompletion, "completion"),
            None,
        ),
        (("modes", Evict, "namespaces-after-lunch"), (Evict, "all"), None),
    ] {
        let (policy, verdict, wave) = earlier;
        let draft = plan(policy, verdict, wave);
        let found = loosened(&plan("jobs", later.0, later.1), &draft, "jobs");
        let found = found
            .first()
            .map(|found| format!("{} / {}", found.earlier, found.later));
        assert_eq!(found.as_deref(), wanted, "{earlier:?}, then {later:?}");
    }
}
