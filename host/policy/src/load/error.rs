//! Why a policy is not loaded.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use scupper_policy_compile::{CacheError, CompileError, CompileFault, SourceError};
use scupper_policy_spec::{
    Capability, Grant, GrantError, HttpTargetError, HttpWant, NameError, PolicySpec, PrefixError,
    SecretGrantError, SpecSource,
};
use thiserror::Error;

use super::flaws::Flaw;
use crate::imports::http::HttpSetupError;
use crate::runtime::fault::CallError;

/// A policy that is not loaded.
#[derive(Debug, Error)]
#[error("policy `{policy}` from {} is not loaded", file.display())]
pub struct LoadError {
    /// The operator's name for it.
    pub policy: String,
    /// Its file.
    pub file: PathBuf,
    /// The cause.
    #[source]
    pub fault: Box<LoadFault>,
}

impl LoadError {
    /// Of the policy that an operator has described so.
    pub fn of(spec: &PolicySpec, fault: LoadFault) -> Self {
        Self {
            policy: spec.name.clone(),
            file: spec.file.clone(),
            fault: Box::new(fault),
        }
    }
}

/// The reasons why a policy is not loaded.
#[derive(Debug, Error)]
pub enum LoadFault {
    /// Its name is invalid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Another policy has this name.
    #[error("another policy has the same name; names must be unique")]
    Twice,
    /// The operator's grant is invalid.
    #[error("the grant {grant} is invalid")]
    Grant {
        /// The grant.
        grant: Grant,
        /// The cause.
        #[source]
        source: WantError,
    },
    /// The operator's grant of requests is invalid.
    #[error("the grant http of `{origin}`")]
    Http {
        /// Its origin, as configured.
        origin: String,
        /// The field and its error.
        #[source]
        source: HttpSetupError,
    },
    /// The operator's grant of a secret is invalid.
    #[error("the grant of the secret `{name}`")]
    Secret {
        /// Its name, as configured.
        name: String,
        /// The field and its error.
        #[source]
        source: SecretGrantError,
    },
    /// Its file is not a policy.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The operator pinned another component.
    #[error("its SHA-256 is {found}, but `sha256` allows only {pinned}")]
    Pinned {
        /// The digest that may be loaded.
        pinned: String,
        /// The file's digest.
        found: String,
    },
    /// It cannot be compiled.
    #[error("it cannot be compiled")]
    Compile(#[from] CompileError),
    /// Its native code cannot be stored.
    #[error("its native code cannot be cached")]
    Cache(#[source] CacheError),
    /// The native code from our own compiler does not load.
    #[error("its native code does not load: {0}")]
    Native(String),
    /// Its initial size already exceeds its limits.
    #[error("it needs {needs} at its start, and its limit is {limit}")]
    Needs {
        /// The required amount.
        needs: String,
        /// The limit.
        limit: String,
    },
    /// An import or an export has another type than in `wit/`.
    #[error("its {what} are not those of scupper:drain in this driver's wit/: {detail}")]
    Types {
        /// Imports or exports.
        what: &'static str,
        /// The error of wasmtime.
        detail: String,
    },
    /// A call failed.
    #[error(transparent)]
    Call(#[from] CallError),
    /// It asks for a capability that does not exist.
    #[error("it wants the invalid grant `{capability}:{target}`")]
    Want {
        /// The capability.
        capability: String,
        /// The target.
        target: String,
        /// The cause.
        #[source]
        source: WantError,
    },
    /// It asks for more grants than an operator can review.
    #[error("it wants {wants} grants; the limit is {limit}")]
    TooManyWants {
        /// The number it asks for.
        wants: usize,
        /// The limit.
        limit: usize,
    },
    /// It asks for capabilities that are not granted.
    #[error("it wants more than it was granted; to allow it, add {}", additions(.0))]
    NotGranted(Vec<MissingGrant>),
    /// It rejects its configuration.
    #[error("its configuration is wrong: {}", problems(.0))]
    Config(Vec<ConfigProblem>),
    /// Its description is invalid. The driver loads it all the same, but drops the invalid parts.
    #[error("it returns invalid values: {}", flaws(.0))]
    Flawed(Vec<Flaw>),
    /// The task that loaded it died.
    #[error("loading it was interrupted")]
    BrokenOff,
}

impl From<CompileFault> for LoadFault {
    fn from(fault: CompileFault) -> Self {
        match fault {
            CompileFault::Source(error) => Self::Source(error),
            CompileFault::Compile(error) => Self::Compile(error),
            CompileFault::Cache(error) => Self::Cache(error),
            CompileFault::BrokenOff => Self::BrokenOff,
        }
    }
}

impl LoadFault {
    /// The failed step: one of a closed list, for metrics.
    pub fn step(&self) -> &'static str {
        match self {
            Self::Name(_) | Self::Twice | Self::Grant { .. } | Self::Http { .. } | Self::Secret { .. } => {
                "configuration"
            }
            Self::Source(SourceError::Read(_) | SourceError::NotAFile | SourceError::TooLarge) => "read",
            Self::Source(_) => "scan",
            Self::Pinned { .. } => "pin",
            Self::Compile(_) => "compile",
            Self::Cache(_) => "cache",
            Self::Native(_) => "native",
            Self::Needs { .. } | Self::Types { .. } => "link",
            Self::Call(CallError {
                function: "make-plan",
                ..
            }) => "probe",
            // describe, check-config, phases
            Self::Call(error) => error.function,
            Self::Want { .. } | Self::TooManyWants { .. } | Self::NotGranted(_) => "grants",
            Self::Config(_) => "check-config",
            Self::Flawed(_) => "describe",
            Self::BrokenOff => "broken-off",
        }
    }
}

/// Why a requested capability cannot be granted at all.
#[derive(Debug, Error)]
pub enum WantError {
    /// The capability is unknown.
    #[error(transparent)]
    Capability(#[from] GrantError),
    /// The target is not a prefix that can be granted.
    #[error(transparent)]
    Prefix(#[from] PrefixError),
    /// The target is not a valid target of requests.
    #[error(transparent)]
    Http(#[from] HttpTargetError),
    /// The target is not a secret's name.
    #[error(transparent)]
    Secret(#[from] SecretGrantError),
}

/// A requested capability without its grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingGrant {
    /// The policy.
    pub policy: String,
    /// The requested capability.
    pub grant: Grant,
    /// Where the operator would grant it.
    pub spec_source: SpecSource,
}

/// One error of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    /// The key; empty: the whole configuration.
    pub key: String,
    /// The error.
    pub message: String,
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.key.as_str() {
            "" => f.write_str(&self.message),
            key => write!(f, "`{key}`: {}", self.message),
        }
    }
}

impl fmt::Display for MissingGrant {
    /// The flag to add; a secret needs more than a flag can express.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { policy, grant, .. } = self;
        match grant.capability {
            Capability::NodeAnnotations
            | Capability::PodAnnotations
            | Capability::Events
            | Capability::Facts => {
                write!(f, "--grant {policy}={grant}")
            }
            Capability::Http => write!(f, "--grant '{policy}={grant}'"),
            Capability::Secret => {
                let lines = Self::yaml(std::slice::from_ref(self)).concat();
                write!(f, "under the `grants` of {policy} in scupper.yaml: {lines}")
            }
        }
    }
}

/// The additions, in the form in which the operator has configured the policy.
fn additions(missing: &[MissingGrant]) -> String {
    let in_file = missing
        .iter()
        .any(|missing| missing.spec_source == SpecSource::File);
    if in_file {
        let lines = MissingGrant::yaml(missing);
        return format!("under its `grants`: {}", lines.join("; "));
    }
    let (secrets, flags): (Vec<_>, Vec<_>) = missing
        .iter()
        .partition(|missing| missing.grant.capability == Capability::Secret);
    let text = |missing: Vec<&MissingGrant>, between| {
        let texts: Vec<_> = missing.into_iter().map(MissingGrant::to_string).collect();
        (!texts.is_empty()).then(|| texts.join(between))
    };
    let parts: Vec<_> = [text(flags, " "), text(secrets, "; ")]
        .into_iter()
        .flatten()
        .collect();
    parts.join(", and ")
}

impl MissingGrant {
    /// The lines to add under `grants` in the configuration file, without indentation.
    pub fn yaml(missing: &[Self]) -> Vec<String> {
        let mut entries: BTreeMap<Capability, Vec<String>> = BTreeMap::new();
        for Self { grant, .. } in missing {
            let (capability, target) = (grant.capability, grant.target.as_str());
            let entry = match capability {
                Capability::NodeAnnotations
                | Capability::PodAnnotations
                | Capability::Events
                | Capability::Facts => target.to_owned(),
                Capability::Http => target
                    .parse()
                    .map(|want: HttpWant| want.to_yaml())
                    .unwrap_or_default(),
                Capability::Secret => {
                    format!("{{name: {target}, file: /PATH/OF/IT, origins: [\"https://WHERE.IT.GOES\"]}}")
                }
            };
            entries.entry(capability).or_default().push(entry);
        }
        let line = |(capability, entries): (Capability, Vec<String>)| {
            let key = match capability {
                Capability::Secret => "secrets",
                other => other.as_str(),
            };
            format!("{key}: [{}]", entries.join(", "))
        };
        entries.into_iter().map(line).collect()
    }
}

fn flaws(flaws: &[Flaw]) -> String {
    flaws.iter().map(Flaw::to_string).collect::<Vec<_>>().join("; ")
}

fn problems(problems: &[ConfigProblem]) -> String {
    problems
        .iter()
        .map(ConfigProblem::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}
