//! How a handed-over drain ended: by its LifecycleEvent's status, with the text of the driver's Kubernetes Event about
//! the node.

use std::time::Duration;

use scupper_api::LifecycleEvent;
use scupper_cluster::{Cluster, ObservedEvent, ReadError};
use scupper_engine::{Checkpoint, Time};
use scupper_report::{CordonLeft, FollowEvent, NodeLeft, PolicyMessage, end_text, is_done};
use scupper_runner::reporter::policy_messages::POLICY_ACTION;
use scupper_triggers::slm::OUTCOME_PREFIXES;
use tokio::time::sleep;

/// How often to look for the driver's Event about the end.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(200);

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandOverEnd {
    /// Done.
    Done,
    /// Pods may not leave, or it could not be carried out.
    Failed,
    /// A policy refused it or failed.
    Policy,
    /// The deadline passed.
    Deadline,
    /// It was cancelled.
    Cancelled,
    /// No driver claimed it, and the command deleted it.
    NotTaken,
    /// The driver continues it; the command stopped following.
    Detached,
}

impl HandOverEnd {
    /// In a word or a few.
    pub const fn text(&self) -> &'static str {
        match self {
            Self::Done => "Succeeded",
            Self::Failed => "Failed",
            Self::Policy => "PolicyFailed",
            Self::Deadline => "DeadlineExceeded",
            Self::Cancelled => "Cancelled",
            Self::NotTaken => "no driver took it",
            Self::Detached => "its driver goes on",
        }
    }
}

/// The end of a drain, for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EventResult {
    pub(super) end: HandOverEnd,
    pub(super) outcome: String,
    /// A sentence.
    pub(super) message: String,
}

impl EventResult {
    /// By what the LifecycleEvent was last; `None`: it was taken away before it had come to an end.
    pub(super) fn of_state(state: Option<&str>) -> Self {
        let end = match state {
            Some("Succeeded") => HandOverEnd::Done,
            Some("SlaExpired") => HandOverEnd::Deadline,
            Some(_) => HandOverEnd::Failed,
            None => HandOverEnd::Cancelled,
        };
        Self {
            outcome: end.text().to_owned(),
            end,
            message: String::new(),
        }
    }

    /// No driver ever began it.
    pub(super) fn untouched(end: HandOverEnd) -> Self {
        Self {
            end,
            outcome: "Cancelled".to_owned(),
            message: "the LifecycleEvent is withdrawn; nothing was begun".to_owned(),
        }
    }

    /// Adds the text of the driver's Events. Only the LifecycleEvent says that a drain succeeded.
    pub(super) fn with(self, event: &str, notes: &[ObservedEvent]) -> Self {
        // The Event about the drain's end first: the driver may report the same about the LifecycleEvent in other words.
        let own = notes.iter().find_map(|note| Self::of_outcome(event, note));
        let reported = own.or_else(|| notes.iter().find_map(|note| Self::of_event(event, note)));
        match reported {
            Some(reported) if (reported.end == HandOverEnd::Done) == (self.end == HandOverEnd::Done) => {
                reported
            }
            _ => self,
        }
    }

    /// The driver's Event about the end of a drain.
    fn of_outcome(event: &str, note: &ObservedEvent) -> Option<Self> {
        let end = end_of(&note.reason)?;
        let rest = note.text.strip_prefix(&format!("{event} after "))?;
        Some(Self {
            end,
            outcome: note.reason.clone(),
            message: match rest.split_once(": ") {
                Some((took, why)) => end_text(&note.reason, took, why),
                None => format!("{} in {rest}", note.reason),
            },
        })
    }

    /// The driver's Event about a LifecycleEvent that failed, maybe before a drain began.
    fn of_event(event: &str, note: &ObservedEvent) -> Option<Self> {
        let why = note
            .text
            .strip_prefix(&format!("LifecycleEvent {event} failed: "))
            .filter(|_| note.reason == "EventFailed")?;
        let known = OUTCOME_PREFIXES
            .into_iter()
            .find(|(begins, _)| why.starts_with(begins));
        let outcome = known.map_or("Failed", |(_, name)| name);
        Some(Self {
            end: end_of(outcome).unwrap_or(HandOverEnd::Failed),
            outcome: outcome.to_owned(),
            message: end_text(outcome, "", why),
        })
    }
}

/// What the end of a drain leaves of the node. It is read now: a watch may not have shown yet what was undone.
pub(super) async fn node_left(
    cluster: &Cluster,
    node: &str,
    is_done: bool,
    is_driver_gone: bool,
) -> Option<String> {
    let found = cluster.node(node).await.ok().flatten()?;
    let cordon = match (found.unschedulable, &found.checkpoint) {
        (false, _) => CordonLeft::None,
        // It is about to be lifted.
        (true, Some(mark)) if mark.ahead => return None,
        (true, Some(mark)) if mark.own_cordon => CordonLeft::Ours,
        (true, _) => CordonLeft::Others,
    };
    // What should have been undone has words, which the driver's report of the end has given.
    let left = found.checkpoint.iter().flat_map(Checkpoint::left_to_undo);
    let kept_by = left.filter(|(_, words)| words.is_empty());
    let kept_by: Vec<_> = kept_by.map(|(policy, _)| policy).collect();
    let local = if is_driver_gone { " --local" } else { "" };
    let back = format!("scupper uncordon {node}{local}");
    let left = NodeLeft {
        node,
        is_done,
        cordon,
        kept_by: &kept_by,
        flags: "",
        back: &back,
    };
    Some(left.text())
}

/// What policies have said about the node since the request, in Events.
pub(super) fn policy_messages(notes: &[ObservedEvent], since: Time) -> impl Iterator<Item = FollowEvent> {
    let ours =
        move |note: &&ObservedEvent| note.action == POLICY_ACTION && note.at.is_some_and(|at| at >= since);
    let words = |note: &ObservedEvent| PolicyMessage::of_note(&note.reason, note.warning, &note.text);
    let said = notes.iter().filter(ours).filter_map(words);
    said.map(|words| FollowEvent::PolicyMessage { words })
}

/// By an outcome's name.
fn end_of(reason: &str) -> Option<HandOverEnd> {
    Some(match reason {
        "Drained" | "Uncordoned" => HandOverEnd::Done,
        "PolicyFailed" => HandOverEnd::Policy,
        "DeadlineExceeded" => HandOverEnd::Deadline,
        "Cancelled" => HandOverEnd::Cancelled,
        "Blocked" | "Lost" | "Failed" => HandOverEnd::Failed,
        _ => return None,
    })
}

/// How it ended, with the driver's Events about the node. The one about the end may come a little later than the end.
pub(super) async fn result_and_events(
    cluster: &Cluster,
    node: &str,
    event: &LifecycleEvent,
    last: Option<&str>,
) -> (EventResult, Vec<ObservedEvent>) {
    let mut bare = EventResult::of_state(last);
    let mut heard = Vec::new();
    for _ in 0..TRIES {
        if last.is_none() && is_done_on_node(cluster, node, event).await {
            bare = EventResult::of_state(Some("Succeeded"));
        }
        match cluster.events_about_node(node).await {
            Ok(notes) => {
                let reported = bare.clone().with(&event.name, &notes);
                if reported != bare {
                    return (reported, notes);
                }
                heard = notes;
            }
            Err(error @ ReadError::Unavailable { .. }) => {
                tracing::debug!(%error, "the Events that say more of the end cannot be read yet");
            }
            Err(error) => {
                tracing::warn!(%error, "the Events that say more of the end cannot be read");
                break;
            }
        }
        sleep(PAUSE).await;
    }
    (bare, heard)
}

/// The driver deletes what has succeeded, maybe before any watch has shown that. The node keeps it.
async fn is_done_on_node(cluster: &Cluster, node: &str, event: &LifecycleEvent) -> bool {
    let node = cluster.node(node).await.ok().flatten();
    let has_ended_well = |mark: &Checkpoint| mark.id == event.uid && mark.ended_well;
    node.is_some_and(|node| {
        node.checkpoint.as_ref().is_some_and(has_ended_well) || is_done(&node, &event.name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(reason: &str, text: &str) -> ObservedEvent {
        ObservedEvent {
            reason: reason.to_owned(),
            text: text.to_owned(),
            action: "Drain".to_owned(),
            warning: false,
            at: None,
        }
    }

    #[test]
    fn the_drivers_message_is_used_where_it_fits() {
        let notes = [
            note("Blocked", "drain-b after 1s: not this one"),
            note("Whatever", "drain-a after 1s: no outcome"),
            note("PolicyFailed", "drain-a after 2s: policy slurm: no"),
        ];
        let reported = EventResult::of_state(Some("Failed")).with("drain-a", &notes);
        assert_eq!(reported.end, HandOverEnd::Policy);
        assert_eq!(reported.message, "PolicyFailed in 2s: policy slurm: no");
        let cancelled = [note(
            "Cancelled",
            "drain-a after 2s: cancelled: the event was deleted",
        )];
        let reported = EventResult::of_state(None).with("drain-a", &cancelled);
        assert_eq!(
            (reported.end, reported.message.as_str()),
            (HandOverEnd::Cancelled, "Cancelled in 2s: the event was deleted")
        );
        let refused = [note("EventFailed", "LifecycleEvent drain-a failed: no such flag")];
        let reported = EventResult::of_state(Some("Failed")).with("drain-a", &refused);
        assert_eq!(
            (reported.end, reported.message.as_str()),
            (HandOverEnd::Failed, "Failed: no such flag")
        );
        // An end has one name, whichever of the driver's Events comes first, or alone.
        for (why, name, end) in [
            (
                "cancelled: the event was deleted",
                "Cancelled",
                HandOverEnd::Cancelled,
            ),
            (
                "the deadline passed; still there: shop/db",
                "DeadlineExceeded",
                HandOverEnd::Deadline,
            ),
            ("policy slurm: no", "PolicyFailed", HandOverEnd::Policy),
        ] {
            let of_drain = note(name, &format!("drain-a after 2s: {why}"));
            let of_event = note("EventFailed", &format!("LifecycleEvent drain-a failed: {why}"));
            for notes in [
                vec![of_drain.clone()],
                vec![of_event.clone()],
                vec![of_drain.clone(), of_event.clone()],
                vec![of_event, of_drain],
            ] {
                let reported = EventResult::of_state(Some("Failed")).with("drain-a", &notes);
                assert_eq!(
                    (&reported.end, reported.outcome.as_str()),
                    (&end, name),
                    "{notes:?}"
                );
            }
        }
        // The right to write Events is not the right to declare a node drained.
        let notes = [note("Drained", "drain-a after 2s: all gone")];
        for state in [Some("Failed"), Some("SlaExpired"), None] {
            assert_ne!(
                EventResult::of_state(state).with("drain-a", &notes).end,
                HandOverEnd::Done
            );
        }
        let reported = EventResult::of_state(Some("Succeeded")).with("drain-a", &notes);
        assert_eq!(
            (reported.end, reported.outcome.as_str()),
            (HandOverEnd::Done, "Drained")
        );
        let lies = [note("Failed", "drain-a after 2s: no")];
        assert_eq!(
            EventResult::of_state(Some("Succeeded"))
                .with("drain-a", &lies)
                .end,
            HandOverEnd::Done
        );
    }
}
