//! `--help` of every command as a person reads it. To accept new texts: `INSTA_UPDATE=always cargo test --locked
//! --workspace --test help`, then read the difference in `snapshots/`.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod texts;

const OF_SCUPPER_DEV: [&str; 9] = [
    "demo",
    "policy bench",
    "policy build",
    "policy check",
    "policy diff",
    "policy inspect",
    "policy new",
    "policy run",
    "policy test",
];

#[test]
fn every_help_text_is_the_one_that_was_accepted() {
    let texts = texts::all(env!("CARGO_BIN_EXE_scupper"), &OF_SCUPPER_DEV);
    let accepted = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/help/snapshots")).unwrap();
    assert_eq!(texts.len(), accepted.count(), "commands, and files in snapshots/");
    for (name, text) in texts {
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(name, text);
        });
    }
}
