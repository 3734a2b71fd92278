//! Tests the text of every error of the driver.

use std::io;

use scupper_cluster::{ConnectError, ReadError, WriteError};
use scupper_common::samples::errors;
use scupper_common::tasks::TaskEnded;
use scupper_common::variants;
use scupper_engine::{Intent, Trigger};
use scupper_metrics::MetricsError;
use scupper_policy::{LoadError, LoadFault, RuntimeError};
use scupper_policy_reload::StartError;
use scupper_report::fixture;
use scupper_traces::TracesError;
use scupper_triggers::slm::SlmError;

use super::{DriverError, LocalError};

variants!(DriverError: Connect Node NoSuchNode NodeGone Discovery Selector Local LifecycleNotServed Cache Runtime Policies Reload Metrics
    Traces Slm Task Taint);
variants!(LocalError: Busy MayBeAbandoned NoDriver NothingToTakeOver Alive Unproven OfDrainRequest FlagsMissing OfOtherPods PlannersAbsent PoliciesAbsent
    ForeignCordon Adopt);

fn denied() -> io::Error {
    io::Error::from(io::ErrorKind::PermissionDenied)
}

fn unavailable(what: &str) -> ReadError {
    ReadError::Unavailable {
        what: what.to_owned(),
        message: "connection refused".to_owned(),
    }
}

fn cluster() -> Vec<DriverError> {
    vec![
        DriverError::Connect(ConnectError::NoConfig {
            tried: vec!["~/.kube/config: no such file".to_owned()],
        }),
        DriverError::Node {
            node: "worker-1".to_owned(),
            source: unavailable("node worker-1"),
        },
        DriverError::NoSuchNode {
            node: "wroker-1".to_owned(),
            nearest: vec!["worker-1".to_owned()],
        },
        DriverError::NoSuchNode {
            node: "worker-".to_owned(),
            nearest: ["worker-1", "worker-2", "worker-3"].map(str::to_owned).to_vec(),
        },
        DriverError::NoSuchNode {
            node: "gpu".to_owned(),
            nearest: Vec::new(),
        },
        DriverError::NodeGone {
            node: "worker-1".to_owned(),
            left: "policy slurm must still undo its part of the drain: it is down; to undo it: scupper uncordon worker-1"
                .to_owned(),
        },
        DriverError::Discovery(unavailable("list API groups")),
        DriverError::Selector {
            selector: "pool=gpu".to_owned(),
            source: unavailable("list nodes"),
        },
        DriverError::LifecycleNotServed,
        DriverError::Taint(WriteError::Rejected {
            what: "remove the taint node.kubernetes.io/out-of-service from node worker-1".to_owned(),
            code: 403,
            message: "nodes is forbidden".to_owned(),
        }),
    ]
}

fn local() -> Vec<LocalError> {
    let node = || "worker-1".to_owned();
    let busy_for = |trigger: Trigger, wanted| LocalError::Busy {
        node: node(),
        trigger: trigger.name().to_owned(),
        name: "drain-worker-1".to_owned(),
        phase: "evicting".to_owned(),
        intent: Intent::Drain,
        wanted,
    };
    let busy = |trigger| busy_for(trigger, Intent::Drain);
    vec![
        busy(Trigger::Command),
        busy(Trigger::Cordon),
        busy(Trigger::LifecycleEvent),
        busy_for(Trigger::LifecycleEvent, Intent::Uncordon),
        LocalError::MayBeAbandoned {
            node: node(),
            trigger: Trigger::Command.name().to_owned(),
            name: "drain-worker-1".to_owned(),
            phase: "evicting".to_owned(),
            intent: Intent::Drain,
        },
        LocalError::NoDriver {
            node: node(),
            driver: "drain".to_owned(),
        },
        LocalError::NothingToTakeOver { node: node() },
        LocalError::Alive {
            message: "the kubelet of node worker-1 is alive: it renewed its Lease 4s ago".to_owned(),
        },
        LocalError::Unproven {
            node: node(),
            trigger: Trigger::LifecycleEvent.name().to_owned(),
            name: "drain-worker-1".to_owned(),
            phase: "evicting".to_owned(),
        },
        busy(Trigger::DrainRequest),
        LocalError::OfDrainRequest {
            node: node(),
            name: "reset-gpu-3".to_owned(),
        },
        LocalError::FlagsMissing {
            node: node(),
            flags: vec!["--delete-emptydir-data", "--force"],
            pods: ["cache", "shell"].map(fixture::pod).into(),
        },
        LocalError::OfOtherPods {
            node: node(),
            name: "drain-worker-1-x2v5q".to_owned(),
            flags: vec!["--pod-selector='app in (web, db)'".to_owned()],
        },
        LocalError::PlannersAbsent {
            node: node(),
            policies: vec!["priority".to_owned()],
        },
        LocalError::PoliciesAbsent {
            node: node(),
            policies: vec!["jobs".to_owned(), "slurm".to_owned()],
        },
        LocalError::ForeignCordon { node: node() },
        LocalError::Adopt {
            node: node(),
            message: "in the server's words".to_owned(),
        },
    ]
}

fn starting() -> Vec<DriverError> {
    let load = || LoadError {
        policy: "slurm".to_owned(),
        file: "slurm.wasm".into(),
        fault: Box::new(LoadFault::BrokenOff),
    };
    vec![
        DriverError::Local(local().remove(0)),
        DriverError::Cache {
            path: "cache".into(),
            source: denied(),
        },
        DriverError::Runtime(RuntimeError::Ticker(denied())),
        DriverError::Policies(load()),
        DriverError::Reload(StartError::Policy(load())),
        DriverError::Metrics(MetricsError::Listen {
            address: ([127, 0, 0, 1], 9090).into(),
            source: denied(),
        }),
        DriverError::Traces(TracesError::NoCertificate("ca.pem".into())),
        DriverError::Slm(SlmError::Wire { what: "manager" }),
        DriverError::Task(TaskEnded::Returned {
            name: "cordon trigger",
        }),
        DriverError::Task(TaskEnded::Panicked {
            name: "cordon trigger",
            message: "in the panic's words".to_owned(),
        }),
    ]
}

#[test]
fn every_error() {
    let driver: Vec<_> = cluster().into_iter().chain(starting()).collect();
    let all = [errors("DriverError", &driver), errors("LocalError", &local())];
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("errors", all.concat());
    });
}
