//! What a report says of a recorded drain, and of several on one axis.

use std::fs::File;
use std::io::Write as _;
use std::time::Duration;

use flate2::{Compression, write::GzEncoder};
use scupper_engine::{HookPhase, PodRef, Uid, Verdict};
use scupper_forecast::{Change, Saving};
use scupper_recording::{PodDifference, ShadowPlan, ShadowResult, StartEstimate, Treatment};
use scupper_report::PodList;

use super::*;

/// A drain of 9 seconds, in three waves.
const DRAIN: &str = include_str!("../../recording/tests/format-4.jsonl");

fn report() -> Report {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("drain.jsonl.gz");
    let mut file = GzEncoder::new(File::create(&path).unwrap(), Compression::fast());
    file.write_all(DRAIN.as_bytes()).unwrap();
    file.finish().unwrap();
    Report::of(&path).unwrap()
}

/// With an estimate, in seconds after the start.
fn estimated(seconds: [u64; 3]) -> Report {
    let mut report = report();
    let at = report.history.started;
    let [early, likely, late] = seconds.map(|seconds| at + Duration::from_secs(seconds));
    report.recording.estimate = Some(StartEstimate {
        at,
        early,
        likely,
        late,
    });
    report
}

fn reports(drains: Vec<Report>) -> Reports {
    Reports {
        axis: Axis::of(&drains),
        drains,
    }
}

#[test]
fn the_forecast_of_the_start_stands_beside_what_came() {
    assert_eq!(report().forecast(), None);
    let said = |seconds| estimated(seconds).forecast().unwrap();
    assert_eq!(
        said([8, 9, 12]),
        "Forecast at the start: 9s, in eight of ten cases 8s to 12s. It took 9s, within that range."
    );
    assert!(said([1, 2, 3]).ends_with(" It took 9s, more than that."));
    assert!(said([20, 30, 40]).ends_with(" It took 9s, less than that."));
    let mut other = estimated([8, 9, 12]);
    let end = other.recording.end.as_mut().unwrap();
    end.outcome = "Cancelled".to_owned();
    assert!(
        other
            .forecast()
            .unwrap()
            .ends_with(" It ended as Cancelled after 9s.")
    );
    other.recording.end = None;
    assert!(
        other
            .forecast()
            .unwrap()
            .ends_with(" The recording stops after 9s.")
    );
}

#[test]
fn the_axis_has_all_of_a_forecast_that_is_not_far_off() {
    let place = |seconds: [u64; 3]| {
        let reports = reports(vec![estimated(seconds)]);
        let report = &reports.drains[0];
        let late = report.recording.estimate.unwrap().late;
        let ended = reports.axis.place(report, report.history.ended);
        (ended, reports.axis.place(report, late))
    };
    assert_eq!(place([1, 2, 3]).0, 1.0);
    let (ended, late) = place([8, 9, 12]);
    assert!(ended < late && late == 1.0, "{ended}, {late}");
    assert_eq!(place([600, 700, 3600]), (0.5, 1.0));
}

#[test]
fn drains_share_one_axis_which_begins_with_the_first() {
    let mut second = report();
    second.recording.header.wall = second.recording.header.wall + Duration::from_secs(9);
    let reports = reports(vec![second, report()]);
    let began = |number: usize| {
        let report = &reports.drains[number];
        (reports.axis.place(report, report.history.started) * 100.0).round()
    };
    assert_eq!((began(1), began(0)), (0.0, 50.0));
    let text = text::markdown(&reports, PodList::ByWorkload);
    assert!(text.starts_with("# 2 drains in 18s\n\n"), "{text}");
    assert!(
        text.contains("; the last to end, worker-1, ended 18s later. 2 Drained.\n"),
        "{text}"
    );
    let row =
        "| worker-1 | 9s | 18s | Drained after 9s | none | 9s before-wave hook of policy namespace-modes |\n";
    assert!(text.contains(row), "{text}");
    assert_eq!(
        text.matches("\n## Drain of worker-1: Drained after 9s\n").count(),
        2,
        "{text}"
    );
    let page = html::page(&reports);
    assert!(page.contains("style=\"left:50."), "{page}");
}

#[test]
fn the_text_has_path_waves_and_pods() {
    let text = text::markdown(&reports(vec![estimated([8, 9, 12])]), PodList::ByWorkload);
    insta::with_settings!({ prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("report-text", text);
    });
}

/// A report with everything that one can have. Its schema is compared with what this test has accepted.
#[test]
fn a_document_has_all_of_it() {
    let mut report = estimated([8, 9, 12]);
    report.file = "drain.jsonl.gz".into();
    report.savings = vec![Saving {
        change: Change::Hook("namespace-modes".to_owned(), HookPhase::BeforeWave),
        saves: Duration::from_secs(4),
    }];
    let treatment = |verdict: Verdict, wave: Option<usize>| Treatment {
        verdict,
        reason: "a reason".to_owned(),
        wave: wave.map(|number| (number, "all".to_owned())),
        place: wave,
        grace_seconds: None,
    };
    report.recording.shadows = vec![ShadowPlan {
        policy: "next".to_owned(),
        digest: "b".repeat(64),
        instead_of: None,
        leaving: 3,
        result: ShadowResult::Differs(vec![PodDifference {
            pod: PodRef {
                namespace: "batch".to_owned(),
                name: "train".to_owned(),
                uid: Uid::new("uid-of-train"),
            },
            active: treatment(Verdict::Evict, Some(3)),
            shadow: treatment(Verdict::Keep, None),
        }]),
    }];
    let document = document::of(&report);
    insta::with_settings!({ prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("report-json", format!("{document:#}"));
    });
}
