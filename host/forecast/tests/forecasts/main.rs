//! Forecasts of drains whose times are known.
#![expect(clippy::indexing_slicing, reason = "helpers of a test")]

mod cluster;

use std::collections::BTreeMap;
use std::time::Duration;

use fastrand::Rng;
use scupper_engine::{Deletion, HookPhase, PolicyInfo, Reason, Time, Verdict, Wave};
use scupper_forecast::{Forecast, Learned};
use scupper_recording::ObservedTimes;

use cluster::{BEGIN, budget, pod, random_cluster, seconds, situation};

/// Pods end after ten seconds, replacements are ready after thirty, the hook takes twenty minutes.
fn learned() -> Learned {
    let mut learned = Learned::default();
    learned.add(&ObservedTimes {
        endings: vec![(pod("web-0"), seconds(10)), (pod("web-0"), seconds(10))],
        replacements: vec![(("shop".to_owned(), "web".to_owned()), seconds(30))],
        hooks: vec![("slurm".to_owned(), HookPhase::BeforeDrain, seconds(1_200))],
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
fn what_only_waits_for_its_wave_leaves_after_hours() {
    let mut situation = situation(vec![budget(0)]);
    let [first, second, _] = [0, 1, 2].map(|place| situation.pods[place].id.clone());
    let later = situation.plan.waves[0].clone();
    situation.plan.waves[0].pods.retain(|pod| *pod != second.uid);
    situation.plan.waves[0].timeout = Some(seconds(4 * 3_600));
    situation.plan.waves.push(Wave {
        name: "later".to_owned(),
        pods: vec![second.uid.clone()],
        ..later
    });
    let decision = situation
        .plan
        .decisions
        .iter_mut()
        .find(|decision| decision.pod == second.uid);
    decision.unwrap().verdict = Verdict::Delete;
    let forecast = Forecast::of(&situation, &learned(), 5);
    assert!(forecast.never.contains(&first), "{forecast:#?}");
    assert!(!forecast.never.contains(&second), "{forecast:#?}");
    assert_eq!(forecast.basis.closed_budgets, ["shop/web"]);
}

#[test]
fn a_deadline_in_a_month_is_an_end() {
    let mut late = situation(vec![budget(0)]);
    late.request.deadline = Some(BEGIN + seconds(720 * 3_600));
    let forecast = Forecast::of(&late, &learned(), 5);
    let ends = BTreeMap::from([("DeadlineExceeded".to_owned(), 5)]);
    assert_eq!(forecast.other_ends, ends, "{forecast:#?}");
}

#[test]
fn a_pod_that_is_terminating_ends_in_its_grace_period_or_is_stuck() {
    let mut situation = situation(Vec::new());
    let deletion = |at: Time| Deletion {
        at,
        grace_seconds: 30,
    };
    situation.pods[0].deletion = Some(deletion(BEGIN + seconds(5)));
    let forecast = Forecast::of(&situation, &learned(), 5);
    assert_eq!(forecast.quantile(0.5), Some(seconds(10)), "{forecast:#?}");
    situation.pods[0].deletion = Some(deletion(BEGIN - seconds(3_600)));
    let forecast = Forecast::of(&situation, &learned(), 5);
    assert_eq!(forecast.never, [situation.pods[0].id.clone()], "{forecast:#?}");
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
    assert_eq!(forecast.quantile(0.9), Some(seconds(1_210)), "{forecast:#?}");
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

#[test]
fn four_of_five_drains_end_between_p10_and_p90() {
    let mut random = Rng::with_seed(7);
    let (mut inside, mut all) = (0, 0);
    for _ in 0..100 {
        let (situation, learn) = random_cluster(&mut random);
        let forecast = Forecast::of(&situation, &learn(&mut random, 20), 100);
        let range = forecast.quantile(0.1).unwrap()..=forecast.quantile(0.9).unwrap();
        let truth = learn(&mut random, 200);
        let ends = Forecast::of(&situation, &truth, 10).drained;
        all += ends.len();
        inside += ends.iter().filter(|end| range.contains(end)).count();
    }
    let share = inside as f64 / all as f64;
    println!(
        "{all} drains, of which {:.1} % end between p10 and p90",
        share * 100.0
    );
    assert_eq!(all, 1_000);
    assert!((0.75..=0.85).contains(&share), "{share}");
}
