//! `scupper drain` and `scupper uncordon`: the driver is asked where there is one, or it is done from here.

use std::process::ExitCode;
use std::sync::Arc;

use scupper_engine::Intent;

use super::args::{DrainNodesArgs, DryRun, HandOverArgs, UncordonArgs};
use super::handover;
use super::options::{self, Draining};
use super::plan;
use super::shown::Shown;
use crate::Exit;
use crate::args::ClusterArgs;
use crate::options::traces_from_env;
use crate::output::Output;
use crate::output::{complain, driver_failed, exit_of_driver, print, wrong_options};
use crate::signals::Signals;
use crate::use_cases::HandOverOptions;
use scupper_common::clock::Clock;
use scupper_driver::{LocalOptions, NodeResult, Nodes};
use scupper_report::{Format, Screen};

/// Drains nodes.
pub(crate) async fn drain(args: &DrainNodesArgs, output: Output, screen: &Arc<Screen>) -> ExitCode {
    let draining = options::draining(&args.drain, &args.policies, &options::KUBECTL);
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
    if let Some(ask_server) = answers {
        return plan::show(nodes, draining, &args.cluster, ask_server, output).await;
    }
    let format = output.format();
    let parallel = usize::from(args.parallel.get());
    let shown = Shown::new(args.shown, format, screen);
    let signals = Signals::new();
    if !args.hand_over.local && !args.take_over {
        let options = HandOverOptions {
            flags: Some(handover::typed(&draining)),
            own_flags: handover::own_flags(Some(&args.drain), &args.policies),
            parallel,
            page_size: draining.page_size,
            board: shown.board.clone(),
            ..match handover::options_of(&args.hand_over, &nodes, &args.cluster, Intent::Drain) {
                Ok(options) => options,
                Err(error) => return wrong_options(&error),
            }
        };
        if let Some(code) = handover::hand_over(&options, &signals, format, &shown).await {
            return code;
        }
    }
    let traces = match traces_from_env() {
        Ok(traces) => traces,
        Err(error) => return wrong_options(&error),
    };
    let options = LocalOptions {
        parallel,
        take_over: args.take_over,
        traces,
        ..local(
            nodes,
            draining,
            (&args.cluster, &args.hand_over),
            Intent::Drain,
            format,
            &shown,
        )
    };
    run(options, &signals, format, &shown).await
}

/// Gives nodes back.
pub(crate) async fn uncordon(args: &UncordonArgs, format: Format, screen: &Arc<Screen>) -> ExitCode {
    let draining = options::uncordoning(&args.policies);
    let options = options::nodes(&args.nodes).and_then(|nodes| Ok((nodes, draining?)));
    let (nodes, draining) = match options {
        Ok(options) => options,
        Err(error) => return wrong_options(&error),
    };
    let signals = Signals::new();
    let shown = Shown::new(args.shown, format, screen);
    if !args.hand_over.local && !args.take_over && !args.force {
        let options = HandOverOptions {
            own_flags: handover::own_flags(None, &args.policies),
            board: shown.board.clone(),
            ..match handover::options_of(&args.hand_over, &nodes, &args.cluster, Intent::Uncordon) {
                Ok(options) => options,
                Err(error) => return wrong_options(&error),
            }
        };
        if let Some(code) = handover::hand_over(&options, &signals, format, &shown).await {
            return code;
        }
    }
    let traces = match traces_from_env() {
        Ok(traces) => traces,
        Err(error) => return wrong_options(&error),
    };
    let options = LocalOptions {
        traces,
        any_cordon: args.force,
        take_over: args.take_over,
        ..local(
            nodes,
            draining,
            (&args.cluster, &args.hand_over),
            Intent::Uncordon,
            format,
            &shown,
        )
    };
    run(options, &signals, format, &shown).await
}

fn local(
    nodes: Nodes,
    draining: Draining,
    (cluster, doer): (&ClusterArgs, &HandOverArgs),
    intent: Intent,
    format: Format,
    shown: &Shown,
) -> LocalOptions {
    let screen = Arc::clone(&shown.screen);
    LocalOptions {
        connection: cluster.connection(),
        nodes,
        intent,
        settings: draining.settings,
        policies: draining.policies,
        eviction_timeout: draining.eviction_timeout,
        page_size: draining.page_size,
        timeout: draining.timeout,
        parallel: 1,
        take_over: false,
        any_cordon: false,
        format,
        output: Arc::new(move || Box::new(screen.lines())),
        board: shown.board.clone(),
        traces: None,
        lease_namespace: doer.lease_namespace.clone(),
        clock: Clock::System,
        compiler: None,
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
                "ended at once; what was changed on the nodes stays, and --take-over goes on from there",
            );
            Exit::DrainFailed.into()
        }
    }
}

/// Each drain has reported itself: this adds the nodes on which nothing began, and a summary.
fn report(ended: &[NodeResult], format: Format) -> Exit {
    let mut exit = Exit::Done;
    let mut pending = Vec::new();
    for NodeResult { node, result } in ended {
        let of_node = match result {
            Ok(Some(outcome)) => Exit::of(outcome),
            Ok(None) => Exit::DrainFailed,
            Err(error) => {
                complain(&scupper_driver::chain(error));
                exit_of_driver(error)
            }
        };
        if of_node != Exit::Done {
            pending.push(node.as_str());
        }
        exit = exit.and(of_node);
    }
    if ended.is_empty() {
        complain("no node has these labels");
    } else if ended.len() > 1 && format == Format::Human {
        let done = ended.len() - pending.len();
        print(&format!("{done} of {} nodes are done", ended.len()));
        if !pending.is_empty() {
            print(&format!("not done: {}", pending.join(", ")));
        }
    }
    exit
}
