//! How commands print: results as text, JSON or YAML on standard output, errors on standard error.

use std::error::Error;
use std::io::{IsTerminal, Write as _};
use std::process::ExitCode;

use clap::ValueEnum;
use scupper_common::text::spaced_line;
use scupper_driver::{DrainRequestPlanError, DriverError, LocalError};
use scupper_report::{Format, PodList, tone_of};
use scupper_triggers::drain_request::NoDrain;
use scupper_triggers::slm::SlmError;
use serde_json::Value;

use crate::exit::Exit;
use crate::options::OptionsError;
use scupper_use_cases::{CommandError, HandOverError};

/// What is logged unless the user says otherwise.
pub const DEFAULT_LOG: &str = "warn,scupper=info";

/// How results and the log are printed.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Format: human, wide (one line per pod), json, or yaml for a result
    #[arg(
        long,
        short,
        global = true,
        value_enum,
        default_value_t = Output::Human,
        hide_possible_values = true,
        value_name = "FORMAT"
    )]
    pub output: Output,
    /// Colours: auto (in a terminal), always or never
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t = ColourMode::Auto,
        hide_possible_values = true,
        value_name = "WHEN"
    )]
    pub color: ColourMode,
    /// Log filter, for example debug or scupper=debug,kube=info
    #[arg(
        long,
        global = true,
        env = "SCUPPER_LOG",
        hide_env_values = true,
        default_value = DEFAULT_LOG,
        value_name = "FILTER"
    )]
    pub log: String,
}

/// When something is printed in colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ColourMode {
    /// In a terminal.
    Auto,
    /// Also to a pipe or a file.
    Always,
    /// Never.
    Never,
}

impl ColourMode {
    /// Whether a stream gets colours.
    pub fn applies(self, stream: &impl IsTerminal) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => stream.is_terminal() && !is_without_colours(),
        }
    }
}

/// <https://no-color.org>: any value but the empty one.
fn is_without_colours() -> bool {
    let is_set = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    is_set || std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Lines for people.
    Human,
    /// Lines for people, with one for each pod.
    Wide,
    /// JSON, one object a line.
    Json,
    /// YAML, one document for each object.
    Yaml,
}

impl Output {
    /// Whether it is for people or for programs. A stream of steps is JSON lines, because YAML cannot show one.
    pub const fn format(self) -> Format {
        match self {
            Self::Human | Self::Wide => Format::Human,
            Self::Json | Self::Yaml => Format::Json,
        }
    }

    /// A result for programs.
    pub fn document(self, value: &Value) -> String {
        match self {
            Self::Yaml => crate::yaml::document(value),
            Self::Human | Self::Wide | Self::Json => value.to_string(),
        }
    }

    /// How pods are listed for people.
    pub const fn pod_list(self) -> PodList {
        match self {
            Self::Wide => PodList::Each,
            Self::Human | Self::Json | Self::Yaml => PodList::ByWorkload,
        }
    }
}

/// The exit code of an error of the driver's crate.
pub(crate) const fn exit_of_driver(error: &DriverError) -> Exit {
    match error {
        DriverError::Connect(_)
        | DriverError::Node { .. }
        | DriverError::NodeGone { .. }
        | DriverError::NoSuchNode { .. }
        | DriverError::Discovery(_)
        | DriverError::Taint(_)
        | DriverError::Selector { .. }
        | DriverError::LifecycleNotServed => Exit::Cluster,
        DriverError::Cache { .. }
        | DriverError::Policies(_)
        | DriverError::Reload(_)
        | DriverError::Metrics(_)
        | DriverError::Traces(_) => Exit::Config,
        // As the planner's refusal.
        DriverError::Local(LocalError::Alive { .. }) => Exit::Policy,
        DriverError::Local(_) => Exit::DrainFailed,
        DriverError::Slm(SlmError::Wire { .. }) | DriverError::Task(_) | DriverError::Runtime(_) => Exit::Bug,
        DriverError::Slm(_) => Exit::Config,
    }
}

/// The exit code of a command's error.
pub(crate) const fn exit_of(error: &CommandError) -> Exit {
    match error {
        CommandError::Driver(error) => exit_of_driver(error),
        CommandError::HandOver(HandOverError::OwnFlag { .. }) => Exit::Config,
        CommandError::HandOver(HandOverError::NotOffered { .. } | HandOverError::NotReleased { .. }) => {
            Exit::DrainFailed
        }
        CommandError::DrainRequest(error) => exit_of_request(error),
        CommandError::HandOver(_)
        | CommandError::Rights(_)
        | CommandError::NoPlan(_)
        | CommandError::Cleanup(_) => Exit::Cluster,
    }
}

const fn exit_of_request(error: &DrainRequestPlanError) -> Exit {
    match error {
        DrainRequestPlanError::NotServed { .. } => Exit::Config,
        DrainRequestPlanError::Read(_)
        | DrainRequestPlanError::NoDrain {
            source: NoDrain::Missing,
            ..
        } => Exit::Cluster,
        DrainRequestPlanError::NoDrain { .. } => Exit::DrainFailed,
    }
}

/// Prints the error with which a command ended.
pub(crate) fn failed(error: &CommandError) -> ExitCode {
    fail(error, exit_of(error))
}

/// Prints the error with which the driver, or a drain in this process, ended.
pub fn driver_failed(error: &DriverError) -> ExitCode {
    fail(error, exit_of_driver(error))
}

/// What is wrong with the values of flags.
pub fn wrong_options(error: &OptionsError) -> ExitCode {
    fail(error, Exit::Config)
}

/// One error with all its causes: `error: could not load the policies: policy slurm: …`.
pub fn fail(error: &dyn Error, exit: Exit) -> ExitCode {
    complain(&scupper_driver::chain(error));
    exit.into()
}

/// Refuses `--output yaml` for a command that prints a stream.
pub fn no_yaml() -> ExitCode {
    complain("--output yaml: this command prints steps as they happen, or text; use json or human");
    Exit::Usage.into()
}

/// Says what is wrong.
pub(crate) fn complain(text: &str) {
    let mut stderr = std::io::stderr().lock();
    for line in text.lines() {
        writeln!(stderr, "error: {}", spaced_line(line)).unwrap_or_default();
    }
}

/// Says what is dangerous, whatever --log says.
pub(crate) fn warn(text: &str) {
    writeln!(std::io::stderr().lock(), "warning: {text}").unwrap_or_default();
}

/// Says what else was done, where standard output has the result.
pub fn inform(text: &str) {
    writeln!(std::io::stderr().lock(), "{text}").unwrap_or_default();
}

/// A selector that chooses no node is no error, as for kubectl.
pub(crate) fn inform_of_no_node() {
    inform("no node has these labels");
}

/// Prints lines for people, folded between words where the terminal is narrower, and with colours.
pub(crate) fn print_lines(text: &str) {
    print(scupper_screen::for_people(text, tone_of).trim_end_matches('\n'));
}

/// A reader that has closed its end, as `head` does, is not an error.
pub fn print(text: &str) {
    writeln!(std::io::stdout().lock(), "{text}").unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use scupper_common::tasks::TaskEnded;

    use super::*;

    #[test]
    fn what_ends_a_driver_by_a_bug_is_told_from_what_the_operator_can_mend() {
        let ended = TaskEnded::Returned {
            name: "cordon trigger",
        };
        assert_eq!(exit_of_driver(&ended.into()), Exit::Bug);
        let closed = SlmError::Wire { what: "manager" };
        assert_eq!(exit_of_driver(&closed.into()), Exit::Bug);
        let path = "plugins".into();
        assert_eq!(
            exit_of_driver(&SlmError::NoDirectory { path }.into()),
            Exit::Config
        );
    }
}
