//! Where a node stands, as lines for people.

use scupper_engine::{Condition, Node, Phase, Reason, Subject, Time};

use super::NodeStatus;
use crate::report::words::{count, one_line};

/// Conditions that say something of a drain.
const CONDITIONS: [&str; 4] = [
    "DrainInProgress",
    "Drained",
    "LifecycleTransition",
    "MaintenanceInProgress",
];

/// As lines for people.
pub fn status_lines(status: &NodeStatus, now: Time) -> Vec<String> {
    let node = &status.node;
    let mut lines = vec![format!("node {}: {}", node.name, cordon_words(node))];
    lines.extend(drain_lines(node, now));
    for wish in &status.wishes {
        let deleting = if wish.deleting { ", being deleted" } else { "" };
        lines.push(format!(
            "  event      {}: {}{deleting}, transition {}{}",
            wish.name,
            wish.state,
            wish.transition,
            until(wish.deadline, now)
        ));
    }
    for condition in conditions(node) {
        let since = condition.since.map(|since| format!(" for {}", now.since(since)));
        lines.push(format!(
            "  condition  {}={}{}: {}",
            condition.kind,
            condition.status,
            since.unwrap_or_default(),
            one_line(if condition.message.is_empty() {
                &condition.reason
            } else {
                &condition.message
            })
        ));
    }
    lines.push(format!("  {}", pod_words(status.pods.len())));
    let reasons = status.reasons(now);
    let width = reasons
        .iter()
        .map(|(pod, _)| pod.to_string().len())
        .max()
        .unwrap_or(0);
    for (pod, reason) in reasons {
        let (name, text) = match &reason {
            Some(reason) => (reason.name(), told(reason, now)),
            None => ("-", String::new()),
        };
        let line = format!("    {:<width$}  {name:<20}  {}", pod.to_string(), one_line(&text));
        lines.push(line.trim_end().to_owned());
    }
    lines
}

fn pod_words(pods: usize) -> String {
    match pods {
        0 => "no pod is here".to_owned(),
        pods => format!("{} here:", count(pods, "pod")),
    }
}

fn drain_lines(node: &Node, now: Time) -> Vec<String> {
    let Some(mark) = &node.checkpoint else {
        return Vec::new();
    };
    let mut lines = vec![format!(
        "  drain      {} for {} {}, begun {} ago{}",
        phase(mark.phase),
        mark.trigger,
        mark.name,
        now.since(mark.started),
        if mark.phase == Phase::Finished {
            String::new()
        } else {
            until(mark.deadline, now)
        }
    )];
    for hook in &mark.hooks {
        let of = match &hook.subject {
            Subject::Node => String::new(),
            Subject::Wave(wave) => format!(" of wave {wave}"),
            Subject::Pod(uid) => format!(" of pod {uid}"),
        };
        lines.push(format!(
            "  hook       {} is not through with {}{of}, for {} now",
            hook.policy,
            hook.phase,
            now.since(hook.started)
        ));
    }
    lines
}

const fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Planning => "planning",
        Phase::Preparing => "hooks before the cordon",
        Phase::Cordoning => "cordoning",
        Phase::Holding => "hooks before the first pod leaves",
        Phase::Evicting => "pods leave",
        Phase::Verifying => "hooks after the last pod",
        Phase::RollingBack => "rolling back",
        Phase::Uncordoning => "uncordoning",
        Phase::Finished => "over",
    }
}

/// Whose cordon it is, in a word.
pub(super) fn cordon(node: &Node) -> &'static str {
    let ours = node.checkpoint.as_ref().is_some_and(|mark| mark.own_cordon);
    match (node.unschedulable, ours) {
        (false, _) => "none",
        (true, true) => "ours",
        (true, false) => "others",
    }
}

fn cordon_words(node: &Node) -> &'static str {
    match cordon(node) {
        "ours" => "cordoned by Scupper",
        "others" => "cordoned by somebody else",
        _ => "takes pods",
    }
}

/// Those that say something of a drain.
pub(super) fn conditions(node: &Node) -> impl Iterator<Item = &Condition> {
    let is_ours = |condition: &&Condition| CONDITIONS.contains(&condition.kind.as_str());
    node.conditions.iter().filter(is_ours)
}

/// A reason with the facts that change while one waits.
pub(super) fn told(reason: &Reason, now: Time) -> String {
    match reason {
        Reason::Terminating { until } => format!("{reason}, {} of its grace left", until.since(now)),
        Reason::TerminatingPastGrace { since, .. } => format!("{reason}, for {} now", now.since(*since)),
        _ => reason.to_string(),
    }
}

fn until(deadline: Option<Time>, now: Time) -> String {
    match deadline {
        Some(deadline) if deadline > now => format!(", to end within {}", deadline.since(now)),
        Some(deadline) => format!(", overdue by {}", now.since(deadline)),
        None => String::new(),
    }
}
