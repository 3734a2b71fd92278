//! A command cordons several nodes before the first of them is drained. For the drain of each, that cordon is not there
//! until it comes to its own; whatever ends it before lifts it.

use crate::harness::{Host, hooks, node, pod, request};
use scupper_engine::{Checkpoint, Event, HookPhase, Node, Outcome, Phase, Request, StepOutcome};

/// What the command leaves on the node.
fn ahead() -> Checkpoint {
    let mut host = Host::new(request());
    host.begin(&[]).skip();
    Checkpoint {
        id: "command-1".to_owned(),
        trigger: "command".to_owned(),
        phase: Phase::Finished,
        own_cordon: true,
        ahead: true,
        ..host.last_checkpoint()
    }
}

fn cordoned(mark: Checkpoint) -> Node {
    Node {
        unschedulable: true,
        checkpoint: Some(mark),
        ..node()
    }
}

fn cancel() -> Event {
    Event::Cancel {
        reason: "stopped".to_owned(),
    }
}

fn with_hooks() -> Request {
    Request {
        policies: vec![hooks("slurm", &[HookPhase::BeforeCordon])],
        ..request()
    }
}

#[test]
fn the_drain_makes_it_its_own_after_its_hooks_before_the_cordon() {
    let mut host = Host::new(with_hooks());
    host.begin_with(cordoned(ahead()), &[pod("a")], &[])
        .does("step slurm before-cordon node");
    host.stepped("step", StepOutcome::Done)
        .does("save holding, ours")
        .written("save")
        .does("evict a");
    let saved = host.last_checkpoint();
    assert!(!saved.ahead && !saved.inherited && saved.own_cordon, "{saved:?}");
    host.shows_the_mark().handle(cancel()).does("uncordon at 101");
}

#[test]
fn a_process_that_continues_before_the_cordon_still_knows_it() {
    let mut host = Host::new(with_hooks());
    host.begin_with(cordoned(ahead()), &[pod("a")], &[]).skip();
    host.stepped("step", crate::hooks::pending("one", 1_000))
        .does("save preparing, ours");
    let saved = host.last_checkpoint();
    assert!(saved.ahead && !saved.inherited, "{saved:?}");
    // With the hook done, and with the hook under way.
    for is_done in [true, false] {
        let mut saved = saved.clone();
        if is_done {
            let hook = saved.hooks.remove(0);
            saved.done.push((hook.policy, hook.phase, hook.subject));
        }
        let mut host = Host::resume(with_hooks(), saved.clone());
        host.begin_with(cordoned(saved), &[pod("a")], &[]);
        if !is_done {
            host.wait(1_000)
                .does("step slurm before-cordon node after one")
                .stepped("step", StepOutcome::Done);
        }
        host.does("save holding, ours");
        assert!(!host.last_checkpoint().ahead, "{is_done}");
    }
}

#[test]
fn whatever_ends_the_drain_before_its_cordon_lifts_it() {
    let bare = || {
        let mut bare = pod("bare");
        bare.controller = None;
        bare
    };
    let blocked = [bare()];
    let mut host = Host::new(request());
    host.begin_with(cordoned(ahead()), &blocked, &[])
        .does("uncordon at 100")
        .written("uncordon")
        .does("");
    assert_eq!(host.drain.outcome().map(Outcome::name), Some("Blocked"));
    assert_eq!(host.drain.phase(), Phase::Finished);

    // Before it has seen the node, and while a hook runs.
    let mut host = Host::new(request());
    host.handle(cancel())
        .handle(Event::Node(Some(cordoned(ahead()))))
        .does("uncordon at 100");
    let mut host = Host::new(with_hooks());
    host.begin_with(cordoned(ahead()), &[pod("a")], &[])
        .does("step slurm before-cordon node");
    host.stepped("step", crate::hooks::pending("one", 1_000))
        .written("save")
        .shows_the_mark()
        .handle(cancel())
        .does("uncordon at 101");
}

#[test]
fn a_process_that_continues_after_the_deadline_lifts_it_as_soon_as_it_sees_the_node() {
    let mut host = Host::new(with_hooks());
    host.begin_with(cordoned(ahead()), &[pod("a")], &[]).skip();
    host.stepped("step", crate::hooks::pending("one", 1_000))
        .does("save preparing, ours");
    let saved = host.last_checkpoint();
    let late = Request {
        deadline: Some(saved.started),
        ..with_hooks()
    };
    let mut host = Host::resume(late, saved.clone());
    host.wait(0).does("");
    assert_eq!(host.drain.phase(), Phase::RollingBack);
    host.handle(Event::Node(Some(cordoned(saved))))
        .does("uncordon at 100");
}

#[test]
fn nothing_is_saved_before_it_is_known_whose_cordon_there_is() {
    let request = || Request {
        policies: vec![hooks("slurm", &[HookPhase::BeforeCordon, HookPhase::OnCancel])],
        ..request()
    };
    let mut host = Host::new(request());
    host.begin_with(cordoned(ahead()), &[pod("a")], &[]).skip();
    host.stepped("step", crate::hooks::pending("one", 1_000))
        .does("save preparing, ours");
    let saved = host.last_checkpoint();
    let late = Request {
        deadline: Some(saved.started),
        ..request()
    };
    let mut host = Host::resume(late, saved.clone());
    host.wait(0).does("");
    host.handle(Event::Node(Some(cordoned(saved))))
        .does("step slurm on-cancel node\nsave rolling back, ours");
    assert_eq!(host.last_checkpoint().held, Some(false));
}

#[test]
fn one_that_others_lifted_is_made_anew() {
    let mut host = Host::new(with_hooks());
    host.begin_with(cordoned(ahead()), &[pod("a")], &[]).skip();
    let open = Node {
        unschedulable: false,
        resource_version: "105".to_owned(),
        ..cordoned(ahead())
    };
    host.handle(Event::Node(Some(open)))
        .does("save preparing, not ours")
        .stepped("step", StepOutcome::Done);
    host.written("save").does("cordon at 105");
    assert!(!host.last_checkpoint().ahead);
}

#[test]
fn a_cordon_of_a_drain_that_had_begun_is_inherited_as_before() {
    let mark = Checkpoint {
        ahead: false,
        ..ahead()
    };
    let mut host = Host::new(with_hooks());
    host.begin_with(cordoned(mark), &[pod("a")], &[])
        .does("save holding, ours")
        .written("save")
        .skip();
    assert!(host.last_checkpoint().inherited);
    host.handle(cancel()).does("save finished, ours");
}
