//! Waves: order, parallelism, time limits, and the driver's own pod at the end.

use std::time::Duration;

use crate::harness::{Host, START, hooks, planner, pod, request};
use crate::hooks::pending;
use scupper_engine::{Event, HookPhase, Outcome, Request, Settings, StepOutcome, Uid, Verdict, Wave};

fn wave(name: &str, pods: &[&str]) -> Wave {
    let pods = pods.iter().map(|name| Uid::new(*name)).collect();
    Wave {
        name: name.to_owned(),
        pods,
        max_parallel: None,
        timeout: None,
        max_grace_seconds: None,
        policy: String::new(),
    }
}

/// A drain with these waves, cordoned.
fn in_waves(waves: Vec<Wave>) -> Host {
    let pods: Vec<_> = waves
        .iter()
        .flat_map(|wave| &wave.pods)
        .map(|uid| pod(uid.as_str()))
        .collect();
    let mut host = Host::new(Request {
        policies: vec![planner("waves")],
        ..request()
    });
    host.begin(&pods)
        .planned("waves", |plan| plan.waves = waves)
        .written("cordon");
    host
}

#[test]
fn a_wave_begins_when_the_one_before_is_gone() {
    let mut host = in_waves(vec![wave("apps", &["a", "b"]), wave("storage", &["s"])]);
    host.does("evict a\nevict b")
        .accepted("evict a")
        .accepted("evict b")
        .gone(&["a"])
        .does("");
    host.waits("ns/b Terminating\nns/s WaveNotStarted");
    host.gone(&["b"]).does("evict s");
}

/// Those of a wave that has not begun held nothing up.
#[test]
fn a_deadline_names_pods_of_earlier_waves_first() {
    let waves = vec![wave("apps", &["z"]), wave("storage", &["a"])];
    let mut host = Host::new(Request {
        policies: vec![planner("waves")],
        deadline: Some(START + Duration::from_secs(5)),
        ..request()
    });
    host.begin(&[pod("a"), pod("z")])
        .planned("waves", |plan| plan.waves = waves)
        .written("cordon")
        .does("evict z")
        .wait(5_000);
    let outcome = host.drain.outcome().map(ToString::to_string);
    let text = "the deadline passed with 2 pods still there, ns/z first";
    assert_eq!(outcome.as_deref(), Some(text));
}

#[test]
fn a_wave_past_its_time_no_longer_blocks_the_next_and_is_still_evicted() {
    let apps = Wave {
        timeout: Some(Duration::from_secs(60)),
        ..wave("apps", &["a", "b"])
    };
    let mut host = in_waves(vec![apps, wave("storage", &["s"])]);
    host.written("save evicting")
        .accepted("evict a")
        .handle(Event::PodApplied(crate::harness::ending(pod("a"))));
    let refused = || scupper_engine::EvictAnswer::Forbidden {
        message: String::new(),
    };
    host.answer("evict b", scupper_engine::Answer::Evict(refused()));
    host.wait(59_999)
        .skip()
        .waits("ns/a TerminatingPastGrace\nns/b Forbidden\nns/s WaveNotStarted");
    host.notices();
    host.wait(1).does("evict s").reports(
        "wave apps overdue
         wave storage 2/2: 1
         s waits: EvictionRequested",
    );
    host.answer("evict b", scupper_engine::Answer::Evict(refused()))
        .wait(60_000)
        .skip();
    host.accepted("evict b")
        .accepted("evict s")
        .gone(&["a", "b", "s"])
        .listed(&[])
        .written("save");
    host.ends(&Outcome::Drained);
}

#[test]
fn a_wave_evicts_no_more_pods_at_once_than_it_allows() {
    let apps = Wave {
        max_parallel: Some(2),
        ..wave("apps", &["a", "b", "c", "d"])
    };
    let mut host = in_waves(vec![apps]);
    host.does("evict a\nevict b")
        .accepted("evict a")
        .accepted("evict b")
        .does("");
    host.waits("ns/a Terminating\nns/b Terminating\nns/c ParallelLimit\nns/d ParallelLimit");
    host.gone(&["a"]).does("evict c");
}

#[test]
fn a_refused_pod_uses_no_slot_of_its_wave() {
    let apps = Wave {
        max_parallel: Some(1),
        ..wave("apps", &["a", "b"])
    };
    let mut host = in_waves(vec![apps]);
    let refused = scupper_engine::EvictAnswer::Forbidden {
        message: String::new(),
    };
    host.does("evict a")
        .answer("evict a", scupper_engine::Answer::Evict(refused))
        .does("evict b");
}

#[test]
fn a_wave_without_pods_is_passed_over() {
    let mut host = in_waves(vec![
        wave("empty", &[]),
        wave("gone", &["g"]),
        wave("apps", &["a"]),
    ]);
    host.gone(&["g"]).does("evict a");
    assert!(host.notices().contains("wave apps 3/3: 1"));
}

#[test]
fn the_drivers_own_pod_is_evicted_when_no_other_is_left() {
    let settings = Settings {
        own_pod: Some(pod("own").id),
        ..Settings::default()
    };
    let mut host = Host::new(Request {
        policies: vec![planner("waves")],
        settings,
        ..request()
    });
    host.begin(&[pod("a"), pod("own")]).planned("waves", |plan| {
        for decision in &mut plan.decisions {
            decision.verdict = Verdict::Evict;
        }
        let apps = Wave {
            timeout: Some(Duration::from_secs(1)),
            ..wave("apps", &["a"])
        };
        plan.waves = vec![apps, wave("driver", &["own"])];
    });
    host.written("cordon").does("evict a\nsave evicting, ours");
    host.written("save evicting").accepted("evict a");
    // The first wave's time has expired, but its pods are still here.
    host.wait(20_000).does("");
    host.handle(Event::PodApplied(pod("late"))).gone(&["a"]).does("");
    host.wait(1_000).does("plan waves").planned("waves", |plan| {
        plan.waves = vec![wave("apps", &["late"])];
    });
    host.does("evict late\nsave evicting, ours")
        .written("save")
        .accepted("evict late")
        .gone(&["late"])
        .does("evict own");
}

/// The second wave's name says that it is held for ten minutes from the start of the drain.
#[test]
fn a_limited_wave_holds_a_held_one_up_no_longer_than_that_is_held() {
    for (hook_takes, then_waits) in [(600_000, 0), (400_000, 200_000)] {
        let mut host = Host::new(Request {
            policies: vec![planner("waves"), hooks("slurm", &[HookPhase::BeforeDrain])],
            ..request()
        });
        host.begin(&[pod("a"), pod("b")]).planned("waves", |plan| {
            let all = Wave {
                timeout: Some(Duration::from_secs(600)),
                ..wave("all", &["a"])
            };
            plan.waves = vec![all, wave("jobs-after-10m", &["b"])];
        });
        host.written("cordon").wait(hook_takes);
        host.stepped("step slurm before-drain", StepOutcome::Done)
            .written("save");
        assert!(host.asks("evict a"));
        if then_waits > 0 {
            host.wait(then_waits - 1);
            assert!(!host.asks("evict b"), "after {hook_takes} ms");
            host.wait(1);
        }
        assert!(host.asks("evict b"), "after {hook_takes} ms");
    }
}

/// Another client deletes the pods of the first wave ten seconds after its hook has begun, and the second takes 100.
fn without_the_first_wave() -> Host {
    let mut host = Host::new(Request {
        policies: vec![planner("waves"), hooks("db", &[HookPhase::BeforeWave])],
        deadline: Some(START + Duration::from_secs(600)),
        ..request()
    });
    host.begin(&[pod("a"), pod("s")])
        .planned("waves", |plan| {
            plan.waves = vec![wave("apps", &["a"]), wave("storage", &["s"])];
        })
        .written("cordon");
    host.stepped("step db before-wave wave apps", pending("1", 30_000));
    host.written("save");
    host.wait(10_000).gone(&["a"]);
    host.stepped("step db before-wave wave storage", StepOutcome::Done)
        .written("save")
        .accepted("evict s");
    host.wait(100_000);
    host
}

#[test]
fn nothing_waits_for_the_hook_of_a_wave_whose_pods_have_gone() {
    let mut host = without_the_first_wave();
    host.handle(Event::Deadline(Some(host.now)));
    let outcome = host.drain.outcome();
    assert!(
        matches!(outcome, Some(Outcome::DeadlineExceeded { held_up: None, .. })),
        "{outcome:?}"
    );
    let mut host = without_the_first_wave();
    host.gone(&["s"]).listed(&[]).listed(&[]).written("save");
    assert_eq!(host.summary().totals.hook_wait, Duration::from_secs(10));
}
