//! Deadline, cancel, loss: evictions stop, and our own changes are reverted or marked.

use std::time::Duration;

use crate::harness::{Host, hooks, node, pod, request};
use scupper_engine::{
    Answer, Event, HookPhase, Node, Outcome, Phase, Request, Settings, StepOutcome, Time, Uid, WaitingOn,
};

fn deadline(secs: u64) -> Option<Time> {
    Some(crate::harness::START + Duration::from_secs(secs))
}

fn cancel() -> Event {
    Event::Cancel {
        reason: "the event was deleted".to_owned(),
    }
}

fn cancelled() -> Outcome {
    Outcome::Cancelled {
        reason: "the event was deleted".to_owned(),
    }
}

fn lost() -> Event {
    Event::Lost {
        reason: "the event is SlaExpired".to_owned(),
    }
}

fn exceeded(pods: &[&str]) -> Outcome {
    Outcome::DeadlineExceeded {
        remaining: pods.iter().map(|name| pod(name).id).collect(),
        held_up: None,
    }
}

/// The node as the watch shows it while our cordon stands.
fn ours(host: &Host, version: u64) -> Node {
    let mut checkpoint = host.last_checkpoint();
    checkpoint.own_cordon = true;
    Node {
        unschedulable: true,
        checkpoint: Some(checkpoint),
        resource_version: version.to_string(),
        ..node()
    }
}

#[test]
fn at_the_deadline_requests_stop_and_the_cordon_is_kept() {
    let mut host = Host::new(Request {
        deadline: deadline(60),
        ..request()
    });
    host.begin(&[pod("a"), pod("b")])
        .written("cordon")
        .accepted("evict a")
        .gone(&["a"]);
    host.wait(59_999);
    assert_eq!(host.drain.outcome(), None);
    host.wait(1);
    assert_eq!(host.drain.outcome(), Some(&exceeded(&["b"])));
    host.does("save finished, ours")
        .written("save")
        .wait(600_000)
        .does("")
        .ends(&exceeded(&["b"]));
}

/// What the hook waits for is often only the symptom.
#[test]
fn the_end_names_what_a_hook_has_reported_and_then_what_it_waited_for() {
    let mut host = Host::new(Request {
        policies: vec![hooks("openstack", &[HookPhase::BeforeDrain])],
        deadline: deadline(60),
        ..request()
    });
    host.begin(&[pod("a")]).written("cordon").skip();
    let server = |name: &str, detail: &str| WaitingOn {
        what: format!("server {name}"),
        detail: detail.to_owned(),
        since: None,
    };
    let answer = StepOutcome::Pending {
        state: Vec::new(),
        again_after: Duration::from_secs(600),
        progress: "nova-compute on compute-a is down".to_owned(),
        waiting_for: vec![
            server("d-1", "Nova is preparing its migration"),
            server("d-2", ""),
        ],
    };
    host.stepped("step openstack before-drain", answer).wait(60_000);
    assert_eq!(
        host.drain.outcome().unwrap().to_string(),
        "the deadline passed while policy openstack reported: nova-compute on compute-a is down; waits for server d-1 (Nova \
         is preparing its migration) and 1 more; no pod was asked to leave"
    );
}

#[test]
fn a_task_not_taken_before_the_deadline_is_withdrawn() {
    let mut host = Host::new(Request {
        deadline: deadline(60),
        ..request()
    });
    host.begin(&[pod("a")]).answer(
        "cordon",
        Answer::Written {
            version: "101".to_owned(),
        },
    );
    let now = host.now + Duration::from_secs(60);
    host.drain.handle_timeout(now);
    host.does("save finished, ours");
}

#[test]
fn a_deadline_that_moves_is_heeded() {
    let mut host = Host::new(Request {
        deadline: deadline(60),
        ..request()
    });
    host.begin(&[pod("a")])
        .written("cordon")
        .handle(Event::Deadline(deadline(120)))
        .wait(119_999);
    assert_eq!(host.drain.outcome(), None);
    host.handle(Event::Deadline(deadline(1)));
    assert_eq!(host.drain.outcome(), Some(&exceeded(&["a"])));
}

#[test]
fn a_deadline_in_the_past_ends_at_once_and_changes_nothing() {
    let mut host = Host::new(Request {
        deadline: Some(Time::from_millis(1)),
        ..request()
    });
    host.does("").ends(&exceeded(&[]));
    // No list of pods has arrived, so the drain does not report an empty node.
    assert_eq!(exceeded(&[]).to_string(), "the deadline passed");
}

#[test]
fn a_cancel_lifts_our_cordon() {
    let mut host = Host::new(request());
    host.begin(&[pod("a")])
        .written("cordon")
        .skip()
        .handle(cancel())
        .does("uncordon at 101");
    host.written("uncordon").does("").ends(&cancelled());
}

#[test]
fn a_cancel_waits_for_the_answer_to_a_cordon_in_flight() {
    let mut host = Host::new(request());
    host.begin(&[pod("a")])
        .does("cordon at 100")
        .handle(cancel())
        .does("")
        .written("cordon");
    host.does("uncordon at 101")
        .written("uncordon")
        .ends(&cancelled());
}

#[test]
fn a_cancel_before_anything_was_changed_ends_at_once() {
    let mut host = Host::new(request());
    host.begin(&[pod("a")])
        .handle(cancel())
        .does("")
        .ends(&cancelled());
}

/// The cordon of a process that died right after requesting it.
fn of_a_dead_process() -> Node {
    let mut dead = Host::new(request());
    dead.begin(&[pod("a")]).skip();
    ours(&dead, 101)
}

#[test]
fn a_cancel_before_the_node_is_seen_waits_for_what_a_dead_process_may_have_changed() {
    let mut host = Host::new(request());
    host.handle(Event::Pods(vec![pod("a")])).handle(cancel());
    assert!(host.drain.phase() != Phase::Finished);
    host.wait(4_000).handle(Event::Node(Some(of_a_dead_process())));
    host.does("uncordon at 101")
        .written("uncordon")
        .ends(&cancelled());
}

#[test]
fn a_cancel_before_the_node_is_seen_ends_when_nothing_is_ours_or_nothing_arrives() {
    let foreign = Node {
        unschedulable: true,
        ..node()
    };
    for seen in [Some(node()), Some(foreign), None] {
        let mut host = Host::new(request());
        host.handle(cancel()).does("").handle(Event::Node(seen));
        host.does("").ends(&cancelled());
    }
    let mut host = Host::new(request());
    host.handle(cancel()).wait(4_999).does("");
    assert!(host.drain.phase() != Phase::Finished);
    host.wait(1).does("").ends(&cancelled());
}

#[test]
fn a_cancel_leaves_a_cordon_that_is_not_ours() {
    let mut host = Host::new(request());
    let cordoned = Node {
        unschedulable: true,
        ..node()
    };
    host.begin_with(cordoned, &[pod("a")], &[])
        .written("save")
        .skip()
        .handle(cancel());
    host.does("forget").written("forget").ends(&cancelled());
}

#[test]
fn a_cancel_leaves_a_cordon_that_an_earlier_drain_of_ours_made() {
    let mut first = Host::new(request());
    first.begin(&[]).skip();
    let mut inherited = ours(&first, 200);
    inherited.checkpoint.as_mut().unwrap().drained = true;
    let mut host = Host::new(Request {
        id: "second".to_owned(),
        ..request()
    });
    host.begin_with(inherited, &[pod("a")], &[])
        .does("save holding, ours")
        .written("save")
        .skip();
    host.handle(cancel())
        .does("save finished, ours")
        .written("save")
        .ends(&cancelled());
}

#[test]
fn a_conflicting_uncordon_is_decided_anew() {
    let mut host = Host::new(request());
    host.begin(&[pod("a")]).written("cordon").skip().handle(cancel());
    host.answer("uncordon", Answer::WriteConflict).does("");
    let changed = ours(&host, 110);
    host.handle(Event::Node(Some(changed)))
        .does("uncordon at 110")
        .answer("uncordon", Answer::WriteConflict);
    // Another client lifted it: there is nothing left to do.
    let lifted = Node {
        unschedulable: false,
        resource_version: "120".to_owned(),
        ..ours(&host, 0)
    };
    host.handle(Event::Node(Some(lifted)))
        .does("forget")
        .written("forget")
        .ends(&cancelled());
}

#[test]
fn failures_keep_or_lift_the_cordon_by_the_settings() {
    for (uncordon_on_failure, does) in [(false, "save finished, ours"), (true, "uncordon at 101")] {
        let settings = Settings {
            uncordon_on_failure,
            ..Settings::default()
        };
        let mut host = Host::new(Request {
            settings,
            ..request()
        });
        host.begin(&[pod("a")])
            .written("cordon")
            .skip()
            .handle(lost())
            .does(does);
    }
}

#[test]
fn cancel_hooks_are_abandoned_after_a_while() {
    let policies = vec![hooks("slurm", &[HookPhase::OnCancel])];
    let mut host = Host::new(Request {
        policies,
        ..request()
    });
    host.begin(&[pod("a")]).written("cordon").skip().handle(cancel());
    host.does("step slurm on-cancel node\nsave rolling back, ours")
        .written("save");
    host.wait(14_999)
        .does("")
        .waits("ns/a EvictionRequested")
        .wait(1)
        .does("");
    let saved = ours(&host, 102);
    host.handle(Event::Node(Some(saved))).does("uncordon at 102");
    host.written("uncordon").ends(&cancelled());
}

#[test]
fn a_step_that_runs_is_waited_for_before_its_policy_puts_things_back() {
    let policies = vec![hooks("slurm", &[HookPhase::BeforeDrain, HookPhase::OnCancel])];
    let mut host = Host::new(Request {
        policies,
        ..request()
    });
    host.begin(&[pod("a")])
        .written("cordon")
        .does("step slurm before-drain node");
    host.handle(cancel())
        .does("save rolling back, ours")
        .stepped("step", StepOutcome::Done);
    host.does("step slurm on-cancel node");
}

#[test]
fn hooks_that_ran_before_the_cordon_are_rolled_back() {
    let policies = vec![hooks("slurm", &[HookPhase::BeforeCordon, HookPhase::OnCancel])];
    let mut host = Host::new(Request {
        policies,
        ..request()
    });
    let pending = StepOutcome::Pending {
        state: b"resuming".to_vec(),
        again_after: Duration::from_secs(60),
        progress: String::new(),
        waiting_for: Vec::new(),
    };
    host.begin(&[pod("a")])
        .stepped("step", pending)
        .does("save preparing, not ours")
        .handle(cancel());
    host.does("step slurm on-cancel node")
        .written("save")
        .does("save rolling back, not ours")
        .written("save");
    host.stepped("step", StepOutcome::Done)
        .does("save rolling back, not ours")
        .written("save");
    host.does("forget").written("forget").ends(&cancelled());
}

#[test]
fn a_node_that_cannot_be_written_does_not_keep_the_drain_from_ending() {
    let unavailable = || Answer::Unavailable {
        message: "connection refused".to_owned(),
    };
    let mut host = Host::new(Request {
        deadline: deadline(60),
        ..request()
    });
    host.begin(&[pod("a")]).written("cordon").wait(60_000).skip();
    host.answer("save", unavailable())
        .wait(14_999)
        .skip()
        .answer("save", unavailable());
    assert_eq!(host.drain.phase(), Phase::RollingBack);
    host.wait(1).ends(&exceeded(&["a"]));
}

#[test]
fn a_cordon_that_is_forbidden_fails_the_drain() {
    let mut host = Host::new(request());
    host.begin(&[pod("a")]).answer(
        "cordon",
        Answer::Rejected {
            message: "may not patch nodes".to_owned(),
        },
    );
    host.does("").ends(&Outcome::Failed {
        message: "may not patch nodes".to_owned(),
    });
}

#[test]
fn a_missing_or_recreated_node_ends_the_drain() {
    let mut host = Host::new(request());
    host.handle(Event::Node(None)).ends(&Outcome::Failed {
        message: "there is no node node-1".to_owned(),
    });
    let anew = Node {
        uid: Uid::new("anew"),
        ..node()
    };
    for event in [Event::Node(None), Event::Node(Some(anew))] {
        let mut host = Host::new(request());
        host.begin(&[pod("a")])
            .written("cordon")
            .skip()
            .handle(event)
            .does("");
        host.ends(&Outcome::Lost {
            reason: "node node-1 was deleted or made anew".to_owned(),
        });
    }
}

#[test]
fn a_write_that_finds_another_node_is_the_last_one() {
    let lost = Outcome::Lost {
        reason: "node node-1 was deleted or made anew".to_owned(),
    };
    let mut host = Host::new(request());
    host.begin(&[pod("a")]).answer("cordon", Answer::NodeGone);
    host.does("").ends(&lost);
    // Also as the last message of a drain that has ended otherwise.
    let mut host = Host::new(request());
    host.begin(&[pod("a")]).written("cordon").skip();
    host.handle(cancel()).does("uncordon at 101");
    host.answer("uncordon", Answer::NodeGone).does("");
    assert_eq!(host.drain.phase(), Phase::Finished);
    assert_eq!(host.drain.outcome().map(Outcome::name), Some("Cancelled"));
}

#[test]
fn the_first_outcome_stands_and_no_command_follows_the_end() {
    let mut host = Host::new(request());
    host.begin(&[pod("a")])
        .written("cordon")
        .skip()
        .handle(lost())
        .handle(cancel());
    host.does("save finished, ours").written("save");
    host.ends(&Outcome::Lost {
        reason: "the event is SlaExpired".to_owned(),
    });
    assert_eq!(host.drain.phase(), Phase::Finished);
    host.handle(Event::PodApplied(pod("b")))
        .handle(cancel())
        .wait(600_000)
        .does("")
        .reports("");
}

/// The policies' changes follow the cordon.
#[test]
fn policies_learn_whether_the_cordon_stays() {
    for (uncordon_on_failure, end, held) in [
        (false, lost(), true),
        (true, lost(), false),
        (false, cancel(), false),
        (true, cancel(), false),
    ] {
        let settings = Settings {
            uncordon_on_failure,
            ..request().settings
        };
        let mut host = Host::new(Request {
            settings,
            policies: vec![hooks("slurm", &[HookPhase::OnCancel])],
            ..request()
        });
        host.begin(&[pod("a")]).written("cordon").skip();
        assert!(!host.drain.held(), "only once it has ended");
        host.handle(end).skip();
        assert!(host.asks("step slurm on-cancel"));
        assert_eq!(host.drain.held(), held);
        host.stepped("step slurm on-cancel", StepOutcome::Done).skip();
        while host.asks("save rolling back") {
            host.written("save rolling back");
        }
        host.handle(Event::Node(Some(ours(&host, 110))));
        assert_eq!(host.asks("save finished, ours"), held);
        assert_eq!(host.asks("uncordon"), !held);
        if held {
            assert_eq!(host.last_checkpoint().held, Some(true));
        }
    }
}
