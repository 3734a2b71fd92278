//! Never returns from a step.

use guests::{Call, Outcome, Phase, spin};

guests::about!();
guests::hooks!([Phase::BeforeDrain], step);

fn step(_call: &Call) -> Outcome {
    spin()
}
