//! The fifth revision is called in another phase than the others.

use guests::{Call, Description, Outcome, Phase};

guests::about!(Description::new("revision", "5", "Has another phase").state_version(1));
guests::hooks!([Phase::OnCancel], step);

fn step(_call: &Call) -> Outcome {
    Outcome::Done
}
