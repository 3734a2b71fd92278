//! Returns a larger state than the host saves.

use guests::{Call, Outcome, Phase};

guests::about!();
guests::hooks!([Phase::BeforeDrain], step);

fn step(call: &Call) -> Outcome {
    // First 1024 bytes, as `wit/` allows, and then one more.
    Outcome::pending("remembering")
        .state(vec![7; 1024 + usize::from(!call.state.is_empty())])
        .into()
}
