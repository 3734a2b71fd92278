//! Reads a configuration: a path in, a value out, and nothing kept.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::OFlags;
use scupper_policy_spec::PolicySpec;
use sha2::{Digest, Sha256};

use super::document::Node;
use super::place::{FieldPath, Position};
use super::problem::Problems;
use super::shape::Shape;
use super::{
    AtDeadlineFile, ConfigError, DrainRequestsFile, Override, SurgeFile, check, convert, document,
    drain_requests, shapes,
};

/// The maximum size of a ConfigMap.
pub(super) const MOST_BYTES: u64 = 1 << 20;

/// The content of a configuration file.
#[derive(Clone, Debug, Default)]
pub struct Configuration {
    /// The file, as it was named.
    pub file: PathBuf,
    /// SHA-256 of its bytes, in hex.
    pub digest: String,
    /// Its text.
    pub text: Arc<str>,
    /// In the order of the chain.
    pub policies: Vec<PolicySpec>,
    /// The defaults for flags that are not given.
    pub drain: DrainFile,
    /// How DrainRequests are served; `None`: not at all.
    pub drain_requests: Option<DrainRequestsFile>,
}

/// The settings of a file for choosing and evicting pods, like the flags of the same names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DrainFile {
    /// `--sla`; zero: none.
    pub sla: Option<Duration>,
    /// `--eviction-timeout`
    pub eviction_timeout: Option<Duration>,
    /// `--forbidden-timeout`; zero: no retry.
    pub forbidden_timeout: Option<Duration>,
    /// `--grace-period`, in seconds; negative: the pods' own.
    pub grace_period: Option<i64>,
    /// `--force`
    pub force: Option<bool>,
    /// `--delete-emptydir-data`
    pub delete_emptydir_data: Option<bool>,
    /// `--ignore-daemonsets`
    pub ignore_daemonsets: Option<bool>,
    /// `--returning-pod-evictions`
    pub returning_pod_evictions: Option<u32>,
    /// `--on-failure`
    pub on_failure: Option<OwnCordon>,
    /// What a finding that is certain does.
    pub pre_flight: Option<PreFlight>,
    /// `--local-data`; `None`: drains do not read volumes.
    pub local_data: Option<PreFlight>,
    /// Whether drains wait for volumes; `None`: they do not.
    pub wait_for_volumes: Option<VolumeWaitFile>,
    /// Which pods are deleted shortly before the deadline; `None`: none.
    pub at_deadline: Option<AtDeadlineFile>,
    /// Which Deployments are restarted; `None`: none.
    pub surge: Option<SurgeFile>,
    /// `--allow-overrides`
    pub allow_overrides: Option<Vec<Override>>,
}

impl DrainFile {
    /// Takes the missing settings from another file.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            sla: self.sla.or(other.sla),
            eviction_timeout: self.eviction_timeout.or(other.eviction_timeout),
            forbidden_timeout: self.forbidden_timeout.or(other.forbidden_timeout),
            grace_period: self.grace_period.or(other.grace_period),
            force: self.force.or(other.force),
            delete_emptydir_data: self.delete_emptydir_data.or(other.delete_emptydir_data),
            ignore_daemonsets: self.ignore_daemonsets.or(other.ignore_daemonsets),
            returning_pod_evictions: self.returning_pod_evictions.or(other.returning_pod_evictions),
            on_failure: self.on_failure.or(other.on_failure),
            pre_flight: self.pre_flight.or(other.pre_flight),
            local_data: self.local_data.or(other.local_data),
            wait_for_volumes: self.wait_for_volumes.or(other.wait_for_volumes),
            at_deadline: self.at_deadline.or(other.at_deadline),
            surge: self.surge.or(other.surge),
            allow_overrides: self.allow_overrides.or(other.allow_overrides),
        }
    }
}

/// What happens to Scupper's own cordon when a drain does not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnCordon {
    /// It is kept.
    Keep,
    /// It is lifted.
    Rollback,
}

/// What follows from findings about pods: that they are certain to stay, or that only the node can use their volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreFlight {
    /// The drain says so and begins.
    Warn,
    /// The drain is refused before anything changes.
    Refuse,
}

/// How long a drain waits for volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeWaitFile {
    /// The longest wait.
    pub at_most: Duration,
    /// What follows if volumes are still attached then.
    pub otherwise: StillAttached,
}

/// What follows if volumes are still attached when the wait is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StillAttached {
    /// The drain ends as Drained, with a warning.
    Warn,
    /// The drain fails.
    Fail,
}

/// Reads a configuration file. Blocks.
pub fn read(file: &Path) -> Result<Configuration, ConfigError> {
    let bytes = read_bytes(file)?;
    match std::str::from_utf8(&bytes) {
        Ok(text) => read_text(file, text),
        Err(error) => {
            let mut problems = Problems::default();
            let good = bytes.get(..error.valid_up_to()).unwrap_or_default();
            problems.add(end_of(good), &FieldPath::default(), "this byte is not UTF-8");
            problems.end(file, Configuration::default())
        }
    }
}

/// Reads a configuration from a text; `file` is its name, and the base of relative paths.
pub fn read_text(file: &Path, text: &str) -> Result<Configuration, ConfigError> {
    let mut problems = Problems::default();
    // A byte order mark says nothing.
    let root = document::read(text.strip_prefix('\u{feff}').unwrap_or(text), &mut problems);
    let mut configuration = Configuration {
        file: file.to_owned(),
        digest: format!("{:x}", Sha256::digest(text.as_bytes())),
        text: Arc::from(text),
        ..Configuration::default()
    };
    if let Some(root) = root.filter(|root| !root.is_nothing()) {
        parse_saved(&root, &mut configuration, &mut problems);
    } else if problems.is_empty() {
        let message = format!(
            "the file is empty: it begins with `apiVersion: {}` and `kind: {}`",
            shapes::VERSION,
            shapes::KIND
        );
        problems.add(Position { line: 1, column: 1 }, &FieldPath::default(), message);
    }
    problems.end(file, configuration)
}

fn parse_saved(root: &Node, configuration: &mut Configuration, problems: &mut Problems) {
    let folder = configuration.file.parent().unwrap_or_else(|| Path::new(""));
    check::check(
        root,
        &Shape::Object(&shapes::CONFIGURATION),
        &FieldPath::default(),
        problems,
    );
    configuration.policies = convert::policies(root, folder, problems);
    configuration.drain = convert::drain(root, problems);
    configuration.drain_requests = drain_requests::of(root, problems);
}

fn read_bytes(file: &Path) -> Result<Vec<u8>, ConfigError> {
    let failed = |source| ConfigError::Read {
        file: file.to_owned(),
        source,
    };
    // A named pipe would block the open itself.
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let open = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(file)
        .map_err(failed)?;
    if !open.metadata().map_err(failed)?.is_file() {
        return Err(ConfigError::NotAFile(file.to_owned()));
    }
    let mut bytes = Vec::new();
    open.take(MOST_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(ConfigError::TooLarge(file.to_owned()));
    }
    Ok(bytes)
}

/// The place after the last character.
fn end_of(bytes: &[u8]) -> Position {
    let text = String::from_utf8_lossy(bytes);
    let last = text.rsplit('\n').next().unwrap_or_default();
    Position {
        line: text.matches('\n').count() + 1,
        column: last.chars().count() + 1,
    }
}
