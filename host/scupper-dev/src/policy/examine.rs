//! `scupper policy check` and `scupper policy inspect`

use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::args::PolicyChoiceArgs;
use super::run::usage_lines;
use crate::author::{OfflineRuntime, PolicyChoice};
use scupper::Exit;
use scupper::{fail, print};
use scupper_policy::{Description, Examined, LoadFault, MissingGrant};
use scupper_report::Format;

pub(super) async fn check(args: &PolicyChoiceArgs, format: Format) -> ExitCode {
    let examined = match examine(args).await {
        Ok(examined) => examined,
        Err(code) => return code,
    };
    let problems = problems(&examined);
    print(&match format {
        Format::Json => {
            json!({"file": args.file, "ok": problems.is_empty(), "problems": problems}).to_string()
        }
        Format::Human => verdict(&args.file, &examined, &problems),
    });
    if problems.is_empty() {
        Exit::Done
    } else {
        Exit::Config
    }
    .into()
}

pub(super) fn verdict(file: &Path, examined: &Examined, problems: &[String]) -> String {
    let file = file.display();
    if problems.is_empty() {
        let about = examined.description.as_ref().map(title).unwrap_or_default();
        return format!("{file}: a driver would load it: {about}");
    }
    let lines = problems.iter().map(|problem| format!("{file}: {problem}"));
    lines.collect::<Vec<_>>().join("\n")
}

pub(super) async fn inspect(args: &PolicyChoiceArgs, format: Format) -> ExitCode {
    let examined = match examine(args).await {
        Ok(examined) => examined,
        Err(code) => return code,
    };
    let bytes = std::fs::read(&args.file).unwrap_or_default();
    let (imports, exports) = scupper_builder::interfaces(&bytes).unwrap_or_default();
    let Some(description) = &examined.description else {
        let text = problems(&examined).join("\n");
        return fail(
            &Unloadable(format!("{}: {text}", args.file.display())),
            Exit::Config,
        );
    };
    print(&match format {
        Format::Json => as_json(description, &examined, &imports, &exports).to_string(),
        Format::Human => for_people(description, &examined, &imports, &exports),
    });
    Exit::Done.into()
}

/// A file that cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Unloadable(String);

async fn examine(args: &PolicyChoiceArgs) -> Result<Examined, ExitCode> {
    let spec = PolicyChoice::from(args)
        .spec()
        .map_err(|error| fail(&error, Exit::Config))?;
    let workbench = OfflineRuntime::new(None).map_err(|error| fail(&error, Exit::Bug))?;
    Ok(workbench.examine(&spec).await)
}

/// All problems, each with its remedy.
pub(super) fn problems(examined: &Examined) -> Vec<String> {
    let one = |fault: &LoadFault| match fault {
        LoadFault::Config(problems) => problems
            .iter()
            .map(|problem| format!("its configuration: {problem}"))
            .collect(),
        LoadFault::Flawed(flaws) => flaws
            .iter()
            .map(|flaw| format!("it returns invalid values: {flaw}"))
            .collect(),
        LoadFault::NotGranted(missing) => MissingGrant::yaml(missing)
            .iter()
            .map(|line| {
                format!(
                    "it wants a grant that it does not have; add under its `grants` in scupper.yaml: {line}"
                )
            })
            .collect(),
        other => vec![scupper_driver::chain(other)],
    };
    examined.faults.iter().flat_map(one).collect()
}

fn title(description: &Description) -> String {
    let Description {
        title,
        version,
        summary,
        ..
    } = description;
    format!("{title} {version}: {summary}")
}

pub(super) fn for_people(
    description: &Description,
    examined: &Examined,
    imports: &[String],
    exports: &[String],
) -> String {
    let list = |names: &[String]| {
        if names.is_empty() {
            "nothing".to_owned()
        } else {
            names.join(", ")
        }
    };
    let phases: Vec<String> = description.phases.iter().map(ToString::to_string).collect();
    let does = match (description.planner, phases.is_empty()) {
        (true, true) => "plans".to_owned(),
        (true, false) => format!("plans; hooks {}", phases.join(", ")),
        (false, _) => format!("hooks {}", phases.join(", ")),
    };
    let mut lines = vec![
        title(description),
        format!("  does     {does}"),
        format!("  state    version {}", description.state_version),
        format!("  size     {} bytes", examined.bytes),
        format!("  sha256   {}", description.digest),
        format!("  imports  {}", list(imports)),
        format!("  exports  {}", list(exports)),
    ];
    let wants = grant_lines(description);
    if wants.is_empty() {
        lines.push("wants no grants".to_owned());
    } else {
        lines.push("wants, as scupper.yaml grants it:".to_owned());
        lines.push("  grants:".to_owned());
        lines.extend(wants.iter().map(|line| format!("    {line}")));
    }
    if description.config_schema.is_empty() {
        lines.push("has no configuration".to_owned());
    } else {
        lines.push("configuration, as a JSON schema:".to_owned());
        lines.extend(description.config_schema.lines().map(|line| format!("  {line}")));
    }
    lines.extend(examined.usage.as_ref().map(usage_lines).unwrap_or_default());
    lines.join("\n")
}

/// The lines to write under `grants`.
fn grant_lines(description: &Description) -> Vec<String> {
    let wants = description.grants.iter().map(|grant| MissingGrant {
        policy: description.name.clone(),
        grant: grant.clone(),
        spec_source: scupper_policy_spec::SpecSource::File,
    });
    MissingGrant::yaml(&wants.collect::<Vec<_>>())
}

fn as_json(description: &Description, examined: &Examined, imports: &[String], exports: &[String]) -> Value {
    let limits = examined.usage.as_ref().map(|usage| {
        let measures = usage.measures().into_iter();
        let measures = measures
            .map(|measure| json!({"what": measure.what, "most": measure.most, "limit": measure.limit}));
        measures.collect::<Vec<_>>()
    });
    let schema: Option<Value> = serde_json::from_str(&description.config_schema).ok();
    json!({
        "name": description.title,
        "version": description.version,
        "summary": description.summary,
        "stateVersion": description.state_version,
        "sha256": description.digest,
        "bytes": examined.bytes,
        "planner": description.planner,
        "phases": description.phases.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "wants": description.grants.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "imports": imports,
        "exports": exports,
        "configSchema": schema,
        "limits": limits,
        "problems": problems(examined),
    })
}
