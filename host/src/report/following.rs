//! A drain that somebody else carries out, as lines for people and for machines.

use scupper_engine::{Duration, PodRef, Time};
use serde_json::{Value, json};

use super::Format;
use super::words::{count, one_line};

/// What is seen of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It has been asked for.
    Asked {
        /// `drain` or `uncordon`.
        what: &'static str,
        /// The LifecycleEvent.
        event: String,
        /// The driver that is asked.
        driver: String,
    },
    /// How far the LifecycleEvent has come.
    State {
        /// In the API's word.
        state: String,
        /// Its deadline.
        deadline: Option<Time>,
    },
    /// Whoever claimed it keeps to the transition's limit, which ends it before the time that was given is over.
    Bounded {
        /// The transition.
        transition: String,
        /// Its limit.
        sla: Duration,
        /// What was given; `None`: as long as it takes.
        timeout: Option<Duration>,
    },
    /// A condition of the node has changed.
    Condition {
        /// `type=status`
        condition: String,
        /// What it says.
        message: String,
    },
    /// A hook of a policy holds it.
    Hook {
        /// The policy.
        policy: String,
        /// Where.
        phase: String,
    },
    /// A pod is held.
    Waits {
        /// The pod.
        pod: PodRef,
        /// Of the closed list.
        reason: &'static str,
        /// For people.
        message: String,
    },
    /// A pod is gone.
    PodGone {
        /// The pod.
        pod: PodRef,
        /// Pods that are still on the node, those that stay included.
        here: usize,
    },
    /// It is taken back.
    TakenBack {
        /// Why.
        why: String,
    },
    /// It goes on, and nobody here looks any more.
    Left,
    /// It is over.
    Ended {
        /// In one word.
        outcome: String,
        /// The rest.
        message: String,
    },
}

/// The story of one node.
#[derive(Clone, Debug)]
pub struct Following {
    node: String,
    began: Time,
}

impl Following {
    /// A story that begins now.
    pub const fn begin(node: String, now: Time) -> Self {
        Self { node, began: now }
    }

    /// One line of it.
    pub fn line(&self, format: Format, now: Time, seen: &Seen) -> String {
        match format {
            Format::Human => {
                let (topic, text) = self.words(now, seen);
                let gone = now.since(self.began).as_millis();
                let text = one_line(&text);
                format!("{:>7}.{}s  {topic:<8} {text}", gone / 1000, gone / 100 % 10)
            }
            Format::Json => {
                let mut line = json!({ "time": now.as_millis(), "node": self.node });
                if let (Some(line), Value::Object(fields)) = (line.as_object_mut(), fields(seen)) {
                    line.extend(fields);
                }
                line.to_string()
            }
        }
    }

    fn words(&self, now: Time, seen: &Seen) -> (&'static str, String) {
        let node = &self.node;
        match seen {
            Seen::Asked { what, event, driver } => (
                what,
                format!("node {node} for LifecycleEvent {event}, handed over to the driver {driver}"),
            ),
            Seen::State { state, deadline } => (
                "event",
                match deadline {
                    Some(deadline) => format!("{state}, to end within {}", deadline.since(now)),
                    None => state.clone(),
                },
            ),
            Seen::Bounded {
                transition,
                sla,
                timeout,
            } => (
                "limit",
                format!(
                    "the kubelet ends it at the {sla} of its transition {transition}, before {}; the driver's --sla \
                     says how long that is",
                    match timeout {
                        Some(timeout) => format!("--timeout {timeout}"),
                        None => "--timeout 0, which is as long as it takes".to_owned(),
                    }
                ),
            ),
            Seen::Condition { condition, message } => ("node", format!("{condition}: {message}")),
            Seen::Hook { policy, phase } => ("hook", format!("{policy} holds the drain in {phase}")),
            Seen::Waits { pod, message, .. } => ("waits", format!("{pod}: {message}")),
            Seen::PodGone { pod, here } => ("gone", format!("{pod}, {} here", count(*here, "pod"))),
            Seen::TakenBack { why } => ("cancel", format!("{why}: the LifecycleEvent is taken back")),
            Seen::Left => (
                "left",
                format!(
                    "the driver goes on with it; to see it: scupper status {node}; to stop it: scupper cancel {node}"
                ),
            ),
            Seen::Ended { outcome, message } => (
                "end",
                if message.is_empty() {
                    format!("{outcome} in {}", now.since(self.began))
                } else {
                    message.clone()
                },
            ),
        }
    }
}

fn fields(seen: &Seen) -> Value {
    match seen {
        Seen::Asked { what, event, driver } => {
            json!({ "kind": "asked", "intent": what, "event": event, "driver": driver })
        }
        Seen::State { state, deadline } => {
            json!({ "kind": "state", "state": state, "deadline": deadline.map(Time::as_millis) })
        }
        Seen::Bounded {
            transition,
            sla,
            timeout,
        } => json!({
            "kind": "bounded", "transition": transition, "slaMilliseconds": sla.as_millis(),
            "timeoutMilliseconds": timeout.map(Duration::as_millis),
        }),
        Seen::Condition { condition, message } => {
            json!({ "kind": "condition", "condition": condition, "message": message })
        }
        Seen::Hook { policy, phase } => json!({ "kind": "hookWaiting", "policy": policy, "phase": phase }),
        Seen::Waits { pod, reason, message } => json!({
            "kind": "podWaits", "pod": pod.to_string(), "uid": pod.uid.0, "reason": reason, "message": message,
        }),
        Seen::PodGone { pod, here } => {
            json!({ "kind": "podGone", "pod": pod.to_string(), "uid": pod.uid.0, "here": here })
        }
        Seen::TakenBack { why } => json!({ "kind": "takenBack", "message": why }),
        Seen::Left => json!({ "kind": "left" }),
        Seen::Ended { outcome, message } => {
            json!({ "kind": "finished", "outcome": outcome, "message": message })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_one_line_whatever_others_wrote() {
        let story = Following::begin("worker-1".to_owned(), Time::from_millis(1000));
        let seen = Seen::Condition {
            condition: "Drained=False".to_owned(),
            message: "a\nb".to_owned(),
        };
        let now = Time::from_millis(2500);
        assert_eq!(
            story.line(Format::Human, now, &seen),
            "      1.5s  node     Drained=False: a b"
        );
        let json: Value = serde_json::from_str(&story.line(Format::Json, now, &seen)).unwrap_or_default();
        assert_eq!(
            (&json["node"], &json["kind"]),
            (&json!("worker-1"), &json!("condition"))
        );
        let left = story.line(Format::Human, now, &Seen::Left);
        assert!(left.contains("scupper cancel worker-1"), "{left}");
    }
}
