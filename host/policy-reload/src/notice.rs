//! Notices about the policies, for logs and Events.

use std::fmt;

use scupper_engine::HookPhase;

/// A change of a policy. Its `Display` is one line for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReloadNotice {
    /// A revision becomes active.
    Activated {
        /// The policy.
        name: String,
        /// SHA-256 of the component, in hex.
        digest: String,
        /// Its own version.
        version: String,
        /// Its generation.
        generation: u64,
        /// It is a shadow: no drain follows it.
        is_shadow: bool,
    },
    /// A candidate was rejected; the active revision stays.
    Rejected {
        /// The policy; empty: the configuration.
        name: String,
        /// The candidate's digest, if it could be read.
        digest: Option<String>,
        /// The step that failed, a word of a closed list: `configuration`, `read`, `scan`, `pin`, `compile`, `cache`,
        /// `native`, `link`, `describe`, `grants`, `check-config`, `phases`, `probe`, `broken-off`, `not-loaded`.
        step: &'static str,
        /// The error, and how to fix it.
        reason: String,
    },
    /// A revision failed repeatedly, or an operator rolled it back: the previous one is back.
    RolledBack {
        /// The policy.
        name: String,
        /// The replaced digest.
        from: String,
        /// The digest that is back.
        to: String,
        /// Its new generation.
        generation: u64,
        /// It is a shadow: no drain follows it.
        is_shadow: bool,
        /// The reason.
        reason: String,
    },
    /// The policy runs, but not as configured.
    Degraded {
        /// The policy; empty: the configuration.
        name: String,
        /// The digest that runs instead.
        digest: String,
        /// The reason.
        reason: String,
    },
    /// A hook of a running drain restarts without its state, because the revision that continues it cannot read that
    /// state.
    HookRestarted {
        /// The policy.
        name: String,
        /// The digest that continues the hook.
        digest: String,
        /// The hook's phase.
        phase: HookPhase,
        /// The state's version.
        wrote: u32,
        /// The version that this revision reads.
        reads: u32,
    },
    /// The operator has removed it from the configuration.
    Removed {
        /// The policy.
        name: String,
    },
}

impl ReloadNotice {
    /// The policy; empty: the configuration.
    pub fn policy(&self) -> &str {
        match self {
            Self::Activated { name, .. }
            | Self::Rejected { name, .. }
            | Self::RolledBack { name, .. }
            | Self::Degraded { name, .. }
            | Self::HookRestarted { name, .. }
            | Self::Removed { name } => name,
        }
    }

    /// Whether the notice needs the operator's attention.
    pub const fn is_warning(&self) -> bool {
        !matches!(self, Self::Activated { .. } | Self::Removed { .. })
    }

    /// Whether an operator must act: without its saved revisions the driver would not have started.
    pub(super) fn is_error(&self) -> bool {
        matches!(self, Self::Degraded { name, .. } if name.is_empty())
    }
}

impl fmt::Display for ReloadNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Activated {
                name,
                digest,
                version,
                generation,
                is_shadow,
            } => write!(
                f,
                "policy {name}: {version} ({}) is {}, generation {generation}",
                short(digest),
                if *is_shadow { "a shadow" } else { "active" }
            ),
            Self::Rejected { name, reason, .. } if name.is_empty() => {
                write!(
                    f,
                    "the configuration was rejected, the previous one stays active: {reason}"
                )
            }
            Self::Rejected {
                name, digest, reason, ..
            } => {
                let digest = digest.as_deref().map_or("its file", short);
                write!(f, "policy {name}: {digest} was rejected: {reason}")
            }
            Self::RolledBack {
                name,
                from,
                to,
                reason,
                is_shadow,
                ..
            } => {
                let (from, to) = (short(from), short(to));
                let kind = if *is_shadow { "shadow policy" } else { "policy" };
                write!(f, "{kind} {name}: rolled back from {from} to {to}: {reason}")
            }
            Self::Degraded { name, reason, .. } if name.is_empty() => {
                write!(
                    f,
                    "the configuration cannot be used, and the last good one is used instead: {reason}"
                )
            }
            Self::Degraded { name, digest, reason } => {
                write!(f, "policy {name}: {} runs instead: {reason}", short(digest))
            }
            Self::HookRestarted {
                name,
                digest,
                phase,
                wrote,
                reads,
            } => {
                let digest = short(digest);
                write!(
                    f,
                    "policy {name}: a {phase} hook restarts without its state: it has version {wrote}, and {digest} reads \
                     version {reads}"
                )
            }
            Self::Removed { name } => write!(f, "policy {name}: removed"),
        }
    }
}

/// The first digits of a digest, enough for a user to compare.
pub(super) fn short(digest: &str) -> &str {
    digest.get(..8).unwrap_or(digest)
}
