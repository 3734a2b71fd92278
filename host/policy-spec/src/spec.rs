//! The operator's specification of a policy: its name, its file, its grants, its configuration and its limits.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{Grant, HttpGrant, Limits, SecretGrant};

/// A policy that the operator wants to load.
#[derive(Clone, Debug, Default)]
pub struct PolicySpec {
    /// The operator's name for it.
    pub name: String,
    /// The component.
    pub file: PathBuf,
    /// SHA-256 of the component in hex, if only that one may be loaded.
    pub sha256: Option<String>,
    /// Its grants, except those with more fields.
    pub grants: Vec<Grant>,
    /// The origins to which it may send requests.
    pub http: Vec<HttpGrant>,
    /// The secrets that may be inserted into them.
    pub secrets: Vec<SecretGrant>,
    /// Allows the harmless part of WASI, which a language's standard library imports.
    pub wasi: bool,
    /// Its configuration, for the import `config`.
    pub config: BTreeMap<String, String>,
    /// Its resource limits.
    pub limits: Limits,
    /// The effect of its failure on a drain.
    pub on_failure: OnFailure,
    /// It applies only to nodes with all of these labels.
    pub node_selector: BTreeMap<String, String>,
    /// Whether drains follow it.
    pub mode: PolicyMode,
    /// The place of this specification, so that an error can name what to add there.
    pub spec_source: SpecSource,
}

/// Whether drains follow a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PolicyMode {
    /// It is part of the chain.
    #[default]
    Active,
    /// It plans beside the chain, and only what it would change is reported.
    Shadow {
        /// The policy of the chain whose place it would take; `None`: it would come in addition.
        instead_of: Option<String>,
    },
}

impl PolicyMode {
    /// It takes no part in drains.
    pub const fn is_shadow(&self) -> bool {
        matches!(self, Self::Shadow { .. })
    }

    /// The policy of the chain whose place a shadow would take.
    pub fn instead_of(&self) -> Option<&str> {
        match self {
            Self::Active => None,
            Self::Shadow { instead_of } => instead_of.as_deref(),
        }
    }

    /// The word for it in the configuration file.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Shadow { .. } => "shadow",
        }
    }
}

/// The place of a policy's specification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpecSource {
    /// With flags.
    #[default]
    Flags,
    /// In the configuration file.
    File,
}

/// The effect on a drain when a policy fails: it traps, exceeds its limits, returns invalid answers, or its hook gives
/// up. A planner's refusal is not a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnFailure {
    /// When its planner fails. By default the drain is refused: nothing has changed, and users see it at once.
    pub planner: FailurePolicy,
    /// When its hooks trap, exceed their limits or return invalid answers. By default the drain is held: a hook may
    /// fail because of its input, and the input changes.
    pub hooks: FailurePolicy,
    /// When a hook reports a permanent failure. Unless the operator has configured the effect of hooks' failures, the
    /// drain ends.
    pub given_up: FailurePolicy,
}

impl OnFailure {
    /// What the operator configured, and defaults for the rest.
    pub fn new(planner: Option<FailurePolicy>, hooks: Option<FailurePolicy>) -> Self {
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
            planner: FailurePolicy::Refuse,
            hooks: FailurePolicy::Hold,
            given_up: FailurePolicy::Refuse,
        }
    }
}

/// What happens when a policy fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailurePolicy {
    /// The drain is refused, or ends as failed.
    Refuse,
    /// The drain continues without it: the draft stays as it was, the hook counts as done.
    Ignore,
    /// It is retried until it succeeds or the drain's deadline passes.
    Hold,
}
