//! What a request finds on its node, and what a command may begin on it.

use std::collections::BTreeMap;

use scupper_engine::{Phase, Time, Uid};

use super::*;

const OWN: Option<&str> = Some("own");
const ALL: OccupancyOverrides = OccupancyOverrides {
    take_over: true,
    node_is_off: false,
    any_cordon: true,
    undoes: false,
};
const UNDOES: OccupancyOverrides = OccupancyOverrides { undoes: true, ..ALL };
const OFF: OccupancyOverrides = OccupancyOverrides {
    take_over: false,
    node_is_off: true,
    any_cordon: false,
    undoes: false,
};

fn mark(id: &str, trigger: &str, phase: Phase) -> Checkpoint {
    Checkpoint {
        id: id.to_owned(),
        name: format!("drain-{id}"),
        trigger: trigger.to_owned(),
        intent: match phase {
            Phase::Uncordoning => Intent::Uncordon,
            _ => Intent::Drain,
        },
        phase,
        ..Checkpoint::blank(Uid::new("u"), Time::default())
    }
}

fn node(checkpoint: Option<Checkpoint>) -> Node {
    Node {
        name: "n1".to_owned(),
        uid: Uid::new("u"),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        unschedulable: true,
        conditions: Vec::new(),
        checkpoint,
        cancel: None,
        resource_version: "1".to_owned(),
    }
}

fn found(request: Option<&str>, intent: Intent, checkpoint: Option<Checkpoint>) -> NodeOccupancy {
    NodeOccupancy::of(request.map(|id| (id, None)), intent, Some(&node(checkpoint)))
}

#[test]
fn another_drain_that_has_not_ended_occupies_the_node_and_one_that_has_ended_does_not() {
    let other = mark("other", "cordon", Phase::Evicting);
    let over = mark("other", "cordon", Phase::Finished);
    for request in [None, OWN] {
        let occupied = NodeOccupancy::Occupied(other.clone());
        assert_eq!(found(request, Intent::Drain, Some(other.clone())), occupied);
        assert_eq!(
            found(request, Intent::Drain, Some(over.clone())),
            NodeOccupancy::Free
        );
        assert_eq!(found(request, Intent::Drain, None), NodeOccupancy::Free);
        assert_eq!(
            NodeOccupancy::of(request.map(|id| (id, None)), Intent::Drain, None),
            NodeOccupancy::Free
        );
    }
}

#[test]
fn a_request_finds_its_own_drain_also_when_that_has_ended() {
    for phase in [Phase::Evicting, Phase::Finished] {
        let own = mark("own", "command", phase);
        let occupancy = found(OWN, Intent::Drain, Some(own.clone()));
        assert_eq!(occupancy.own(), Some(&own));
    }
}

#[test]
fn an_uncordon_finds_whose_the_cordon_is() {
    let ours = Checkpoint {
        own_cordon: true,
        ..mark("other", "cordon", Phase::Finished)
    };
    assert_eq!(found(None, Intent::Uncordon, None), NodeOccupancy::ForeignCordon);
    assert_eq!(found(None, Intent::Uncordon, Some(ours)), NodeOccupancy::Free);
    let schedulable = Node {
        unschedulable: false,
        ..node(None)
    };
    assert_eq!(
        NodeOccupancy::of(None, Intent::Uncordon, Some(&schedulable)),
        NodeOccupancy::Free
    );
}

#[test]
fn a_command_continues_the_same_work_of_another_process_or_drains_instead_of_an_uncordon_and_only_if_allowed()
{
    let begins = |occupancy: NodeOccupancy, intent, allowed| occupancy.for_command("n1", intent, allowed);
    for (trigger, phase, allowed, may) in [
        ("command", Phase::Evicting, ALL, true),
        ("command", Phase::Evicting, OccupancyOverrides::default(), false),
        ("command", Phase::Uncordoning, ALL, true),
        (
            "command",
            Phase::Uncordoning,
            OccupancyOverrides::default(),
            false,
        ),
        ("cordon", Phase::Evicting, ALL, true),
        ("LifecycleEvent", Phase::Evicting, ALL, true),
        (
            "LifecycleEvent",
            Phase::Evicting,
            OccupancyOverrides::default(),
            false,
        ),
        // The command would drain the whole node.
        ("DrainRequest", Phase::Evicting, ALL, false),
        ("DrainRequest", Phase::Evicting, UNDOES, true),
        ("DrainRequest", Phase::Uncordoning, ALL, true),
    ] {
        let occupied = NodeOccupancy::Occupied(mark("other", trigger, phase));
        let result = begins(occupied, Intent::Drain, allowed);
        assert_eq!(result.is_ok(), may, "{trigger} {phase}: {result:?}");
    }
    let on = |phase, intent| {
        let occupied = NodeOccupancy::Occupied(mark("other", "command", phase));
        begins(occupied, intent, ALL)
    };
    assert!(on(Phase::Evicting, Intent::Uncordon).is_err());
    let replaced = on(Phase::Uncordoning, Intent::Drain);
    assert_eq!(replaced.unwrap(), NodeOccupancy::Free);
    let uncordon = |allowed| begins(NodeOccupancy::ForeignCordon, Intent::Uncordon, allowed);
    assert!(uncordon(ALL).is_ok());
    assert!(matches!(
        uncordon(OccupancyOverrides::default()),
        Err(LocalError::ForeignCordon { .. })
    ));
}

/// Its driver was on that machine.
#[test]
fn a_drain_of_a_machine_that_is_off_continues_a_drain_of_every_trigger_and_replaces_what_ends_one() {
    let off_and_take_over = OccupancyOverrides {
        take_over: true,
        ..OFF
    };
    for allowed in [OFF, off_and_take_over] {
        for trigger in ["LifecycleEvent", "DrainRequest", "cordon", "command"] {
            let on = |phase| {
                let occupied = NodeOccupancy::Occupied(mark("other", trigger, phase));
                occupied.for_command("n1", Intent::Drain, allowed).unwrap()
            };
            let drain = mark("other", trigger, Phase::Evicting);
            assert_eq!(on(Phase::Evicting), NodeOccupancy::Occupied(drain), "{trigger}");
            for phase in [Phase::RollingBack, Phase::Uncordoning] {
                assert_eq!(on(phase), NodeOccupancy::Free, "{trigger} {phase}");
            }
        }
    }
    let occupied = NodeOccupancy::Occupied(mark("other", "cordon", Phase::Evicting));
    assert!(occupied.for_command("n1", Intent::Uncordon, OFF).is_err());
}

#[test]
fn a_claimed_event_keeps_commands_from_the_node() {
    let event = || Some("drain-n1-x".to_owned());
    for found in [NodeOccupancy::Free, NodeOccupancy::ForeignCordon] {
        let claimed = found.clone().and_claimed(event());
        let error = claimed.for_command("n1", Intent::Drain, ALL).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("claimed, for LifecycleEvent drain-n1-x"),
            "{error}"
        );
        assert_eq!(found.clone().and_claimed(None), found);
    }
    let occupied = NodeOccupancy::Occupied(mark("other", "command", Phase::Evicting));
    assert_eq!(occupied.clone().and_claimed(event()), occupied);
}
