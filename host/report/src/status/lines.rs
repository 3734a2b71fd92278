//! Formats the state of a node as lines for people.

use scupper_api::LifecycleEvent;
use scupper_engine::{Checkpoint, Condition, HumanDuration, Intent, Node, Phase, Reason, Time};

use super::budgets::{BudgetGroup, PodRow, groups};
use super::lookups::workload_text;
use super::{LeaseHolder, NodeStatus, RemainingPod, advice};
use crate::conditions::is_repeated;
use crate::drain_status::{HookStatus, contains_duration, reason_text};
use crate::messages::{UNCORDONED, count, one_line};
use crate::not_ready;
use crate::pod_list::PodList;

/// The condition that SLM writes.
const TRANSITION: &str = "LifecycleTransition";

/// Conditions that concern a drain.
const CONDITIONS: [&str; 4] = ["DrainInProgress", "Drained", TRANSITION, "MaintenanceInProgress"];

/// Where a drain stands that has failed.
pub(crate) const UNDONE: &str = "ended without draining the node";

/// The lines for people.
pub fn status_lines(status: &NodeStatus, now: Time, list: PodList) -> Vec<String> {
    let held = status.remaining_pods(now);
    let unlisted = status.unlisted(&held, list);
    let mut lines = head_lines(status, now, unlisted);
    let groups = groups(status, &held, list);
    let width = name_width(&groups);
    for group in &groups {
        lines.extend(group.head_lines(status, now));
        let rows = group.rows.iter();
        lines.extend(rows.flat_map(|row| pod_lines(group, row, width, status, now)));
    }
    lines.extend(tail_lines(status, now, unlisted));
    lines
}

/// The lines before the pods, of which so many are not listed.
pub(super) fn head_lines(status: &NodeStatus, now: Time, unlisted: usize) -> Vec<String> {
    let node = &status.node;
    let not_ready = not_ready(node, now).map(|words| format!(", {words}"));
    let mut lines = vec![format!(
        "node {}: {}{}",
        node.name,
        cordon_text(node),
        not_ready.unwrap_or_default()
    )];
    lines.extend(planning_lines(status, now));
    lines.extend(continuation_line(status));
    lines.extend(drain_lines(status, now));
    lines.extend(taint_line(node));
    lines.extend(undo_lines(status));
    for event in &status.lifecycle_events {
        let deleting = if event.deleting { ", being deleted" } else { "" };
        lines.push(format!(
            "  event      {}: {}{deleting}, transition {}{}",
            event.name,
            event.claim.as_str(),
            event.transition,
            event_deadline(status, event, now)
        ));
        let is_kept = status.waits_for_release(event);
        lines
            .extend(is_kept.then(|| format!("    next: {}", advice::of_held_event(&event.name, &node.name))));
    }
    let conditions: Vec<_> = conditions(node).collect();
    let pairs: Vec<_> = conditions.iter().map(|it| as_reported(it)).collect();
    for condition in conditions
        .iter()
        .filter(|it| !is_repeated(as_reported(it), &pairs))
    {
        lines.push(condition_line(status, condition, now));
    }
    lines.push(format!("  {}", pod_count_text(status.pods.len(), unlisted)));
    lines
}

/// The lines about a drain that has left nothing on the node yet.
fn planning_lines(status: &NodeStatus, now: Time) -> Vec<String> {
    let (Some(drain), LeaseHolder::Held { by, .. }) = (status.planning(), &status.lease_holder) else {
        return Vec::new();
    };
    let what = match drain.intent {
        Intent::Drain => "planning",
        Intent::Uncordon => "uncordoning",
    };
    let (trigger, name) = (one_line(&drain.trigger), one_line(&drain.name));
    let head = format!(
        "  drain      {what} for {trigger} {name} by {}; nothing has changed{}",
        one_line(by),
        holder_note(status, now, "; ")
    );
    let cancel = format!("    to stop it: scupper cancel {}", status.node.name);
    let cancel = (drain.intent == Intent::Drain).then_some(cancel);
    std::iter::once(head).chain(cancel).collect()
}

/// The line about another process than the one that has begun the drain.
fn continuation_line(status: &NodeStatus) -> Option<String> {
    let (Some(drain), LeaseHolder::Held { by, .. }) = (status.continuation(), &status.lease_holder) else {
        return None;
    };
    let (trigger, name) = (one_line(&drain.trigger), one_line(&drain.name));
    Some(format!(
        "  drain      continued for {trigger} {name} by {}",
        one_line(by)
    ))
}

/// The line about the taint that a drain of Scupper has set.
fn taint_line(node: &Node) -> Option<String> {
    let is_ready = |it: &Condition| it.kind == "Ready" && it.status == "True";
    let ready = match node.conditions.iter().any(is_ready) {
        true => "; the node is Ready again",
        false => "",
    };
    node.is_out_of_service().then(|| {
        format!(
            "  taint      out of service, by a drain with --node-is-off{ready}; scupper uncordon {} removes it",
            node.name
        )
    })
}

/// The lines about what policies should have undone by now.
fn undo_lines(status: &NodeStatus) -> Vec<String> {
    let left = status.left_to_undo();
    let mut lines: Vec<_> = left.texts().map(|text| format!("  undo       {text}")).collect();
    if !lines.is_empty() {
        lines.push(format!(
            "    next: {}    # runs their uncordon hooks",
            left.command
        ));
    }
    lines
}

/// The width of the longest name, so that the reasons are aligned.
pub(super) fn name_width(groups: &[BudgetGroup<'_>]) -> usize {
    let rows = groups.iter().flat_map(|group| &group.rows);
    rows.map(|row| row.name().len()).max().unwrap_or(0)
}

/// The text of the event's own deadline. It leaves time to roll back, so it is later than the drain's deadline; showing
/// one of the two is enough.
fn event_deadline(status: &NodeStatus, event: &LifecycleEvent, now: Time) -> String {
    let mark = status.node.checkpoint.as_ref();
    let mark = mark.filter(|mark| mark.name == event.name && mark.phase != Phase::Finished);
    let own = mark.and_then(|mark| mark.deadline);
    match (own, event.deadline()) {
        (Some(own), Some(last)) if last > own => {
            format!(
                ", expires {} after the drain's deadline",
                HumanDuration(last.since(own))
            )
        }
        (Some(own), Some(last)) if last == own => String::new(),
        (_, last) => until(last, now),
    }
}

/// Its type, its status and its text.
fn as_reported(condition: &Condition) -> (&str, &str, &str) {
    let text = match condition.message.as_str() {
        "" => &condition.reason,
        message => message,
    };
    (&condition.kind, &condition.status, text)
}

fn condition_line(status: &NodeStatus, condition: &Condition, now: Time) -> String {
    let since = condition
        .since
        .map(|since| format!(" for {}", HumanDuration(now.since(since))));
    // The kubelet keeps this condition for ever; without an event it describes the last one.
    let is_last = condition.kind == TRANSITION && status.lifecycle_events.is_empty();
    let last = match condition.reason.as_str() {
        _ if !is_last => String::new(),
        "" => " (left by a LifecycleEvent that has ended)".to_owned(),
        reason => format!(
            " (reason {}, left by a LifecycleEvent that has ended)",
            one_line(reason)
        ),
    };
    format!(
        "  condition  {}={}{}: {}{last}",
        condition.kind,
        condition.status,
        since.unwrap_or_default(),
        one_line(as_reported(condition).2)
    )
}

/// The lines about pods that are not listed, and about missing facts.
pub(super) fn tail_lines(status: &NodeStatus, now: Time, unlisted: usize) -> Vec<String> {
    let unlisted = (unlisted > 0 && unlisted < status.pods.len())
        .then(|| format!("    and {}; -o wide lists them", count(unlisted, "other pod")));
    let mut lines: Vec<_> = unlisted.into_iter().collect();
    let unread = status.details.unread.iter();
    lines.extend(unread.map(|what| format!("    not shown: {}", one_line(what))));
    let without_room = status.without_room(&status.remaining_pods(now), now);
    if without_room > 0 {
        lines.push(format!(
            "    {without_room} of the pods to evict have no room in the driver's status: the API server's state of them is \
             shown"
        ));
    }
    lines
}

/// The lines about pods that are held by the same: the reason and advice, unless the budget's group contains that.
pub(super) fn pod_lines(
    group: &BudgetGroup<'_>,
    row: &PodRow<'_>,
    width: usize,
    status: &NodeStatus,
    now: Time,
) -> Vec<String> {
    let held = row.held;
    let pod = &held.pod.id;
    let has_budget_line = group.budget.is_some();
    let (name, text) = match &held.reason {
        Some(reason) => (
            reason.name(),
            reason_with_details(held, reason, has_budget_line, status, now),
        ),
        None => ("-", String::new()),
    };
    let line = format!("    {:<width$}  {name:<20}  {}", row.name(), one_line(&text));
    let mut lines = vec![line.trim_end().to_owned()];
    let next = held.reason.as_ref().filter(|_| !has_budget_line);
    if let Some(next) = next.and_then(|reason| advice::of_pod(reason, pod, &status.node.name, None, None)) {
        lines.push(format!("      next: {}", one_line(&next)));
    }
    lines
}

/// `has_budget_line`: a line above says what the budget allows.
fn reason_with_details(
    held: &RemainingPod<'_>,
    reason: &Reason,
    has_budget_line: bool,
    status: &NodeStatus,
    now: Time,
) -> String {
    let is_told = has_budget_line && matches!(reason, Reason::BudgetExhausted { .. });
    let text = (!is_told).then(|| reason_text(reason, now));
    let waited = held.waited.filter(|_| !contains_duration(reason));
    let waited = waited.map(|waited| format!("for {}", HumanDuration(waited)));
    let texts: Vec<String> = text.into_iter().chain(waited).collect();
    let workload = held.workload(status);
    let workload = workload.map(|workload| format!(" ({})", workload_text(&workload)));
    let text = texts.join(", ") + &workload.unwrap_or_default();
    text.trim_start().to_owned()
}

/// `unlisted`: so many have nothing to report.
fn pod_count_text(pods: usize, unlisted: usize) -> String {
    match pods {
        0 => "no pod is here".to_owned(),
        pods if pods == unlisted => format!("{} here; -o wide lists them", count(pods, "pod")),
        pods => format!("{} here:", count(pods, "pod")),
    }
}

fn drain_lines(status: &NodeStatus, now: Time) -> Vec<String> {
    // The head line reports a cordon that was made ahead of a drain.
    let Some(mark) = status.node.checkpoint.as_ref().filter(|mark| !mark.ahead) else {
        return Vec::new();
    };
    let mut lines = vec![format!(
        "  drain      {} for {} {}{}, begun {} ago{}",
        phase_text(status, mark, now),
        mark.trigger,
        mark.name,
        if status.machine_is_off(mark) {
            " with --node-is-off"
        } else {
            ""
        },
        HumanDuration(now.since(mark.started)),
        if mark.phase == Phase::Finished {
            String::new()
        } else {
            until(mark.deadline, now)
        }
    )];
    lines.extend(driver_line(status, now));
    if status.is_paused() {
        lines.push(format!("  paused     {UNCORDONED}"));
        lines.push(format!("    next: {}", advice::of_paused(&status.node.name)));
    }
    // What --node-is-off has done is undone by other commands.
    if is_undone(status, mark, now) && status.node.unschedulable && !status.machine_is_off(mark) {
        lines.push(format!("    next: {}", advice::of_undone(&status.node.name)));
    }
    lines.extend(abandoned_line(status, mark, now));
    // Without a status it is unknown how far the hooks of an ended drain came.
    if status.current_driver_status(now).is_some() || !status.is_over() {
        let hooks = status.hooks(now);
        lines.extend(hooks.iter().flat_map(|hook| hook_lines(status, mark, hook, now)));
        lines.extend(volume_lines(status, now));
        lines.extend(force_lines(status, now));
        lines.extend(estimate_line(status, now));
    }
    lines
}

/// What to do about a drain whose process is gone, or may be.
fn abandoned_line(status: &NodeStatus, mark: &Checkpoint, now: Time) -> Option<String> {
    let node = &status.node.name;
    let advice = match status.lease_holder {
        _ if status.is_over() => return None,
        LeaseHolder::Abandoned { .. } => advice::of_abandoned(mark, node),
        LeaseHolder::Free if status.current_driver_status(now).is_none() => {
            advice::of_perhaps_abandoned(mark, node)?
        }
        _ => return None,
    };
    Some(format!("    next: {advice}"))
}

/// What the drain does, or how it has ended. The checkpoint alone does not tell whether the hooks before the first pod are
/// over, but where none is open nothing is said of them.
fn phase_text(status: &NodeStatus, mark: &Checkpoint, now: Time) -> &'static str {
    match is_undone(status, mark, now) {
        true => UNDONE,
        false => phase_words(status.phase(mark, now), !status.hooks(now).is_empty()),
    }
}

/// What a drain does that has open hooks, or none.
pub(crate) const fn phase_words(phase: Phase, has_hooks: bool) -> &'static str {
    match phase {
        Phase::Holding if !has_hooks => "draining",
        phase => phase.text(),
    }
}

/// A drain has ended, and the node is not drained.
fn is_undone(status: &NodeStatus, mark: &Checkpoint, now: Time) -> bool {
    let is_good = mark.ended_well || mark.drained;
    mark.intent == Intent::Drain && !is_good && status.phase(mark, now) == Phase::Finished
}

/// That the process which holds the Lease may be gone, as the rest of a line.
fn holder_note(status: &NodeStatus, now: Time, before: &str) -> String {
    let is_held = matches!(status.lease_holder, LeaseHolder::Held { .. });
    let words = status.holder_text(now).filter(|_| is_held);
    words.map_or_else(String::new, |words| format!("{before}{words}"))
}

/// The line about the source of the status, and its age.
fn driver_line(status: &NodeStatus, now: Time) -> Option<String> {
    let view = match (&status.driver, status.current_driver_status(now)) {
        (_, Some(view)) => view,
        (_, None) if status.is_over() => return None,
        (_, None) if status.lease_holder.is_abandoned() => {
            let gone = status.holder_text(now).unwrap_or_default();
            return Some(format!("  driver     {gone}; showing the API server's state"));
        }
        (Some(stale), None) => {
            let ago = HumanDuration(now.since(stale.at));
            let silent = holder_note(status, now, ", and ");
            return Some(format!(
                "  driver     no status for {ago}{silent}; showing the API server's state"
            ));
        }
        (None, None) => {
            let words = match status.holder_text(now) {
                Some(words) => format!("{words};"),
                None => "no status published,".to_owned(),
            };
            return Some(format!("  driver     {words} showing the API server's state"));
        }
    };
    let ago = HumanDuration(now.since(view.at));
    let wave = view.wave.as_ref();
    let wave = wave.map(|wave| format!("; wave {}", wave.text()));
    let wave = wave.unwrap_or_default();
    Some(match &view.ended {
        Some(ended) => format!(
            "  ended      {ago} ago, {}; the pods' reasons are from that moment",
            one_line(ended)
        ),
        None => {
            let silent = holder_note(status, now, "; ");
            format!("  driver     status from {ago} ago{wave}{silent}")
        }
    })
}

fn hook_lines(status: &NodeStatus, mark: &Checkpoint, hook: &HookStatus, now: Time) -> Vec<String> {
    let of = status.subject_text(&hook.subject);
    // A drain that has ended runs no hook; the line shows the hook's last progress.
    let ended = status.driver.as_ref().filter(|_| status.is_over());
    if let Some(ended) = ended.map(|view| view.at) {
        let head = format!("  hook       {}", hook.unfinished_text(&of, ended));
        let awaited = hook.awaited(ended).map(|on| format!("    waited for {on}"));
        return std::iter::once(head).chain(awaited).collect();
    }
    let head = format!("  hook       {}", hook.running_text(&of, now));
    let awaited = hook.awaited(now).map(|on| format!("    waits for {on}"));
    let next = format!("    next: {}", advice::of_hook(mark, &status.node.name));
    std::iter::once(head).chain(awaited).chain([next]).collect()
}

/// The lines about the volumes that the drain waits for.
fn volume_lines(status: &NodeStatus, now: Time) -> Vec<String> {
    let view = status.current_driver_status(now).filter(|_| !status.is_over());
    let Some(volumes) = view.and_then(|view| view.volumes.as_ref()) else {
        return Vec::new();
    };
    vec![
        format!("  volumes    {}", volumes.text(now)),
        format!(
            "    next: {}",
            one_line(&advice::of_volumes(&volumes.left, &status.node.name))
        ),
    ]
}

/// The lines about pods that are deleted shortly before the deadline.
fn force_lines(status: &NodeStatus, now: Time) -> Vec<String> {
    let view = status.current_driver_status(now);
    let force = view.and_then(|view| view.force.as_ref());
    let texts = force.map(|force| force.texts(now)).unwrap_or_default();
    texts.iter().map(|text| format!("  force      {text}")).collect()
}

/// The line about when the drain will probably end.
fn estimate_line(status: &NodeStatus, now: Time) -> Option<String> {
    let view = status.current_driver_status(now).filter(|_| !status.is_over())?;
    let text = view.estimate?.text(now)?;
    Some(format!("  ends       {text}"))
}

/// The owner of the cordon, in one word.
pub(super) fn cordon(node: &Node) -> &'static str {
    let ours = node.checkpoint.as_ref().is_some_and(|mark| mark.own_cordon);
    match (node.unschedulable, ours) {
        (false, _) => "none",
        (true, true) => "ours",
        (true, false) => "others",
    }
}

fn cordon_text(node: &Node) -> &'static str {
    let is_ahead = node.checkpoint.as_ref().is_some_and(|mark| mark.ahead);
    match cordon(node) {
        "ours" if is_ahead => "cordoned by Scupper, ahead of a drain that has not begun",
        "ours" => "cordoned by Scupper",
        "others" => "cordoned, not by Scupper",
        _ => "takes pods",
    }
}

/// The conditions that concern a drain.
pub(super) fn conditions(node: &Node) -> impl Iterator<Item = &Condition> {
    let is_ours = |condition: &&Condition| CONDITIONS.contains(&condition.kind.as_str());
    node.conditions.iter().filter(is_ours)
}

fn until(deadline: Option<Time>, now: Time) -> String {
    match deadline {
        Some(deadline) if deadline > now => format!(", to end within {}", HumanDuration(deadline.since(now))),
        Some(deadline) => format!(", overdue by {}", HumanDuration(now.since(deadline))),
        None => String::new(),
    }
}
