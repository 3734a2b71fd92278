//! `scupper cancel`: drains are taken back.

use std::process::ExitCode;

use super::args::CancelArgs;
use super::options;
use crate::app::{self, CancelOptions, Cancelled};
use crate::cli::Exit;
use crate::cli::args::Output;
use crate::cli::commands::{complain, failed, print, wrong_options};
use crate::cli::options::{OptionsError, duration};

/// Takes the drains of nodes back and waits until they are over.
pub(crate) async fn run(args: &CancelArgs, output: Output) -> ExitCode {
    let options = match options_of(args) {
        Ok(options) => options,
        Err(error) => return wrong_options(&error),
    };
    let cancelled = match app::cancel(&options).await {
        Ok(cancelled) => cancelled,
        Err(error) => return failed(&error),
    };
    let mut exit = Exit::Done;
    for Cancelled {
        node,
        wishes,
        by,
        over,
    } in &cancelled
    {
        let what = wishes.join(", ");
        match output {
            Output::Json | Output::Yaml => print(
                &output.document(&serde_json::json!({ "node": node, "cancelled": wishes, "over": over })),
            ),
            Output::Human if wishes.is_empty() => print(&format!("node {node}: no drain is under way")),
            Output::Human if *over => print(&format!("node {node}: cancelled: {what}")),
            Output::Human => print(&format!("node {node}: asked to stop: {what}")),
        }
        if !over {
            exit = Exit::DrainFailed;
            let within = &args.wait_timeout;
            let gone = remedy(by, node);
            complain(&format!(
                "node {node}: {what} is not over within {within}; {gone}"
            ));
        }
    }
    if cancelled.is_empty() {
        complain("no node has these labels");
    }
    exit.into()
}

/// What is to be done where whoever did it is gone.
fn remedy(by: &str, node: &str) -> String {
    match by {
        app::COMMAND => format!(
            "where whoever did it is gone, take it over and press Ctrl-C there: scupper drain {node} --take-over"
        ),
        app::CORDON => format!(
            "where the driver is gone, it goes on with it when it runs again, unless the node is given back: \
             kubectl uncordon {node}"
        ),
        _ => "where the driver is gone, it ends it when it runs again".to_owned(),
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
