//! Exit codes.

use std::process::ExitCode;

use scupper_engine::Outcome;

/// The exit codes, which scripts may rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// Usage error (clap uses the same number).
    Usage = 2,
    /// Something the operator wrote or set up is wrong: a flag's value, a policy, a directory.
    Config = 3,
    /// The API server cannot be reached, refuses us, or does not know the node.
    Cluster = 4,
    /// Pods may not leave, or the drain could not be carried out.
    DrainFailed = 5,
    /// The deadline passed.
    Deadline = 6,
    /// A policy refused the drain or failed.
    Policy = 7,
    /// `scupper doctor` found a problem, or `scupper replay` a difference.
    Found = 8,
    /// Detached: the driver continues the drain, and the command no longer waits for it.
    Detached = 9,
    /// A bug in Scupper.
    Bug = 70,
}

impl Exit {
    /// For several nodes: what went wrong, or that several things did. For several recordings: a difference that was found
    /// is one whatever is wrong with the others.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Done, exit) | (exit, Self::Done) => exit,
            (one, other) if one == other => one,
            (Self::Found, _) | (_, Self::Found) => Self::Found,
            _ => Self::DrainFailed,
        }
    }

    /// For a drain that ended.
    pub const fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Drained | Outcome::Uncordoned { .. } => Self::Done,
            Outcome::PolicyFailed { .. } => Self::Policy,
            Outcome::DeadlineExceeded { .. } => Self::Deadline,
            Outcome::Blocked { .. }
            | Outcome::Cancelled { .. }
            | Outcome::Lost { .. }
            | Outcome::Failed { .. } => Self::DrainFailed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
