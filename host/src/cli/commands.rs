//! The commands: options in, words and an exit code out.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::Parser;
use scupper_engine::{Blocker, Outcome, Plan, PodRef, Uid, Verdict};
use tracing_subscriber::EnvFilter;

use super::args::{Args, CleanupArgs, Command, Output, PlanArgs, PluginArgs};
use super::exit::Exit;
use super::options::{self, OptionsError};
use crate::app::{self, AppError, CleanupOptions, PlanOptions, Planned, Plugin};
use crate::clock::Clock;
use crate::report::Format;

/// Runs what the command line asks for.
pub fn main() -> ExitCode {
    let args = Args::parse();
    if let Command::CompilePolicy { wasi } = args.command {
        // A child with nothing but its task: no log, no runtime, no threads but its own.
        return crate::policy::compile_child(wasi);
    }
    // These tell their story themselves.
    let tells = matches!(&args.command, Command::Demo(_))
        || matches!(&args.command, Command::Policy(command) if command.is_quiet());
    let quiet = tells && args.log == super::args::DEFAULT_LOG;
    log_to_stderr(if quiet { "warn" } else { &args.log });
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error, Exit::Bug),
    };
    runtime.block_on(run(args))
}

async fn run(args: Args) -> ExitCode {
    let format = match args.output {
        Output::Human => Format::Human,
        Output::Json => Format::Json,
    };
    match args.command {
        Command::KubeletPlugin(plugin) => kubelet_plugin(&plugin, format).await,
        Command::Plan(plan) => show_plan(&plan, format).await,
        Command::Cleanup(cleanup) => clean_up(&cleanup, format).await,
        Command::Doctor(doctor) => super::doctor::run(&doctor, format).await,
        Command::Config(command) => super::config::run(&command, format).await,
        Command::Policy(command) => super::policy::run(&command, format).await,
        Command::Demo(demo) => super::demo::run(&demo, format).await,
        Command::CompilePolicy { .. } => Exit::Bug.into(),
    }
}

fn log_to_stderr(filter: &str) {
    let (filter, problem) = match EnvFilter::try_new(filter) {
        Ok(filter) => (filter, None),
        Err(error) => (EnvFilter::new(super::args::DEFAULT_LOG), Some(error)),
    };
    let terminal = std::io::stderr().is_terminal();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(terminal)
        .init();
    if let Some(error) = problem {
        tracing::warn!(%error, "--log: the filter makes no sense; using warn,scupper=info");
    }
}

async fn kubelet_plugin(args: &PluginArgs, format: Format) -> ExitCode {
    let mut options = match options::plugin(args) {
        Ok(options) => options,
        Err(error) => return wrong_options(&error),
    };
    options.format = format;
    let plugin = match Plugin::start(options).await {
        Ok(plugin) => plugin,
        Err(error) => return failed(&error),
    };
    match plugin.run_until(stop_signal()).await {
        Ok(()) => Exit::Done.into(),
        Err(error) => failed(&error),
    }
}

async fn stop_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let terminate = async {
        match signal(SignalKind::terminate()) {
            Ok(mut terminate) => terminate.recv().await,
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = terminate => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}

async fn show_plan(args: &PlanArgs, format: Format) -> ExitCode {
    let (settings, policies, eviction_timeout) = match options::planning(&args.drain, &args.policies) {
        Ok(options) => options,
        Err(error) => return wrong_options(&error),
    };
    let options = PlanOptions {
        kubeconfig: args.cluster.kubeconfig.clone(),
        node: args.node.clone(),
        settings,
        policies,
        eviction_timeout,
        clock: Clock::System,
        compiler: None,
    };
    match app::plan(options).await {
        Ok(planned) => {
            let text = match format {
                Format::Human => plan_for_people(&args.node, &planned),
                Format::Json => {
                    crate::report::planned_to_json(&args.node, &planned.pods, &planned.result).to_string()
                }
            };
            print(&text);
            planned
                .result
                .as_ref()
                .map_or_else(Exit::of, |_| Exit::Done)
                .into()
        }
        Err(error) => failed(&error),
    }
}

pub(super) fn plan_for_people(node: &str, planned: &Planned) -> String {
    let names: BTreeMap<&Uid, &PodRef> = planned.pods.iter().map(|pod| (&pod.id.uid, &pod.id)).collect();
    match &planned.result {
        Ok(plan) => {
            let mut lines = vec![format!(
                "A drain of node {node} would go like this; nothing was changed."
            )];
            lines.extend(plan_lines(plan, &names));
            lines.join("\n")
        }
        Err(Outcome::Blocked { pods }) => {
            let mut lines = vec![format!(
                "A drain of node {node} would be refused; nothing was changed."
            )];
            lines.extend(pods.iter().map(|Blocker { pod, reason, policy }| {
                format!("  may not leave  {pod}  {reason} [{policy}]")
            }));
            lines.join("\n")
        }
        Err(outcome) => {
            format!("A drain of node {node} would end at once; nothing was changed.\n  {outcome}")
        }
    }
}

fn plan_lines(plan: &Plan, names: &BTreeMap<&Uid, &PodRef>) -> Vec<String> {
    let name = |uid: &Uid| {
        names
            .get(uid)
            .map_or_else(|| uid.to_string(), |pod| pod.to_string())
    };
    let mut lines = Vec::new();
    for (number, wave) in plan.waves.iter().enumerate() {
        let mut terms = Vec::new();
        terms.extend(wave.max_parallel.map(|n| format!("{n} at a time")));
        terms.extend(
            wave.max_grace_seconds
                .map(|seconds| format!("grace at most {seconds}s")),
        );
        terms.extend(
            wave.timeout
                .map(|timeout| format!("the next wave after {timeout} at the latest")),
        );
        let terms = if terms.is_empty() {
            String::new()
        } else {
            format!(" ({})", terms.join(", "))
        };
        lines.push(format!(
            "wave {}: {}{terms} [{}]",
            number + 1,
            wave.name,
            wave.policy
        ));
        for uid in &wave.pods {
            let decision = plan.decision(uid);
            let verdict = decision.map_or_else(String::new, |decision| decision.verdict.to_string());
            let why = decision.map_or_else(String::new, |decision| {
                format!("{} [{}]", decision.reason, decision.policy)
            });
            lines.push(format!("  {verdict:<16} {}  {why}", name(uid)));
        }
    }
    for decision in plan
        .decisions
        .iter()
        .filter(|decision| !decision.verdict.leaves())
    {
        let verdict = if decision.verdict == Verdict::Keep {
            "stays"
        } else {
            "may not leave"
        };
        lines.push(format!(
            "  {verdict:<16} {}  {} [{}]",
            name(&decision.pod),
            decision.reason,
            decision.policy
        ));
    }
    lines
}

async fn clean_up(args: &CleanupArgs, format: Format) -> ExitCode {
    let options = CleanupOptions {
        kubeconfig: args.cluster.kubeconfig.clone(),
        node: args.node_name.clone(),
        driver: args.driver_name.clone(),
    };
    match app::cleanup(options).await {
        Ok(removed) => {
            let text = match format {
                Format::Json => serde_json::json!({ "removed": removed }).to_string(),
                Format::Human if removed.is_empty() => {
                    format!("nothing of ours is left on {}", args.node_name)
                }
                Format::Human => removed
                    .iter()
                    .map(|what| format!("removed {what}"))
                    .collect::<Vec<_>>()
                    .join("\n"),
            };
            print(&text);
            Exit::Done.into()
        }
        Err(error) => failed(&error),
    }
}

/// Which exit code an error is worth.
const fn exit_of(error: &AppError) -> Exit {
    match error {
        AppError::Connect(_)
        | AppError::Node { .. }
        | AppError::Discovery(_)
        | AppError::Rights(_)
        | AppError::LifecycleNotServed
        | AppError::Cleanup(_)
        | AppError::NoPlan { .. } => Exit::Cluster,
        AppError::Cache { .. }
        | AppError::Policies(_)
        | AppError::Reload(_)
        | AppError::Slm(_)
        | AppError::Metrics(_) => Exit::Config,
        AppError::Runtime(_) => Exit::Bug,
    }
}

pub(super) fn failed(error: &AppError) -> ExitCode {
    fail(error, exit_of(error))
}

fn wrong_options(error: &OptionsError) -> ExitCode {
    fail(error, Exit::Config)
}

/// One error with all its causes: `error: could not load the policies: policy slurm: …`.
pub(super) fn fail(error: &dyn Error, exit: Exit) -> ExitCode {
    let text = chain(error);
    let mut stderr = std::io::stderr().lock();
    for line in text.lines() {
        writeln!(stderr, "error: {line}").unwrap_or_default();
    }
    exit.into()
}

/// An error and its causes.
pub(super) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Some libraries repeat their cause in their own text.
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// A reader that has gone away, as `head` does, is no error.
pub(super) fn print(text: &str) {
    writeln!(std::io::stdout().lock(), "{text}").unwrap_or_default();
}
