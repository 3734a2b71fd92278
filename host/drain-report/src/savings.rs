//! What would have made the drain shorter, in words.

use std::time::Duration;

use scupper_common::text::one_line;
use scupper_engine::HumanDuration;
use scupper_forecast::{Change, Saving};

use super::TEXT;

/// Changes that are named.
const NAMED: usize = 3;
/// What saves less than this part of the whole is not worth it.
const WORTH: u32 = 20;

/// Those that are worth it, as one sentence; `None`: there are none.
pub(super) fn sentence(savings: &[Saving], took: Duration) -> Option<String> {
    let worth = savings.iter().filter(|saving| saving.saves >= took / WORTH);
    let texts = worth.take(NAMED).map(|saving| {
        let saves = HumanDuration(saving.saves);
        format!("{} ({saves})", one_line(&change(&saving.change), TEXT))
    });
    let texts: Vec<_> = texts.collect();
    (!texts.is_empty()).then(|| format!("Any one of these would have saved (time): {}.", texts.join(", ")))
}

fn change(change: &Change) -> String {
    match change {
        Change::Budget(namespace, name) => {
            format!("one more eviction at a time from budget {namespace}/{name}")
        }
        Change::Hook(policy, phase) => format!("no time for the {phase} hook of policy {policy}"),
        Change::Workload(workload) => format!("pods of {workload} that end in half the time"),
    }
}

/// Its kind and what it is of, for programs.
pub(super) fn names(change: &Change) -> (&'static str, String) {
    match change {
        Change::Budget(namespace, name) => ("budget", format!("{namespace}/{name}")),
        Change::Hook(policy, phase) => ("hook", format!("{policy} {phase}")),
        Change::Workload(workload) => ("ending", workload.to_string()),
    }
}
