//! Shadows among policies that are reloaded: a change of mode, a broken one, and what a drain keeps.

use scupper_policy_reload::{ReloadNotice, SlotState};
use scupper_policy_spec::{PolicyMode, PolicySpec};

use crate::rig::{Rig, bytes, named, replace, step, still};

fn shadow(spec: PolicySpec) -> PolicySpec {
    PolicySpec {
        mode: PolicyMode::Shadow { instead_of: None },
        ..spec
    }
}

fn chain(rig: &Rig) -> Vec<String> {
    let infos = rig.catalogue.session().infos();
    infos.into_iter().map(|info| info.name).collect()
}

fn shadows(rig: &Rig) -> Vec<String> {
    let session = rig.catalogue.session();
    session
        .shadows()
        .iter()
        .map(|shadow| shadow.name().to_owned())
        .collect()
}

#[tokio::test]
async fn a_policy_becomes_a_shadow_and_is_promoted_while_a_drain_keeps_what_it_has() {
    let mut rig = Rig::of("revision_1", still()).await;
    rig.until_active("1").await;
    let before = rig.catalogue.session();
    let file = rig.file();
    rig.set_specs(Ok(vec![shadow(named("p", &file, &[]))]));
    rig.rescan().await;
    let [ReloadNotice::Activated { is_shadow: true, .. }] = &rig.reported()[..] else {
        panic!("{:?}", rig.catalogue.slots())
    };
    assert_eq!((chain(&rig), shadows(&rig)), (vec![], vec!["p".to_owned()]));
    let slot = rig.slot();
    assert_eq!((slot.mode.as_str(), slot.state), ("shadow", SlotState::Active));
    assert_eq!(slot.to_json()["mode"], "shadow");
    assert_eq!(
        step(&before).await,
        "1",
        "it has begun with the policy, and ends with it"
    );
    assert_eq!(before.infos().len(), 1);

    let during = rig.catalogue.session();
    rig.set_specs(Ok(vec![named("p", &file, &[])]));
    rig.rescan().await;
    assert_eq!((chain(&rig), shadows(&rig)), (vec!["p".to_owned()], vec![]));
    assert_eq!((during.infos().len(), during.shadows().len()), (0, 1));
    // Otherwise a policy that fails would silently leave the chain.
    assert_eq!(rig.slot().previous, None);
    let refused = rig.catalogue.roll_back("p").await.unwrap_err();
    assert!(refused.contains("no revision before"), "{refused}");
}

#[tokio::test]
async fn a_broken_shadow_keeps_the_new_configuration_away_as_any_broken_policy_does() {
    let rig = Rig::of("revision_1", still()).await;
    let (file, other) = (rig.file(), rig.dir.path().join("q.wasm"));
    replace(&other, b"nothing");
    rig.set_specs(Ok(vec![named("r", &file, &[]), shadow(named("q", &other, &[]))]));
    rig.rescan().await;
    assert_eq!((chain(&rig), shadows(&rig)), (vec!["p".to_owned()], vec![]));
    let slots = rig.catalogue.slots();
    let slot = slots.iter().find(|slot| slot.name == "q").unwrap();
    assert!(
        slot.problem.is_some() && slot.state == SlotState::Rejected,
        "{slot:?}"
    );
    replace(&other, &bytes("revision_2"));
    rig.rescan().await;
    assert_eq!(
        (chain(&rig), shadows(&rig)),
        (vec!["r".to_owned()], vec!["q".to_owned()])
    );
}

/// Two policies change places. Without the rule there would be a moment without either.
#[tokio::test]
async fn modes_change_together_or_not_at_all() {
    let rig = Rig::of("revision_1", still()).await;
    let (file, other) = (rig.file(), rig.dir.path().join("q.wasm"));
    replace(&other, &bytes("revision_2"));
    rig.set_specs(Ok(vec![named("p", &file, &[]), shadow(named("q", &other, &[]))]));
    rig.rescan().await;
    assert_eq!(
        (chain(&rig), shadows(&rig)),
        (vec!["p".to_owned()], vec!["q".to_owned()])
    );
    replace(&other, b"nothing");
    let swapped = vec![shadow(named("p", &file, &[])), named("q", &other, &[])];
    rig.set_specs(Ok(swapped));
    rig.rescan().await;
    assert_eq!(
        (chain(&rig), shadows(&rig)),
        (vec!["p".to_owned()], vec!["q".to_owned()])
    );
    replace(&other, &bytes("revision_2"));
    rig.rescan().await;
    assert_eq!(
        (chain(&rig), shadows(&rig)),
        (vec!["q".to_owned()], vec!["p".to_owned()])
    );
}

/// The operator restores the old file while the change waits for a policy that does not load.
#[tokio::test]
async fn a_change_of_mode_that_was_taken_back_is_never_made() {
    for is_shadow in [false, true] {
        let mut rig = Rig::of("revision_1", still()).await;
        let (file, other) = (rig.file(), rig.dir.path().join("q.wasm"));
        let p = |is_shadow| match is_shadow {
            true => shadow(named("p", &file, &[])),
            false => named("p", &file, &[]),
        };
        let p_alone = vec!["p".to_owned()];
        let before = match is_shadow {
            true => (vec![], p_alone),
            false => (p_alone, vec![]),
        };
        rig.set_specs(Ok(vec![p(is_shadow)]));
        rig.rescan().await;
        assert_eq!((chain(&rig), shadows(&rig)), before);
        rig.reported();
        replace(&other, b"nothing");
        rig.set_specs(Ok(vec![p(!is_shadow), named("q", &other, &[])]));
        rig.rescan().await;
        assert_eq!((chain(&rig), shadows(&rig)), before);
        rig.set_specs(Ok(vec![p(is_shadow)]));
        for _ in 0..2 {
            rig.rescan().await;
            assert_eq!((chain(&rig), shadows(&rig)), before);
        }
        let reported = rig.reported();
        let activated = |notice: &ReloadNotice| matches!(notice, ReloadNotice::Activated { .. });
        assert!(!reported.iter().any(activated), "{reported:?}");
    }
}

/// The drain follows a policy's newer revisions, but no drain follows a shadow.
#[tokio::test]
async fn a_drain_does_not_go_on_with_the_code_of_a_shadow() {
    let mut rig = Rig::of("revision_1", still()).await;
    rig.until_active("1").await;
    let before = rig.catalogue.session();
    let file = rig.file();
    rig.put("revision_2");
    rig.set_specs(Ok(vec![shadow(named("p", &file, &[]))]));
    rig.rescan().await;
    assert_eq!(
        (rig.version(), shadows(&rig)),
        ("2".to_owned(), vec!["p".to_owned()])
    );
    assert_eq!(step(&before).await, "1");
    rig.set_specs(Ok(vec![named("p", &file, &[])]));
    rig.rescan().await;
    assert_eq!(step(&before).await, "2", "it is active again");
}

#[tokio::test]
async fn a_shadow_that_is_rolled_back_stays_a_shadow() {
    let mut rig = Rig::of("revision_1", still()).await;
    let file = rig.file();
    rig.set_specs(Ok(vec![shadow(named("p", &file, &[]))]));
    rig.rescan().await;
    rig.put("revision_2");
    rig.rescan().await;
    rig.reported();
    let done = rig.catalogue.roll_back("p").await.unwrap();
    assert!(done.contains("is a shadow again"), "{done}");
    assert_eq!(
        (rig.version(), shadows(&rig)),
        ("1".to_owned(), vec!["p".to_owned()])
    );
    let reported = rig.reported();
    let [ReloadNotice::RolledBack { is_shadow: true, .. }] = &reported[..] else {
        panic!("{reported:?}")
    };
}
