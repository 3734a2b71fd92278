//! What policies have changed outside of Kubernetes and not undone: the record stays until they have.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::harness::{Host, hooks, node, pod, request, uncordon_request};
use scupper_engine::{
    Checkpoint, Event, HookPhase, Node, Outcome, PolicyInfo, Request, StepOutcome, Time, ToUndo, WaitingOn,
};

const ALL: [HookPhase; 3] = [
    HookPhase::BeforeDrain,
    HookPhase::OnCancel,
    HookPhase::AfterUncordon,
];

fn slurm() -> PolicyInfo {
    hooks("slurm", &ALL)
}

fn draining(policies: Vec<PolicyInfo>) -> Request {
    Request {
        policies,
        ..request()
    }
}

fn failed(message: &str) -> StepOutcome {
    StepOutcome::Failed {
        message: message.to_owned(),
        retry_after: None,
    }
}

fn waits(progress: &str, what: &str) -> StepOutcome {
    StepOutcome::Pending {
        state: Vec::new(),
        again_after: Duration::from_secs(5),
        progress: progress.to_owned(),
        waiting_for: vec![WaitingOn {
            what: what.to_owned(),
            detail: String::new(),
            since: None,
        }],
    }
}

fn cancel() -> Event {
    Event::Cancel {
        reason: "no".to_owned(),
    }
}

/// The node with this mark.
fn marked(mark: Checkpoint, unschedulable: bool) -> Node {
    Node {
        unschedulable,
        checkpoint: Some(mark),
        ..node()
    }
}

/// The roll-back is saved, and seen.
fn settled(host: &mut Host) {
    while host.asks("save rolling back") {
        host.written("save rolling back");
    }
    host.shows_the_mark();
}

/// The last write of an uncordon that failed.
fn saved_its_end(host: &mut Host) {
    while host.asks("save uncordoning") {
        host.written("save uncordoning");
    }
    host.written("save finished, not ours");
}

/// A drain whose hook `before-drain` has answered once.
fn under_way(policies: Vec<PolicyInfo>) -> Host {
    let mut host = Host::new(draining(policies));
    host.begin(&[pod("a")]).written("cordon").skip();
    host.stepped("step slurm before-drain", waits("at work", "job 1"));
    host
}

/// The same, drained.
fn drained_mark() -> Checkpoint {
    let mut host = under_way(vec![slurm()]);
    host.wait(5_000).stepped("step slurm", StepOutcome::Done);
    host.written("save").accepted("evict a").gone(&["a"]);
    host.listed(&[]).skip();
    host.last_checkpoint()
}

fn record(entries: &[(&str, &str)]) -> ToUndo {
    let owned = |(policy, words): &(&str, &str)| ((*policy).to_owned(), (*words).to_owned());
    entries.iter().map(owned).collect()
}

#[test]
fn a_cancel_that_a_policy_cannot_follow_lifts_the_cordon_and_leaves_the_record() {
    for (answer, wait, words) in [
        (Some(failed("the token is expired")), 0, "the token is expired"),
        (
            Some(waits("slurmctld is down", "slurm-worker-3")),
            15_000,
            "slurmctld is down; waits for slurm-worker-3",
        ),
        (None, 15_000, "its on-cancel hook has not finished"),
    ] {
        let mut host = under_way(vec![slurm()]);
        host.handle(cancel());
        host.shows_the_mark();
        assert!(host.asks("step slurm on-cancel"));
        if let Some(answer) = answer {
            host.stepped("step slurm on-cancel", answer);
        }
        host.wait(wait).skip();
        settled(&mut host);
        host.written("uncordon");
        let mark = host.last_checkpoint();
        assert_eq!(mark.to_undo, record(&[("slurm", words)]));
        assert!(!mark.own_cordon && !mark.is_under_way(), "{mark:?}");
        let summary = host.summary();
        assert_eq!(summary.to_undo, mark.to_undo);
        assert_eq!(summary.kept_by, [""; 0]);
        assert_eq!(host.drain.to_undo(), mark.to_undo);
    }
}

#[test]
fn the_end_of_a_drain_names_the_policies_that_keep_the_node_out_of_service() {
    let mut host = under_way(vec![slurm()]);
    host.wait(5_000).stepped("step slurm", StepOutcome::Done);
    host.written("save").accepted("evict a").gone(&["a"]);
    host.listed(&[]);
    host.written("save finished");
    let summary = host.summary();
    assert_eq!(summary.kept_by, ["slurm"]);
    assert_eq!(summary.to_undo, ToUndo::new(), "nothing of it is late");
}

#[test]
fn a_cancel_that_every_policy_follows_leaves_nothing() {
    let mut host = under_way(vec![slurm()]);
    host.handle(cancel());
    host.shows_the_mark();
    host.stepped("step slurm on-cancel", StepOutcome::Done);
    settled(&mut host);
    host.written("uncordon");
    assert_eq!(host.summary().to_undo, ToUndo::new());
    assert_eq!(host.drain.to_undo(), ToUndo::new());
}

/// Its first answer says that it could not begin.
#[test]
fn a_policy_that_failed_at_its_first_step_has_nothing_to_undo() {
    let mut host = Host::new(draining(vec![slurm()]));
    host.begin(&[pod("a")]).written("cordon").skip();
    host.stepped("step slurm before-drain", failed("no token"));
    assert_eq!(host.drain.to_undo(), ToUndo::new());
    // One that fails later has.
    let mut host = under_way(vec![slurm()]);
    assert_eq!(host.drain.to_undo(), record(&[("slurm", "")]));
    host.wait(5_000).stepped("step slurm", failed("a server stays"));
    assert_eq!(host.drain.to_undo(), record(&[("slurm", "")]), "held");
}

#[test]
fn a_policy_that_undoes_only_at_an_uncordon_stays_in_the_record_of_a_cancelled_drain() {
    let phases = [HookPhase::BeforeDrain, HookPhase::AfterUncordon];
    let mut host = under_way(vec![hooks("slurm", &phases)]);
    host.handle(cancel());
    host.does("uncordon at 101, keeps the checkpoint");
    let words = "it undoes its part only at an uncordon";
    assert_eq!(host.last_checkpoint().to_undo, record(&[("slurm", words)]));
    // One that never undoes anything does not.
    let mut host = under_way(vec![hooks("slurm", &phases[..1])]);
    host.handle(cancel());
    host.does("uncordon at 101");
}

#[test]
fn a_drain_under_a_foreign_cordon_leaves_the_record() {
    let cordoned = Node {
        unschedulable: true,
        ..node()
    };
    let mut host = Host::new(draining(vec![slurm()]));
    host.begin_with(cordoned, &[], &[]).written("save").skip();
    host.stepped("step slurm before-drain", StepOutcome::Done);
    host.written("save").listed(&[]);
    host.does("save finished, not ours").written("save");
    host.ends(&Outcome::Drained);
    let mark = host.last_checkpoint();
    assert_eq!(mark.to_undo, record(&[("slurm", "")]));
    assert!(
        !mark.drained,
        "the condition says so where the cordon is not ours"
    );
}

#[test]
fn an_uncordon_that_fails_or_is_interrupted_keeps_the_record_and_one_that_succeeds_clears_it() {
    let undoes = |policies| Request {
        policies,
        ..uncordon_request()
    };
    let begun = |unschedulable| {
        let mut host = Host::new(undoes(vec![slurm()]));
        let node = marked(drained_mark(), unschedulable);
        host.handle(Event::Node(Some(node))).skip();
        if unschedulable {
            host.written("uncordon").skip();
        }
        host
    };
    for unschedulable in [true, false] {
        let mut host = begun(unschedulable);
        host.stepped("step slurm after-uncordon", failed("the token is expired"));
        saved_its_end(&mut host);
        let left = record(&[("slurm", "the token is expired")]);
        assert_eq!(host.last_checkpoint().to_undo, left);
        assert_eq!(host.summary().to_undo, left);

        let mut host = begun(unschedulable);
        host.handle(cancel());
        saved_its_end(&mut host);
        let words = "the uncordon ended before its hook had finished";
        assert_eq!(host.summary().to_undo, record(&[("slurm", words)]));

        let mut host = begun(unschedulable);
        host.stepped("step slurm after-uncordon", StepOutcome::Done);
        while host.asks("save") {
            host.written("save");
        }
        host.written("forget");
        assert_eq!(host.drain.to_undo(), ToUndo::new());
        host.ends(&Outcome::Uncordoned { cordon_kept: false });
    }
}

#[test]
fn an_uncordon_without_a_policy_of_the_record_changes_nothing() {
    for unschedulable in [true, false] {
        let mut host = Host::new(Request {
            policies: vec![hooks("vms", &ALL)],
            ..uncordon_request()
        });
        let node = marked(drained_mark(), unschedulable);
        host.handle(Event::Node(Some(node))).does("");
        assert!(matches!(
            host.drain.outcome(),
            Some(Outcome::PolicyFailed { policy, .. }) if policy == "slurm"
        ));
        assert_eq!(host.drain.to_undo(), record(&[("slurm", "")]));
    }
}

/// A label may have changed since the drain.
#[test]
fn a_policy_of_the_record_takes_part_in_the_uncordon_of_any_node() {
    let selector = [("slurm".to_owned(), "true".to_owned())].into();
    let mut host = Host::new(Request {
        policies: vec![PolicyInfo {
            node_selector: selector,
            ..slurm()
        }],
        ..uncordon_request()
    });
    host.handle(Event::Node(Some(marked(drained_mark(), false))));
    assert!(host.asks("step slurm after-uncordon node"));
}

/// The cancel hook undoes what its own drain did.
#[test]
fn a_later_drain_that_is_cancelled_keeps_what_an_earlier_one_has_left() {
    let mut first = under_way(vec![slurm()]);
    first.handle(cancel());
    first.shows_the_mark();
    first.stepped("step slurm on-cancel", failed("slurmctld is down"));
    settled(&mut first);
    first.written("uncordon");
    let left = first.last_checkpoint();

    let mut host = Host::new(Request {
        id: "second".to_owned(),
        ..draining(vec![slurm()])
    });
    host.begin_with(marked(left, false), &[pod("a")], &[]);
    host.written("cordon").skip();
    host.stepped("step slurm before-drain", waits("at work", "job 1"));
    host.handle(cancel());
    host.shows_the_mark();
    host.stepped("step slurm on-cancel", StepOutcome::Done);
    settled(&mut host);
    host.written("uncordon");
    assert_eq!(
        host.last_checkpoint().to_undo,
        record(&[("slurm", "slurmctld is down")])
    );
}

/// The drain of a terminal that is gone: no process calls its cancel hooks.
#[test]
fn a_drain_that_displaces_one_that_never_ended_takes_over_its_record() {
    let mut gone = Host::new(Request {
        id: "first".to_owned(),
        ..draining(vec![slurm()])
    });
    gone.begin(&[pod("a")]).written("cordon").skip();
    gone.stepped("step slurm before-drain", StepOutcome::Done).skip();
    let mut host = Host::new(draining(Vec::new()));
    let node = marked(gone.last_checkpoint(), true);
    host.begin_with(node, &[], &[]).skip();
    assert_eq!(host.drain.to_undo(), record(&[("slurm", "")]));
}

#[test]
fn a_process_that_resumes_a_rollback_keeps_what_the_one_before_could_not_undo() {
    let mut host = under_way(vec![slurm(), hooks("vms", &ALL)]);
    host.handle(cancel());
    host.shows_the_mark();
    host.stepped("step slurm on-cancel", failed("slurmctld is down"));
    settled(&mut host);
    let saved = host.last_checkpoint();

    let mut host = Host::resume(draining(vec![slurm(), hooks("vms", &ALL)]), saved.clone());
    host.handle(Event::Node(Some(marked(saved, true))));
    assert!(!host.asks("step slurm"), "it is not tried again");
    host.stepped("step vms on-cancel", StepOutcome::Done);
    settled(&mut host);
    host.written("uncordon");
    let left = record(&[("slurm", "slurmctld is down")]);
    assert_eq!(host.last_checkpoint().to_undo, left);
    assert_eq!(host.summary().to_undo, left);
}

/// Its process died after the last write.
#[test]
fn a_process_that_resumes_an_uncordon_that_failed_keeps_the_record() {
    let uncordon = || Request {
        policies: vec![slurm(), hooks("vms", &ALL)],
        ..uncordon_request()
    };
    let mut host = Host::new(uncordon());
    let mut mark = drained_mark();
    mark.to_undo = record(&[("slurm", ""), ("vms", "")]);
    host.handle(Event::Node(Some(marked(mark, false))));
    host.stepped("step slurm after-uncordon", failed("slurmctld is down"));
    saved_its_end(&mut host);
    let saved = host.last_checkpoint();
    assert_eq!(saved.to_undo.len(), 2, "{saved:?}");

    let mut host = Host::resume(uncordon(), saved.clone());
    host.handle(Event::Node(Some(marked(saved, false))));
    host.handle(cancel());
    assert_eq!(host.drain.to_undo().len(), 2, "{:?}", host.drain.to_undo());
}

#[test]
fn a_node_that_is_deleted_or_made_anew_does_not_take_the_record_with_it() {
    let words = "the Node was deleted or made anew";
    let mut host = under_way(vec![slurm()]);
    host.handle(Event::Node(None));
    host.stepped("step slurm on-cancel", StepOutcome::Done).skip();
    assert_eq!(host.drain.to_undo(), record(&[("slurm", words)]), "it was held");
    assert_eq!(host.summary().to_undo, record(&[("slurm", words)]));
}

/// The driver knows it from the node's Lease.
#[test]
fn a_record_from_elsewhere_counts_where_the_node_has_no_mark() {
    let mut host = Host::new(Request {
        policies: vec![slurm()],
        ..uncordon_request()
    });
    host.drain
        .recall_to_undo(record(&[("slurm", ""), ("jobs", "")]), BTreeSet::new());
    host.handle(Event::Node(Some(node()))).does("");
    assert!(matches!(
        host.drain.outcome(),
        Some(Outcome::PolicyFailed { policy, .. }) if policy == "jobs"
    ));
    // While the Node does not exist, the record stays, and the end names it.
    let mut host = Host::new(Request {
        policies: vec![slurm()],
        ..uncordon_request()
    });
    host.drain
        .recall_to_undo(record(&[("slurm", "")]), BTreeSet::new());
    host.handle(Event::Node(None)).skip();
    assert_eq!(host.drain.to_undo(), record(&[("slurm", "")]));
    assert_eq!(host.summary().to_undo, record(&[("slurm", "")]));
    // The node's own mark is the record, where there is one.
    let mut host = Host::new(draining(vec![slurm()]));
    host.drain.recall_to_undo(record(&[("vms", "")]), BTreeSet::new());
    host.begin_with(marked(drained_mark(), true), &[], &[]);
    assert_eq!(host.drain.to_undo(), record(&[("slurm", "")]));
}

/// Its process died before it had saved anything.
#[test]
fn what_a_killed_process_of_this_drain_may_have_done_is_undone_by_its_cancel() {
    for (is_own, left) in [(true, ToUndo::new()), (false, record(&[("slurm", "")]))] {
        let phases = [
            HookPhase::AfterDrain,
            HookPhase::OnCancel,
            HookPhase::AfterUncordon,
        ];
        let mut host = Host::new(draining(vec![hooks("slurm", &phases)]));
        let (earlier, own) = match is_own {
            true => (ToUndo::new(), ["slurm".to_owned()].into()),
            false => (record(&[("slurm", "")]), BTreeSet::new()),
        };
        host.drain.recall_to_undo(earlier, own);
        host.begin(&[pod("a")]).written("cordon").skip();
        host.handle(cancel());
        host.shows_the_mark();
        host.stepped("step slurm on-cancel", StepOutcome::Done);
        settled(&mut host);
        host.written("uncordon");
        assert_eq!(host.drain.to_undo(), left);
    }
}

/// The hooks of a pod are forgotten with the pod.
#[test]
fn a_policy_has_acted_in_the_hooks_of_a_pod_that_is_gone() {
    let phases = [HookPhase::BeforeEvict, HookPhase::AfterUncordon];
    let mut host = Host::new(draining(vec![hooks("slurm", &phases)]));
    host.begin(&[pod("a"), pod("b")]).written("cordon").skip();
    host.stepped("step slurm before-evict pod a", waits("at work", "job 1"));
    host.gone(&["a"])
        .stepped("step slurm before-evict pod b", failed("no token"));
    assert_eq!(host.drain.to_undo(), record(&[("slurm", "")]));
}

/// Its process comes too late, and finds in the Lease what its hooks, or those of an earlier drain, have left.
#[test]
fn a_drain_that_is_over_as_it_begins_names_what_is_left() {
    let mut host = Host::new(Request {
        deadline: Some(Time::from_millis(1)),
        ..request()
    });
    host.drain
        .recall_to_undo(record(&[("slurm", "")]), BTreeSet::new());
    assert_eq!(host.summary().kept_by, ["slurm"]);
}
