//! `scupper status`: where nodes stand.

use std::collections::BTreeMap;
use std::process::ExitCode;

use super::args::StatusArgs;
use super::options;
use crate::app::{self, StatusOptions};
use crate::cli::Exit;
use crate::cli::commands::{failed, print, wrong_options};
use crate::cli::signals::Signals;
use crate::clock::Clock;
use crate::report::{Format, NodeStatus, status_lines, status_to_json};

/// Shows where nodes stand, once or again and again until a signal comes.
pub(crate) async fn run(args: &StatusArgs, format: Format) -> ExitCode {
    let nodes = match options::nodes(&args.nodes) {
        Ok(nodes) => nodes,
        Err(error) => return wrong_options(&error),
    };
    let clock = Clock::System;
    let options = StatusOptions {
        kubeconfig: args.cluster.kubeconfig.clone(),
        nodes,
        clock,
        lease_namespace: args.lease_namespace.clone(),
        watch: args.watch,
    };
    let mut told = BTreeMap::new();
    let tell = |status: &NodeStatus| {
        let known = status.without_heartbeats();
        if told.get(&status.node.name) == Some(&known) {
            return;
        }
        let now = clock.now();
        print(&match format {
            Format::Human => status_lines(status, now).join("\n"),
            Format::Json => status_to_json(status, now).to_string(),
        });
        told.insert(status.node.name.clone(), known);
    };
    let signals = Signals::new();
    tokio::select! {
        ended = app::status(options, tell) => match ended {
            Ok(()) => Exit::Done.into(),
            Err(error) => failed(&error),
        },
        () = signals.came(1) => Exit::Done.into(),
    }
}
