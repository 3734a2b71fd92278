//! `scupper status`: where nodes stand.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use super::args::StatusArgs;
use super::options;
use super::shown::is_live;
use crate::Exit;
use crate::options::OptionsError;
use crate::output::Output;
use crate::output::{failed, inform_of_no_node, print, print_lines, wrong_options};
use crate::signals::Signals;
use scupper_common::clock::Clock;
use scupper_report::{
    Format, NodeStatus, PodList, overview_lines, status_lines, status_table, status_to_json,
};
use scupper_screen::Screen;
use scupper_use_cases::{self as use_cases, CommandError, StatusNews, StatusOptions};
use serde_json::json;

/// What is known of each node.
type StatusByNode = BTreeMap<String, NodeStatus>;

/// Shows where nodes stand, once or again and again until a signal comes.
pub(crate) async fn run(args: &StatusArgs, output: Output, screen: &Arc<Screen>) -> ExitCode {
    if args.nodes.names.is_empty() && args.nodes.selector.is_none() {
        return overview(args, output).await;
    }
    let nodes = match options::nodes(&args.nodes) {
        Ok(nodes) => nodes,
        Err(error) => return wrong_options(&error),
    };
    let options = StatusOptions {
        connection: args.cluster.connection(),
        nodes,
        clock: Clock::System,
        lease_namespace: args.lease_namespace.clone(),
        watch: args.watch,
    };
    let ended = if args.watch && is_live(args.shown, output.format(), screen) {
        in_place(options, output.pod_list(), screen).await
    } else {
        as_lines(options, output).await
    };
    match ended {
        Ok(nodes) => {
            if nodes == Some(0) {
                inform_of_no_node();
            }
            Exit::Done.into()
        }
        Err(error) => failed(&error),
    }
}

/// One line for each node of which there is something to say.
async fn overview(args: &StatusArgs, output: Output) -> ExitCode {
    if args.watch {
        let problem = "--watch: name the nodes, or choose them with --selector".to_owned();
        return wrong_options(&OptionsError(vec![problem]));
    }
    let clock = Clock::System;
    match use_cases::overview(&args.cluster.connection(), &args.lease_namespace, clock).await {
        Ok((summaries, others)) => {
            match output.format() {
                Format::Human => print_lines(&overview_lines(&summaries, others, clock.wall()).join("\n")),
                Format::Json => summaries
                    .iter()
                    .for_each(|summary| print(&output.document(&summary.to_json()))),
            }
            Exit::Done.into()
        }
        Err(error) => failed(&error),
    }
}

/// Each node as often as it changes. Returns how many there are; `None`: a signal came first.
async fn as_lines(options: StatusOptions, output: Output) -> Result<Option<usize>, CommandError> {
    let clock = options.clock;
    let mut reported = StatusByNode::new();
    let report = |news: StatusNews<'_>| {
        let status = match news {
            StatusNews::Status(status) => status,
            StatusNews::Gone(node) => {
                reported.remove(node);
                print(&match output.format() {
                    Format::Human => format!("node {node} is gone"),
                    Format::Json => output.document(&json!({"node": node, "gone": true})),
                });
                return;
            }
        };
        let known = status.without_heartbeats();
        if reported.get(&status.node.name) == Some(&known) {
            return;
        }
        let now = clock.wall();
        match output.format() {
            Format::Human => print_lines(&status_lines(status, now, output.pod_list()).join("\n")),
            Format::Json => print(&output.document(&status_to_json(status, now))),
        }
        reported.insert(status.node.name.clone(), known);
    };
    until_signal(use_cases::status(options, report)).await
}

/// All nodes in one place, which stays true; at the end they stay there as they were last, whole.
async fn in_place(
    options: StatusOptions,
    list: PodList,
    screen: &Arc<Screen>,
) -> Result<Option<usize>, CommandError> {
    let clock = options.clock;
    let known: Arc<Mutex<StatusByNode>> = Arc::default();
    let of = |known: &Mutex<StatusByNode>| known.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let report = |news: StatusNews<'_>| {
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        match news {
            StatusNews::Status(status) => known.insert(status.node.name.clone(), status.clone()),
            StatusNews::Gone(node) => known.remove(node),
        };
    };
    let shown = Arc::clone(&known);
    let live = screen.show(clock, move |room, now| {
        status_table(of(&shown).values(), room, now, list)
    });
    let ended = until_signal(use_cases::status(options, report)).await;
    drop(live);
    let now = clock.wall();
    for status in of(&known).values() {
        print_lines(&status_lines(status, now, list).join("\n"));
    }
    ended
}

async fn until_signal(
    status: impl Future<Output = Result<usize, CommandError>>,
) -> Result<Option<usize>, CommandError> {
    let signals = Signals::new();
    tokio::select! {
        ended = status => ended.map(Some),
        () = signals.came(1) => Ok(None),
    }
}
