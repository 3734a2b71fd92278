//! What an earlier process had of the policies, and what is kept for the next one.

use std::collections::BTreeSet;
use std::sync::Arc;

use scupper_policy::LoadedPolicy;

use super::catalogue::Member;
use super::policy_set::PolicySet;
use super::revision::Revision;
use super::store::{Index, SavedPolicy};

impl PolicySet {
    /// Restores the state of an earlier process.
    pub(super) fn restore(&mut self, index: &Index) {
        for (name, kept) in index {
            let entry = self.entries.entry(name.clone()).or_default();
            entry.slot.restore(kept.quarantined());
        }
    }

    /// Whether a revision was rolled back and must not be active now.
    pub(super) fn is_away(&self, name: &str, revision: &Revision) -> bool {
        let now = self.clock.now();
        let entry = self.entries.get(name);
        entry.is_some_and(|entry| entry.slot.quarantine(now, revision).is_some())
    }

    /// The settings of all active and previous revisions.
    pub(super) fn settings_in_use(&self) -> BTreeSet<String> {
        let slots = self.entries.values().map(|entry| &entry.slot);
        let revisions = slots.flat_map(|slot| [slot.active(), slot.previous()]);
        revisions
            .flatten()
            .map(|revision| revision.settings.clone())
            .collect()
    }

    /// Restores a revision of an earlier process: a rollback can return to the newest of them.
    pub(super) fn restore_previous(&mut self, name: &str, revision: Revision, policy: LoadedPolicy) {
        let active = self.catalogue.active();
        let entry = self.entries.entry(name.to_owned()).or_default();
        let news = active
            .member(name)
            .is_some_and(|member| member.revision != revision);
        if news && entry.previous.is_none() {
            entry.slot.restore_previous(revision);
            entry.previous = Some(Arc::new(policy));
        } else if news && entry.older.is_none() {
            entry.older = Some((revision, Arc::new(policy)));
        }
        self.publish();
    }

    /// The available revisions of a policy besides the active one, the newest first.
    pub(super) fn kept(&self, name: &str) -> Vec<Arc<Member>> {
        let Some(entry) = self.entries.get(name) else {
            return Vec::new();
        };
        let previous = entry.slot.previous().cloned().zip(entry.previous.clone());
        let member = |(revision, policy)| Arc::new(Member::new(policy, revision, 0, self.clock.now()));
        let kept: Vec<_> = previous
            .into_iter()
            .chain(entry.older.clone())
            .map(member)
            .collect();
        self.catalogue.remember(&kept);
        kept
    }

    /// The components that wait for the rest of their configuration: they become active without being read again.
    pub(super) fn ready_digests(&self) -> BTreeSet<String> {
        let ready = self.entries.values().filter_map(|entry| entry.ready.as_ref());
        ready.map(|(revision, _)| revision.digest.clone()).collect()
    }

    /// What is saved for the next process.
    pub(super) fn record(&self) -> Index {
        let active = self.catalogue.active();
        let kept = active.members.iter().filter_map(|member| {
            let slot = &self.entries.get(member.name())?.slot;
            let kept = SavedPolicy::new(slot.active()?, slot.previous(), slot.quarantined());
            Some((member.name().to_owned(), kept))
        });
        kept.collect()
    }
}
