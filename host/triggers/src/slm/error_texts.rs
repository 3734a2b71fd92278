//! Tests the text of every error of the SLM trigger.

use std::io;
use std::time::Duration;

use scupper_common::samples::errors;
use scupper_common::variants;

use super::{ClaimError, OptionsError, SlmError};

variants!(OptionsError: DriverName NodeName Instance TooLong Rotation);
variants!(SlmError: Options NoDirectory NotWritable Listen Wire);
variants!(ClaimError: Conflict Forbidden Refused Unavailable);

fn denied() -> io::Error {
    io::Error::from(io::ErrorKind::PermissionDenied)
}

#[test]
fn every_error() {
    let options = [
        OptionsError::DriverName {
            name: "Drain!".to_owned(),
        },
        OptionsError::NodeName,
        OptionsError::Instance {
            instance: "a/b".to_owned(),
        },
        OptionsError::TooLong {
            path: "plugins_registry/drain.sock".into(),
        },
        OptionsError::Rotation(Duration::from_secs(7200)),
    ];
    let slm = [
        SlmError::Options(OptionsError::NodeName),
        SlmError::NoDirectory {
            path: "plugins".into(),
        },
        SlmError::NotWritable {
            path: "plugins".into(),
            source: denied(),
        },
        SlmError::Listen {
            path: "plugins/drain.sock".into(),
            source: denied(),
        },
        SlmError::Wire { what: "manager" },
    ];
    let message = || "in the server's words".to_owned();
    let claims = [
        ClaimError::Conflict(message()),
        ClaimError::Forbidden(message()),
        ClaimError::Refused(message()),
        ClaimError::Unavailable(message()),
    ];
    let all = [
        errors("OptionsError", &options),
        errors("SlmError", &slm),
        errors("ClaimError", &claims),
    ];
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("errors", all.concat());
    });
}
