//! A later policy of a chain adds to what an earlier one decided, and takes nothing of it away.
#![expect(clippy::unwrap_used, reason = "helpers of a test fail by panicking")]

use std::time::Duration;

use scupper_sdk::{
    Decision, Draft, Drain, Hold, Plan, Pod, Verdict,
    testing::{Host, pod, sign},
};

const VERDICTS: [Verdict; 5] = [
    Verdict::Delete,
    Verdict::Evict,
    Verdict::AwaitCompletion,
    Verdict::Keep,
    Verdict::Refuse,
];

fn after(minutes: u64) -> Hold {
    Hold::at_most(Duration::from_secs(60 * minutes))
}

fn drain() -> Drain {
    let host = Host::new();
    let call = host.call(scupper_sdk::Phase::BeforeDrain, scupper_sdk::Subject::Node);
    call.drain
}

/// The plan that a policy with this name makes of a draft.
fn plan(pods: &[Pod], draft: Option<Plan>, name: &str, edit: impl FnOnce(&mut Draft<'_>)) -> Plan {
    let host = Host::new();
    host.pods(pods.to_vec());
    let before = draft.unwrap_or_else(|| host.draft().plan().clone());
    let mut draft = Draft::new(pods, before.clone());
    edit(&mut draft);
    let mut plan = draft.finish();
    sign(&mut plan, &before, name);
    plan
}

/// What both policies want, each a verdict and minutes.
fn chained(first: (Verdict, Option<u64>), second: (Verdict, Option<u64>)) -> (Decision, Option<String>) {
    let pods = [pod("batch/report"), pod("shop/cart")];
    let wish = |(verdict, minutes): (Verdict, Option<u64>), name: &'static str| {
        let report = &pods[0];
        move |draft: &mut Draft<'_>| {
            let hold = minutes.map(after);
            if draft.tighten(report, verdict, hold, format!("as {name} says")) {
                draft.hold(name, &drain(), hold.map(|hold| (report, hold)));
            }
        }
    };
    let before = plan(&pods, None, "first", wish(first, "first"));
    let after = plan(&pods, Some(before), "second", wish(second, "second"));
    let decision = after.decisions.iter().find(|it| it.pod == pods[0].uid).unwrap();
    let wave = after.waves.iter().find(|wave| wave.pods.contains(&pods[0].uid));
    (decision.clone(), wave.map(|wave| wave.name.clone()))
}

#[test]
fn of_two_verdicts_the_stricter_one_counts_in_either_order() {
    for (at, first) in VERDICTS.into_iter().enumerate() {
        for (other, second) in VERDICTS.into_iter().enumerate() {
            let (decision, _) = chained((first, None), (second, None));
            assert_eq!(
                decision.verdict,
                VERDICTS[at.max(other)],
                "{first:?}, then {second:?}"
            );
            let policy = if other >= at { "second" } else { "first" };
            assert_eq!(decision.policy, policy, "{first:?}, then {second:?}");
        }
    }
}

#[test]
fn of_two_holds_both_count_in_either_order() {
    let evict = |minutes| (Verdict::Evict, Some(minutes));
    for (first, second, wave, policy) in [
        (evict(10), evict(240), "first-after-10m+second-after-4h", "second"),
        (evict(240), evict(10), "second-after-10m+first-after-4h", "first"),
        (evict(10), evict(10), "first-after-10m+second-after-10m", "second"),
        (evict(240), (Verdict::Evict, None), "first-after-4h", "first"),
        (
            (Verdict::Delete, Some(2)),
            evict(240),
            "first-after-2m+second-after-4h",
            "second",
        ),
    ] {
        let (decision, of) = chained(first, second);
        assert_eq!(of.as_deref(), Some(wave), "{decision:?}");
        assert_eq!(decision.verdict, Verdict::Evict);
        assert_eq!(decision.reason, format!("as {policy} says"));
    }
}

#[test]
fn a_longer_hold_and_a_stricter_verdict_join() {
    let (decision, wave) = chained((Verdict::Evict, Some(240)), (Verdict::Delete, Some(480)));
    assert_eq!(wave.as_deref(), Some("first-after-4h+second-after-8h"));
    assert_eq!(
        (decision.verdict, decision.reason.as_str()),
        (Verdict::Evict, "evicted after 8h: as first says; as second says")
    );
}

#[test]
fn a_pod_that_may_end_by_itself_gets_no_hold() {
    let (decision, wave) = chained((Verdict::AwaitCompletion, None), (Verdict::Evict, Some(240)));
    assert_eq!(
        (decision.verdict, wave.as_deref()),
        (Verdict::AwaitCompletion, Some("all"))
    );
    let (decision, _) = chained((Verdict::Evict, Some(240)), (Verdict::AwaitCompletion, None));
    assert_eq!(decision.verdict, Verdict::AwaitCompletion);
}

#[test]
fn the_longer_grace_counts() {
    let pods = [pod("batch/report")];
    let grace = |seconds| after(10).max_grace(Duration::from_secs(seconds));
    let held = |hold: Hold, name: &'static str| {
        let report = &pods[0];
        move |draft: &mut Draft<'_>| draft.hold(name, &drain(), [(report, hold)])
    };
    for (first, second, wave) in [
        (after(10), grace(5), "first-after-10m+second-after-10m"),
        (grace(5), after(10), "first-after-10m+second-after-10m"),
        (grace(30), grace(5), "first-after-10m+second-after-10m-grace-30s"),
        (after(5), grace(5), "first-after-5m+second-after-10m"),
    ] {
        let before = plan(&pods, None, "first", held(first, "first"));
        let after = plan(&pods, Some(before), "second", held(second, "second"));
        assert_eq!(after.waves.last().unwrap().name, wave);
    }
}

#[test]
fn a_held_pod_is_moved_only_to_a_hold_of_the_same_length() {
    let pods = [pod("batch/report"), pod("shop/cart")];
    let hold = |draft: &mut Draft<'_>| draft.hold("first", &drain(), [(&pods[0], after(10))]);
    let held = plan(&pods, None, "first", hold);
    for (wave, wanted) in [
        ("important", "first-after-10m"),
        ("third-after-5m", "first-after-10m"),
        ("third-after-10m", "first-after-10m+third-after-10m"),
        ("first-after-20m", "first-after-20m"),
    ] {
        let moved = plan(&pods, Some(held.clone()), "second", |draft| {
            for pod in &pods {
                draft.move_to_wave(pod, wave);
            }
        });
        let of = |pod: &Pod| moved.waves.iter().find(|wave| wave.pods.contains(&pod.uid));
        assert_eq!(of(&pods[0]).unwrap().name, wanted);
        assert_eq!(of(&pods[1]).unwrap().name, wave);
    }
}

#[test]
fn a_policy_may_change_its_own_mind_and_explain_what_an_earlier_one_decided() {
    let pods = [pod("batch/report")];
    let kept = plan(&pods, None, "first", |draft| {
        draft.keep(&pods[0], "so");
        draft.delete(&pods[0], "after all");
    });
    assert_eq!(kept.decisions[0].verdict, Verdict::Delete);
    let held = plan(&pods, None, "first", |draft| {
        draft.hold("first", &drain(), [(&pods[0], after(10))])
    });
    let explained = plan(&pods, Some(held), "second", |draft| {
        draft.explain(&pods[0], "a gang")
    });
    assert_eq!(explained.decisions[0].reason, "a gang; evictable");
    assert_eq!(explained.waves[0].name, "first-after-10m");
}

#[test]
fn an_explanation_of_the_hosts_draft_protects_nothing() {
    let pods = [pod("batch/report")];
    let explained = plan(&pods, None, "first", |draft| {
        draft.explain(&pods[0], "holds GPU-1")
    });
    let deleted = plan(&pods, Some(explained), "second", |draft| {
        draft.delete(&pods[0], "its time is over");
    });
    let decision = &deleted.decisions[0];
    assert_eq!(
        (decision.verdict, decision.policy.as_str()),
        (Verdict::Delete, "second")
    );
}

#[test]
fn an_explanation_leaves_the_reason_whole() {
    let pods = [pod("batch/report")];
    let long = plan(&pods, None, "first", |draft| {
        draft.explain(&pods[0], "x".repeat(300))
    });
    let decision = &long.decisions[0];
    assert_eq!(
        (decision.reason.len(), decision.policy.as_str()),
        (256, "kubectl")
    );
    assert!(decision.reason.ends_with("x; evictable"), "{}", decision.reason);
    let full = plan(&pods, Some(long.clone()), "second", |draft| {
        draft.explain(&pods[0], "a gang")
    });
    assert_eq!(full.decisions, long.decisions);
}

#[test]
fn overruling_loosens() {
    let pods = [pod("batch/report")];
    let kept = plan(&pods, None, "first", |draft| draft.keep(&pods[0], "so"));
    let evicted = plan(&pods, Some(kept), "second", |draft| {
        draft.overrule(&pods[0], Verdict::Evict, "the operator says so");
    });
    let decision = &evicted.decisions[0];
    assert_eq!(
        (decision.verdict, decision.policy.as_str()),
        (Verdict::Evict, "second")
    );
    let held = plan(&pods, None, "first", |draft| {
        draft.hold("first", &drain(), [(&pods[0], after(10))])
    });
    let freed = plan(&pods, Some(held), "second", |draft| {
        draft.overrule(&pods[0], Verdict::Evict, "the operator says so");
        draft.move_to_wave(&pods[0], "now");
    });
    assert_eq!(freed.waves[0].name, "now");
}
