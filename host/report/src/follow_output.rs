//! Prints a drain that another process carries out, as lines for people and as JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use scupper_engine::{HumanDuration, PodRef, Reason, Time, Uid, whole_millis};
use serde_json::{Value, json};

use super::drain_status::{
    Estimate, ForceStatus, HookStatus, PlanSummary, PodGroup, VolumesStatus, WaveStatus, hook_name_to_json,
    joined, pod_name_to_json, pod_text, pod_to_json,
};
use super::force::{forced_unseen_text, more_forced_text};
use super::messages::{UNCORDONED, not_ready_text, one_line, timed_line};
use super::waits::MoreWaits;
use super::{Format, PolicyMessage};
use scupper_common::clock::rfc3339;

/// An observation of the followed drain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FollowEvent {
    /// The node is cordoned, as one of several, before the first of their drains begins.
    CordonedFirst,
    /// The drain was requested.
    Requested {
        /// `drain` or `uncordon`.
        what: &'static str,
        /// The LifecycleEvent.
        event: String,
        /// The driver that receives the request.
        driver: String,
    },
    /// A driver is at it already; the command only follows.
    Joined {
        /// The LifecycleEvent.
        event: String,
        /// Flags of the command that it was not begun with, as they are typed.
        without: Vec<String>,
    },
    /// The state of the LifecycleEvent has changed.
    State {
        /// The state, as the API names it.
        state: String,
        /// Its deadline.
        deadline: Option<Time>,
    },
    /// Another operation on the node runs first.
    Queued {
        /// The other operation: `LifecycleEvent drain-worker-1-x7d2p`.
        behind: String,
    },
    /// No driver has claimed the request yet.
    Unclaimed {
        /// The driver's pod on this node: its name, and whether it is ready. `None`: there is none.
        pod: Option<(PodRef, bool)>,
        /// In how long the request is withdrawn.
        left: Duration,
    },
    /// The claimant enforces the transition's limit, which ends the drain before the requested timeout.
    Bounded {
        /// The transition.
        transition: String,
        /// The limit of the transition.
        sla: Duration,
        /// The requested timeout; `None`: unlimited.
        timeout: Option<Duration>,
    },
    /// The node is not ready.
    NotReady {
        /// Since when and why, as text.
        words: String,
    },
    /// A condition of the node has changed.
    Condition {
        /// `type=status`.
        condition: String,
        /// Its message.
        message: String,
        /// Another line says the same to people.
        is_repeated: bool,
    },
    /// The driver published its plan.
    Planned {
        /// The plan.
        plan: PlanSummary,
        /// The known names of the pods in the plan.
        names: BTreeMap<Uid, PodRef>,
        /// Which pods the drain deletes shortly before its deadline; `None`: none.
        force: Option<ForceStatus>,
    },
    /// The driver has found that pods cannot leave, or only with a delay or a loss.
    Finding {
        /// As things stand these pods cannot leave.
        is_certain: bool,
        /// Why, which pods, and what would help.
        text: String,
    },
    /// The driver published when the drain will probably end.
    Estimated(Estimate),
    /// A wave has begun.
    Wave {
        /// The wave.
        wave: WaveStatus,
        /// How many of its pods are still to be evicted, if known.
        pods: Option<usize>,
    },
    /// The cordon was lifted during the drain.
    Uncordoned,
    /// A policy emitted an Event about the node.
    PolicyMessage {
        /// The message.
        words: PolicyMessage,
    },
    /// A hook of a policy delays the drain.
    Hook {
        /// The hook.
        hook: HookStatus,
        /// Its subject, as text.
        of: String,
    },
    /// A hook that delayed the drain has finished.
    HookDone {
        /// The hook as it was last seen.
        hook: HookStatus,
        /// Its subject, as text.
        of: String,
    },
    /// The drain waits for the node's volumes.
    Volumes {
        /// Those volumes.
        volumes: VolumesStatus,
    },
    /// A pod has to wait.
    PodWaits {
        /// The pod.
        pod: PodRef,
        /// Why.
        reason: Reason,
        /// To people, another line counts it among those that wait for the same.
        is_counted: bool,
    },
    /// More pods wait for the same as others that have a line each.
    MoreWait(MoreWaits),
    /// The drain deleted a pod that remained shortly before the deadline.
    Forced {
        /// The pod.
        pod: PodRef,
    },
    /// It deleted further pods, whose names the driver does not publish.
    MoreForced {
        /// How many.
        pods: u32,
    },
    /// A pod is gone.
    PodGone {
        /// The pod.
        pod: PodRef,
        /// Number of pods that are still to be evicted, if the driver has published its plan.
        remaining: Option<usize>,
    },
    /// The request was withdrawn.
    Withdrawn {
        /// Why.
        why: String,
    },
    /// The drain continues, but this command stops following it.
    Detached {
        /// Its driver does not run now.
        is_driver_gone: bool,
    },
    /// The drain has ended.
    Ended {
        /// The outcome, in one word.
        outcome: String,
        /// Details.
        message: String,
        /// What it leaves of the node, and what to type next.
        left: Option<String>,
    },
}

/// The output of one node.
#[derive(Clone, Debug)]
pub struct FollowOutput {
    node: String,
    began: Time,
}

impl FollowOutput {
    /// Starts the output at this time.
    pub const fn begin(node: String, now: Time) -> Self {
        Self { node, began: now }
    }

    /// The lines for one observation.
    pub fn lines(&self, format: Format, now: Time, seen: &FollowEvent) -> Vec<String> {
        match format {
            _ if is_left_out(format, seen) => Vec::new(),
            Format::Human => {
                let line = |topic: &str, text: &str| timed_line(self.began, now, topic, &one_line(text));
                let (topic, text) = self.topic_and_text(now, seen);
                let rest = details(now, seen).into_iter().map(|text| line("", &text));
                std::iter::once(line(topic, &text)).chain(rest).collect()
            }
            Format::Json => {
                let head = json!({ "time": rfc3339(now), "node": self.node });
                vec![joined(head, fields(now, seen)).to_string()]
            }
        }
    }

    fn topic_and_text(&self, now: Time, seen: &FollowEvent) -> (&'static str, String) {
        let node = &self.node;
        match seen {
            FollowEvent::CordonedFirst => ("cordon", "the node is cordoned, ahead of its drain".to_owned()),
            FollowEvent::Requested { what, event, driver } => (
                what,
                format!("node {node} for LifecycleEvent {event}, handed over to the driver {driver}"),
            ),
            FollowEvent::Joined { event, without } => {
                let without = match without.join(" ") {
                    none if none.is_empty() => none,
                    flags => format!("; without effect on it: {flags}"),
                };
                let text = "is under way, with the flags that it began with";
                (
                    "joined",
                    format!("node {node}: LifecycleEvent {event} {text}{without}"),
                )
            }
            FollowEvent::State { state, deadline } => (
                "event",
                match deadline {
                    Some(deadline) => {
                        format!("{state}, expires in {}", HumanDuration(deadline.since(now)))
                    }
                    None => state.clone(),
                },
            ),
            FollowEvent::Queued { behind } => ("queued", format!("behind {behind}: begins when that ends")),
            FollowEvent::Unclaimed { pod, left } => ("waits", unclaimed_text(node, pod.as_ref(), *left)),
            FollowEvent::Bounded { sla, timeout, .. } => (
                "limit",
                format!(
                    "it ends after {} at the latest{}: the operator's drain.sla; --local drains without it",
                    HumanDuration(*sla),
                    timeout.map_or_else(String::new, |timeout| {
                        format!(", before --timeout {}", HumanDuration(timeout))
                    }),
                ),
            ),
            FollowEvent::NotReady { words } => ("node", not_ready_text(words)),
            FollowEvent::Condition {
                condition, message, ..
            } => ("node", format!("{condition}: {message}")),
            FollowEvent::Planned { plan, .. } => ("plan", plan.head()),
            FollowEvent::Finding { is_certain, text } => {
                (if *is_certain { "certain" } else { "likely" }, text.clone())
            }
            FollowEvent::Estimated(estimate) => (
                "ends",
                estimate
                    .text(now)
                    .unwrap_or_else(|| "later than was probable".to_owned()),
            ),
            FollowEvent::Wave { wave, pods } => ("wave", wave.started_text(*pods)),
            FollowEvent::PolicyMessage { words } => ("policy", words.line()),
            FollowEvent::Uncordoned => ("held", UNCORDONED.to_owned()),
            FollowEvent::Hook { hook, of } => ("hook", hook.running_text(of, now)),
            FollowEvent::HookDone { hook, of } => ("hook", hook.done_text(of, now)),
            FollowEvent::Volumes { volumes } => ("volumes", volumes.text(now)),
            FollowEvent::PodWaits { pod, reason, .. } => pod_text(pod, reason, None, now),
            FollowEvent::MoreWait(more) => ("waits", more.text(now)),
            FollowEvent::Forced { pod } => ("force", forced_unseen_text(pod)),
            FollowEvent::MoreForced { pods } => ("force", more_forced_text(*pods)),
            FollowEvent::PodGone { pod, remaining } => {
                let remaining = remaining.map(|remaining| format!(", {remaining} to go"));
                ("gone", format!("{pod}{}", remaining.unwrap_or_default()))
            }
            FollowEvent::Withdrawn { why } => ("cancel", format!("the LifecycleEvent is withdrawn: {why}")),
            FollowEvent::Detached { is_driver_gone } => {
                let who = match is_driver_gone {
                    true => "its driver is not running; the drain continues when the driver is back",
                    false => "the driver continues the drain",
                };
                let next = format!("to see it: scupper status {node}; to stop it: scupper cancel {node}");
                ("left", format!("{who}; {next}"))
            }
            FollowEvent::Ended { outcome, message, .. } => (
                "end",
                if message.is_empty() {
                    format!("{outcome} in {}", HumanDuration(now.since(self.began)))
                } else {
                    message.clone()
                },
            ),
        }
    }
}

/// People read the same in another line, and programs in other objects.
const fn is_left_out(format: Format, seen: &FollowEvent) -> bool {
    match (format, seen) {
        (Format::Human, FollowEvent::Condition { is_repeated, .. }) => *is_repeated,
        (Format::Human, FollowEvent::PodWaits { is_counted, .. }) => *is_counted,
        (Format::Json, FollowEvent::MoreWait(_)) => true,
        _ => false,
    }
}

/// Who should answer, in what state that is, until when it is waited for, and what to type.
fn unclaimed_text(node: &str, pod: Option<&(PodRef, bool)>, left: Duration) -> String {
    let (who, next) = match pod {
        Some((pod, is_ready)) => (
            format!("its pod {pod} is {}ready", if *is_ready { "" } else { "not " }),
            match is_ready {
                true => format!("kubectl -n {} logs {}", pod.namespace, pod.name),
                false => format!("kubectl -n {} describe pod {}", pod.namespace, pod.name),
            },
        ),
        None => (
            format!("there is no driver's pod on node {node}"),
            format!("scupper drain {node} --local"),
        ),
    };
    format!(
        "no answer from the driver: {who}; the request is withdrawn in {}; next: {next}",
        HumanDuration(left)
    )
}

/// The lines below the first one.
fn details(now: Time, seen: &FollowEvent) -> Vec<String> {
    match seen {
        FollowEvent::Planned { plan, names, force } => {
            let name = |uid: &Uid| names.get(uid).map(PodRef::to_string);
            let groups = plan.groups(name).into_iter();
            let force = force.iter().flat_map(|force| force.texts(now));
            groups.chain(force).chain(plan.surge.texts()).collect()
        }
        FollowEvent::Hook { hook, .. } => hook.awaited(now).map(|on| format!("  waits for {on}")).collect(),
        FollowEvent::Ended { left, .. } => left.iter().cloned().collect(),
        _ => Vec::new(),
    }
}

fn fields(now: Time, seen: &FollowEvent) -> Value {
    let of_kind = |kind: &str, fields: Value| joined(json!({ "kind": kind }), fields);
    match seen {
        FollowEvent::CordonedFirst => json!({ "kind": "cordonedFirst" }),
        FollowEvent::Requested { what, event, driver } => {
            json!({ "kind": "asked", "intent": what, "event": event, "driver": driver })
        }
        FollowEvent::Joined { event, .. } => json!({ "kind": "joined", "event": event }),
        FollowEvent::State { state, deadline } => {
            json!({ "kind": "state", "state": state, "deadline": deadline.map(rfc3339) })
        }
        FollowEvent::Queued { behind } => json!({ "kind": "queued", "behind": behind }),
        FollowEvent::Unclaimed { pod, left } => json!({
            "kind": "unclaimed", "driverPod": pod.as_ref().map(|(pod, _)| pod.to_string()),
            "driverReady": pod.as_ref().is_some_and(|(_, is_ready)| *is_ready),
            "withdrawnInMilliseconds": whole_millis(*left),
        }),
        FollowEvent::Bounded {
            transition,
            sla,
            timeout,
        } => json!({
            "kind": "bounded", "transition": transition, "slaMilliseconds": whole_millis(*sla),
            "timeoutMilliseconds": timeout.map(whole_millis),
        }),
        FollowEvent::NotReady { words } => json!({ "kind": "nodeNotReady", "message": words }),
        FollowEvent::Condition {
            condition, message, ..
        } => {
            json!({ "kind": "condition", "condition": condition, "message": message })
        }
        FollowEvent::Planned { plan, names, force } => {
            let group = |group: &PodGroup| {
                let pods = group.pods.iter().map(|uid| names.get(uid).map(PodRef::to_string));
                let pods: Vec<_> = pods.flatten().collect();
                json!({ "what": group.what, "policy": group.policy, "pods": pods, "more": group.more })
            };
            let mut planned = json!({
                "kind": "planned", "leaving": plan.leaving, "staying": plan.staying,
                "waves": plan.waves.iter().map(group).collect::<Vec<_>>(),
                "stays": plan.stays.iter().map(group).collect::<Vec<_>>(),
            });
            if !plan.refused.is_empty() {
                let refused: Vec<_> = plan.refused.iter().map(group).collect();
                planned = joined(planned, json!({ "mayNotLeave": refused }));
            }
            if let Some(force) = force {
                planned = joined(planned, json!({ "force": force.to_json() }));
            }
            match plan.surge.to_json() {
                Some(surge) => joined(planned, json!({ "surge": surge })),
                None => planned,
            }
        }
        FollowEvent::Finding { is_certain, text } => {
            json!({ "kind": "preFlightFinding", "certain": is_certain, "message": text })
        }
        FollowEvent::Estimated(estimate) => {
            json!({ "kind": "estimate", "estimate": estimate.to_json() })
        }
        FollowEvent::Wave { wave, pods } => {
            of_kind("waveStarted", joined(wave.to_json(), json!({ "pods": pods })))
        }
        FollowEvent::Uncordoned => json!({ "kind": "uncordonedByOthers" }),
        FollowEvent::PolicyMessage { words } => words.to_json(),
        FollowEvent::Hook { hook, .. } => of_kind("hookWaiting", hook.to_json()),
        FollowEvent::HookDone { hook, .. } => {
            let HookStatus {
                policy,
                phase,
                subject,
                ..
            } = hook;
            of_kind("hookDone", hook_name_to_json(policy, *phase, subject))
        }
        FollowEvent::Volumes { volumes } => of_kind("volumesWaiting", volumes.to_json()),
        FollowEvent::PodWaits { pod, reason, .. } => of_kind("podWaits", pod_to_json(pod, reason, now)),
        // Each of these pods has an object.
        FollowEvent::MoreWait(_) => Value::Null,
        FollowEvent::Forced { pod } => of_kind("podForced", pod_name_to_json(pod)),
        FollowEvent::MoreForced { pods } => json!({ "kind": "morePodsForced", "count": pods }),
        FollowEvent::PodGone { pod, remaining } => of_kind(
            "podGone",
            joined(pod_name_to_json(pod), json!({ "remaining": remaining })),
        ),
        FollowEvent::Withdrawn { why } => json!({ "kind": "takenBack", "message": why }),
        FollowEvent::Detached { .. } => json!({ "kind": "left" }),
        FollowEvent::Ended {
            outcome,
            message,
            left,
        } => {
            json!({ "kind": "finished", "outcome": outcome, "message": message, "left": left })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_one_line_whatever_others_wrote() {
        let story = FollowOutput::begin("worker-1".to_owned(), Time::from_millis(1000));
        let seen = FollowEvent::Condition {
            condition: "Drained=False".to_owned(),
            message: "a\nb".to_owned(),
            is_repeated: false,
        };
        let now = Time::from_millis(2500);
        assert_eq!(
            story.lines(Format::Human, now, &seen),
            ["      1.5s  node     Drained=False: a b"]
        );
        let json: Value =
            serde_json::from_str(&story.lines(Format::Json, now, &seen).concat()).unwrap_or_default();
        assert_eq!(
            (&json["node"], &json["kind"]),
            (&json!("worker-1"), &json!("condition"))
        );
        for (is_driver_gone, words) in [
            (false, "the driver continues the drain"),
            (true, "its driver is not running"),
        ] {
            let left = story.lines(Format::Human, now, &FollowEvent::Detached { is_driver_gone });
            assert!(left.concat().contains(words), "{left:?}");
            assert!(left.concat().contains("scupper cancel worker-1"), "{left:?}");
        }
    }
}
