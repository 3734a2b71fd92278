//! Scripted hooks, which take time, fail, or never end.

use std::time::Duration;

use scupper_engine::{HookStep, StepOutcome, WaitingOn};

use crate::rng::Rng;
use crate::scenario::Mood;

/// How a hook behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HookScript {
    Done,
    Pending { times: u8, again_after: u64 },
    FailsFirst { times: u8, retry_after: u64 },
    FailsForGood,
    PendsForEver { again_after: u64 },
    FailsForEver { retry_after: u64 },
    Oversized,
}

impl HookScript {
    pub(crate) fn new(rng: &mut Rng, mood: Mood) -> Self {
        let wild = mood == Mood::Wild;
        let times = u8::try_from(rng.between(1, 4)).unwrap_or(1);
        let again_after = match rng.below(8) {
            0 => 0,
            1 if wild => 100_000_000,
            _ => rng.span(5_000, 60_000),
        };
        // A hook that never ends must not be called continuously, or worlds take as long.
        let slowly = again_after.max(15_000);
        match rng.below(16) {
            0..5 => Self::Done,
            9..12 => Self::FailsFirst {
                times,
                retry_after: again_after,
            },
            12 if wild => Self::FailsForGood,
            13 if wild => Self::PendsForEver { again_after: slowly },
            14 if wild => Self::FailsForEver { retry_after: slowly },
            15 if wild => Self::Oversized,
            _ => Self::Pending { times, again_after },
        }
    }

    /// Takes a step. `failed`: how often this hook has failed already, under any process.
    pub(crate) fn step(self, step: &HookStep, failed: u8) -> StepOutcome {
        let count = step.state.as_slice().try_into().map_or(0, u32::from_be_bytes);
        let message = String::from("scripted");
        match self {
            Self::Done => StepOutcome::Done,
            Self::Pending { times, again_after } if count < u32::from(times) => {
                pending(count + 1, again_after)
            }
            Self::Pending { .. } => StepOutcome::Done,
            Self::FailsFirst { times, retry_after } if failed < times => StepOutcome::Failed {
                message,
                retry_after: Some(Duration::from_millis(retry_after)),
            },
            Self::FailsFirst { .. } => StepOutcome::Done,
            Self::FailsForGood => StepOutcome::Failed {
                message,
                retry_after: None,
            },
            Self::PendsForEver { again_after } => pending(count.saturating_add(1), again_after),
            Self::FailsForEver { retry_after } => StepOutcome::Failed {
                message,
                retry_after: Some(Duration::from_millis(retry_after)),
            },
            Self::Oversized => StepOutcome::Pending {
                state: vec![1; 1 << 16],
                again_after: Duration::from_secs(1),
                progress: String::new(),
                waiting_for: Vec::new(),
            },
        }
    }
}

/// Each state has its own version, so that a state returned under another version is noticed.
pub(crate) fn version_of(state: &[u8]) -> Option<u32> {
    state.try_into().ok().map(u32::from_be_bytes)
}

fn pending(count: u32, again_after: u64) -> StepOutcome {
    StepOutcome::Pending {
        state: count.to_be_bytes().to_vec(),
        again_after: Duration::from_millis(again_after),
        progress: format!("step {count}"),
        waiting_for: vec![WaitingOn {
            what: String::from("a job"),
            detail: String::from("its end"),
            since: None,
        }],
    }
}
