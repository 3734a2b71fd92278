//! The state that a step saves for the next one: what Nova does not record. Losing it does no harm.

use std::collections::{BTreeMap, BTreeSet};

use scupper_sdk::Timestamp;
use serde::{Deserialize, Serialize};

use crate::checked::Checked;
use crate::cloud::Session;

/// The host's limit.
const BYTES: usize = 1024;
/// The longest stored name of a server.
const NAME: usize = 40;

/// The state of a hook.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct HookState {
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<Session>,
    /// The name of the node's Nova host.
    #[serde(rename = "h", default, skip_serializing_if = "Option::is_none")]
    pub(crate) host: Option<String>,
    /// The preflight check has passed, and changes may have begun.
    #[serde(rename = "p", default, skip_serializing_if = "is_false")]
    pub(crate) planned: bool,
    /// The disabled compute service was reported.
    #[serde(rename = "a", default, skip_serializing_if = "is_false")]
    pub(crate) announced: bool,
    /// When the host was first seen empty, by the driver's clock.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub(crate) empty_since: Option<Timestamp>,
    /// When a migration was first seen running, by its id and Nova's clock.
    #[serde(rename = "r", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) running: BTreeMap<u64, Timestamp>,
    /// Migrations that exceeded their deadline and were aborted or forced.
    #[serde(rename = "d", default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) overdue: BTreeSet<u64>,
    /// Migrations whose failure was reported.
    #[serde(rename = "t", default, skip_serializing_if = "BTreeSet::is_empty")]
    reported: BTreeSet<u64>,
    /// Failures up to this migration count as reported, because the state cannot hold them all.
    #[serde(rename = "f", default, skip_serializing_if = "is_zero")]
    reported_to: u64,
    /// How often Nova refused a migration, by the first characters of the server's id.
    #[serde(rename = "n", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) refused: BTreeMap<String, u32>,
    /// The names of migrating servers, by the first characters of their ids: near its end a migrating server is no longer in
    /// the host's list.
    #[serde(rename = "m", default, skip_serializing_if = "BTreeMap::is_empty")]
    names: BTreeMap<String, String>,
    #[serde(rename = "c", default, skip_serializing_if = "Checked::is_empty")]
    pub(crate) checked: Checked,
    /// When the service was first seen disabled, by Nova's clock.
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    pub(crate) disabled: Option<Timestamp>,
    /// When a migration was first seen running, in seconds of Nova's record, and the MiB transferred by then.
    #[serde(rename = "b", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) begun: BTreeMap<u64, (u64, u64)>,
    /// A cancel has checked once for migrations in progress.
    #[serde(rename = "l", default, skip_serializing_if = "is_false")]
    pub(crate) cancel_checked: bool,
}

impl HookState {
    /// An unreadable state counts as empty.
    pub(crate) fn read(state: &[u8]) -> Self {
        serde_json::from_slice(state).unwrap_or_default()
    }

    /// Cuts the state to the host's limit, the least important parts first.
    pub(crate) fn write(mut self) -> Vec<u8> {
        loop {
            let bytes = serde_json::to_vec(&self).unwrap_or_default();
            if bytes.len() <= BYTES {
                return bytes;
            }
            if self.reported.len() > 1
                && let Some(first) = self.reported.pop_first()
            {
                self.reported_to = first;
                continue;
            }
            if self.names.pop_first().is_some() || self.begun.pop_first().is_some() {
                continue;
            }
            if self.refused.pop_first().is_some()
                || self.overdue.pop_first().is_some()
                || self.running.pop_first().is_some()
            {
                continue;
            }
            if !self.checked.is_empty() {
                self.checked = Checked::default();
                continue;
            }
            self.session = None;
            self.host = None;
        }
    }

    pub(crate) fn is_reported(&self, migration: u64) -> bool {
        migration <= self.reported_to || self.reported.contains(&migration)
    }

    /// Marks its failure as reported. `false`: it already was.
    pub(crate) fn mark_reported(&mut self, migration: u64) -> bool {
        migration > self.reported_to && self.reported.insert(migration)
    }

    /// The name of a migrating server; empty if unknown.
    pub(crate) fn name(&self, server: &str) -> &str {
        self.names.get(short(server)).map_or("", String::as_str)
    }

    /// Remembers the names of the migrating servers.
    pub(crate) fn remember_names<'a>(&mut self, moving: impl Iterator<Item = (&'a str, Option<&'a str>)>) {
        let mut names = BTreeMap::new();
        for (id, name) in moving {
            let name = name.unwrap_or_else(|| self.name(id));
            if !name.is_empty() {
                names.insert(short(id).to_owned(), name.chars().take(NAME).collect());
            }
        }
        self.names = names;
    }

    pub(crate) fn refusals(&self, server: &str) -> u32 {
        self.refused.get(short(server)).copied().unwrap_or_default()
    }

    pub(crate) fn count_refusal(&mut self, server: &str) {
        *self.refused.entry(short(server).to_owned()).or_default() += 1;
    }

    pub(crate) fn forget_refusals(&mut self, server: &str) {
        self.refused.remove(short(server));
    }
}

fn short(server: &str) -> &str {
    server.get(..8).unwrap_or(server)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
const fn is_false(value: &bool) -> bool {
    !*value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
const fn is_zero(value: &u64) -> bool {
    *value == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checked::Found;

    #[test]
    fn it_stays_within_the_hosts_limit_and_drops_the_session_last() {
        let mut hook_state = HookState {
            session: Some(Session::default()),
            host: Some("compute-a".to_owned()),
            ..HookState::default()
        };
        for number in 0..200_u64 {
            hook_state.count_refusal(&format!("{number:08x}-0000"));
            hook_state.running.insert(number, 1_800_000_000_000);
            hook_state.begun.insert(number, (1_800_000_000, 65_536));
            hook_state.checked.note(number, Found::Unconfirmed);
            hook_state.mark_reported(number);
        }
        let moving: Vec<String> = (0..50).map(|number| format!("{number:08x}-0000")).collect();
        let name = "n".repeat(200);
        hook_state.remember_names(moving.iter().map(|id| (id.as_str(), Some(name.as_str()))));
        let bytes = hook_state.write();
        assert!(bytes.len() <= BYTES);
        let read = HookState::read(&bytes);
        assert!(read.session.is_some() && read.host.is_some() && !read.running.is_empty());
        assert_eq!(read.checked.to, 199);
        // A reported failure is not reported again, even if the state no longer holds it.
        assert!((1..200).all(|number| read.is_reported(number)) && !read.is_reported(200));
    }

    #[test]
    fn an_unreadable_state_counts_as_empty() {
        assert!(HookState::read(b"\x01\x02").host.is_none());
        assert!(HookState::read(b"").session.is_none());
    }
}
