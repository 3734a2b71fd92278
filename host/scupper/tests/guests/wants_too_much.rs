//! Requests a thousand capabilities.

use guests::{Call, Description, Grant, Outcome, Phase};

guests::about!((0..1000).fold(
    Description::new("wants-too-much", "0.1.0", "Wants too much"),
    |about, number| { about.wants(Grant::node_annotations(&format!("example.com/{number}"))) }
));
guests::hooks!([Phase::BeforeDrain], step);

fn step(_call: &Call) -> Outcome {
    Outcome::Done
}
