//! Tests the text of every error of a demo.

use std::io;

use scupper_common::samples::errors;
use scupper_common::variants;
use scupper_driver::DriverError;
use scupper_simulator::{api, kubelet};

use super::demo_cluster::DemoError;

variants!(DemoError: Server Scene Client Kubelet Folder Driver Environment Stuck Command Slurm OpenStack Signals Stopped);

fn denied() -> io::Error {
    io::Error::from(io::ErrorKind::PermissionDenied)
}

fn simulated() -> Vec<DemoError> {
    vec![
        DemoError::Server(api::StartError::Bind {
            port: 6443,
            source: denied(),
        }),
        DemoError::Scene(api::StoreError::NotFound("node worker-1".to_owned())),
        DemoError::Client(kube::Error::LinesCodecMaxLineLengthExceeded),
        DemoError::Kubelet(kubelet::StartError::Folder {
            path: "plugins_registry".into(),
            source: denied(),
        }),
        DemoError::Folder(denied()),
    ]
}

#[test]
fn every_error() {
    let options = scupper::OptionsError(vec!["OTEL_EXPORTER_OTLP_ENDPOINT has no host".to_owned()]);
    let mut all = simulated();
    all.extend([
        DemoError::Driver(DriverError::LifecycleNotServed),
        DemoError::Environment(options),
        DemoError::Stuck {
            event: "drain-worker-1".to_owned(),
            message: "deadline has elapsed".to_owned(),
        },
        DemoError::Command {
            typed: "scupper drain worker-1".to_owned(),
            message: "exit status: 5".to_owned(),
        },
        DemoError::Slurm("the script ended with 1".to_owned()),
        DemoError::OpenStack("the script ended with 1".to_owned()),
        DemoError::Signals(denied()),
        DemoError::Stopped,
    ]);
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("errors", errors("DemoError", &all));
    });
}
