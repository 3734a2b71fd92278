//! The state that a hook saves between steps: few bytes, and only what Slurm does not record.

use serde::{Deserialize, Serialize};

/// The state of a hook. An unreadable one counts as empty, and everything is found out again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct HookState {
    /// The version that slurmrestd serves.
    #[serde(rename = "v", default, skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<u32>,
    /// All Slurm nodes were seen draining: a node that no longer drains was resumed by someone.
    #[serde(rename = "d", default)]
    pub(crate) drained: bool,
    /// slurmctld's start when the nodes were first seen draining, as long as it may not have saved that.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub(crate) controller: Option<u64>,
    /// When the nodes were first seen draining, in milliseconds.
    #[serde(rename = "a", default, skip_serializing_if = "is_zero")]
    pub(crate) since: u64,
    /// A node was seen rebooting on request: until our drain follows, Slurm may resume it.
    #[serde(rename = "b", default, skip_serializing_if = "is_false")]
    pub(crate) rebooted: bool,
    /// An Event has said that an operator resumed a node.
    #[serde(rename = "o", default, skip_serializing_if = "is_false")]
    pub(crate) reported: bool,
    /// The number of climbed rungs.
    #[serde(rename = "r", default)]
    pub(crate) rungs: usize,
    /// The next rung is done for jobs up to this one.
    #[serde(rename = "j", default)]
    pub(crate) job: u64,
    /// The number of jobs that it has reached.
    #[serde(rename = "k", default, skip_serializing_if = "is_zero")]
    pub(crate) reached: u64,
    /// Since when Slurm has rejected the token, in milliseconds.
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<u64>,
    /// If there are many jobs: those of the nodes (`numbers`), and the number up to which the cluster's running jobs were
    /// checked.
    #[serde(rename = "h", default, skip_serializing_if = "String::is_empty")]
    pub(crate) here: String,
    #[serde(rename = "s", default, skip_serializing_if = "is_zero")]
    pub(crate) seen: u64,
    /// The jobs that may or may not be on the nodes.
    #[serde(rename = "u", default, skip_serializing_if = "String::is_empty")]
    pub(crate) unplaced: String,
    /// The nodes whose undrain was requested, with an unknown result.
    #[serde(rename = "n", default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) undraining: Vec<String>,
    /// Every running job of the cluster was checked.
    #[serde(rename = "l", default, skip_serializing_if = "is_false")]
    pub(crate) looked: bool,
}

impl HookState {
    pub(crate) fn read(state: &[u8]) -> Self {
        serde_json::from_slice(state).unwrap_or_default()
    }

    /// Restarts the search for jobs, because the nodes may have got new ones.
    pub(crate) fn forget_jobs(&mut self) {
        self.here.clear();
        self.unplaced.clear();
        self.seen = 0;
        self.looked = false;
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}
