//! What the operator says about a policy: its name, its file, its grants, its configuration and its limits.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use thiserror::Error;

use super::text::one_line;
use super::{HttpGrant, Limits, SecretGrant};

/// Bytes of a wrong grant that are shown.
const SHOWN_BYTES: usize = 100;

/// A policy the operator wants loaded.
#[derive(Clone, Debug, Default)]
pub struct PolicySpec {
    /// The operator's name for it.
    pub name: String,
    /// The component.
    pub file: PathBuf,
    /// SHA-256 of the component in hex, when only that one may be loaded.
    pub sha256: Option<String>,
    /// What it is given, but for the grants that need more words.
    pub grants: Vec<Grant>,
    /// Where it may send requests.
    pub http: Vec<HttpGrant>,
    /// What may be put into them.
    pub secrets: Vec<SecretGrant>,
    /// It may import the harmless part of WASI, which a plain standard library asks for.
    pub wasi: bool,
    /// What it reads through `config`.
    pub config: BTreeMap<String, String>,
    /// What it may use.
    pub limits: Limits,
    /// What becomes of a drain when it fails.
    pub on_failure: OnFailure,
    /// It takes part only on nodes that have all of these labels.
    pub node_selector: BTreeMap<String, String>,
    /// Where the operator said all this, so that an error can name what to add there.
    pub said: Said,
}

/// Where an operator says what a policy is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Said {
    /// With flags.
    #[default]
    Flags,
    /// In the configuration file.
    File,
}

/// What becomes of a drain when a policy fails: traps, overruns its limits, answers nonsense, or when its hook gives up.
/// A planner's refusal is no failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnFailure {
    /// When its planner fails. Unless said, the drain is refused: nothing has been changed, and people know at once.
    pub planner: Remedy,
    /// When its hooks trap, overrun their limits or answer nonsense. Unless said, the drain is held: a hook may fail
    /// because of what it was shown, and that changes.
    pub hooks: Remedy,
    /// When a hook says itself that it will never work. Unless the operator says what hooks' failures come to, the
    /// policy has the word, and the drain ends.
    pub given_up: Remedy,
}

impl OnFailure {
    /// What the operator says, where he says something.
    pub fn said(planner: Option<Remedy>, hooks: Option<Remedy>) -> Self {
        let unsaid = Self::default();
        Self {
            planner: planner.unwrap_or(unsaid.planner),
            hooks: hooks.unwrap_or(unsaid.hooks),
            given_up: hooks.unwrap_or(unsaid.given_up),
        }
    }
}

impl Default for OnFailure {
    fn default() -> Self {
        Self {
            planner: Remedy::Refuse,
            hooks: Remedy::Hold,
            given_up: Remedy::Refuse,
        }
    }
}

/// What is done about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// The drain is refused, or ends as failed.
    Refuse,
    /// The drain goes on without it: the draft stays as it was, the hook counts as done.
    Ignore,
    /// It is tried again until it succeeds or the drain's deadline passes.
    Hold,
}

/// Something a policy can be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Capability {
    /// To set and remove annotations of the node.
    NodeAnnotations,
    /// To set and remove annotations of the node's pods.
    PodAnnotations,
    /// To emit Events.
    Events,
    /// To send requests.
    Http,
    /// To have a secret put into requests.
    Secret,
}

/// A capability, and what of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Grant {
    /// What it allows.
    pub capability: Capability,
    /// For annotations: the prefix of their keys. For events: `node` or `pods`. For `http`: methods and how URLs begin.
    /// For secrets: the name.
    pub target: String,
}

/// Why a grant cannot be read.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum GrantError {
    /// There is no colon in it.
    #[error("`{0}` is no grant: write CAPABILITY:TARGET, such as node-annotations:example.com/")]
    Form(String),
    /// It is granted without a target, and not here.
    #[error(
        "`wasi` cannot be given with --grant: add `wasi: true` to the policy's grants in scupper.yaml, and name that file \
         with --config"
    )]
    Wasi,
    /// Nobody knows the capability.
    #[error(
        "there is no capability `{0}`; there are node-annotations, pod-annotations, events, http and secret"
    )]
    Capability(String),
}

impl Capability {
    /// Its name in WIT and on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NodeAnnotations => "node-annotations",
            Self::PodAnnotations => "pod-annotations",
            Self::Events => "events",
            Self::Http => "http",
            Self::Secret => "secret",
        }
    }
}

impl FromStr for Capability {
    type Err = GrantError;

    fn from_str(text: &str) -> Result<Self, GrantError> {
        match text {
            "node-annotations" => Ok(Self::NodeAnnotations),
            "pod-annotations" => Ok(Self::PodAnnotations),
            "events" => Ok(Self::Events),
            "http" => Ok(Self::Http),
            "secret" => Ok(Self::Secret),
            _ => Err(GrantError::Capability(one_line(text, SHOWN_BYTES))),
        }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Grant {
    type Err = GrantError;

    /// `CAPABILITY:TARGET`
    fn from_str(text: &str) -> Result<Self, GrantError> {
        if text == "wasi" || text.starts_with("wasi:") {
            return Err(GrantError::Wasi);
        }
        let (capability, target) = text
            .split_once(':')
            .ok_or_else(|| GrantError::Form(one_line(text, SHOWN_BYTES)))?;
        Ok(Self {
            capability: capability.parse()?,
            target: target.to_owned(),
        })
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.capability, self.target)
    }
}
