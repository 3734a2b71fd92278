//! The text of every error of this crate.

use std::io;

use scupper_common::samples::errors;
use scupper_common::variants;

use super::super::MetricsError;
use super::accepted;

variants!(MetricsError: Listen);

#[test]
fn every_error() {
    let metrics = [MetricsError::Listen {
        address: ([127, 0, 0, 1], 9090).into(),
        source: io::Error::from(io::ErrorKind::AddrInUse),
    }];
    accepted("errors", &errors("MetricsError", &metrics));
}
