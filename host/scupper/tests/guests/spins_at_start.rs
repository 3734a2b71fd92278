//! Never finishes its start.

use guests::{Call, Outcome, Phase, spin};

guests::about!();
guests::hooks!([Phase::BeforeDrain], step);

#[unsafe(no_mangle)]
extern "C" fn _initialize() {
    spin()
}

fn step(_call: &Call) -> Outcome {
    Outcome::Done
}
