//! Which requests one drain serves, and which need a drain of their own.

use super::*;

#[test]
fn requests_that_name_pods_are_joined_only_if_they_name_the_same() {
    let requests = vec![
        naming("a", &["x"]),
        naming("b", &["x"]),
        naming("c", &["y"]),
        naming("d", &[]),
    ];
    let mut rig = Rig::with(requests);
    rig.state.advance(rig.now, true);
    let Some(DrainCommand::Begin(begun)) = rig.state.poll_command() else {
        panic!("no drain");
    };
    assert_eq!(
        (request_of(&begun.id), begun.only_pods),
        ("a", naming("a", &["x"]).only_pods)
    );
    assert_eq!(rig.written(), ["d: Complete=true NoPods"]);
    rig.started("a");
    rig.commands();
    rig.ended("a", drained());
    assert_eq!(rig.commands(), ["begin c"]);
    assert_eq!(rig.written().len(), 2);
}

#[test]
fn a_request_for_another_gpu_waits_for_a_plan_of_its_own() {
    let mut rig = Rig::with(vec![of_gpu("a", "GPU-1"), of_gpu("b", "GPU-2")]);
    assert_eq!(rig.commands(), ["begin a"], "one plan for all that are open");
    rig.apply(of_gpu("c", "GPU-2"));
    rig.apply(of_gpu("d", "GPU-3"));
    rig.apply(request("e"));
    rig.started("a");
    rig.written();
    rig.commands();
    rig.passes(Duration::from_secs(3));
    assert_eq!(
        rig.written(),
        ["d: InProgress=false Waiting", "e: InProgress=false Waiting"]
    );
    rig.ended("a", drained());
    let written = rig.written();
    assert_eq!(written.len(), 3, "{written:?}");
    assert!(
        written.iter().all(|write| write.contains("Complete=true")),
        "{written:?}"
    );
    assert_eq!(
        rig.commands(),
        ["begin d"],
        "the others are answered by the next drain"
    );
    rig.started("d");
    rig.ended("d", drained());
    assert_eq!(rig.written().len(), 2);
}

#[test]
fn a_request_for_the_same_gpu_and_another_action_waits_as_well() {
    let mut rig = Rig::with(vec![of_gpu("a", "GPU-1")]);
    rig.commands();
    let mut reboot = of_gpu("b", "GPU-1");
    let action = "RESTART_BM".to_owned();
    Arc::make_mut(&mut reboot.fields).recommended_action = action;
    rig.apply(reboot);
    assert_eq!(rig.served().as_deref(), Some("a: a"));
    rig.ended("a", drained());
    assert_eq!(rig.commands(), ["begin b"]);
}

#[test]
fn a_request_that_changes_its_gpu_is_a_new_drain() {
    let mut rig = Rig::with(vec![of_gpu("a", "GPU-1"), of_gpu("b", "GPU-1")]);
    rig.commands();
    rig.started("a");
    rig.apply(of_gpu("b", "GPU-2"));
    assert_eq!(rig.served().as_deref(), Some("a: a"));
    rig.apply(of_gpu("a", "GPU-2"));
    rig.passes(HOUR / 2);
    assert!(rig.commands().contains(&"cancel a".to_owned()));
    rig.ended(
        "a",
        Some(Outcome::Cancelled {
            reason: String::new(),
        }),
    );
    assert_eq!(rig.commands(), ["begin a"]);
}

#[test]
fn policies_learn_what_a_drain_serves_before_it_begins_and_not_that_it_serves_nothing() {
    let older = |uid: &str, created| {
        let mut request = request(uid);
        Arc::make_mut(&mut request.fields).created = Some(Time::from_millis(created));
        request.created = Some(Time::from_millis(created));
        request
    };
    let mut rig = Rig::with(vec![older("a", 2), older("b", 1)]);
    assert_eq!(rig.served().as_deref(), Some("b: b a"));
    rig.delete("b");
    assert_eq!(rig.served().as_deref(), Some("b: a"));
    rig.delete("a");
    assert_eq!(rig.served(), None, "the last ones stay");
    assert_eq!(rig.commands(), ["begin b", "cancel b"]);
}
