//! Whatever a policy does to a draft, the finished plan is valid.

use std::time::Duration;

use scupper_sdk::{
    Decision, Draft, Plan, Pod, Verdict, Wave,
    testing::{Host, pod},
};

/// The plan after some edits, as lines of waves.
fn waves(pods: &[Pod], edit: impl FnOnce(&mut Draft<'_>)) -> Vec<String> {
    let plan = plan(pods, edit);
    let line = |wave: &Wave| format!("{}: {}", wave.name, wave.pods.join(" "));
    plan.waves.iter().map(line).collect()
}

fn plan(pods: &[Pod], edit: impl FnOnce(&mut Draft<'_>)) -> Plan {
    let host = Host::new();
    host.pods(pods.to_vec());
    let mut draft = Draft::new(pods, host.draft().plan().clone());
    edit(&mut draft);
    draft.finish()
}

/// Three pods named `a`, `b`, `c`, with these names as UIDs.
fn three() -> [Pod; 3] {
    ["a", "b", "c"].map(named)
}

fn named(name: &str) -> Pod {
    let mut pod = pod(&format!("test/{name}"));
    name.clone_into(&mut pod.uid);
    pod
}

fn driver() -> Pod {
    let mut driver = named("driver");
    driver.driver = true;
    driver
}

#[test]
fn an_untouched_draft_returns_the_same_plan() {
    let pods = [driver(), named("a"), named("b").of_daemon_set(), named("c")];
    let host = Host::new();
    host.pods(pods.clone());
    let before = host.draft().plan().clone();
    assert_eq!(Draft::new(&pods, before.clone()).finish(), before);
}

#[test]
fn a_kept_pod_is_removed_from_its_wave_but_keeps_its_turn() {
    let pods = three();
    assert_eq!(
        waves(&pods, |draft| draft.keep(&pods[1], "requested")),
        ["all: a c"]
    );
    let back = |draft: &mut Draft<'_>| {
        draft.keep(&pods[1], "requested");
        draft.delete(&pods[1], "no longer requested");
    };
    assert_eq!(waves(&pods, back), ["all: a b c"]);
}

#[test]
fn every_verdict_can_be_given_with_its_reason() {
    let pods = three();
    type Give = fn(&mut Draft<'_>, &Pod);
    for (give, verdict) in [
        ((|draft, pod| draft.evict(pod, "so")) as Give, Verdict::Evict),
        (|draft, pod| draft.delete(pod, "so"), Verdict::Delete),
        (
            |draft, pod| draft.await_completion(pod, "so"),
            Verdict::AwaitCompletion,
        ),
        (|draft, pod| draft.keep(pod, "so"), Verdict::Keep),
        (|draft, pod| draft.refuse(pod, "so"), Verdict::Refuse),
    ] {
        let plan = plan(&pods, |draft| give(draft, &pods[0]));
        let Decision {
            pod,
            verdict: given,
            reason,
            ..
        } = &plan.decisions[0];
        assert_eq!((pod.as_str(), *given, reason.as_str()), ("a", verdict, "so"));
        let is_in_wave = plan.waves.iter().any(|wave| wave.pods.contains(pod));
        assert_eq!(is_in_wave, verdict.leaves(), "{verdict:?}");
    }
}

#[test]
fn a_reason_is_one_line_of_at_most_256_bytes() {
    let pods = three();
    let long = format!("two\nlines {}", "\u{20ac}".repeat(200));
    let plan = plan(&pods, |draft| draft.keep(&pods[0], &long));
    let reason = &plan.decisions[0].reason;
    assert!(
        reason.starts_with("two lines \u{20ac}") && reason.len() <= 256,
        "{reason}"
    );
    assert!(
        reason.len() > 250,
        "it cuts off more than it must: {}",
        reason.len()
    );
}

#[test]
fn waves_leave_in_the_order_that_is_asked_for() {
    let pods = ["a/web", "a/db", "a/job", "a/x"].map(pod);
    let moved = |draft: &mut Draft<'_>| {
        for (pod, wave) in pods.iter().zip(["web", "db", "job"]) {
            draft.move_to_wave(pod, wave);
        }
    };
    let before = waves(&pods, |draft| {
        draft.order_waves(["job", "db", "web"]);
        moved(draft);
    });
    let after = waves(&pods, |draft| {
        moved(draft);
        draft.order_waves(["job", "nobody's", "db", "web", "job"]);
    });
    assert_eq!(
        before,
        [
            "all: uid-of-a-x",
            "job: uid-of-a-job",
            "db: uid-of-a-db",
            "web: uid-of-a-web"
        ]
    );
    assert_eq!(after, before);
    // Others keep their order.
    let some = waves(&pods, |draft| {
        moved(draft);
        draft.order_waves(["job", "web"]);
    });
    assert_eq!(
        some,
        [
            "all: uid-of-a-x",
            "job: uid-of-a-job",
            "web: uid-of-a-web",
            "db: uid-of-a-db"
        ]
    );
    // No hold delays a wave that was before it.
    let around_a_hold = waves(&pods, |draft| {
        draft.move_to_wave(&pods[0], "pods-after-10m");
        draft.move_to_wave(&pods[1], "late");
        draft.order_waves(["late", "pods-after-10m", "all"]);
    });
    assert_eq!(
        around_a_hold,
        [
            "late: uid-of-a-db",
            "all: uid-of-a-job uid-of-a-x",
            "pods-after-10m: uid-of-a-web"
        ]
    );
    let of_host = waves(&pods, |draft| {
        moved(draft);
        draft.order_waves(["web", "all"]);
    });
    assert_eq!(
        of_host,
        [
            "web: uid-of-a-web",
            "all: uid-of-a-x",
            "db: uid-of-a-db",
            "job: uid-of-a-job"
        ]
    );
}

#[test]
fn pods_move_to_waves_in_the_order_of_the_moves() {
    let pods = three();
    let moved = waves(&pods, |draft| {
        draft.move_to_wave(&pods[2], "late");
        draft.move_to_wave(&pods[0], "late");
    });
    assert_eq!(moved, ["all: b", "late: c a"]);
    let all = waves(&pods, |draft| {
        pods.iter().for_each(|pod| draft.move_to_wave(pod, "late"))
    });
    assert_eq!(all, ["late: a b c"], "an empty wave vanishes");
    let back = waves(&pods, |draft| {
        draft.move_to_wave(&pods[0], "late");
        draft.move_to_wave(&pods[0], "all");
    });
    assert_eq!(back, ["all: b c a"]);
}

#[test]
fn a_pod_newly_marked_for_eviction_joins_the_last_wave_before_the_drivers() {
    let pods = [named("a"), named("b").of_daemon_set(), driver()];
    assert_eq!(
        waves(&pods, |draft| draft.evict(&pods[1], "so")),
        ["all: a b", "driver: driver"]
    );
    let alone = [named("b").of_daemon_set()];
    assert_eq!(waves(&alone, |draft| draft.evict(&alone[0], "so")), ["all: b"]);
}

#[test]
fn the_driver_is_evicted_last_and_alone_whatever_a_policy_does() {
    let pods = [driver(), named("a"), named("b")];
    for (edit, expected) in [
        (
            (|_, _| {}) as fn(&mut Draft<'_>, &[Pod]),
            ["all: a b", "driver: driver"],
        ),
        (
            |draft, pods| draft.move_to_wave(&pods[0], "all"),
            ["all: a b", "driver: driver"],
        ),
        (
            |draft, pods| pods.iter().for_each(|pod| draft.move_to_wave(pod, "one")),
            ["one: a b", "driver: driver"],
        ),
        (
            |draft, pods| {
                pods.iter()
                    .rev()
                    .for_each(|pod| draft.move_to_wave(pod, "driver"))
            },
            ["driver: b a", "driver-last: driver"],
        ),
    ] {
        assert_eq!(waves(&pods, |draft| edit(draft, &pods)), expected);
    }
    let staying = waves(&pods, |draft| draft.keep(&pods[0], "so"));
    assert_eq!(staying, ["all: a b"]);
    let alone = [driver()];
    assert_eq!(
        waves(&alone, |_| {}),
        ["all: driver"],
        "the only pod is last in any wave"
    );
}

#[test]
fn the_drivers_own_wave_keeps_its_limits_when_it_moves() {
    let pods = [driver(), named("a")];
    let plan = plan(&pods, |draft| {
        draft.wave("driver").timeout(Duration::from_secs(9));
        draft.move_to_wave(&pods[1], "new");
    });
    let last = plan.waves.last().unwrap();
    assert_eq!((last.name.as_str(), last.timeout), ("driver", Some(9_000)));
}

#[test]
fn a_mirror_pod_is_never_evicted() {
    let mut mirror = named("static");
    mirror.mirror = true;
    let pods = [mirror, named("a")];
    let edit = |draft: &mut Draft<'_>| pods.iter().for_each(|pod| draft.delete(pod, "all must go"));
    let plan = plan(&pods, edit);
    assert_eq!(plan.decisions[0].verdict, Verdict::Keep);
    assert_eq!(plan.waves[0].pods, ["a"]);
}

#[test]
fn limits_of_waves_are_kept() {
    let pods = three();
    let plan = plan(&pods, |draft| {
        draft.move_to_wave(&pods[0], "slow");
        draft
            .wave("slow")
            .max_parallel(1)
            .timeout(Duration::from_millis(1500))
            .max_grace_period_seconds(7);
        draft.wave("empty").max_parallel(1);
    });
    assert_eq!(plan.waves.len(), 2);
    let slow = &plan.waves[1];
    assert_eq!(
        (slow.max_parallel, slow.timeout, slow.max_grace_period_seconds),
        (Some(1), Some(1_500), Some(7))
    );
}

#[test]
fn edits_of_a_pod_that_is_not_on_the_node_change_nothing() {
    let pods = three();
    let stranger = named("stranger");
    let moved = waves(&pods, |draft| {
        draft.evict(&stranger, "so");
        draft.move_to_wave(&stranger, "all");
        assert!(draft.decision(&stranger).is_none() && draft.wave_of(&stranger).is_none());
    });
    assert_eq!(moved, ["all: a b c"]);
}

#[test]
fn the_draft_can_be_read_while_it_is_edited() {
    let pods = three();
    plan(&pods, |draft| {
        assert_eq!(draft.wave_of(&pods[0]), Some("all"));
        draft.move_to_wave(&pods[0], "late");
        draft.keep(&pods[1], "so");
        assert_eq!(draft.wave_of(&pods[0]), Some("late"));
        assert_eq!(draft.wave_of(&pods[1]), None);
        let leaving: Vec<_> = draft.leaving().iter().map(|pod| pod.uid.as_str()).collect();
        assert_eq!(leaving, ["c", "a"]);
        assert_eq!(draft.pods().len(), 3);
    });
    let pods = [driver(), named("a"), named("b")];
    plan(&pods, |draft| {
        draft.move_to_wave(&pods[1], "late");
        let leaving: Vec<_> = draft.leaving().iter().map(|pod| pod.uid.as_str()).collect();
        assert_eq!(leaving, ["b", "a", "driver"]);
    });
}
