//! What hands that are used to `kubectl` type: flags of the connection before the verb, and a flag that has another name now.
//! It also prints `-h`, which shows only the everyday flags.

use std::ffi::OsString;

use clap::{Arg, Args as _, Command};

use crate::args::ClusterArgs;
use crate::output::OutputArgs;

/// What `kubectl drain` once called a flag, and what to type now.
const RENAMED: [(&str, &str); 1] = [(
    "--delete-local-data",
    "kubectl and scupper call it --delete-emptydir-data; --local-data is about local PersistentVolumes",
)];

/// The arguments with the flags of the connection behind the verb, where it reads them.
pub(crate) fn arranged(args: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut args = args.into_iter();
    let mut arranged: Vec<OsString> = args.next().into_iter().collect();
    let rest: Vec<OsString> = args.collect();
    let before = length_of_flags(&rest);
    let (flags, verb) = rest.split_at(before);
    // Without a verb there is nothing to move them behind.
    if verb.is_empty() {
        arranged.extend(rest);
        return arranged;
    }
    let end = verb.iter().position(|arg| arg == "--").unwrap_or(verb.len());
    let (words, literal) = verb.split_at(end);
    arranged.extend([words, flags, literal].into_iter().flatten().cloned());
    arranged
}

/// How many of the first arguments are flags of the connection and of the output, with their values.
fn length_of_flags(args: &[OsString]) -> usize {
    let known = OutputArgs::augment_args(ClusterArgs::augment_args(Command::new("flags")));
    let mut length = 0;
    while let Some(flag) = args.get(length).and_then(|arg| arg.to_str()) {
        let (name, is_whole) = match (flag.split_once('='), flag.split_at_checked(2)) {
            (Some((name, _)), _) => (name, true),
            // `-ojson`
            (None, Some((name, value))) if !flag.starts_with("--") && !value.is_empty() => (name, true),
            (None, _) => (flag, false),
        };
        let is_named = |arg: &&Arg| {
            let long = name
                .strip_prefix("--")
                .is_some_and(|name| arg.get_long() == Some(name));
            let short = arg.get_short().is_some_and(|short| name == format!("-{short}"));
            long || short
        };
        let Some(arg) = known.get_arguments().find(is_named) else {
            break;
        };
        let takes_next = arg.get_action().takes_values() && !arg.is_require_equals_set();
        length += if takes_next && !is_whole { 2 } else { 1 };
    }
    length.min(args.len())
}

/// What to type instead of a flag that has another name now.
pub(crate) fn renamed(args: &[OsString]) -> Option<String> {
    let given = args.iter().take_while(|arg| *arg != "--");
    let mut given = given.filter_map(|arg| arg.to_str()?.split('=').next());
    given.find_map(|flag| {
        let (old, words) = RENAMED.iter().find(|(old, _)| *old == flag)?;
        Some(format!("{old}: {words}"))
    })
}

/// The short help, if it is asked for: flags that have a heading of their own are left out. Clap would print the long one
/// with an empty line behind each flag.
pub(crate) fn short_help(args: &[OsString], mut command: Command) -> Option<String> {
    let mut words = args.iter().skip(1).take_while(|arg| *arg != "--");
    if !words.clone().any(|arg| arg == "-h") {
        return None;
    }
    command.build();
    while let Some(below) = words
        .next()
        .and_then(|word| command.find_subcommand(word).cloned())
    {
        command = below;
    }
    // The other program answers for its commands.
    if command.is_disable_help_flag_set() {
        return None;
    }
    let mut is_shorter = false;
    command = command.mut_args(|arg| match arg.get_help_heading() {
        Some(_) if !arg.is_hide_set() => {
            is_shorter = true;
            arg.hide(true)
        }
        _ => arg,
    });
    let more = if is_shorter {
        "\n--help shows all flags.\n"
    } else {
        ""
    };
    Some(format!("{}{more}", command.render_help()))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(OsString::from).collect()
    }

    #[track_caller]
    fn becomes(typed: &str, read: &str) {
        assert_eq!(arranged(words(typed)), words(read), "{typed}");
    }

    #[test]
    fn flags_of_the_connection_may_stand_before_the_verb() {
        becomes(
            "scupper --context prod plan node-0",
            "scupper plan node-0 --context prod",
        );
        becomes(
            "scupper --kubeconfig=f --insecure-skip-tls-verify -o json drain -- node-0",
            "scupper drain --kubeconfig=f --insecure-skip-tls-verify -o json -- node-0",
        );
        becomes(
            "scupper -ojson --as jane status --watch",
            "scupper status --watch -ojson --as jane",
        );
    }

    #[test]
    fn all_else_stays_as_it_was_typed() {
        for typed in [
            "scupper",
            "scupper --help",
            "scupper --context",
            "scupper --context prod",
            "scupper --force drain node-0",
            "scupper drain --context prod node-0",
        ] {
            becomes(typed, typed);
        }
    }

    #[test]
    fn a_flag_that_kubectl_has_renamed_is_explained() {
        let said = renamed(&words("scupper drain n --delete-local-data=true"));
        assert!(said.is_some_and(|said| said.contains("--delete-emptydir-data")));
        for fine in [
            "scupper drain n --delete-emptydir-data",
            "scupper drain -- --delete-local-data",
        ] {
            assert_eq!(renamed(&words(fine)), None);
        }
    }

    #[test]
    fn the_short_help_has_what_is_typed_each_day() {
        let help = |text: &str| short_help(&words(text), crate::Args::command());
        let drain = help("scupper drain -h").unwrap_or_default();
        for there in [
            "Usage: scupper drain ",
            "--timeout",
            "Examples:",
            "--help shows all flags.",
        ] {
            assert!(drain.contains(there), "{there}: {drain}");
        }
        assert!(!drain.contains("--kubeconfig"), "{drain}");
        assert!(drain.lines().count() <= 40, "more than one screen: {drain}");
        assert!(help("scupper -h").is_some_and(|help| help.contains("kubelet-plugin")));
        for other in ["scupper drain --help", "scupper drain n -- -h"] {
            assert_eq!(help(other), None);
        }
    }
}
