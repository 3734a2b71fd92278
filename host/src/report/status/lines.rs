//! Where a node stands, as lines for people.

use scupper_engine::{Condition, Node, Phase, Reason, Subject, Time, Uid};

use super::{Held, NodeStatus, advice};
use crate::report::view::HookView;
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
    let mut lines = head_lines(status, now);
    let held = status.held(now);
    let width = name_width(&held);
    for held in &held {
        lines.extend(pod_lines(held, width, &status.node.name, now));
    }
    lines.extend(untold_line(status, now));
    lines
}

/// All that comes before the pods.
pub(super) fn head_lines(status: &NodeStatus, now: Time) -> Vec<String> {
    let node = &status.node;
    let mut lines = vec![format!("node {}: {}", node.name, cordon_words(node))];
    lines.extend(drain_lines(status, now));
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
    lines
}

/// So that what holds them stands below one another.
pub(super) fn name_width(held: &[Held<'_>]) -> usize {
    let lengths = held.iter().map(|held| held.pod.id.to_string().len());
    lengths.max().unwrap_or(0)
}

/// What is not known of the pods.
pub(super) fn untold_line(status: &NodeStatus, now: Time) -> Option<String> {
    let view = status.fresh(now).filter(|view| view.more > 0)?;
    Some(format!("    the driver has not told of {} more", view.more))
}

/// A pod, what holds it, and what to do.
pub(super) fn pod_lines(held: &Held<'_>, width: usize, node: &str, now: Time) -> Vec<String> {
    let pod = &held.pod.id;
    let (name, text) = match &held.reason {
        Some(reason) => (reason.name(), told(reason, now)),
        None => ("-", String::new()),
    };
    let line = format!("    {:<width$}  {name:<20}  {}", pod.to_string(), one_line(&text));
    let mut lines = vec![line.trim_end().to_owned()];
    let next = held.reason.as_ref();
    if let Some(next) = next.and_then(|reason| advice::of_pod(reason, pod, node)) {
        lines.push(format!("      next: {}", one_line(&next)));
    }
    lines
}

fn pod_words(pods: usize) -> String {
    match pods {
        0 => "no pod is here".to_owned(),
        pods => format!("{} here:", count(pods, "pod")),
    }
}

fn drain_lines(status: &NodeStatus, now: Time) -> Vec<String> {
    let Some(mark) = &status.node.checkpoint else {
        return Vec::new();
    };
    let mut lines = vec![format!(
        "  drain      {} for {} {}, begun {} ago{}",
        phase_words(status.phase(mark, now)),
        mark.trigger,
        mark.name,
        now.since(mark.started),
        if mark.phase == Phase::Finished {
            String::new()
        } else {
            until(mark.deadline, now)
        }
    )];
    lines.extend(driver_line(status, now));
    if status.seat.is_left() && !status.is_over() {
        lines.push(format!(
            "    next: {}",
            advice::of_nobody(mark, &status.node.name)
        ));
    }
    if let Some(view) = status.fresh(now) {
        for hook in &view.hooks {
            lines.extend(hook_lines(status, hook, now));
        }
        return lines;
    }
    for hook in &mark.hooks {
        let of = subject(status, &hook.subject);
        lines.push(format!(
            "  hook       {} is not through with {}{of}, for {} now",
            hook.policy,
            hook.phase,
            now.since(hook.started)
        ));
        lines.push(format!("    next: {}", advice::of_hook(mark, &status.node.name)));
    }
    lines
}

/// Who says what follows, and since when.
fn driver_line(status: &NodeStatus, now: Time) -> Option<String> {
    let view = match (&status.driver, status.fresh(now)) {
        (_, Some(view)) => view,
        (_, None) if status.is_over() => return None,
        (_, None) if status.seat.is_left() => {
            let gone = status.seat.words(now).unwrap_or_default();
            return Some(format!(
                "  driver     {gone}; what follows is what the API server shows"
            ));
        }
        (Some(stale), None) => {
            let ago = now.since(stale.at);
            return Some(format!(
                "  driver     has told nothing for {ago}, so it may be gone; what follows is what the API server shows"
            ));
        }
        (None, None) => {
            let silent = "has told of nothing that holds it up".to_owned();
            let words = status.seat.words(now).unwrap_or(silent);
            return Some(format!(
                "  driver     {words}; what follows is what the API server shows"
            ));
        }
    };
    let ago = now.since(view.at);
    let wave = view.wave.as_ref();
    let wave = wave.map(|it| format!("; wave {} of {}, {}", it.number, it.of, one_line(&it.name)));
    let wave = wave.unwrap_or_default();
    Some(match &view.ended {
        Some(ended) => format!(
            "  ended      {ago} ago, {}; why each pod is here is as it was then",
            one_line(ended)
        ),
        None => format!("  driver     told what follows {ago} ago{wave}"),
    })
}

fn hook_lines(status: &NodeStatus, hook: &HookView, now: Time) -> Vec<String> {
    let mark = status.node.checkpoint.as_ref();
    let since = mark.map_or(hook.since, |mark| hook.began(&mark.hooks));
    let mut lines = vec![format!(
        "  hook       {} is not through with {}{}, for {} now: {}",
        hook.policy,
        hook.phase,
        subject(status, &hook.subject),
        now.since(since),
        one_line(&hook.progress)
    )];
    for on in &hook.waiting_for {
        let since = on.since.map(|since| format!(", for {}", now.since(since)));
        lines.push(format!(
            "    waits for {}: {}{}",
            one_line(&on.what),
            one_line(&on.detail),
            since.unwrap_or_default()
        ));
    }
    if let Some(mark) = mark {
        lines.push(format!("    next: {}", advice::of_hook(mark, &status.node.name)));
    }
    lines
}

/// Of what a hook of this node is one.
pub(in crate::report) fn subject(status: &NodeStatus, subject: &Subject) -> String {
    subject_words(subject, |uid| {
        let pod = status.pods.iter().find(|pod| pod.id.uid == *uid);
        pod.map(|pod| pod.id.to_string())
    })
}

/// Of what a hook is one. `name`: of a pod, where it is known.
pub(in crate::report) fn subject_words(subject: &Subject, name: impl Fn(&Uid) -> Option<String>) -> String {
    match subject {
        Subject::Node => String::new(),
        Subject::Wave(wave) => format!(" of wave {wave}"),
        Subject::Pod(uid) => match name(uid) {
            Some(pod) => format!(" of {pod}"),
            None => format!(" of pod {uid}"),
        },
    }
}

/// A phase for people.
pub(in crate::report) const fn phase_words(phase: Phase) -> &'static str {
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
pub(in crate::report) fn told(reason: &Reason, now: Time) -> String {
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
