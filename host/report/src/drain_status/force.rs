//! Force at the deadline in the published status: the pods that the drain would still delete, and those it has deleted.

use scupper_engine::{HumanDuration, PodRef, Time, and_more};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::wire::short;
use crate::messages::{count, one_line};
use scupper_common::clock::rfc3339;

/// Maximum number of pods in the published status, and in its text.
const PODS: usize = 16;
const NAMED: usize = 3;

/// Which pods a drain deletes shortly before its deadline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForceStatus {
    /// When the drain begins to delete them.
    pub begins: Time,
    /// Pods that it deletes if they remain then.
    pub ahead: ForcedNames,
    /// Pods that it has deleted.
    pub deleted: ForcedNames,
}

/// Names of pods, and how many there are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForcedNames {
    /// How many.
    pub count: u32,
    /// `namespace/name` of the first ones.
    pub named: Vec<String>,
}

/// As in the annotation.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WireForce {
    begins: u64,
    ahead: ForcedNames,
    deleted: ForcedNames,
}

impl ForcedNames {
    /// The names of these pods.
    pub fn of<'a>(pods: impl Iterator<Item = &'a PodRef>) -> Self {
        let pods: Vec<_> = pods.collect();
        Self {
            count: u32::try_from(pods.len()).unwrap_or(u32::MAX),
            named: pods
                .iter()
                .take(PODS)
                .map(|pod| short(&pod.to_string()))
                .collect(),
        }
    }

    fn text(&self) -> String {
        let pods = self.count as usize;
        let named = self.named.iter().take(NAMED).map(String::as_str);
        let named = one_line(&named.collect::<Vec<_>>().join(", "));
        let more = and_more(pods.saturating_sub(NAMED.min(self.named.len())));
        format!("{}: {named}{more}", count(pods, "pod"))
    }

    fn to_json(&self) -> Value {
        json!({ "count": self.count, "pods": self.named })
    }
}

impl ForceStatus {
    /// Whether a reader of the status learns something from it.
    pub fn says_anything(&self) -> bool {
        self.ahead.count > 0 || self.deleted.count > 0
    }

    /// The lines, without their topic.
    pub(crate) fn texts(&self, now: Time) -> Vec<String> {
        let mut texts = Vec::new();
        if self.deleted.count > 0 {
            texts.push(format!("deleted {}", self.deleted.text()));
        }
        if self.ahead.count > 0 && self.begins > now {
            texts.push(format!(
                "in {}: deletes any remaining of {}",
                HumanDuration(self.begins.since(now)),
                self.ahead.text()
            ));
        }
        texts
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({
            "begins": rfc3339(self.begins), "ahead": self.ahead.to_json(), "deleted": self.deleted.to_json(),
        })
    }

    pub(super) fn to_wire(&self) -> WireForce {
        WireForce {
            begins: self.begins.as_millis(),
            ahead: self.ahead.clone(),
            deleted: self.deleted.clone(),
        }
    }

    pub(super) fn from_wire(wire: WireForce) -> Self {
        Self {
            begins: Time::from_millis(wire.begins),
            ahead: wire.ahead,
            deleted: wire.deleted,
        }
    }
}
