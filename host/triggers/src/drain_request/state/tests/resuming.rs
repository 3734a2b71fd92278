//! The drain that a former process left, and namespaces whose requests are known late or never.

use scupper_engine::digest_of_pods;

use super::*;

pub(super) fn left(id: &str) -> ResumePoint {
    ResumePoint {
        id: id.to_owned(),
        name: format!("drain-{id}"),
        intent: Intent::Drain,
        deadline: None,
        only_pods: None,
        finished: false,
    }
}

fn left_for(id: &str, pods: &[&str]) -> ResumePoint {
    ResumePoint {
        only_pods: naming(id, pods).only_pods.as_ref().map(digest_of_pods),
        ..left(id)
    }
}

/// Why this request waits.
fn why(rig: &Rig, uid: &str) -> String {
    rig.state.why_it_waits(uid)
}

#[test]
fn a_new_process_continues_the_drain_while_any_request_asks_for_it() {
    let mut rig = Rig::unresumed(vec![request("b")]);
    rig.finds(Some(left("a")));
    assert_eq!(rig.commands(), ["begin a"]);
    rig.started("a");
    rig.ended("a", drained());
    assert_eq!(rig.written(), ["b: Complete=true Drained"]);
}

#[test]
fn a_new_process_cancels_the_drain_that_no_request_asks_for() {
    let done = with("a", "DrainComplete", "True", "Drained", Time::default());
    for requests in [vec![], vec![done]] {
        let mut rig = Rig::unresumed(requests);
        rig.finds(Some(left("a")));
        assert_eq!(rig.commands(), ["begin a", "cancel a"]);
    }
}

#[test]
fn a_request_that_was_deleted_meanwhile_leaves_its_drain_to_one_that_names_the_same_pods() {
    let mut rig = Rig::unresumed(vec![naming("b", &["x"]), naming("c", &["y"]), request("d")]);
    rig.finds(Some(left_for("a", &["x"])));
    rig.state.advance(rig.now, true);
    let Some(DrainCommand::Begin(begun)) = rig.state.poll_command() else {
        panic!("no drain");
    };
    assert_eq!(
        (begun.id.as_str(), begun.only_pods),
        ("a", naming("b", &["x"]).only_pods)
    );
    assert_eq!(rig.commands(), [""; 0], "its successor must not begin anew");
    rig.started("a");
    rig.ended("a", drained());
    assert_eq!(rig.written()[0], "b: Complete=true Drained");
    assert_eq!(rig.commands(), ["begin c"]);
}

#[test]
fn requests_for_other_pods_do_not_ask_for_the_drain_that_was_left() {
    for other in [naming("b", &["y"]), request("b")] {
        let mut rig = Rig::unresumed(vec![other]);
        rig.finds(Some(left_for("a", &["x"])));
        assert_eq!(rig.commands(), ["begin a", "cancel a"]);
    }
}

/// The request, with what a former process wrote into its status.
fn which_is(request: ObservedRequest, (status, reason): (&str, &str), since: Time) -> ObservedRequest {
    let uid = request.reference.uid.clone();
    ObservedRequest {
        conditions: with(&uid, "DrainInProgress", status, reason, since).conditions,
        ..request
    }
}

const DRAINING: (&str, &str) = ("True", "Draining");
const WAITING: (&str, &str) = ("False", "Waiting");

/// Its pods would leave without hooks, and without the time that policies give them.
#[test]
fn a_request_that_waits_for_a_drain_of_its_own_gets_none_of_the_time_of_another() {
    let begun = Time::default();
    let waits = || which_is(of_gpu("b", "GPU-2"), WAITING, begun);
    let mut rig = Rig::unresumed(vec![
        which_is(of_gpu("a", "GPU-1"), DRAINING, begun),
        waits(),
        of_gpu("c", "GPU-1"),
    ]);
    rig.finds(Some(left("a")));
    assert_eq!(rig.served().as_deref(), Some("a: a c"));
    assert_eq!(rig.commands(), ["begin a"]);
    rig.started("a");
    rig.passes(Duration::from_secs(3));
    assert!(rig.state.why_it_waits("b").contains("waits for its end"));
    rig.ended("a", drained());
    assert_eq!(rig.commands(), ["begin b"]);
    // One whose request is gone is cancelled, as while a process lives.
    let mut rig = Rig::unresumed(vec![waits()]);
    rig.finds(Some(left("a")));
    assert_eq!(rig.commands(), ["begin a", "cancel a"]);
    // The process may have ended before it wrote any status.
    let mut rig = Rig::unresumed(vec![of_gpu("a", "GPU-1"), of_gpu("b", "GPU-2")]);
    rig.finds(Some(left("a.17f")));
    assert_eq!(rig.served().as_deref(), Some("a: a"));
}

#[test]
fn a_drain_of_several_requests_goes_on_for_each_of_them() {
    let begun = Time::default();
    let of = |uid, gpu| which_is(of_gpu(uid, gpu), DRAINING, begun);
    let mut rig = Rig::unresumed(vec![of("b", "GPU-2"), of("a", "GPU-1")]);
    rig.finds(Some(left("gone")));
    assert_eq!(rig.served().as_deref(), Some("gone: a b"));
}

/// Until then one that waits looks like the only one.
#[test]
fn the_request_of_the_drain_may_be_in_a_namespace_that_is_listed_later() {
    let mut rig = Rig::serving(&["one", "two"]);
    rig.finds(Some(left("a")));
    rig.lists(
        "one",
        vec![which_is(of_gpu("b", "GPU-2"), WAITING, Time::default())],
    );
    assert_eq!(rig.commands(), [""; 0]);
    rig.lists("two", vec![of_gpu("a", "GPU-1")]);
    assert_eq!(rig.served().as_deref(), Some("a: a"));
}

#[test]
fn a_new_process_keeps_the_deadline_of_the_former() {
    let mut rig = Rig::unresumed(vec![]);
    let begun = rig.now - HOUR / 2;
    rig.apply(with("a", "DrainInProgress", "True", "Draining", begun));
    rig.apply(with("b", "DrainInProgress", "True", "SomebodyElses", begun));
    rig.finds(Some(left("a")));
    rig.commands();
    rig.started("a");
    rig.delete("b");
    assert_eq!(rig.commands(), ["deadline a Some(1800)"]);
    let mut rig = Rig::with(vec![with("b", "DrainInProgress", "True", "SomebodyElses", begun)]);
    rig.commands();
    rig.started("b");
    assert_eq!(rig.commands(), ["deadline b Some(3600)"]);
}

#[test]
fn nothing_begins_beside_another_instance() {
    let mut rig = Rig::unresumed(vec![request("a")]);
    rig.finds(None);
    rig.state.advance(rig.now, false);
    assert_eq!(rig.state.poll_command(), None);
    assert_eq!(rig.commands(), ["begin a"]);
}

#[test]
fn the_first_drain_waits_a_moment_for_the_requests_of_all_namespaces() {
    let mut rig = Rig::serving(&["one", "two"]);
    rig.finds(None);
    rig.lists("one", vec![request("b")]);
    assert_eq!(rig.commands(), [""; 0]);
    let older = ObservedRequest {
        created: Some(Time::default()),
        ..request("a")
    };
    let newer = ObservedRequest {
        created: Some(Time::from_millis(1)),
        ..request("b")
    };
    rig.apply(newer);
    rig.lists("two", vec![older]);
    assert_eq!(rig.commands(), ["begin a"]);
}

#[test]
fn a_namespace_that_cannot_be_read_holds_up_no_request_of_another() {
    let mut rig = Rig::serving(&["one", "two"]);
    rig.finds(None);
    rig.lists("one", vec![request("a")]);
    rig.commands();
    rig.passes(Duration::from_secs(5));
    assert_eq!(rig.commands(), ["begin a"]);
    rig.started("a");
    assert_eq!(rig.written(), ["a: InProgress=true Draining"]);
}

#[test]
fn a_drain_that_was_left_goes_on_at_once_if_a_readable_namespace_asks_for_it() {
    let mut rig = Rig::serving(&["one", "two"]);
    rig.finds(Some(left("a")));
    assert_eq!(rig.commands(), [""; 0]);
    rig.lists("one", vec![request("a")]);
    assert_eq!(rig.commands(), ["begin a"]);
}

#[test]
fn a_drain_that_an_unreadable_namespace_may_ask_for_is_cancelled_after_a_while_and_the_others_say_why_they_wait()
 {
    let mut rig = Rig::serving(&["one", "two"]);
    rig.finds(Some(left_for("a", &["x"])));
    rig.lists("one", vec![request("b")]);
    rig.passes(Duration::from_secs(119));
    assert_eq!(rig.commands(), [""; 0]);
    assert_eq!(rig.written(), ["b: InProgress=false Waiting"]);
    let text = why(&rig, "b");
    assert!(
        text.contains("namespace two") && text.contains("drain-a"),
        "{text}"
    );
    rig.passes(Duration::from_secs(1));
    rig.state.advance(rig.now, true);
    assert!(matches!(rig.state.poll_command(), Some(DrainCommand::Begin(_))));
    let Some(DrainCommand::Cancel { reason, .. }) = rig.state.poll_command() else {
        panic!("not cancelled");
    };
    assert!(reason.contains("namespace two, which cannot be read"), "{reason}");
    let cancelled = Outcome::Cancelled {
        reason: String::new(),
    };
    rig.ended("a", Some(cancelled));
    assert_eq!(rig.commands(), ["begin b"]);
}

#[test]
fn a_request_that_waits_says_what_for() {
    let mut rig = Rig::with(vec![request("a")]);
    rig.commands();
    assert_eq!(why(&rig, "a"), "waits for another drain of the node to end");
    rig.apply(of_gpu("b", "GPU-1"));
    let text = why(&rig, "b");
    assert!(text.contains("DrainRequest drain-a"), "{text}");
}
