//! Marks the node while it is drained, for a load balancer to see: the smallest hooks that are of use.

use scupper_sdk::{Call, Description, Grant, Hooks, Outcome, Phase, Policy, cluster, description, log};

const ANNOTATION: &str = "example.com/drained-for";

struct Announce;

scupper_sdk::export!(Announce with hooks);

impl Policy for Announce {
    fn describe() -> Description {
        // The driver does not load it unless its operator grants this very prefix.
        description!("Marks the node with the name of its drain")
            .wants(Grant::node_annotations("example.com/"))
    }
}

impl Hooks for Announce {
    fn phases() -> Vec<Phase> {
        vec![Phase::BeforeDrain, Phase::OnCancel, Phase::AfterUncordon]
    }

    fn step(call: &Call) -> Outcome {
        // A step may be taken once more after a crash: both ways do the same when done twice.
        let done = match call.phase {
            Phase::BeforeDrain => cluster::annotate_node(ANNOTATION, &call.drain.name),
            _ => cluster::remove_node_annotation(ANNOTATION),
        };
        match done {
            Ok(()) => {
                log::info!("{:?}: the mark is right", call.phase);
                Outcome::Done
            }
            // Tried again if that can help.
            Err(error) => error.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use scupper_sdk::{Hooks, Outcome, Subject, testing::Host};

    use super::*;

    #[test]
    fn the_mark_is_there_while_the_node_is_drained() {
        for end in [Phase::OnCancel, Phase::AfterUncordon] {
            let host = Host::new();
            assert_eq!(
                host.step::<Announce>(Phase::BeforeDrain, Subject::Node),
                Outcome::Done
            );
            assert_eq!(host.node_annotation(ANNOTATION).as_deref(), Some("maintenance"));
            assert_eq!(host.step::<Announce>(end, Subject::Node), Outcome::Done);
            assert_eq!(host.node_annotation(ANNOTATION), None);
        }
    }

    #[test]
    fn it_acts_in_the_phases_that_it_names() {
        assert!(
            Announce::phases().contains(&Phase::OnCancel),
            "a cancelled drain must not leave the mark"
        );
    }
}
