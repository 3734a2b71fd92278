//! Pods that come during the drain get what the same pod would have got in the plan: its wave, with its hooks and limits.

use std::time::Duration;

use crate::harness::{Host, ending, node, pod, request};
use scupper_engine::{
    Answer, Event, EvictAnswer, HookPhase, Node, Plan, Pod, PolicyInfo, Request, StepOutcome, Time, Uid,
    Verdict, Wave,
};

const HOUR: u64 = 3600;

/// A policy that sorts pods into waves and holds them.
pub(crate) fn modes() -> Request {
    Request {
        policies: vec![PolicyInfo {
            name: "modes".to_owned(),
            planner: true,
            phases: vec![HookPhase::BeforeWave],
            ..PolicyInfo::default()
        }],
        ..request()
    }
}

pub(crate) fn wave(name: &str, pods: &[&str]) -> Wave {
    Wave {
        name: name.to_owned(),
        pods: pods.iter().map(|pod| Uid::new(*pod)).collect(),
        max_parallel: None,
        timeout: None,
        max_grace_seconds: None,
        policy: String::new(),
    }
}

/// The same with a longest grace period of five seconds.
fn graceful(name: &str, pods: &[&str]) -> Wave {
    Wave {
        max_grace_seconds: Some(5),
        ..wave(name, pods)
    }
}

fn for_at_most(secs: u64, wave: Wave) -> Wave {
    Wave {
        timeout: Some(Duration::from_secs(secs)),
        ..wave
    }
}

/// The planner chooses these waves, and deletes the pods with such names.
pub(crate) fn sorts(waves: Vec<Wave>) -> impl FnOnce(&mut Plan) {
    move |plan| {
        for decision in &mut plan.decisions {
            if decision.pod.as_str().starts_with("delete") {
                decision.verdict = Verdict::Delete;
            }
        }
        plan.waves = waves;
    }
}

/// A drain whose first plan has these waves, on a node that another client has cordoned.
pub(crate) fn begun(pods: &[Pod], waves: Vec<Wave>) -> Host {
    let cordoned = Node {
        unschedulable: true,
        ..node()
    };
    let mut host = Host::new(modes());
    host.begin_with(cordoned, pods, &[])
        .planned("modes", sorts(waves))
        .written("save");
    host
}

/// A pod comes, and the plan that is made then has these waves.
pub(crate) fn comes(host: &mut Host, name: &str, waves: Vec<Wave>) {
    host.handle(Event::PodApplied(pod(name))).wait(1_000);
    host.planned("modes", sorts(waves));
}

pub(crate) fn done(host: &mut Host, wave: &str) {
    host.stepped(&format!("step modes before-wave wave {wave}"), StepOutcome::Done)
        .written("save");
}

/// The checkpoint no longer says that the hook has finished.
fn reopened(host: &mut Host) {
    assert!(host.written("save").last_checkpoint().done.is_empty());
}

pub(crate) fn pending(secs: u64) -> StepOutcome {
    StepOutcome::Pending {
        state: Vec::new(),
        again_after: Duration::from_secs(secs),
        progress: String::new(),
        waiting_for: Vec::new(),
    }
}

#[test]
fn a_pod_that_would_be_deleted_after_a_time_gets_that_time() {
    let mut host = begun(&[pod("a")], vec![wave("all", &["a"])]);
    done(&mut host, "all");
    host.does("evict a");
    comes(
        &mut host,
        "delete-b",
        vec![wave("all", &["a"]), graceful("after 1h", &["delete-b"])],
    );
    host.does("")
        .waits("ns/a EvictionRequested\nns/delete-b WaveNotStarted");
    host.accepted("evict a").gone(&["a"]);
    host.does("step modes before-wave wave after 1h");
    host.waits("ns/delete-b HookRunning").wait(HOUR * 1000).does("");
    done(&mut host, "after 1h");
    host.does("delete delete-b grace 5");
}

#[test]
fn its_wave_is_held_up_no_longer_than_the_new_plan_says() {
    let mut host = begun(&[pod("a")], vec![wave("all", &["a"])]);
    done(&mut host, "all");
    let waves = vec![
        for_at_most(60, wave("all", &["a"])),
        wave("after 1m", &["delete-b"]),
    ];
    comes(&mut host, "delete-b", waves);
    // The pod of the other wave does not end.
    host.accepted("evict a")
        .handle(Event::PodApplied(ending(pod("a"))));
    host.wait(59_000).does("");
    host.wait(1_000).does("step modes before-wave wave after 1m");
}

#[test]
fn its_wave_comes_where_the_new_plan_puts_it() {
    let mut host = begun(
        &[pod("a"), pod("c")],
        vec![wave("one", &["a"]), wave("three", &["c"])],
    );
    done(&mut host, "one");
    comes(
        &mut host,
        "b",
        vec![wave("one", &["a"]), wave("two", &["b"]), wave("three", &["c"])],
    );
    host.accepted("evict a").gone(&["a"]);
    host.does("step modes before-wave wave two");
    done(&mut host, "two");
    host.accepted("evict b").gone(&["b"]);
    host.does("step modes before-wave wave three");
}

#[test]
fn hooks_of_a_wave_that_has_begun_run_again_for_it_alone() {
    let mut host = begun(
        &[pod("a"), pod("b")],
        vec![wave("one", &["a"]), wave("two", &["b"])],
    );
    done(&mut host, "one");
    host.accepted("evict a").gone(&["a"]);
    done(&mut host, "two");
    host.does("evict b");
    // The wave of the first one is over, that of the second one runs.
    comes(&mut host, "n", vec![graceful("one", &["n"]), wave("two", &["b"])]);
    host.written("save");
    assert_eq!(host.told(), ["n"]);
    comes(
        &mut host,
        "m",
        vec![wave("one", &["n"]), wave("two", &["b", "m"])],
    );
    reopened(&mut host);
    assert_eq!(host.told(), ["m"]);
    host.waits("ns/b EvictionRequested\nns/m HookRunning\nns/n HookRunning");
    // Neither holds the other up, nor the pod that was there.
    done(&mut host, "two");
    host.does("evict m");
    let message = String::new();
    host.answer("evict b", Answer::Evict(EvictAnswer::Unreachable { message }));
    host.wait(1_000);
    assert!(host.asks("evict b"));
    done(&mut host, "one");
    assert!(host.asks("evict n"));
}

#[test]
fn hooks_run_again_for_a_pod_that_came_while_no_process_ran() {
    let mut first = begun(&[pod("a")], vec![wave("one", &["a"])]);
    done(&mut first, "one");
    first.does("evict a");
    // A budget holds it. The process ends, and the next one continues with a pod more.
    let saved = first.last_checkpoint();
    let came = |name: &str, millis: u64| Pod {
        created: Time::from_millis(millis),
        ..pod(name)
    };
    let mut host = Host::resume(modes(), saved.clone());
    let cordoned = Node {
        unschedulable: true,
        checkpoint: Some(saved),
        ..node()
    };
    host.begin_with(cordoned, &[pod("a"), came("n", 1)], &[])
        .planned("modes", sorts(vec![wave("one", &["a", "n"])]));
    // The others do not wait for that.
    host.does("evict a").wait(1_000);
    host.planned("modes", sorts(vec![wave("one", &["a", "n"])]));
    reopened(&mut host);
    assert_eq!(host.told(), ["n"]);
    host.waits("ns/a EvictionRequested\nns/n HookRunning");
    done(&mut host, "one");
    host.does("evict n");
    // A process after that knows that it was told.
    let saved = host.last_checkpoint();
    assert_eq!(saved.counts.newest, Time::from_millis(1));
}

#[test]
fn it_counts_among_the_pods_that_leave_its_wave_at_once() {
    let one_by_one = |pods: &[&str]| Wave {
        max_parallel: Some(1),
        ..wave("one", pods)
    };
    let mut host = begun(&[pod("a")], vec![one_by_one(&["a"])]);
    done(&mut host, "one");
    host.does("evict a");
    comes(&mut host, "n", vec![one_by_one(&["a", "n"])]);
    reopened(&mut host);
    done(&mut host, "one");
    host.does("").accepted("evict a").gone(&["a"]).does("evict n");
}

#[test]
fn a_hook_that_has_not_finished_is_called_with_it() {
    let mut host = begun(&[pod("a")], vec![wave("one", &["a"])]);
    host.stepped("step modes before-wave", pending(5));
    comes(&mut host, "n", vec![wave("one", &["a", "n"])]);
    host.does("").wait(4_000);
    assert_eq!(host.told(), ["a", "n"]);
    // The next one comes while the hook takes its last step.
    comes(&mut host, "m", vec![wave("one", &["a", "n", "m"])]);
    host.stepped("step modes before-wave", StepOutcome::Done);
    assert_eq!(host.told(), ["a", "n", "m"]);
    done(&mut host, "one");
    host.does("evict a\nevict n\nevict m");
}

#[test]
fn a_hook_that_has_finished_before_its_wave_begins_is_called_again() {
    let mut request = modes();
    request.policies.push(PolicyInfo {
        name: "second".to_owned(),
        phases: vec![HookPhase::BeforeWave],
        ..PolicyInfo::default()
    });
    let mut host = Host::new(request);
    let cordoned = Node {
        unschedulable: true,
        ..node()
    };
    host.begin_with(cordoned, &[pod("a")], &[])
        .planned("modes", sorts(vec![wave("one", &["a"])]))
        .written("save");
    done(&mut host, "one");
    host.stepped("step second before-wave", pending(60));
    comes(&mut host, "n", vec![wave("one", &["a", "n"])]);
    reopened(&mut host);
    assert_eq!(host.told(), ["a", "n"]);
    done(&mut host, "one");
    host.wait(60_000).does("step second before-wave wave one");
}

#[test]
fn without_hooks_it_leaves_with_its_wave_at_once_also_if_that_is_over() {
    let mut host = Host::new(Request {
        policies: vec![crate::harness::planner("modes")],
        ..request()
    });
    host.begin(&[pod("a"), pod("b")])
        .planned("modes", sorts(vec![graceful("one", &["a"]), wave("two", &["b"])]))
        .written("cordon");
    host.accepted("evict a").gone(&["a"]).does("evict b");
    comes(&mut host, "n", vec![graceful("one", &["n"]), wave("two", &["b"])]);
    host.does("evict n grace 5\nsave evicting, ours");
}

#[test]
fn a_late_pod_is_forced_at_the_deadline_after_its_hook() {
    let mut request = modes();
    request.deadline = Some(crate::harness::START + Duration::from_secs(180));
    request.settings.at_deadline = Some(scupper_engine::ForceAtDeadline {
        pods: scupper_engine::ForcedPods::default(),
        grace_seconds: 20,
        within: Duration::from_secs(60),
    });
    let mut host = Host::new(request);
    let cordoned = Node {
        unschedulable: true,
        ..node()
    };
    host.begin_with(cordoned, &[pod("a")], &[])
        .planned("modes", sorts(vec![wave("one", &["a"])]))
        .written("save holding")
        .written("save evicting");
    done(&mut host, "one");
    comes(&mut host, "n", vec![wave("one", &["a", "n"])]);
    reopened(&mut host);
    host.stepped("step modes before-wave", pending(150));
    host.wait(119_000).does("delete a grace 20").wait(20_000).does("");
    host.waits("ns/a EvictionRequested\nns/n HookRunning");
    host.wait(20_000).does("step modes before-wave wave one");
    done(&mut host, "one");
    host.does("delete n grace 10");
}
