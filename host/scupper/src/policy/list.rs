//! `scupper policy list`

use std::process::ExitCode;

use serde_json::Value;

use super::args::DriverArgs;
use super::driver;
use super::driver::DriverError;
use crate::exit::Exit;
use crate::output::{fail, print};
use scupper_common::text::{one_line, spaced_line};
use scupper_policy_reload::ask_list;
use scupper_report::Format;

/// Digits of a digest that people compare.
const DIGITS: usize = 8;

/// Bytes of what a kernel lacks.
const WARNING_BYTES: usize = 512;

const HEADER: [&str; 7] = [
    "NAME",
    "VERSION",
    "DIGEST",
    "STATE",
    "MODE",
    "SINCE",
    "LAST PROBLEM",
];

pub(super) async fn run(args: &DriverArgs, format: Format) -> ExitCode {
    match list(args).await {
        Ok(answer) => {
            print(&match format {
                Format::Human => {
                    let mut lines = vec![table(&answer)];
                    lines.extend(checks(&answer));
                    lines.extend(warning(&answer));
                    lines.join("\n")
                }
                Format::Json => answer.to_string(),
            });
            Exit::Done.into()
        }
        Err(error) => fail(&error, driver::exit(&error)),
    }
}

async fn list(args: &DriverArgs) -> Result<Value, DriverError> {
    let state = driver::state(args)?;
    Ok(ask_list(&state).await?)
}

fn table(answer: &Value) -> String {
    let policies = answer.get("policies").and_then(Value::as_array);
    let policies = policies.map(Vec::as_slice).unwrap_or_default();
    if policies.is_empty() {
        return "the driver has no policies".to_owned();
    }
    let mut rows = vec![HEADER.map(str::to_owned)];
    rows.extend(policies.iter().map(row));
    let mut widths = [0; HEADER.len()];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |row: &[String; HEADER.len()]| {
        let cells = row
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// What the last check of each policy found in its surroundings, one line for each finding that is not ok.
fn checks(answer: &Value) -> Vec<String> {
    let policies = answer.get("policies").and_then(Value::as_array);
    let policies = policies.map(Vec::as_slice).unwrap_or_default();
    policies.iter().flat_map(check).collect()
}

fn check(policy: &Value) -> Vec<String> {
    let text = |value: &Value, key: &str| {
        let text = value.get(key).and_then(Value::as_str);
        spaced_line(text.unwrap_or_default())
    };
    let Some(findings) = policy.pointer("/check/findings").and_then(Value::as_array) else {
        return Vec::new();
    };
    let name = text(policy, "name");
    let wrong = findings.iter().filter(|found| text(found, "severity") != "ok");
    let lines: Vec<String> = wrong
        .map(|found| {
            let fix = Some(text(found, "fix")).filter(|fix| !fix.is_empty());
            let fix = fix.map_or_else(String::new, |fix| format!("; to fix it: {fix}"));
            let (severity, subject) = (text(found, "severity"), text(found, "subject"));
            format!("{name}: {severity}: {subject}: {}{fix}", text(found, "message"))
        })
        .collect();
    if lines.is_empty() {
        return vec![format!("{name}: its check found nothing wrong")];
    }
    lines
}

/// What the node's kernel lacks.
fn warning(answer: &Value) -> Option<String> {
    let lacks = answer.get("compilerLacks").and_then(Value::as_str)?;
    Some(format!(
        "warning: the node's kernel cannot fully sandbox the policy compiler: it lacks {}",
        one_line(lacks, WARNING_BYTES)
    ))
}

fn row(policy: &Value) -> [String; HEADER.len()] {
    let text = |key: &str| {
        let text = policy.get(key).and_then(Value::as_str).unwrap_or_default();
        if text.is_empty() {
            "-".to_owned()
        } else {
            spaced_line(text)
        }
    };
    let digest = text("digest");
    let since = policy.get("since").and_then(Value::as_str);
    let since = since.and_then(|since| since.parse::<jiff::Timestamp>().ok());
    let problem = policy.pointer("/problem/reason").and_then(Value::as_str);
    [
        text("name"),
        text("version"),
        digest.get(..DIGITS).unwrap_or(&digest).to_owned(),
        text("state"),
        text("mode"),
        since.map_or_else(|| "-".to_owned(), |since| since.strftime("%FT%TZ").to_string()),
        problem.map_or_else(|| "-".to_owned(), spaced_line),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_a_table_for_people() {
        let answer = serde_json::json!({ "generation": 3, "policies": [
            { "name": "slurm", "version": "0.2.0", "digest": "abcd1234567890", "state": "Active", "mode": "active",
              "since": "2026-09-21T14:13:20.000Z", "problem": null },
            { "name": "priority-classes", "version": "", "digest": "", "state": "Rejected", "mode": "active", "since": null,
              "problem": { "reason": "it is not a policy", "at": 1 } },
            { "name": "next", "version": "0.3.0", "digest": "ef", "state": "Active", "mode": "shadow", "since": null },
        ]});
        let expected = "\
NAME              VERSION  DIGEST    STATE     MODE    SINCE                 LAST PROBLEM
slurm             0.2.0    abcd1234  Active    active  2026-09-21T14:13:20Z  -
priority-classes  -        -         Rejected  active  -                     it is not a policy
next              0.3.0    ef        Active    shadow  -                     -";
        assert_eq!(table(&answer), expected);
    }

    #[test]
    fn findings_of_checks_are_listed_below() {
        let finding = |severity: &str, fix: &str| serde_json::json!({ "severity": severity, "subject": "token", "message": "m", "fix": fix });
        let answer = serde_json::json!({ "policies": [
            { "name": "a", "check": { "at": 1, "findings": [finding("ok", ""), finding("error", "renew it")] } },
            { "name": "b", "check": { "at": 1, "findings": [finding("warning", ""), finding("ok", "")] } },
            { "name": "c", "check": { "at": 1, "findings": [finding("ok", "")] } },
            { "name": "d", "check": null },
        ]});
        let expected = [
            "a: error: token: m; to fix it: renew it",
            "b: warning: token: m",
            "c: its check found nothing wrong",
        ];
        assert_eq!(checks(&answer), expected);
    }

    #[test]
    fn missing_kernel_features_are_listed_below() {
        let lacking = serde_json::json!({ "policies": [], "compilerLacks": "Landlock (none)" });
        assert!(warning(&lacking).is_some_and(|line| line.ends_with("it lacks Landlock (none)")));
        for fine in [
            serde_json::json!({ "compilerLacks": null }),
            serde_json::json!({}),
        ] {
            assert_eq!(warning(&fine), None);
        }
    }

    #[test]
    fn without_policies_it_says_so() {
        let answer = serde_json::json!({ "generation": 0, "policies": [] });
        assert_eq!(table(&answer), "the driver has no policies");
    }
}
