//! Requests a capability of the future.

use guests::{Call, Description, Grant, Outcome, Phase};

guests::about!(
    Description::new("wants-unknown", "0.1.0", "Wants a secret").wants(Grant {
        capability: "secrets".to_owned(),
        target: "token".to_owned(),
    })
);
guests::hooks!([Phase::BeforeDrain], step);

fn step(_call: &Call) -> Outcome {
    Outcome::Done
}
