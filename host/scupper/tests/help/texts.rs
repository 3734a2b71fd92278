//! `--help` of every command of a program.

use std::process::Command;

/// The output of `PROGRAM COMMAND --help`, and the commands below it.
fn help(program: &str, command: &[String]) -> (String, Vec<String>) {
    let run = Command::new(program)
        .args(command)
        .arg("--help")
        // Clap's output for these depends on the machine.
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
        // Continuation lines are indented further.
        .filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(ToOwned::to_owned)
        .collect();
    (text, below)
}

/// Every command of a program with its text. `elsewhere`: commands of the other program.
pub(crate) fn all(program: &str, elsewhere: &[&str]) -> Vec<(String, String)> {
    let mut commands = vec![Vec::new()];
    let mut texts = Vec::new();
    while let Some(command) = commands.pop() {
        let (text, below) = help(program, &command);
        let lines = text.lines().count();
        assert!(
            lines <= 105,
            "{command:?}: {lines} lines are more than two screens"
        );
        assert!(
            text.contains("\nExamples:\n"),
            "{command:?} shows no example: {text}"
        );
        // `scupper-dev` appears as a part of `scupper`.
        texts.push(([&["scupper".to_owned()], &command[..]].concat().join("-"), text));
        let below = below.into_iter().map(|name| [&command[..], &[name]].concat());
        commands.extend(below.filter(|command| !elsewhere.contains(&command.join(" ").as_str())));
    }
    texts
}
