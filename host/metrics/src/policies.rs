//! Metrics of policies: their calls, and which versions are active.

use std::sync::PoisonError;
use std::time::Duration;

use crate::labels;
use crate::registry::Metrics;

/// One call of a policy.
#[derive(Clone, Copy, Debug)]
pub struct PolicyCall<'a> {
    /// The operator's name for it.
    pub policy: &'a str,
    /// The exported function.
    pub function: &'static str,
    /// The result, a name of a closed list.
    pub result: &'static str,
    /// Wall-clock time.
    pub wall: Duration,
    /// CPU time.
    pub cpu: Duration,
    /// Bytes of memory.
    pub memory: u64,
    /// Number of logged lines.
    pub log_lines: u64,
    /// Number of dropped lines.
    pub log_lines_dropped: u64,
    /// Size of the HTTP responses, in bytes.
    pub response_bytes: u64,
}

/// One version of a policy.
#[derive(Clone, Copy, Debug)]
pub struct PolicyVersion<'a> {
    /// The operator's name for it.
    pub policy: &'a str,
    /// SHA-256 of its file, in hex; empty if the file could not be read.
    pub digest: &'a str,
    /// The version that the policy reports; empty if it has not reported one yet.
    pub version: &'a str,
    /// Number of versions tried before this one in this process.
    pub generation: u64,
}

const ACTIVE: &str = "active";
const REJECTED: &str = "rejected";
const SHADOW: &str = "shadow";

/// Maximum length in bytes of a policy's own version in a label.
const VERSION_BYTES: usize = 64;

impl Metrics {
    /// Counts a finished call of a policy's function.
    pub fn policy_called(&self, call: &PolicyCall<'_>) {
        let policy = labels::Policy {
            policy: call.policy.to_owned(),
        };
        let function = labels::Function {
            policy: call.policy.to_owned(),
            function: call.function,
        };
        let result = labels::Call {
            policy: call.policy.to_owned(),
            function: call.function,
            result: call.result,
        };
        self.calls.get_or_create(&result).inc();
        self.call_seconds
            .get_or_create(&function)
            .observe(call.wall.as_secs_f64());
        self.cpu_seconds
            .get_or_create(&function)
            .observe(call.cpu.as_secs_f64());
        let peak = self.peak_memory.get_or_create_owned(&policy);
        let memory = i64::try_from(call.memory).unwrap_or(i64::MAX);
        peak.inner()
            .fetch_max(memory, std::sync::atomic::Ordering::Relaxed);
        self.log_lines.get_or_create(&policy).inc_by(call.log_lines);
        self.log_lines_dropped
            .get_or_create(&policy)
            .inc_by(call.log_lines_dropped);
        self.response_bytes
            .get_or_create(&policy)
            .inc_by(call.response_bytes);
    }

    /// Counts an HTTP request of a policy; `None`: no response.
    pub fn policy_requested(&self, policy: &str, status: Option<u16>) {
        let status = match status {
            Some(100..=199) => "1xx",
            Some(200..=299) => "2xx",
            Some(300..=399) => "3xx",
            Some(400..=499) => "4xx",
            Some(500..=599) => "5xx",
            Some(_) => "other",
            None => "none",
        };
        let policy = policy.to_owned();
        self.requests
            .get_or_create(&labels::Request { policy, status })
            .inc();
    }

    /// Counts an Event that a policy emitted or tried to emit. `result`: a name of a closed list.
    pub fn policy_emitted(&self, policy: &str, result: &'static str) {
        let policy = policy.to_owned();
        self.events.get_or_create(&labels::Event { policy, result }).inc();
    }

    /// Shows the policies that must still undo their part of a drain although no drain runs.
    pub fn show_to_undo<'a>(&self, policies: impl Iterator<Item = &'a String>) {
        self.to_undo.clear();
        for policy in policies {
            let policy = policy.clone();
            self.to_undo.get_or_create(&labels::Policy { policy }).set(1);
        }
    }

    /// Counts a fact that a policy asked for. `fact`, `result`: names of closed lists.
    pub fn policy_asked(&self, policy: &str, fact: &'static str, result: &'static str) {
        let policy = policy.to_owned();
        self.facts
            .get_or_create(&labels::Fact { policy, fact, result })
            .inc();
    }

    /// Records that a version of a policy became active.
    pub fn policy_activated(&self, version: &PolicyVersion<'_>) {
        self.hide(version.policy, SHADOW);
        self.loaded(version, ACTIVE);
    }

    /// Records that a version of a policy became a shadow, which no drain follows.
    pub fn policy_shadowed(&self, version: &PolicyVersion<'_>) {
        self.hide(version.policy, ACTIVE);
        self.loaded(version, SHADOW);
    }

    /// Counts the plan of a shadow, and the pods that it treats differently. `result`: a name of a closed list.
    pub fn shadow_planned(&self, policy: &str, result: &'static str, pods: u64) {
        let policy = policy.to_owned();
        self.shadow_pods
            .get_or_create(&labels::Policy {
                policy: policy.clone(),
            })
            .inc_by(pods);
        self.shadow_plans
            .get_or_create(&labels::ShadowPlan { policy, result })
            .inc();
    }

    fn loaded(&self, version: &PolicyVersion<'_>, state: &'static str) {
        self.reloaded(version.policy, "activated", "");
        self.hide(version.policy, REJECTED);
        self.show(version, state);
        self.peak_memory.remove(&labels::Policy {
            policy: version.policy.to_owned(),
        });
    }

    /// Records that a version of a policy was rejected. `step`: the failed step, a name of a closed list.
    pub fn policy_rejected(&self, version: &PolicyVersion<'_>, step: &'static str) {
        self.reloaded(version.policy, "rejected", step);
        self.show(version, REJECTED);
    }

    /// Records that the current version of a policy was rolled back; `policy_back` or `policy_back_as_shadow` then records
    /// its replacement.
    /// `reason`: a name of a closed list.
    pub fn policy_rolled_back(&self, version: &PolicyVersion<'_>, reason: &'static str) {
        self.reloaded(version.policy, "rolled-back", reason);
        self.show(version, REJECTED);
    }

    /// Records that an earlier version of a policy is active again.
    pub fn policy_back(&self, version: &PolicyVersion<'_>) {
        self.show(version, ACTIVE);
    }

    /// Records that an earlier version of a shadow is back.
    pub fn policy_back_as_shadow(&self, version: &PolicyVersion<'_>) {
        self.show(version, SHADOW);
    }

    /// Records that a policy runs, but not in the configured version.
    pub fn policy_degraded(&self, policy: &str) {
        self.reloaded(policy, "degraded", "");
    }

    /// Records that a hook starts again, because the revision that continues it cannot read its state.
    pub fn policy_hook_begun_again(&self, policy: &str) {
        self.reloaded(policy, "hook-begun-again", "");
    }

    /// Removes a policy that is no longer configured: it has no version. Its counters stay, because counters never
    /// decrease.
    pub fn policy_removed(&self, policy: &str) {
        self.hide(policy, ACTIVE);
        self.hide(policy, SHADOW);
        self.hide(policy, REJECTED);
        let policy = policy.to_owned();
        self.peak_memory.remove(&labels::Policy { policy });
    }

    fn reloaded(&self, policy: &str, result: &'static str, reason: &'static str) {
        let policy = policy.to_owned();
        self.reloads
            .get_or_create(&labels::Reload {
                policy,
                result,
                reason,
            })
            .inc();
    }

    /// Exports one series for each policy and state, however many versions there are.
    fn show(&self, version: &PolicyVersion<'_>, state: &'static str) {
        let mut own = version.version.to_owned();
        own.truncate(own.floor_char_boundary(VERSION_BYTES));
        let info = labels::Info {
            policy: version.policy.to_owned(),
            digest: version.digest.to_owned(),
            version: own,
            state,
            generation: version.generation,
        };
        self.hide(version.policy, state);
        // An unreadable file has no digest, and a configuration alone is not a policy.
        if version.digest.is_empty() {
            return;
        }
        self.info.get_or_create(&info).set(1);
        self.shown
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert((version.policy.to_owned(), state), info);
    }

    fn hide(&self, policy: &str, state: &'static str) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(info) = shown.remove(&(policy.to_owned(), state)) {
            self.info.remove(&info);
        }
    }
}

#[cfg(test)]
#[path = "policies/tests.rs"]
mod tests;
