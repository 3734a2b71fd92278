//! Tests the text of every error of this crate.

use scupper_common::samples::errors;
use scupper_common::variants;

use super::CheckpointFault;

variants!(CheckpointFault: Unreadable Version Unknown OtherNode TooLarge);

#[test]
fn every_error() {
    let checkpoint = [
        CheckpointFault::Unreadable("EOF while parsing".to_owned()),
        CheckpointFault::Version(99),
        CheckpointFault::Unknown("phase"),
        CheckpointFault::OtherNode,
        CheckpointFault::TooLarge(300_000),
    ];
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("errors", errors("CheckpointFault", &checkpoint));
    });
}
