//! The host's own first draft: `kubectl drain`'s five filters in their order, with their words, and one of our own for
//! grace periods.
//!
//! As in kubectl the first filter that keeps or refuses a pod ends the chain, and of the warnings of those that let
//! it go only the last filter's survives. It must not know of policies, nor of how pods leave.

use core::time::Duration;

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::{Decision, Filters, HumanDuration, Plan, Pod, Settings, Time, Uid, Verdict, Wave};

/// The name that decisions of the first draft carry.
pub(crate) const HOST_POLICY: &str = "kubectl";

/// The plan that `kubectl drain` with these settings would carry out. It always holds.
pub fn draft(pods: &[Pod], settings: &Settings, now: Time) -> Plan {
    let mut sorted: Vec<&Pod> = pods.iter().collect();
    sorted.sort_by(|a, b| a.id.cmp(&b.id));
    let decisions: Vec<Decision> = sorted
        .iter()
        .map(|pod| {
            let (verdict, reason) = verdict_of(pod, settings, now);
            Decision {
                pod: pod.id.uid.clone(),
                verdict,
                reason,
                policy: String::from(HOST_POLICY),
            }
        })
        .collect();
    let leaving: Vec<_> = decisions
        .iter()
        .filter(|decision| decision.verdict.leaves())
        .map(|decision| decision.pod.clone())
        .collect();
    let waves = if leaving.is_empty() {
        Vec::new()
    } else {
        Vec::from([all(leaving)])
    };
    Plan {
        decisions,
        waves,
        ..Plan::default()
    }
}

fn all(pods: Vec<Uid>) -> Wave {
    Wave {
        name: String::from("all"),
        pods,
        max_parallel: None,
        timeout: None,
        max_grace_seconds: None,
        policy: String::from(HOST_POLICY),
    }
}

/// A request that names pods asks for each of them: one that would stay may not. `plan` is what the last planner made of
/// it, `were_there` the pods that were on the node when it began. A pod that has come since under one of the names is
/// another pod, and one that has finished holds nothing up.
pub(crate) fn refuse_named<'a>(
    plan: &mut Plan,
    were_there: impl Iterator<Item = &'a Pod>,
    filters: &Filters,
) {
    if filters.only_pods.is_none() {
        return;
    }
    let named = were_there.filter(|pod| filters.is_meant(&pod.id) && !pod.is_finished());
    let named: BTreeSet<&Uid> = named.map(|pod| &pod.id.uid).collect();
    for decision in &mut plan.decisions {
        if decision.verdict == Verdict::Keep && named.contains(&decision.pod) {
            decision.verdict = Verdict::Refuse;
            decision.reason = format!("the request names it, and it stays: {}", decision.reason);
        }
    }
}

/// What one filter says.
enum Filter {
    /// The next filter decides.
    Pass(Option<String>),
    /// The same, and what the filter before it said stays the last word.
    Agree,
    /// The pod stays, and nothing waits for it.
    Skip(String),
    /// The pod may not leave.
    Error(String),
}

fn verdict_of(pod: &Pod, settings: &Settings, now: Time) -> (Verdict, String) {
    if settings.own_pod.as_ref().is_some_and(|own| own.uid == pod.id.uid) {
        return (Verdict::Keep, String::from("the driver's own pod"));
    }
    let filters = &settings.filters;
    if !filters.pod_selector.matches(&pod.labels) {
        return (Verdict::Keep, String::from("not selected by --pod-selector"));
    }
    if !filters.is_meant(&pod.id) {
        return (Verdict::Keep, String::from("not named by the request"));
    }
    let chain = [
        skip_deleted(pod, filters.skip_wait_for_delete_timeout, now),
        daemon_set(pod, filters),
        mirror(pod),
        local_storage(pod, filters),
        unreplicated(pod, filters),
        shortened(pod, settings),
    ];
    let mut warning = None;
    for answer in chain {
        match answer {
            Filter::Pass(said) => warning = said,
            Filter::Agree => {}
            Filter::Skip(reason) => return (Verdict::Keep, reason),
            Filter::Error(reason) => return (Verdict::Refuse, reason),
        }
    }
    let verdict = if filters.disable_eviction {
        Verdict::Delete
    } else {
        Verdict::Evict
    };
    (verdict, warning.unwrap_or_else(|| silent_reason(pod)))
}

fn skip_deleted(pod: &Pod, timeout: Duration, now: Time) -> Filter {
    skipped(pod, timeout, now).map_or(Filter::Pass(None), Filter::Skip)
}

/// The pod has been ending for longer than the timeout, and why it is left out then. Counted in whole seconds, as
/// kubectl does.
pub(crate) fn skipped(pod: &Pod, timeout: Duration, now: Time) -> Option<String> {
    let deletion = pod.deletion.filter(|_| timeout > Duration::ZERO)?;
    let timeout = timeout.as_secs();
    (now.since(deletion.at).as_secs() > timeout).then(|| {
        let name = &pod.id.name;
        format!("pod \"{name}\" has DeletionTimestamp older than {timeout} seconds, skipping")
    })
}

/// When the pod will have been ending for too long.
pub(crate) fn skipped_at(pod: &Pod, timeout: Duration) -> Option<Time> {
    let deletion = pod.deletion.filter(|_| timeout > Duration::ZERO)?;
    Some(deletion.at + Duration::from_secs(timeout.as_secs().saturating_add(1)))
}

fn daemon_set(pod: &Pod, filters: &Filters) -> Filter {
    let Some(owner) = pod
        .controller
        .as_ref()
        .filter(|_| pod.is_daemon() && !pod.is_finished())
    else {
        return Filter::Pass(None);
    };
    if owner.missing {
        let not_found = format!("daemonsets.apps \"{}\" not found", owner.name);
        return warned_or_refused(filters.force, &not_found, &not_found);
    }
    if filters.ignore_daemonsets {
        Filter::Skip(String::from("ignoring DaemonSet-managed Pods"))
    } else {
        Filter::Error(String::from(
            "DaemonSet-managed Pods (use --ignore-daemonsets to ignore)",
        ))
    }
}

fn mirror(pod: &Pod) -> Filter {
    let reason = "mirror of a static pod, which the kubelet runs from a file";
    if pod.is_mirror() {
        Filter::Skip(String::from(reason))
    } else {
        Filter::Pass(None)
    }
}

fn local_storage(pod: &Pod, filters: &Filters) -> Filter {
    if !pod.empty_dir || pod.is_finished() {
        return Filter::Pass(None);
    }
    warned_or_refused(
        filters.delete_emptydir_data,
        "deleting Pods with local storage",
        "Pods with local storage (use --delete-emptydir-data to override)",
    )
}

fn unreplicated(pod: &Pod, filters: &Filters) -> Filter {
    if pod.controller.is_some() || pod.is_finished() {
        return Filter::Pass(None);
    }
    warned_or_refused(
        filters.force,
        "deleting Pods that declare no controller",
        "Pods that declare no controller (use --force to override)",
    )
}

fn warned_or_refused(is_allowed: bool, warning: &str, refusal: &str) -> Filter {
    if is_allowed {
        Filter::Pass(Some(String::from(warning)))
    } else {
        Filter::Error(String::from(refusal))
    }
}

/// Not one of kubectl's: the requester of the drain may not shorten the pod's grace period.
fn shortened(pod: &Pod, settings: &Settings) -> Filter {
    let wanted = settings.grace_seconds.filter(|_| settings.grace_only_longer);
    let ends_anyway = pod.is_finished() || pod.deletion.is_some();
    match wanted.filter(|wanted| *wanted < pod.grace_seconds && !ends_anyway) {
        None => Filter::Agree,
        Some(wanted) => Filter::Error(format!(
            "Pods with a grace period of {} of their own, which --grace-period={wanted} would shorten (give a longer \
             one, add grace-period to drain.allow-overrides of the driver, or use --local)",
            HumanDuration(Duration::from_secs(pod.grace_seconds)),
        )),
    }
}

/// kubectl gives no reason for a pod that simply leaves; readers of a plan still want one.
fn silent_reason(pod: &Pod) -> String {
    if pod.is_finished() {
        return String::from("it has finished");
    }
    match (&pod.controller, &pod.cordon_toleration) {
        (Some(owner), Some(toleration)) => format!(
            "managed by {} {}; it tolerates the cordon ({toleration}), so it may come back",
            owner.kind, owner.name
        ),
        (Some(owner), None) => format!("managed by {} {}", owner.kind, owner.name),
        (None, _) => String::from("nothing speaks against it"),
    }
}
