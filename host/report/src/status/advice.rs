//! Suggests the next command for an operator who is woken at night by a stuck drain. Read-only commands come first; a
//! command that changes something comes with the condition under which it is right.

use scupper_api::Workload;
use scupper_engine::{Budget, Checkpoint, Intent, Phase, PodRef, Reason, Trigger, VolumesLeft};
use scupper_pre_flight::what_opens;

use crate::messages::one_line;

/// Advice for a pod; `None` if the pod will end by itself, or if another line has the advice. `blocking`: the budget
/// that blocks it, if that is known, and `workload` that of all its pods.
pub(super) fn of_pod(
    reason: &Reason,
    pod: &PodRef,
    node: &str,
    blocking: Option<&Budget>,
    workload: Option<&Workload>,
) -> Option<String> {
    let PodRef { namespace, name, .. } = pod;
    Some(match reason {
        Reason::BudgetExhausted { budget, .. } => {
            return Some(of_budget(namespace, budget, blocking, workload));
        }
        Reason::Surging { workload, .. } => {
            let deployment = workload.rsplit('/').next().unwrap_or_default();
            format!(
                "kubectl -n {namespace} rollout status deployment {deployment}    # the pod leaves once its replacement is ready"
            )
        }
        Reason::BudgetNotObserved { .. } => format!(
            "kubectl -n {namespace} get pdb    # its status is out of date: is kube-controller-manager running?"
        ),
        Reason::MoreThanOneBudget { .. } => {
            format!("kubectl -n {namespace} get pdb    # leave only one that selects the pod")
        }
        Reason::TerminatingPastGrace { finalizers, .. } if finalizers.is_empty() => format!(
            "kubectl -n {namespace} describe pod {name}    # its node has not reported its end: look at the kubelet of {node}"
        ),
        Reason::TerminatingPastGrace { .. } => format!(
            "kubectl -n {namespace} describe pod {name}    # the finalizer's owner must remove it; if that owner is gone: \
             kubectl -n {namespace} patch pod {name} --type=merge -p '{{\"metadata\":{{\"finalizers\":null}}}}'"
        ),
        Reason::EvictionRefused { .. } => {
            "kubectl get validatingwebhookconfigurations    # perhaps one of these refuses it".to_owned()
        }
        Reason::Forbidden { .. } => {
            format!(
                "scupper doctor --node {node}    # which right is missing; use the credentials that drain"
            )
        }
        Reason::Unreachable { .. } | Reason::Throttled { .. } => {
            "kubectl get --raw /readyz?verbose    # whether the API server is well".to_owned()
        }
        Reason::NodeUncordoned => of_paused(node),
        Reason::NamespaceTerminating => {
            format!("kubectl describe namespace {namespace}    # what blocks its deletion")
        }
        Reason::KeepsComingBack { .. } => format!(
            "kubectl -n {namespace} describe pod {name}    # scale its controller down, or remove the toleration; \
             --returning-pod-evictions says how often it is evicted"
        ),
        Reason::ArrivedDuringDrain { .. } => {
            format!("kubectl -n {namespace} delete pod {name}    # if it is not needed")
        }
        Reason::AwaitingCompletion => {
            format!("kubectl -n {namespace} logs {name} --tail 20    # how far it is")
        }
        Reason::PlannerFailed { policy, .. } => {
            format!("scupper plan {node} --config scupper.yaml    # what the planner of {policy} says")
        }
        Reason::Refused { message, .. } => of_refused(pod, node, message),
        _ => return None,
    })
}

/// The first draft names the flag that a pod needs.
fn of_refused(pod: &PodRef, node: &str, message: &str) -> String {
    const FLAG: &str = "(use --";
    let flag = message
        .split_once(FLAG)
        .and_then(|(_, flag)| flag.split_whitespace().next());
    match flag {
        Some(flag) => format!(
            "scupper cancel {node}    # then drain it with --{flag}; for a driver's drains its configuration has drain.{flag}"
        ),
        None => format!(
            "kubectl -n {} delete pod {}    # if it is not needed",
            pod.namespace, pod.name
        ),
    }
}

/// Waiting does not open every budget. The advice is then another replica where that is enough, because no pod is lost.
fn of_budget(namespace: &str, name: &str, blocking: Option<&Budget>, workload: Option<&Workload>) -> String {
    const CLOSED: &str = "the budget blocks its pods even when all are healthy";
    let name = if name.is_empty() {
        String::new()
    } else {
        format!(" {name}")
    };
    let describe = format!("kubectl -n {namespace} describe pdb{name}");
    let Some((budget, opening)) = blocking.and_then(|budget| Some((budget, what_opens(budget)?))) else {
        return format!(
            "{describe}    # it allows an eviction once another pod is ready elsewhere: add a replica, or fix what is \
             not ready"
        );
    };
    // Of the pods of one workload only, it is known how many replicas that should have.
    let only = workload.and_then(|workload| {
        let (_, wanted) = workload.ready?;
        (i64::from(wanted) == i64::from(budget.expected_pods)).then_some((workload, wanted))
    });
    let Some((workload, wanted)) = only else {
        return format!("{describe}    # {CLOSED}: {opening}");
    };
    let (kind, name) = (one_line(&workload.kind), one_line(&workload.name));
    let change = opening.of_workload(&kind, &name, wanted);
    match opening.more_replicas {
        Some(more) if ["Deployment", "ReplicaSet"].contains(&kind.as_str()) => format!(
            "kubectl -n {namespace} scale {} {name} --replicas {}    # {CLOSED}: {change} (an autoscaler undoes that)",
            kind.to_lowercase(),
            wanted.saturating_add(more)
        ),
        _ => format!("{describe}    # {CLOSED}: {change}"),
    }
}

/// Advice for a hook that does not finish. What it waits for says above what to look at.
pub(super) fn of_hook(drain: &Checkpoint, node: &str) -> String {
    let also = match (drain.phase, Trigger::of(&drain.trigger)) {
        (Phase::RollingBack, _) => {
            return format!("scupper status {node} --watch    # the drain is already being undone");
        }
        // Evictions are over, and there is nothing to roll back.
        (Phase::Uncordoning, _) => {
            return format!("scupper status {node} --watch    # follows it; the node takes pods afterwards");
        }
        (_, Trigger::Command) => "; Ctrl-C where it runs does the same",
        (_, Trigger::Cordon) => "; kubectl uncordon also does, and lifts the cordon",
        (_, Trigger::LifecycleEvent | Trigger::DrainRequest) => "",
    };
    format!("scupper cancel {node}    # if the drain should not wait for that{also}")
}

/// Advice for volumes that stay attached.
pub(super) fn of_volumes(left: &VolumesLeft, node: &str) -> String {
    match left.attached().first() {
        Some(volume) => format!(
            "kubectl describe volumeattachment {}    # why {} does not detach it; scupper cancel {node} ends the wait",
            volume.attachment, volume.attacher
        ),
        None => format!("scupper doctor --node {node} --config scupper.yaml    # which right is missing"),
    }
}

/// Advice for a drain whose cordon another client has lifted.
pub(super) fn of_paused(node: &str) -> String {
    format!("kubectl cordon {node}    # to continue the drain")
}

/// Advice for a drain that has ended while the node is not drained.
pub(super) fn of_undone(node: &str) -> String {
    format!(
        "scupper plan {node}    # what stands in the way now; to try again: scupper drain {node} (add your flags)"
    )
}

/// Advice for an abandoned drain.
pub(super) fn of_abandoned(drain: &Checkpoint, node: &str) -> String {
    match (Trigger::of(&drain.trigger), drain.phase) {
        (Trigger::Command, Phase::Uncordoning) => {
            format!("scupper uncordon {node}    # continues it; scupper drain {node} drains it again")
        }
        (Trigger::Command, Phase::RollingBack) => {
            format!("scupper cancel {node}    # completes the roll-back")
        }
        (Trigger::Command, _) => {
            format!(
                "scupper drain {node}    # continues it: give the flags and --config that it was begun with; scupper cancel {node} undoes it"
            )
        }
        (_, phase) => {
            let (it, by_hand) = match phase {
                Phase::Uncordoning => (
                    "finishes the uncordon",
                    format!("scupper uncordon {node} --take-over finishes it"),
                ),
                Phase::RollingBack => (
                    "completes the roll-back",
                    format!("scupper cancel {node} completes it"),
                ),
                _ if Trigger::of(&drain.trigger) == Trigger::DrainRequest => {
                    ("continues the drain", format!("scupper cancel {node} undoes it"))
                }
                _ => (
                    "continues the drain",
                    format!(
                        "scupper drain {node} --take-over --ignore-daemonsets --config scupper.yaml (the driver's) continues the drain, \
                         scupper cancel {node} undoes it"
                    ),
                ),
            };
            format!(
                "kubectl get pods -A --field-selector spec.nodeName={node}    # is the driver running? it {it} when it starts; \
                 if it is gone for good: {by_hand}"
            )
        }
    }
}

/// What is to be said of LifecycleEvents that only wait for their driver. `events`: `LifecycleEvent drain-worker-1-x7d2p`.
pub fn unreleased_text(events: &str) -> String {
    format!("no drain is under way, and its driver has not released {events}")
}

/// What becomes of a LifecycleEvent whose drain has ended without its driver.
pub fn release_text(event: &str) -> String {
    format!(
        "its driver has not released {event}; it does so when it is running, and does nothing more for it"
    )
}

/// Advice for a LifecycleEvent that is deleted, and that its driver has not released.
pub(super) fn of_held_event(event: &str, node: &str) -> String {
    format!(
        "kubectl get pods -A --field-selector spec.nodeName={node}    # is its driver running? it releases the event then; \
         only if it is gone for good: kubectl patch lifecycleevent {event} --type=merge -p \
         '{{\"metadata\":{{\"finalizers\":null}}}}'"
    )
}

/// Advice for a drain of a command whose process may be gone; a driver comes back.
pub(super) fn of_perhaps_abandoned(drain: &Checkpoint, node: &str) -> Option<String> {
    let is_drain = drain.intent == Intent::Drain && Trigger::of(&drain.trigger) == Trigger::Command;
    is_drain.then(|| {
        format!(
            "scupper cancel {node}    # undoes it; if its process is gone, scupper drain {node} --take-over continues it"
        )
    })
}

#[cfg(test)]
mod tests {
    use scupper_engine::{Amount, BudgetLimit, Uid};

    use super::*;
    use crate::fixture::mark;

    #[test]
    fn a_drain_is_given_up_where_it_is_driven() {
        let hook = |trigger, phase| of_hook(&mark(trigger, phase), "worker-1");
        let cancel = "scupper cancel worker-1    # if the drain should not wait for that";
        assert_eq!(hook("LifecycleEvent", Phase::Holding), cancel);
        let cordon = hook("cordon", Phase::Holding);
        assert_eq!(
            cordon,
            format!("{cancel}; kubectl uncordon also does, and lifts the cordon")
        );
        let command = hook("command", Phase::Holding);
        assert_eq!(command, format!("{cancel}; Ctrl-C where it runs does the same"));
        for trigger in ["LifecycleEvent", "cordon", "command"] {
            for phase in [Phase::RollingBack, Phase::Uncordoning] {
                let over = hook(trigger, phase);
                assert!(
                    over.starts_with("scupper status worker-1 --watch    # "),
                    "{over}"
                );
                assert!(!over.contains("cancel") && !over.contains("Ctrl-C"), "{over}");
            }
        }
    }

    #[test]
    fn a_budget_that_waiting_cannot_open_is_called_so_with_what_opens_it() {
        let reason = Reason::BudgetExhausted {
            budget: "keep".to_owned(),
            message: String::new(),
        };
        let pod = PodRef {
            namespace: "shop".to_owned(),
            name: "web".to_owned(),
            uid: Uid::new("u"),
        };
        let advice = |limit, expected_pods, workload: Option<&Workload>| {
            let budget = Budget {
                limit: Some(limit),
                expected_pods,
                ..crate::tests::samples::budget("keep", "web", 0, true)
            };
            of_pod(&reason, &pod, "worker-1", Some(&budget), workload).unwrap()
        };
        let next = |limit, expected_pods| advice(limit, expected_pods, None);
        let least = |pods| BudgetLimit::MinAvailable(Amount::Pods(pods));
        let closed =
            "kubectl -n shop describe pdb keep    # the budget blocks its pods even when all are healthy: ";
        let opens = |limit| next(limit, 2).strip_prefix(closed).unwrap().to_owned();
        assert_eq!(opens(least(2)), "minAvailable: 2 -> 1, or 1 more replica");
        assert_eq!(opens(least(3)), "minAvailable: 3 -> 1, or 2 more replicas");
        let most = BudgetLimit::MaxUnavailable(Amount::Pods(0));
        assert_eq!(opens(most), "maxUnavailable: 0 -> 1");
        let workload = |kind: &str, wanted| Workload {
            kind: kind.to_owned(),
            name: "web".to_owned(),
            ready: Some((wanted, wanted)),
        };
        assert_eq!(
            advice(least(2), 2, Some(&workload("Deployment", 2))),
            "kubectl -n shop scale deployment web --replicas 3    # the budget blocks its pods even when all are \
             healthy: minAvailable: 2 -> 1, or replicas of Deployment web: 2 -> 3 (an autoscaler undoes that)"
        );
        // Nothing that one could scale, or pods of other workloads as well.
        for (other, change) in [
            (workload("StatefulSet", 2), "replicas of StatefulSet web: 2 -> 3"),
            (workload("Deployment", 1), "1 more replica"),
        ] {
            let text = advice(least(2), 2, Some(&other));
            assert_eq!(text, format!("{closed}minAvailable: 2 -> 1, or {change}"));
        }
        let waits = next(least(2), 3);
        assert!(
            waits.contains("it allows an eviction once another pod is ready elsewhere"),
            "{waits}"
        );
    }

    #[test]
    fn a_pod_that_may_not_leave_needs_a_flag_or_is_deleted() {
        let advice = |policy: &str, message: &str| {
            let reason = Reason::Refused {
                policy: policy.to_owned(),
                message: message.to_owned(),
            };
            of_pod(&reason, &crate::fixture::pod("web"), "worker-1", None, None).unwrap()
        };
        assert_eq!(
            advice("", "DaemonSet-managed Pods (use --ignore-daemonsets to ignore)"),
            "scupper cancel worker-1    # then drain it with --ignore-daemonsets; for a driver's drains its configuration has \
             drain.ignore-daemonsets"
        );
        assert_eq!(
            advice("gpu", "its annotations name no GPU"),
            "kubectl -n shop delete pod web    # if it is not needed"
        );
    }

    #[test]
    fn what_is_abandoned_is_continued_by_the_same_command_and_a_drivers_only_if_that_is_gone_for_good() {
        let left = |trigger, phase| of_abandoned(&mark(trigger, phase), "worker-1");
        assert!(left("command", Phase::Evicting).starts_with("scupper drain worker-1 "));
        assert!(left("command", Phase::Uncordoning).starts_with("scupper uncordon worker-1 "));
        let for_request = left("DrainRequest", Phase::Evicting);
        assert!(
            for_request.ends_with("for good: scupper cancel worker-1 undoes it"),
            "{for_request}"
        );
        assert!(left("command", Phase::RollingBack).starts_with("scupper cancel worker-1 "));
        for trigger in ["LifecycleEvent", "cordon"] {
            for (phase, by_hand) in [
                (
                    Phase::Evicting,
                    "scupper drain worker-1 --take-over --ignore-daemonsets --config scupper.yaml (the driver's) continues the drain",
                ),
                (
                    Phase::Uncordoning,
                    "scupper uncordon worker-1 --take-over finishes it",
                ),
                (Phase::RollingBack, "scupper cancel worker-1 completes it"),
            ] {
                let drivers = left(trigger, phase);
                assert!(drivers.starts_with("kubectl get pods"), "{drivers}");
                let gone = format!("if it is gone for good: {by_hand}");
                assert!(drivers.contains(&gone), "{drivers}");
            }
        }
    }
}
