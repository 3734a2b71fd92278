//! Reads a configuration: a path in, a value out, and nothing kept.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::OFlags;
use scupper_policy_spec::PolicySpec;
use sha2::{Digest, Sha256};

use super::document::Node;
use super::place::{FieldPath, Position};
use super::problem::Problems;
use super::shape::Shape;
use super::{
    ConfigError, DrainRequestsFile, GivenSettings, check, convert, document, drain_requests, shapes,
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
    /// The settings of drains; flags override them.
    pub drain: GivenSettings,
    /// How DrainRequests are served; `None`: not at all.
    pub drain_requests: Option<DrainRequestsFile>,
}

impl Configuration {
    /// The same for one command in a terminal: policies that are not here are taken from beside the file, if they are there.
    #[must_use]
    pub fn in_reach(mut self) -> Self {
        for policy in &mut self.policies {
            if let Some(beside) = beside(&policy.file, &self.file).filter(|file| file.is_file()) {
                policy.file = beside;
            }
        }
        self
    }
}

/// The file that takes the place of a policy of the driver's image: a configuration is also read where there is no image.
/// `None`: the policy is there, or the configuration names it by a path from its own folder.
pub fn beside(policy: &Path, config: &Path) -> Option<PathBuf> {
    let dir = config.parent().filter(|dir| !dir.as_os_str().is_empty());
    let is_of_image = policy.is_absolute() && dir.is_none_or(|dir| !policy.starts_with(dir));
    let is_absent = is_of_image && policy.try_exists().is_ok_and(|there| !there);
    let name = policy.file_name().filter(|_| is_absent)?;
    Some(config.with_file_name(name))
}

/// That a policy of the driver's image is neither there nor beside the configuration, and what to do. `None`: it is at one of
/// them, or the configuration names it by a path from its own folder.
pub fn out_of_reach_text(policy: &PolicySpec, config: &Path) -> Option<String> {
    let beside = beside(&policy.file, config).filter(|beside| !beside.is_file())?;
    Some(format!(
        "policy {}: neither {} nor {beside} exists; copy the policy to {beside}, from the driver's image or from policies/ of a \
         release",
        policy.name,
        policy.file.display(),
        beside = beside.display()
    ))
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
    configuration.drain = GivenSettings::of_file(root, problems);
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
