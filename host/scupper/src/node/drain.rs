//! `scupper drain` and `scupper uncordon`: the driver is asked where there is one, or it is done from here.

use std::process::ExitCode;
use std::sync::Arc;

use scupper_engine::Intent;

use super::args::{DrainNodesArgs, DryRun, HandOverArgs, UncordonArgs};
use super::handover;
use super::options::{self, Draining};
use super::plan;
use super::plan_options::{PlannedBy, plan_options};
use super::shown::Shown;
use crate::Exit;
use crate::args::ClusterArgs;
use crate::options::{OptionsError, traces_from_env};
use crate::output::Output;
use crate::output::{
    complain, driver_failed, exit_of_driver, inform, inform_of_no_node, print, wrong_options,
};
use crate::signals::Signals;
use scupper_common::clock::Clock;
use scupper_config::GivenSettings;
use scupper_driver::{LocalOptions, NodeDrainResult, NodeSelection, OccupancyOverrides};
use scupper_recording::RecordingTarget;
use scupper_report::Format;
use scupper_screen::Screen;
use scupper_traces::TraceSettings;
use scupper_use_cases::{HandOverOptions, PlanTarget};

/// Drains nodes.
pub(crate) async fn drain(args: &DrainNodesArgs, output: Output, screen: &Arc<Screen>) -> ExitCode {
    let draining = options::draining(&args.drain, &args.policies, GivenSettings::of_kubectl());
    let options = options::nodes(&args.nodes).and_then(|nodes| Ok((nodes, draining?)));
    let (nodes, draining) = match options {
        Ok(options) => options,
        Err(error) => return wrong_options(&error),
    };
    let answers = match args.dry_run {
        DryRun::None => None,
        DryRun::Client => Some(false),
        DryRun::Server => Some(true),
    };
    let is_local = args.hand_over.local || args.take_over || draining.settings.engine.machine_is_off;
    if let Some(ask_server) = answers {
        let by = match &args.hand_over.driver_name {
            _ if is_local || args.recorded.is_flag() => PlannedBy::Local,
            driver => PlannedBy::Command { driver },
        };
        let target = PlanTarget::Nodes(nodes);
        let options = plan_options(target, draining, by, &args.policies, &args.cluster);
        return plan::dry_run(options, ask_server, output).await;
    }
    let recordings = match args.recorded.target(&nodes) {
        Ok(target) => target,
        Err(error) => return wrong_options(&error),
    };
    let job = NodesJob {
        intent: Intent::Drain,
        flags: Some(draining.flags.to_request()),
        own_flag: handover::own_flag(&draining.flags, &args.policies, args.recorded.is_flag()),
        nodes,
        cluster: &args.cluster,
        hand_over: &args.hand_over,
        is_local,
        leaves_policies_out: args.hand_over.local && !args.take_over && !args.policies.loads_any(),
        draining,
        parallel: usize::from(args.parallel.get()),
        cordon_first: args.cordon_first,
        take_over: args.take_over,
        any_cordon: false,
        recordings,
    };
    let format = output.format();
    job.run(format, &Shown::new(args.shown, format, screen)).await
}

/// Gives nodes back.
pub(crate) async fn uncordon(args: &UncordonArgs, format: Format, screen: &Arc<Screen>) -> ExitCode {
    let draining = options::uncordoning(&args.policies);
    let options = options::nodes(&args.nodes).and_then(|nodes| Ok((nodes, draining?)));
    let (nodes, draining) = match options {
        Ok(options) => options,
        Err(error) => return wrong_options(&error),
    };
    let recordings = match args.recorded.target(&nodes) {
        Ok(target) => target,
        Err(error) => return wrong_options(&error),
    };
    let job = NodesJob {
        intent: Intent::Uncordon,
        flags: None,
        own_flag: handover::own_flag(&draining.flags, &args.policies, args.recorded.is_flag()),
        nodes,
        draining,
        cluster: &args.cluster,
        hand_over: &args.hand_over,
        is_local: args.hand_over.local || args.take_over || args.force,
        leaves_policies_out: (args.hand_over.local || args.force)
            && !args.take_over
            && !args.policies.loads_any(),
        parallel: 1,
        cordon_first: false,
        take_over: args.take_over,
        any_cordon: args.force,
        recordings,
    };
    job.run(format, &Shown::new(args.shown, format, screen)).await
}

/// What the drivers of some nodes, or this process, shall do.
struct NodesJob<'a> {
    intent: Intent,
    nodes: NodeSelection,
    draining: Draining,
    /// Flags for the driver, as a request carries them.
    flags: Option<String>,
    /// A flag that only this process obeys.
    own_flag: Option<String>,
    cluster: &'a ClusterArgs,
    hand_over: &'a HandOverArgs,
    /// No driver is asked.
    is_local: bool,
    /// It is done without the policies that a driver may have.
    leaves_policies_out: bool,
    parallel: usize,
    cordon_first: bool,
    take_over: bool,
    any_cordon: bool,
    recordings: RecordingTarget,
}

impl NodesJob<'_> {
    async fn run(self, format: Format, shown: &Shown) -> ExitCode {
        let signals = Signals::new();
        match self.try_run(&signals, format, shown).await {
            Ok(code) => code,
            Err(error) => wrong_options(&error),
        }
    }

    async fn try_run(
        self,
        signals: &Signals,
        format: Format,
        shown: &Shown,
    ) -> Result<ExitCode, OptionsError> {
        let (connection, nodes) = (self.cluster.connection(), self.nodes.clone());
        let leases = self.hand_over.lease_namespace.clone();
        let is_uncordon = self.intent == Intent::Uncordon;
        let allowed = OccupancyOverrides {
            take_over: self.take_over,
            any_cordon: self.any_cordon,
            ..OccupancyOverrides::default()
        };
        let code = self.act(signals, format, shown).await?;
        // One that was refused or has failed leaves a node that is still out of service.
        if !is_uncordon || code != ExitCode::from(Exit::Done) {
            return Ok(code);
        }
        match scupper_driver::back_in_service(connection, &nodes, allowed, &leases).await {
            Ok(nodes) => nodes.iter().for_each(|node| say_back_in_service(format, node)),
            Err(error) => return Ok(driver_failed(&error)),
        }
        Ok(code)
    }

    async fn act(self, signals: &Signals, format: Format, shown: &Shown) -> Result<ExitCode, OptionsError> {
        if !self.is_local {
            let options = HandOverOptions {
                flags: self.flags.clone(),
                timeout: self.draining.settings.time_limit,
                own_flag: self.own_flag.clone(),
                parallel: self.parallel,
                cordon_first: self.cordon_first,
                page_size: self.draining.settings.page_size,
                board: shown.board.clone(),
                ..handover::options_of(self.hand_over, &self.nodes, self.cluster, self.intent)?
            };
            if let Some(code) = handover::hand_over(&options, signals, format, shown).await {
                return Ok(code);
            }
        }
        if self.leaves_policies_out {
            let driver = &self.hand_over.driver_name;
            let nodes =
                scupper_use_cases::with_drivers(&self.cluster.connection(), driver, &self.nodes).await;
            plan::inform_of_drivers_left_out(&nodes, self.intent);
        }
        let traces = traces_from_env()?;
        Ok(run(self.local(traces, format, shown), signals, format, shown).await)
    }

    fn local(self, traces: Option<TraceSettings>, format: Format, shown: &Shown) -> LocalOptions {
        let screen = Arc::clone(&shown.screen);
        LocalOptions {
            connection: self.cluster.connection(),
            nodes: self.nodes,
            intent: self.intent,
            drain: self.draining.settings,
            policies: self.draining.policies,
            parallel: self.parallel,
            cordon_first: self.cordon_first,
            take_over: self.take_over,
            roll_back: None,
            any_cordon: self.any_cordon,
            format,
            output: Arc::new(move || Box::new(screen.lines())),
            board: shown.board.clone(),
            traces,
            recordings: self.recordings,
            lease_namespace: self.hand_over.lease_namespace.clone(),
            clock: Clock::System,
            compiler: None,
        }
    }
}

/// Until it is over, or until a second signal ends it at once.
async fn run(options: LocalOptions, signals: &Signals, format: Format, shown: &Shown) -> ExitCode {
    let stop = signals.came(1);
    let live = shown.begin(options.clock);
    let ended = tokio::select! {
        ended = scupper_driver::run_locally(options, stop) => Some(ended),
        () = signals.came(2) => None,
    };
    drop(live);
    shown.written(signals).await;
    match ended {
        Some(Ok(ended)) => report(&ended, format).into(),
        Some(Err(error)) => driver_failed(&error),
        None => {
            complain(
                "ended at once; what was changed on the nodes stays, and the same command again continues from there",
            );
            Exit::DrainFailed.into()
        }
    }
}

/// Each drain has reported itself: this adds the nodes on which nothing began, and a summary.
fn report(ended: &[NodeDrainResult], format: Format) -> Exit {
    let exits = ended.iter().map(|NodeDrainResult { node, result }| {
        let (exit, how) = match result {
            Ok(Some(outcome)) => (Exit::of(outcome), outcome.name()),
            Ok(None) => (Exit::DrainFailed, NOT_BEGUN),
            Err(error) => {
                complain(&scupper_driver::chain(error));
                (exit_of_driver(error), REFUSED)
            }
        };
        (node.as_str(), exit, how)
    });
    summed_up(exits, ended.len() > 1 && format == Format::Human)
}

/// How it ended for a node on which nothing began.
pub(super) const NOT_BEGUN: &str = "not begun";
/// How it ended for a node whose error was printed.
pub(super) const REFUSED: &str = "error";

/// The exit code of all nodes; `is_listed`: the number of those that are done is printed, and how it ended for each other one.
pub(super) fn summed_up<'a>(exits: impl Iterator<Item = (&'a str, Exit, &'a str)>, is_listed: bool) -> Exit {
    let (mut exit, mut all, mut pending) = (Exit::Done, 0, Vec::new());
    for (node, of_node, how) in exits {
        all += 1;
        if of_node != Exit::Done {
            pending.push(format!("{node} ({how})"));
        }
        exit = exit.and(of_node);
    }
    if all == 0 {
        inform_of_no_node();
    } else if is_listed {
        print(&format!("{} of {all} nodes are done", all - pending.len()));
        if !pending.is_empty() {
            print(&format!("not done: {}", pending.join(", ")));
        }
    }
    exit
}

/// Says that the taint of a drain with `--node-is-off` is gone.
fn say_back_in_service(format: Format, node: &str) {
    let text = format!(
        "node {node}: the taint {} is removed",
        scupper_driver::OUT_OF_SERVICE_TAINT
    );
    match format {
        Format::Human => print(&text),
        Format::Json => inform(&text),
    }
}
