//! Reports of the policy set: each notice once, and the state of every entry after each change.

use std::collections::BTreeMap;

use scupper_common::error::chain;
use scupper_policy::LoadFault;

use super::notice::ReloadNotice;
use super::policy_revisions::Quarantine;
use super::policy_set::PolicySet;
use super::status::{SlotProblem, SlotState, SlotStatus};

impl PolicySet {
    /// The file of a candidate cannot be read.
    pub(super) fn reject(&mut self, name: &str, fault: &LoadFault) {
        self.refuse(name, None, fault.step(), chain(fault));
    }

    /// The wanted revisions of these policies were rolled back: reports each one that does not say so yet.
    pub(super) fn report_away(&mut self, away: BTreeMap<String, Quarantine>) {
        for (name, quarantine) in away {
            let digest = Some(quarantine.revision.digest);
            let entry = self.entries.entry(name.clone()).or_default();
            let problem = entry.problem.as_ref().map(|problem| &problem.digest);
            if entry.state != Some(SlotState::RolledBack) || problem != Some(&digest) {
                self.degrade(&name, SlotState::RolledBack, (digest, quarantine.reason));
            }
        }
    }

    /// Another revision runs instead of the configured one, whose digest and problem these are.
    pub(super) fn degrade(
        &mut self,
        name: &str,
        state: SlotState,
        (wanted, reason): (Option<String>, String),
    ) {
        let active = self.catalogue.active();
        let digest = active.member(name).map(|member| member.revision.digest.clone());
        let entry = self.entries.entry(name.to_owned()).or_default();
        entry.state = Some(state);
        entry.problem = Some(SlotProblem {
            digest: wanted,
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

    /// A candidate is rejected. The same rejection is reported once.
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use scupper_common::clock::Clock;
    use scupper_policy::{CompileError, CompileLimit};
    use tokio::sync::mpsc;

    use super::super::catalogue::Catalogue;
    use super::super::revision::Revision;
    use super::super::rules::ReloadRules;
    use super::*;

    fn without_room(left: u64) -> LoadFault {
        let limit = 512 << 20;
        LoadFault::Compile(CompileError::Limit(CompileLimit::Container { left, limit }))
    }

    #[test]
    fn a_compilation_is_retried_more_and_more_rarely_and_reported_once() {
        let (catalogue, _commands) = Catalogue::new();
        let (sender, mut notices) = mpsc::unbounded_channel();
        let rules = ReloadRules::default();
        let mut set = PolicySet::new(Arc::new(catalogue), Clock::System, rules, sender);
        let revision = Revision {
            digest: "d".to_owned(),
            settings: "s".to_owned(),
        };
        let mut pauses = Vec::new();
        for left in [100 << 20, 90 << 20, 80 << 20] {
            let before = set.clock.now();
            let retry = set.reject_candidate("p", revision.clone(), &without_room(left));
            pauses.push(retry.unwrap().since(before));
        }
        assert!(
            pauses.is_sorted_by(|one, next| *next - *one > Duration::from_secs(20)),
            "{pauses:?}"
        );
        assert!(
            notices.try_recv().is_ok() && notices.try_recv().is_err(),
            "not reported once"
        );
        let problem = set.entries["p"].problem.as_ref().unwrap();
        assert!(problem.reason.contains("the 80 MiB"), "{}", problem.reason);
    }
}
