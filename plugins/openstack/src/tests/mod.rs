//! Tests the policy against a cloud in memory: no wasm, no cluster. `host/scupper/tests/real_openstack` does the same against a
//! real Nova.

mod arriving;
mod cancelling;
mod configuration;
mod credentials;
mod emptying;
mod failing;
mod logging_in;
mod looking_again;
mod many_refusals;
mod node_events;
mod nova;
mod planning;
mod records;
mod refusing;
mod restoring;
mod sharing;
mod surroundings;
mod words;

use scupper_sdk::testing::Host;
use scupper_sdk::{Outcome, Pending, Phase, Subject};

use crate::OpenStack;

/// One step of a phase.
fn step(host: &Host, phase: Phase) -> Outcome {
    host.step::<OpenStack>(phase, Subject::Node)
}

/// One step of emptying, which must be pending.
fn pending(host: &Host) -> Pending {
    match step(host, Phase::BeforeDrain) {
        Outcome::Pending(pending) => pending,
        other => panic!("{other:?}"),
    }
}

/// One step of a phase that must fail for good.
fn failed(host: &Host, phase: Phase) -> String {
    match step(host, phase) {
        Outcome::Failed(failure) if failure.retry_after.is_none() => failure.message,
        other => panic!("{other:?}"),
    }
}

/// What the hook waits for, in lines.
fn waits(pending: &Pending) -> Vec<String> {
    let waiting = pending.waiting_for.iter();
    waiting
        .map(|waiting| format!("{}: {}", waiting.what, waiting.detail))
        .collect()
}
