//! Tests the text of every error of loading and calling a policy.

use std::io;
use std::time::Duration;

use scupper_common::error::chain;
use scupper_common::samples::errors;
use scupper_common::variants;
use scupper_policy_compile::{CacheError, CompileError, PrivateDirError, SourceError};
use scupper_policy_spec::{
    Capability, Grant, GrantError, HttpGrantError, HttpTargetError, NameError, PrefixError, SecretGrantError,
    SpecSource,
};
use wasmtime::Trap;

use super::error::{ConfigProblem, LoadError, LoadFault, MissingGrant, WantError};
use super::flaws::Flaw;
use crate::imports::http::HttpSetupError;
use crate::runtime::RuntimeError;
use crate::runtime::fault::{CallError, CallFault, Frames, Overrun};

variants!(RuntimeError: Engine Ticker);
variants!(Overrun: Memory Tables Handles Cpu);
variants!(CallFault: Overrun Wall Waited TooMuchData Exit Trap Answer Other Panic);
variants!(WantError: Capability Prefix Http Secret);
variants!(LoadFault: Name Twice Grant Http Secret Source Pinned Compile Cache Native Needs Types Call Want TooManyWants
    NotGranted Config Flawed BrokenOff);

fn grant(capability: Capability, target: &str) -> Grant {
    let target = target.to_owned();
    Grant { capability, target }
}

fn call(fault: CallFault) -> CallError {
    CallError {
        policy: "slurm".to_owned(),
        function: "step",
        fault,
    }
}

fn calls() -> Vec<CallFault> {
    let frames = Frames(["plan::look", "plan::make"].map(str::to_owned).to_vec());
    vec![
        CallFault::Overrun(Overrun::Handles(1000)),
        CallFault::Wall(Duration::from_secs(30)),
        CallFault::Waited(Duration::from_secs(30)),
        CallFault::TooMuchData(4 << 20),
        CallFault::Exit(1),
        CallFault::Trap {
            trap: Trap::UnreachableCodeReached.to_string(),
            frames,
        },
        CallFault::Answer("a wave has more than 5000 pods".to_owned()),
        CallFault::Other("in wasmtime's words".to_owned()),
        CallFault::Panic,
    ]
}

fn wants() -> Vec<WantError> {
    vec![
        WantError::Capability(GrantError::Capability("sockets".to_owned())),
        WantError::Prefix(PrefixError::Reserved("k8s.io".to_owned())),
        WantError::Http(HttpTargetError::Form("everything".to_owned())),
        WantError::Secret(SecretGrantError::Name("pass word".to_owned())),
    ]
}

fn configured() -> Vec<LoadFault> {
    vec![
        LoadFault::Name(NameError::Form),
        LoadFault::Twice,
        LoadFault::Grant {
            grant: grant(Capability::NodeAnnotations, "nodes"),
            source: WantError::Prefix(PrefixError::Form("nodes".to_owned())),
        },
        LoadFault::Http {
            origin: "http://example.com".to_owned(),
            source: HttpSetupError::Grant(HttpGrantError::CaWithoutTls),
        },
        LoadFault::Secret {
            name: "token".to_owned(),
            source: SecretGrantError::Nowhere,
        },
        LoadFault::Config(vec![
            ConfigProblem {
                key: String::new(),
                message: "a partition is needed".to_owned(),
            },
            ConfigProblem {
                key: "timeout".to_owned(),
                message: "must be a duration".to_owned(),
            },
        ]),
    ]
}

fn wanting() -> Vec<LoadFault> {
    let missing = |spec_source, capability, target| MissingGrant {
        policy: "slurm".to_owned(),
        grant: grant(capability, target),
        spec_source,
    };
    let granting = |source| {
        LoadFault::NotGranted(vec![
            missing(source, Capability::NodeAnnotations, "example.com/"),
            missing(source, Capability::Http, "GET https://example.com/api/"),
            missing(source, Capability::Secret, "token"),
        ])
    };
    vec![
        LoadFault::Want {
            capability: "sockets".to_owned(),
            target: "all".to_owned(),
            source: WantError::Capability(GrantError::Capability("sockets".to_owned())),
        },
        LoadFault::TooManyWants {
            wants: 200,
            limit: 64,
        },
        granting(SpecSource::Flags),
        granting(SpecSource::File),
        LoadFault::Flawed(vec![Flaw {
            field: "name".to_owned(),
            message: "must be short".to_owned(),
        }]),
    ]
}

fn loading() -> Vec<LoadFault> {
    let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
    vec![
        LoadFault::Source(SourceError::Read(denied())),
        LoadFault::Pinned {
            pinned: "0a1b".to_owned(),
            found: "2c3d".to_owned(),
        },
        LoadFault::Compile(CompileError::Start {
            program: "scupper".into(),
            source: denied(),
        }),
        LoadFault::Cache(CacheError::Directory(PrivateDirError::Open {
            path: "cache".into(),
            source: denied(),
        })),
        LoadFault::Native("in wasmtime's words".to_owned()),
        LoadFault::Needs {
            needs: "3 memories".to_owned(),
            limit: "2".to_owned(),
        },
        LoadFault::Types {
            what: "imports",
            detail: "in wasmtime's words".to_owned(),
        },
        LoadFault::Call(call(CallFault::Exit(1))),
        LoadFault::BrokenOff,
    ]
}

#[test]
fn every_error() {
    let runtime = [
        RuntimeError::Engine("in wasmtime's words".to_owned()),
        RuntimeError::Ticker(io::Error::from(io::ErrorKind::WouldBlock)),
    ];
    let overruns = [
        Overrun::Memory(64 << 20),
        Overrun::Tables(20_000),
        Overrun::Handles(1000),
        Overrun::Cpu(Duration::from_millis(250)),
    ];
    let whole = LoadError {
        policy: "slurm".to_owned(),
        file: "slurm.wasm".into(),
        fault: Box::new(LoadFault::Source(SourceError::NotWasm)),
    };
    let faults: Vec<_> = [configured(), wanting(), loading()]
        .into_iter()
        .flatten()
        .collect();
    let all = [
        errors("RuntimeError", &runtime),
        errors("Overrun", &overruns),
        errors("CallFault", &calls()),
        errors("WantError", &wants()),
        errors("LoadFault", &faults),
        format!("LoadError\n  {}\n", chain(&whole)),
    ];
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("errors", all.concat());
    });
}
