//! Rollback: by failures, by hand, and how long a revision stays out.

use std::time::{Duration, Instant};

use scupper_engine::Plan;
use scupper_policy_reload::{ReloadNotice, ReloadOptions, ReloadRules, SlotState};
use scupper_policy_spec::{Limits, PolicySpec};

use crate::rig::{LIMIT, Rig, named, step, still};

fn rolled_back(reported: &[ReloadNotice]) -> Option<&ReloadNotice> {
    let is = |notice: &&ReloadNotice| matches!(notice, ReloadNotice::RolledBack { .. });
    reported.iter().find(is)
}

/// Until the last order of this session's steps has arrived.
async fn settled(rig: &mut Rig) -> Vec<ReloadNotice> {
    rig.rescan().await;
    rig.reported()
}

#[tokio::test]
async fn three_traps_bring_the_revision_before_back() {
    let mut rig = Rig::of("revision_1", still()).await;
    rig.configure(&[("trap", "yes")]);
    rig.put("revision_2");
    rig.rescan().await;
    let bad = rig.slot();
    rig.reported();
    let session = rig.catalogue.session();
    for _ in 0..2 {
        assert!(step(&session).await.contains("failed in step"));
        assert_eq!(settled(&mut rig).await, [], "two could be the input's fault");
    }
    assert!(step(&session).await.contains("failed in step"));
    let reported = settled(&mut rig).await;
    let Some(ReloadNotice::RolledBack { from, to, reason, .. }) = rolled_back(&reported) else {
        panic!("{reported:?}")
    };
    assert_eq!((from, Some(to)), (&bad.digest, bad.previous.as_ref()));
    assert!(reason.contains("3 calls failed within 10m00s"), "{reason}");
    assert_eq!(step(&session).await, "1", "the running drain continues with it");
    let slot = rig.slot();
    assert_eq!(
        (slot.state, slot.version.as_str(), slot.generation),
        (SlotState::RolledBack, "1", 3)
    );
    assert!(slot.problem.unwrap().reason.contains("calls failed"));
    // The same file still exists: it stays out.
    for _ in 0..3 {
        rig.rescan().await;
    }
    assert_eq!((rig.reported(), rig.version()), (vec![], "1".to_owned()));
    // The operator's fix is a new revision.
    rig.configure(&[]);
    rig.rescan().await;
    assert_eq!(
        (rig.version(), rig.slot().state),
        ("2".to_owned(), SlotState::Active)
    );
}

#[tokio::test]
async fn traps_without_a_revision_before_change_nothing() {
    let mut rig = Rig::with_config("revision_1", &[("trap", "yes")], still()).await;
    rig.until_active("1").await;
    let session = rig.catalogue.session();
    for _ in 0..5 {
        assert!(step(&session).await.contains("failed in step"));
    }
    assert_eq!(settled(&mut rig).await, []);
    assert_eq!((rig.slot().generation, rig.slot().state), (1, SlotState::Active));
}

#[tokio::test]
async fn a_configuration_is_rolled_back_like_a_component() {
    let mut rig = Rig::of("revision_1", still()).await;
    rig.configure(&[("trap", "yes")]);
    rig.rescan().await;
    let session = rig.catalogue.session();
    for _ in 0..3 {
        assert!(step(&session).await.contains("failed in step"));
    }
    let reported = settled(&mut rig).await;
    assert!(rolled_back(&reported).is_some(), "{reported:?}");
    assert_eq!(step(&session).await, "1");
}

#[tokio::test]
async fn a_rolled_back_revision_returns_after_a_while_and_stays_out_longer_the_next_time() {
    let rules = ReloadRules {
        quarantine: Duration::from_millis(200),
        ..still().rules
    };
    let mut rig = Rig::of("revision_1", ReloadOptions { rules, ..still() }).await;
    rig.until_active("1").await;
    rig.configure(&[("trap", "yes")]);
    rig.put("revision_2");
    rig.rescan().await;
    // Each time twice as long, and up to a quarter more: 200 ms, 400 ms, 800 ms.
    for least in [200, 400, 800] {
        rig.until_active("2").await;
        let session = rig.catalogue.session();
        let before = Instant::now();
        while rig.reported().is_empty() {
            step(&session).await;
            tokio::task::yield_now().await;
            assert!(before.elapsed() < LIMIT, "it is not rolled back");
        }
        let gone = Instant::now();
        assert_eq!(rig.version(), "1");
        // The scan finds it again and remembers when it is due; no scan follows.
        rig.rescan().await;
        while rig.version() != "2" {
            tokio::time::sleep(Duration::from_millis(5)).await;
            assert!(gone.elapsed() < LIMIT, "it does not come back");
        }
        let away = gone.elapsed();
        // It was reported a moment before this check.
        assert!(
            away >= Duration::from_millis(least * 3 / 4),
            "{away:?} of {least} ms"
        );
    }
}

#[tokio::test]
async fn a_revision_rolled_back_by_hand_stays_out_until_a_new_one_arrives() {
    let mut rig = Rig::of("revision_1", still()).await;
    assert!(
        rig.catalogue
            .roll_back("p")
            .await
            .unwrap_err()
            .contains("no revision")
    );
    assert!(
        rig.catalogue
            .roll_back("q")
            .await
            .unwrap_err()
            .contains("no policy `q`")
    );
    rig.put("revision_2");
    rig.rescan().await;
    rig.reported();
    let done = rig.catalogue.roll_back("p").await.unwrap();
    assert!(done.contains("is active again"), "{done}");
    assert!(rolled_back(&rig.reported()).is_some());
    rig.rescan().await;
    assert_eq!(
        (rig.version(), rig.slot().state),
        ("1".to_owned(), SlotState::RolledBack)
    );
    assert!(
        rig.catalogue.roll_back("p").await.is_err(),
        "there is nothing before the first"
    );
    rig.put("revision_3");
    rig.rescan().await;
    assert_eq!(
        (rig.version(), rig.slot().state),
        ("3".to_owned(), SlotState::Active)
    );
    rig.put("revision_2");
    rig.rescan().await;
    assert_eq!(rig.version(), "3", "the operator rolled the second back");
    rig.put("revision_1");
    rig.rescan().await;
    assert_eq!(
        (rig.version(), rig.slot().state),
        ("1".to_owned(), SlotState::Active)
    );
}

#[tokio::test]
async fn an_unresponsive_server_does_not_count_against_the_revision() {
    let mut rig = Rig::of("revision_1", still()).await;
    let looking = PolicySpec {
        limits: Limits {
            step_wall: Duration::from_secs(2),
            ..Limits::default()
        },
        ..named("p", &rig.file(), &[("look", "yes")])
    };
    rig.set_specs(Ok(vec![looking]));
    rig.put("revision_2");
    rig.rescan().await;
    rig.reported();
    let good = rig.slot();
    assert!(good.previous.is_some());
    let session = rig.catalogue.session();
    for _ in 0..3 {
        let message = step(&session).await;
        assert!(
            message.contains("most of that time it waited for the API server"),
            "{message}"
        );
    }
    let reported = settled(&mut rig).await;
    assert_eq!(rolled_back(&reported), None);
    assert_eq!(
        (rig.slot().generation, rig.slot().state),
        (good.generation, SlotState::Active)
    );
}

#[tokio::test]
async fn plans_that_do_not_hold_count_as_failures() {
    let mut rig = Rig::of("revision_1", still()).await;
    rig.put("revision_2");
    rig.rescan().await;
    rig.reported();
    let session = rig.catalogue.session();
    for _ in 0..3 {
        session.unsound("p", "its plan does not hold".to_owned(), &Plan::default());
    }
    let reported = settled(&mut rig).await;
    let Some(ReloadNotice::RolledBack { reason, .. }) = rolled_back(&reported) else {
        panic!("{reported:?}")
    };
    assert!(reason.contains("its plan does not hold"), "{reason}");
    assert_eq!(rig.version(), "1");
}
