//! `scupper precompile`: native code of policies for an image, so that a driver's first start there compiles nothing.

use std::path::PathBuf;
use std::process::ExitCode;

use scupper_common::clock::Clock;
use scupper_policy::{
    LoadFault, Network, Runtime, RuntimeError, RuntimeOptions, Secrets, own_program, precompile,
};

use crate::exit::Exit;
use crate::output::{fail, print};

/// `scupper precompile`
#[derive(Debug, clap::Args)]
pub struct PrecompileArgs {
    /// Directory for the native code; is created
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Components (.wasm)
    #[arg(required = true, value_name = "FILE")]
    pub policies: Vec<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum PrecompileError {
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    #[error("cannot compile {}", .0.display())]
    Policy(PathBuf, #[source] LoadFault),
}

/// Compiles them one after the other.
pub(crate) async fn run(args: &PrecompileArgs) -> ExitCode {
    match compile(args).await {
        Ok(()) => Exit::Done.into(),
        Err(error) => fail(&error, Exit::Config),
    }
}

async fn compile(args: &PrecompileArgs) -> Result<(), PrecompileError> {
    let runtime = Runtime::new(RuntimeOptions {
        // Nothing is looked for or kept there.
        cache: args.out.clone(),
        shipped: None,
        compiler: own_program(),
        clock: Clock::System,
        network: Network::closed(),
        secrets: Secrets::default(),
    })?;
    for policy in &args.policies {
        let written = precompile(&runtime, policy, &args.out).await;
        let written = written.map_err(|fault| PrecompileError::Policy(policy.clone(), fault))?;
        print(&written.display().to_string());
    }
    Ok(())
}
