//! The state that a step saves for the next one: what Nova does not record. Losing it does no harm.

use std::collections::{BTreeMap, BTreeSet};

use scupper_sdk::Timestamp;
use serde::{Deserialize, Serialize};

use crate::checked::Checked;
use crate::cloud::Session;

/// The host's limit.
const BYTES: usize = 1024;
/// As many refusals as `attempts` allows at most: the server is not tried again.
const FINAL: usize = 10;

/// How often Nova refused to migrate a server, and when it did so last, by Nova's clock.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Refusals(pub(crate) usize, pub(crate) Timestamp);

/// When a transfer was last seen to proceed, in seconds of Nova's clock.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Transfer {
    #[serde(rename = "s")]
    pub(crate) seen: u64,
    /// The time of Nova's record, by the clock of nova-compute.
    #[serde(rename = "a")]
    pub(crate) at: u64,
    /// MiB transferred by then.
    #[serde(rename = "m")]
    pub(crate) moved: u64,
    /// MiB per second, once known.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub(crate) rate: Option<u64>,
}

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
    /// Since when migrations are listed: from before the drain, if one to the host has not changed since.
    #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
    pub(crate) listed_since: Option<Timestamp>,
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
    /// Refused migrations, by the first characters of the server's id.
    #[serde(rename = "k", default, skip_serializing_if = "BTreeMap::is_empty")]
    refused: BTreeMap<String, Refusals>,
    /// Servers that Nova refuses to migrate for good, by even fewer characters.
    #[serde(rename = "n", default, skip_serializing_if = "BTreeSet::is_empty")]
    refused_for_good: BTreeSet<String>,
    /// Which servers up to this one Nova has refused is not known, because the state cannot hold them all. After all
    /// others Nova is asked for each of them once more, in the order of their ids.
    #[serde(rename = "m", default, skip_serializing_if = "String::is_empty")]
    refused_to: String,
    /// All servers up to this one count as refused for good: Nova was asked once more.
    #[serde(rename = "b", default, skip_serializing_if = "String::is_empty")]
    asked_to: String,
    #[serde(rename = "c", default, skip_serializing_if = "Checked::is_empty")]
    pub(crate) checked: Checked,
    /// The host has so many migration records that they are listed by status.
    #[serde(rename = "q", default, skip_serializing_if = "is_false")]
    pub(crate) many_records: bool,
    /// When the service was first seen disabled, by Nova's clock.
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    pub(crate) disabled: Option<Timestamp>,
    /// Nova itself had disabled the service, and enables it itself.
    #[serde(rename = "w", default, skip_serializing_if = "is_false")]
    pub(crate) disabled_by_nova: bool,
    /// An operator has enabled the service, and whether an Event has said so.
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    pub(crate) overridden: Option<bool>,
    /// A later look at the emptied host has found something, so that it must be confirmed as empty again.
    #[serde(rename = "g", default, skip_serializing_if = "is_false")]
    pub(crate) occupied: bool,
    /// The running migrations, as their transfers were last seen to proceed.
    #[serde(rename = "v", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) transfers: BTreeMap<u64, Transfer>,
    /// Since when the credential is rejected.
    #[serde(rename = "j", default, skip_serializing_if = "Option::is_none")]
    pub(crate) rejected: Option<Timestamp>,
    /// A cancel has checked once for migrations in progress.
    #[serde(rename = "l", default, skip_serializing_if = "is_false")]
    pub(crate) cancel_checked: bool,
    /// A cancel has reported migrations that nova-compute cannot abort, because it is silent.
    #[serde(rename = "z", default, skip_serializing_if = "is_false")]
    pub(crate) silence_reported: bool,
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
            if self.transfers.pop_first().is_some() {
                continue;
            }
            if let Some((server, _)) = self.refused.pop_first() {
                if shortest(&server) > self.refused_to.as_str() {
                    self.refused_for_good.insert(shortest(&server).to_owned());
                }
                continue;
            }
            if self.refused_for_good.len() > 1
                && let Some(first) = self.refused_for_good.pop_first()
            {
                self.refused_to = first;
                continue;
            }
            if self.overdue.pop_first().is_some() || self.running.pop_first().is_some() {
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

    pub(crate) fn refusals(&self, server: &str) -> Refusals {
        let shortest = shortest(server);
        if self.refused_for_good.contains(shortest) {
            return Refusals(FINAL, Timestamp::MAX);
        }
        if shortest <= self.refused_to.as_str() {
            // Its migrations are the better reason, if it had any.
            return Refusals(FINAL, 0);
        }
        self.refused.get(short(server)).copied().unwrap_or_default()
    }

    /// Whether Nova is to be asked for this server once more, because the state cannot hold whether it has refused it.
    pub(crate) fn is_to_ask_again(&self, server: &str) -> bool {
        let id = shortest(server);
        let is_known = self.refused_for_good.contains(id) || id <= self.asked_to.as_str();
        !is_known && id <= self.refused_to.as_str()
    }

    pub(crate) fn count_refusal(&mut self, server: &str, now: Timestamp) {
        let refusals = self.refused.entry(short(server).to_owned()).or_default();
        *refusals = Refusals(refusals.0.saturating_add(1), now);
    }

    /// Nova has refused its last attempt. This is never forgotten, so that every drain ends.
    pub(crate) fn refuse_for_good(&mut self, server: &str) {
        self.refused.remove(short(server));
        let id = shortest(server);
        if id > self.refused_to.as_str() {
            self.refused_for_good.insert(id.to_owned());
        } else if id > self.asked_to.as_str() {
            id.clone_into(&mut self.asked_to);
        }
    }

    pub(crate) fn forget_refusals(&mut self, server: &str) {
        self.refused.remove(short(server));
        self.refused_for_good.remove(shortest(server));
    }
}

fn short(server: &str) -> &str {
    server.get(..8).unwrap_or(server)
}

fn shortest(server: &str) -> &str {
    server.get(..6).unwrap_or(server)
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
            hook_state.count_refusal(&format!("{number:04}aaaa-0000"), 1_800_000_000_000);
            hook_state.running.insert(number, 1_800_000_000_000);
            let transfer = Transfer {
                seen: 1_800_000_000,
                at: 1_800_000_000,
                moved: 65_536,
                rate: Some(700),
            };
            hook_state.transfers.insert(number, transfer);
            hook_state.checked.note(number, Found::Unconfirmed);
            hook_state.mark_reported(number);
        }
        let bytes = hook_state.write();
        assert!(bytes.len() <= BYTES);
        let read = HookState::read(&bytes);
        assert!(read.session.is_some() && read.host.is_some() && !read.running.is_empty());
        assert_eq!(read.checked.to, 199);
        // A server with refusals counts as refused, even if the state no longer holds when and how often.
        assert!((0..200_u64).all(|number| read.refusals(&format!("{number:04}aaaa-0000")).0 > 0));
        assert_eq!(read.refusals("0200aaaa-0000").0, 0);
        // A reported failure is not reported again, even if the state no longer holds it.
        assert!((1..200).all(|number| read.is_reported(number)) && !read.is_reported(200));
    }

    #[test]
    fn an_unreadable_state_counts_as_empty() {
        assert!(HookState::read(b"\x01\x02").host.is_none());
        assert!(HookState::read(b"").session.is_none());
    }
}
