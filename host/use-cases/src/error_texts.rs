//! Tests the text of every error of this crate.

use scupper_cluster::{ReadError, WriteError};
use scupper_common::samples::errors;
use scupper_common::variants;
use scupper_driver::{DrainRequestPlanError, DriverError};
use scupper_report::fixture;
use scupper_runner::NoPlan;
use scupper_triggers::drain_request::NoDrain;

use super::{CommandError, HandOverError};

variants!(CommandError: Driver HandOver Rights NoPlan DrainRequest Cleanup);
variants!(HandOverError: Discover NotOffered NotReleased OwnFlag Ask Follow Withdraw TakeBack);

fn reading(what: &str) -> ReadError {
    ReadError::Forbidden {
        what: what.to_owned(),
        message: "in the server's words".to_owned(),
    }
}

fn writing(what: &str) -> WriteError {
    WriteError::Rejected {
        what: what.to_owned(),
        code: 403,
        message: "in the server's words".to_owned(),
    }
}

fn handing_over() -> Vec<HandOverError> {
    let driver = || "drain".to_owned();
    vec![
        HandOverError::Discover {
            driver: driver(),
            source: reading("list LifecycleTransitions"),
        },
        HandOverError::NotOffered {
            node: "worker-1".to_owned(),
            driver: driver(),
            what: "drain",
            pod: Box::new(fixture::pod("scupper-x7d2p")),
            is_ready: false,
        },
        HandOverError::NotReleased {
            node: "worker-1".to_owned(),
            event: "drain-worker-1-x7d2p".to_owned(),
            what: "drain",
        },
        HandOverError::OwnFlag {
            driver: driver(),
            flag: "--disable-eviction".to_owned(),
        },
        HandOverError::Ask(writing("create a LifecycleEvent")),
        HandOverError::Follow {
            event: "drain-worker-1-x7d2p".to_owned(),
            source: reading("read LifecycleEvent drain-worker-1-x7d2p"),
        },
        HandOverError::Withdraw {
            event: "drain-worker-1-x7d2p".to_owned(),
            node: "worker-1".to_owned(),
            source: writing("delete LifecycleEvent drain-worker-1-x7d2p"),
        },
        HandOverError::TakeBack(writing("delete LifecycleEvent drain-worker-1-x7d2p")),
    ]
}

fn no_drain(source: NoDrain) -> CommandError {
    let request = "nvsentinel/gpu-0".to_owned();
    CommandError::DrainRequest(DrainRequestPlanError::NoDrain { request, source })
}

fn commands() -> Vec<CommandError> {
    vec![
        CommandError::Driver(DriverError::LifecycleNotServed),
        CommandError::HandOver(handing_over().remove(1)),
        CommandError::Rights(reading("review access")),
        CommandError::NoPlan(NoPlan {
            node: "worker-1".to_owned(),
            message: "policy slurm failed".to_owned(),
        }),
        CommandError::DrainRequest(DrainRequestPlanError::NotServed {
            namespace: "shop".to_owned(),
            served: vec!["nvsentinel".to_owned()],
        }),
        CommandError::DrainRequest(DrainRequestPlanError::Read(reading("list drainrequests"))),
        no_drain(NoDrain::Missing),
        no_drain(NoDrain::Deleting),
        no_drain(NoDrain::Answered("DrainComplete".to_owned())),
        no_drain(NoDrain::AnsweredAtOnce {
            condition: "DrainFailed".to_owned(),
            reason: "InvalidRequest".to_owned(),
            message: "spec.nodeName is missing".to_owned(),
        }),
        CommandError::Cleanup(writing("delete the LifecycleTransition drain-worker-1")),
    ]
}

#[test]
fn every_error() {
    let all = [
        errors("CommandError", &commands()),
        errors("HandOverError", &handing_over()),
    ];
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("errors", all.concat());
    });
}
