//! Defines every metric with its name, its unit and a one-sentence description.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::labels;

/// Buckets for the duration of a call, in seconds: from a plan for a small node to a step that uses its whole time
/// limit waiting for servers.
const CALL_SECONDS: [f64; 10] = [0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 5.0, 10.0, 30.0];

/// Buckets for CPU time, in seconds. A typical policy computes for a millisecond.
const CPU_SECONDS: [f64; 9] = [0.0005, 0.001, 0.0025, 0.01, 0.05, 0.25, 1.0, 2.5, 5.0];

/// Buckets for the duration of a drain, in seconds: from an empty node to a working day of waiting for jobs.
const DRAIN_SECONDS: [f64; 12] = [
    1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0, 28_800.0,
];

type Seconds = Gauge<f64, AtomicU64>;
type SecondsCounter = Counter<f64, AtomicU64>;
type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

/// All metrics of the driver. Clones share the counters.
#[derive(Clone)]
pub struct Metrics {
    pub(crate) calls: Family<labels::Call, Counter>,
    pub(crate) call_seconds: Histograms<labels::Function>,
    pub(crate) cpu_seconds: Histograms<labels::Function>,
    pub(crate) peak_memory: Family<labels::Policy, Gauge>,
    pub(crate) log_lines: Family<labels::Policy, Counter>,
    pub(crate) log_lines_dropped: Family<labels::Policy, Counter>,
    pub(crate) requests: Family<labels::Request, Counter>,
    pub(crate) response_bytes: Family<labels::Policy, Counter>,
    pub(crate) events: Family<labels::Event, Counter>,
    pub(crate) facts: Family<labels::Fact, Counter>,
    pub(crate) shadow_plans: Family<labels::ShadowPlan, Counter>,
    pub(crate) shadow_pods: Family<labels::Policy, Counter>,
    pub(crate) reloads: Family<labels::Reload, Counter>,
    pub(crate) info: Family<labels::Info, Gauge>,
    pub(crate) drains: Family<labels::Drain, Counter>,
    pub(crate) drain_seconds: Histograms<labels::Drain>,
    pub(crate) in_progress: Gauge,
    pub(crate) phase: Family<labels::Phase, Gauge>,
    pub(crate) started: Seconds,
    pub(crate) deadline: Seconds,
    pub(crate) estimated_end: Family<labels::Quantile, Seconds>,
    pub(crate) estimates: Family<labels::Estimated, Counter>,
    pub(crate) pods_remaining: Family<labels::Reason, Gauge>,
    pub(crate) findings: Family<labels::Finding, Counter>,
    pub(crate) pods_gone: Counter,
    pub(crate) pods_forced: Counter,
    pub(crate) eviction_requests: Counter,
    pub(crate) budget_refusals: Counter,
    pub(crate) hook_wait: SecondsCounter,
    pub(crate) budget_wait: SecondsCounter,
    pub(crate) volume_wait: SecondsCounter,
    pub(crate) volumes_attached: Gauge,
    pub(crate) to_undo: Family<labels::Policy, Gauge>,
    pub(crate) surges: Family<labels::Surge, Counter>,
    pub(crate) hook_since: Family<labels::Hook, Seconds>,
    pub(crate) drain_requests: Family<labels::Reason, Counter>,
    pub(crate) api_requests: Family<labels::ApiRequest, Counter>,
    pub(crate) trace_spans_dropped: Counter,
    /// The one series of `info` per policy and state, so that the next version replaces it.
    pub(crate) shown: Arc<Mutex<HashMap<(String, &'static str), labels::Info>>>,
    registry: Arc<Registry>,
}

impl Metrics {
    /// The count of spans that could not be exported.
    pub fn trace_spans_dropped(&self) -> Counter {
        self.trace_spans_dropped.clone()
    }

    /// Creates all metrics, with every count at 0.
    pub fn new() -> Self {
        let mut metrics = Self {
            calls: Family::default(),
            call_seconds: Family::new_with_constructor(|| Histogram::new(CALL_SECONDS)),
            cpu_seconds: Family::new_with_constructor(|| Histogram::new(CPU_SECONDS)),
            peak_memory: Family::default(),
            log_lines: Family::default(),
            log_lines_dropped: Family::default(),
            requests: Family::default(),
            response_bytes: Family::default(),
            events: Family::default(),
            facts: Family::default(),
            shadow_plans: Family::default(),
            shadow_pods: Family::default(),
            reloads: Family::default(),
            info: Family::default(),
            drains: Family::default(),
            drain_seconds: Family::new_with_constructor(|| Histogram::new(DRAIN_SECONDS)),
            in_progress: Gauge::default(),
            phase: Family::default(),
            started: Gauge::default(),
            deadline: Gauge::default(),
            estimated_end: Family::default(),
            estimates: Family::default(),
            pods_remaining: Family::default(),
            findings: Family::default(),
            pods_gone: Counter::default(),
            pods_forced: Counter::default(),
            eviction_requests: Counter::default(),
            budget_refusals: Counter::default(),
            hook_wait: Counter::default(),
            budget_wait: Counter::default(),
            volume_wait: Counter::default(),
            volumes_attached: Gauge::default(),
            to_undo: Family::default(),
            surges: Family::default(),
            hook_since: Family::default(),
            drain_requests: Family::default(),
            api_requests: Family::default(),
            trace_spans_dropped: Counter::default(),
            shown: Arc::default(),
            registry: Arc::default(),
        };
        metrics.registry = Arc::new(metrics.registered());
        metrics.show_outcomes();
        metrics
    }

    fn registered(&self) -> Registry {
        let mut all = Registry::with_prefix("scupper");
        self.register_drains(&mut all);
        self.register_drain_under_way(&mut all);
        self.register_calls(&mut all);
        let help = "Whether the policy must still undo its part of a drain although no drain runs";
        all.register("policy_to_undo", help, self.to_undo.clone());
        let help = "Lines that policies wrote into the log";
        all.register("policy_log_lines", help, self.log_lines.clone());
        let help = "Log lines of policies that the rate limit dropped";
        all.register("policy_log_lines_dropped", help, self.log_lines_dropped.clone());
        let help =
            "HTTP requests of policies by the class of the response's status; none: there was no response";
        all.register("policy_http_requests", help, self.requests.clone());
        let help = "Bytes of the responses to HTTP requests of policies";
        all.register_with_unit(
            "policy_http_response",
            help,
            Unit::Bytes,
            self.response_bytes.clone(),
        );
        let help = "Kubernetes Events that policies asked for, by result";
        all.register("policy_events", help, self.events.clone());
        let help = "Facts about the cluster that policies asked for, by policy, fact and result";
        all.register("policy_facts", help, self.facts.clone());
        let help =
            "Versions of policies that were activated, rejected or rolled back, by the step that failed";
        all.register("policy_reloads", help, self.reloads.clone());
        let help = "Plans of shadow policies by result";
        all.register("policy_shadow_plans", help, self.shadow_plans.clone());
        let help = "Pods that a shadow policy would have treated differently";
        all.register("policy_shadow_pods", help, self.shadow_pods.clone());
        let help = "Which version of a policy is in which state: active, shadow or rejected";
        all.register("policy_info", help, self.info.clone());
        all
    }

    fn register_drains(&self, all: &mut Registry) {
        let help = "Drains and uncordons that have ended, by outcome";
        all.register("drains", help, self.drains.clone());
        let help = "Time from the beginning to the end of a drain or uncordon";
        all.register_with_unit("drain_duration", help, Unit::Seconds, self.drain_seconds.clone());
        let help = "Pre-flight findings of drains that have begun, by what they are about";
        all.register("preflight_findings", help, self.findings.clone());
        let help = "Ended drains by whether they ended early, within or late of the range estimated at their start; about 80 % should be within";
        all.register("drain_estimates", help, self.estimates.clone());
        let help = "Pods evicted in drains";
        all.register("drain_pods_gone", help, self.pods_gone.clone());
        let help = "Pods that drains deleted shortly before their deadline (drain.at-deadline)";
        all.register("drain_pods_forced", help, self.pods_forced.clone());
        let help = "Evictions and deletions of pods requested, each try counted when its drain ends";
        all.register("eviction_requests", help, self.eviction_requests.clone());
        let help = "Evictions and deletions of pods that a disruption budget refused";
        all.register("budget_refusals", help, self.budget_refusals.clone());
        let help = "Time for which hooks of policies held up drains that have ended";
        all.register_with_unit("drain_hook_wait", help, Unit::Seconds, self.hook_wait.clone());
        let help = "Time for which disruption budgets held up drains that have ended";
        all.register_with_unit("drain_budget_wait", help, Unit::Seconds, self.budget_wait.clone());
        let help = "Time for which attached volumes held up drains that have ended";
        all.register_with_unit("drain_volume_wait", help, Unit::Seconds, self.volume_wait.clone());
        let help = "Deployments surged because their budgets allow no eviction, by step: restarted, raised, replaced, taken-back, left-raised, gave-up";
        all.register("surges", help, self.surges.clone());
        let help = "DrainRequests that the driver answered, by the reason of DrainComplete or DrainFailed";
        all.register("drain_requests", help, self.drain_requests.clone());
        let help = "Requests to the API server by the status of their answer; none: there was no answer";
        all.register("api_requests", help, self.api_requests.clone());
        let help = "Spans of drains that could not be exported: the collector was away or refused them, or too many were queued";
        all.register("trace_spans_dropped", help, self.trace_spans_dropped.clone());
    }

    fn register_drain_under_way(&self, all: &mut Registry) {
        let help = "Whether a drain or an uncordon is under way on this node";
        all.register("drain_in_progress", help, self.in_progress.clone());
        let help = "Attached volumes that the current drain waits for";
        all.register("drain_volumes_attached", help, self.volumes_attached.clone());
        let help = "Phase of the current drain";
        all.register("drain_phase", help, self.phase.clone());
        let help = "When the current drain began; 0: there is none";
        all.register_with_unit(
            "drain_started_timestamp",
            help,
            Unit::Seconds,
            self.started.clone(),
        );
        let help = "Deadline of the current drain; 0: there is none";
        all.register_with_unit(
            "drain_deadline_timestamp",
            help,
            Unit::Seconds,
            self.deadline.clone(),
        );
        let help = "Estimated end of the current drain, by quantile; no series: no estimate";
        all.register_with_unit(
            "drain_estimated_end_timestamp",
            help,
            Unit::Seconds,
            self.estimated_end.clone(),
        );
        let help = "Pods still to be evicted in the current drain, by what they wait for";
        all.register("drain_pods_remaining", help, self.pods_remaining.clone());
        let help = "Since when hooks of a policy have held up the current drain";
        all.register_with_unit(
            "hook_waiting_since_timestamp",
            help,
            Unit::Seconds,
            self.hook_since.clone(),
        );
    }

    fn register_calls(&self, all: &mut Registry) {
        let help = "Calls of policies by exported function and by how they ended";
        all.register("policy_calls", help, self.calls.clone());
        let help = "Wall-clock time of calls of policies";
        all.register_with_unit(
            "policy_call_duration",
            help,
            Unit::Seconds,
            self.call_seconds.clone(),
        );
        let help = "CPU time of calls of policies, the host's work for them included";
        all.register_with_unit("policy_call_cpu", help, Unit::Seconds, self.cpu_seconds.clone());
        let help = "The most memory that one call of a policy used since its version was activated";
        all.register_with_unit("policy_peak_memory", help, Unit::Bytes, self.peak_memory.clone());
    }

    /// Encodes all metrics as OpenMetrics text.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        match encode(&mut text, &self.registry) {
            Ok(()) => text,
            // Writing to a string cannot fail; partial text would look complete.
            Err(_never) => String::new(),
        }
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}
