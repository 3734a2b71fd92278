//! Holds: their waves in the plan.

use std::time::Duration;

use scupper_sdk::{
    Call, Condition, Description, Draft, Drain, Hold, Hooks, Node, Outcome, Phase, Planner, Pod, Policy,
    Subject, description, hold,
    testing::{Host, Planned, pod},
};

fn minutes(count: u64) -> Hold {
    Hold::at_most(Duration::from_secs(60 * count))
}

/// The hold of a pod is its name in minutes: `a/10`.
fn hold_of(pod: &Pod) -> Option<Hold> {
    pod.name.parse().ok().map(minutes)
}

struct Holding;

impl Policy for Holding {
    fn describe() -> Description {
        description!("Holds pods whose names are numbers")
    }
}

impl Planner for Holding {
    fn plan(drain: &Drain, _node: &Node, draft: &mut Draft<'_>) -> Result<(), String> {
        let leaving = draft.leaving();
        draft.hold(
            "pods",
            drain,
            leaving.into_iter().filter_map(|pod| Some((pod, hold_of(pod)?))),
        );
        Ok(())
    }
}

impl Hooks for Holding {
    fn phases() -> Vec<Phase> {
        vec![Phase::BeforeWave]
    }

    fn step(call: &Call) -> Outcome {
        hold::step("pods", call, |_| Some("still runs".to_owned()))
    }
}

/// Keeps the pods of the namespace `b`.
struct Keeping;

impl Policy for Keeping {
    fn describe() -> Description {
        description!("Keeps b")
    }
}

impl Planner for Keeping {
    fn plan(_drain: &Drain, _node: &Node, draft: &mut Draft<'_>) -> Result<(), String> {
        for pod in draft.pods().iter().filter(|pod| pod.namespace == "b") {
            draft.keep(pod, "by its namespace");
        }
        Ok(())
    }
}

/// The pods for which the wave waits.
fn awaited(host: &Host, wave: &str) -> Vec<String> {
    match host.step::<Holding>(Phase::BeforeWave, Subject::Wave(wave.to_owned())) {
        Outcome::Pending(pending) => pending.waiting_for.into_iter().map(|pod| pod.what).collect(),
        _ => Vec::new(),
    }
}

/// Sorts pods into waves by namespace, the first of which has a timeout of a minute.
struct Sorting;

impl Policy for Sorting {
    fn describe() -> Description {
        description!("Sorts pods by namespace")
    }
}

impl Planner for Sorting {
    fn plan(_drain: &Drain, _node: &Node, draft: &mut Draft<'_>) -> Result<(), String> {
        for pod in draft.leaving() {
            draft.move_to_wave(pod, &pod.namespace);
        }
        draft.wave("a").timeout(Duration::from_secs(60));
        Ok(())
    }
}

/// The waves with their timeouts in seconds.
fn timeouts(plan: &Planned) -> Vec<(String, Option<u64>)> {
    let waves = plan.plan().waves.iter();
    let line = |wave: &scupper_sdk::Wave| (wave.name.clone(), wave.timeout.map(|timeout| timeout / 1000));
    waves.map(line).collect()
}

fn named(waves: &[(&str, Option<u64>)]) -> Vec<(String, Option<u64>)> {
    waves
        .iter()
        .map(|(name, timeout)| ((*name).to_owned(), *timeout))
        .collect()
}

#[test]
fn the_name_of_a_wave_says_its_hold() {
    let seconds = Duration::from_secs;
    for (hold, name) in [
        (Hold::at_most(seconds(90)), "after 90s"),
        (minutes(5), "after 5m"),
        (minutes(120), "after 2h"),
        (minutes(90), "after 90m"),
        (Hold::at_most(Duration::ZERO), "after 1s"),
        (Hold::at_most(Duration::from_millis(1_500)), "after 2s"),
        (minutes(5).max_grace(seconds(30)), "after 5m, grace 30s"),
    ] {
        assert_eq!(hold.to_string(), name);
        let text = name.trim_start_matches("after ").replace(',', "");
        assert_eq!(text.parse(), Ok(hold));
        let wave = hold.wave("jobs");
        assert_eq!(wave, format!("jobs-{}", name.replace(',', "").replace(' ', "-")));
        assert_eq!(Hold::of_wave(&wave), Some(hold));
    }
    // Several policies hold these: as long as the last of them.
    for name in ["gangs-after-90s+jobs-after-5m", "a+b-after-90s+jobs-after-5m"] {
        assert_eq!(Hold::of_wave(name), Some(minutes(5)), "{name}");
    }
    for name in [
        "all",
        "jobs-after",
        "jobs-after-lunch",
        "jobs-after-0s",
        "jobs-after-5m-grace",
        "jobs-before-5m",
        "after-5m",
        "jobs-after-5m-then",
        "jobs-after-5m+others",
    ] {
        assert_eq!(Hold::of_wave(name), None, "{name}");
    }
}

#[test]
fn holds_leave_after_all_others_the_shortest_first() {
    let host = Host::new();
    host.pods(["a/20", "a/x", "a/5", "b/20"].map(pod));
    let plan = host.plan::<Holding>().unwrap();
    assert_eq!(
        plan.waves(),
        ["all: a/x", "pods-after-5m: a/5", "pods-after-20m: a/20 b/20"]
    );
    assert_eq!(
        timeouts(&plan),
        named(&[
            ("all", Some(300)),
            ("pods-after-5m", Some(900)),
            ("pods-after-20m", None)
        ])
    );
}

#[test]
fn a_later_policy_adds_its_holds_in_order() {
    let host = Host::new();
    let pods = ["a/20", "a/x", "b/10"].map(pod);
    host.pods(pods.clone());
    let first = host.plan::<Holding>().unwrap();
    // Another policy adds a hold to that plan.
    let mut draft = Draft::new(&pods, first.plan().clone());
    let drain = host.call(Phase::BeforeDrain, Subject::Node).drain;
    draft.hold("others", &drain, [(&pods[1], minutes(15))]);
    let names: Vec<_> = draft.finish().waves.into_iter().map(|wave| wave.name).collect();
    assert_eq!(names, ["pods-after-10m", "others-after-15m", "pods-after-20m"]);
}

#[test]
fn other_waves_share_the_time_until_the_first_hold_and_keep_shorter_timeouts() {
    let host = Host::new();
    host.pods(["a/x", "b/x", "c/x", "c/30"].map(pod));
    let sorted = host.plan::<Sorting>().unwrap();
    let plan = host.plan_after::<Holding>(&sorted).unwrap();
    assert_eq!(
        timeouts(&plan),
        named(&[
            ("a", Some(60)),
            ("b", Some(600)),
            ("c", Some(600)),
            ("pods-after-30m", None)
        ])
    );
}

#[test]
fn a_plan_that_is_made_again_gives_no_new_time() {
    let host = Host::new();
    host.pods(["a/x", "a/5", "a/20"].map(pod));
    let _first = host.plan::<Holding>().unwrap();
    host.advance(Duration::from_secs(240));
    assert_eq!(
        timeouts(&host.plan::<Holding>().unwrap()),
        named(&[
            ("all", Some(60)),
            ("pods-after-5m", Some(900)),
            ("pods-after-20m", None)
        ])
    );
    host.advance(Duration::from_secs(660));
    assert_eq!(
        timeouts(&host.plan::<Holding>().unwrap()),
        named(&[
            ("all", Some(1)),
            ("pods-after-5m", Some(300)),
            ("pods-after-20m", None)
        ])
    );
}

/// A pod that the scheduler bound so many seconds after the start of the drain.
fn late(host: &Host, name: &str, secs: u64) -> Pod {
    let started = host.call(Phase::BeforeDrain, Subject::Node).drain.started;
    Pod {
        creation_timestamp: started + secs * 1000,
        ..pod(name)
    }
}

#[test]
fn a_pod_that_comes_later_has_the_same_time_from_its_arrival() {
    let host = Host::new();
    host.pods(["a/20", "a/x"].map(pod));
    let _first = host.plan::<Holding>().unwrap();
    host.advance(Duration::from_secs(1_000));
    // Those that come soon after the start, or together, share a wave.
    let bound = Condition {
        type_: "PodScheduled".to_owned(),
        status: "True".to_owned(),
        reason: String::new(),
        message: String::new(),
        last_transition_time: Some(late(&host, "a/x", 900).creation_timestamp),
    };
    let waited = Pod {
        conditions: vec![bound],
        ..pod("e/20")
    };
    let times = [("b/20", 60), ("c/20", 61), ("d/20", 120), ("f/1", 61)];
    let late = times.map(|(name, secs)| late(&host, name, secs));
    host.pods([pod("a/20"), pod("a/x"), waited].into_iter().chain(late));
    let plan = host.plan::<Holding>().unwrap();
    assert_eq!(
        plan.waves(),
        [
            "all: a/x",
            "pods-after-126s: f/1",
            "pods-after-20m: a/20 b/20",
            "pods-after-22m: c/20 d/20",
            "pods-after-35m: e/20"
        ]
    );
    let call = host.call(Phase::BeforeDrain, Subject::Node);
    assert_eq!(
        minutes(20).when(&host.pod("d/20").unwrap(), &call.drain),
        "after 22m"
    );
    // Its hook holds it that long.
    host.advance(Duration::from_secs(22 * 60 - 1_001));
    assert_eq!(awaited(&host, "pods-after-22m"), ["c/20", "d/20"]);
    host.advance(Duration::from_secs(1));
    assert!(awaited(&host, "pods-after-22m").is_empty());
}

#[test]
fn without_holds_a_plan_stays_as_it_is() {
    let host = Host::new();
    host.pods(["a/x", "b/y"].map(pod));
    assert_eq!(host.plan::<Holding>().unwrap().plan(), host.draft().plan());
}

#[test]
fn the_driver_still_leaves_last() {
    let host = Host::new();
    let mut driver = pod("scupper/driver");
    driver.driver = true;
    host.pods([driver, pod("a/5"), pod("a/x")]);
    let waves = host.plan::<Holding>().unwrap().waves();
    assert_eq!(
        waves,
        ["all: a/x", "pods-after-5m: a/5", "driver: scupper/driver"]
    );
}

#[test]
fn the_reason_says_if_the_deadline_comes_first() {
    let host = Host::new();
    let when = || {
        let call = host.call(Phase::BeforeDrain, Subject::Node);
        minutes(5).when(&pod("a/5"), &call.drain)
    };
    assert_eq!(when(), "after 5m");
    host.deadline_in(Duration::from_secs(301));
    assert_eq!(when(), "after 5m");
    host.deadline_in(Duration::from_secs(300));
    assert_eq!(when(), "after 5m, but the drain's deadline comes first");
}

#[test]
fn a_wave_waits_for_its_pods_and_for_none_that_another_policy_keeps() {
    let host = Host::new();
    host.pods(["a/5", "a/x", "b/5", "a/20"].map(pod));
    let held = host.plan::<Holding>().unwrap();
    assert_eq!(awaited(&host, "pods-after-5m"), ["a/5", "b/5"]);
    // A later policy of the chain.
    host.plan_after::<Keeping>(&held).unwrap();
    assert_eq!(awaited(&host, "pods-after-5m"), ["a/5"]);
    assert_eq!(awaited(&host, "pods-after-20m"), ["a/20"]);
    host.pods(["b/5", "a/20"].map(pod));
    assert!(awaited(&host, "pods-after-5m").is_empty());
}

#[test]
fn a_policy_holds_no_wave_of_another() {
    let host = Host::new();
    host.pods(["a/5", "a/20"].map(pod));
    host.plan::<Holding>().unwrap();
    for wave in ["others-after-5m", "after-5m", "all"] {
        assert!(awaited(&host, wave).is_empty(), "{wave}");
    }
}

/// Holds all pods for an hour, and lets them leave after one step.
struct Hasty;

impl Policy for Hasty {
    fn describe() -> Description {
        description!("Holds everything")
    }
}

impl Planner for Hasty {
    fn plan(drain: &Drain, _node: &Node, draft: &mut Draft<'_>) -> Result<(), String> {
        let pods = draft.leaving();
        draft.hold("hasty", drain, pods.into_iter().map(|pod| (pod, minutes(60))));
        Ok(())
    }
}

impl Hooks for Hasty {
    fn phases() -> Vec<Phase> {
        vec![Phase::BeforeWave]
    }

    fn step(call: &Call) -> Outcome {
        hold::step("hasty", call, |_| None)
    }
}

#[test]
fn a_pod_that_two_policies_hold_leaves_when_both_let_it_in_either_order() {
    let wave = "pods-after-20m+hasty-after-1h";
    for is_first in [true, false] {
        let host = Host::new();
        host.pods(["a/20", "a/x"].map(pod));
        let plan = if is_first {
            let held = host.plan::<Hasty>().unwrap();
            host.plan_after::<Holding>(&held).unwrap()
        } else {
            let held = host.plan::<Holding>().unwrap();
            host.plan_after::<Hasty>(&held).unwrap()
        };
        assert_eq!(plan.waves(), ["hasty-after-1h: a/x", &format!("{wave}: a/20")]);
        let subject = Subject::Wave(wave.to_owned());
        assert_eq!(
            host.step::<Hasty>(Phase::BeforeWave, subject.clone()),
            Outcome::Done
        );
        assert_eq!(awaited(&host, wave), ["a/20"]);
        // No longer than each of them wants.
        let run = host.run_hook::<Holding>(Phase::BeforeWave, subject, 1_000);
        assert_eq!(run.took, Duration::from_secs(1_200));
    }
}

/// The host cuts longer names off.
#[test]
fn the_name_of_a_wave_that_many_hold_keeps_the_longest_holds() {
    let host = Host::new();
    let pods = [pod("a/x")];
    host.pods(pods.clone());
    let mut plan = host.draft().plan().clone();
    let drain = host.call(Phase::BeforeDrain, Subject::Node).drain;
    for count in 1..=9 {
        let mut draft = Draft::new(&pods, plan);
        draft.hold(
            &format!("policy-number-{count}"),
            &drain,
            [(&pods[0], minutes(count))],
        );
        plan = draft.finish();
    }
    let name = &plan.waves[0].name;
    assert!(
        name.len() <= 128 && name.ends_with("+policy-number-9-after-9m"),
        "{name}"
    );
    assert_eq!(Hold::of_wave(name), Some(minutes(9)));
}

/// Awaits the end of the pods of the namespace `b`.
struct Awaiting;

impl Policy for Awaiting {
    fn describe() -> Description {
        description!("Awaits b")
    }
}

impl Planner for Awaiting {
    fn plan(_drain: &Drain, _node: &Node, draft: &mut Draft<'_>) -> Result<(), String> {
        let awaited: Vec<&Pod> = draft
            .leaving()
            .into_iter()
            .filter(|pod| pod.namespace == "b")
            .collect();
        for pod in &awaited {
            draft.await_completion(pod, "by its namespace");
        }
        draft.await_last(awaited);
        Ok(())
    }
}

#[test]
fn pods_that_are_only_awaited_hold_up_no_hold_of_a_later_policy() {
    let host = Host::new();
    let mut driver = pod("scupper/driver");
    driver.driver = true;
    host.pods([pod("b/y"), pod("a/x"), pod("a/20"), driver]);
    let awaited = host.plan::<Awaiting>().unwrap();
    let plan = host.plan_after::<Holding>(&awaited).unwrap();
    assert_eq!(
        plan.waves(),
        [
            "all: a/x",
            "pods-after-20m: a/20",
            "completion: b/y",
            "driver: scupper/driver"
        ]
    );
    assert_eq!(
        timeouts(&plan)[..3],
        named(&[
            ("all", Some(1200)),
            ("pods-after-20m", None),
            ("completion", None)
        ])
    );
}

#[test]
fn pods_that_are_only_awaited_are_behind_all_that_are_evicted() {
    let host = Host::new();
    let pods = ["a/x", "b/y"].map(pod);
    host.pods(pods.clone());
    let mut draft = Draft::new(&pods, host.draft().plan().clone());
    draft.await_completion(&pods[1], "it ends by itself");
    draft.move_to_wave(&pods[0], "completion");
    draft.await_last(&pods);
    let waves = draft.finish().waves;
    let names: Vec<_> = waves.iter().map(|wave| wave.name.as_str()).collect();
    assert_eq!(names, ["completion", "completion-last"]);
    assert_eq!(waves[1].pods, [pods[1].uid.clone()]);
}
