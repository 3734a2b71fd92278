//! Tests the text of every error and notice about replacing policies.

use std::io;

use scupper_common::samples::{complete, errors};
use scupper_common::variants;
use scupper_engine::HookPhase;
use scupper_policy::{LoadError, LoadFault, PrivateDirError};

use super::{ControlError, ReloadNotice, StartError, StoreError};

variants!(ControlError: Ask Refused Answer);
variants!(StartError: Configuration Moving RolledBack Policy Store);
variants!(StoreError: Directory File);
variants!(ReloadNotice: Activated Rejected RolledBack Degraded HookRestarted Removed);

fn denied() -> io::Error {
    io::Error::from(io::ErrorKind::PermissionDenied)
}

fn storing() -> Vec<StoreError> {
    vec![
        StoreError::Directory(PrivateDirError::Open {
            path: "state".into(),
            source: denied(),
        }),
        StoreError::File {
            what: "write",
            name: "slurm.wasm".to_owned(),
            path: "state".into(),
            source: denied(),
        },
    ]
}

fn notices() -> Vec<ReloadNotice> {
    let name = || "slurm".to_owned();
    let digest = || "0a1b2c3d4e5f".to_owned();
    let reason = || "it is not a regular file".to_owned();
    let rejected = |name: &str, digest| ReloadNotice::Rejected {
        name: name.to_owned(),
        digest,
        step: "read",
        reason: reason(),
    };
    let degraded = |name: &str| ReloadNotice::Degraded {
        name: name.to_owned(),
        digest: digest(),
        reason: reason(),
    };
    let restarted = ReloadNotice::HookRestarted {
        name: name(),
        digest: digest(),
        phase: HookPhase::BeforeDrain,
        wrote: 1,
        reads: 2,
    };
    let rolled_back = |is_shadow| ReloadNotice::RolledBack {
        name: name(),
        from: digest(),
        to: "5f4e3d2c1b0a".to_owned(),
        generation: 8,
        is_shadow,
        reason: "an operator requested it".to_owned(),
    };
    vec![
        ReloadNotice::Activated {
            is_shadow: false,
            name: name(),
            digest: digest(),
            version: "1.2.0".to_owned(),
            generation: 7,
        },
        rejected("", None),
        rejected("slurm", None),
        rejected("slurm", Some(digest())),
        rolled_back(false),
        rolled_back(true),
        degraded(""),
        degraded("slurm"),
        restarted,
        ReloadNotice::Removed { name: name() },
    ]
}

#[test]
fn every_error_and_notice() {
    let control = [
        ControlError::Ask {
            path: "state/control.sock".into(),
            source: io::Error::from(io::ErrorKind::NotFound),
        },
        ControlError::Refused("in the driver's words".to_owned()),
        ControlError::Answer,
    ];
    let starting = [
        StartError::Configuration("in the reader's words".to_owned()),
        StartError::Moving {
            file: "slurm.wasm".into(),
            scans: 7,
        },
        StartError::RolledBack("slurm".to_owned()),
        StartError::Policy(LoadError {
            policy: "slurm".to_owned(),
            file: "slurm.wasm".into(),
            fault: Box::new(LoadFault::BrokenOff),
        }),
        StartError::Store(storing().remove(0)),
    ];
    let errors = [
        errors("ControlError", &control),
        errors("StartError", &starting),
        errors("StoreError", &storing()),
    ];
    let notices = notices();
    complete(&notices);
    let notices: Vec<_> = notices.iter().map(ToString::to_string).collect();
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("errors", errors.concat());
        insta::assert_snapshot!("notices", notices.join("\n"));
    });
}
