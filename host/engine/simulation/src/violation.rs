//! A violated invariant.

use std::fmt;

/// The violated invariant, its place, and the observation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The world's seed.
    pub seed: u64,
    /// The invariant's number.
    pub invariant: u8,
    /// The observation.
    pub message: String,
    /// Milliseconds since the world began.
    pub at: u64,
    /// The last events before it, if they were recorded.
    pub trace: Vec<String>,
}

/// A violated invariant, before its place is known.
#[derive(Debug)]
pub(crate) struct Broken {
    pub(crate) invariant: u8,
    pub(crate) message: String,
}

/// The result of checking an invariant.
pub(crate) type Checked = Result<(), Broken>;

/// The invariant does not hold.
pub(crate) fn broken(invariant: u8, message: impl Into<String>) -> Checked {
    Err(Broken::new(invariant, message))
}

impl Broken {
    pub(crate) fn new(invariant: u8, message: impl Into<String>) -> Self {
        Self {
            invariant,
            message: message.into(),
        }
    }
}

/// The invariants in short, by their number from 1.
pub const INVARIANTS: [&str; 9] = [
    "only pods that the plan names leave, each by its UID",
    "the driver's own pod goes last or never, DaemonSet pods only when the plan says so",
    "drained is said only when every leaving pod is gone",
    "after cancel, deadline, loss or pause, and while uncordoned, nothing is evicted",
    "only a cordon of ours is lifted",
    "every drain ends in time, and every pod that is there has one reason",
    "nothing waits without a timer, policies are obeyed within bounds, nothing panics or spins",
    "after a crash the drain continues, and nothing is done twice",
    "what a policy has changed and not undone is in the record, and the record outlives the drain",
];

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let promise = INVARIANTS
            .get(usize::from(self.invariant).wrapping_sub(1))
            .unwrap_or(&"");
        writeln!(
            f,
            "seed {} breaks invariant {} ({promise})",
            self.seed, self.invariant
        )?;
        writeln!(
            f,
            "at {}.{:03} s: {}",
            self.at / 1000,
            self.at % 1000,
            self.message
        )?;
        for line in &self.trace {
            writeln!(f, "  {line}")?;
        }
        write!(
            f,
            "replay: cargo run --release -p scupper-engine-simulation -- --seed {} --trace",
            self.seed
        )
    }
}

impl std::error::Error for Violation {}
