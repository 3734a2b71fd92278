//! The configuration of one policy: from a file, from flags, or the defaults.

use std::path::{Path, PathBuf};

use thiserror::Error;

use scupper_config::ConfigError;
use scupper_policy_spec::{GrantError, PolicyMode, PolicySpec};

use super::suite::name_of;

/// The flags about one policy.
#[derive(Clone, Debug, Default)]
pub(crate) struct PolicyChoice {
    /// The component.
    pub file: PathBuf,
    /// A `scupper.yaml` with the other settings.
    pub config: Option<PathBuf>,
    /// The name of the policy in it; default: the one whose module is the component.
    pub name: Option<String>,
    /// `CAPABILITY:TARGET`
    pub grants: Vec<String>,
    /// `KEY=VALUE`
    pub settings: Vec<String>,
}

/// The error in a policy's options.
#[derive(Debug, Error)]
pub(crate) enum SpecError {
    /// The configuration file is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// It does not contain this policy.
    #[error(
        "{} has no policy whose module is {}; it has {}; name one with --name",
        config.display(), file.display(), names.join(", ")
    )]
    Absent {
        /// The configuration file.
        config: PathBuf,
        /// The component.
        file: PathBuf,
        /// The policies in it.
        names: Vec<String>,
    },
    /// A grant cannot be read.
    #[error("--grant {text}")]
    Grant {
        /// The grant.
        text: String,
        /// The cause.
        #[source]
        source: GrantError,
    },
    /// A setting cannot be read.
    #[error("--set {0}: write KEY=VALUE")]
    Setting(String),
}

impl PolicyChoice {
    /// Builds the specification as a driver would. Blocks.
    pub(crate) fn spec(&self) -> Result<PolicySpec, SpecError> {
        let mut spec = match &self.config {
            Some(config) => self.find(config)?,
            None => PolicySpec {
                name: self.name.clone().unwrap_or_else(|| name_of(&self.file)),
                ..PolicySpec::default()
            },
        };
        spec.file.clone_from(&self.file);
        // Its author tries what it does, whatever drains follow.
        spec.mode = PolicyMode::Active;
        for text in &self.grants {
            spec.grants.push(text.parse().map_err(|source| SpecError::Grant {
                text: text.clone(),
                source,
            })?);
        }
        for text in &self.settings {
            let (key, value) = text
                .split_once('=')
                .ok_or_else(|| SpecError::Setting(text.clone()))?;
            spec.config.insert(key.to_owned(), value.to_owned());
        }
        Ok(spec)
    }

    fn find(&self, file: &Path) -> Result<PolicySpec, SpecError> {
        let specs = scupper_config::read(file)?.policies;
        let names = specs.iter().map(|spec| spec.name.clone()).collect();
        let is_it = |spec: &PolicySpec| match &self.name {
            Some(name) => spec.name == *name,
            None => match (spec.file.canonicalize(), self.file.canonicalize()) {
                (Ok(one), Ok(other)) => one == other,
                _ => spec.file.file_name() == self.file.file_name(),
            },
        };
        specs.into_iter().find(is_it).ok_or_else(|| SpecError::Absent {
            config: file.to_owned(),
            file: self.file.clone(),
            names,
        })
    }
}
