//! The complete output of `/metrics` and of the probes.

use std::collections::BTreeSet;
use std::time::Duration;

use scupper_engine::{HookPhase, Intent, Notice, Outcome, Phase, Request, Subject};
use scupper_pre_flight::{Certainty, Concern, Finding};

use super::super::fixture::request;
use super::accepted;
use super::samples::{NOW, ago, endings, estimate, outcomes, summaries, surge_steps, waiting};
use scupper_metrics::{DrainMeter, Metrics, PolicyCall, PolicyVersion};

fn version<'a>(version: &'a str, digest: &'a str) -> PolicyVersion<'a> {
    PolicyVersion {
        policy: "slurm",
        digest,
        version,
        generation: 1,
    }
}

fn policies(metrics: &Metrics) {
    metrics.policy_called(&PolicyCall {
        policy: "slurm",
        function: "plan",
        result: "ok",
        wall: Duration::from_millis(20),
        cpu: Duration::from_millis(2),
        memory: 65_536,
        log_lines: 3,
        log_lines_dropped: 1,
        response_bytes: 512,
    });
    for status in [
        Some(100),
        Some(200),
        Some(302),
        Some(404),
        Some(503),
        Some(999),
        None,
    ] {
        metrics.policy_requested("slurm", status);
    }
    metrics.policy_emitted("slurm", "written");
    metrics.policy_asked("slurm", "owners", "answered");
    metrics.policy_activated(&version("1.0.0", "aa"));
    metrics.policy_shadowed(&PolicyVersion {
        policy: "slurm-next",
        ..version("2.0.0", "dd")
    });
    for (result, pods) in [("agrees", 0), ("differs", 3), ("failed", 0)] {
        metrics.shadow_planned("slurm-next", result, pods);
    }
    metrics.policy_rejected(&version("1.1.0", "bb"), "compile");
    metrics.policy_rolled_back(&version("1.0.0", "aa"), "operator");
    metrics.policy_back(&version("0.9.0", "cc"));
    metrics.policy_degraded("slurm");
    metrics.policy_hook_begun_again("slurm");
}

fn drains(metrics: &Metrics) -> DrainMeter {
    for ending in endings() {
        DrainMeter::begin(metrics, &request(), ago(72)).notice(NOW, &ending);
    }
    let uncordon = Request {
        intent: Intent::Uncordon,
        ..request()
    };
    let [summary, _] = summaries();
    let outcome = Outcome::Uncordoned { cordon_kept: false };
    DrainMeter::begin(metrics, &uncordon, ago(72)).notice(NOW, &Notice::Finished { outcome, summary });
    let mut under_way = DrainMeter::begin(metrics, &request(), ago(72));
    under_way.notice(NOW, &Notice::Phase(Phase::Evicting));
    let finding = |certainty, concern| Finding {
        certainty,
        concern,
        pods: Vec::new(),
        budgets: Vec::new(),
        reason: String::new(),
        change: String::new(),
    };
    under_way.findings(&[
        finding(Certainty::Certain, Concern::ClosedBudget),
        finding(Certainty::Likely, Concern::LocalVolume),
        finding(Certainty::Likely, Concern::LocalVolume),
    ]);
    under_way.notice(
        NOW,
        &Notice::HookWaiting {
            policy: "slurm".to_owned(),
            phase: HookPhase::BeforeDrain,
            subject: Subject::Node,
            since: ago(60),
            progress: String::new(),
            waiting_for: Vec::new(),
        },
    );
    for step in surge_steps() {
        under_way.notice(NOW, &step);
    }
    under_way.stands(Some(NOW), &waiting());
    under_way.estimates(Some(estimate().0));
    under_way
}

/// The text with the samples of each metric sorted: the registry keeps them in a hash map.
fn in_order(text: &str) -> String {
    let mut ordered = String::new();
    let mut samples = BTreeSet::new();
    for line in text.lines().chain(["#"]) {
        if !line.starts_with('#') {
            samples.insert(line.to_owned());
            continue;
        }
        for sample in std::mem::take(&mut samples) {
            ordered.push_str(&format!("{sample}\n"));
        }
        ordered.push_str(&format!("{line}\n"));
    }
    ordered
}

#[test]
fn every_metric_and_its_help() {
    let metrics = Metrics::new();
    policies(&metrics);
    let under_way = drains(&metrics);
    metrics.serves_drain_requests();
    for reason in [
        "Drained",
        "Drained",
        "InvalidRequest",
        "a reason that no answer has",
    ] {
        metrics.drain_request_answered(reason);
    }
    metrics.api_requested("patch", "nodes", Some(200));
    metrics.api_requested("create", "pods/eviction", None);
    let text = in_order(&metrics.to_text());
    drop(under_way);
    let ends: BTreeSet<_> = outcomes().iter().map(Outcome::name).collect();
    for outcome in ends {
        assert!(text.contains(&format!("outcome=\"{outcome}\"")), "{outcome}");
    }
    accepted("metrics", &text);
}
