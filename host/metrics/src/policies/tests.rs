//! The text follows OpenMetrics and our naming rules, and does not grow with the activity of policies.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::*;

/// Parses a text into families, each with its type and its samples.
fn parse(text: &str) -> BTreeMap<String, (String, Vec<String>)> {
    let mut families: BTreeMap<String, (String, Vec<String>)> = BTreeMap::new();
    let mut helps = BTreeSet::new();
    let mut lines = text.lines().peekable();
    let mut current = String::new();
    while let Some(line) = lines.next() {
        match line.split(' ').collect::<Vec<_>>().as_slice() {
            ["#", "EOF"] => assert!(lines.peek().is_none(), "something follows the end"),
            ["#", "HELP", name, words @ ..] => {
                assert!(helps.insert((*name).to_owned()), "{name} is explained twice");
                assert!(words.len() > 3, "{name} is not explained");
            }
            ["#", "TYPE", name, kind] => {
                let before = families.insert((*name).to_owned(), ((*kind).to_owned(), Vec::new()));
                assert!(before.is_none(), "{name} stands in two places");
                current = (*name).to_owned();
            }
            ["#", "UNIT", name, unit] => assert!(name.ends_with(&format!("_{unit}")), "{name} in {unit}"),
            _ => {
                let (series, value) = line.rsplit_once(' ').unwrap();
                value.parse::<f64>().unwrap();
                assert!(
                    series.starts_with(&current) && series.is_ascii(),
                    "{series} stands below {current}"
                );
                let family = families.get_mut(&current).unwrap();
                assert!(!family.1.contains(&series.to_owned()), "{series} stands twice");
                family.1.push(series.to_owned());
            }
        }
    }
    assert_eq!(text.lines().last(), Some("# EOF"));
    assert_eq!(helps, families.keys().cloned().collect());
    families
}

const CALL: PolicyCall<'static> = PolicyCall {
    policy: "slurm",
    function: "step",
    result: "ok",
    wall: Duration::from_millis(12),
    cpu: Duration::from_millis(2),
    memory: 65_536,
    log_lines: 3,
    log_lines_dropped: 1,
    response_bytes: 100,
};

fn version(digest: &str, generation: u64) -> PolicyVersion<'_> {
    PolicyVersion {
        policy: "slurm",
        digest,
        version: "1.2.0",
        generation,
    }
}

fn full() -> Metrics {
    let metrics = Metrics::new();
    metrics.policy_activated(&version("aa", 1));
    metrics.policy_called(&CALL);
    metrics.policy_requested("slurm", Some(204));
    metrics.policy_requested("slurm", None);
    metrics.policy_emitted("slurm", "emitted");
    metrics.policy_asked("slurm", "owners", "answered");
    metrics.policy_asked("slurm", "owners", "unavailable");
    metrics.policy_rejected(&version("bb", 2), "compile");
    metrics
}

#[test]
fn names_begin_with_the_drivers_and_end_with_units() {
    let families = parse(&full().to_text());
    for (name, (kind, samples)) in &families {
        assert!(name.starts_with("scupper_"), "{name}");
        let of_policies = name.starts_with("scupper_policy_");
        assert!(!of_policies || !samples.is_empty(), "{name} has no sample");
        let suffixes: &[&str] = match kind.as_str() {
            "counter" => &["_total"],
            "histogram" => &["_bucket", "_sum", "_count"],
            "gauge" => &[""],
            other => panic!("{name} is a {other}"),
        };
        for sample in samples {
            let series = sample.split('{').next().unwrap();
            let suffix = series.strip_prefix(name).unwrap();
            assert!(suffixes.contains(&suffix), "{series} in a {kind}");
        }
        let timed = name.contains("duration") || name.contains("cpu");
        assert!(!timed || name.ends_with("_seconds"), "{name} has no unit");
        let sized = name.contains("memory") || name.contains("response");
        assert!(!sized || name.ends_with("_bytes"), "{name} has no unit");
    }
    let of_policies = families.keys().filter(|name| name.starts_with("scupper_policy_"));
    assert_eq!(of_policies.count(), 12);
}

#[test]
fn calls_are_counted_by_how_they_ended() {
    let metrics = full();
    metrics.policy_called(&PolicyCall {
        result: "cpu",
        memory: 1000,
        ..CALL
    });
    let text = metrics.to_text();
    for line in [
        r#"scupper_policy_calls_total{policy="slurm",function="step",result="cpu"} 1"#,
        r#"scupper_policy_peak_memory_bytes{policy="slurm"} 65536"#,
        r#"scupper_policy_log_lines_dropped_total{policy="slurm"} 2"#,
        r#"scupper_policy_http_requests_total{policy="slurm",status="2xx"} 1"#,
        r#"scupper_policy_call_duration_seconds_count{policy="slurm",function="step"} 2"#,
        r#"scupper_policy_events_total{policy="slurm",result="emitted"} 1"#,
        r#"scupper_policy_facts_total{policy="slurm",fact="owners",result="unavailable"} 1"#,
    ] {
        assert!(
            text.lines().any(|other| other == line),
            "{line} is missing in\n{text}"
        );
    }
}

#[test]
fn one_series_shows_the_active_version_and_one_the_rejected() {
    let metrics = full();
    let infos = |metrics: &Metrics| parse(&metrics.to_text()).remove("scupper_policy_info").unwrap().1;
    assert_eq!(infos(&metrics).len(), 2);
    for generation in 3..1000 {
        metrics.policy_rejected(&version(&format!("{generation:064}"), generation), "probe");
    }
    assert_eq!(infos(&metrics).len(), 2);
    metrics.policy_rolled_back(&version("aa", 1), "traps");
    metrics.policy_activated(&version("cc", 1000));
    assert_eq!(
        infos(&metrics),
        [
            r#"scupper_policy_info{policy="slurm",digest="cc",version="1.2.0",state="active",generation="1000"}"#
        ]
    );
    metrics.policy_removed("slurm");
    assert!(!metrics.to_text().contains("scupper_policy_info{"));
}

#[test]
fn whatever_policies_do_the_text_stays_as_long_as_it_is() {
    let metrics = full();
    let samples = |metrics: &Metrics| -> usize {
        let families = parse(&metrics.to_text());
        families.values().map(|(_, samples)| samples.len()).sum()
    };
    for status in (0..1200).map(Some).chain([None]) {
        metrics.policy_requested("slurm", status);
    }
    let before = samples(&metrics);
    for round in 0..1000_u64 {
        metrics.policy_called(&PolicyCall {
            memory: round,
            wall: Duration::from_millis(round),
            ..CALL
        });
        metrics.policy_requested("slurm", u16::try_from(round).ok());
        let digest = format!("{round:064}");
        metrics.policy_activated(&PolicyVersion {
            version: &"x".repeat(500),
            ..version(&digest, round)
        });
        metrics.policy_called(&CALL);
        metrics.policy_rejected(&version(&digest, round), "compile");
    }
    assert_eq!(samples(&metrics), before);
}
