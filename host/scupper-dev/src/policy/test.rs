//! `scupper policy test`

use std::process::ExitCode;
use std::time::Duration;

use scupper_engine::HumanDuration;
use serde_json::json;

use super::args::TestArgs;
use crate::author::{self, Case, Difference, OfflineRuntime, ScenarioError, ScenarioResult};
use scupper::Exit;
use scupper::{fail, print};
use scupper_report::Format;

/// The number of lines of a failed drain to print by default.
const STORY_LINES: usize = 15;

pub(super) async fn run(args: &TestArgs, format: Format) -> ExitCode {
    let cases = match author::cases(&args.paths, args.policy.as_deref()) {
        Ok(cases) => cases,
        Err(error) => return fail(&error, Exit::Config),
    };
    let workbench = match OfflineRuntime::new(None) {
        Ok(workbench) => workbench,
        Err(error) => return fail(&error, Exit::Bug),
    };
    let mut exit = Exit::Done;
    let mut good = 0;
    for case in &cases {
        let played = author::run_scenario(&workbench, &case.file, &case.policy, &case.module).await;
        exit = match &played {
            Ok(played) if played.differences.is_empty() => {
                good += 1;
                exit
            }
            Ok(_) if exit == Exit::Done => Exit::Policy,
            Ok(_) => exit,
            Err(_) => Exit::Config,
        };
        print(&match format {
            Format::Human => result_text(case, &played, args.story),
            Format::Json => object(case, &played).to_string(),
        });
    }
    if format == Format::Human {
        let bad = cases.len() - good;
        let scenarios = if cases.len() == 1 { "scenario" } else { "scenarios" };
        print(&format!("{} {scenarios}: {good} ok, {bad} failed", cases.len()));
    }
    exit.into()
}

pub(super) fn result_text(
    case: &Case,
    played: &Result<ScenarioResult, ScenarioError>,
    whole: bool,
) -> String {
    let file = case.file.display();
    match played {
        Err(error) => format!("FAILED  {file}\n{}", indented(&scupper_driver::chain(error))),
        Ok(played) => {
            let good = played.differences.is_empty();
            let mut lines = vec![match good {
                true => format!("ok      {file}  {} ({})", played.about, span(played.took_ms)),
                false => format!("FAILED  {file}  {}", played.about),
            }];
            let differences = played.differences.iter();
            lines.extend(differences.flat_map(|difference| reported(case, difference)));
            if whole || !good {
                let skipped = if whole {
                    0
                } else {
                    played.story.len().saturating_sub(STORY_LINES)
                };
                lines.push("  the drain:".to_owned());
                lines.extend(played.story.iter().skip(skipped).map(|line| format!("  {line}")));
            }
            lines.join("\n")
        }
    }
}

/// The difference, in the form of a diff.
fn reported(case: &Case, difference: &Difference) -> Vec<String> {
    let Difference {
        line,
        what,
        expected,
        actual,
    } = difference;
    let mut lines = vec![format!("  {}:{line}: {what}", case.file.display())];
    lines.extend(expected.lines().map(|line| format!("    - {line}")));
    lines.extend(actual.lines().map(|line| format!("    + {line}")));
    lines
}

fn object(case: &Case, played: &Result<ScenarioResult, ScenarioError>) -> serde_json::Value {
    match played {
        Err(error) => json!({"file": case.file, "ok": false, "error": scupper_driver::chain(error)}),
        Ok(played) => {
            let difference = |difference: &Difference| {
                json!({
                    "line": difference.line, "what": difference.what,
                    "expected": difference.expected, "actual": difference.actual,
                })
            };
            json!({
                "file": case.file, "about": played.about, "ok": played.differences.is_empty(),
                "differences": played.differences.iter().map(difference).collect::<Vec<_>>(),
                "tookMs": played.took_ms,
            })
        }
    }
}

fn indented(text: &str) -> String {
    text.lines()
        .map(|line| format!("  {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}

fn span(millis: u64) -> String {
    HumanDuration(Duration::from_millis(millis)).to_string()
}
