//! A report for programs, as `deploy/schemas/report.schema.json` describes it.

use std::time::Duration;

use serde_json::{Value, json};

use super::Report;
use super::causes::{self, Total};
use super::{savings, shadow_to_json};
use scupper_common::clock::rfc3339;
use scupper_engine::Time;
use scupper_forecast::Saving;
use scupper_recording::{Part, PodHistory, WaveHistory};

pub(super) fn of(report: &Report) -> Value {
    let header = &report.recording.header;
    let after = |at: Time| at.since(report.history.started).as_secs_f64();
    let forecast = report.recording.estimate.map(|estimate| {
        json!({
            "madeAfterSeconds": after(estimate.at),
            "p10Seconds": after(estimate.early),
            "p50Seconds": after(estimate.likely),
            "p90Seconds": after(estimate.late),
        })
    });
    let part = |part: &Part| {
        let (kind, cause) = causes::of_part(&report.history, part);
        let pod = part.pod.as_ref().map(|(pod, ..)| pod.to_string());
        json!({
            "fromSeconds": after(part.from),
            "toSeconds": after(part.to),
            "kind": kind.name(),
            "cause": cause,
            "pod": pod,
        })
    };
    let wave = |wave: &WaveHistory| {
        json!({
            "wave": wave.number,
            "name": wave.name,
            "pods": wave.pods,
            "begunAfterSeconds": wave.begun.map(after),
            "goneAfterSeconds": wave.gone.map(after),
        })
    };
    let pod = |pod: &PodHistory| {
        json!({
            "pod": pod.pod.to_string(),
            "owner": pod.owner,
            "wave": pod.wave,
            "goneAfterSeconds": pod.gone.map(after),
            "waits": causes::of_pod(pod).iter().map(total).collect::<Vec<_>>(),
        })
    };
    let end = report.recording.end.as_ref();
    json!({
        "file": report.file.to_string_lossy(),
        "node": header.request.node,
        "drain": header.request.name,
        "started": rfc3339(header.wall),
        "outcome": end.map(|end| &end.outcome),
        "message": end.map(|end| &end.text),
        "seconds": seconds(report.took()),
        "forecast": forecast,
        "waitedFor": report.totals.iter().map(total).collect::<Vec<_>>(),
        "path": report.history.path.iter().map(part).collect::<Vec<_>>(),
        "savings": report.savings.iter().map(saving).collect::<Vec<_>>(),
        "shadows": report.recording.shadows.iter().map(shadow_to_json).collect::<Vec<_>>(),
        "waves": report.history.waves.iter().map(wave).collect::<Vec<_>>(),
        "pods": report.history.pods.iter().map(pod).collect::<Vec<_>>(),
    })
}

fn seconds(took: Duration) -> f64 {
    took.as_secs_f64()
}

fn total(total: &Total) -> Value {
    json!({"kind": total.kind.name(), "cause": total.cause, "seconds": seconds(total.took)})
}

fn saving(saving: &Saving) -> Value {
    let (kind, name) = savings::names(&saving.change);
    json!({"kind": kind, "name": name, "seconds": seconds(saving.saves)})
}
