//! The metrics of drains while they run and after their end.

use std::time::Duration;

use scupper_engine::{Phase, Totals, Uid};

use super::*;
use scupper_report::fixture::{pod, request};

/// A hook for a pod, pending since the first minute.
fn waiting(policy: &str, pod: &str) -> Notice {
    Notice::HookWaiting {
        policy: policy.into(),
        phase: HookPhase::BeforeEvict,
        subject: Subject::Pod(Uid::new(pod)),
        since: MINUTE,
        progress: String::new(),
        waiting_for: Vec::new(),
    }
}

fn done(policy: &str, pod: &str) -> Notice {
    Notice::HookDone {
        policy: policy.into(),
        phase: HookPhase::BeforeEvict,
        subject: Subject::Pod(Uid::new(pod)),
    }
}

/// The values of a metric, each with its labels.
fn shown(metrics: &Metrics, name: &str) -> Vec<String> {
    let text = metrics.to_text();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let own = |line: &&str| line.split(['{', ' ']).next() == Some(name);
    let mut values: Vec<_> = lines
        .filter(own)
        .map(|line| line[name.len()..].to_owned())
        .collect();
    values.sort();
    values
}

const MINUTE: Time = Time::from_millis(60_000);

#[test]
fn a_running_drain_shows_its_phase_its_pods_by_reason_and_since_when_hooks_wait() {
    let metrics = Metrics::new();
    assert_eq!(shown(&metrics, "scupper_drain_in_progress"), [" 0"]);
    let mut meter = DrainMeter::begin(&metrics, &request(), MINUTE);
    meter.notice(MINUTE, &Notice::Phase(Phase::Planning));
    meter.notice(MINUTE, &Notice::Phase(Phase::Evicting));
    assert_eq!(shown(&metrics, "scupper_drain_in_progress"), [" 1"]);
    assert_eq!(shown(&metrics, "scupper_drain_phase"), ["{phase=\"evicting\"} 1"]);
    assert_eq!(
        shown(&metrics, "scupper_drain_started_timestamp_seconds"),
        [" 60.0"]
    );
    let held = Reason::BudgetExhausted {
        budget: "cart".into(),
        message: "whatever the server says".into(),
    };
    let pods = [
        (pod("a"), held.clone()),
        (pod("b"), held),
        (pod("c"), Reason::ParallelLimit),
        (pod("d"), Reason::Kept),
    ];
    meter.stands(Some(Time::from_millis(90_500)), &pods);
    let by_reason = ["{reason=\"BudgetExhausted\"} 2", "{reason=\"ParallelLimit\"} 1"];
    assert_eq!(shown(&metrics, "scupper_drain_pods_remaining"), by_reason);
    assert_eq!(
        shown(&metrics, "scupper_drain_deadline_timestamp_seconds"),
        [" 90.5"]
    );
    // Two pods of one hook share one series, which starts with the first pod and ends with the last.
    let since = "scupper_hook_waiting_since_timestamp_seconds";
    meter.notice(MINUTE, &waiting("slurm", "a"));
    meter.notice(Time::from_millis(75_000), &waiting("slurm", "b"));
    meter.notice(Time::from_millis(80_000), &done("slurm", "a"));
    assert_eq!(
        shown(&metrics, since),
        ["{policy=\"slurm\",phase=\"before-evict\"} 60.0"]
    );
    meter.notice(Time::from_millis(80_000), &done("slurm", "b"));
    assert_eq!(shown(&metrics, since), Vec::<String>::new());
    // Reasons that no longer apply disappear.
    meter.stands(None, &[(pod("c"), Reason::ParallelLimit)]);
    assert_eq!(
        shown(&metrics, "scupper_drain_pods_remaining"),
        ["{reason=\"ParallelLimit\"} 1"]
    );
    meter.notice(MINUTE, &waiting("slurm", "c"));
    drop(meter);
    for name in ["scupper_drain_pods_remaining", "scupper_drain_phase", since] {
        assert_eq!(shown(&metrics, name), Vec::<String>::new(), "{name}");
    }
    assert_eq!(shown(&metrics, "scupper_drain_in_progress"), [" 0"]);
}

#[test]
fn drains_are_counted_by_how_they_ended() {
    let metrics = Metrics::new();
    let drains = "scupper_drains_total";
    assert_eq!(
        shown(&metrics, drains).len(),
        8,
        "every end is there from the beginning"
    );
    assert!(shown(&metrics, drains).iter().all(|value| value.ends_with(" 0")));
    let mut meter = DrainMeter::begin(&metrics, &request(), MINUTE);
    let summary = Summary {
        started: MINUTE,
        ended: Time::from_millis(102_000),
        totals: Totals {
            evictions: 7,
            budget_refusals: 3,
            hook_wait: Duration::from_secs(5),
            budget_wait: Duration::from_millis(1500),
            ..Totals::default()
        },
        volume_wait: Duration::from_secs(9),
        ..Summary::default()
    };
    let notice = Notice::Finished {
        outcome: Outcome::DeadlineExceeded {
            remaining: Vec::new(),
            held_up: None,
        },
        summary,
    };
    meter.notice(MINUTE, &notice);
    let labels = "{intent=\"drain\",outcome=\"DeadlineExceeded\"}";
    assert!(shown(&metrics, drains).contains(&format!("{labels} 1")));
    assert_eq!(
        shown(&metrics, "scupper_drain_duration_seconds_sum"),
        [format!("{labels} 42.0")]
    );
    assert_eq!(shown(&metrics, "scupper_eviction_requests_total"), [" 7"]);
    assert_eq!(shown(&metrics, "scupper_budget_refusals_total"), [" 3"]);
    assert_eq!(shown(&metrics, "scupper_drain_hook_wait_seconds_total"), [" 5.0"]);
    assert_eq!(
        shown(&metrics, "scupper_drain_budget_wait_seconds_total"),
        [" 1.5"]
    );
    assert_eq!(
        shown(&metrics, "scupper_drain_volume_wait_seconds_total"),
        [" 9.0"]
    );
}

#[test]
fn requests_are_counted_by_kind_and_answer() {
    let metrics = Metrics::new();
    metrics.api_requested("create", "pods/eviction", Some(429));
    metrics.api_requested("create", "pods/eviction", Some(429));
    metrics.api_requested("watch", "pods", None);
    let counted = [
        "{verb=\"create\",resource=\"pods/eviction\",code=\"429\"} 2",
        "{verb=\"watch\",resource=\"pods\",code=\"none\"} 1",
    ];
    assert_eq!(shown(&metrics, "scupper_api_requests_total"), counted);
}

#[test]
fn the_end_of_a_drain_is_compared_with_what_was_estimated_first() {
    let metrics = Metrics::new();
    let at = |seconds: u64| Time::from_millis(seconds * 1000);
    let end = |outcome: Outcome, ended: u64| {
        let mut meter = DrainMeter::begin(&metrics, &request(), MINUTE);
        meter.estimates(Some([70, 80, 90].map(at)));
        meter.estimates(Some([200, 200, 200].map(at)));
        let summary = Summary {
            started: MINUTE,
            ended: at(ended),
            ..Summary::default()
        };
        meter.notice(at(ended), &Notice::Finished { outcome, summary });
    };
    let cancelled = || Outcome::Cancelled {
        reason: String::new(),
    };
    for ended in [65, 70, 90, 91] {
        end(Outcome::Drained, ended);
    }
    end(cancelled(), 65);
    end(cancelled(), 85);
    end(cancelled(), 95);
    let counted = ["{end=\"early\"} 1", "{end=\"late\"} 2", "{end=\"within\"} 2"];
    assert_eq!(shown(&metrics, "scupper_drain_estimates_total"), counted);
}

#[test]
fn the_estimate_is_shown_while_there_is_one() {
    let metrics = Metrics::new();
    let ends = "scupper_drain_estimated_end_timestamp_seconds";
    let mut meter = DrainMeter::begin(&metrics, &request(), MINUTE);
    assert_eq!(shown(&metrics, ends), Vec::<String>::new());
    let at = [70, 80, 90].map(|seconds| Time::from_millis(seconds * 1000));
    meter.estimates(Some(at));
    let shown_then = [
        "{quantile=\"0.1\"} 70.0",
        "{quantile=\"0.5\"} 80.0",
        "{quantile=\"0.9\"} 90.0",
    ];
    assert_eq!(shown(&metrics, ends), shown_then);
    meter.estimates(None);
    assert_eq!(shown(&metrics, ends), Vec::<String>::new());
    meter.estimates(Some(at));
    drop(meter);
    assert_eq!(shown(&metrics, ends), Vec::<String>::new());
}
