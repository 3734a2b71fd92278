//! Hooks: their order, their state, and the effect of failures.

use std::time::Duration;

use crate::harness::{Host, hooks, planner, pod, request};
use scupper_engine::{Event, HookPhase, Outcome, Request, StepOutcome, Verdict, Wave, whole_millis};

pub(crate) fn pending(state: &str, after_millis: u64) -> StepOutcome {
    StepOutcome::Pending {
        state: state.as_bytes().to_vec(),
        again_after: Duration::from_millis(after_millis),
        progress: format!("at {state}"),
        waiting_for: Vec::new(),
    }
}

fn failed(retry_after: Option<u64>) -> StepOutcome {
    StepOutcome::Failed {
        message: "no answer".to_owned(),
        retry_after: retry_after.map(Duration::from_secs),
    }
}

fn with_hooks(phases: &[HookPhase]) -> Host {
    Host::new(Request {
        policies: vec![hooks("slurm", phases), hooks("vms", phases)],
        ..request()
    })
}

#[test]
fn hooks_of_a_phase_stand_in_a_row_and_are_saved_before_the_next() {
    let mut host = with_hooks(&[HookPhase::BeforeDrain]);
    host.begin(&[pod("a")])
        .written("cordon")
        .does("step slurm before-drain node");
    host.waits("ns/a HookRunning");
    host.stepped("step slurm", StepOutcome::Done)
        .does("save holding, ours");
    host.written("save").does("step vms before-drain node");
    host.stepped("step vms", StepOutcome::Done)
        .does("save holding, ours");
    host.written("save").does("evict a");
}

#[test]
fn a_state_goes_with_the_version_that_wrote_it() {
    let mut host = with_hooks(&[HookPhase::BeforeCordon]);
    host.begin(&[pod("a")]).does("step slurm before-cordon node");
    host.stepped_by("step", pending("one", 1_000), Some(3))
        .written("save");
    assert_eq!(host.last_checkpoint().hooks[0].state_version, Some(3));
    host.wait(1_000)
        .does("step slurm before-cordon node after one of version 3");
    // The same bytes under another version are another state.
    host.stepped_by("step", pending("one", 1_000), Some(4))
        .written("save");
    assert_eq!(host.last_checkpoint().hooks[0].state_version, Some(4));
    host.wait(1_000)
        .does("step slurm before-cordon node after one of version 4");
    // An empty state has no version.
    host.stepped_by("step", pending("", 1_000), Some(4))
        .written("save");
    assert_eq!(host.last_checkpoint().hooks[0].state_version, None);
    host.wait(1_000).does("step slurm before-cordon node");
}

#[test]
fn a_hooks_state_is_saved_before_its_next_step_and_only_when_it_changed() {
    let mut host = with_hooks(&[HookPhase::BeforeCordon]);
    host.begin(&[pod("a")]).does("step slurm before-cordon node");
    host.stepped("step", pending("one", 5_000))
        .does("save preparing, not ours");
    host.wait(60_000)
        .does("")
        .written("save")
        .does("step slurm before-cordon node after one");
    host.stepped("step", pending("one", 5_000))
        .wait(4_999)
        .does("")
        .wait(1);
    host.does("step slurm before-cordon node after one");
}

/// The number of steps and of saves in a minute, if the hook is called again as soon as possible.
fn in_a_minute(state: impl Fn(u32) -> String) -> (u32, u32) {
    let mut host = with_hooks(&[HookPhase::BeforeDrain]);
    host.begin(&[pod("a")]).written("cordon").skip();
    let (mut steps, mut saves) = (0, 0);
    let end = host.now + Duration::from_secs(60);
    while host.now < end {
        steps += 1;
        host.stepped("step", pending(&state(steps), 0));
        while !host.asks("step") && host.now < end {
            if host.asks("save") {
                saves += 1;
                host.written("save");
            } else {
                let next = host.drain.poll_timeout().unwrap_or(end);
                host.wait(whole_millis(next.since(host.now)));
            }
        }
    }
    (steps, saves)
}

#[test]
fn a_hook_without_pauses_writes_the_node_once_a_second() {
    let (steps, saves) = in_a_minute(|step| format!("step {step}"));
    assert!((60..=71).contains(&saves), "{saves} saves");
    // Each step builds on the saved state of the one before.
    assert!(steps <= saves + 1, "{steps} steps and {saves} saves");
    // Without a change there is nothing to save, however often the hook is called.
    let (steps, saves) = in_a_minute(|_| "the same".to_owned());
    assert!(steps > 500 && saves == 1, "{steps} steps and {saves} saves");
}

#[test]
fn a_finished_hook_is_saved_at_once() {
    let mut host = with_hooks(&[HookPhase::BeforeDrain]);
    host.begin(&[pod("a")]).written("cordon").skip();
    for step in 0..10 {
        host.stepped("step", pending(&step.to_string(), 0))
            .wait(100)
            .written("save")
            .wait(100);
    }
    host.stepped("step slurm", StepOutcome::Done).skip();
    assert!(host.asks("save"), "what is through is saved at once");
}

#[test]
fn steps_are_taken_within_the_hosts_bounds() {
    for (again_after, bound) in [(0, 100), (7_000, 7_000), (86_400_000, 300_000)] {
        let mut host = with_hooks(&[HookPhase::BeforeDrain]);
        host.begin(&[])
            .written("cordon")
            .stepped("step", pending("", again_after))
            .does("");
        host.wait(bound - 1)
            .does("")
            .wait(1)
            .does("step slurm before-drain node");
    }
    for (retry, bound) in [(0, 1_000), (9, 9_000), (86_400, 300_000)] {
        let mut host = with_hooks(&[HookPhase::BeforeDrain]);
        host.begin(&[])
            .written("cordon")
            .stepped("step", failed(Some(retry)))
            .does("");
        host.wait(bound - 1)
            .does("")
            .wait(1)
            .does("step slurm before-drain node");
    }
}

#[test]
fn hooks_run_for_each_wave_and_pod() {
    let mut host = with_hooks(&[HookPhase::BeforeWave, HookPhase::BeforeEvict]);
    host.begin(&[pod("a"), pod("b")])
        .written("cordon")
        .does("step slurm before-wave wave all");
    host.stepped("step slurm", StepOutcome::Done).written("save");
    host.stepped("step vms", StepOutcome::Done).written("save");
    host.does("step slurm before-evict pod a\nstep slurm before-evict pod b");
    host.stepped("step slurm before-evict pod b", StepOutcome::Done)
        .does("save evicting, ours");
    host.written("save").does("step vms before-evict pod b");
    host.stepped("step vms before-evict pod b", StepOutcome::Done)
        .written("save")
        .does("evict b");
    host.waits("ns/a HookRunning\nns/b EvictionRequested");
}

#[test]
fn a_pod_that_ends_by_itself_needs_no_hook() {
    let mut host = with_hooks(&[HookPhase::BeforeEvict]);
    host.begin(&[pod("a")])
        .written("cordon")
        .does("step slurm before-evict pod a");
    host.gone(&["a"])
        .does("list-pods")
        .stepped("step slurm", failed(None))
        .does("");
    host.listed(&[]).written("save").ends(&Outcome::Drained);
}

#[test]
fn the_node_is_listed_again_after_the_last_hooks() {
    let mut host = with_hooks(&[HookPhase::AfterDrain]);
    host.begin(&[])
        .written("cordon")
        .does("list-pods")
        .listed(&[])
        .does("step slurm after-drain node");
    host.stepped("step", StepOutcome::Done).written("save");
    host.stepped("step", StepOutcome::Done)
        .written("save")
        .does("list-pods");
    // A pod arrived while the hooks ran.
    host.listed(&[pod("late")])
        .wait(1_000)
        .does("evict late")
        .accepted("evict late")
        .gone(&["late"]);
    host.does("list-pods")
        .listed(&[])
        .does("save finished, ours")
        .written("save")
        .ends(&Outcome::Drained);
}

#[test]
fn a_hook_that_fails_for_good_ends_the_drain() {
    let too_long = StepOutcome::Pending {
        state: vec![0; 1025],
        again_after: Duration::ZERO,
        progress: String::new(),
        waiting_for: Vec::new(),
    };
    let rows = [
        (failed(None), "before-drain hook: no answer"),
        (
            too_long,
            "before-drain hook: its state is 1025 bytes long: at most 1024 can be kept",
        ),
    ];
    for (outcome, message) in rows {
        let mut host = with_hooks(&[HookPhase::BeforeDrain, HookPhase::OnCancel]);
        host.begin(&[pod("a")]).written("cordon").stepped("step", outcome);
        host.does("step slurm on-cancel node\nsave rolling back, ours");
        host.stepped("step slurm on-cancel", StepOutcome::Done)
            .written("save")
            .written("save");
        host.stepped("step vms on-cancel", failed(None)).written("save");
        // The cordon stays, and its mark with it.
        host.does("save finished, ours").written("save");
        host.ends(&Outcome::PolicyFailed {
            policy: "slurm".to_owned(),
            message: message.to_owned(),
        });
    }
}

#[test]
fn a_pause_stops_steps_and_evictions_and_nothing_else() {
    let mut host = with_hooks(&[HookPhase::BeforeDrain]);
    host.begin(&[pod("a")])
        .written("cordon")
        .stepped("step", pending("one", 1_000))
        .does("save holding, ours");
    host.handle(Event::Pause).written("save").wait(600_000).does("");
    assert_eq!(host.drain.outcome(), None);
}

#[test]
fn a_repeated_answer_counts_once() {
    let mut host = with_hooks(&[HookPhase::BeforeDrain]);
    host.begin(&[])
        .written("cordon")
        .stepped("step slurm", pending("one", 1_000));
    host.answer_again(
        "step slurm",
        scupper_engine::Answer::Step {
            outcome: StepOutcome::Done,
            state_version: None,
        },
    )
    .does("save holding, ours");
    host.written("save")
        .wait(1_000)
        .does("step slurm before-drain node after one");
}

#[test]
fn a_foreign_cordon_needs_no_hooks_before_it() {
    let mut host = with_hooks(&[HookPhase::BeforeCordon]);
    let cordoned = scupper_engine::Node {
        unschedulable: true,
        ..crate::harness::node()
    };
    host.begin_with(cordoned, &[], &[]).does("save holding, not ours");
}

#[test]
fn the_cordon_saves_that_the_last_hook_before_it_has_finished() {
    let mut host = with_hooks(&[HookPhase::BeforeCordon]);
    host.begin(&[pod("a")])
        .stepped("step slurm", StepOutcome::Done)
        .does("save preparing, not ours");
    host.written("save")
        .stepped("step vms", StepOutcome::Done)
        .does("");
    let saved = host.last_checkpoint();
    let seen = scupper_engine::Node {
        checkpoint: Some(saved),
        resource_version: "101".to_owned(),
        ..crate::harness::node()
    };
    host.handle(Event::Node(Some(seen))).does("cordon at 101");
    assert_eq!(host.last_checkpoint().done.len(), 2);
}

#[test]
fn a_step_is_told_which_pods_of_its_wave_or_of_the_plan_still_leave() {
    use HookPhase::{AfterDrain, BeforeDrain, BeforeEvict, BeforeWave, OnCancel};
    let phases = [BeforeDrain, BeforeWave, BeforeEvict, AfterDrain, OnCancel];
    let mut host = Host::new(Request {
        policies: vec![planner("p"), hooks("h", &phases)],
        ..request()
    });
    let pods = ["a", "b", "c", "kept"].map(pod);
    host.begin(&pods).planned("p", |plan| {
        plan.decisions[3].verdict = Verdict::Keep;
        plan.waves[0].pods = vec![pods[1].id.uid.clone()];
        let last = Wave {
            name: "last".to_owned(),
            pods: vec![pods[2].id.uid.clone(), pods[0].id.uid.clone()],
            ..plan.waves[0].clone()
        };
        plan.waves.push(last);
    });
    host.written("cordon");
    assert_eq!(host.told(), ["b", "c", "a"]);
    // One that has ended by itself no longer counts.
    host.gone(&["c"])
        .stepped("step h before-drain", pending("1", 1_000));
    host.written("save").wait(1_000);
    assert_eq!(host.told(), ["b", "a"]);
    host.stepped("step h before-drain", StepOutcome::Done)
        .written("save");
    assert_eq!(host.told(), ["b"], "before a wave");
    host.stepped("step h before-wave", StepOutcome::Done)
        .written("save");
    assert_eq!(host.told(), ["b", "a"], "before an eviction");
    host.stepped("step h before-evict", StepOutcome::Done)
        .written("save");
    host.accepted("evict b").gone(&["b"]);
    assert_eq!(host.told(), ["a"], "before the last wave");
    host.handle(Event::Cancel {
        reason: "the user changed their mind".to_owned(),
    });
    host.stepped("step h before-wave", StepOutcome::Done)
        .written("save");
    assert!(host.told().is_empty(), "after a cancel");
}

#[test]
fn a_hook_is_called_at_once_when_what_it_asked_about_changes() {
    let mut host = with_hooks(&[HookPhase::BeforeDrain]);
    let due = |policy: &str| Event::HookDue {
        policy: policy.to_owned(),
    };
    host.begin(&[pod("a")])
        .written("cordon")
        .does("step slurm before-drain node");
    host.stepped("step slurm", pending("", 60_000))
        .wait(10_000)
        .does("");
    // Another policy's hook has not begun.
    host.handle(due("vms")).does("");
    host.handle(due("slurm")).does("step slurm before-drain node");
    // The step that is being taken may have seen too little.
    host.handle(due("slurm")).does("");
    host.stepped("step slurm", pending("", 60_000))
        .does("step slurm before-drain node");
    host.stepped("step slurm", pending("", 60_000))
        .wait(59_999)
        .does("");
    host.wait(1).does("step slurm before-drain node");
}
