//! Wants more to be remembered than is remembered.

use guests::{Call, Outcome, Phase};

guests::about!();
guests::hooks!([Phase::BeforeDrain], step);

fn step(call: &Call) -> Outcome {
    // 1024 bytes at first, as `wit/` allows, and then one more.
    Outcome::pending("remembering")
        .state(vec![7; 1024 + usize::from(!call.state.is_empty())])
        .into()
}
