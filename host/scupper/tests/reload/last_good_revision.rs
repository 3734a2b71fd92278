//! A restart uses the last good revision if the wanted one is missing or broken, and nothing that was tampered with.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use scupper_policy::sha256;
use scupper_policy_reload::{ReloadNotice, ReloadOptions, SlotState, StartError};
use tempfile::TempDir;
use tracing::level_filters::LevelFilter;

use crate::rig::{Rig, bytes, named, replace, step, still};

fn keeping(state: &Path) -> ReloadOptions {
    ReloadOptions {
        state: Some(state.join("state")),
        ..still()
    }
}

/// A driver that had the first revision, then the second, and was killed.
async fn killed(state: &Path) -> TempDir {
    let rig = Rig::of("revision_1", keeping(state)).await;
    rig.put("revision_2");
    rig.rescan().await;
    assert_eq!(rig.version(), "2");
    rig.end()
}

async fn restarted(dir: TempDir, state: &Path) -> Rig {
    let rig = Rig::in_dir(dir, &[], keeping(state)).await.unwrap();
    // Earlier revisions are loaded after the start.
    rig.rescan().await;
    rig
}

/// Where the state directory has this guest.
fn component(state: &Path, guest: &str) -> PathBuf {
    state
        .join("state")
        .join(format!("{}.wasm", sha256(&bytes(guest))))
}

fn modules(state: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(state.join("state")).unwrap();
    let files = files.map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files
        .filter(|file| file.extension().is_some_and(|ending| ending == "wasm"))
        .collect();
    files.sort();
    files
}

#[tokio::test]
async fn the_last_good_file_replaces_a_missing_or_broken_one() {
    for broken in [None, Some(b"half".as_slice())] {
        let state = tempfile::tempdir().unwrap();
        let dir = killed(state.path()).await;
        match broken {
            Some(bytes) => replace(&dir.path().join("p.wasm"), bytes),
            None => fs::remove_file(dir.path().join("p.wasm")).unwrap(),
        }
        let mut rig = restarted(dir, state.path()).await;
        assert_eq!(step(&rig.catalogue.session()).await, "2");
        let slot = rig.slot();
        assert_eq!(slot.state, SlotState::Degraded);
        let reason = slot.problem.unwrap().reason;
        assert!(
            reason.contains("cannot be read") || reason.contains("not a WebAssembly file"),
            "{reason}"
        );
        let reported = rig.reported();
        let degraded = |notice: &ReloadNotice| matches!(notice, ReloadNotice::Degraded { .. });
        assert!(reported.iter().any(degraded), "{reported:?}");
        rig.put("revision_2");
        rig.rescan().await;
        assert_eq!(
            (rig.slot().state, rig.slot().problem),
            (SlotState::Active, None),
            "as wanted again"
        );
        rig.put("revision_3");
        rig.rescan().await;
        assert_eq!(rig.version(), "3");
    }
}

#[tokio::test]
async fn roll_back_works_after_a_restart() {
    let state = tempfile::tempdir().unwrap();
    let dir = killed(state.path()).await;
    let rig = restarted(dir, state.path()).await;
    assert_eq!(
        (rig.version().as_str(), rig.slot().state),
        ("2", SlotState::Active)
    );
    rig.catalogue.roll_back("p").await.unwrap();
    assert_eq!(step(&rig.catalogue.session()).await, "1");
    rig.rescan().await;
    // A revision that was rolled back also stays out in the next process.
    let rig = restarted(rig.end(), state.path()).await;
    assert_eq!(
        (rig.version().as_str(), rig.slot().state),
        ("1", SlotState::RolledBack)
    );
    rig.put("revision_3");
    rig.rescan().await;
    assert_eq!(
        (rig.version().as_str(), rig.slot().state),
        ("3", SlotState::Active)
    );
}

#[tokio::test]
async fn two_revisions_are_kept_and_only_their_owner_can_read_them() {
    let state = tempfile::tempdir().unwrap();
    let rig = Rig::of("revision_1", keeping(state.path())).await;
    for guest in ["revision_2", "revision_3", "revision_1", "revision_2"] {
        rig.put(guest);
        rig.rescan().await;
    }
    let kept: Vec<_> = modules(state.path())
        .iter()
        .map(|file| fs::read(file).unwrap())
        .collect();
    assert_eq!(kept.len(), 2);
    assert!(kept.contains(&bytes("revision_1")) && kept.contains(&bytes("revision_2")));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    let dir = state.path().join("state");
    assert_eq!(mode(&dir), 0o700);
    assert_eq!(mode(&dir.join("last-good.json")), 0o600);
    for module in modules(state.path()) {
        assert_eq!(mode(&module), 0o400);
    }
}

#[tokio::test]
async fn a_modified_revision_is_refused() {
    let state = tempfile::tempdir().unwrap();
    let dir = killed(state.path()).await;
    fs::remove_file(dir.path().join("p.wasm")).unwrap();
    for module in modules(state.path()) {
        fs::remove_file(&module).unwrap();
        // A good policy, but not the one in its name.
        fs::write(&module, bytes("revision_3")).unwrap();
    }
    let refused = Rig::in_dir(dir, &[], keeping(state.path())).await;
    let Err(StartError::Policy(error)) = refused else {
        panic!("it was loaded")
    };
    assert_eq!(error.policy, "p");
    assert_eq!(
        modules(state.path()),
        Vec::<PathBuf>::new(),
        "what was tampered with is deleted"
    );
}

#[tokio::test]
async fn a_broken_index_and_an_open_directory() {
    let state = tempfile::tempdir().unwrap();
    let dir = killed(state.path()).await;
    fs::write(state.path().join("state/last-good.json"), "{").unwrap();
    let rig = restarted(dir, state.path()).await;
    assert_eq!(
        (rig.version().as_str(), rig.slot().state),
        ("2", SlotState::Active)
    );
    let dir = rig.end();
    fs::set_permissions(state.path().join("state"), fs::Permissions::from_mode(0o755)).unwrap();
    let refused = Rig::in_dir(dir, &[], keeping(state.path())).await;
    assert!(matches!(refused, Err(StartError::Store(_))), "others can read it");
}

#[tokio::test]
async fn without_a_good_revision_the_driver_reports_the_problem() {
    let state = tempfile::tempdir().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let refused = Rig::in_dir(dir, &[], keeping(state.path())).await;
    let Err(StartError::Policy(error)) = refused else {
        panic!("it was loaded")
    };
    assert!(
        error.fault.to_string().contains("cannot be read"),
        "{}",
        error.fault
    );
}

#[tokio::test]
async fn what_could_not_be_saved_is_reported_once_and_saved_later() {
    let state = tempfile::tempdir().unwrap();
    let rig = Rig::in_dir(killed(state.path()).await, &[], keeping(state.path()));
    let rig = rig.await.unwrap();
    rig.rescan().await;
    let index = state.path().join("state/last-good.json");
    fs::remove_file(&index).unwrap();
    fs::create_dir(&index).unwrap();
    let log = state.path().join("log");
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::WARN)
        .with_writer(Mutex::new(fs::File::create(&log).unwrap()))
        .finish();
    let listening = tracing::subscriber::set_default(subscriber);
    rig.catalogue.roll_back("p").await.unwrap();
    for _ in 0..3 {
        rig.rescan().await;
    }
    drop(listening);
    let log = fs::read_to_string(&log).unwrap();
    assert_eq!(log.matches("a restart will not find").count(), 1, "{log}");
    fs::remove_dir(&index).unwrap();
    // A disk with room again.
    rig.rescan().await;
    let rig = restarted(rig.end(), state.path()).await;
    assert_eq!(
        (rig.version().as_str(), rig.slot().state),
        ("1", SlotState::RolledBack)
    );
}

#[tokio::test]
async fn a_component_that_could_not_be_saved_is_saved_later() {
    let state = tempfile::tempdir().unwrap();
    let rig = Rig::of("revision_1", keeping(state.path())).await;
    rig.rescan().await;
    let component = component(state.path(), "revision_2");
    fs::create_dir(&component).unwrap();
    rig.put("revision_2");
    rig.rescan().await;
    fs::remove_dir(&component).unwrap();
    // A disk with room again.
    rig.rescan().await;
    fs::remove_file(rig.file()).unwrap();
    let rig = restarted(rig.end(), state.path()).await;
    assert_eq!(
        (rig.version().as_str(), rig.slot().state),
        ("2", SlotState::Degraded)
    );
}

#[tokio::test]
async fn the_revision_before_replaces_one_that_could_not_be_saved() {
    let state = tempfile::tempdir().unwrap();
    let dir = killed(state.path()).await;
    fs::remove_file(component(state.path(), "revision_2")).unwrap();
    fs::remove_file(dir.path().join("p.wasm")).unwrap();
    let rig = restarted(dir, state.path()).await;
    assert_eq!(
        (rig.version().as_str(), rig.slot().state),
        ("1", SlotState::Degraded)
    );
}

#[tokio::test]
async fn a_policy_that_waits_for_the_rest_of_its_configuration_is_kept() {
    let state = tempfile::tempdir().unwrap();
    let rig = Rig::of("revision_1", keeping(state.path())).await;
    let path = |name: &str| rig.dir.path().join(name);
    replace(&path("q.wasm"), &bytes("revision_2"));
    replace(&path("r.wasm"), b"nothing");
    let specs = vec![
        named("p", &rig.file(), &[]),
        named("q", &path("q.wasm"), &[]),
        named("r", &path("r.wasm"), &[]),
    ];
    rig.set_specs(Ok(specs.clone()));
    rig.rescan().await;
    rig.put("revision_3");
    rig.rescan().await;
    assert_eq!((rig.version().as_str(), rig.catalogue.slots().len()), ("3", 3));
    replace(&path("r.wasm"), &bytes("revision_1"));
    rig.rescan().await;
    fs::remove_file(path("q.wasm")).unwrap();
    let rig = Rig::with_specs(rig.end(), specs, keeping(state.path())).await;
    let rig = rig.expect("the last good revision of q is not there");
    assert_eq!(rig.catalogue.session().infos().len(), 3);
}
