//! `--help` of the commands in `scupper-dev`, as a user reads it.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

#[path = "../../../scupper/tests/help/texts.rs"]
mod texts;

#[test]
fn every_help_text_is_the_one_that_was_accepted() {
    let texts = texts::all(env!("CARGO_BIN_EXE_scupper-dev"), &[]);
    let accepted = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/help/snapshots")).unwrap();
    assert_eq!(texts.len(), accepted.count(), "commands, and files in snapshots/");
    for (name, text) in texts {
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(name, text);
        });
    }
}
