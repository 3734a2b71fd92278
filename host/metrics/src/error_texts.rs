//! Tests the text of every error of this crate.

use std::io;

use scupper_common::samples::errors;
use scupper_common::variants;

use super::MetricsError;

variants!(MetricsError: Listen);

#[test]
fn every_error() {
    let metrics = [MetricsError::Listen {
        address: ([127, 0, 0, 1], 9090).into(),
        source: io::Error::from(io::ErrorKind::AddrInUse),
    }];
    let texts = errors("MetricsError", &metrics);
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("errors", texts);
    });
}
