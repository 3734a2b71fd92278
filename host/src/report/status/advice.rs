//! The next command to type for somebody who is woken at night by a drain that does not end. It looks first; what
//! changes something comes with the condition under which it is right.

use scupper_engine::{Checkpoint, PodRef, Reason};

/// For a pod; `None`: it will be gone by itself, or something else says it.
pub(super) fn of_pod(reason: &Reason, pod: &PodRef, node: &str) -> Option<String> {
    let PodRef { namespace, name, .. } = pod;
    Some(match reason {
        Reason::BudgetExhausted { budget, .. } => {
            let budget = if budget.is_empty() {
                String::new()
            } else {
                format!(" {budget}")
            };
            format!(
                "kubectl -n {namespace} describe pdb{budget}    # it lets a pod go once another one is ready elsewhere: \
                 add a replica, or mend what is not ready"
            )
        }
        Reason::BudgetNotObserved { .. } => format!(
            "kubectl -n {namespace} get pdb    # nobody has counted its pods yet: is kube-controller-manager at work?"
        ),
        Reason::MoreThanOneBudget { .. } => {
            format!("kubectl -n {namespace} get pdb    # leave only one that selects the pod")
        }
        Reason::TerminatingPastGrace { finalizers, .. } if finalizers.is_empty() => format!(
            "kubectl -n {namespace} describe pod {name}    # its node has not reported its end: look at the kubelet of {node}"
        ),
        Reason::TerminatingPastGrace { .. } => format!(
            "kubectl -n {namespace} describe pod {name}    # whoever owns the finalizer must take it off; where nobody does any more: \
             kubectl -n {namespace} patch pod {name} --type=merge -p '{{\"metadata\":{{\"finalizers\":null}}}}'"
        ),
        Reason::EvictionRefused { .. } => {
            "kubectl get validatingwebhookconfigurations    # one of them refuses the eviction".to_owned()
        }
        Reason::Forbidden { .. } => format!("scupper doctor --node {node}    # which right is missing"),
        Reason::Unreachable { .. } | Reason::Throttled { .. } => {
            "kubectl get --raw /readyz?verbose    # whether the API server is well".to_owned()
        }
        Reason::NodeUncordoned => format!("kubectl cordon {node}    # the drain goes on then"),
        Reason::NamespaceTerminating => {
            format!("kubectl describe namespace {namespace}    # what keeps it from being deleted")
        }
        Reason::KeepsComingBack => {
            format!(
                "kubectl -n {namespace} describe pod {name}    # its controller puts it on this node again"
            )
        }
        Reason::AwaitingCompletion => {
            format!("kubectl -n {namespace} logs {name} --tail 20    # how far it is")
        }
        Reason::PlannerFailed { policy, .. } => {
            format!("scupper plan {node} --config scupper.yaml    # what the planner of {policy} says")
        }
        _ => return None,
    })
}

/// For a hook that does not come to an end.
pub(super) fn of_hook(drain: &Checkpoint, node: &str) -> String {
    let give_up = match drain.trigger.as_str() {
        "LifecycleEvent" => format!("kubectl delete lifecycleevent {}", drain.name),
        "cordon" => format!("kubectl uncordon {node}"),
        _ => "press Ctrl-C where it runs".to_owned(),
    };
    format!("see to what it waits for; to give the drain up: {give_up}")
}
