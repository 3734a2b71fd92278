//! Force at the deadline: what still stands is deleted shortly before it.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::harness::{Host, START, budget, hooks, node, planner, pod, request};
use scupper_engine::{
    Answer, Deletion, Event, EvictAnswer, ForceAtDeadline, ForcedPods, HookPhase, Node, Outcome, Pod, PodRef,
    PolicyInfo, Reason, Request, Settings, StepOutcome, Uid, Verdict, Wave,
};

/// A drain with a deadline in ten minutes, which deletes these pods from one minute before that.
fn forcing(pods: ForcedPods, policies: Vec<PolicyInfo>) -> Request {
    Request {
        deadline: Some(START + Duration::from_secs(600)),
        settings: Settings {
            at_deadline: Some(ForceAtDeadline {
                pods,
                grace_seconds: 20,
                within: Duration::from_secs(60),
            }),
            ..Settings::default()
        },
        policies,
        ..request()
    }
}

fn in_namespaces(names: &[&str]) -> ForcedPods {
    ForcedPods {
        namespaces: Some(names.iter().map(|name| (*name).to_owned()).collect()),
        ..ForcedPods::default()
    }
}

/// A drain of these pods under a budget that never opens, on a node that another client cordoned.
fn held_by_a_budget(request: Request, pods: &[Pod]) -> Host {
    let cordoned = Node {
        unschedulable: true,
        ..node()
    };
    let mut host = Host::new(request);
    host.begin_with(cordoned, pods, &[budget(0)])
        .written("save holding");
    // Where it is to force pods.
    if host.asks("save evicting") {
        host.written("save evicting");
    }
    host
}

fn refused() -> Answer {
    let message = "The disruption budget pdb needs 2 healthy pods and has 2 currently".to_owned();
    Answer::Evict(EvictAnswer::BudgetExhausted {
        budget: "pdb".to_owned(),
        message,
    })
}

/// Advances to this second. Evictions against the budget's status are refused, as the API server would.
fn until(host: &mut Host, second: u64) {
    let end = START + Duration::from_secs(second);
    while host.now < end {
        host.wait(1000).skip();
        while host.asks("evict") {
            host.answer("evict", refused());
        }
    }
}

fn elsewhere(pod: Pod) -> Pod {
    Pod {
        id: PodRef {
            namespace: "db".to_owned(),
            ..pod.id
        },
        ..pod
    }
}

fn terminating(pod: Pod, since: u64, grace: u64) -> Event {
    let deletion = Deletion {
        at: START + Duration::from_secs(since + grace),
        grace_seconds: grace,
    };
    Event::PodApplied(Pod {
        deletion: Some(deletion),
        ..pod
    })
}

fn wave(name: &str, pods: &[&str]) -> Wave {
    Wave {
        name: name.to_owned(),
        pods: pods.iter().map(|pod| Uid::new(*pod)).collect(),
        max_parallel: None,
        timeout: None,
        max_grace_seconds: None,
        policy: String::new(),
    }
}

#[test]
fn a_pod_behind_a_budget_is_deleted_before_the_deadline_and_one_of_another_namespace_is_not() {
    let pods = [pod("a"), elsewhere(pod("b"))];
    let mut host = held_by_a_budget(forcing(in_namespaces(&["ns"]), vec![]), &pods);
    host.answer("evict b", refused());
    until(&mut host, 539);
    host.waits("ns/a BudgetExhausted\ndb/b BudgetExhausted").notices();
    host.wait(1000).does("delete a grace 20").accepted("delete a");
    host.reports("a forced with 20s: BudgetExhausted\na waits: Terminating");
    host.handle(terminating(pod("a"), 540, 20)).gone(&["a"]);
    until(&mut host, 601);
    assert_eq!(
        host.drain.outcome(),
        Some(&Outcome::DeadlineExceeded {
            remaining: vec![elsewhere(pod("b")).id],
            held_up: None
        })
    );
    host.written("forget");
    assert_eq!(host.summary().forced, [pod("a").id]);
}

#[test]
fn without_the_setting_or_without_a_deadline_nothing_is_deleted() {
    let all = forcing(ForcedPods::default(), vec![]);
    let endless = Request {
        deadline: None,
        ..all.clone()
    };
    let patient = Request {
        settings: Settings::default(),
        ..all
    };
    for request in [endless, patient] {
        let mut host = held_by_a_budget(request, &[pod("a")]);
        until(&mut host, 599);
        host.waits("ns/a BudgetExhausted");
    }
}

#[test]
fn a_deadline_that_moves_takes_the_force_with_it() {
    let mut host = held_by_a_budget(forcing(ForcedPods::default(), vec![]), &[pod("a")]);
    until(&mut host, 500);
    host.handle(Event::Deadline(Some(START + Duration::from_secs(1200))));
    until(&mut host, 1139);
    // Another order takes back a deletion that has not gone out.
    host.wait(1000)
        .handle(Event::Deadline(Some(START + Duration::from_secs(1300))))
        .does("");
    until(&mut host, 1239);
    host.wait(1000).does("delete a grace 20");
}

#[test]
fn a_pod_with_a_shorter_grace_period_keeps_it() {
    let own = |name, grace_seconds| Pod {
        grace_seconds,
        ..pod(name)
    };
    let pods = [own("long", 3600), own("short", 5), own("none", 0)];
    let mut host = held_by_a_budget(forcing(ForcedPods::default(), vec![]), &pods);
    until(&mut host, 539);
    host.wait(1000)
        .does("delete long grace 20\ndelete none grace 1\ndelete short grace 5");
}

#[test]
fn a_deletion_that_failed_is_repeated_with_the_time_that_is_left() {
    let long = Pod {
        grace_seconds: 3600,
        ..pod("a")
    };
    let mut host = held_by_a_budget(forcing(ForcedPods::default(), vec![]), &[long]);
    until(&mut host, 539);
    host.wait(1000).does("delete a grace 20");
    let forbidden = || {
        let message = "pods is forbidden".to_owned();
        Answer::Evict(EvictAnswer::Forbidden { message })
    };
    let mut grace = Vec::new();
    while host.drain.outcome().is_none() {
        if host.asks("delete a") {
            host.answer("delete a", forbidden());
        }
        host.wait(1000);
        while let Some(command) = host.next_command() {
            if let scupper_engine::Task::Delete { grace_seconds, .. } = command.task {
                grace.extend(grace_seconds);
                host.handle(Event::Answer(command.id, forbidden()));
            }
        }
    }
    assert!(
        !grace.is_empty() && grace.is_sorted_by(|one, next| one >= next),
        "{grace:?}"
    );
}

#[test]
fn pods_of_later_waves_are_deleted_but_the_hook_of_their_wave_comes_first() {
    let policy = PolicyInfo {
        phases: vec![HookPhase::BeforeWave],
        ..planner("waves")
    };
    let mut host = Host::new(forcing(in_namespaces(&["ns"]), vec![policy]));
    host.begin_with(node(), &[elsewhere(pod("slow")), pod("b")], &[])
        .planned("waves", |plan| {
            plan.waves = vec![wave("first", &["slow"]), wave("second", &["b"])];
        })
        .written("cordon")
        .written("save evicting")
        .stepped("step waves before-wave wave first", StepOutcome::Done)
        .written("save")
        .accepted("evict slow");
    until(&mut host, 539);
    host.waits("ns/b WaveNotStarted\ndb/slow Terminating");
    host.wait(1000).does("step waves before-wave wave second");
    host.waits("ns/b HookRunning\ndb/slow Terminating");
    host.stepped("step waves before-wave wave second", StepOutcome::Done)
        .written("save")
        .does("delete b grace 20");
}

#[test]
fn a_pod_in_its_hook_is_not_deleted_before_the_hook_has_finished() {
    let slurm = hooks("slurm", &[HookPhase::BeforeEvict]);
    let mut host = Host::new(forcing(ForcedPods::default(), vec![slurm]));
    host.begin(&[pod("a")]).written("cordon");
    host.does("step slurm before-evict pod a\nsave evicting, ours")
        .written("save evicting");
    until(&mut host, 570);
    host.does("").waits("ns/a HookRunning");
    host.stepped("step slurm before-evict", StepOutcome::Done)
        .written("save")
        .does("delete a grace 20");
}

#[test]
fn a_grace_period_that_is_too_long_is_shortened_and_one_that_ends_in_time_is_not() {
    let own = |name, grace_seconds| Pod {
        grace_seconds,
        ..pod(name)
    };
    let mut host = Host::new(forcing(ForcedPods::default(), vec![]));
    host.begin(&[own("long", 3600), own("fine", 500)])
        .written("cordon")
        .accepted("evict long")
        .accepted("evict fine");
    host.handle(terminating(own("long", 3600), 0, 3600))
        .handle(terminating(own("fine", 500), 60, 500));
    until(&mut host, 539);
    host.notices();
    host.wait(1000)
        .does("delete long grace 20")
        .accepted("delete long");
    host.reports("long forced with 20s: Terminating");
    // The API server counts from the first deletion, the kubelet from now.
    host.handle(terminating(own("long", 3600), 0, 20)).does("");
    let waiting = host.drain.waiting();
    let until = waiting.iter().find(|(pod, _)| pod.name == "long");
    assert!(
        matches!(until, Some((_, Reason::Terminating { until })) if *until == host.now + Duration::from_secs(20)),
        "{waiting:?}"
    );
    host.wait(30_000).does("");
}

#[test]
fn pods_that_may_finish_by_themselves_are_deleted_only_with_the_operators_word() {
    for (await_completion, deleted) in [(false, ""), (true, "delete a grace 20")] {
        let pods = ForcedPods {
            await_completion,
            ..ForcedPods::default()
        };
        let mut host = Host::new(forcing(pods, vec![planner("jobs")]));
        host.begin(&[pod("a")])
            .planned("jobs", |plan| {
                plan.decisions[0].verdict = Verdict::AwaitCompletion
            })
            .written("cordon")
            .written("save evicting")
            .does("");
        host.wait(539_000).does("").waits("ns/a AwaitingCompletion");
        host.wait(1000).does(deleted);
    }
}

#[test]
fn an_answer_that_was_lost_is_reported_once_the_pod_is_seen_terminating() {
    let mut host = held_by_a_budget(forcing(ForcedPods::default(), vec![]), &[pod("a"), pod("b")]);
    until(&mut host, 540);
    let message = "timeout".to_owned();
    for name in ["delete a", "delete b"] {
        let message = message.clone();
        host.answer(name, Answer::Evict(EvictAnswer::Unreachable { message }));
    }
    host.notices();
    host.handle(terminating(pod("a"), 540, 20));
    host.reports("a forced with 20s: BudgetExhausted\na waits: Terminating");
    host.gone(&["b"])
        .reports("b forced with 20s: BudgetExhausted\nb gone, 1 left");
    host.gone(&["a"]).listed(&[]).written("forget");
    assert_eq!(host.summary().forced, [pod("a").id, pod("b").id]);
}

#[test]
fn the_drivers_own_pod_is_still_the_last_one() {
    let own = pod("own");
    let mut request = forcing(ForcedPods::default(), vec![planner("own")]);
    request.settings.own_pod = Some(own.id.clone());
    let mut host = Host::new(request);
    let cordoned = Node {
        unschedulable: true,
        ..node()
    };
    host.begin_with(cordoned, &[pod("a"), own], &[budget(0)])
        .planned("own", |plan| {
            for decision in &mut plan.decisions {
                decision.verdict = Verdict::Evict;
            }
            plan.waves = vec![wave("pods", &["a"]), wave("own", &["own"])];
        })
        .written("save");
    until(&mut host, 539);
    host.wait(1000).does("delete a grace 20").accepted("delete a");
    host.gone(&["a"]).does("delete own grace 20");
}

#[test]
fn what_a_setting_covers() {
    let low = pod("a");
    let high = Pod {
        priority: 1000,
        ..elsewhere(pod("b"))
    };
    let finished = Pod {
        phase: crate::harness::PodPhase::Succeeded,
        ..pod("c")
    };
    let below = ForcedPods {
        priority_below: Some(1000),
        ..ForcedPods::default()
    };
    let both = ForcedPods {
        namespaces: Some(BTreeSet::from(["db".to_owned(), "shop".to_owned()])),
        ..below.clone()
    };
    let (all, evict) = (ForcedPods::default(), Verdict::Evict);
    let rows = [
        (&all, &low, evict, true),
        (&all, &low, Verdict::Delete, true),
        (&all, &low, Verdict::Keep, false),
        (&all, &low, Verdict::Refuse, false),
        (&all, &low, Verdict::AwaitCompletion, false),
        (&all, &finished, Verdict::AwaitCompletion, true),
        (&below, &low, evict, true),
        (&below, &high, evict, false),
        (&both, &low, evict, false),
        (&both, &high, evict, false),
    ];
    for (pods, pod, verdict, covered) in rows {
        assert_eq!(
            pods.covers(pod, verdict),
            covered,
            "{pods:?} {} {verdict:?}",
            pod.id
        );
    }
    assert_eq!(all.to_string(), "");
    assert_eq!(below.to_string(), "with a priority below 1000");
    assert_eq!(both.to_string(), "in db, shop with a priority below 1000");
}
