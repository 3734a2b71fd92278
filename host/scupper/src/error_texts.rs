//! Tests the text of every error of the command line.

use std::io;

use clap::Parser as _;
use scupper_common::error::chain;
use scupper_common::samples::errors;
use scupper_common::variants;
use scupper_policy::{LoadFault, RuntimeError};
use scupper_policy_reload::ControlError;
use scupper_saved_cluster::SavedError;

use crate::args::{Args, Command};
use crate::dev_program::DevProgramError;
use crate::forecast::FromError;
use crate::node::SaveError;
use crate::policy::driver::DriverError as AskError;
use crate::precompile::PrecompileError;

variants!(AskError: Where Ask);
variants!(SaveError: Configuration Changed Create);
variants!(FromError: Read Form Objects);
variants!(PrecompileError: Runtime Policy);
variants!(DevProgramError: Missing Start);

fn denied() -> io::Error {
    io::Error::from(io::ErrorKind::PermissionDenied)
}

/// Everything that is wrong with the values of one command line.
fn options() -> String {
    let wrong = [
        "--sla=soon",
        "--eviction-timeout=1",
        "--keep-finished=-1s",
        "--allow-overrides=everything",
        "--policy=Slurm=slurm.wasm",
        "--policy=slurm",
        "--policy=openstack=openstack.wasm",
        "--grant=events",
        "--grant=slurm=events:node",
        "--grant=openstack=sockets:all",
        "--policy-config=openstack",
        "--policy-config=openstack.a=1",
        "--policy-config=openstack.a=2",
        "--evict-as=node",
        "--as=me",
    ];
    let args = ["scupper", "kubelet-plugin", "--node-name=worker-1"];
    let args = Args::try_parse_from(args.into_iter().chain(wrong)).unwrap();
    let Command::KubeletPlugin(plugin) = &args.command else {
        panic!("another command")
    };
    let error = crate::options::plugin(plugin).unwrap_err();
    format!("OptionsError\n  {}\n", chain(&error).replace('\n', "\n  "))
}

#[test]
fn every_error() {
    let asking = [
        AskError::Where,
        AskError::Ask(ControlError::Refused("in the driver's words".to_owned())),
    ];
    let precompiling = [
        PrecompileError::Runtime(RuntimeError::Ticker(denied())),
        PrecompileError::Policy("slurm.wasm".into(), LoadFault::BrokenOff),
    ];
    let saving = [
        SaveError::Configuration {
            file: "scupper.yaml".into(),
            source: denied(),
        },
        SaveError::Changed("scupper.yaml".into()),
        SaveError::Create {
            file: "saved/worker-1.yaml".into(),
            source: io::Error::from(io::ErrorKind::AlreadyExists),
        },
    ];
    let from = [
        FromError::Read("cluster.json".into(), denied()),
        FromError::Form("cluster.json".into(), "EOF while parsing".to_owned()),
        FromError::Objects("cluster.json".into(), SavedError::NoField("kind")),
    ];
    let starting = [
        DevProgramError::Missing,
        DevProgramError::Start("scupper-dev".into(), denied()),
    ];
    let all = [
        errors("policy::DriverError", &asking),
        errors("PrecompileError", &precompiling),
        errors("SaveError", &saving),
        errors("FromError", &from),
        errors("DevProgramError", &starting),
        options(),
    ];
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("errors", all.concat());
    });
}
