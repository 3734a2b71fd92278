//! What can be typed about recordings.

use std::path::PathBuf;

use clap::Subcommand;
use scupper_driver::NodeSelection;
use scupper_recording::{Directory, Limits, RecordingTarget};

use crate::args::PolicyArgs;
use crate::options::{OptionsError, Problems, state_dir};
use crate::policy::DriverArgs;

/// The directory in a driver's state directory.
const IN_STATE: &str = "recordings";
/// The variable of `--record`.
const VARIABLE: &str = "SCUPPER_RECORD";

/// Where a command records its drains.
#[derive(Clone, Debug, clap::Args)]
pub struct RecordArgs {
    /// Record in this new FILE, or in DIR/
    #[arg(
        long,
        value_name = "FILE",
        env = VARIABLE,
        hide_env_values = true,
        help_heading = "Output"
    )]
    pub record: Option<PathBuf>,
}

impl RecordArgs {
    /// Where the drains of some nodes, or of one, are recorded. A flag is checked before a drain begins; a variable may be
    /// set for other commands, and holds none up.
    pub(crate) fn target(&self, nodes: &NodeSelection) -> Result<RecordingTarget, OptionsError> {
        let target = self
            .record
            .clone()
            .map_or(RecordingTarget::Nowhere, RecordingTarget::of_person);
        let RecordingTarget::File(file) = &target else {
            return Ok(target);
        };
        let is_one = matches!(nodes, NodeSelection::Named(names) if names.len() == 1);
        let file = file.display();
        let wrong = |problem| Err(OptionsError(vec![problem]));
        match (self.is_flag(), is_one) {
            (true, false) => wrong(format!(
                "--record {file}: several nodes need a directory: {file}/"
            )),
            (true, true) if self.record.as_ref().is_some_and(|file| file.exists()) => wrong(format!(
                "--record {file}: the file exists; name a new one, or a directory, with / at its end"
            )),
            _ => Ok(target),
        }
    }

    /// It was typed.
    pub(crate) fn is_flag(&self) -> bool {
        self.record.is_some() && self.record != std::env::var_os(VARIABLE).map(PathBuf::from)
    }
}

/// What a driver records.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Recordings of drains")]
pub struct DriverRecordArgs {
    /// Directory [default: in --state-dir]
    #[arg(long, value_name = "DIR", env = "SCUPPER_RECORDINGS", hide_env_values = true)]
    pub recordings: Option<PathBuf>,
    /// What to keep; number=0: nothing
    #[arg(
        long,
        value_name = "LIMITS",
        env = "SCUPPER_RECORDING_LIMITS",
        hide_env_values = true,
        default_value = "number=200,size=64Mi,age=720h"
    )]
    pub recording_limits: String,
}

impl DriverRecordArgs {
    /// The place.
    pub(crate) fn place(&self, problems: &mut Problems, state: Option<PathBuf>) -> RecordingTarget {
        let limits = problems.check(limits(&self.recording_limits));
        match (directory(self.recordings.clone(), state), limits) {
            (Some(directory), Some(limits)) if limits.number > 0 => {
                RecordingTarget::Directory(Directory::new(directory, Some(limits)))
            }
            _ => RecordingTarget::Nowhere,
        }
    }
}

/// What is not named keeps its default.
fn limits(text: &str) -> Result<Limits, String> {
    let mut limits = Limits::default();
    for part in text.split(',') {
        let wrong = |what: &str| format!("--recording-limits {text}: {part} is not {what}");
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        match name {
            "number" => limits.number = value.parse().map_err(|_| wrong("a number, such as number=200"))?,
            "size" => {
                let bytes = scupper_config::quantity(value).filter(|bytes| *bytes > 0);
                limits.bytes = bytes.ok_or_else(|| wrong("a size above 0, such as size=64Mi"))?;
            }
            "age" => {
                let age = scupper_config::duration(value);
                limits.age = age.ok_or_else(|| wrong("a duration, such as age=720h"))?;
            }
            _ => {
                return Err(wrong(
                    "a limit: they are number, size and age, separated by commas",
                ));
            }
        }
    }
    Ok(limits)
}

/// The directory that is given, or that of a driver with these options.
pub(crate) fn directory_of(given: Option<PathBuf>, driver: &PolicyArgs) -> Option<Directory> {
    let state = state_dir(driver.state_dir.as_deref(), driver.policy_cache.as_deref());
    directory(given, state).map(|path| Directory::new(path, None))
}

fn directory(given: Option<PathBuf>, state: Option<PathBuf>) -> Option<PathBuf> {
    given.or_else(|| state.map(|state| state.join(IN_STATE)))
}

/// `scupper drains`
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct DrainsArgs {
    /// What to do instead of listing.
    #[command(subcommand)]
    pub command: Option<DrainsCommand>,
    /// Only drains of this node
    #[arg(value_name = "NODE")]
    pub node: Option<String>,
    #[command(flatten)]
    pub place: RecordedAt,
}

/// Where recordings are.
#[derive(Debug, clap::Args)]
pub struct RecordedAt {
    /// Directory of recordings [default: the driver's, in its --state-dir]
    #[arg(long, value_name = "DIR", env = "SCUPPER_RECORDINGS", hide_env_values = true)]
    pub recordings: Option<PathBuf>,
    #[command(flatten)]
    pub driver: DriverArgs,
}

impl RecordedAt {
    pub(super) fn directory(&self) -> Option<Directory> {
        let state = state_dir(
            self.driver.state_dir.as_deref(),
            self.driver.policy_cache.as_deref(),
        );
        directory(self.recordings.clone(), state).map(|path| Directory::new(path, None))
    }
}

const GET_EXAMPLES: &str = "\
Examples:
  scupper drains get NAME >drain.jsonl.gz   NAME as `scupper drains` lists it
  kubectl -n scupper exec POD -- scupper drains get NAME >drain.jsonl.gz";

/// What to do with recordings.
#[derive(Debug, Subcommand)]
pub enum DrainsCommand {
    /// Write a recording to standard output
    #[command(after_help = GET_EXAMPLES)]
    Get(GetArgs),
}

/// `scupper drains get`
#[derive(Debug, clap::Args)]
pub struct GetArgs {
    /// Name of the recording, as listed
    pub name: String,
    #[command(flatten)]
    pub place: RecordedAt,
}

/// `scupper replay`
#[derive(Debug, clap::Args)]
pub struct ReplayArgs {
    /// Recordings of drains
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Play the drains with this component of a policy of theirs instead, and print what differs; may be repeated
    #[arg(long = "policy", value_name = "NAME=FILE")]
    pub policies: Vec<String>,
    /// Play the drains with the settings and policies of this configuration file, and print what differs. What it does not
    /// give stays as recorded
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

impl ReplayArgs {
    /// Something is to be different.
    pub(crate) const fn has_changes(&self) -> bool {
        !self.policies.is_empty() || self.config.is_some()
    }
}

/// `scupper report`
#[derive(Debug, clap::Args)]
pub struct ReportArgs {
    /// Recordings of drains, or nodes, of which the newest recorded drain is taken
    #[arg(value_name = "FILE|NODE", required = true)]
    pub drains: Vec<PathBuf>,
    /// Write a page with charts and tables to this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write the charts alone, as a picture, to this file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    #[command(flatten)]
    pub place: RecordedAt,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn limits_that_are_not_named_keep_their_defaults() {
        let day = limits("age=24h").unwrap();
        assert_eq!(
            (day.number, day.bytes, day.age),
            (200, 64 << 20, Duration::from_hours(24))
        );
        assert_eq!(
            limits("number=200,size=64Mi,age=720h").unwrap(),
            Limits::default()
        );
        assert_eq!(limits("number=0").unwrap().number, 0);
    }

    #[test]
    fn what_is_no_limit_is_named() {
        for (text, why) in [
            ("number=many", "number=many is not a number, such as number=200"),
            ("size=0,age=1h", "size=0 is not a size above 0, such as size=64Mi"),
            ("age=30d", "age=30d is not a duration, such as age=720h"),
            (
                "200",
                "200 is not a limit: they are number, size and age, separated by commas",
            ),
        ] {
            assert_eq!(
                limits(text).unwrap_err(),
                format!("--recording-limits {text}: {why}")
            );
        }
    }
}
