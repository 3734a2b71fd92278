//! A new process resumes an old one's drain.

use std::time::Duration;

use crate::harness::{Host, hooks, node, pod, request};
use scupper_engine::{
    Checkpoint, Event, HookPhase, Node, Outcome, Phase, Pod, Request, Settings, StepOutcome, Subject, Time,
    Uid,
};

const PHASES: [HookPhase; 4] = [
    HookPhase::BeforeCordon,
    HookPhase::BeforeDrain,
    HookPhase::AfterDrain,
    HookPhase::OnCancel,
];

fn with_hooks() -> Request {
    Request {
        policies: vec![hooks("slurm", &PHASES)],
        ..request()
    }
}

/// The checkpoint of an old process in this phase.
fn checkpoint_in(phase: Phase, own_cordon: bool) -> Checkpoint {
    let mut host = Host::new(request());
    host.begin(&[]).skip();
    Checkpoint {
        phase,
        own_cordon,
        ..host.last_checkpoint()
    }
}

fn done(mut checkpoint: Checkpoint, phases: &[HookPhase]) -> Checkpoint {
    checkpoint.done = phases
        .iter()
        .map(|phase| ("slurm".to_owned(), *phase, Subject::Node))
        .collect();
    checkpoint
}

fn cordoned(checkpoint: &Checkpoint) -> Node {
    Node {
        unschedulable: true,
        checkpoint: Some(checkpoint.clone()),
        ..node()
    }
}

fn taken_up(request: Request, checkpoint: &Checkpoint, pods: &[Pod]) -> Host {
    let mut host = Host::resume(request, checkpoint.clone());
    let node = Node {
        unschedulable: checkpoint.own_cordon,
        ..cordoned(checkpoint)
    };
    host.begin_with(node, pods, &[]);
    host
}

#[test]
fn a_drain_continues_where_it_was() {
    use HookPhase::{AfterDrain, BeforeCordon, BeforeDrain};
    let rows: &[(Phase, bool, &[HookPhase], &str)] = &[
        (Phase::Preparing, false, &[], "step slurm before-cordon node"),
        (Phase::Preparing, false, &[BeforeCordon], "cordon at 100"),
        (
            Phase::Holding,
            true,
            &[BeforeCordon],
            "step slurm before-drain node",
        ),
        (Phase::Holding, true, &[BeforeCordon, BeforeDrain], "evict a"),
        (Phase::Evicting, true, &[BeforeCordon, BeforeDrain], "evict a"),
        (
            Phase::Verifying,
            true,
            &[BeforeCordon, BeforeDrain, AfterDrain],
            "evict a",
        ),
        (
            Phase::Finished,
            true,
            &[BeforeCordon, BeforeDrain, AfterDrain],
            "evict a",
        ),
    ];
    for (phase, own_cordon, through, does) in rows {
        let checkpoint = done(checkpoint_in(*phase, *own_cordon), through);
        taken_up(with_hooks(), &checkpoint, &[pod("a")]).does(does);
    }
}

#[test]
fn a_finished_drain_is_verified_again() {
    let checkpoint = checkpoint_in(Phase::Finished, true);
    taken_up(request(), &checkpoint, &[])
        .does("list-pods")
        .listed(&[])
        .does("save finished, ours");
}

#[test]
fn a_hook_continues_with_its_state() {
    let mut checkpoint = done(checkpoint_in(Phase::Holding, true), &[HookPhase::BeforeCordon]);
    checkpoint.hooks.push(scupper_engine::SavedHook {
        policy: "slurm".to_owned(),
        phase: HookPhase::BeforeDrain,
        subject: Subject::Node,
        state: b"job 7".to_vec(),
        state_version: Some(2),
        started: crate::harness::START,
    });
    let mut host = taken_up(with_hooks(), &checkpoint, &[pod("a")]);
    host.does("step slurm before-drain node after job 7 of version 2");
    host.stepped("step", StepOutcome::Done)
        .does("save holding, ours")
        .written("save")
        .does("evict a");
}

#[test]
fn a_cordon_lifted_in_between_no_longer_counts_as_ours() {
    let checkpoint = checkpoint_in(Phase::Evicting, true);
    let mut host = Host::resume(request(), checkpoint.clone());
    let lifted = Node {
        unschedulable: false,
        ..cordoned(&checkpoint)
    };
    host.begin_with(lifted, &[pod("a")], &[])
        .does("save evicting, not ours")
        .waits("ns/a NodeUncordoned");
}

#[test]
fn a_pod_that_may_not_be_evicted_is_awaited_once_the_node_is_cordoned() {
    let bare = Pod {
        controller: None,
        ..pod("bare")
    };
    let checkpoint = checkpoint_in(Phase::Evicting, true);
    let mut host = taken_up(request(), &checkpoint, &[bare.clone(), pod("a")]);
    host.does("evict a")
        .waits("ns/a EvictionRequested\nns/bare Refused");
    let says =
        "the plan does not allow its eviction: Pods that declare no controller (use --force to override)";
    let waiting = host.drain.waiting();
    assert!(
        waiting.iter().any(|(_, reason)| reason.to_string() == says),
        "{waiting:?}"
    );
    host.accepted("evict a")
        .gone(&["a"])
        .does("")
        .gone(&["bare"])
        .does("list-pods");
    // Before the cordon it blocks, and the drain is rolled back.
    let early = done(checkpoint_in(Phase::Preparing, false), &[HookPhase::BeforeCordon]);
    let mut host = taken_up(with_hooks(), &early, &[bare]);
    host.does("step slurm on-cancel node\nsave rolling back, not ours");
    assert_eq!(host.drain.outcome().map(Outcome::name), Some("Blocked"));
}

/// Like one that comes while a process runs. A process that continues cannot see when it came, only how young it is.
#[test]
fn a_pod_that_came_in_spite_of_the_cordon_while_no_process_ran_does_not_hold_the_drain() {
    let mut first = Host::new(request());
    first.begin(&[pod("a")]).written("cordon").skip();
    let saved = first.last_checkpoint();
    let debug = |created: Time| Pod {
        controller: None,
        cordon_toleration: Some("operator: Exists".to_owned()),
        created,
        ..pod("debug")
    };
    let mut host = taken_up(request(), &saved, &[pod("a"), debug(Time::from_millis(1))]);
    host.does("evict a").wait(1_000);
    host.waits("ns/a EvictionRequested\nns/debug ArrivedDuringDrain");
    host.accepted("evict a").written("save evicting").gone(&["a"]);
    host.does("list-pods");
    host.listed(&[debug(Time::from_millis(1))]).written("save");
    host.ends(&Outcome::Drained);
    // One that the earlier process knew has lost its controller since.
    let mut host = taken_up(request(), &saved, &[pod("a"), debug(Time::from_millis(0))]);
    host.does("evict a")
        .wait(1_000)
        .waits("ns/a EvictionRequested\nns/debug Refused");
}

#[test]
fn a_rollback_continues() {
    let lost = Outcome::Lost {
        reason: "the driver restarted while rolling back".to_owned(),
    };
    let checkpoint = checkpoint_in(Phase::RollingBack, true);
    let mut host = Host::resume(with_hooks(), checkpoint.clone());
    assert_eq!(host.drain.outcome(), Some(&lost));
    host.does("");
    host.handle(Event::Node(Some(cordoned(&checkpoint))))
        .does("step slurm on-cancel node");
    host.stepped("step", StepOutcome::Done)
        .does("save rolling back, ours")
        .written("save");
    host.does("save finished, ours").written("save").ends(&lost);
}

/// The checkpoint of a successful drain, hooks included.
fn drained() -> Checkpoint {
    use HookPhase::{AfterDrain, BeforeCordon, BeforeDrain};
    Checkpoint {
        drained: true,
        ended_well: true,
        ..done(
            checkpoint_in(Phase::Finished, true),
            &[BeforeCordon, BeforeDrain, AfterDrain],
        )
    }
}

fn orders() -> [Event; 3] {
    let reason = "the event is over".to_owned();
    [
        Event::Lost {
            reason: reason.clone(),
        },
        Event::Cancel { reason },
        Event::Deadline(Some(crate::harness::START)),
    ]
}

#[test]
fn a_successful_drain_is_never_rolled_back() {
    for order in orders() {
        // Either the order or the node comes first.
        for first in [true, false] {
            let mut host = Host::resume(with_hooks(), drained());
            if first {
                host.handle(order.clone());
            }
            host.handle(Event::Node(Some(cordoned(&drained()))));
            if !first {
                host.handle(order.clone());
            }
            host.does("save finished, ours").written("save");
            assert_eq!(host.last_checkpoint().done, drained().done, "{order:?}");
            host.ends(&Outcome::Drained);
        }
    }
}

/// Pods have arrived since, so it does not report `Drained`; its changes still stay.
#[test]
fn a_resumed_successful_drain_is_not_rolled_back_either() {
    for order in orders() {
        let mut host = taken_up(with_hooks(), &drained(), &[pod("a")]);
        host.does("evict a").handle(order.clone());
        let text = format!("{order:?}");
        host.does("save finished, ours").written("save");
        let saved = host.last_checkpoint();
        assert!(saved.ended_well && saved.own_cordon, "{text}");
        assert_eq!(saved.done, drained().done, "{text}");
        assert_eq!(host.drain.phase(), Phase::Finished, "{text}");
        assert_ne!(host.drain.outcome(), Some(&Outcome::Drained), "{text}");
    }
}

#[test]
fn a_failed_drain_that_was_rolled_back_is_not_rolled_back_again() {
    let reason = "the event is over".to_owned();
    let failed = checkpoint_in(Phase::Finished, true);
    let mut host = Host::resume(with_hooks(), failed.clone());
    host.handle(Event::Lost {
        reason: reason.clone(),
    })
    .handle(Event::Node(Some(cordoned(&failed))))
    .does("save finished, ours")
    .written("save")
    .ends(&Outcome::Lost { reason });
}

/// Its hooks have reverted their changes; a cancel also lifts the cordon.
#[test]
fn cancelling_a_failed_drain_lifts_the_cordon_that_it_left() {
    let reason = "stopped by scupper cancel".to_owned();
    let failed = checkpoint_in(Phase::Finished, true);
    let mut host = Host::resume(with_hooks(), failed.clone());
    host.handle(Event::Cancel {
        reason: reason.clone(),
    })
    .handle(Event::Node(Some(cordoned(&failed))))
    .does("uncordon at 100")
    .written("uncordon")
    .ends(&Outcome::Cancelled { reason });
}

/// The watch shows the last write.
fn shown(host: &Host) -> Event {
    Event::Node(Some(Node {
        resource_version: "200".to_owned(),
        ..cordoned(&host.last_checkpoint())
    }))
}

fn giving_back(uncordon_on_failure: bool) -> Request {
    let settings = Settings {
        uncordon_on_failure,
        ..request().settings
    };
    Request {
        settings,
        ..with_hooks()
    }
}

/// A configuration change in the middle changes neither the hooks' input nor the fate of the cordon.
#[test]
fn a_resumed_rollback_reports_the_same_cordon_to_hooks() {
    for (held, configured, last) in [
        (Some(true), true, "save finished, ours"),
        (Some(false), false, "uncordon at 200"),
        (None, true, "uncordon at 200"),
        (None, false, "save finished, ours"),
    ] {
        let failed = Checkpoint {
            held,
            ..checkpoint_in(Phase::RollingBack, true)
        };
        let mut host = taken_up(giving_back(configured), &failed, &[]);
        host.does("step slurm on-cancel node");
        assert_eq!(host.drain.held(), held.unwrap_or(!configured));
        host.stepped("step", StepOutcome::Done)
            .written("save rolling back");
        host.handle(shown(&host)).does(last);
    }
}

/// Its policies have kept their changes; a cancel reverts these and the cordon.
#[test]
fn cancelling_a_held_drain_lets_policies_undo_their_changes() {
    let reason = "stopped by scupper cancel".to_owned();
    let failed = Checkpoint {
        held: Some(true),
        ..checkpoint_in(Phase::Finished, true)
    };
    let mut host = Host::resume(with_hooks(), failed.clone());
    host.handle(Event::Cancel {
        reason: reason.clone(),
    })
    .handle(Event::Node(Some(cordoned(&failed))))
    .skip();
    assert!(!host.drain.held());
    host.stepped("step slurm on-cancel", StepOutcome::Done);
    while host.asks("save rolling back") {
        host.written("save rolling back");
    }
    host.handle(shown(&host))
        .does("uncordon at 200")
        .written("uncordon")
        .ends(&Outcome::Cancelled { reason });
}

/// The cancel hook undoes what this drain did. What an earlier drain had left stays in the record, after a restart as well.
#[test]
fn cancelling_a_held_drain_does_not_undo_what_an_earlier_one_has_left() {
    for left_before in [&[][..], &["slurm"]] {
        let failed = Checkpoint {
            held: Some(true),
            to_undo: std::iter::once(("slurm".to_owned(), String::new())).collect(),
            left_before: left_before.iter().map(|&policy| policy.to_owned()).collect(),
            ..checkpoint_in(Phase::Finished, true)
        };
        let mut host = Host::resume(with_hooks(), failed.clone());
        host.handle(Event::Cancel {
            reason: "withdrawn".to_owned(),
        })
        .handle(Event::Node(Some(cordoned(&failed))))
        .skip();
        host.stepped("step slurm on-cancel", StepOutcome::Done);
        let left: Vec<String> = host.drain.to_undo().into_keys().collect();
        assert_eq!(left, left_before);
    }
}

#[test]
fn pods_evicted_under_an_earlier_process_count() {
    let pods = ["a", "b", "c"].map(pod);
    let mut first = Host::new(request());
    first.begin(&pods).written("cordon").skip();
    let saved = first.last_checkpoint();
    assert_eq!((saved.counts.leaving, saved.counts.totals.gone), (3, 0));
    // Two pods have gone without a write, the last one goes under the next process, and a later one counts for that
    // process.
    let late = Pod {
        created: first.now + Duration::from_secs(60),
        ..pod("late")
    };
    let mut host = taken_up(request(), &saved, &[pod("c"), late]);
    host.wait(1_000);
    host.skip().gone(&["c", "late"]).listed(&[]).written("save");
    let finished = std::iter::from_fn(|| host.next_notice()).last();
    let Some(scupper_engine::Notice::Finished { outcome, summary }) = finished else {
        panic!("it has not ended: {finished:?}")
    };
    assert_eq!((outcome, summary.totals.gone), (Outcome::Drained, 4));
}

/// The checkpoint of a process that dies during the rollback of a cancelled drain.
fn left_by_a_cancel(reason: &str) -> Checkpoint {
    let holding = done(checkpoint_in(Phase::Holding, true), &[HookPhase::BeforeCordon]);
    let mut host = taken_up(with_hooks(), &holding, &[pod("a")]);
    host.does("step slurm before-drain node").handle(Event::Cancel {
        reason: reason.to_owned(),
    });
    host.does("save rolling back, ours");
    host.last_checkpoint()
}

#[test]
fn a_cancel_continues() {
    let reason = "nobody wants it any more".to_owned();
    let saved = left_by_a_cancel(&reason);
    assert_eq!(saved.cancelled.as_ref(), Some(&reason));
    let mut host = Host::resume(with_hooks(), saved.clone());
    let outcome = Outcome::Cancelled { reason };
    assert_eq!(host.drain.outcome(), Some(&outcome));
    host.handle(Event::Node(Some(cordoned(&saved))))
        .does("step slurm on-cancel node")
        .stepped("step", StepOutcome::Done)
        .does("save rolling back, ours")
        .written("save");
    // A cordon of its own is also lifted.
    let seen = Node {
        resource_version: "102".to_owned(),
        ..cordoned(&host.last_checkpoint())
    };
    host.handle(Event::Node(Some(seen)))
        .skip()
        .written("uncordon")
        .ends(&outcome);
}

#[test]
fn a_resumed_cancel_leaves_the_cordon_of_an_earlier_drain() {
    let saved = Checkpoint {
        inherited: true,
        ..left_by_a_cancel("no")
    };
    let mut host = Host::resume(with_hooks(), saved.clone());
    host.handle(Event::Node(Some(cordoned(&saved))))
        .does("step slurm on-cancel node")
        .stepped("step", StepOutcome::Done)
        .does("save rolling back, ours")
        .written("save");
    host.does("save finished, ours").written("save");
    assert_eq!(host.drain.outcome().map(Outcome::name), Some("Cancelled"));
}

#[test]
fn a_checkpoint_of_another_request_is_ignored() {
    let mut checkpoint = checkpoint_in(Phase::Evicting, false);
    checkpoint.id = "another".to_owned();
    taken_up(request(), &checkpoint, &[pod("a")]).does("cordon at 100");
}

#[test]
fn a_drain_is_not_resumed_on_another_node_of_the_name() {
    let checkpoint = checkpoint_in(Phase::Evicting, true);
    assert_eq!(checkpoint.node, node().uid);
    let anew = Node {
        uid: Uid::new("anew"),
        unschedulable: true,
        ..node()
    };
    let mut host = Host::resume(request(), checkpoint);
    host.begin_with(anew, &[pod("a")], &[]).does("");
    host.ends(&Outcome::Lost {
        reason: "node node-1 was deleted or made anew".to_owned(),
    });
}

#[test]
fn planners_that_fail_after_the_cordon_are_asked_again() {
    let mut planning = request();
    planning.policies = vec![crate::harness::planner("p")];
    let checkpoint = checkpoint_in(Phase::Evicting, true);
    let mut host = taken_up(planning, &checkpoint, &[pod("a")]);
    let failed = scupper_engine::PlanAnswer::Failed {
        message: "trapped".to_owned(),
        retry_after: None,
    };
    host.does("plan p")
        .answer("plan p", scupper_engine::Answer::Plan(failed))
        .does("");
    host.wait(5_000)
        .does("plan p")
        .planned("p", |_| {})
        .does("evict a");
}

#[test]
fn a_cordon_that_was_lifted_while_no_process_ran_is_not_ours_when_it_comes_back() {
    let saved = checkpoint_in(Phase::Holding, true);
    let lifted = Node {
        unschedulable: false,
        ..cordoned(&saved)
    };
    let again = Node {
        resource_version: "200".to_owned(),
        ..cordoned(&saved)
    };
    let mut host = Host::resume(request(), saved);
    host.handle(Event::Node(Some(lifted)))
        .handle(Event::Node(Some(again)))
        .handle(Event::Cancel {
            reason: "no".to_owned(),
        })
        .does("forget");
}

#[test]
fn a_cordon_of_an_earlier_drain_stays_although_the_mark_was_written_late() {
    let saved = Checkpoint {
        inherited: true,
        ..checkpoint_in(Phase::Holding, true)
    };
    let mut host = Host::new(request());
    host.begin_with(cordoned(&saved), &[], &[]).skip();
    host.handle(Event::Cancel {
        reason: "no".to_owned(),
    });
    assert!(!host.asks("uncordon"), "the earlier drain's cordon is lifted");
}
