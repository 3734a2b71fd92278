//! `--help` of every command as a person reads it. To accept new texts: `INSTA_UPDATE=always cargo test --locked
//! --workspace --test help`, then read the difference in `snapshots/`.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::process::Command;

/// What `scupper COMMAND --help` prints, and the commands below it.
fn help(command: &[String]) -> (String, Vec<String>) {
    let run = Command::new(env!("CARGO_BIN_EXE_scupper"))
        .args(command)
        .arg("--help")
        // What clap prints of them is this machine's.
        .env_clear()
        .output()
        .unwrap();
    assert!(run.status.success() && run.stderr.is_empty(), "{run:?}");
    let text = String::from_utf8(run.stdout).unwrap();
    let below = text
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        // What goes on over several lines is indented further.
        .filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(ToOwned::to_owned)
        .collect();
    (text, below)
}

#[test]
fn every_help_text_is_the_one_that_was_accepted() {
    let mut commands = vec![Vec::new()];
    let mut seen = 0;
    while let Some(command) = commands.pop() {
        let (text, below) = help(&command);
        let name = [&["scupper".to_owned()], &command[..]].concat().join("-");
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(name, text);
        });
        let lines = text.lines().count();
        assert!(
            lines <= 105,
            "{command:?}: {lines} lines are more than two screens"
        );
        seen += 1;
        commands.extend(below.into_iter().map(|name| [&command[..], &[name]].concat()));
    }
    assert!(seen > 20, "only {seen} commands were found");
}
