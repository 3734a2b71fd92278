//! Tests the text of every error that a policy's author sees.

use std::io;
use std::path::PathBuf;

use scupper_builder::BuildError;
use scupper_cluster::DecodeError;
use scupper_common::samples::errors;
use scupper_common::variants;
use scupper_config::ConfigError;
use scupper_engine::HookPhase;
use scupper_policy::{LoadError, LoadFault, RuntimeError};
use scupper_policy_spec::GrantError;

use super::dry_run::SubjectError;
use super::new::NewError;
use super::offline::{OfflineError, PolicyLoadError};
use super::scenario::ScenarioError;
use super::snapshot::SnapshotError;
use super::specs::SpecError;
use super::suite::SuiteError;

variants!(NewError: Name Exists Write);
variants!(OfflineError: Place Runtime);
variants!(PolicyLoadError: Runtime Load);
variants!(ScenarioError: Read Form Sense Snapshot Config Load);
variants!(SnapshotError: Read Syntax Object NoNode ManyNodes OtherNode);
variants!(SpecError: Config Absent Grant Setting);
variants!(SubjectError: Phase Node Wave Pod);
variants!(SuiteError: Look Empty NoCrate Build);

fn denied() -> io::Error {
    io::Error::from(io::ErrorKind::PermissionDenied)
}

fn ticker() -> RuntimeError {
    RuntimeError::Ticker(denied())
}

fn nodes() -> Vec<String> {
    vec!["worker-1".to_owned(), "worker-2".to_owned()]
}

fn not_loaded() -> PolicyLoadError {
    PolicyLoadError::Load(LoadError {
        policy: "mine".to_owned(),
        file: "mine.wasm".into(),
        fault: Box::new(LoadFault::BrokenOff),
    })
}

fn scenarios() -> Vec<ScenarioError> {
    vec![
        ScenarioError::Read(denied()),
        ScenarioError::Form("in the reader's words".to_owned()),
        ScenarioError::Sense {
            line: 7,
            message: "there is no pod `web`".to_owned(),
        },
        ScenarioError::Snapshot(SnapshotError::NoNode("cluster.yaml".into())),
        ScenarioError::Config("in the reader's words".to_owned()),
        ScenarioError::Load(not_loaded()),
    ]
}

fn snapshots() -> Vec<SnapshotError> {
    let file = || PathBuf::from("cluster.yaml");
    vec![
        SnapshotError::Read {
            file: file(),
            source: denied(),
        },
        SnapshotError::Syntax {
            file: file(),
            message: "line 3: in the parser's words".to_owned(),
        },
        SnapshotError::Object {
            file: file(),
            source: DecodeError::NoName("Pod".to_owned()),
        },
        SnapshotError::NoNode(file()),
        SnapshotError::ManyNodes {
            file: file(),
            nodes: nodes(),
        },
        SnapshotError::OtherNode {
            file: file(),
            node: "worker-3".to_owned(),
            nodes: nodes(),
        },
    ]
}

fn specs() -> Vec<SpecError> {
    vec![
        SpecError::Config(ConfigError::NotAFile("scupper.yaml".into())),
        SpecError::Absent {
            config: "scupper.yaml".into(),
            file: "mine.wasm".into(),
            names: vec!["slurm".to_owned(), "openstack".to_owned()],
        },
        SpecError::Grant {
            text: "sockets:all".to_owned(),
            source: GrantError::Capability("sockets".to_owned()),
        },
        SpecError::Setting("partition".to_owned()),
    ]
}

fn subjects() -> [SubjectError; 4] {
    [
        SubjectError::Phase {
            policy: "slurm".to_owned(),
            phase: HookPhase::BeforeWave,
            phases: "before-drain, on-cancel".to_owned(),
        },
        SubjectError::Node {
            phase: HookPhase::BeforeDrain,
            of: "all".to_owned(),
        },
        SubjectError::Wave {
            phase: HookPhase::BeforeWave,
            waves: "all".to_owned(),
        },
        SubjectError::Pod {
            phase: HookPhase::BeforeEvict,
            pods: "shop/cart-1, shop/cart-2".to_owned(),
        },
    ]
}

fn suites() -> Vec<SuiteError> {
    vec![
        SuiteError::Look {
            path: "scenarios".into(),
            source: denied(),
        },
        SuiteError::Empty("scenarios".into()),
        SuiteError::NoCrate("scenarios/first.yaml".into()),
        SuiteError::Build {
            folder: "mine".into(),
            source: BuildError::NoTarget,
        },
    ]
}

#[test]
fn every_error() {
    let creating = [
        NewError::Name("My_Policy".to_owned()),
        NewError::Exists("mine".into()),
        NewError::Write {
            path: "mine/Cargo.toml".into(),
            source: denied(),
        },
    ];
    let offline = [OfflineError::Place(denied()), OfflineError::Runtime(ticker())];
    let loading = [PolicyLoadError::Runtime(ticker()), not_loaded()];
    let all = [
        errors("NewError", &creating),
        errors("OfflineError", &offline),
        errors("PolicyLoadError", &loading),
        errors("ScenarioError", &scenarios()),
        errors("SnapshotError", &snapshots()),
        errors("SpecError", &specs()),
        errors("SubjectError", &subjects()),
        errors("SuiteError", &suites()),
    ];
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("errors", all.concat());
    });
}
