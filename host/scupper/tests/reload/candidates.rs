//! A candidate passes all steps or changes nothing; the same one is tried once.

use scupper_policy_reload::{ReloadNotice, SlotState};

use crate::rig::{Rig, bytes, named, replace, step, still};

/// The next notice, which must be a rejection: the step that failed, and the reason.
async fn rejection(rig: &mut Rig) -> (&'static str, String) {
    match rig.next().await {
        ReloadNotice::Rejected { step, reason, .. } => (step, reason),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_good_one_is_taken() {
    let mut rig = Rig::of("revision_1", still()).await;
    rig.until_active("1").await;
    let before = rig.slot();
    assert_eq!((before.generation, before.state), (1, SlotState::Active));
    rig.put("revision_2");
    rig.rescan().await;
    let reported = rig.until_active("2").await;
    assert_eq!(reported.len(), 1, "{reported:?}");
    let slot = rig.slot();
    assert_eq!((slot.generation, slot.state), (2, SlotState::Active));
    assert_eq!(slot.previous, Some(before.digest));
    assert_eq!(step(&rig.catalogue.session()).await, "2");
}

#[tokio::test]
async fn a_bad_candidate_changes_nothing_and_is_reported_once() {
    let mut rig = Rig::of("revision_1", still()).await;
    rig.until_active("1").await;
    let whole = bytes("revision_2");
    let cases: [(&str, Vec<u8>, &str, &str); 7] = [
        (
            "half written",
            whole[..whole.len() / 2].to_vec(),
            "scan",
            "not valid WebAssembly",
        ),
        ("empty", Vec::new(), "scan", "not a WebAssembly file"),
        ("native code", b"\x7fELF and more".to_vec(), "scan", "native code"),
        ("of an unknown import", bytes("wants_import"), "scan", "imports"),
        (
            "never answering",
            bytes("spins_in_describe"),
            "describe",
            "describe",
        ),
        ("wanting more", bytes("wants_too_much"), "grants", "wants"),
        (
            "failing in the dry call",
            bytes("revision_4"),
            "probe",
            "make-plan",
        ),
    ];
    for (what, candidate, step_that_failed, word) in cases {
        replace(&rig.file(), &candidate);
        rig.rescan().await;
        let (failed, reason) = rejection(&mut rig).await;
        assert!(reason.contains(word), "{what}: {reason}");
        assert_eq!(failed, step_that_failed, "{what}: {reason}");
        rig.rescan().await;
        assert_eq!(rig.reported(), [], "{what} is reported again");
        assert_eq!(
            (rig.version().as_str(), rig.catalogue.generation()),
            ("1", 1),
            "{what}"
        );
        assert_eq!(rig.slot().problem.unwrap().reason, reason);
        assert_eq!(step(&rig.catalogue.session()).await, "1", "{what}");
    }
    std::fs::remove_file(rig.file()).unwrap();
    rig.rescan().await;
    let (failed, reason) = rejection(&mut rig).await;
    assert!(
        failed == "read" && reason.contains("cannot be read"),
        "{failed}: {reason}"
    );
    rig.put("revision_1");
    rig.rescan().await;
    assert_eq!(
        (rig.slot().problem, rig.reported()),
        (None, vec![]),
        "what is active is no candidate"
    );
    rig.put("revision_2");
    rig.rescan().await;
    assert_eq!(rig.version(), "2");
}

#[tokio::test]
async fn a_configuration_alone_is_checked_by_the_component_that_is_there() {
    let mut rig = Rig::of("revision_1", still()).await;
    rig.until_active("1").await;
    rig.configure(&[("note", "new")]);
    // Only the digest of the module's file is read: the loaded component checks the configuration.
    rig.rescan().await;
    assert_eq!(step(&rig.catalogue.session()).await, "1 new");
    assert_eq!(rig.slot().generation, 2);
    rig.until_active("1").await;
    rig.configure(&[("refuse", "yes")]);
    rig.rescan().await;
    let (failed, reason) = rejection(&mut rig).await;
    assert!(
        failed == "check-config" && reason.contains("`refuse`: no"),
        "{failed}: {reason}"
    );
    assert_eq!(step(&rig.catalogue.session()).await, "1 new");
}

#[tokio::test]
async fn a_configuration_that_cannot_be_read_changes_nothing() {
    let mut rig = Rig::of("revision_1", still()).await;
    rig.until_active("1").await;
    rig.set_specs(Err("line 3: policys: did you mean policies?".to_owned()));
    for _ in 0..2 {
        rig.rescan().await;
    }
    let (failed, reason) = rejection(&mut rig).await;
    assert!(
        failed == "configuration" && reason.contains("did you mean"),
        "{failed}: {reason}"
    );
    assert_eq!(rig.reported(), []);
    // Modules are still kept up to date, by the last valid configuration.
    rig.put("revision_2");
    rig.rescan().await;
    assert_eq!(rig.version(), "2");
}

#[tokio::test]
async fn a_chain_is_accepted_as_a_whole_or_not_at_all() {
    let mut rig = Rig::of("revision_1", still()).await;
    rig.until_active("1").await;
    let (file, other) = (rig.file(), rig.dir.path().join("q.wasm"));
    replace(&other, b"nothing");
    // `p` is renamed to `r`, and `q` is new but broken: without the rule, nothing would be called at all.
    rig.set_specs(Ok(vec![named("r", &file, &[]), named("q", &other, &[])]));
    rig.rescan().await;
    let names = |rig: &Rig| -> Vec<String> {
        let infos = rig.catalogue.session().infos();
        infos.into_iter().map(|info| info.name).collect()
    };
    assert_eq!(names(&rig), ["p"]);
    assert_eq!(step(&rig.catalogue.session()).await, "1");
    replace(&other, &bytes("revision_2"));
    rig.rescan().await;
    assert_eq!(names(&rig), ["r", "q"]);
    rig.set_specs(Ok(vec![named("q", &other, &[]), named("r", &file, &[])]));
    rig.rescan().await;
    assert_eq!(names(&rig), ["q", "r"], "another order is another chain");
    rig.set_specs(Ok(vec![named("q", &other, &[]), named("q", &file, &[])]));
    rig.rescan().await;
    assert_eq!(names(&rig), ["q", "r"], "names are unique");
}

#[tokio::test]
async fn a_bad_candidate_that_comes_a_second_time_is_reported_a_second_time() {
    let mut rig = Rig::of("revision_1", still()).await;
    rig.until_active("1").await;
    let mut reasons = Vec::new();
    for _ in 0..2 {
        replace(&rig.file(), b"nothing");
        rig.rescan().await;
        assert!(rig.slot().problem.is_some(), "it is ignored without a word");
        reasons.push(rejection(&mut rig).await);
        rig.put("revision_1");
        rig.rescan().await;
        assert_eq!(rig.slot().problem, None);
    }
    assert_eq!(reasons[0], reasons[1]);
}

#[tokio::test]
async fn a_rolled_back_revision_that_comes_a_second_time_is_still_rolled_back() {
    let rig = Rig::of("revision_1", still()).await;
    rig.put("revision_2");
    rig.rescan().await;
    rig.catalogue.roll_back("p").await.unwrap();
    let before = rig.slot();
    rig.put("revision_1");
    rig.rescan().await;
    assert_eq!(rig.slot().state, SlotState::Active);
    rig.put("revision_2");
    rig.rescan().await;
    let slot = rig.slot();
    assert_eq!((slot.version.as_str(), slot.state), ("1", SlotState::RolledBack));
    let (problem, before) = (slot.problem.unwrap(), before.problem.unwrap());
    assert_eq!((problem.digest, problem.reason), (before.digest, before.reason));
}
