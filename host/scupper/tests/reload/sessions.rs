//! A running drain during a reload: each call runs on one revision, and never on one that cannot read its state.

use scupper_engine::{HookPhase, StepOutcome};

use crate::rig::{Rig, step, step_in, still};

#[tokio::test]
async fn takes_its_next_step_with_the_new_code() {
    let rig = Rig::of("revision_1", still()).await;
    let session = rig.catalogue.session();
    let infos = session.infos();
    assert_eq!(step(&session).await, "1");
    let before = session.revisions();
    rig.put("revision_2");
    rig.rescan().await;
    assert_eq!(session.revisions(), before, "as long as no call has needed it");
    assert_eq!(step(&session).await, "2");
    let [(_, [old, settings])] = &before[..] else {
        panic!("{before:?}")
    };
    let now = session.revisions();
    assert_eq!(now[0].1[1], *settings);
    assert_ne!(now[0].1[0], *old);
    assert_eq!(session.infos(), infos, "the engine's list stays as it was");
    assert_eq!(
        rig.catalogue.stragglers(),
        [],
        "no drain holds the first revision any more"
    );
}

#[tokio::test]
async fn stays_with_the_old_code_where_the_state_differs() {
    let rig = Rig::of("revision_1", still()).await;
    let session = rig.catalogue.session();
    rig.put("revision_3");
    rig.rescan().await;
    assert_eq!(rig.version(), "3");
    assert_eq!(step(&session).await, "1");
    assert_eq!(
        step(&rig.catalogue.session()).await,
        "3",
        "a new drain takes the new one"
    );
    let [straggler] = &rig.catalogue.stragglers()[..] else {
        panic!("{:?}", rig.catalogue.stragglers())
    };
    assert_eq!((straggler.name.as_str(), straggler.generation), ("p", 1));
    rig.put("revision_2");
    rig.rescan().await;
    assert_eq!(step(&session).await, "2", "this one reads its state again");
    drop(session);
    assert_eq!(rig.catalogue.stragglers(), []);
}

#[tokio::test]
async fn stays_with_the_old_code_where_the_new_one_lacks_a_phase() {
    let rig = Rig::of("revision_1", still()).await;
    let session = rig.catalogue.session();
    rig.put("revision_5");
    rig.rescan().await;
    assert_eq!(rig.version(), "5");
    assert_eq!(step(&session).await, "1");
    let done = step_in(&rig.catalogue.session(), HookPhase::OnCancel).await;
    assert_eq!(done, StepOutcome::Done);
}

#[tokio::test]
async fn keeps_a_policy_that_was_removed() {
    let rig = Rig::of("revision_1", still()).await;
    let session = rig.catalogue.session();
    rig.set_specs(Ok(Vec::new()));
    rig.rescan().await;
    assert_eq!(rig.catalogue.session().infos(), []);
    assert_eq!(step(&session).await, "1");
    assert_eq!(rig.catalogue.stragglers().len(), 1);
    drop(session);
    assert_eq!(rig.catalogue.stragglers(), []);
}

#[tokio::test]
async fn a_session_does_not_see_a_policy_that_was_added_later() {
    let rig = Rig::of("revision_1", still()).await;
    rig.set_specs(Ok(Vec::new()));
    rig.rescan().await;
    let session = rig.catalogue.session();
    rig.configure(&[]);
    rig.rescan().await;
    assert_eq!(rig.version(), "1");
    assert_eq!(step(&session).await, "there is no policy `p`");
}
