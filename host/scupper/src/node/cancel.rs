//! `scupper cancel`: stops drains.

use std::process::ExitCode;

use scupper_engine::Trigger;
use serde_json::{Value, json};

use super::args::CancelArgs;
use super::options;
use crate::Exit;
use crate::options::{OptionsError, duration};
use crate::output::Output;
use crate::output::{complain, failed, print, wrong_options};
use crate::use_cases::{self, CancelOptions, Cancelled};

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
    let mut exit = Exit::Done;
    for cancelled in &cancelled {
        print(&match output {
            Output::Human => for_people(cancelled),
            Output::Json | Output::Yaml => output.document(&for_programs(cancelled)),
        });
        if !cancelled.over {
            exit = Exit::DrainFailed;
            complain(&not_over(cancelled, &args.wait_timeout));
        }
    }
    if cancelled.is_empty() {
        complain("no node has these labels");
    }
    exit.into()
}

fn for_people(cancelled: &Cancelled) -> String {
    let Cancelled {
        node, drains, over, ..
    } = cancelled;
    match drains.join(", ") {
        what if what.is_empty() => format!("node {node}: no drain is under way"),
        what if *over => format!("node {node}: cancelled: {what}"),
        what => format!("node {node}: asked to stop: {what}"),
    }
}

fn for_programs(cancelled: &Cancelled) -> Value {
    json!({ "node": cancelled.node, "cancelled": cancelled.drains, "over": cancelled.over })
}

/// What to do about a drain that has not ended.
fn not_over(cancelled: &Cancelled, within: &str) -> String {
    let Cancelled { node, drains, by, .. } = cancelled;
    let what = drains.join(", ");
    format!(
        "node {node}: {what} has not ended within {within}; {}",
        advice(by, node)
    )
}

/// What to do if the process that drained is gone.
fn advice(by: &str, node: &str) -> String {
    match Trigger::of(by) {
        Trigger::Command => format!(
            "if the process that drains it is gone, take the drain over and press Ctrl-C: \
             scupper drain {node} --take-over"
        ),
        Trigger::Cordon => format!(
            "if the driver is not running, it continues the drain when it starts; \
             to prevent that: kubectl uncordon {node}"
        ),
        Trigger::DrainRequest => format!(
            "if the driver is not running, it continues the drain when it starts; \
             to prevent that, delete the DrainRequests of {node}"
        ),
        Trigger::LifecycleEvent => {
            "if the driver is not running, it ends the drain when it starts".to_owned()
        }
    }
}

fn options_of(args: &CancelArgs) -> Result<CancelOptions, OptionsError> {
    let wrong = |problem| OptionsError(vec![problem]);
    Ok(CancelOptions {
        connection: args.cluster.connection(),
        nodes: options::nodes(&args.nodes)?,
        driver: args.driver_name.clone(),
        wait_timeout: duration("--wait-timeout", &args.wait_timeout).map_err(wrong)?,
    })
}

#[cfg(test)]
mod texts;
