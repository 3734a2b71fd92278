//! `scupper policy run` and `scupper policy bench`: a policy on a snapshot, without a cluster.

use std::process::ExitCode;

use scupper_engine::{HookPhase, HumanDuration, Settings, StepOutcome, whole_millis};
use serde_json::json;

use super::args::{BenchArgs, PolicyChoiceArgs, RunArgs};
use crate::author::{DryRun, Figures, OfflineRuntime, PolicyChoice, PolicyLoadError, Snapshot, Stepped};
use scupper::{Exit, fail, inform, plan_for_people, print};
use scupper_policy::{Compilation, LoadFault, PolicyUsage};
use scupper_policy_spec::PolicySpec;
use scupper_report::{Format, PodList};

pub(super) async fn run(args: &RunArgs, format: Format) -> ExitCode {
    let snapshot = match Snapshot::read(&args.on, args.node.as_deref()) {
        Ok(snapshot) => snapshot,
        Err(error) => return fail(&error, Exit::Config),
    };
    let node = snapshot.node.name.clone();
    let mut rehearsal = match begin(args, snapshot).await {
        Ok(rehearsal) => rehearsal,
        Err(code) => return code,
    };
    if let Some(phase) = args.phase {
        let subject = match rehearsal.subject(phase, args.of.as_deref()).await {
            Ok(subject) => subject,
            Err(error) => return fail(&error, Exit::Config),
        };
        let steps = rehearsal.steps(phase, &subject, args.steps).await;
        print(&steps_for_people(phase, &steps, format));
        let failed = steps
            .last()
            .is_some_and(|step| matches!(step.outcome, StepOutcome::Failed { .. }));
        return if failed { Exit::Policy } else { Exit::Done }.into();
    }
    if args.drain {
        let (story, outcome) = rehearsal.drain().await;
        print(&match format {
            Format::Human => story.join("\n"),
            Format::Json => {
                json!({"story": story, "outcome": outcome.map(scupper_engine::Outcome::name)}).to_string()
            }
        });
        return outcome.map_or(Exit::Deadline, Exit::of).into();
    }
    let planned = rehearsal.plan().await;
    print(&match format {
        Format::Human => plan_for_people(&planned, PodList::Each),
        Format::Json => scupper_report::planned_to_json(&node, &planned.pods, &planned.result).to_string(),
    });
    planned
        .result
        .as_ref()
        .map_or_else(Exit::of, |_| Exit::Done)
        .into()
}

pub(super) async fn bench(args: &BenchArgs, format: Format) -> ExitCode {
    let (workbench, spec) = match workbench(&args.policy) {
        Ok(ready) => ready,
        Err(code) => return code,
    };
    let snapshot = Snapshot::of_pods(args.pods);
    let mut rehearsal = match DryRun::begin(&workbench, spec.clone(), snapshot, Settings::default()).await {
        Ok(rehearsal) => rehearsal,
        Err(error) => return not_loaded(&error),
    };
    let compiled = match workbench.compile(&spec).await {
        Ok(compiled) => compiled,
        Err(error) => return fail(&error, Exit::Config),
    };
    let _planned = rehearsal.plan().await;
    let figures = rehearsal.bench(usize::try_from(args.rounds).unwrap_or(1)).await;
    let usage = rehearsal.usage();
    print(&match format {
        Format::Human => figures_for_people(&compiled, args.pods, &figures, usage.as_ref()),
        Format::Json => figures_as_json(&compiled, args.pods, &figures, usage.as_ref()).to_string(),
    });
    Exit::Done.into()
}

fn workbench(args: &PolicyChoiceArgs) -> Result<(OfflineRuntime, PolicySpec), ExitCode> {
    let spec = PolicyChoice::from(args)
        .spec()
        .map_err(|error| fail(&error, Exit::Config))?;
    let workbench = OfflineRuntime::new(None).map_err(|error| fail(&error, Exit::Bug))?;
    Ok((workbench, spec))
}

async fn begin(args: &RunArgs, snapshot: Snapshot) -> Result<DryRun, ExitCode> {
    let (workbench, spec) = workbench(&args.policy)?;
    let mut settings = Settings::default();
    settings.filters.force |= args.force;
    DryRun::begin(&workbench, spec, snapshot, settings)
        .await
        .map_err(|error| not_loaded(&error))
}

/// The policy rejects its configuration: here it comes from the command line.
pub(super) fn not_loaded(error: &PolicyLoadError) -> ExitCode {
    let code = fail(error, Exit::Config);
    if let PolicyLoadError::Load(error) = error
        && let LoadFault::Config(problems) = error.fault.as_ref()
    {
        let key = problems
            .iter()
            .map(|problem| problem.key.as_str())
            .find(|key| !key.is_empty());
        inform(&format!("set it with --set {}=VALUE", key.unwrap_or("KEY")));
    }
    code
}

fn steps_for_people(phase: HookPhase, steps: &[Stepped], format: Format) -> String {
    let lines = steps.iter().flat_map(|step| match format {
        Format::Json => vec![step_as_json(phase, step).to_string()],
        Format::Human => step_lines(phase, step),
    });
    lines.collect::<Vec<_>>().join("\n")
}

pub(super) fn step_lines(phase: HookPhase, Stepped { at, outcome }: &Stepped) -> Vec<String> {
    let line = |text: String| format!("{:>8}  {phase}  {text}", HumanDuration(*at).to_string());
    match outcome {
        StepOutcome::Done => vec![line("done".to_owned())],
        StepOutcome::Failed { message, retry_after } => {
            let again = retry_after.map_or_else(
                || "not retried".to_owned(),
                |span| format!("again after {}", HumanDuration(span)),
            );
            vec![line(format!("failed, {again}: {message}"))]
        }
        StepOutcome::Pending {
            again_after,
            progress,
            waiting_for,
            ..
        } => {
            let mut lines = vec![line(format!(
                "pending, again after {}: {progress}",
                HumanDuration(*again_after)
            ))];
            lines.extend(
                waiting_for
                    .iter()
                    .map(|item| format!("            waits for {}: {}", item.what, item.detail)),
            );
            lines
        }
    }
}

fn step_as_json(phase: HookPhase, Stepped { at, outcome }: &Stepped) -> serde_json::Value {
    let (at, phase) = (whole_millis(*at), phase.to_string());
    match outcome {
        StepOutcome::Done => json!({"atMs": at, "phase": phase, "outcome": "done"}),
        StepOutcome::Failed { message, retry_after } => json!({
            "atMs": at, "phase": phase, "outcome": "failed", "message": message,
            "retryAfterMs": retry_after.map(whole_millis),
        }),
        StepOutcome::Pending {
            again_after,
            progress,
            waiting_for,
            ..
        } => {
            let waiting: Vec<_> = waiting_for
                .iter()
                .map(|item| json!({"what": item.what, "detail": item.detail}))
                .collect();
            json!({
                "atMs": at, "phase": phase, "outcome": "pending", "progress": progress,
                "againAfterMs": whole_millis(*again_after), "waitingFor": waiting,
            })
        }
    }
}

pub(super) fn figures_for_people(
    compiled: &Compilation,
    pods: usize,
    figures: &[Figures],
    usage: Option<&PolicyUsage>,
) -> String {
    let Compilation { bytes, native, took } = compiled;
    let mut lines = vec![
        format!("compiled {bytes} bytes to {native} bytes of native code in {took:.2?}"),
        format!("on a node with {pods} pods"),
    ];
    lines.extend(figures.iter().map(|figure| {
        let phase = figure.phase.map_or_else(String::new, |phase| format!(" {phase}"));
        format!(
            "  {:<20} median {:.2?}, worst {:.2?}, of {} calls",
            format!("{}{phase}", figure.function),
            figure.median,
            figure.worst,
            figure.calls
        )
    }));
    lines.extend(usage.map(usage_lines).unwrap_or_default());
    lines.join("\n")
}

/// The peak usage of one call, beside the limit.
pub(super) fn usage_lines(usage: &PolicyUsage) -> Vec<String> {
    let line = |measure: scupper_policy::Measure| {
        let limit = if measure.limit.is_empty() {
            String::new()
        } else {
            format!(" of {}", measure.limit)
        };
        format!("  {:<22} {}{limit}", measure.what, measure.most)
    };
    let mut lines = vec!["peak usage of one call, and its limit".to_owned()];
    lines.extend(usage.measures().into_iter().map(line));
    lines
}

fn figures_as_json(
    compiled: &Compilation,
    pods: usize,
    figures: &[Figures],
    usage: Option<&PolicyUsage>,
) -> serde_json::Value {
    let micros = |time: std::time::Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let figures: Vec<_> = figures
        .iter()
        .map(|figure| {
            json!({
                "function": figure.function, "phase": figure.phase.map(|phase| phase.to_string()),
                "calls": figure.calls,
                "medianUs": micros(figure.median), "worstUs": micros(figure.worst),
            })
        })
        .collect();
    let most = usage.map(|usage| {
        json!({"cpuUs": micros(usage.most.cpu), "memoryBytes": usage.most.memory, "calls": usage.calls})
    });
    let compiled = json!({
        "bytes": compiled.bytes, "nativeBytes": compiled.native, "tookUs": micros(compiled.took),
    });
    json!({"compiled": compiled, "pods": pods, "figures": figures, "most": most})
}
