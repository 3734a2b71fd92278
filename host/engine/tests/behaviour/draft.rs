//! `kubectl drain`'s filters: one row for each rule and for each pair of rules that can match one pod.
#![expect(clippy::unwrap_used, reason = "helpers of a test fail by panicking")]

use std::collections::BTreeSet;
use std::time::Duration;

use crate::harness::{PodPhase, controller, pod};
use scupper_engine::{
    Deletion, Filters, MIRROR_ANNOTATION, Operator, Pod, PodRef, Requirement, Selector, Settings, Time, Uid,
    Verdict, check, draft,
};

const NOW: Time = Time::from_millis(500_000);

const DAEMON: &str = "DaemonSet-managed Pods (use --ignore-daemonsets to ignore)";
const LOCAL: &str = "Pods with local storage (use --delete-emptydir-data to override)";
const UNMANAGED: &str = "Pods that declare no controller (use --force to override)";

/// The changes of a row to a running pod of a ReplicaSet.
type Edit = fn(&mut Pod);

fn daemon(pod: &mut Pod) {
    pod.controller = Some(controller("DaemonSet", "ds"));
}

fn orphan(pod: &mut Pod) {
    daemon(pod);
    pod.controller.as_mut().unwrap().missing = true;
}

fn bare(pod: &mut Pod) {
    pod.controller = None;
}

fn local(pod: &mut Pod) {
    pod.empty_dir = true;
}

fn mirror(pod: &mut Pod) {
    pod.annotations
        .insert(MIRROR_ANNOTATION.to_owned(), "hash".to_owned());
    pod.controller.as_mut().unwrap().kind = "Node".to_owned();
}

fn finished(pod: &mut Pod) {
    pod.phase = PodPhase::Succeeded;
}

fn failed(pod: &mut Pod) {
    pod.phase = PodPhase::Failed;
}

/// Deleted 100 s ago, grace period included.
fn ending(pod: &mut Pod) {
    pod.deletion = Some(Deletion {
        at: Time::from_millis(400_000),
        grace_seconds: 30,
    });
}

fn flags(text: &str) -> Filters {
    Filters {
        force: text.contains('f'),
        ignore_daemonsets: text.contains('i'),
        delete_emptydir_data: text.contains('e'),
        skip_wait_for_delete_timeout: match text.contains('s') {
            true => Duration::from_secs(60),
            false => Duration::ZERO,
        },
        pod_selector: Selector {
            expressions: text.contains('l').then(not_web).into_iter().collect(),
            ..Selector::default()
        },
        disable_eviction: text.contains('d'),
        only_pods: None,
    }
}

fn not_web() -> Requirement {
    Requirement {
        key: "app".to_owned(),
        operator: Operator::NotIn,
        values: vec!["web".to_owned()],
    }
}

/// Of another application.
fn other(pod: &mut Pod) {
    pod.labels.insert("app".to_owned(), "other".to_owned());
}

/// Deleted for exactly a minute, which is not longer than a minute.
fn ending_for_a_minute(pod: &mut Pod) {
    pod.deletion = Some(Deletion {
        at: Time::from_millis(439_001),
        grace_seconds: 30,
    });
}

#[test]
fn the_filters_agree_with_kubectl() {
    use Verdict::{Evict, Keep, Refuse};
    // Flags: f --force, i --ignore-daemonsets, e --delete-emptydir-data, s --skip-wait-for-delete-timeout=60,
    // l --pod-selector='app notin (web)', d --disable-eviction.
    let not_found = "daemonsets.apps \"ds\" not found";
    let skipping = "pod \"p\" has DeletionTimestamp older than 60 seconds, skipping";
    let mirrored = "mirror of a static pod, which the kubelet runs from a file";
    let rows: &[(&[Edit], &str, Verdict, &str)] = &[
        (&[], "", Evict, "managed by ReplicaSet rs"),
        // 1: skip-deleted takes precedence over everything.
        (&[ending], "s", Keep, skipping),
        (&[ending], "", Evict, "managed by ReplicaSet rs"),
        (&[ending, bare], "s", Keep, skipping),
        (&[ending, daemon], "s", Keep, skipping),
        (&[ending_for_a_minute], "s", Evict, "managed by ReplicaSet rs"),
        (&[ending, bare], "", Refuse, UNMANAGED),
        // 2: DaemonSets; a finished pod of one is like any other.
        (&[daemon], "", Refuse, DAEMON),
        (&[daemon], "f", Refuse, DAEMON),
        (&[daemon], "i", Keep, "ignoring DaemonSet-managed Pods"),
        (&[daemon, local], "i", Keep, "ignoring DaemonSet-managed Pods"),
        (&[daemon, local], "", Refuse, DAEMON),
        (&[daemon, finished], "", Evict, "it has finished"),
        (&[orphan], "", Refuse, not_found),
        (&[orphan], "i", Refuse, not_found),
        // A later filter that is silent hides an earlier one's warning.
        (&[orphan], "f", Evict, "managed by DaemonSet ds"),
        (&[orphan, local], "f", Refuse, LOCAL),
        (&[orphan, finished], "", Evict, "it has finished"),
        // 3: mirror pods are kept before local storage is checked.
        (&[mirror], "", Keep, mirrored),
        (&[mirror, local], "", Keep, mirrored),
        (&[mirror, finished], "fie", Keep, mirrored),
        // 4: local storage.
        (&[local], "", Refuse, LOCAL),
        (&[local], "f", Refuse, LOCAL),
        (&[local], "e", Evict, "managed by ReplicaSet rs"),
        (&[local, finished], "", Evict, "it has finished"),
        (&[local, failed], "", Evict, "it has finished"),
        // 5: no controller.
        (&[bare], "", Refuse, UNMANAGED),
        (&[bare], "ie", Refuse, UNMANAGED),
        (&[bare], "f", Evict, "deleting Pods that declare no controller"),
        (&[bare, finished], "", Evict, "it has finished"),
        (&[bare, failed], "", Evict, "it has finished"),
        (&[bare, local], "", Refuse, LOCAL),
        (&[bare, local], "e", Refuse, UNMANAGED),
        (&[bare, local], "f", Refuse, LOCAL),
        (
            &[bare, local],
            "fe",
            Evict,
            "deleting Pods that declare no controller",
        ),
        // A pod outside the selector blocks nothing, whatever it is.
        (&[], "l", Keep, "not selected by --pod-selector"),
        (&[bare, local], "l", Keep, "not selected by --pod-selector"),
        (&[other], "l", Evict, "managed by ReplicaSet rs"),
        (&[other, bare], "l", Refuse, UNMANAGED),
        // Without evictions the same rules decide.
        (&[], "d", Verdict::Delete, "managed by ReplicaSet rs"),
        (&[bare], "d", Refuse, UNMANAGED),
        (
            &[bare],
            "fd",
            Verdict::Delete,
            "deleting Pods that declare no controller",
        ),
        (&[mirror], "d", Keep, mirrored),
    ];
    for (edits, with, verdict, reason) in rows {
        let mut pod = pod("p");
        edits.iter().for_each(|edit| edit(&mut pod));
        let settings = Settings {
            filters: flags(with),
            ..Settings::default()
        };
        let plan = draft(std::slice::from_ref(&pod), &settings, NOW);
        let decision = plan.decision(&pod.id.uid).unwrap();
        assert_eq!(
            (decision.verdict, &*decision.reason),
            (*verdict, *reason),
            "{pod:?} with {with:?}"
        );
        assert_eq!(decision.policy, "kubectl");
        assert_eq!(plan.waves.len(), usize::from(verdict.leaves()));
        assert_eq!(check(&plan, &[pod], &settings), Ok(()));
    }
}

#[test]
fn a_daemon_set_of_another_group_is_one() {
    let mut pod = pod("p");
    daemon(&mut pod);
    pod.controller.as_mut().unwrap().api_version = "example.com/v1".to_owned();
    for (with, verdict) in [
        ("", Verdict::Refuse),
        ("f", Verdict::Refuse),
        ("i", Verdict::Keep),
    ] {
        let settings = Settings {
            filters: flags(with),
            ..Settings::default()
        };
        let plan = draft(std::slice::from_ref(&pod), &settings, NOW);
        assert_eq!(plan.decision(&pod.id.uid).unwrap().verdict, verdict, "{with:?}");
    }
}

#[test]
fn numbers_are_compared_as_numbers() {
    let rows = [
        (Operator::GreaterThan, "9", "10", true),
        (Operator::GreaterThan, "10", "10", false),
        (Operator::LessThan, "10", "9", true),
        (Operator::LessThan, "10", "-1", true),
        (Operator::LessThan, "10", "ten", false),
        (Operator::GreaterThan, "x", "10", false),
    ];
    for (operator, bound, value, selects) in rows {
        let selector = Selector {
            expressions: vec![Requirement {
                key: "n".to_owned(),
                operator,
                values: vec![bound.to_owned()],
            }],
            ..Selector::default()
        };
        let labels = [("n".to_owned(), value.to_owned())].into();
        assert_eq!(selector.matches(&labels), selects, "{value} {operator:?} {bound}");
        assert!(!selector.matches(&[].into()), "{operator:?} of nothing");
    }
}

#[test]
fn pods_that_the_request_does_not_name_are_kept() {
    let mut settings = Settings::default();
    let named = BTreeSet::from(["a".to_owned()]);
    settings.filters.only_pods = Some([(pod("a").id.namespace, named)].into());
    let mut elsewhere = pod("a");
    elsewhere.id.namespace = "other".to_owned();
    elsewhere.id.uid = Uid::new("elsewhere");
    let plan = draft(&[pod("a"), pod("b"), elsewhere], &settings, Time::default());
    let kept = plan
        .decisions
        .iter()
        .filter(|decision| decision.verdict == Verdict::Keep);
    assert!(
        kept.clone()
            .all(|decision| decision.reason == "not named by the request")
    );
    assert_eq!(kept.count(), 2);
    assert_eq!(plan.leaving().count(), 1);
}

#[test]
fn the_drivers_own_pod_is_kept_whatever_the_filters_match() {
    let mut own = pod("driver");
    bare(&mut own);
    // A new pod of the same name on this node is not the driver.
    let id = PodRef {
        uid: Uid::new("another"),
        ..own.id.clone()
    };
    for (id, verdict) in [(own.id.clone(), Verdict::Keep), (id, Verdict::Refuse)] {
        let settings = Settings {
            own_pod: Some(id),
            ..Settings::default()
        };
        let plan = draft(std::slice::from_ref(&own), &settings, NOW);
        assert_eq!(plan.decision(&own.id.uid).unwrap().verdict, verdict);
    }
}

#[test]
fn pods_are_evicted_in_one_wave_by_namespace_and_name() {
    let mut far = pod("a");
    far.id.namespace = "zz".to_owned();
    far.id.uid = Uid::new("far");
    let pods = [far, pod("c"), pod("b")];
    let plan = draft(&pods, &Settings::default(), NOW);
    let [wave] = &plan.waves[..] else {
        panic!("{:?}", plan.waves)
    };
    assert_eq!(wave.name, "all");
    let order: Vec<_> = wave.pods.iter().map(|uid| uid.as_str()).collect();
    assert_eq!(order, ["b", "c", "far"]);
    assert_eq!(
        (wave.max_parallel, wave.timeout, wave.max_grace_seconds),
        (None, None, None)
    );
}

#[test]
fn a_grace_period_that_may_only_lengthen_refuses_the_pods_that_it_would_shorten() {
    let mut long = pod("long");
    long.grace_seconds = 60;
    let mut short = pod("short");
    short.grace_seconds = 5;
    let mut deleted = long.clone();
    ending(&mut deleted);
    for (pod, grace_seconds, only_longer, verdict) in [
        (&long, Some(0), true, Verdict::Refuse),
        (&long, Some(59), true, Verdict::Refuse),
        (&long, Some(60), true, Verdict::Evict),
        (&long, Some(59), false, Verdict::Evict),
        (&long, None, true, Verdict::Evict),
        (&short, Some(59), true, Verdict::Evict),
        // Its grace period is already running.
        (&deleted, Some(0), true, Verdict::Evict),
    ] {
        let settings = Settings {
            grace_seconds,
            grace_only_longer: only_longer,
            ..Settings::default()
        };
        let plan = draft(std::slice::from_ref(pod), &settings, NOW);
        let decision = plan.decision(&pod.id.uid).unwrap();
        assert_eq!(
            decision.verdict, verdict,
            "{grace_seconds:?} {only_longer}: {decision:?}"
        );
        if verdict == Verdict::Refuse {
            assert!(decision.reason.contains("1m00s"), "{decision:?}");
            assert!(decision.reason.contains("drain.allow-overrides"), "{decision:?}");
        }
    }
}
