//! `scupper cancel`: stops drains.

use std::process::ExitCode;

use scupper_engine::Trigger;
use serde_json::{Value, json};

use super::args::CancelArgs;
use super::options;
use crate::Exit;
use crate::options::{OptionsError, duration};
use crate::output::Output;
use crate::output::{complain, exit_of, failed, inform, inform_of_no_node, print, wrong_options};
use scupper_common::clock::Clock;
use scupper_report::{Format, release_text, unreleased_text};
use scupper_use_cases::{self as use_cases, CancelEnd, CancelOptions, Cancelled};

/// Cancels the drains of nodes and waits until they have ended.
pub(crate) async fn run(args: &CancelArgs, output: Output) -> ExitCode {
    let options = match options_of(args) {
        Ok(options) => options,
        Err(error) => return wrong_options(&error),
    };
    let cancelled = match use_cases::cancel(&options).await {
        Ok(cancelled) => cancelled,
        Err(error) => return failed(&error),
    };
    if cancelled.is_empty() {
        inform_of_no_node();
    }
    let mut exit = Exit::Done;
    for (node, cancelled) in &cancelled {
        let cancelled = match cancelled {
            Ok(cancelled) => cancelled,
            Err(error) => {
                exit = exit.and(exit_of(error));
                complain(&format!("node {node}: {}", scupper_driver::chain(error)));
                continue;
            }
        };
        print(&match output.format() {
            Format::Human => for_people(cancelled),
            Format::Json => output.document(&for_programs(cancelled)),
        });
        match cancelled.end {
            CancelEnd::Ended => {}
            CancelEnd::RolledBack => inform(&rolled_back(cancelled)),
            CancelEnd::Pending => {
                exit = exit.and(Exit::DrainFailed);
                complain(&not_over(cancelled, &args.wait_timeout));
            }
        }
    }
    exit.into()
}

fn for_people(cancelled: &Cancelled) -> String {
    let Cancelled {
        node, drains, end, ..
    } = cancelled;
    match drains.join(", ") {
        what if what.is_empty() && !cancelled.was_idle => {
            format!(
                "node {node}: the node shows no drain; its Lease could not be read, so one may be planning"
            )
        }
        what if what.is_empty() && cancelled.was_cordoned => format!(
            "node {node}: no drain is under way; the node is still cordoned by Scupper; to give it back: scupper uncordon {node}"
        ),
        what if what.is_empty() => format!("node {node}: no drain is under way"),
        what if *end == CancelEnd::Pending && cancelled.was_idle => {
            format!("node {node}: deleted, and not released by its driver: {what}")
        }
        what if *end == CancelEnd::Pending => format!("node {node}: asked to stop: {what}"),
        what => format!("node {node}: cancelled: {what}"),
    }
}

fn for_programs(cancelled: &Cancelled) -> Value {
    json!({
        "node": cancelled.node, "cancelled": cancelled.drains, "over": cancelled.end != CancelEnd::Pending,
        "rolledBack": cancelled.end == CancelEnd::RolledBack, "idle": cancelled.was_idle,
    })
}

/// That this command has undone the drain, and what a driver that starts does about it.
fn rolled_back(cancelled: &Cancelled) -> String {
    let Cancelled { node, by, .. } = cancelled;
    let next = match Trigger::of(by) {
        Trigger::Command => String::new(),
        Trigger::LifecycleEvent if cancelled.has_events => format!(
            "; {}; if the driver is gone for good: scupper status {node}",
            release_text("the LifecycleEvent")
        ),
        Trigger::LifecycleEvent => String::new(),
        Trigger::Cordon => format!(
            "; the cordon that asked for it stays, and asks for no second drain; to drain the node again: scupper drain {node}"
        ),
        Trigger::DrainRequest => format!(
            "; a driver that starts drains the node for its DrainRequests again; to prevent that, delete those of {node}"
        ),
    };
    format!(
        "node {node}: the process that drained it is gone, so this command has rolled the drain back{next}"
    )
}

/// What to do about a drain that has not ended.
fn not_over(cancelled: &Cancelled, within: &str) -> String {
    let Cancelled { node, drains, by, .. } = cancelled;
    let what = drains.join(", ");
    if cancelled.was_idle {
        return format!(
            "node {node}: {}; is the driver running? kubectl get pods -A --field-selector spec.nodeName={node}; what else to do: \
             scupper status {node}",
            unreleased_text(&what)
        );
    }
    let process = match Trigger::of(by) {
        Trigger::Command => "the process that drains it",
        Trigger::Cordon | Trigger::DrainRequest | Trigger::LifecycleEvent => "its driver",
    };
    format!(
        "node {node}: {what} has not ended within {within}; scupper status {node} shows what it waits for; if {process} is \
         gone, cancel again: that rolls the drain back once the node's Lease has expired, which takes 30s"
    )
}

fn options_of(args: &CancelArgs) -> Result<CancelOptions, OptionsError> {
    let wrong = |problem| OptionsError(vec![problem]);
    let undoing = options::uncordoning(&args.policies)?;
    Ok(CancelOptions {
        connection: args.cluster.connection(),
        nodes: options::nodes(&args.nodes)?,
        driver: args.driver_name.clone(),
        wait_timeout: duration("--wait-timeout", &args.wait_timeout).map_err(wrong)?,
        lease_namespace: args.lease_namespace.clone(),
        policies: undoing.policies,
        settings: undoing.settings,
        clock: Clock::System,
    })
}

#[cfg(test)]
mod texts;
