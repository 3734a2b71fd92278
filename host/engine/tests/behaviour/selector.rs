//! Policies for some nodes only.

use std::collections::BTreeMap;

use crate::harness::{Host, hooks, node, planner, pod, request};
use scupper_engine::{Checkpoint, Event, HookPhase, Node, Phase, PolicyInfo, Request, Subject};

type Labels = &'static [(&'static str, &'static str)];

fn labels(labels: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    labels.iter().map(owned).collect()
}

fn only_on(policy: PolicyInfo, selector: &[(&str, &str)]) -> PolicyInfo {
    PolicyInfo {
        node_selector: labels(selector),
        ..policy
    }
}

fn labelled(given: &[(&str, &str)]) -> Node {
    Node {
        labels: labels(given),
        ..node()
    }
}

#[test]
fn a_policy_applies_where_every_label_is_present() {
    let rows: &[(Labels, Labels, bool)] = &[
        (&[], &[], true),
        (&[], &[("gpu", "true")], true),
        (&[("gpu", "true")], &[("gpu", "true"), ("zone", "a")], true),
        (&[("gpu", "true")], &[], false),
        (&[("gpu", "true")], &[("gpu", "yes")], false),
        (&[("gpu", "true"), ("zone", "a")], &[("gpu", "true")], false),
        (&[("gpu", "")], &[], false),
    ];
    for (selector, node, expected) in rows {
        let policy = only_on(planner("x"), selector);
        assert_eq!(
            policy.is_for(&labelled(node)),
            *expected,
            "{selector:?} on {node:?}"
        );
    }
}

#[test]
fn planners_of_other_nodes_are_left_out_of_the_chain() {
    let policies = vec![
        only_on(planner("one"), &[("slurm", "true")]),
        only_on(planner("two"), &[("slurm", "false")]),
        planner("three"),
    ];
    let mut host = Host::new(Request {
        policies,
        ..request()
    });
    host.begin_with(labelled(&[("slurm", "true")]), &[pod("a")], &[])
        .does("plan one")
        .planned("one", |_| {})
        .does("plan three");
}

/// A policy with hooks, for Slurm nodes.
fn with_slurm() -> Request {
    let slurm = hooks("slurm", &[HookPhase::BeforeCordon, HookPhase::BeforeDrain]);
    Request {
        policies: vec![only_on(slurm, &[("slurm", "true")])],
        ..request()
    }
}

#[test]
fn hooks_of_other_nodes_are_not_called() {
    let mut host = Host::new(with_slurm());
    host.begin(&[pod("a")]).does("cordon at 100");
    let mut host = Host::new(with_slurm());
    host.begin_with(labelled(&[("slurm", "true")]), &[pod("a")], &[])
        .does("step slurm before-cordon node");
}

#[test]
fn a_label_that_changes_later_changes_nothing() {
    let mut host = Host::new(Request {
        policies: vec![
            only_on(planner("one"), &[("slurm", "true")]),
            only_on(planner("two"), &[("gpu", "true")]),
        ],
        ..request()
    });
    let later = Node {
        resource_version: "101".to_owned(),
        ..labelled(&[("gpu", "true")])
    };
    host.begin_with(labelled(&[("slurm", "true")]), &[pod("a")], &[])
        .does("plan one")
        .handle(Event::Node(Some(later)))
        .planned("one", |_| {})
        .does("cordon at 101");
}

#[test]
fn a_policy_that_has_begun_continues_without_the_label() {
    let mut host = Host::new(request());
    host.begin(&[]).skip();
    let checkpoint = Checkpoint {
        phase: Phase::Holding,
        own_cordon: true,
        done: vec![("slurm".to_owned(), HookPhase::BeforeCordon, Subject::Node)],
        ..host.last_checkpoint()
    };
    let cordoned = Node {
        unschedulable: true,
        checkpoint: Some(checkpoint.clone()),
        ..node()
    };
    let mut host = Host::resume(with_slurm(), checkpoint.clone());
    host.begin_with(cordoned.clone(), &[pod("a")], &[])
        .does("step slurm before-drain node");
    let nothing_begun = Checkpoint {
        done: Vec::new(),
        ..checkpoint
    };
    let mut host = Host::resume(with_slurm(), nothing_begun);
    host.begin_with(cordoned, &[pod("a")], &[]).does("evict a");
}
