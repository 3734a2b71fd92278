//! The owner of the cordon, after late events, changes by other clients and an uncordon.

use std::time::Duration;

use crate::harness::{Host, hooks, node, pod, request, uncordon_request};
use scupper_engine::{
    Answer, Checkpoint, Condition, Event, HookPhase, Intent, Node, Outcome, Request, StepOutcome,
};

fn at(version: &str, unschedulable: bool) -> Event {
    Event::Node(Some(Node {
        unschedulable,
        resource_version: version.to_owned(),
        ..node()
    }))
}

/// A cordoned node with a checkpoint of an earlier drain of ours.
fn marked(own_cordon: bool) -> Node {
    let mut host = Host::new(request());
    host.begin(&[]).skip();
    let checkpoint = Checkpoint {
        own_cordon,
        ..host.last_checkpoint()
    };
    Node {
        unschedulable: true,
        checkpoint: Some(checkpoint),
        ..node()
    }
}

#[test]
fn states_from_before_our_cordon_do_not_look_like_a_lifted_cordon() {
    // Versions that are numbers are compared; for others the state that we wrote must have been seen.
    for (before, written, after) in [("100", "103", "104"), ("r-a", "r-c", "r-d")] {
        let mut host = Host::new(request());
        host.handle(at(before, false))
            .handle(Event::Pods(vec![pod("a")]))
            .handle(Event::Budgets(vec![]));
        host.answer(
            "cordon",
            Answer::Written {
                version: written.to_owned(),
            },
        )
        .does("evict a");
        host.notices();
        host.handle(at(before, false)).reports("");
        host.handle(at(written, true))
            .handle(at(after, false))
            .reports("uncordoned by others");
    }
}

#[test]
fn evictions_wait_while_the_node_is_uncordoned_and_the_next_cordon_is_not_ours() {
    let mut host = Host::new(request());
    host.begin(&[pod("a"), pod("b")])
        .written("cordon")
        .accepted("evict a")
        .skip();
    host.answer(
        "evict b",
        Answer::Evict(scupper_engine::EvictAnswer::Forbidden {
            message: String::new(),
        }),
    );
    host.handle(Event::PodApplied(crate::harness::ending(pod("a"))));
    host.handle(at("110", false))
        .does("save evicting, not ours")
        .written("save");
    host.waits("ns/a Terminating\nns/b NodeUncordoned")
        .wait(600_000)
        .does("");
    host.waits("ns/a TerminatingPastGrace\nns/b NodeUncordoned");
    host.handle(at("200", true)).does("evict b");
    host.accepted("evict b")
        .gone(&["a", "b"])
        .listed(&[])
        .does("forget");
}

#[test]
fn a_cordon_lifted_before_its_answer_came_is_not_made_again() {
    let mut host = Host::new(request());
    host.begin(&[pod("a")]).skip().handle(at("105", false));
    host.answer(
        "cordon",
        Answer::Written {
            version: "104".to_owned(),
        },
    )
    .does("save evicting, not ours");
    host.written("save").does("").waits("ns/a NodeUncordoned");
}

#[test]
fn a_cordon_whose_answer_was_lost_is_known_by_its_mark() {
    let mut host = Host::new(request());
    host.begin(&[pod("a")]).answer(
        "cordon",
        Answer::Unavailable {
            message: "timed out".to_owned(),
        },
    );
    let mark = Checkpoint {
        own_cordon: true,
        ..host_checkpoint()
    };
    let cordoned = Node {
        unschedulable: true,
        checkpoint: Some(mark),
        resource_version: "101".to_owned(),
        ..node()
    };
    host.handle(Event::Node(Some(cordoned))).does("evict a");
    host.handle(Event::Cancel {
        reason: String::new(),
    })
    .wait(1_000)
    .does("uncordon at 101");
}

fn host_checkpoint() -> Checkpoint {
    let mut host = Host::new(request());
    host.begin(&[]).skip();
    host.last_checkpoint()
}

#[test]
fn an_uncordon_lifts_our_cordon_between_its_hooks() {
    let policies = vec![hooks(
        "vms",
        &[HookPhase::BeforeUncordon, HookPhase::AfterUncordon],
    )];
    let mut host = Host::new(Request {
        policies,
        ..uncordon_request()
    });
    host.handle(Event::Node(Some(marked(true))))
        .does("step vms before-uncordon node");
    host.stepped("step", StepOutcome::Done)
        .does("save uncordoning, ours")
        .written("save");
    // Other clients may have written between the seen state and the save: the event about it must come first.
    host.does("");
    let saved = host.last_checkpoint();
    assert_eq!(saved.intent, Intent::Uncordon);
    let seen = Node {
        checkpoint: Some(saved),
        resource_version: "101".to_owned(),
        ..marked(true)
    };
    host.handle(Event::Node(Some(seen)));
    host.does("uncordon at 101, keeps the checkpoint")
        .written("uncordon");
    host.stepped("step vms after-uncordon", StepOutcome::Done)
        .does("save uncordoning, not ours");
    host.written("save").does("forget").written("forget");
    host.ends(&Outcome::Uncordoned { cordon_kept: false });
}

#[test]
fn an_uncordon_without_hooks_is_one_write() {
    let mut host = Host::new(uncordon_request());
    host.handle(Event::Node(Some(marked(true))))
        .does("uncordon at 100")
        .written("uncordon")
        .does("");
    host.ends(&Outcome::Uncordoned { cordon_kept: false });
}

#[test]
fn an_uncordon_leaves_a_cordon_that_is_not_ours() {
    let theirs = Node {
        unschedulable: true,
        ..node()
    };
    let lifted = Node {
        unschedulable: false,
        ..marked(true)
    };
    for (node, cordon_kept, does) in [
        (theirs, true, ""),
        (node(), false, ""),
        (marked(false), true, "forget"),
        (lifted, false, "forget"),
    ] {
        let mut host = Host::new(uncordon_request());
        host.handle(Event::Node(Some(node))).does(does);
        if !does.is_empty() {
            host.written(does);
        }
        host.ends(&Outcome::Uncordoned { cordon_kept });
    }
}

#[test]
fn an_uncordon_that_is_cancelled_keeps_the_mark_for_the_next() {
    let policies = vec![hooks("vms", &[HookPhase::BeforeUncordon])];
    let mut host = Host::new(Request {
        policies,
        ..uncordon_request()
    });
    host.handle(Event::Node(Some(marked(true))))
        .skip()
        .handle(Event::Cancel {
            reason: "no".to_owned(),
        });
    host.does("").ends(&Outcome::Cancelled {
        reason: "no".to_owned(),
    });
}

#[test]
fn a_cordon_that_a_save_has_crossed_is_not_taken_for_ours() {
    let policies = vec![hooks("slurm", &[HookPhase::BeforeCordon])];
    let mut host = Host::new(Request {
        policies,
        ..request()
    });
    let pending = StepOutcome::Pending {
        state: b"waiting".to_vec(),
        again_after: Duration::from_secs(1),
        progress: String::new(),
        waiting_for: Vec::new(),
    };
    host.begin(&[pod("a")]).stepped("step", pending);
    // Another client cordons with version 101, and our save turns it into 102 before the watch shows it.
    host.answer(
        "save",
        Answer::Written {
            version: "102".to_owned(),
        },
    );
    host.wait(1_000).stepped("step", StepOutcome::Done).does("");
    host.handle(at("101", true)).does("save holding, not ours");
    host.answer(
        "save",
        Answer::Written {
            version: "103".to_owned(),
        },
    )
    .does("evict a");
}

#[test]
fn hooks_before_the_cordon_are_not_passed_over_when_a_foreign_cordon_vanishes() {
    let policies = vec![hooks("slurm", &[HookPhase::BeforeCordon])];
    let mut host = Host::new(Request {
        policies,
        ..request()
    });
    let theirs = Node {
        unschedulable: true,
        ..node()
    };
    host.begin_with(theirs, &[], &[])
        .does("save holding, not ours")
        .handle(at("101", false));
    host.does("step slurm before-cordon node");
}

#[test]
fn a_foreign_cordon_after_ours_was_lifted_is_not_lifted_by_a_cancel() {
    let mut host = Host::new(request());
    host.begin(&[pod("a")]).skip().handle(Event::Cancel {
        reason: String::new(),
    });
    host.answer(
        "cordon",
        Answer::Unavailable {
            message: "timed out".to_owned(),
        },
    )
    .wait(100)
    .does("");
    // The cordon did happen; then another client lifted it and cordoned again, with our mark still on the node.
    let mark = host_checkpoint();
    let ours = |version: &str, unschedulable| {
        let checkpoint = Some(mark.clone());
        Event::Node(Some(Node {
            unschedulable,
            checkpoint,
            resource_version: version.to_owned(),
            ..node()
        }))
    };
    host.handle(ours("102", false)).handle(ours("103", true));
    host.wait(1_000).does("forget");
}

#[test]
fn a_cordon_of_ours_that_was_lifted_before_its_answer_was_lost_is_not_made_again() {
    let mut host = Host::new(request());
    host.begin(&[pod("a")]).skip();
    let mark = host.last_checkpoint();
    host.answer(
        "cordon",
        Answer::Unavailable {
            message: "timed out".to_owned(),
        },
    );
    let seen = |version: &str, unschedulable| {
        let checkpoint = Some(mark.clone());
        Event::Node(Some(Node {
            unschedulable,
            checkpoint,
            resource_version: version.to_owned(),
            ..node()
        }))
    };
    host.handle(seen("102", false))
        .wait(60_000)
        .does("save evicting, not ours");
    host.handle(seen("103", true))
        .does("evict a")
        .handle(Event::Cancel {
            reason: String::new(),
        });
    host.written("save evicting").does("forget");
}

#[test]
fn a_late_answer_does_not_make_a_foreign_cordon_ours() {
    let mut host = Host::new(request());
    host.begin(&[pod("a")]).skip().handle(Event::Cancel {
        reason: String::new(),
    });
    let mark = host.last_checkpoint();
    let seen = |version: &str, unschedulable| {
        let checkpoint = Some(mark.clone());
        Event::Node(Some(Node {
            unschedulable,
            checkpoint,
            resource_version: version.to_owned(),
            ..node()
        }))
    };
    host.handle(seen("101", true))
        .handle(seen("102", false))
        .handle(seen("103", true));
    host.answer(
        "cordon",
        Answer::Written {
            version: "101".to_owned(),
        },
    )
    .does("forget");
}

#[test]
fn a_cordon_of_a_process_that_died_right_after_it_is_lifted_by_a_cancel() {
    let mut host = Host::new(request());
    let ours = Node {
        unschedulable: true,
        checkpoint: Some(host_checkpoint()),
        ..node()
    };
    host.handle(Event::Node(Some(ours)))
        .handle(Event::Cancel {
            reason: String::new(),
        })
        .does("uncordon at 100");
}

/// The node as a completed drain leaves it.
fn drained(cordon: Node) -> Node {
    let mut host = Host::new(Request {
        id: "first".to_owned(),
        ..request()
    });
    host.begin_with(cordon, &[], &[]);
    for write in ["cordon", "save"] {
        if host.asks(write) {
            host.written(write);
        }
    }
    host.skip().listed(&[]).skip();
    let ours = host.asks("save finished, ours");
    Node {
        unschedulable: true,
        checkpoint: ours.then(|| host.last_checkpoint()),
        conditions: vec![Condition {
            kind: "Drained".to_owned(),
            status: "True".to_owned(),
            reason: Node::DRAINED_BY_US.to_owned(),
            message: String::new(),
            since: None,
        }],
        resource_version: "200".to_owned(),
        ..node()
    }
}

fn second() -> Request {
    Request {
        id: "second".to_owned(),
        policies: vec![hooks("slurm", &[HookPhase::BeforeDrain])],
        ..request()
    }
}

#[test]
fn a_drain_of_a_drained_node_passes_that_on_however_it_ends() {
    let foreign = Node {
        unschedulable: true,
        ..node()
    };
    let without_condition = Node {
        conditions: Vec::new(),
        ..drained(node())
    };
    for found in [drained(node()), without_condition, drained(foreign)] {
        let mut host = Host::new(second());
        host.begin_with(found.clone(), &[pod("a")], &[]);
        assert!(host.drain.found_drained());
        host.written("save");
        let saved = host.last_checkpoint();
        // The conditions already report the drain.
        let again = Node {
            conditions: Vec::new(),
            checkpoint: Some(saved.clone()),
            resource_version: "210".to_owned(),
            ..found
        };
        let mut host = Host::resume(second(), saved);
        host.begin_with(again.clone(), &[pod("a")], &[]);
        assert!(host.drain.found_drained(), "after a restart");
        host.handle(Event::Cancel {
            reason: String::new(),
        });
        if host.asks("save finished") {
            let third = Node {
                checkpoint: Some(host.last_checkpoint()),
                ..again
            };
            assert!(third.is_drained_by_us(), "the next one knows it as well");
        }
    }
}

#[test]
fn a_schedulable_node_or_one_with_a_failed_drain_is_not_drained() {
    let lifted = Node {
        unschedulable: false,
        ..drained(node())
    };
    assert!(!lifted.is_drained_by_us());
    let mut host = Host::new(request());
    host.begin(&[pod("a")]).written("cordon");
    host.handle(Event::Lost {
        reason: String::new(),
    })
    .skip();
    let failed = Node {
        unschedulable: true,
        checkpoint: Some(host.last_checkpoint()),
        ..node()
    };
    assert!(!failed.is_drained_by_us());
    let theirs = Condition {
        reason: "KubectlDrainCompleted".to_owned(),
        ..drained(node()).conditions.remove(0)
    };
    let by_kubectl = Node {
        unschedulable: true,
        conditions: vec![theirs],
        ..node()
    };
    assert!(!by_kubectl.is_drained_by_us());
}
