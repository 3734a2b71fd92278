//! The node conditions of KEP-5683, and the few Events of a drain.
//!
//! `DrainInProgress` and `Drained` are always written as a pair. `Drained=True` means that the writer's criteria are
//! met, so the message states these criteria. A drain of pods that the request names says nothing of the node's other
//! pods: it leaves `Drained` alone.

use scupper_api::NodeCondition;
use scupper_engine::{HookPhase, HumanDuration, Intent, Node, Notice, Outcome, PolicyInfo, Request, Summary};

use super::condition_cleanup::conditions_of_lifted;
use super::force::forced_summary;
use super::messages::{gone_text, one_line, stayed_text, volumes_left_text};
use super::surge::step_event;
use super::undo::not_undone_note;

/// The reason of `Drained=True`, by which the engine recognizes its own condition.
pub(super) const COMPLETED: &str = Node::DRAINED_BY_US;
/// The reason of both conditions after an uncordon.
pub(super) const MAINTENANCE_COMPLETE: &str = "MaintenanceComplete";
/// Somebody else has lifted the cordon.
pub(super) const UNCORDONED: &str = "Uncordoned";
/// The reason of `DrainInProgress=True`.
pub(super) const STARTED: &str = "DrainStarted";

/// An Event about the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeEvent {
    /// `Warning` instead of `Normal`.
    pub warning: bool,
    /// CamelCase, one word
    pub reason: String,
    /// Text for people.
    pub note: String,
}

/// What a successful drain did.
pub fn drained_text(summary: &Summary) -> String {
    let gone = gone_text(summary);
    let rest = match summary.stayed.is_empty() {
        true => String::new(),
        false => format!("; {}", stayed_text(summary)),
    };
    let volumes = volumes_left_text(&Outcome::Drained, summary);
    let volumes = volumes.map(|left| format!("; {left}")).unwrap_or_default();
    let forced = forced_text(summary);
    format!("{gone}, {} kept as planned{forced}{rest}{volumes}", summary.kept)
}

/// The pair of conditions of a drain in progress. `ends`: when it will probably end, as the end of a sentence.
pub fn conditions_of_started(request: &Request, ends: Option<&str>) -> Vec<NodeCondition> {
    let ends = ends.map_or_else(String::new, |at| format!("; it will probably end {at}"));
    let message = format!("drain {} is under way{ends}", request.name);
    of_drain(request, pair("True", "False", STARTED, &message))
}

/// Of the pair, which has one message, people read the condition that is true, and of two that are false the first.
/// Conditions are given as type, status and text.
pub fn is_repeated(condition: (&str, &str, &str), all: &[(&str, &str, &str)]) -> bool {
    const PAIR: [&str; 2] = ["DrainInProgress", "Drained"];
    let (kind, status, text) = condition;
    let mut others = all.iter().filter(|(other, _, other_text)| {
        *other != kind && PAIR.contains(other) && *other_text == text && !text.is_empty()
    });
    PAIR.contains(&kind)
        && others.any(|(_, other, _)| match (status, *other) {
            ("True", _) => false,
            (_, "True") => true,
            _ => kind == "Drained",
        })
}

/// The pair of conditions that a notice requires, if any.
pub fn conditions_for(request: &Request, notice: &Notice) -> Option<Vec<NodeCondition>> {
    match notice {
        Notice::Cordoned { .. } => Some(conditions_of_started(request, None)),
        Notice::Finished {
            outcome: Outcome::Drained,
            summary,
        } => {
            let message = format!("{}{}", drained_prefix(&request.name), drained_text(summary));
            Some(of_drain(request, pair("False", "True", COMPLETED, &message)))
        }
        Notice::Finished {
            outcome: Outcome::Uncordoned { .. },
            ..
        } => {
            let message = maintenance_over(&request.name);
            Some(pair("False", "False", MAINTENANCE_COMPLETE, &message))
        }
        Notice::Uncordoned if may_still_fail(request) => Some(conditions_of_lifted()),
        // The drain was refused before it changed anything, so there is nothing to reset.
        Notice::Finished {
            outcome: Outcome::Blocked { .. },
            ..
        } => None,
        // An uncordon that fails while the node is cordoned leaves the conditions as they were, usually `Drained=True`.
        Notice::Finished { .. } if request.intent == Intent::Uncordon => None,
        Notice::Finished { outcome, summary } => {
            let volumes = volumes_left_text(outcome, summary);
            let volumes = volumes.map(|left| format!("; {left}")).unwrap_or_default();
            let message = format!(
                "drain {}: {}{}{}{volumes}",
                request.name,
                one_line(&outcome.to_string()),
                not_undone_note(request, outcome, summary),
                forced_text(summary)
            );
            let reason = format!("Drain{}", outcome.name());
            Some(of_drain(request, pair("False", "False", &reason, &message)))
        }
        _ => None,
    }
}

/// The same of a drain that a policy has refused before it changed anything: its cordon may ask for it again.
pub fn conditions_of_refused(ended: Vec<NodeCondition>) -> Vec<NodeCondition> {
    let reason = "DrainRefused".to_owned();
    let with_reason = |it| NodeCondition {
        reason: reason.clone(),
        ..it
    };
    ended.into_iter().map(with_reason).collect()
}

/// An uncordon whose hooks run after the cordon is lifted.
fn may_still_fail(request: &Request) -> bool {
    let has_hook = |policy: &PolicyInfo| policy.phases.contains(&HookPhase::AfterUncordon);
    request.intent == Intent::Uncordon && request.policies.iter().any(has_hook)
}

/// The node's condition says that the drain or the uncordon of this name has ended well.
pub fn is_done(node: &Node, name: &str) -> bool {
    let mut conditions = node.conditions.iter().filter(|it| it.kind == "Drained");
    conditions.any(|it| match (it.status.as_str(), it.reason.as_str()) {
        ("True", COMPLETED) => it.message.starts_with(&drained_prefix(name)),
        ("False", MAINTENANCE_COMPLETE) => it.message == maintenance_over(name),
        _ => false,
    })
}

fn drained_prefix(name: &str) -> String {
    format!("drain {name}: ")
}

fn maintenance_over(name: &str) -> String {
    format!("maintenance is over: {name}")
}

/// The Event that a notice requires, if any.
pub fn event_for(request: &Request, notice: &Notice) -> Option<NodeEvent> {
    let event = |warning: bool, reason: &str, note: String| {
        Some(NodeEvent {
            warning,
            reason: reason.to_owned(),
            note: one_line(&note),
        })
    };
    match notice {
        Notice::Finished { outcome, summary } => {
            let spent = HumanDuration(summary.ended.since(summary.started));
            let mut note = format!("{} after {spent}: {outcome}", request.name);
            note.push_str(&not_undone_note(request, outcome, summary));
            note.push_str(&forced_text(summary));
            if !summary.stayed.is_empty() {
                note.push_str(&format!("; {}", stayed_text(summary)));
            }
            if let Some(left) = volumes_left_text(outcome, summary) {
                note.push_str(&format!("; {left}"));
            }
            let is_clean = summary.stayed.is_empty()
                && summary.volumes_left.is_none()
                && summary.forced.is_empty()
                && summary.to_undo.is_empty();
            let warning = !outcome.is_success() || !is_clean;
            event(warning, outcome.name(), note)
        }
        Notice::Surge { deployment, step } => step_event(&request.name, deployment, step),
        Notice::UncordonedByOthers => event(
            true,
            "UncordonedByOthers",
            format!(
                "{}: evictions are paused until the node is cordoned again",
                request.name
            ),
        ),
        _ => None,
    }
}

/// The pods that were deleted before the deadline, as the rest of a sentence.
fn forced_text(summary: &Summary) -> String {
    forced_summary(summary).map_or_else(String::new, |text| format!("; {text}"))
}

/// Those of the pair that the drain may write.
pub(super) fn of_drain(request: &Request, mut pair: Vec<NodeCondition>) -> Vec<NodeCondition> {
    if request.settings.filters.only_pods.is_some() {
        pair.retain(|condition| condition.kind != "Drained");
    }
    pair
}

pub(super) fn pair(
    in_progress: &'static str,
    drained: &'static str,
    reason: &str,
    message: &str,
) -> Vec<NodeCondition> {
    let condition = |kind, status| NodeCondition {
        kind,
        status,
        reason: reason.to_owned(),
        message: message.to_owned(),
    };
    vec![
        condition("DrainInProgress", in_progress),
        condition("Drained", drained),
    ]
}

#[cfg(test)]
mod tests {
    use scupper_engine::{Condition, Phase, Summary};

    use super::*;
    use crate::fixture::{mark, node, request};

    fn statuses(outcome: Outcome) -> Option<Vec<(&'static str, &'static str)>> {
        let notice = Notice::Finished {
            outcome,
            summary: Summary::default(),
        };
        let conditions = conditions_for(&request(), &notice)?;
        Some(
            conditions
                .iter()
                .map(|condition| (condition.kind, condition.status))
                .collect(),
        )
    }

    #[test]
    fn people_read_one_condition_of_the_pair() {
        let shown = |conditions: &[(&'static str, &'static str, &'static str)]| {
            let shown = conditions.iter().filter(|it| !is_repeated(**it, conditions));
            shown
                .map(|(kind, status, _)| format!("{kind}={status}"))
                .collect::<Vec<_>>()
        };
        let pair = |one, other| shown(&[("DrainInProgress", one, "x"), ("Drained", other, "x")]);
        assert_eq!(pair("True", "False"), ["DrainInProgress=True"]);
        assert_eq!(pair("False", "True"), ["Drained=True"]);
        assert_eq!(pair("False", "False"), ["DrainInProgress=False"]);
        let others = [
            ("DrainInProgress", "False", "x"),
            ("Drained", "True", "y"),
            ("Other", "True", "x"),
        ];
        assert_eq!(shown(&others).len(), 3);
        assert_eq!(
            shown(&[("DrainInProgress", "False", ""), ("Drained", "True", "")]).len(),
            2
        );
    }

    #[test]
    fn only_a_drained_node_is_called_drained() {
        assert_eq!(
            statuses(Outcome::Drained),
            Some(vec![("DrainInProgress", "False"), ("Drained", "True")])
        );
        for outcome in [
            Outcome::DeadlineExceeded {
                remaining: Vec::new(),
                held_up: None,
            },
            Outcome::Cancelled {
                reason: String::new(),
            },
            Outcome::Lost {
                reason: String::new(),
            },
            Outcome::Failed {
                message: String::new(),
            },
            Outcome::Uncordoned { cordon_kept: false },
        ] {
            assert_eq!(
                statuses(outcome),
                Some(vec![("DrainInProgress", "False"), ("Drained", "False")])
            );
        }
    }

    #[test]
    fn a_drain_of_named_pods_does_not_say_whether_the_node_is_drained() {
        let mut request = request();
        request.settings.filters.only_pods = Some(std::collections::BTreeMap::new());
        let mut all = conditions_of_started(&request, None);
        let message = String::new();
        for outcome in [Outcome::Drained, Outcome::Failed { message }] {
            let summary = Summary::default();
            all.extend(conditions_for(&request, &Notice::Finished { outcome, summary }).unwrap());
        }
        let kinds: Vec<_> = all.iter().map(|condition| condition.kind).collect();
        assert_eq!(kinds, ["DrainInProgress"; 3]);
    }

    #[test]
    fn the_condition_of_a_good_end_names_the_drain_or_the_uncordon() {
        let of = |outcome| {
            let summary = Summary::default();
            let written = conditions_for(&request(), &Notice::Finished { outcome, summary });
            let of_node = |it: NodeCondition| Condition {
                kind: it.kind.to_owned(),
                status: it.status.to_owned(),
                reason: it.reason,
                message: it.message,
                since: None,
            };
            Node {
                conditions: written.unwrap().into_iter().map(of_node).collect(),
                ..node(mark("LifecycleEvent", Phase::Finished))
            }
        };
        let name = request().name;
        for outcome in [Outcome::Drained, Outcome::Uncordoned { cordon_kept: false }] {
            assert!(is_done(&of(outcome.clone()), &name), "{outcome:?}");
            assert!(!is_done(&of(outcome.clone()), "another"), "{outcome:?}");
        }
        let message = String::new();
        assert!(!is_done(&of(Outcome::Failed { message }), &name));
    }

    #[test]
    fn a_drain_that_was_refused_leaves_the_conditions_alone() {
        assert_eq!(statuses(Outcome::Blocked { pods: Vec::new() }), None);
    }

    #[test]
    fn a_failed_uncordon_keeps_the_nodes_conditions() {
        let uncordon = Request {
            intent: Intent::Uncordon,
            ..request()
        };
        let failed = |outcome| {
            let summary = Summary::default();
            conditions_for(&uncordon, &Notice::Finished { outcome, summary })
        };
        let remaining = Vec::new();
        assert_eq!(
            failed(Outcome::DeadlineExceeded {
                remaining,
                held_up: None
            }),
            None
        );
        let message = String::new();
        assert_eq!(failed(Outcome::Failed { message }), None);
        assert!(failed(Outcome::Uncordoned { cordon_kept: false }).is_some());
    }

    #[test]
    fn failures_are_warnings() {
        let notice = Notice::Finished {
            outcome: Outcome::Lost {
                reason: "gone".into(),
            },
            summary: Summary::default(),
        };
        let event = event_for(&request(), &notice).unwrap();
        assert!(event.warning);
        assert_eq!(event.reason, "Lost");
    }
}
