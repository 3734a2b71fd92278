//! Additional facts, drains that have ended, and durations.

use scupper_api::{BudgetDetails, UnreadyPod};

use super::*;

/// The event ends later than the drain, which needs time to roll back: one deadline is enough.
#[test]
fn one_deadline_is_shown_and_the_other_relative_to_it() {
    let mut status = blocked();
    let event = |deadline| LifecycleEvent {
        name: "drain-worker-1".into(),
        transition: "drain.slm.k8s.io".into(),
        claim: ClaimStatus::Claimed,
        sla: Some(Time::from_millis(deadline)),
        ..LifecycleEvent::default()
    };
    let events = |status: &NodeStatus| -> Vec<String> {
        let lines = status_lines(status, NOW, PodList::default()).into_iter();
        lines.filter(|line| line.starts_with("  event ")).collect()
    };
    status.lifecycle_events = vec![event(1_075_000), event(1_060_000)];
    let expected = [
        "  event      drain-worker-1: Claimed, transition drain.slm.k8s.io, expires 15s after the drain's deadline",
        "  event      drain-worker-1: Claimed, transition drain.slm.k8s.io",
    ];
    assert_eq!(events(&status), expected);
    // The deadline of an unrelated event is shown.
    status.lifecycle_events.truncate(1);
    status.lifecycle_events[0].name = "another".into();
    assert!(
        events(&status)[0].ends_with(", to end within 1m15s"),
        "{:?}",
        events(&status)
    );
}

#[test]
fn a_drain_that_has_ended_runs_no_hook() {
    let mut status = blocked();
    let hook = saved(HookPhase::BeforeEvict, Subject::Pod(Uid::new("db")));
    status.node = fixture::node(mark(Phase::Finished, vec![hook]));
    let hooks = |status: &NodeStatus| -> Vec<String> {
        let much_later = NOW + Duration::from_secs(86_400);
        let lines = status_lines(status, much_later, PodList::default()).into_iter();
        let lines = lines.skip_while(|line| !line.starts_with("  hook "));
        lines.take_while(|line| !line.ends_with("pods here:")).collect()
    };
    assert_eq!(hooks(&status), [""; 0], "it has said nothing at its end");
    status.driver = Some(DrainStatus {
        ended: Some("DeadlineExceeded: the deadline passed".into()),
        ..driver_status()
    });
    let expected = [
        "  hook       slurm had not finished before-evict of shop/db when the drain ended, after 56s: \
         0 of 1 Slurm nodes drained",
        "    waited for slurm/gpu-0: allocated: jobs still run, for 56s",
    ];
    assert_eq!(hooks(&status), expected);
    let json = status_to_json(&status, NOW);
    assert_eq!(json["drain"]["hooks"][0]["running"], false);
}

/// The kubelet never clears this condition.
#[test]
fn a_transition_without_an_event_is_reported_as_left_over() {
    let mut status = blocked();
    status.node.conditions = vec![scupper_engine::Condition {
        kind: "LifecycleTransition".into(),
        status: "True".into(),
        reason: "drain-started".into(),
        message: "Lifecycle Transition 'drain'".into(),
        since: None,
    }];
    let line = |status: &NodeStatus| {
        let lines = status_lines(status, NOW, PodList::default()).into_iter();
        lines
            .filter(|line| line.starts_with("  condition "))
            .collect::<String>()
    };
    assert_eq!(
        line(&status),
        "  condition  LifecycleTransition=True: Lifecycle Transition 'drain' (reason drain-started, left by a \
         LifecycleEvent that has ended)"
    );
    status.lifecycle_events = vec![LifecycleEvent {
        name: "drain-worker-1".into(),
        transition: "drain".into(),
        claim: ClaimStatus::Claimed,
        ..LifecycleEvent::default()
    }];
    assert!(line(&status).ends_with("'drain'"), "{}", line(&status));
}

#[test]
fn overlapping_budgets_are_named_whatever_the_source() {
    let mut status = blocked();
    let refused = PodStatus {
        uid: Uid::new("twice"),
        wave: String::new(),
        reason: Reason::MoreThanOneBudget {
            message: "This pod has more than one PodDisruptionBudget".into(),
        },
        since: Some(Time::from_millis(940_000)),
    };
    status.driver = Some(DrainStatus {
        pods: vec![refused],
        ..driver_status()
    });
    let words = "two disruption budgets select it: one and two, for 1m00s";
    let lines = status_lines(&status, NOW, PodList::default());
    assert!(lines.iter().any(|line| line.ends_with(words)), "{lines:#?}");
    // Without permission to read the budgets the text of the server is shown.
    status.budgets.clear();
    let lines = status_lines(&status, NOW, PodList::default());
    let words = "select it: This pod has more than one PodDisruptionBudget, for 1m00s";
    assert!(lines.iter().any(|line| line.ends_with(words)), "{lines:#?}");
}

#[test]
fn pods_of_one_budget_are_one_group_with_the_looked_up_details() {
    let mut status = blocked();
    let controller = Controller {
        api_version: "apps/v1".into(),
        kind: "ReplicaSet".into(),
        name: "cart-7d9f".into(),
        uid: Uid::new("set"),
        missing: false,
    };
    let of_cart = |name: &str| Pod {
        labels: [("app".to_owned(), "cart".to_owned())].into(),
        controller: Some(controller.clone()),
        ..pod(name)
    };
    status.pods = vec![of_cart("cart"), pod("db"), of_cart("cart-2")];
    let line = |status: &NodeStatus, begins: &str| {
        let mut lines = status_lines(status, NOW, PodList::default()).into_iter();
        lines
            .find(|line| line.trim_start().starts_with(begins))
            .unwrap_or_default()
    };
    assert!(line(&status, "shop/cart ").ends_with("(ReplicaSet cart-7d9f)"));
    status.details.workloads.insert(
        Uid::new("set"),
        Workload {
            kind: "Deployment".into(),
            name: "cart".into(),
            ready: Some((2, 3)),
        },
    );
    let unready = UnreadyPod {
        name: "cart-3".into(),
        node: "worker-2".into(),
        since: Some(Time::from_millis(700_000)),
        why: "container main: CrashLoopBackOff".into(),
    };
    let granted = [("gone", 990_000), ("cart", 940_000), ("new", 999_500)];
    let granted = granted.map(|(name, at)| (name.to_owned(), Time::from_millis(at)));
    let details = BudgetDetails {
        owner: Some("Helm release shop".into()),
        since: Some(Time::from_millis(880_000)),
        granted: granted.into(),
        unready: vec![unready],
    };
    status
        .details
        .budgets
        .insert(("shop".into(), "cart".into()), details);
    let lines = status_lines(&status, NOW, PodList::default());
    let begins = lines
        .iter()
        .position(|line| line.starts_with("    budget shop/cart "))
        .unwrap();
    let expected = [
        "    budget shop/cart blocks 2 pods: it needs 2 healthy pods and has 2; no eviction allowed for \
         2m00s; owner: Helm release shop",
        "      not ready: shop/cart-3 on worker-2 for 5m00s: container main: CrashLoopBackOff",
        "      shop/cart: its eviction was granted 1m00s ago, but the pod was never deleted: the request was cut off; \
         the budget counts it as evicted for another 1m00s",
        "      shop/gone: its eviction was granted 10s ago, but the pod was never deleted: the request was cut off; \
         the budget counts it as evicted for another 1m50s",
    ];
    assert_eq!(lines[begins..begins + 4], expected);
    assert!(lines[begins + 4].starts_with("      next: kubectl -n shop describe pdb cart "));
    let rows = |list| {
        let lines = status_lines(&status, NOW, list);
        let rows = lines
            .iter()
            .filter(|line| line.ends_with("(Deployment cart, 2 of 3 ready)"));
        rows.map(|line| line.trim_start().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        rows(PodList::ByWorkload),
        ["shop/cart and 1 more  BudgetExhausted       (Deployment cart, 2 of 3 ready)"]
    );
    assert_eq!(
        rows(PodList::Each),
        [
            "shop/cart    BudgetExhausted       (Deployment cart, 2 of 3 ready)",
            "shop/cart-2  BudgetExhausted       (Deployment cart, 2 of 3 ready)"
        ]
    );
    assert_eq!(
        lines
            .iter()
            .filter(|line| line.contains("describe pdb cart "))
            .count(),
        1
    );
    let json = status_to_json(&status, NOW);
    assert_eq!(
        json["budgets"][0]["cutOff"][0]["countedUntil"],
        "1970-01-01T00:17:40.000Z"
    );
    // The eviction of a terminating pod is complete.
    status.pods[0] = Pod {
        labels: status.pods[0].labels.clone(),
        ..ending("cart", 1_020_000, &[])
    };
    let lines = status_lines(&status, NOW, PodList::default());
    assert!(
        !lines.iter().any(|line| line.contains("shop/cart: its eviction")),
        "{lines:#?}"
    );
}
