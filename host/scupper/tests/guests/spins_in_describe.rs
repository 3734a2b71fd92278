//! Never finishes its description.

use guests::{Call, Outcome, Phase, spin};

guests::about!(spin());
guests::hooks!([Phase::BeforeDrain], step);

fn step(_call: &Call) -> Outcome {
    Outcome::Done
}
