//! Nodes are handed over to the driver that runs on them, and followed.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::process::ExitCode;

use scupper_engine::Intent;

use super::args::HandOverArgs;
use super::drain::{NOT_BEGUN, REFUSED, summed_up};
use super::shown::Shown;
use crate::Exit;
use crate::args::{ClusterArgs, PolicyArgs};
use crate::options::{OptionsError, duration};
use crate::output::{complain, exit_of, failed};
use crate::signals::Signals;
use scupper_common::clock::Clock;
use scupper_config::GivenSettings;
use scupper_driver::NodeSelection;
use scupper_report::{FollowEvent, FollowOutput, Format};
use scupper_use_cases::{self as use_cases, HandOverEnd, HandOverOptions, HandOverResults};

/// Hands over and follows; `None`: there is no driver, so the command drains itself.
pub(super) async fn hand_over(
    options: &HandOverOptions,
    signals: &Signals,
    format: Format,
    shown: &Shown,
) -> Option<ExitCode> {
    let stories: RefCell<BTreeMap<String, FollowOutput>> = RefCell::default();
    let many = !matches!(&options.nodes, NodeSelection::Named(names) if names.len() == 1);
    let report = |node: &str, seen: &FollowEvent| {
        let now = options.clock.now();
        let mut stories = stories.borrow_mut();
        let begin = || FollowOutput::begin(node.to_owned(), now);
        let lines = stories
            .entry(node.to_owned())
            .or_insert_with(begin)
            .lines(format, now, seen);
        for line in lines {
            if many && format == Format::Human {
                shown.screen.print(&format!("{node}  {line}"));
            } else {
                shown.screen.print(&line);
            }
        }
    };
    let live = shown.begin(options.clock);
    let handed = tokio::select! {
        handed = use_cases::hand_over(options, signals.came(1), report) => Some(handed),
        () = signals.came(2) => None,
    };
    drop(live);
    shown.written(signals).await;
    match handed {
        Some(Ok(handed)) => Some(sum(&handed?, many && format == Format::Human).into()),
        Some(Err(error)) => Some(failed(&error)),
        None => {
            complain("ended at once; what the driver was asked for goes on: scupper cancel stops it");
            Some(Exit::Detached.into())
        }
    }
}

fn sum(handed: &HandOverResults, is_listed: bool) -> Exit {
    let exits = handed.iter().map(|(node, result)| {
        let (exit, how) = match result {
            Ok(Some(end)) => (exit_of_end(end), end.text()),
            Ok(None) => (Exit::DrainFailed, NOT_BEGUN),
            Err(error) => {
                complain(&scupper_driver::chain(error));
                (exit_of(error), REFUSED)
            }
        };
        (node.as_str(), exit, how)
    });
    summed_up(exits, is_listed)
}

const fn exit_of_end(end: &HandOverEnd) -> Exit {
    match end {
        HandOverEnd::Done => Exit::Done,
        HandOverEnd::Policy => Exit::Policy,
        HandOverEnd::Deadline => Exit::Deadline,
        HandOverEnd::Detached => Exit::Detached,
        HandOverEnd::Failed | HandOverEnd::Cancelled | HandOverEnd::NotTaken => Exit::DrainFailed,
    }
}

/// What is handed over.
pub(super) fn options_of(
    args: &HandOverArgs,
    nodes: &NodeSelection,
    cluster: &ClusterArgs,
    intent: Intent,
) -> Result<HandOverOptions, OptionsError> {
    let wrong = |problem| OptionsError(vec![problem]);
    Ok(HandOverOptions {
        connection: cluster.connection(),
        nodes: nodes.clone(),
        intent,
        driver: args.driver_name.clone(),
        flags: None,
        timeout: None,
        own_flag: None,
        claim_timeout: duration("--claim-timeout", &args.claim_timeout).map_err(wrong)?,
        lease_namespace: args.lease_namespace.clone(),
        parallel: 1,
        cordon_first: false,
        page_size: 500,
        board: None,
        clock: Clock::System,
    })
}

/// A flag that was given and that only a drain from here obeys. `records`: `--record` was.
pub(super) fn own_flag(flags: &GivenSettings, policies: &PolicyArgs, records: bool) -> Option<String> {
    let given = [
        ("--record", records),
        ("--config", policies.config.is_some()),
        ("--policy", !policies.policies.is_empty()),
    ];
    let mut given = given.into_iter().filter(|(_, given)| *given);
    let of_policies = given.next().map(|(flag, _)| flag.to_owned());
    flags.only_local().or(of_policies)
}
