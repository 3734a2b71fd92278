//! A node of hundreds of pods, whose drain another process carries out: the published status has limited room, and what is
//! shown of the pods is counted truly all the same.

use scupper_engine::{Controller, Deletion, Notice, Phase, Pod, PodRef, Reason, Selector, Uid};

use super::super::drain_status::{PlanSummary, StatusBuilder, status_from_text, status_to_text};
use super::super::fixture::{mark, running, status as bare};
use super::super::{LeaseHolder, NodeStatus, PodList, status_lines};
use super::samples::{NOW, ago, budget};

/// Pods that stay, besides those to evict.
const KEPT: usize = 5;
const WHY: &str = "The disruption budget web needs 400 healthy pods and has 400 currently";

fn of(kind: &str, name: String, number: usize) -> Pod {
    let mut pod = running(&name);
    pod.id.uid = Uid::new(format!("6f3a2f0e-7c0e-4f3b-{}-{number:012}", &kind[..4]));
    pod.controller = Some(Controller {
        api_version: "apps/v1".to_owned(),
        kind: kind.to_owned(),
        name: kind.to_lowercase(),
        uid: Uid::new(kind),
        missing: false,
    });
    pod
}

/// So many pods are to leave, for such reasons, and the driver has published what has room.
fn node(pods: usize, reason: impl Fn(usize) -> Reason) -> NodeStatus {
    let kept = (0..KEPT).map(|number| of("DaemonSet", format!("agent-{number}"), number));
    let kept: Vec<_> = kept.collect();
    let mut leaving: Vec<_> = (0..pods)
        .map(|number| of("ReplicaSet", format!("web-7d9f-{number:03}"), number))
        .collect();
    let waiting: Vec<(PodRef, Reason)> = (0..)
        .map(reason)
        .zip(&leaving)
        .map(|(why, pod)| (pod.id.clone(), why))
        .collect();
    let mut builder = StatusBuilder::default().with_plan();
    for (number, (pod, reason)) in (0..).zip(&waiting) {
        let (pod, reason) = (pod.clone(), reason.clone());
        // Each was refused at a moment of its own.
        builder.notice(ago(60 + number), &Notice::PodWaits { pod, reason });
    }
    let stays = kept.iter().map(|pod| (pod.id.clone(), Reason::Kept));
    let all = waiting.iter().cloned().chain(stays).collect();
    let mut view = builder.build(ago(4), "id", all, None);
    view.plan = Some(PlanSummary {
        leaving: u32::try_from(pods).unwrap(),
        staying: u32::try_from(KEPT).unwrap(),
        ..PlanSummary::default()
    });
    for (pod, (_, reason)) in leaving.iter_mut().zip(&waiting) {
        let deletion = Deletion {
            at: NOW,
            grace_seconds: 30,
        };
        pod.deletion = matches!(reason, Reason::Terminating { .. }).then_some(deletion);
    }
    let mut status = bare(mark("LifecycleEvent", Phase::Evicting));
    status.driver = status_from_text(&status_to_text(&view));
    status.pods = leaving.into_iter().chain(kept).collect();
    status.budgets = vec![scupper_engine::Budget {
        selector: Selector::EVERYTHING,
        ..budget("web", "", 0, true)
    }];
    status.lease_holder = LeaseHolder::Held {
        by: "the driver on worker-1".to_owned(),
        silent_since: None,
    };
    status
}

fn shown(status: &NodeStatus) -> String {
    status_lines(status, NOW, PodList::ByWorkload).join("\n")
}

#[test]
fn each_of_hundreds_of_pods_has_its_reason_in_the_status() {
    for pods in [200, 500] {
        let reason = |number: usize| match number {
            0..20 => Reason::Terminating {
                until: ago(number as u64),
            },
            20..120 => Reason::BudgetExhausted {
                budget: "web".to_owned(),
                message: WHY.to_owned(),
            },
            _ => Reason::ParallelLimit,
        };
        let status = node(pods, reason);
        let text = shown(&status);
        for line in [
            format!("{} pods here:", pods + KEPT),
            "budget shop/web blocks 100 pods: ".to_owned(),
            "shop/web-7d9f-119 and 99 more BudgetExhausted ".to_owned(),
            format!(" and {} more ParallelLimit ", pods - 121),
            "shop/agent-0 and 4 more Kept ".to_owned(),
        ] {
            let words = text.split(' ').filter(|word| !word.is_empty());
            let words = words.collect::<Vec<_>>().join(" ");
            assert!(words.contains(&line), "{line:?} is not in\n{text}");
        }
        assert!(!text.contains("no room"), "{text}");
        assert_eq!(status.pods_to_evict(NOW), Some(pods), "{text}");
    }
}

/// Texts of a webhook that names each pod have no room for hundreds of pods.
#[test]
fn pods_without_room_in_the_published_status_are_counted() {
    for pods in [200, 500] {
        let reason = |number| Reason::EvictionRefused {
            code: 403,
            message: format!("pod {number}: {}", "not today ".repeat(20)),
        };
        let mut status = node(pods, reason);
        let told = status.driver.as_ref().unwrap().pods.len();
        assert!((100..pods).contains(&told), "{told}");
        let text = shown(&status);
        let line = format!(
            "{} of the pods to evict have no room in the driver's status",
            pods - told
        );
        assert!(text.contains(&line), "{line:?} is not in\n{text}");
        assert_eq!(status.pods_to_evict(NOW), Some(pods));
        // Some have gone since it was published.
        status.pods.drain(20..pods);
        assert_eq!(status.pods_to_evict(NOW), Some(20), "{}", shown(&status));
        let text = shown(&status);
        assert!(!text.contains("no room"), "{text}");
    }
}
