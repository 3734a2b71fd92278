//! A drain continues after a restart or a rollback: only a revision that reads a hook's state gets it.

use std::path::Path;

use scupper_engine::{HookPhase, SavedHook, StepOutcome, Subject, Time};
use scupper_policy_reload::{ReloadNotice, ReloadOptions, Session};

use crate::rig::{Rig, step_after, still};

const TELLS: &[(&str, &str)] = &[("state", "tell")];
const PHASE: HookPhase = HookPhase::BeforeDrain;

fn keeping(state: &Path) -> ReloadOptions {
    ReloadOptions {
        state: Some(state.join("state")),
        ..still()
    }
}

/// A checkpoint's entry for a hook of `p`.
fn saved(state: &[u8], state_version: Option<u32>) -> SavedHook {
    SavedHook {
        policy: "p".to_owned(),
        phase: PHASE,
        subject: Subject::Node,
        state: state.to_vec(),
        state_version,
        started: Time::from_millis(1),
    }
}

/// A step after this state: `p`'s answer, and the version of the state that it returns.
async fn reported(session: &Session, after: (&[u8], Option<u32>)) -> (String, Option<u32>) {
    match step_after(session, PHASE, after).await {
        (StepOutcome::Pending { progress, .. }, version) => (progress.trim_end().to_owned(), version),
        other => panic!("{other:?}"),
    }
}

fn begun_again(rig: &mut Rig) -> Vec<(u32, u32)> {
    let version = |notice| match notice {
        ReloadNotice::HookRestarted { wrote, reads, .. } => Some((wrote, reads)),
        _ => None,
    };
    rig.reported().into_iter().filter_map(version).collect()
}

/// A driver that had these revisions, one after the other, and died; then its file was replaced, and it was restarted.
async fn restarted(state: &Path, had: &[&str], now: &str) -> Rig {
    let rig = Rig::with_config(had.first().unwrap(), TELLS, keeping(state)).await;
    for guest in had {
        rig.put(guest);
        rig.rescan().await;
    }
    let before = rig.catalogue.slots();
    let dir = rig.end();
    std::fs::write(dir.path().join("p.wasm"), crate::rig::bytes(now)).unwrap();
    let rig = Rig::in_dir(dir, TELLS, keeping(state)).await.unwrap();
    assert_eq!(before.len(), rig.catalogue.slots().len());
    rig
}

#[tokio::test]
async fn the_active_revision_continues_the_hook_if_it_reads_the_state() {
    let state = tempfile::tempdir().unwrap();
    let mut rig = restarted(state.path(), &["revision_1"], "revision_2").await;
    let session = rig.catalogue.resume(&[saved(b"x", Some(1))]).await;
    assert_eq!(
        reported(&session, (b"x", Some(1))).await,
        ("2 after x".to_owned(), Some(1))
    );
    rig.rescan().await;
    assert_eq!(begun_again(&mut rig), []);
}

#[tokio::test]
async fn an_earlier_revision_continues_the_hook_if_the_active_one_cannot_read_the_state() {
    // The last one before the restart, and the one before that.
    for had in [&["revision_1"][..], &["revision_1", "revision_3"]] {
        let state = tempfile::tempdir().unwrap();
        let mut rig = restarted(state.path(), had, "revision_6").await;
        let session = rig.catalogue.resume(&[saved(b"x", Some(1))]).await;
        assert_eq!(
            reported(&session, (b"x", Some(1))).await,
            ("1 after x".to_owned(), Some(1))
        );
        assert_eq!(reported(&session, (b"1", Some(1))).await.0, "1 after 1");
        let [straggler] = &rig.catalogue.stragglers()[..] else {
            panic!("{had:?}: {:?}", rig.catalogue.stragglers())
        };
        assert_eq!(straggler.name, "p");
        rig.rescan().await;
        assert_eq!(begun_again(&mut rig), []);
        drop(session);
        assert_eq!(rig.catalogue.stragglers(), [], "no drain holds it any more");
    }
}

#[tokio::test]
async fn without_a_revision_that_reads_the_state_the_hook_restarts_and_reports_it_once() {
    let state = tempfile::tempdir().unwrap();
    let mut rig = restarted(state.path(), &["revision_1"], "revision_3").await;
    let session = rig.catalogue.resume(&[saved(b"x", Some(7))]).await;
    for _ in 0..2 {
        assert_eq!(
            reported(&session, (b"x", Some(7))).await,
            ("3 after".to_owned(), Some(2)),
            "it is not given what it cannot read"
        );
    }
    assert_eq!(
        reported(&session, (b"3", Some(2))).await.0,
        "3 after 3",
        "its own it is given"
    );
    rig.rescan().await;
    assert_eq!(begun_again(&mut rig), [(7, 2)]);
}

#[tokio::test]
async fn a_pin_is_more_than_an_earlier_revision() {
    let state = tempfile::tempdir().unwrap();
    let rig = restarted(state.path(), &["revision_1"], "revision_3").await;
    let mut pinned = crate::rig::named("p", &rig.file(), TELLS);
    pinned.sha256 = Some(rig.slot().digest);
    rig.set_specs(Ok(vec![pinned.clone()]));
    let dir = rig.end();
    let restarted = Rig::with_specs(dir, vec![pinned], keeping(state.path()))
        .await
        .unwrap();
    let session = restarted.catalogue.resume(&[saved(b"x", Some(1))]).await;
    assert_eq!(reported(&session, (b"x", Some(1))).await.0, "3 after");
}

#[tokio::test]
async fn after_a_rollback_a_running_drain_restarts_its_hook_on_the_good_revision() {
    let mut rig = Rig::with_config("revision_1", TELLS, still()).await;
    rig.put("revision_3");
    rig.rescan().await;
    let session = rig.catalogue.session();
    assert_eq!(
        reported(&session, (b"", None)).await,
        ("3 after".to_owned(), Some(2))
    );
    rig.catalogue.roll_back("p").await.unwrap();
    rig.reported();
    assert_eq!(
        reported(&session, (b"3", Some(2))).await,
        ("1 after".to_owned(), Some(1))
    );
    assert_eq!(reported(&session, (b"1", Some(1))).await.0, "1 after 1");
    rig.rescan().await;
    assert_eq!(begun_again(&mut rig), [(2, 1)]);
    assert_eq!(rig.catalogue.stragglers(), [], "no drain stays with the bad one");
}

#[tokio::test]
async fn after_a_rollback_hooks_missing_from_the_good_revision_are_skipped() {
    let rig = Rig::with_config("revision_5", TELLS, still()).await;
    rig.put("revision_3");
    rig.rescan().await;
    let session = rig.catalogue.session();
    assert_eq!(reported(&session, (b"", None)).await.0, "3 after");
    rig.catalogue.roll_back("p").await.unwrap();
    let (outcome, _) = step_after(&session, PHASE, (b"3", Some(2))).await;
    assert_eq!(
        outcome,
        StepOutcome::Done,
        "the fifth is not called before a drain"
    );
}
