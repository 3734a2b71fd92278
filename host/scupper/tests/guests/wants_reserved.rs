//! Requests to write the annotations that control the cluster.

use guests::{Call, Description, Grant, Outcome, Phase};

guests::about!(
    Description::new("wants-reserved", "0.1.0", "Wants too much")
        .wants(Grant::node_annotations("node.kubernetes.io/"))
);
guests::hooks!([Phase::BeforeDrain], step);

fn step(_call: &Call) -> Outcome {
    Outcome::Done
}
