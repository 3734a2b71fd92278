//! One line for each node that drains, is drained, waits or has failed: which nodes to ask `scupper status NODE` about.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use scupper_api::ClaimStatus;
use scupper_engine::{Checkpoint, Condition, HumanDuration, Intent, Phase, Time};
use serde_json::{Value, json};

use super::advice::unreleased_text;
use super::lines::cordon;
use super::{LeaseHolder, NodeStatus};
use crate::conditions::{COMPLETED, MAINTENANCE_COMPLETE, UNCORDONED};
use crate::messages::{count, one_line};
use scupper_common::clock::rfc3339;

/// For how long a node shows that its last drain has failed, or that it was given back.
const SHOWN_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// Older numbers of pods have their age beside them.
const LIVE: Duration = Duration::from_secs(2);

/// How many reasons are named.
const REASONS: usize = 3;

/// What a node does or waits for, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum NodeState {
    Abandoned,
    Failed,
    Draining,
    RollingBack,
    Uncordoning,
    Planning,
    Waiting,
    ToUndo,
    Drained,
    Cancelled,
    Cordoned,
    InService,
}

impl NodeState {
    const fn name(self) -> &'static str {
        match self {
            Self::Abandoned => "abandoned",
            Self::Failed => "failed",
            Self::Draining => "draining",
            Self::RollingBack => "rolling back",
            Self::Uncordoning => "uncordoning",
            Self::Planning => "planning",
            Self::Waiting => "waiting",
            Self::ToUndo => "to undo",
            Self::Drained => "drained",
            Self::Cancelled => "cancelled",
            Self::Cordoned => "cordoned",
            Self::InService => "in service",
        }
    }
}

/// A node of which there is something to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSummary {
    node: String,
    state: NodeState,
    /// Since when, if that is known.
    since: Option<Time>,
    /// In words.
    why: String,
}

impl NodeSummary {
    /// `None`: the node is not cordoned, and nothing of the last day is to be said of it. Its pods need not be known.
    pub fn of(status: &NodeStatus, now: Time) -> Option<Self> {
        let mut events = status.lifecycle_events.iter();
        let held = events.find(|event| status.waits_for_release(event));
        let held = held.map(|event| unreleased_text(&format!("LifecycleEvent {}", event.name)));
        let (state, since, why) = at_work(status, now)
            .or_else(|| waiting(status))
            .or_else(|| ended(status, now))
            .or_else(|| cordoned(status))
            .or_else(|| to_undo(status).map(|left| (NodeState::ToUndo, None, left)))
            .or_else(|| held.as_ref().map(|_| (NodeState::Waiting, None, String::new())))?;
        let left = to_undo(status).filter(|left| *left != why);
        let behind = matches!(
            state,
            NodeState::Draining | NodeState::Abandoned | NodeState::RollingBack
        )
        .then(|| behind(status))
        .flatten();
        let why: Vec<_> = std::iter::once(why)
            .chain(behind)
            .chain(held)
            .chain(left)
            .filter(|text| !text.is_empty())
            .collect();
        Some(Self {
            node: status.node.name.clone(),
            state,
            since,
            why: one_line(&why.join("; ")),
        })
    }

    /// As one object.
    pub fn to_json(&self) -> Value {
        json!({
            "node": self.node, "state": self.state.name(), "since": self.since.map(rfc3339), "why": self.why,
        })
    }
}

/// A table, the most urgent first. `others`: how many nodes there are of which nothing is to be said.
pub fn overview_lines(summaries: &[NodeSummary], others: usize, now: Time) -> Vec<String> {
    let mut sorted: Vec<_> = summaries.iter().collect();
    sorted.sort_by_key(|summary| (summary.state, &summary.node));
    let row = |summary: &&NodeSummary| {
        let since = summary
            .since
            .map(|since| HumanDuration(now.since(since)).to_string());
        let state = summary.state.name().to_owned();
        [
            summary.node.clone(),
            state,
            since.unwrap_or_default(),
            summary.why.clone(),
        ]
    };
    let mut rows: Vec<_> = sorted.iter().map(row).collect();
    if !rows.is_empty() {
        rows.insert(0, ["NODE", "STATE", "FOR", "WHY"].map(str::to_owned));
    }
    let width = |column: usize| {
        let lengths = rows
            .iter()
            .filter_map(|row| Some(row.get(column)?.chars().count()));
        lengths.max().unwrap_or(0)
    };
    let [node, state, since] = [width(0), width(1), width(2)];
    let mut lines: Vec<_> = rows
        .iter()
        .map(|[of, is, after, why]| format!("{of:<node$}  {is:<state$}  {after:<since$}  {why}"))
        .map(|line| line.trim_end().to_owned())
        .collect();
    let more = if rows.is_empty() { "node" } else { "more node" };
    if others > 0 || rows.is_empty() {
        lines.push(format!("{}: nothing to report", count(others, more)));
    }
    lines
}

type Found = (NodeState, Option<Time>, String);

/// A drain or uncordon that has not ended.
fn at_work(status: &NodeStatus, now: Time) -> Option<Found> {
    if let (Some(drain), LeaseHolder::Held { by, .. }) = (status.planning(), &status.lease_holder) {
        let state = match drain.intent {
            Intent::Drain => NodeState::Planning,
            Intent::Uncordon => NodeState::Uncordoning,
        };
        let why = std::iter::once(format!("{} {}, by {by}", drain.trigger, drain.name));
        let why: Vec<_> = why.chain(status.holder_text(now)).collect();
        return Some((state, None, why.join("; ")));
    }
    let is_under_way = |mark: &&Checkpoint| mark.is_under_way() && !mark.ahead;
    let mark = status.node.checkpoint.as_ref().filter(is_under_way)?;
    let state = match (mark.intent, mark.phase) {
        _ if status.lease_holder.is_abandoned() => NodeState::Abandoned,
        (Intent::Uncordon, _) => NodeState::Uncordoning,
        (Intent::Drain, Phase::RollingBack) => NodeState::RollingBack,
        (Intent::Drain, _) => NodeState::Draining,
    };
    let taken = status
        .continuation()
        .map(|drain| format!(", continued for {} {}", drain.trigger, drain.name));
    let of = format!("{} {}{}", mark.trigger, mark.name, taken.unwrap_or_default());
    let gone = status.holder_text(now);
    let paused = status
        .is_paused()
        .then(|| "paused: uncordoned outside Scupper".to_owned());
    let texts = std::iter::once(of).chain(gone).chain(paused);
    let texts = texts.chain(pods_to_go(status, now));
    let since = match status.lease_holder {
        LeaseHolder::Abandoned { silent_since, .. } => silent_since,
        _ => Some(mark.started),
    };
    Some((state, since, texts.collect::<Vec<_>>().join("; ")))
}

/// How many pods are to leave, and what most of them wait for, as the draining process has published it last.
fn pods_to_go(status: &NodeStatus, now: Time) -> Option<String> {
    let view = status.current_driver_status(now)?;
    let leaving = view.pods.iter().filter(|pod| !pod.reason.stays());
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for pod in leaving {
        *reasons.entry(pod.reason.name()).or_default() += 1;
    }
    let unknown = usize::try_from(view.more).unwrap_or(usize::MAX);
    let all = reasons.values().sum::<usize>().saturating_add(unknown);
    let mut sorted: Vec<_> = reasons.into_iter().collect();
    sorted.sort_by_key(|(name, pods)| (Reverse(*pods), *name));
    let most = sorted
        .iter()
        .take(REASONS)
        .map(|(name, pods)| format!("{pods} {name}"));
    let rest = all - sorted.iter().take(REASONS).map(|(_, pods)| pods).sum::<usize>();
    let rest = (rest > 0).then(|| count(rest, "other"));
    let which: Vec<_> = most.chain(rest).collect();
    let age = now.since(view.at);
    let when = match age >= LIVE {
        true => format!(" ({} ago)", HumanDuration(Duration::from_secs(age.as_secs()))),
        false => String::new(),
    };
    let pods = (all > 0).then(|| format!("{} to go{when}: {}", count(all, "pod"), which.join(", ")));
    let hooks = view
        .hooks
        .iter()
        .map(|hook| format!("policy {} waits", hook.policy));
    let texts: Vec<_> = hooks.chain(pods).collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

/// A LifecycleEvent that no driver has claimed.
fn waiting(status: &NodeStatus) -> Option<Found> {
    let mut events = status.lifecycle_events.iter();
    let open = events.find(|event| !event.deleting && event.claim == ClaimStatus::Pending)?;
    let why = format!("no driver has claimed LifecycleEvent {}", open.name);
    Some((NodeState::Waiting, open.created, why))
}

/// What comes after the drain that is under way.
fn behind(status: &NodeStatus) -> Option<String> {
    let events = status.lifecycle_events.iter();
    let mut waiting = events.filter(|event| !event.deleting && event.claim == ClaimStatus::Pending);
    let first = waiting.next()?;
    Some(match waiting.count() {
        0 => format!("LifecycleEvent {} is not claimed yet", first.name),
        more => format!(
            "LifecycleEvent {} and {more} more are not claimed yet",
            first.name
        ),
    })
}

/// How the last drain or uncordon has ended: by its conditions, or by its mark where they may not be written. Conditions
/// that are older than the mark are another drain's.
fn ended(status: &NodeStatus, now: Time) -> Option<Found> {
    let node = &status.node;
    let mark = node.checkpoint.as_ref().filter(|mark| !mark.ahead);
    let is_ours = |it: &&Condition| {
        // It has whole seconds.
        let since = it.since.map(|since| since + Duration::from_secs(1));
        let is_of_mark = mark.is_none_or(|mark| since.is_some_and(|since| since > mark.started));
        it.kind == "DrainInProgress" && it.status == "False" && is_of_mark
    };
    let last = node.conditions.iter().find(is_ours);
    let message = last.map_or("", |last| last.message.as_str());
    // An uncordon changes only `Drained`: the other one of the pair was false before and keeps its older time.
    let is_same = |it: &&Condition| {
        let is_of_pair = ["DrainInProgress", "Drained"].contains(&it.kind.as_str());
        is_of_pair && it.status == "False" && last.is_some_and(|last| last.reason == it.reason)
    };
    let since = node
        .conditions
        .iter()
        .filter(is_same)
        .filter_map(|it| it.since)
        .max();
    let is_of_today = since.is_some_and(|since| now.since(since) < SHOWN_FOR);
    let held = mark.filter(|mark| node.unschedulable && mark.own_cordon);
    let found = |state, message: &str| Some((state, since, message.to_owned()));
    let stays = |message: &str| match node.unschedulable {
        true => format!("{message}; the node is still cordoned"),
        false => message.to_owned(),
    };
    match last.map_or("", |last| last.reason.as_str()) {
        // Without the right to it no condition was written.
        _ if node.is_drained_by_us() && message.is_empty() => {
            let of = mark.map(|mark| format!("{} {}", mark.trigger, mark.name));
            found(NodeState::Drained, &of.unwrap_or_default())
        }
        _ if node.is_drained_by_us() => found(NodeState::Drained, message),
        _ if held.is_some_and(|mark| mark.ended_well) => found(
            NodeState::Cordoned,
            "by Scupper, after a drain of some of its pods",
        ),
        MAINTENANCE_COMPLETE | COMPLETED | UNCORDONED if is_of_today && !node.unschedulable => {
            found(NodeState::InService, message)
        }
        COMPLETED | MAINTENANCE_COMPLETE if held.is_none() => None,
        "DrainCancelled" if held.is_some() || is_of_today => found(NodeState::Cancelled, &stays(message)),
        reason if reason.starts_with("Drain") && (held.is_some() || is_of_today) => {
            found(NodeState::Failed, &stays(message))
        }
        _ => {
            let said = status.driver.as_ref().and_then(|view| view.ended.clone());
            let said = said.unwrap_or_else(|| "no reason recorded".to_owned());
            held.and_then(|_| found(NodeState::Failed, &stays(&said)))
        }
    }
}

fn cordoned(status: &NodeStatus) -> Option<Found> {
    let is_ahead = status.node.checkpoint.as_ref().is_some_and(|mark| mark.ahead);
    let why = match cordon(&status.node) {
        "ours" if is_ahead => "by Scupper, ahead of a drain that has not begun",
        "ours" => "by Scupper",
        "others" => "not by Scupper",
        _ => return None,
    };
    Some((NodeState::Cordoned, None, why.to_owned()))
}

fn to_undo(status: &NodeStatus) -> Option<String> {
    let left = status.left_to_undo();
    (!left.policies.is_empty()).then(|| left.note())
}
