//! What a hook remembers from one step to the next: few bytes, and nothing that Slurm itself can tell.

use serde::{Deserialize, Serialize};

/// The state of a hook. One that cannot be read is as if there were none: all of it is found out again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct HookState {
    /// The version that slurmrestd serves.
    #[serde(rename = "v", default, skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<u32>,
    /// All Slurm nodes were seen draining: from then on one that is not was resumed by somebody.
    #[serde(rename = "d", default)]
    pub(crate) drained: bool,
    /// When Slurm's controller began to count, as it said when the nodes were seen draining: another time means that it
    /// was started anew (or is at a new day).
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub(crate) controller: Option<u64>,
    /// So many rungs of the ladder are climbed.
    #[serde(rename = "r", default)]
    pub(crate) rungs: usize,
    /// The next rung is climbed for jobs up to this one.
    #[serde(rename = "j", default)]
    pub(crate) job: u64,
    /// Since when Slurm does not take the token, in milliseconds.
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<u64>,
    /// Where there are many jobs: those of the nodes (`numbers`), and the number up to which each running job of the
    /// cluster was looked at.
    #[serde(rename = "h", default, skip_serializing_if = "String::is_empty")]
    pub(crate) here: String,
    #[serde(rename = "s", default, skip_serializing_if = "is_zero")]
    pub(crate) seen: u64,
    /// Those of which nobody knows whether they are on the nodes.
    #[serde(rename = "u", default, skip_serializing_if = "String::is_empty")]
    pub(crate) unplaced: String,
    /// Every running job of the cluster was looked at.
    #[serde(rename = "l", default, skip_serializing_if = "is_false")]
    pub(crate) looked: bool,
}

impl HookState {
    pub(crate) fn read(state: &[u8]) -> Self {
        serde_json::from_slice(state).unwrap_or_default()
    }

    /// The nodes took jobs again: which, is to be found out anew.
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
