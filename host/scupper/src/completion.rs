//! Completion in shells: `scupper completion` prints a script, and the script asks this program for candidates.
//!
//! For `kubectl scupper`, `kubectl` runs `kubectl_complete-scupper`, which asks with `__complete`.

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum;
use clap_complete::engine::CompletionCandidate;
use clap_complete::env::{Bash, CompleteEnv, EnvCompleter, Fish, Powershell, Zsh};

use super::exit::Exit;
use crate::output::print;
use scupper_cluster::Connection;

/// Names the shell that asks for candidates.
const VARIABLE: &str = "SCUPPER_COMPLETE";

/// What `kubectl_complete-scupper` asks with, as in `kubectl`'s own plugins.
const FOR_KUBECTL: &str = "__complete";

/// `kubectl`'s word for: these are all, do not offer files.
const NO_FILES: &str = ":4";

/// People wait for it with a finger on the Tab key.
const LIMIT: Duration = Duration::from_secs(2);

const KUBECTL_SCRIPT: &str = "\
#!/bin/sh
# Save as kubectl_complete-scupper, executable, in the PATH: `kubectl scupper` then completes as `scupper` does.
exec kubectl scupper __complete \"$@\"";

/// `scupper completion`
#[derive(Debug, clap::Args)]
pub struct CompletionArgs {
    /// Shell, or kubectl for the script kubectl_complete-scupper
    #[arg(
        value_enum,
        hide_possible_values = true,
        value_name = "bash|zsh|fish|powershell|kubectl"
    )]
    pub shell: Shell,
}

/// Who completes.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Shell {
    /// Bash.
    Bash,
    /// Zsh.
    Zsh,
    /// Fish.
    Fish,
    /// PowerShell.
    Powershell,
    /// `kubectl scupper`, in any shell.
    Kubectl,
}

/// Prints the script.
pub(super) fn run(args: &CompletionArgs) -> ExitCode {
    let shell: &dyn EnvCompleter = match args.shell {
        Shell::Bash => &Bash,
        Shell::Zsh => &Zsh,
        Shell::Fish => &Fish,
        Shell::Powershell => &Powershell,
        Shell::Kubectl => {
            print(KUBECTL_SCRIPT);
            return Exit::Done.into();
        }
    };
    let mut script = Vec::new();
    match shell.write_registration(VARIABLE, "scupper", "scupper", "scupper", &mut script) {
        Ok(()) => {
            print(String::from_utf8_lossy(&script).trim_end());
            Exit::Done.into()
        }
        Err(_) => Exit::Bug.into(),
    }
}

/// Answers a shell or `kubectl` that asks for candidates; `false`: this is a command like any other.
pub fn answered(command: fn() -> clap::Command) -> bool {
    let args: Vec<OsString> = std::env::args_os().collect();
    let directory = std::env::current_dir().ok();
    if args.get(1).is_some_and(|word| word == FOR_KUBECTL) {
        let words = [&["scupper".into()], args.get(2..).unwrap_or_default()].concat();
        let last = words.len().saturating_sub(1);
        let found = clap_complete::engine::complete(&mut command(), words, last, directory.as_deref());
        for candidate in found.unwrap_or_default() {
            print(&as_line(&candidate));
        }
        print(NO_FILES);
        return true;
    }
    let asked = CompleteEnv::with_factory(command).var(VARIABLE);
    match asked.try_complete(args, directory.as_deref()) {
        Ok(answered) => answered,
        Err(error) => {
            write!(std::io::stderr(), "{error}").unwrap_or_default();
            true
        }
    }
}

/// The command being completed is one of `scupper-dev`, whose arguments this program does not know.
pub(super) fn is_for_dev_program() -> bool {
    let args: Vec<String> = std::env::args().collect();
    let typed = match args.iter().position(|word| word == "--") {
        Some(end) if std::env::var_os(VARIABLE).is_some() => args.get(end + 2..),
        _ if args.get(1).is_some_and(|word| word == FOR_KUBECTL) => args.get(2..),
        _ => None,
    };
    match typed.unwrap_or_default() {
        [command, _, ..] if command == "demo" => true,
        [command, of_policy, _, ..] => {
            command == "policy" && !["list", "rollback", "help"].contains(&of_policy.as_str())
        }
        _ => false,
    }
}

/// A candidate and what it is, as `kubectl` reads them.
fn as_line(candidate: &CompletionCandidate) -> String {
    let value = candidate.get_value().to_string_lossy();
    let help = candidate.get_help().map(ToString::to_string);
    match help.as_deref().and_then(|help| help.lines().next()) {
        Some(help) => format!("{value}\t{help}"),
        None => value.into_owned(),
    }
}

/// The cluster's nodes whose names begin so and that are not typed yet. Whatever goes wrong, there are none.
pub(super) fn nodes(current: &OsStr) -> Vec<CompletionCandidate> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let connection = connection(&words);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else {
        return Vec::new();
    };
    let asked =
        runtime.block_on(async { tokio::time::timeout(LIMIT, scupper_driver::node_names(connection)).await });
    // A credential plugin may hang in a thread of its own.
    runtime.shutdown_background();
    let names = asked.ok().and_then(Result::ok).unwrap_or_default();
    let current = current.to_string_lossy();
    let begins = |name: &String| name.starts_with(&*current);
    let is_new = |name: &String| *name == current || !words.contains(name);
    let names = names.into_iter().filter(begins).filter(is_new);
    names.map(CompletionCandidate::new).collect()
}

/// The connection flags among the words. Bash makes three words of `--context=dev`.
fn connection(words: &[String]) -> Connection {
    let value = |flag: &str| {
        let with_value = format!("{flag}=");
        let at = words
            .iter()
            .position(|word| word == flag || word.starts_with(&with_value))?;
        let mut rest = words.iter().skip(at);
        let value = match rest.next()?.strip_prefix(&with_value) {
            Some(value) => value,
            None => rest.find(|word| *word != "=")?,
        };
        Some(value.to_owned())
    };
    Connection {
        kubeconfig: value("--kubeconfig").map(Into::into),
        context: value("--context"),
        cluster: value("--cluster"),
        user: value("--user"),
        impersonate: value("--as"),
        request_timeout: Some(LIMIT),
        ..Connection::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_flags_are_found_in_each_way_to_type_them() {
        for words in [
            &["drain", "--context", "dev", "--user=me", "w"][..],
            &["drain", "w", "--user", "=", "me", "--context", "=", "dev"],
        ] {
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            let found = connection(&words);
            assert_eq!(
                (found.context.as_deref(), found.user.as_deref(), found.cluster),
                (Some("dev"), Some("me"), None)
            );
        }
    }
}
