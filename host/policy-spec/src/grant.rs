//! Capabilities, and grants of them: what an operator grants a policy and what a policy requests.

use std::fmt;
use std::str::FromStr;

use scupper_common::text::one_line;
use thiserror::Error;

/// Bytes of a wrong grant that are shown.
const SHOWN_BYTES: usize = 100;

/// A capability that an operator can grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Capability {
    /// Set and remove annotations of the node.
    NodeAnnotations,
    /// Set and remove annotations of the node's pods.
    PodAnnotations,
    /// Emit Events.
    Events,
    /// Ask about the cluster.
    Facts,
    /// Send requests.
    Http,
    /// Have the driver insert a secret into requests.
    Secret,
}

/// A capability and its target.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Grant {
    /// The capability.
    pub capability: Capability,
    /// For annotations: the prefix of their keys. For events: `node` or `pods`. For facts: one of
    /// [`FACTS`](crate::FACTS). For `http`: methods and how URLs begin.
    /// For secrets: the name.
    pub target: String,
}

/// Why a grant cannot be read.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum GrantError {
    /// It has no colon.
    #[error("`{0}` is not a grant: write CAPABILITY:TARGET, such as node-annotations:example.com/")]
    Form(String),
    /// `wasi` has no target and cannot be granted with a flag.
    #[error(
        "`wasi` cannot be given with --grant: add `wasi: true` to the policy's grants in scupper.yaml, and name that file \
         with --config"
    )]
    Wasi,
    /// The capability is unknown.
    #[error(
        "unknown capability `{0}`; known are node-annotations, pod-annotations, events, facts, http and secret"
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
            Self::Facts => "facts",
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
            "facts" => Ok(Self::Facts),
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
