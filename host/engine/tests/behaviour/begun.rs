//! What a drain has begun goes on under the next process: its waves, the time of its cordon, and that of its evictions.

use std::time::Duration;

use crate::harness::{Host, START, budget, hooks, node, planner, pod, request};
use crate::late_pods::{begun, comes, done, modes, pending, sorts, wave};
use scupper_engine::{
    Begun, Checkpoint, Event, ForceAtDeadline, ForcedPods, HookPhase, Node, Outcome, Pod, Request, SavedHook,
    Settings, StepOutcome, Subject, Time, Uid, Wave,
};

const MINUTE: u64 = 60;

fn after(secs: u64) -> Time {
    START + Duration::from_secs(secs)
}

fn cordoned(saved: &Checkpoint) -> Node {
    Node {
        unschedulable: true,
        checkpoint: Some(saved.clone()),
        ..node()
    }
}

/// The next process, so many seconds after the start of the drain.
fn resumed(secs: u64, request: Request, saved: Checkpoint, pods: &[Pod]) -> Host {
    let node = cordoned(&saved);
    let mut host = Host::resume_at(after(secs), request, saved);
    host.begin_with(node, pods, &[]);
    host
}

fn created(name: &str, at: Time) -> Pod {
    Pod {
        created: at,
        ..pod(name)
    }
}

fn in_two_waves() -> Request {
    Request {
        policies: vec![planner("waves")],
        ..request()
    }
}

/// The first one holds the second one up for five minutes.
fn two_waves() -> Vec<Wave> {
    let first = Wave {
        timeout: Some(Duration::from_secs(5 * MINUTE)),
        ..wave("one", &["a"])
    };
    vec![first, wave("two", &["b"])]
}

#[test]
fn the_time_of_a_wave_does_not_begin_anew() {
    let pods = ["a", "b"].map(pod);
    let mut first = Host::new(in_two_waves());
    first
        .begin(&pods)
        .planned("waves", sorts(two_waves()))
        .written("cordon");
    first.does("evict a\nsave evicting, ours").written("save");
    let saved = first.last_checkpoint();
    first.wait(5 * MINUTE * 1_000).does("evict b");
    // While the first one holds the second one up, ...
    let mut host = resumed(4 * MINUTE, in_two_waves(), saved.clone(), &pods);
    host.planned("waves", sorts(two_waves())).does("evict a");
    host.wait(59_999).does("").wait(1).does("evict b");
    // ... and when it no longer does.
    let mut host = resumed(5 * MINUTE, in_two_waves(), saved, &pods);
    host.planned("waves", sorts(two_waves())).does("evict a\nevict b");
    let told = host.notices();
    assert!(
        told.contains("wave one 1/2: 1\nwave one overdue\nwave two 2/2: 1"),
        "{told}"
    );
    host.accepted("evict a").accepted("evict b").gone(&["a", "b"]);
    host.listed(&[]).written("save");
    assert_eq!(host.summary().totals.waves, 2);
}

#[test]
fn hooks_that_run_again_for_a_new_pod_go_on_for_it_alone() {
    let mut first = begun(&[pod("a")], vec![wave("one", &["a"])]);
    done(&mut first, "one");
    first.does("evict a");
    let waves = || vec![wave("one", &["a", "n"])];
    comes(&mut first, "n", waves());
    first.written("save");
    let saved = first.last_checkpoint();
    assert!(saved.done.is_empty(), "{saved:?}");
    let mut host = resumed(MINUTE, modes(), saved, &[pod("a"), pod("n")]);
    host.planned("modes", sorts(waves()));
    assert!(host.asks("evict a"));
    assert_eq!(host.told(), ["n"]);
    host.waits("ns/a EvictionRequested\nns/n HookRunning");
    host.stepped("step modes before-wave", StepOutcome::Done);
    assert!(!host.asks("evict n"), "that is not saved");
    // It is saved with the pod as one that came late, and the process ends again.
    host.written("save");
    let saved = host.last_checkpoint();
    assert!(host.asks("evict n"));
    let mut host = resumed(2 * MINUTE, modes(), saved, &[pod("a"), pod("n")]);
    host.planned("modes", sorts(waves())).does("evict a\nevict n");
}

#[test]
fn a_wave_that_had_begun_goes_on_although_a_pod_came_to_an_earlier_one() {
    let pods = ["a", "b"].map(pod);
    let mut first = begun(&pods, vec![wave("one", &["a"]), wave("two", &["b"])]);
    done(&mut first, "one");
    first.accepted("evict a").gone(&["a"]);
    done(&mut first, "two");
    first.does("evict b");
    let waves = || vec![wave("one", &["n"]), wave("two", &["b"])];
    comes(&mut first, "n", waves());
    first.written("save");
    let saved = first.last_checkpoint();
    let mut host = resumed(MINUTE, modes(), saved, &["b", "n"].map(pod));
    host.planned("modes", sorts(waves()));
    host.waits("ns/b EvictionRequested\nns/n HookRunning");
    assert_eq!(host.told(), ["n"]);
}

#[test]
fn nothing_waits_for_hooks_that_ran_again_for_a_pod_that_is_gone() {
    let mut host = begun(&[pod("a")], vec![wave("one", &["a"])]);
    done(&mut host, "one");
    comes(&mut host, "n", vec![wave("one", &["a", "n"])]);
    host.written("save");
    host.stepped("step modes before-wave", pending(300)).gone(&["n"]);
    host.wait(1_000);
    host.handle(Event::Deadline(Some(host.now)));
    let outcome = host.drain.outcome();
    assert!(
        matches!(outcome, Some(Outcome::DeadlineExceeded { held_up: None, .. })),
        "{outcome:?}"
    );
}

/// Nothing waits for a hook that only another process had a policy for.
#[test]
fn a_policy_that_takes_no_part_holds_nothing_up() {
    let mut first = Host::new(Request {
        policies: vec![hooks("slurm", &[HookPhase::BeforeDrain])],
        ..request()
    });
    first.begin(&[pod("a")]).written("cordon").skip();
    let saved = Checkpoint {
        hooks: vec![SavedHook {
            policy: "slurm".to_owned(),
            phase: HookPhase::BeforeDrain,
            subject: Subject::Node,
            state: Vec::new(),
            state_version: None,
            started: START,
        }],
        ..first.last_checkpoint()
    };
    let without = Request {
        deadline: Some(after(10 * MINUTE)),
        ..request()
    };
    let mut host = resumed(0, without, saved, &[pod("a")]);
    host.does("evict a").wait(10 * MINUTE * 1_000);
    assert_eq!(
        host.drain.outcome(),
        Some(&Outcome::DeadlineExceeded {
            remaining: vec![pod("a").id],
            held_up: None
        })
    );
    host.written("save");
    assert_eq!(host.summary().totals.hook_wait, Duration::ZERO);
}

/// A pod without controller and without a toleration of the cordon.
fn bare(name: &str, at: Time) -> Pod {
    Pod {
        controller: None,
        ..created(name, at)
    }
}

#[test]
fn a_pod_that_was_made_long_after_the_cordon_does_not_hold_the_drain_under_the_next_process() {
    let mut first = Host::new(request());
    first.begin(&[pod("a")]).written("cordon").skip();
    let saved = first.last_checkpoint();
    assert_eq!(saved.begun.cordon, Some(START));
    // Bound before its scheduler had seen the cordon, and made by name on the node.
    let pods = [
        pod("a"),
        bare("early", after(10)),
        bare("late", after(5 * MINUTE)),
    ];
    let mut host = resumed(10 * MINUTE, request(), saved.clone(), &pods);
    host.does("evict a").wait(1_000);
    host.waits("ns/a EvictionRequested\nns/early Refused\nns/late ArrivedDuringDrain");
    // The node is seen without the cordon first.
    let mut host = Host::resume_at(after(10 * MINUTE), request(), saved.clone());
    let again = Node {
        resource_version: "200".to_owned(),
        ..cordoned(&saved)
    };
    host.handle(Event::Node(Some(node())))
        .handle(Event::Node(Some(again)))
        .handle(Event::Pods(pods.to_vec()))
        .handle(Event::Budgets(Vec::new()));
    host.wait(1_000);
    host.waits("ns/a EvictionRequested\nns/early Refused\nns/late Refused");
}

#[test]
fn pods_are_forced_when_they_would_have_been_by_the_first_process() {
    let forcing = || Request {
        deadline: Some(after(10 * MINUTE)),
        settings: Settings {
            at_deadline: Some(ForceAtDeadline {
                pods: ForcedPods::default(),
                grace_seconds: 20,
                within: Duration::from_secs(MINUTE),
            }),
            ..Settings::default()
        },
        ..request()
    };
    let begin = |host: &mut Host, node: Node| {
        host.begin_with(node, &[pod("a")], &[budget(0)]);
    };
    let mut first = Host::new(forcing());
    begin(&mut first, node());
    first
        .written("cordon")
        .does("save evicting, ours")
        .written("save");
    let saved = first.last_checkpoint();
    let mut host = Host::resume_at(after(9 * MINUTE + 5), forcing(), saved.clone());
    begin(&mut host, cordoned(&saved));
    host.does("delete a grace 20");
    // One that had begun to evict within that minute asks the pods first.
    let saved = Checkpoint {
        begun: Box::new(Begun {
            evictions: Some(after(9 * MINUTE + 1)),
            ..*saved.begun
        }),
        ..saved
    };
    let mut host = Host::resume_at(after(9 * MINUTE + 5), forcing(), saved.clone());
    begin(&mut host, cordoned(&saved));
    host.wait(24_999);
    assert!(!host.asks("delete"));
    host.wait(1);
    assert!(host.asks("delete a grace 20"));
}

#[test]
fn a_checkpoint_keeps_only_waves_that_still_have_pods_and_what_came_late() {
    let pods = ["a", "b"].map(pod);
    let mut first = Host::new(in_two_waves());
    first
        .begin(&pods)
        .planned("waves", sorts(two_waves()))
        .written("cordon")
        .written("save");
    assert_eq!(
        *first.last_checkpoint().begun,
        Begun {
            cordon: Some(START),
            evictions: Some(START),
            waves: [("one".to_owned(), Some(after(5 * MINUTE)))].into(),
            late: [].into(),
            planners: ["waves".to_owned()].into(),
        }
    );
    first
        .accepted("evict a")
        .gone(&["a"])
        .accepted("evict b")
        .gone(&["b"]);
    first.listed(&[]).written("save");
    let saved = first.last_checkpoint().begun;
    assert!(saved.waves.is_empty() && saved.late.is_empty(), "{saved:?}");
    let mut host = begun(&[pod("a")], vec![wave("one", &["a"])]);
    done(&mut host, "one");
    comes(&mut host, "n", vec![wave("one", &["a", "n"])]);
    host.written("save");
    assert_eq!(host.last_checkpoint().begun.late, [Uid::new("n")].into());
}
