//! Forecasts of drains whose times are known.

use std::collections::BTreeMap;
use std::time::Duration;

use scupper_engine::{
    Budget, Controller, HookPhase, Intent, Node, Pod, PodPhase, PodRef, PolicyInfo, Reason, Request,
    Selector, Settings, Time, Uid, UnhealthyPods, draft,
};
use scupper_forecast::{Forecast, Learned, Situation};
use scupper_recording::ObservedTimes;

const BEGIN: Time = Time::from_millis(1_800_000_000_000);

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn pod(name: &str) -> Pod {
    let controller = Controller {
        api_version: "apps/v1".to_owned(),
        kind: "ReplicaSet".to_owned(),
        name: "web-68c5fcd9c5".to_owned(),
        uid: Uid("uid-of-web".to_owned()),
        missing: false,
    };
    Pod {
        id: PodRef {
            namespace: "shop".to_owned(),
            name: name.to_owned(),
            uid: Uid(format!("uid-of-{name}")),
        },
        node: "worker-1".to_owned(),
        labels: BTreeMap::from([("app".to_owned(), "web".to_owned())]),
        annotations: BTreeMap::new(),
        controller: Some(controller),
        phase: PodPhase::Running,
        ready: true,
        conditions: Vec::new(),
        priority: 0,
        priority_class: String::new(),
        grace_seconds: 30,
        created: Time::from_millis(0),
        deletion: None,
        finalizers: Vec::new(),
        empty_dir: false,
        host_network: false,
        hostname: String::new(),
        cordon_toleration: None,
        volume_claims: Vec::new(),
        host_paths: Vec::new(),
    }
}

fn budget(disruptions_allowed: i32) -> Budget {
    Budget {
        namespace: "shop".to_owned(),
        name: "web".to_owned(),
        selector: Selector {
            labels: BTreeMap::from([("app".to_owned(), "web".to_owned())]),
            expressions: Vec::new(),
            nothing: false,
        },
        unhealthy_pods: UnhealthyPods::IfHealthyBudget,
        disruptions_allowed,
        current_healthy: 3,
        desired_healthy: 3 - disruptions_allowed,
        expected_pods: 3,
        limit: None,
        observed: true,
    }
}

fn situation(budgets: Vec<Budget>) -> Situation {
    let pods: Vec<_> = ["web-1", "web-2", "web-3"].map(pod).into();
    let settings = Settings::default();
    Situation {
        at: BEGIN,
        plan: draft(&pods, &settings, BEGIN),
        request: Request {
            id: "1".to_owned(),
            name: "drain-worker-1".to_owned(),
            trigger: "command".to_owned(),
            intent: Intent::Drain,
            node: "worker-1".to_owned(),
            deadline: None,
            settings,
            policies: Vec::new(),
        },
        node: Node {
            name: "worker-1".to_owned(),
            uid: Uid("uid-of-worker-1".to_owned()),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            unschedulable: false,
            conditions: Vec::new(),
            checkpoint: None,
            cancel: None,
            resource_version: "1".to_owned(),
        },
        pods,
        budgets,
    }
}

/// Pods end after ten seconds, replacements are ready after thirty, the hook takes five minutes.
fn learned() -> Learned {
    let mut learned = Learned::default();
    learned.add(&ObservedTimes {
        endings: vec![(pod("web-0"), seconds(10)), (pod("web-0"), seconds(10))],
        replacements: vec![(("shop".to_owned(), "web".to_owned()), seconds(30))],
        hooks: vec![("slurm".to_owned(), HookPhase::BeforeDrain, seconds(300))],
    });
    learned
}

#[test]
fn pods_without_a_budget_end_side_by_side() {
    let forecast = Forecast::of(&situation(Vec::new()), &learned(), 50);
    assert_eq!(forecast.quantile(0.5), Some(seconds(10)), "{forecast:#?}");
    assert_eq!(forecast.quantile(0.9), Some(seconds(10)));
    assert_eq!((forecast.likelihood(), forecast.basis.known_workloads), (1.0, 1));
}

#[test]
fn a_budget_lets_one_pod_after_another_go() {
    let forecast = Forecast::of(&situation(vec![budget(1)]), &learned(), 50);
    // Three times ten seconds to end, and twice thirty until the replacement is ready.
    assert_eq!(forecast.quantile(0.5), Some(seconds(90)), "{forecast:#?}");
    let history = forecast.typical.unwrap();
    let held = history.path.iter().filter(|part| {
        let reason = part.pod.as_ref().map(|(_, _, reason)| reason);
        matches!(reason, Some(Reason::BudgetExhausted { .. }))
    });
    let held: Duration = held.map(|part| part.to.since(part.from)).sum();
    assert!(held >= seconds(60), "{:#?}", history.path);
}

#[test]
fn a_budget_that_never_opens_is_named_with_its_pods() {
    let forecast = Forecast::of(&situation(vec![budget(0)]), &learned(), 20);
    assert_eq!(forecast.quantile(0.5), None, "{forecast:#?}");
    assert_eq!(forecast.other_ends, BTreeMap::from([("no end".to_owned(), 20)]));
    let never: Vec<_> = forecast.never.iter().map(ToString::to_string).collect();
    assert_eq!(never, ["shop/web-1", "shop/web-2", "shop/web-3"]);
}

#[test]
fn a_deadline_holds_as_often_as_the_times_allow() {
    let mut late = situation(Vec::new());
    late.request.deadline = Some(BEGIN + seconds(6));
    // Of nothing is known: each pod ends between a second and half a minute.
    let forecast = Forecast::of(&late, &Learned::default(), 200);
    let often = forecast.likelihood();
    assert!((0.02..0.5).contains(&often), "{forecast:#?}");
    assert_eq!(
        forecast.other_ends.keys().collect::<Vec<_>>(),
        ["DeadlineExceeded"]
    );
    let unknown = &forecast.basis.unknown_workloads;
    assert_eq!(
        (unknown[0].0.to_string().as_str(), unknown[0].1),
        ("ReplicaSet shop/web", 3)
    );
}

#[test]
fn hooks_take_the_time_that_they_took() {
    let mut with_hooks = situation(Vec::new());
    with_hooks.request.policies = vec![PolicyInfo {
        name: "slurm".to_owned(),
        planner: true,
        phases: vec![HookPhase::BeforeDrain, HookPhase::AfterDrain, HookPhase::OnCancel],
        ..PolicyInfo::default()
    }];
    let forecast = Forecast::of(&with_hooks, &learned(), 10);
    assert_eq!(forecast.quantile(0.9), Some(seconds(310)), "{forecast:#?}");
    let unknown = [("slurm".to_owned(), HookPhase::AfterDrain)];
    assert_eq!(forecast.basis.unknown_hooks, unknown);
}

#[test]
fn the_same_question_has_the_same_answer() {
    let situation = situation(vec![budget(1)]);
    let forecast = || Forecast::of(&situation, &Learned::default(), 30).drained;
    assert_eq!(forecast(), forecast());
    assert!(forecast().first() < forecast().last());
}
