//! A drain from its plan to its end, command by command.

use crate::harness::{Host, node, pod, request};
use scupper_engine::{Event, Node, Outcome};

#[test]
fn a_drain_without_policies_costs_one_write_one_list_and_one_save() {
    let mut host = Host::new(request());
    host.does("").begin(&[pod("a"), pod("b")]).does("cordon at 100");
    host.written("cordon").does("evict a\nevict b");
    host.accepted("evict a").accepted("evict b").does("");
    host.gone(&["a", "b"]).does("list-pods");
    host.listed(&[]).does("save finished, ours");
    host.written("save").does("").ends(&Outcome::Drained);
}

#[test]
fn a_drain_reports_its_phases() {
    let mut host = Host::new(request());
    host.begin(&[pod("a")])
        .written("cordon")
        .accepted("evict a")
        .gone(&["a"])
        .listed(&[])
        .written("save");
    host.reports(
        "phase planning
         planned 1 pods: all 1
         phase preparing
         phase cordoning
         a waits: WaveNotStarted
         cordoned, ours: true
         phase holding
         phase evicting
         wave all 1/1: 1
         a waits: EvictionRequested
         a leaves
         a waits: Terminating
         a gone, 0 left
         phase verifying
         phase finished
         finished: every pod to evict is gone",
    );
}

#[test]
fn a_foreign_cordon_is_marked_as_foreign_and_kept() {
    let mut host = Host::new(request());
    let cordoned = Node {
        unschedulable: true,
        ..node()
    };
    host.begin_with(cordoned, &[], &[]).does("save holding, not ours");
    host.written("save").does("list-pods");
    host.listed(&[]).does("forget");
    host.written("forget").ends(&Outcome::Drained);
}

#[test]
fn a_conflicting_cordon_is_decided_anew_on_the_next_state() {
    let mut host = Host::new(request());
    host.begin(&[])
        .answer("cordon", scupper_engine::Answer::WriteConflict)
        .does("");
    host.wait(3_600_000).does("");
    host.handle(Event::Node(Some(Node {
        resource_version: "105".to_owned(),
        ..node()
    })))
    .does("cordon at 105");
    host.answer("cordon", scupper_engine::Answer::WriteConflict);
    let theirs = Node {
        resource_version: "106".to_owned(),
        unschedulable: true,
        ..node()
    };
    host.handle(Event::Node(Some(theirs)))
        .does("save holding, not ours");
}
