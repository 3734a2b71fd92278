//! Tests the text of every error of reading and using a secret.

use std::io;

use scupper_common::samples::errors;
use scupper_common::variants;

use super::inject::InjectError;
use super::read::ReadError;
use crate::AccessError;

variants!(ReadError: File NotAFile Cluster NotCaptured NotText Size);
variants!(InjectError: NotJson NoString);
variants!(AccessError: NotFound Unavailable);

#[test]
fn every_error() {
    let reading = [
        ReadError::File {
            path: "token".into(),
            source: io::Error::from(io::ErrorKind::NotFound),
        },
        ReadError::NotAFile("token".into()),
        ReadError::Cluster("secret shop/token not found".to_owned()),
        ReadError::NotCaptured,
        ReadError::NotText,
        ReadError::Size(3),
    ];
    let injecting = [
        InjectError::NotJson { line: 1, column: 7 },
        InjectError::NoString("/auth".to_owned()),
    ];
    let access = [
        AccessError::NotFound("pod shop/web".to_owned()),
        AccessError::Unavailable("connection refused".to_owned()),
    ];
    let all = [
        errors("ReadError", &reading),
        errors("InjectError", &injecting),
        errors("AccessError", &access),
    ];
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("errors", all.concat());
    });
}
