//! `scupper policy rollback`

use std::process::ExitCode;

use super::args::RollbackArgs;
use super::driver;
use super::driver::DriverError;
use crate::exit::Exit;
use crate::output::{fail, print};
use scupper_policy_reload::ask_rollback;
use scupper_report::Format;

pub(super) async fn run(args: &RollbackArgs, format: Format) -> ExitCode {
    match roll_back(args).await {
        Ok(done) => {
            print(&match format {
                Format::Human => done,
                Format::Json => serde_json::json!({ "policy": args.name, "done": done }).to_string(),
            });
            Exit::Done.into()
        }
        Err(error) => fail(&error, driver::exit(&error)),
    }
}

async fn roll_back(args: &RollbackArgs) -> Result<String, DriverError> {
    let state = driver::state(&args.driver)?;
    Ok(ask_rollback(&state, &args.name).await?)
}
