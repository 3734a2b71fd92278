//! What a drain has seen of times, by what it was told.

use scupper_engine::{CommandId, Controller, Deletion, HookStep, PodPhase, PodRef, Selector, UnhealthyPods};
use scupper_engine_simulation::any_pod;

use super::*;

const fn at(seconds: u64) -> Time {
    Time::from_millis(seconds * 1_000)
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A running pod of the ReplicaSet `web` with 30 s to end.
fn pod(name: &str) -> Pod {
    Pod {
        id: PodRef {
            namespace: "shop".to_owned(),
            name: name.to_owned(),
            uid: Uid::new(name),
        },
        labels: BTreeMap::from([("app".to_owned(), "web".to_owned())]),
        controller: Some(Controller {
            api_version: "apps/v1".to_owned(),
            kind: "ReplicaSet".to_owned(),
            name: "web".to_owned(),
            uid: Uid::new("uid-of-web"),
            missing: false,
        }),
        phase: PodPhase::Running,
        ready: true,
        grace_seconds: 30,
        deletion: None,
        ..any_pod().unwrap()
    }
}

/// The pod, asked to leave with so many seconds.
fn leaving(name: &str, asked: u64, grace_seconds: u64) -> Event {
    Event::PodApplied(Pod {
        deletion: Some(Deletion {
            at: at(asked + grace_seconds),
            grace_seconds,
        }),
        ..pod(name)
    })
}

fn budget(current_healthy: i32) -> Event {
    Event::BudgetApplied(Budget {
        namespace: "shop".to_owned(),
        name: "web".to_owned(),
        selector: Selector {
            labels: BTreeMap::from([("app".to_owned(), "web".to_owned())]),
            ..Selector::default()
        },
        unhealthy_pods: UnhealthyPods::IfHealthyBudget,
        disruptions_allowed: (current_healthy - 2).max(0),
        current_healthy,
        desired_healthy: 2,
        expected_pods: 4,
        limit: None,
        observed: true,
    })
}

fn gone(name: &str) -> Event {
    Event::PodDeleted(Uid::new(name))
}

/// What a recording of these events, which ends after so many seconds, says.
fn times<const N: usize>(events: [(u64, Event); N], end: u64) -> ObservedTimes {
    let mut watch = Watch::default();
    for (second, event) in events {
        watch.event(at(second), &event);
    }
    watch.end(at(end));
    watch.times
}

fn by_name(endings: &[(Pod, Duration)]) -> Vec<(&str, Duration)> {
    let named = endings.iter().map(|(pod, took)| (pod.id.name.as_str(), *took));
    named.collect()
}

#[test]
fn pods_end_some_time_after_they_were_asked_to() {
    let pods = ["a", "b", "c", "d"].map(pod);
    let events = [
        (0, Event::Pods(pods.into())),
        (1, leaving("a", 1, 30)),
        (1, leaving("b", 1, 30)),
        (1, leaving("c", 1, 5)),
        (1, leaving("d", 1, 30)),
        // As the kubelet removes it.
        (4, leaving("a", 4, 0)),
        (4, gone("a")),
        // Killed when the shorter grace period was over: it would have taken longer.
        (6, gone("c")),
        // Forced.
        (10, leaving("d", 10, 1)),
        (11, gone("d")),
    ];
    let times = times(events, 20);
    assert_eq!(by_name(&times.endings), [("a", seconds(3))]);
    let cut = [("c", seconds(5)), ("d", seconds(10)), ("b", seconds(19))];
    assert_eq!(by_name(&times.cut_endings), cut);
}

#[test]
fn a_request_begins_when_it_is_commanded_and_a_refused_one_does_not_count() {
    let mut watch = Watch::default();
    watch.event(at(0), &Event::Pods(vec![pod("a")]));
    for (number, second) in [(1, 1), (2, 5)] {
        let (id, pod) = (CommandId(number), pod("a").id);
        let grace_seconds = None;
        let task = Task::Evict { pod, grace_seconds };
        watch.command(at(second), &Command { id, task });
        let refused = EvictAnswer::BudgetExhausted {
            budget: "web".to_owned(),
            message: "not now".to_owned(),
        };
        let answer = if number == 1 {
            refused
        } else {
            EvictAnswer::Accepted
        };
        if number == 2 {
            // The watch is faster than the answer.
            watch.event(at(6), &leaving("a", 6, 30));
        }
        watch.event(at(second + 2), &Event::Answer(id, Answer::Evict(answer)));
    }
    watch.event(at(9), &gone("a"));
    assert_eq!(by_name(&watch.times.endings), [("a", seconds(4))]);
}

#[test]
fn pods_that_a_new_list_does_not_have_ended_at_an_unknown_time() {
    let events = [
        (0, Event::Pods(["a", "b"].map(pod).into())),
        (1, leaving("a", 1, 30)),
        (9, Event::Pods(vec![pod("b")])),
    ];
    let times = times(events, 20);
    assert_eq!((times.endings.len(), times.cut_endings.len()), (0, 0));
}

#[test]
fn each_pod_that_is_healthy_again_replaces_the_one_that_was_asked_first() {
    let events = [
        (0, Event::Pods(["a", "b"].map(pod).into())),
        (0, budget(4)),
        (1, leaving("a", 1, 30)),
        (3, leaving("b", 3, 30)),
        (3, budget(2)),
        // Both at once, and one of them is not gone yet.
        (8, gone("a")),
        (9, budget(4)),
        // A pod of another node.
        (12, budget(5)),
    ];
    let took: Vec<_> = times(events, 20).replacements;
    let web = ("shop".to_owned(), "web".to_owned());
    assert_eq!(took, [(web.clone(), seconds(8)), (web, seconds(6))]);
}

fn ended(event: Event) -> Event {
    match event {
        Event::PodApplied(pod) => Event::PodApplied(Pod {
            phase: PodPhase::Succeeded,
            ready: false,
            ..pod
        }),
        other => other,
    }
}

#[test]
fn a_statefulset_begins_another_pod_when_the_last_one_is_gone() {
    let of_set = |event: Event| match event {
        Event::PodApplied(mut pod) => {
            if let Some(controller) = &mut pod.controller {
                controller.kind = "StatefulSet".to_owned();
            }
            Event::PodApplied(pod)
        }
        other => other,
    };
    let events = [
        (0, of_set(Event::PodApplied(pod("a")))),
        (0, budget(4)),
        (1, of_set(leaving("a", 1, 30))),
        // The kubelet has ended it.
        (19, of_set(ended(leaving("a", 1, 30)))),
        (1, budget(3)),
        // A pod of another node.
        (5, budget(4)),
        (5, budget(3)),
        (20, gone("a")),
        (24, budget(4)),
    ];
    let web = ("shop".to_owned(), "web".to_owned());
    assert_eq!(times(events, 30).replacements, [(web, seconds(4))]);
}

#[test]
fn hooks_that_had_begun_before_or_were_not_finished_took_longer() {
    let mut watch = Watch::default();
    let hooks = [
        ("whole", false),
        ("taken over", true),
        ("failed", false),
        ("unfinished", false),
    ];
    for (number, (policy, has_state)) in (0..).zip(hooks) {
        let step = HookStep {
            policy: policy.to_owned(),
            phase: HookPhase::BeforeDrain,
            subject: Subject::Node,
            state: if has_state { vec![1] } else { Vec::new() },
            leaving: Vec::new(),
        };
        let (id, state_version) = (CommandId(number), None);
        let task = Task::Step { step, state_version };
        watch.command(at(1), &Command { id, task });
    }
    let failed = StepOutcome::Failed {
        message: "no".to_owned(),
        retry_after: None,
    };
    for (number, outcome) in [(0, StepOutcome::Done), (1, StepOutcome::Done), (2, failed)] {
        let answer = Answer::Step {
            outcome,
            state_version: None,
        };
        watch.event(at(5), &Event::Answer(CommandId(number), answer));
    }
    watch.end(at(9));
    let times = watch.times;
    let hook = |policy: &str, took| (policy.to_owned(), HookPhase::BeforeDrain, seconds(took));
    assert_eq!(times.hooks, [hook("whole", 4)]);
    assert_eq!(times.cut_hooks, [hook("taken over", 4), hook("unfinished", 8)]);
}
