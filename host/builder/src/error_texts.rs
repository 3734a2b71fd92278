//! Tests the text of every error of a build.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use scupper_common::samples::errors;
use scupper_common::variants;

use super::BuildError;

variants!(BuildError: NoCrate NoPackage NoCdylib Start Metadata Answer NoTarget Compile Module Encode NoPolicy Write);

fn denied() -> io::Error {
    io::Error::from(io::ErrorKind::PermissionDenied)
}

#[test]
fn every_error() {
    let failed = || ExitStatus::from_raw(101 << 8);
    let all = [
        BuildError::NoCrate("mine".into()),
        BuildError::NoPackage("mine".into()),
        BuildError::NoCdylib {
            package: "mine".to_owned(),
        },
        BuildError::Start(io::Error::from(io::ErrorKind::NotFound)),
        BuildError::Metadata(failed()),
        BuildError::Answer(serde_json::from_str::<u32>("\"one\"").unwrap_err()),
        BuildError::NoTarget,
        BuildError::Compile(failed()),
        BuildError::Module {
            path: "target/mine.wasm".into(),
            source: denied(),
        },
        BuildError::Encode("in the encoder's words".to_owned()),
        BuildError::NoPolicy("mine".to_owned()),
        BuildError::Write {
            path: "target/policies/mine.wasm".into(),
            source: denied(),
        },
    ];
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("errors", errors("BuildError", &all));
    });
}
