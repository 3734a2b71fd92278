//! What happened to the policies, for whoever tells people.

use std::fmt;

use scupper_engine::HookPhase;

/// Something happened to a policy. A line for people is its `Display`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReloadNotice {
    /// A revision is called from now on.
    Activated {
        /// The policy.
        name: String,
        /// SHA-256 of the component, in hex.
        digest: String,
        /// Its own version.
        version: String,
        /// The generation it came with.
        generation: u64,
    },
    /// A candidate was rejected; what was active still is.
    Rejected {
        /// The policy; empty: the configuration.
        name: String,
        /// The candidate's digest, when it could be read.
        digest: Option<String>,
        /// The step that failed, a word of a closed list: `configuration`, `read`, `scan`, `pin`, `compile`, `cache`,
        /// `native`, `link`, `describe`, `grants`, `check-config`, `phases`, `probe`, `broken-off`, `not-loaded`.
        step: &'static str,
        /// What is wrong with it, and what to do.
        reason: String,
    },
    /// A revision failed repeatedly, or an operator rolled it back: the previous one is active again.
    RolledBack {
        /// The policy.
        name: String,
        /// The digest that is not called any more.
        from: String,
        /// The digest that is called again.
        to: String,
        /// The generation that it is called in.
        generation: u64,
        /// Why.
        reason: String,
    },
    /// The policy runs, but not as the operator wants it.
    Degraded {
        /// The policy; empty: the configuration.
        name: String,
        /// The digest that is called instead.
        digest: String,
        /// Why.
        reason: String,
    },
    /// A hook of a running drain begins again without its state, as the revision that goes on with it cannot read that.
    HookRestarted {
        /// The policy.
        name: String,
        /// The digest that goes on with it.
        digest: String,
        /// The hook's phase.
        phase: HookPhase,
        /// The state's version; `None`: nobody knows.
        wrote: Option<u32>,
        /// The version that this revision reads.
        reads: u32,
    },
    /// The operator does not want it any more.
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

    /// Whether a person should look at it.
    pub const fn is_warning(&self) -> bool {
        !matches!(self, Self::Activated { .. } | Self::Removed { .. })
    }

    /// Whether a person must look at it: the driver would not have started without what it had kept.
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
            } => write!(
                f,
                "policy {name}: {version} ({}) is active, generation {generation}",
                short(digest)
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
                ..
            } => {
                let (from, to) = (short(from), short(to));
                write!(f, "policy {name}: rolled back from {from} to {to}: {reason}")
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
                let wrote = wrote.map_or_else(
                    || "an unknown version".to_owned(),
                    |wrote| format!("version {wrote}"),
                );
                write!(
                    f,
                    "policy {name}: a {phase} hook begins again without its state, which is of {wrote}: {digest} reads \
                     version {reads}"
                )
            }
            Self::Removed { name } => write!(f, "policy {name}: removed"),
        }
    }
}

/// As many digits of a digest as people compare.
pub(super) fn short(digest: &str) -> &str {
    digest.get(..8).unwrap_or(digest)
}
