//! `scupper config check`

use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::args::CheckArgs;
use crate::exit::Exit;
use crate::output::{driver_failed, fail, inform, print};
use scupper_config::{ConfigError, Configuration, out_of_reach_text};
use scupper_driver::{PoliciesOptions, PolicyCheckResult};
use scupper_policy::{LoadError, LoadFault, MissingGrant};
use scupper_policy_spec::PolicyMode;
use scupper_report::Format;

pub(super) async fn run(args: &CheckArgs, format: Format) -> ExitCode {
    let read = scupper_config::read(&args.file).map(Configuration::in_reach);
    let policies = match &read {
        Ok(configuration) => configuration.policies.clone(),
        Err(ConfigError::Wrong { readable, .. }) => readable.clone(),
        Err(_) => Vec::new(),
    };
    let mut trials = Vec::new();
    if args.policies && !policies.is_empty() {
        let absent = policies.iter();
        absent
            .filter_map(|policy| out_of_reach_text(policy, &args.file))
            .for_each(|text| inform(&text));
        let options = PoliciesOptions {
            policies,
            cache: args.policy_cache.clone(),
            ..PoliciesOptions::default()
        };
        trials = match scupper_driver::check_policies(&options).await {
            Ok(trials) => trials,
            Err(error) => {
                let code = driver_failed(&error);
                return read.map_or_else(|wrong_file| wrong(&args.file, &wrong_file, &[], format), |_| code);
            }
        };
    }
    let configuration = match read {
        Ok(configuration) => configuration,
        Err(error) => return wrong(&args.file, &error, &trials, format),
    };
    let good = trials.iter().all(|trial| trial.result.is_ok());
    match format {
        Format::Json => print(&to_json(&configuration, &trials).to_string()),
        Format::Human => {
            if good {
                print(&summary(&configuration, args.policies));
            }
            trials.iter().for_each(report);
        }
    }
    if good { Exit::Done } else { Exit::Config }.into()
}

/// What is wrong with the file, and with its policies as far as they can be read.
fn wrong(file: &Path, error: &ConfigError, trials: &[PolicyCheckResult], format: Format) -> ExitCode {
    let (Format::Json, ConfigError::Wrong { problems, .. }) = (format, error) else {
        let code = fail(error, Exit::Config);
        trials
            .iter()
            .filter(|trial| trial.result.is_err())
            .for_each(report);
        return code;
    };
    let problem = |problem: &scupper_config::Problem| {
        json!({
            "line": problem.line,
            "column": problem.column,
            "field": problem.field,
            "message": problem.message,
        })
    };
    let problems: Vec<_> = problems.iter().map(problem).collect();
    let mut reported = json!({ "file": file, "problems": problems });
    add_loaded(&mut reported, trials);
    print(&reported.to_string());
    Exit::Config.into()
}

fn summary(configuration: &Configuration, are_loaded: bool) -> String {
    let names: Vec<_> = configuration
        .policies
        .iter()
        .map(|policy| match &policy.mode {
            PolicyMode::Active => policy.name.clone(),
            PolicyMode::Shadow { instead_of: None } => format!("{} (shadow)", policy.name),
            PolicyMode::Shadow {
                instead_of: Some(replaced),
            } => format!("{} (shadow instead of {replaced})", policy.name),
        })
        .collect();
    let file = configuration.file.display();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let unloaded = |them: &str, their: &str| match are_loaded {
        true => String::new(),
        false => format!(" (to load {them} and check {their} settings: --policies)"),
    };
    match names.as_slice() {
        [] => format!("{file} is right: no policies"),
        [name] => format!("{file} is right: the policy {name}{}", unloaded("it", "its")),
        names => format!(
            "{file} is right: {} policies, {}{}",
            names.len(),
            names.join(", "),
            unloaded("them", "their")
        ),
    }
}

/// What became of one policy; for grants that are missing, the lines to add.
fn report(trial: &PolicyCheckResult) {
    match &trial.result {
        Ok(description) => print(&format!(
            "  {} loads: {} {}, sha256 {}",
            trial.name, description.title, description.version, description.digest
        )),
        Err(error) => {
            // Its exit code is given at the end, for all of them.
            let _code = fail(error, Exit::Config);
            if let Some(lines) = lines_to_add(error) {
                print(&lines);
            }
        }
    }
}

fn lines_to_add(error: &LoadError) -> Option<String> {
    let LoadFault::NotGranted(missing) = &*error.fault else {
        return None;
    };
    let mut lines = vec![
        format!("  - name: {}   # add to what is there", error.policy),
        "    grants:".to_owned(),
    ];
    lines.extend(
        MissingGrant::yaml(missing)
            .iter()
            .map(|line| format!("      {line}")),
    );
    Some(lines.join("\n"))
}

fn to_json(configuration: &Configuration, trials: &[PolicyCheckResult]) -> Value {
    let names: Vec<_> = configuration
        .policies
        .iter()
        .map(|policy| policy.name.as_str())
        .collect();
    let shadows = configuration.policies.iter();
    let shadows = shadows.filter(|policy| policy.mode.is_shadow());
    let shadows: Vec<_> = shadows.map(|policy| policy.name.as_str()).collect();
    let mut reported = json!({
        "file": configuration.file,
        "sha256": configuration.digest,
        "problems": [],
        "policies": names,
        "shadows": shadows,
    });
    add_loaded(&mut reported, trials);
    reported
}

fn add_loaded(reported: &mut Value, trials: &[PolicyCheckResult]) {
    let policy = |trial: &PolicyCheckResult| match &trial.result {
        Ok(description) => json!({ "name": trial.name, "sha256": description.digest }),
        Err(error) => {
            let missing = match &*error.fault {
                LoadFault::NotGranted(missing) => MissingGrant::yaml(missing),
                _ => Vec::new(),
            };
            json!({ "name": trial.name, "error": scupper_driver::chain(error), "missing-grants": missing })
        }
    };
    if let Some(reported) = reported.as_object_mut().filter(|_| !trials.is_empty()) {
        reported.insert("loaded".to_owned(), trials.iter().map(policy).collect());
    }
}
