//! Marks the node during its drain, for example for a load balancer: minimal hooks.

use scupper_sdk::{Call, Description, Grant, Hooks, Outcome, Phase, Policy, cluster, description, log};

const ANNOTATION: &str = "example.com/drained-for";

struct Announce;

scupper_sdk::export!(Announce with hooks);

impl Policy for Announce {
    fn describe() -> Description {
        // The driver loads the policy only if the operator grants this prefix.
        description!("Marks the node with the name of its drain")
            .wants(Grant::node_annotations("example.com/"))
    }
}

impl Hooks for Announce {
    fn phases() -> Vec<Phase> {
        vec![Phase::BeforeDrain, Phase::OnCancel, Phase::AfterUncordon]
    }

    fn step(call: &Call) -> Outcome {
        // A step may be repeated after a crash, and both changes are safe to repeat.
        let done = match call.phase {
            Phase::BeforeDrain => cluster::annotate_node(ANNOTATION, &call.drain.name),
            // The node stays out of service: the drain failed and its cordon is kept, or an earlier drain has emptied it.
            Phase::OnCancel if call.drain.held || call.drain.found_drained => Ok(()),
            _ => cluster::remove_node_annotation(ANNOTATION),
        };
        match done {
            Ok(()) => {
                log::info!("{:?}: the mark is correct", call.phase);
                Outcome::Done
            }
            // Retried if the API server was unavailable.
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
    fn the_mark_stays_on_a_node_that_stays_out_of_service() {
        for out_of_service in [Host::held, Host::found_drained] {
            let host = Host::new();
            out_of_service(&host);
            for phase in [Phase::BeforeDrain, Phase::OnCancel] {
                assert_eq!(host.step::<Announce>(phase, Subject::Node), Outcome::Done);
            }
            assert_eq!(host.node_annotation(ANNOTATION).as_deref(), Some("maintenance"));
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
