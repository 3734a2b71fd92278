//! Reports of the policy set: each notice once, and the state of every entry after each change.

use scupper_common::error::chain;
use scupper_policy::LoadFault;

use super::notice::ReloadNotice;
use super::policy_set::PolicySet;
use super::status::{SlotProblem, SlotState, SlotStatus};

impl PolicySet {
    /// A candidate is rejected. The same rejection is reported once.
    pub(super) fn reject(&mut self, name: &str, digest: Option<String>, fault: &LoadFault) {
        self.refuse(name, digest, fault.step(), chain(fault));
    }

    /// Another revision runs instead of the configured one.
    pub(super) fn degrade(&mut self, name: &str, state: SlotState, reason: String) {
        let active = self.catalogue.active();
        let digest = active.member(name).map(|member| member.revision.digest.clone());
        let entry = self.entries.entry(name.to_owned()).or_default();
        entry.state = Some(state);
        entry.problem = Some(SlotProblem {
            digest: None,
            reason: reason.clone(),
            at: self.clock.now(),
        });
        self.notify(ReloadNotice::Degraded {
            name: name.to_owned(),
            digest: digest.unwrap_or_default(),
            reason,
        });
        self.publish();
    }

    /// The same, with a text as reason.
    pub(super) fn refuse(&mut self, name: &str, digest: Option<String>, step: &'static str, reason: String) {
        let entry = self.entries.entry(name.to_owned()).or_default();
        let same = |problem: &SlotProblem| problem.digest == digest && problem.reason == reason;
        if entry.problem.as_ref().is_some_and(same) {
            return;
        }
        entry.problem = Some(SlotProblem {
            digest: digest.clone(),
            reason: reason.clone(),
            at: self.clock.now(),
        });
        self.notify(ReloadNotice::Rejected {
            name: name.to_owned(),
            digest,
            step,
            reason,
        });
    }

    /// The configuration as a whole cannot be used, or (`None`) it can. The same problem is reported once.
    pub(super) fn refuse_configuration(&mut self, reason: Option<String>) {
        if self.configuration == reason {
            return;
        }
        self.configuration.clone_from(&reason);
        if let Some(reason) = reason {
            self.notify(ReloadNotice::Rejected {
                name: String::new(),
                digest: None,
                step: "configuration",
                reason,
            });
        } else {
            tracing::info!(target: "scupper::policy", "the configuration can be used again");
        }
    }

    /// The configuration cannot be used, and the last good one is used instead.
    pub(super) fn degrade_configuration(&mut self, reason: String) {
        self.configuration = Some(reason.clone());
        self.notify(ReloadNotice::Degraded {
            name: String::new(),
            digest: String::new(),
            reason,
        });
    }

    pub(super) fn notify(&self, notice: ReloadNotice) {
        if notice.is_error() {
            tracing::error!(target: "scupper::policy", "{notice}");
        } else if notice.is_warning() {
            tracing::warn!(target: "scupper::policy", "{notice}");
        } else {
            tracing::info!(target: "scupper::policy", "{notice}");
        }
        // There may be no listener.
        let _told = self.notices.send(notice).is_ok();
    }

    /// Publishes the state of every entry.
    pub(super) fn publish(&self) {
        let active = self.catalogue.active();
        let status = |name: &str| {
            let entry = self.entries.get(name);
            let member = active.member(name);
            let state = match (entry.and_then(|entry| entry.state), member) {
                (Some(state), _) => state,
                (None, Some(_)) => SlotState::Active,
                (None, None) => SlotState::Rejected,
            };
            let previous = entry.and_then(|entry| entry.slot.previous());
            SlotStatus {
                name: name.to_owned(),
                version: member.map_or_else(String::new, |member| member.policy.description.version.clone()),
                digest: member.map_or_else(String::new, |member| member.revision.digest.clone()),
                generation: member.map_or(0, |member| member.generation),
                state,
                mode: member.map(|member| member.mode().clone()).unwrap_or_default(),
                since: member.map(|member| member.since),
                previous: previous.map(|previous| previous.digest.clone()),
                problem: entry.and_then(|entry| entry.problem.clone()),
            }
        };
        let chain = active.members.iter().map(|member| member.name());
        let others = self.entries.keys().map(String::as_str);
        let others = others.filter(|name| active.member(name).is_none());
        self.catalogue.publish(chain.chain(others).map(status).collect());
    }
}
