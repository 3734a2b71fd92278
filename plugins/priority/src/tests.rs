//! Tests the policy without wasm and without a cluster.

use std::time::Duration;

use scupper_sdk::{
    Description, Draft, Drain, Hold, Node, Planner, Policy, Verdict, description,
    testing::{Host, pod},
};

use super::Priority;

#[test]
fn the_least_important_are_evicted_first() {
    let host = Host::new();
    host.pods([
        pod("kube-system/dns").with_priority(2_000_000_000),
        pod("shop/cart").with_priority(0),
        pod("shop/db").with_priority(1_500),
        pod("batch/preemptible").with_priority(-10),
    ]);
    assert_eq!(
        host.plan::<Priority>().unwrap().waves(),
        [
            "priority-0: shop/cart batch/preemptible",
            "priority-1000: shop/db",
            "priority-2000000000: kube-system/dns",
        ]
    );
}

#[test]
fn each_wave_has_the_time_of_its_group_which_caps_grace_periods() {
    let host = Host::new();
    host.config("groups", "0=60s, 1000=1h");
    host.pods([pod("shop/cart"), pod("shop/db").with_priority(1_000)]);
    let plan = host.plan::<Priority>().unwrap();

    let low = plan.wave("priority-0").unwrap();
    assert_eq!(
        (low.timeout, low.max_grace_period_seconds),
        (Some(60_000), Some(60))
    );
    let high = plan.wave("priority-1000").unwrap();
    assert_eq!(
        (high.timeout, high.max_grace_period_seconds),
        (Some(3_600_000), Some(3_600))
    );
}

#[test]
fn waves_have_no_times_by_default() {
    let host = Host::new();
    host.pods([pod("shop/cart").with_grace_period_seconds(7_200)]);
    for groups in [None, Some("0,1000=90s")] {
        if let Some(groups) = groups {
            host.config("groups", groups);
        }
        let plan = host.plan::<Priority>().unwrap();
        let wave = plan.wave("priority-0").unwrap();
        assert_eq!((wave.timeout, wave.max_grace_period_seconds), (None, None));
    }
}

#[test]
fn a_group_without_pods_has_no_wave() {
    let host = Host::new();
    host.pods([pod("shop/cart")]);
    assert_eq!(
        host.plan::<Priority>().unwrap().waves(),
        ["priority-0: shop/cart"]
    );
}

#[test]
fn pods_below_the_lowest_group_belong_to_it() {
    let host = Host::new();
    host.config("groups", "100=60s,1000=30s");
    host.pods([pod("shop/cart"), pod("shop/db").with_priority(1_000)]);
    let waves = host.plan::<Priority>().unwrap().waves();
    assert_eq!(waves, ["priority-100: shop/cart", "priority-1000: shop/db"]);
}

#[test]
fn a_negative_priority_reads_as_one_in_the_name_of_its_wave() {
    let host = Host::new();
    host.config("groups", "-2147483648,-10,0");
    host.pods([
        pod("batch/last").with_priority(-11),
        pod("batch/preemptible").with_priority(-10),
        pod("shop/cart"),
    ]);
    assert_eq!(
        host.plan::<Priority>().unwrap().waves(),
        [
            "priority-minus-2147483648: batch/last",
            "priority-minus-10: batch/preemptible",
            "priority-0: shop/cart",
        ]
    );
}

#[test]
fn it_does_not_change_which_pods_are_evicted() {
    let host = Host::new();
    host.pods([
        pod("shop/cart"),
        pod("kube-system/proxy")
            .of_daemon_set()
            .with_priority(2_000_001_000),
    ]);
    let plan = host.plan::<Priority>().unwrap();
    assert_eq!(plan.verdict("kube-system/proxy"), Some(Verdict::Keep));
    assert_eq!(plan.reason("shop/cart"), host.draft().reason("shop/cart"));
}

#[test]
fn the_problem_with_a_wrong_configuration_has_an_example() {
    for (text, words) in [
        ("low", "`low`: invalid digit found in string; an example is 0=5m"),
        ("low=5m", "`low`: invalid digit found in string"),
        ("0=", "``: must have a time such as"),
        ("0=5", "`5`: must have a time such as 90s, 5m or 1h"),
        ("0=0s", "`0s`: must have a time such as"),
        ("0=5\u{e9}", "must have a time such as"),
        ("", "cannot parse integer from empty string"),
        ("0,", "cannot parse integer from empty string"),
        ("2147483648", "number too large"),
        ("1000=5m,0=5m", "the priorities must ascend"),
        ("0=5m,0=6m", "the priorities must ascend"),
        ("0=99999999999999999h", "must have a time such as"),
    ] {
        let host = Host::new();
        host.config("groups", text);
        host.pods([pod("shop/cart")]);
        let problems = Priority::check_config();
        assert!(
            problems.len() == 1 && problems[0].key == "groups",
            "{text}: {problems:?}"
        );
        assert!(
            problems[0].message.contains(words),
            "{text}: {}",
            problems[0].message
        );
        let refused = host.plan::<Priority>().unwrap_err();
        assert!(
            refused.starts_with("configuration `groups`: "),
            "{text}: {refused}"
        );
    }
}

#[test]
fn a_misspelt_key_is_a_problem() {
    let host = Host::new();
    host.config("group", "0=5m");
    let problems = Priority::check_config();
    assert!(
        problems.len() == 1 && problems[0].message.contains("groups"),
        "{problems:?}"
    );
}

#[test]
fn the_default_is_valid() {
    let _host = Host::new();
    assert_eq!(Priority::check_config(), []);
}

/// Gives the pods of `batch` ten minutes.
struct Holds;

impl Policy for Holds {
    fn describe() -> Description {
        description!("Gives batch pods ten minutes")
    }
}

impl Planner for Holds {
    fn plan(drain: &Drain, _node: &Node, draft: &mut Draft<'_>) -> Result<(), String> {
        let batch = draft.leaving().into_iter().filter(|pod| pod.namespace == "batch");
        let hold = Hold::at_most(Duration::from_secs(600));
        draft.hold("batch", drain, batch.map(|pod| (pod, hold)));
        Ok(())
    }
}

#[test]
fn a_pod_that_an_earlier_policy_holds_stays_in_its_wave() {
    let host = Host::new();
    host.pods([pod("batch/report"), pod("shop/cart")]);
    let draft = host.plan::<Holds>().unwrap();
    let plan = host.plan_after::<Priority>(&draft).unwrap();
    assert_eq!(
        plan.waves(),
        ["batch-after-10m: batch/report", "priority-0: shop/cart"]
    );
}

/// Awaits the end of the pods of `batch`.
struct Awaits;

impl Policy for Awaits {
    fn describe() -> Description {
        description!("Lets batch pods end by themselves")
    }
}

impl Planner for Awaits {
    fn plan(_drain: &Drain, _node: &Node, draft: &mut Draft<'_>) -> Result<(), String> {
        for pod in draft.pods().iter().filter(|pod| pod.namespace == "batch") {
            draft.await_completion(pod, "it ends by itself");
        }
        Ok(())
    }
}

#[test]
fn a_pod_that_ends_by_itself_holds_up_no_group() {
    let host = Host::new();
    host.pods([
        pod("batch/report"),
        pod("shop/cart"),
        pod("shop/db").with_priority(1500),
    ]);
    let draft = host.plan::<Awaits>().unwrap();
    let plan = host.plan_after::<Priority>(&draft).unwrap();
    assert_eq!(
        plan.waves(),
        [
            "priority-0: shop/cart",
            "priority-1000: shop/db",
            "completion: batch/report"
        ]
    );
}
