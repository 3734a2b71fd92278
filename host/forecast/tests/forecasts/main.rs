//! Forecasts of drains whose times are known.
#![expect(clippy::indexing_slicing, reason = "helpers of a test")]

mod begun;
mod certain;
mod cluster;
mod saving;
mod several;

use std::collections::BTreeMap;
use std::time::Duration;

use fastrand::Rng;
use scupper_engine::{Deletion, HookPhase, PolicyInfo, Reason, Time, Verdict, Wave, draft};
use scupper_forecast::{EndTimes, Forecast, Learned, Workload};
use scupper_recording::ObservedTimes;

use cluster::{BEGIN, budget, pod, random_cluster, seconds, situation};

/// Pods end after ten seconds, replacements are ready thirty after the request, the hook takes twenty minutes; so often that
/// nothing else is to be expected.
fn learned() -> Learned {
    let mut learned = Learned::default();
    for _ in 0..5 {
        learned.add(&ObservedTimes {
            endings: vec![(pod("web-0"), seconds(10))],
            replacements: vec![(("shop".to_owned(), "web".to_owned()), seconds(30))],
            hooks: vec![("slurm".to_owned(), HookPhase::BeforeDrain, seconds(1_200))],
            ..ObservedTimes::default()
        });
    }
    learned
}

#[test]
fn pods_without_a_budget_end_side_by_side() {
    let forecast = Forecast::of(&situation(Vec::new()), &learned(), 50);
    assert_eq!(forecast.quantile(5), Some(seconds(10)), "{forecast:#?}");
    assert_eq!(forecast.quantile(9), Some(seconds(10)));
    assert_eq!(
        (forecast.ends.drained.len(), forecast.basis.known_workloads),
        (50, 1)
    );
}

#[test]
fn a_drain_takes_some_time_of_its_own() {
    let mut learned = learned();
    for _ in 0..5 {
        learned.add(&ObservedTimes {
            overhead: Some(seconds(2)),
            ..ObservedTimes::default()
        });
    }
    let forecast = Forecast::of(&situation(Vec::new()), &learned, 50);
    assert_eq!(forecast.quantile(5), Some(seconds(12)), "{forecast:#?}");
    // Where no pod is to leave, nothing of that is left.
    let mut idle = situation(Vec::new());
    idle.pods.clear();
    idle.plan = draft(&[], &idle.request.settings, BEGIN);
    let forecast = Forecast::of(&idle, &learned, 50);
    assert_eq!(forecast.quantile(9), Some(Duration::ZERO), "{forecast:#?}");
}

#[test]
fn a_budget_lets_one_pod_after_another_go() {
    let forecast = Forecast::of(&situation(vec![budget(1)]), &learned(), 50);
    // Twice thirty seconds until the replacement is ready, and the last pod's ten.
    assert_eq!(forecast.quantile(5), Some(seconds(70)), "{forecast:#?}");
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
    assert_eq!(forecast.quantile(5), None, "{forecast:#?}");
    assert_eq!(forecast.other_ends, BTreeMap::from([("no end".to_owned(), 20)]));
    let still_there: Vec<_> = forecast.still_there.iter().map(ToString::to_string).collect();
    assert_eq!(still_there, ["shop/web-1", "shop/web-2", "shop/web-3"]);
}

#[test]
fn the_replacement_in_a_statefulset_waits_for_the_pods_end() {
    let mut situation = situation(vec![budget(1)]);
    for pod in &mut situation.pods {
        pod.controller.as_mut().unwrap().kind = "StatefulSet".to_owned();
        pod.grace_seconds = 60;
    }
    // A minute to end.
    let mut slow = learned();
    for _ in 0..5 {
        slow.add(&ObservedTimes {
            endings: vec![(situation.pods[0].clone(), seconds(60))],
            ..ObservedTimes::default()
        });
    }
    let forecast = Forecast::of(&situation, &slow, 10);
    // Each ends after a minute, and half a minute later the next may go.
    assert_eq!(forecast.quantile(5), Some(seconds(60 + 90 + 90)), "{forecast:#?}");
}

#[test]
fn an_eviction_is_weighed_as_the_api_server_does_it() {
    // Not ready, and its budget has enough healthy pods without it.
    let mut spared = situation(vec![budget(0)]);
    spared.pods.iter_mut().for_each(|pod| pod.ready = false);
    let forecast = Forecast::of(&spared, &learned(), 10);
    assert_eq!(forecast.quantile(5), Some(seconds(10)), "{forecast:#?}");
    // Not ready, and its budget has too few: the API server refuses, until another pod is healthy.
    spared.budgets[0].current_healthy = 2;
    let forecast = Forecast::of(&spared, &learned(), 10);
    assert_eq!(forecast.still_there.len(), 3, "{forecast:#?}");
    // Two budgets, which it cannot weigh.
    let mut other = budget(1);
    other.name = "other".to_owned();
    let forecast = Forecast::of(&situation(vec![budget(1), other]), &learned(), 10);
    assert_eq!(forecast.still_there.len(), 3, "{forecast:#?}");
}

#[test]
fn pods_that_were_terminating_before_come_back_to_their_budget() {
    let mut situation = situation(vec![budget(0)]);
    situation.budgets[0].current_healthy = 2;
    situation.budgets[0].desired_healthy = 2;
    situation.pods[0].deletion = Some(Deletion {
        at: BEGIN + seconds(25),
        grace_seconds: 30,
    });
    // Asked five seconds ago: its replacement is ready in twenty-five.
    let forecast = Forecast::of(&situation, &learned(), 10);
    assert_eq!(forecast.quantile(5), Some(seconds(25 + 30 + 10)), "{forecast:#?}");
}

#[test]
fn a_long_time_until_a_replacement_is_ready_is_not_the_end() {
    let mut slow = learned();
    slow.add(&ObservedTimes {
        replacements: vec![(("shop".to_owned(), "web".to_owned()), seconds(6 * 3_600)); 200],
        ..ObservedTimes::default()
    });
    let forecast = Forecast::of(&situation(vec![budget(1)]), &slow, 5);
    assert_eq!(forecast.ends.drained.len(), 5, "{forecast:#?}");
    assert!(forecast.quantile(5) > Some(seconds(10 * 3_600)), "{forecast:#?}");
}

#[test]
fn the_first_pod_leaves_after_the_notice() {
    let mut noticed = situation(Vec::new());
    noticed.request.settings.notify_before = seconds(3_600);
    let forecast = Forecast::of(&noticed, &learned(), 10);
    assert_eq!(forecast.quantile(5), Some(seconds(3_610)), "{forecast:#?}");
    // The driver's request has the hook.
    noticed.request.policies.push(PolicyInfo {
        name: "notify before".to_owned(),
        phases: vec![HookPhase::BeforeDrain, HookPhase::BeforeWave],
        ..PolicyInfo::default()
    });
    let ends = EndTimes::of(&noticed, &learned(), 10).unwrap();
    assert_eq!(ends.estimate(BEGIN).unwrap()[1], BEGIN + seconds(3_610));
}

#[test]
fn few_times_say_little_and_times_that_were_cut_off_are_named() {
    let mut learned = Learned::default();
    learned.add(&ObservedTimes {
        cut_endings: vec![(pod("web-0"), seconds(10))],
        cut_hooks: vec![("slurm".to_owned(), HookPhase::BeforeDrain, seconds(60))],
        ..ObservedTimes::default()
    });
    let mut situation = situation(Vec::new());
    situation.request.policies = vec![PolicyInfo {
        name: "slurm".to_owned(),
        phases: vec![HookPhase::BeforeDrain],
        ..PolicyInfo::default()
    }];
    let forecast = Forecast::of(&situation, &learned, 200);
    // The hook took a minute at least, and the pods ten seconds.
    let [early, late] = [1, 9].map(|tenths| forecast.quantile(tenths).unwrap());
    assert!(early < seconds(75) && seconds(90) < late, "{forecast:#?}");
    let basis = &forecast.basis;
    assert_eq!((basis.known_workloads, basis.fewest_times), (0, 0));
    assert_eq!(basis.unknown_hooks, []);
    assert_eq!(basis.cut_workloads[0].to_string(), "ReplicaSet shop/web");
    assert_eq!(basis.cut_hooks, [("slurm".to_owned(), HookPhase::BeforeDrain)]);
}

#[test]
fn a_name_that_ends_like_a_rollout_is_cut_only_where_it_is_one() {
    let mut own = pod("web-1");
    own.labels.remove("pod-template-hash");
    assert_eq!(Workload::of(&own).name, "web-68c5fcd9c5");
    assert_eq!(Workload::of(&pod("web-1")).name, "web");
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
    assert!(forecast.still_there.contains(&first), "{forecast:#?}");
    assert!(!forecast.still_there.contains(&second), "{forecast:#?}");
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
    assert_eq!(forecast.quantile(5), Some(seconds(10)), "{forecast:#?}");
    situation.pods[0].deletion = Some(deletion(BEGIN - seconds(3_600)));
    let forecast = Forecast::of(&situation, &learned(), 5);
    assert_eq!(
        forecast.still_there,
        [situation.pods[0].id.clone()],
        "{forecast:#?}"
    );
}

#[test]
fn a_deadline_holds_as_often_as_the_times_allow() {
    let mut late = situation(Vec::new());
    late.request.deadline = Some(BEGIN + seconds(6));
    // Nothing is known: they end between a second and half a minute, before the sixth with a likelihood of ln 6 / ln 30.
    let forecast = Forecast::of(&late, &Learned::default(), 200);
    let often = forecast.ends.drained.len() as f64 / 200.0;
    assert!((0.4..0.65).contains(&often), "{forecast:#?}");
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
    assert_eq!(forecast.quantile(9), Some(seconds(1_210)), "{forecast:#?}");
    let unknown = [("slurm".to_owned(), HookPhase::AfterDrain)];
    assert_eq!(forecast.basis.unknown_hooks, unknown);
}

#[test]
fn the_estimate_of_a_drain_that_runs_leaves_out_the_plays_that_are_over() {
    let mut known = Learned::default();
    known.add(&ObservedTimes {
        endings: vec![(pod("web-0"), seconds(10))],
        ..ObservedTimes::default()
    });
    let forecast = Forecast::of(&situation(vec![budget(1)]), &known, 100);
    let took = |place: usize| BEGIN + forecast.ends.drained[place];
    let end_times = |situation| EndTimes::of(&situation, &known, 100);
    let ends = end_times(situation(vec![budget(1)])).unwrap();
    assert_eq!(ends.estimate(BEGIN), Some([took(9), took(49), took(89)]));
    // Of a hundred plays fifty are open.
    assert_eq!(ends.estimate(took(49)), Some([took(54), took(74), took(94)]));
    assert_eq!(ends.estimate(took(98)), Some([took(99), took(99), took(99)]));
    assert_eq!(ends.estimate(took(99)), None);
    let stuck = end_times(situation(vec![budget(0)])).unwrap();
    assert_eq!(stuck.estimate(BEGIN), None);
    // What no play has would make it wrong.
    let mut off = situation(Vec::new());
    off.request.settings.machine_is_off = true;
    assert!(end_times(off).is_none());
    assert!(EndTimes::of(&situation(Vec::new()), &Learned::default(), 10).is_none());
}

#[test]
fn the_same_question_has_the_same_answer() {
    let situation = situation(vec![budget(1)]);
    let forecast = || Forecast::of(&situation, &Learned::default(), 30).ends.drained;
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
        let range = forecast.quantile(1).unwrap()..=forecast.quantile(9).unwrap();
        let truth = learn(&mut random, 200);
        let ends = Forecast::of(&situation, &truth, 10).ends.drained;
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
