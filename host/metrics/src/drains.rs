//! Metrics of drains: their outcomes, and what the running one waits for.

use std::collections::{BTreeMap, BTreeSet};

use scupper_engine::{
    HookPhase, Intent, Notice, Outcome, PodRef, Reason, Request, Subject, Summary, Time, whole_millis,
};
use scupper_pre_flight::Finding;

use crate::labels;
use crate::registry::Metrics;

/// The outcomes of a drain. All are exported from the start, so that the first drain of each kind shows as an increase.
const DRAINED: [&str; 7] = [
    "Drained",
    "Blocked",
    "PolicyFailed",
    "DeadlineExceeded",
    "Cancelled",
    "Lost",
    "Failed",
];

/// What each time of an estimate is: the share of drains like this one that end before.
const QUANTILES: [&str; 3] = ["0.1", "0.5", "0.9"];

/// Where the end of a drain can be in its estimate.
const EARLY: &str = "early";
const WITHIN: &str = "within";
const LATE: &str = "late";

const DRAIN: &str = "drain";
const UNCORDON: &str = "uncordon";

/// Counts one drain. Dropping it clears the metrics of the running drain.
pub struct DrainMeter {
    metrics: Metrics,
    intent: &'static str,
    phase: Option<labels::Phase>,
    hooks: BTreeMap<(String, HookPhase), BTreeSet<Subject>>,
    /// When it would probably end, as was known first.
    estimate: Option<[Time; 3]>,
}

impl DrainMeter {
    /// Starts counting a drain that began at this time, possibly in another process.
    pub fn begin(metrics: &Metrics, request: &Request, started: Time) -> Self {
        metrics.in_progress.set(1);
        metrics.started.set(seconds(started));
        let intent = match request.intent {
            Intent::Drain => DRAIN,
            Intent::Uncordon => UNCORDON,
        };
        Self {
            metrics: metrics.clone(),
            intent,
            phase: None,
            hooks: BTreeMap::new(),
            estimate: None,
        }
    }

    /// Updates the metrics from a notice.
    pub fn notice(&mut self, now: Time, notice: &Notice) {
        match notice {
            Notice::Phase(phase) => {
                let phase = labels::Phase {
                    phase: phase.to_string(),
                };
                self.leave_phase();
                self.metrics.phase.get_or_create(&phase).set(1);
                self.phase = Some(phase);
            }
            Notice::PodGone { .. } => {
                self.metrics.pods_gone.inc();
            }
            Notice::Forced { .. } => {
                self.metrics.pods_forced.inc();
            }
            Notice::HookWaiting {
                policy,
                phase,
                subject,
                since,
                ..
            } => self.hook_waits((*since).min(now), policy, *phase, subject),
            Notice::HookDone {
                policy,
                phase,
                subject,
            } => self.hook_is_done(policy, *phase, subject),
            Notice::AwaitsVolumes { left, .. } => {
                let attached = i64::try_from(left.attached().len()).unwrap_or(i64::MAX);
                self.metrics.volumes_attached.set(attached);
            }
            Notice::VolumesSettled { .. } => {
                self.metrics.volumes_attached.set(0);
            }
            Notice::Surge { step, .. } => {
                let step = labels::Surge { step: step.name() };
                self.metrics.surges.get_or_create(&step).inc();
            }
            Notice::Finished { outcome, summary } => self.finished(outcome, summary),
            _ => {}
        }
    }

    /// Counts what stands in the way of the plan.
    pub fn findings(&self, findings: &[Finding]) {
        for finding in findings {
            let finding = labels::Finding {
                concern: finding.concern.name(),
                certainty: finding.certainty.to_string(),
            };
            self.metrics.findings.get_or_create(&finding).inc();
        }
    }

    /// Sets the deadline, and the pods on the node by reason.
    pub fn stands(&self, deadline: Option<Time>, pods: &[(PodRef, Reason)]) {
        self.metrics.deadline.set(deadline.map_or(0.0, seconds));
        let mut counts: BTreeMap<&'static str, i64> = BTreeMap::new();
        for (_, reason) in pods.iter().filter(|(_, reason)| !reason.stays()) {
            *counts.entry(reason.name()).or_default() += 1;
        }
        self.metrics.pods_remaining.clear();
        for (reason, count) in counts {
            let reason = labels::Reason { reason };
            self.metrics.pods_remaining.get_or_create(&reason).set(count);
        }
    }

    /// Sets when the drain will probably end: the times before which one, five and nine of ten drains like it end.
    pub fn estimates(&mut self, ends: Option<[Time; 3]>) {
        self.estimate = self.estimate.or(ends);
        for (place, quantile) in QUANTILES.into_iter().enumerate() {
            let quantile = labels::Quantile { quantile };
            match ends.and_then(|ends| ends.get(place).copied()) {
                Some(end) => {
                    let gauge = self.metrics.estimated_end.get_or_create(&quantile);
                    gauge.set(seconds(end));
                }
                None => {
                    self.metrics.estimated_end.remove(&quantile);
                }
            }
        }
    }

    /// Counts where the end was in what was known first. One that was cancelled earlier, or failed, shows nothing.
    fn compare_with_estimate(&self, outcome: &Outcome, ended: Time) {
        let Some([first, _, last]) = self.estimate else {
            return;
        };
        let end = match outcome {
            _ if ended > last => LATE,
            Outcome::Drained if ended < first => EARLY,
            Outcome::Drained => WITHIN,
            _ => return,
        };
        self.metrics
            .estimates
            .get_or_create(&labels::Estimated { end })
            .inc();
    }

    fn hook_waits(&mut self, since: Time, policy: &str, phase: HookPhase, subject: &Subject) {
        let waiting = self.hooks.entry((policy.to_owned(), phase)).or_default();
        if waiting.is_empty() {
            let gauge = &self.metrics.hook_since;
            gauge.get_or_create(&hook(policy, phase)).set(seconds(since));
        }
        waiting.insert(subject.clone());
    }

    fn hook_is_done(&mut self, policy: &str, phase: HookPhase, subject: &Subject) {
        let key = (policy.to_owned(), phase);
        let Some(waiting) = self.hooks.get_mut(&key) else {
            return;
        };
        waiting.remove(subject);
        if waiting.is_empty() {
            self.hooks.remove(&key);
            self.metrics.hook_since.remove(&hook(policy, phase));
        }
    }

    fn finished(&self, outcome: &Outcome, summary: &Summary) {
        let Metrics {
            drains,
            drain_seconds,
            eviction_requests,
            budget_refusals,
            hook_wait,
            budget_wait,
            volume_wait,
            volumes_attached,
            ..
        } = &self.metrics;
        let ended = labels::Drain {
            intent: self.intent,
            outcome: outcome.name(),
        };
        self.compare_with_estimate(outcome, summary.ended);
        drains.get_or_create(&ended).inc();
        let spent = summary.ended.since(summary.started);
        drain_seconds
            .get_or_create(&ended)
            .observe(whole_millis(spent) as f64 / 1000.0);
        eviction_requests.inc_by(summary.totals.evictions.into());
        budget_refusals.inc_by(summary.totals.budget_refusals.into());
        hook_wait.inc_by(whole_millis(summary.totals.hook_wait) as f64 / 1000.0);
        budget_wait.inc_by(whole_millis(summary.totals.budget_wait) as f64 / 1000.0);
        volume_wait.inc_by(whole_millis(summary.volume_wait) as f64 / 1000.0);
        volumes_attached.set(0);
    }

    fn leave_phase(&mut self) {
        if let Some(phase) = self.phase.take() {
            self.metrics.phase.remove(&phase);
        }
    }
}

impl Drop for DrainMeter {
    fn drop(&mut self) {
        self.leave_phase();
        self.metrics.in_progress.set(0);
        self.metrics.started.set(0.0);
        self.metrics.deadline.set(0.0);
        self.metrics.estimated_end.clear();
        self.metrics.pods_remaining.clear();
        self.metrics.hook_since.clear();
        self.metrics.volumes_attached.set(0);
    }
}

impl Metrics {
    /// Exports every outcome with a count of 0.
    pub(crate) fn show_outcomes(&self) {
        let ends = DRAINED.map(|outcome| (DRAIN, outcome));
        for (intent, outcome) in ends.into_iter().chain([(UNCORDON, "Uncordoned")]) {
            self.drains
                .get_or_create(&labels::Drain { intent, outcome })
                .inc_by(0);
        }
        for end in [EARLY, WITHIN, LATE] {
            self.estimates.get_or_create(&labels::Estimated { end }).inc_by(0);
        }
    }

    /// Counts a request to the API server; `None`: no response. `verb` and `resource` are from closed lists.
    pub fn api_requested(&self, verb: &'static str, resource: &'static str, code: Option<u16>) {
        let code = code.map_or_else(|| "none".to_owned(), |code| code.to_string());
        let request = labels::ApiRequest { verb, resource, code };
        self.api_requests.get_or_create(&request).inc();
    }
}

fn hook(policy: &str, phase: HookPhase) -> labels::Hook {
    labels::Hook {
        policy: policy.to_owned(),
        phase: phase.to_string(),
    }
}

fn seconds(time: Time) -> f64 {
    time.as_millis() as f64 / 1000.0
}

#[cfg(test)]
#[path = "drains/tests.rs"]
mod tests;
