//! A driver whose policies do not change scans them seldom, whatever its configuration names.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use scupper_common::clock::Clock;
use scupper_engine::Time;
use scupper_policy_reload::{PolicySource, ReloadOptions};
use scupper_policy_spec::PolicySpec;
use tokio::sync::Notify;
use tokio::time::{pause, resume, sleep};

use crate::rig::{bytes, named, replace, start};

const MINUTE: Duration = Duration::from_secs(60);
const MINUTES: u32 = 10;
/// Two scans a minute, and one whose interval began before.
const MOST: u32 = 2 * MINUTES + 1;
/// So many mean that the scans do not wait for the clock at all, which then stands still.
const TOO_MANY: u32 = 1000;

/// The files of a configuration, and its policies.
struct Shape {
    name: &'static str,
    files: Vec<PathBuf>,
    policies: Vec<PolicySpec>,
    /// What vanishes once the driver runs.
    vanishes: Option<PathBuf>,
    /// Whether scans panic from then on.
    panics: bool,
}

impl Shape {
    fn named(name: &'static str) -> Self {
        Self {
            name,
            files: Vec::new(),
            policies: Vec::new(),
            vanishes: None,
            panics: false,
        }
    }
}

#[tokio::test]
async fn an_idle_driver_of_every_shape_scans_twice_a_minute_at_most() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    for file in ["config/scupper.yaml", "policies/p.wasm", "policies/gone.wasm"] {
        std::fs::create_dir_all(at(file).parent().unwrap()).unwrap();
        replace(&at(file), &bytes("revision_1"));
    }
    let policy = |file: &str| vec![named("p", &at(file), &[])];
    let shapes = [
        Shape::named("neither policies nor a file"),
        Shape {
            files: vec![at("config/scupper.yaml")],
            ..Shape::named("a file without policies")
        },
        Shape {
            policies: policy("policies/p.wasm"),
            ..Shape::named("a policy")
        },
        Shape {
            policies: policy("policies/gone.wasm"),
            vanishes: Some(at("policies/gone.wasm")),
            ..Shape::named("a policy that vanished")
        },
        Shape {
            panics: true,
            ..Shape::named("scans that panic")
        },
        Shape {
            files: vec![at("config/scupper.yaml")],
            vanishes: Some(at("config")),
            ..Shape::named("a file that vanished with its folder")
        },
    ];
    for shape in shapes {
        let name = shape.name;
        let scans = scans_of(shape).await;
        assert!(scans <= MOST, "{name}: {scans} scans in {MINUTES} minutes");
        assert!(scans >= MINUTES, "{name}: {scans} scans notice no change");
    }
}

/// How often it scans in some minutes, after one in which it may notice what vanished.
async fn scans_of(shape: Shape) -> u32 {
    let scans = Arc::new(AtomicU32::new(0));
    let spins = Arc::new(Notify::new());
    let (counted, spinning) = (Arc::clone(&scans), Arc::clone(&spins));
    let policies = shape.policies;
    let read = move || {
        let before = counted.fetch_add(1, Ordering::SeqCst);
        if before == TOO_MANY {
            spinning.notify_one();
        }
        assert!(before == 0 || !shape.panics, "ordered by the test");
        Ok(policies.clone())
    };
    let source = PolicySource::of(shape.files, read);
    let clock = Clock::starting_at(Time::from_millis(0));
    let mut options = ReloadOptions::default();
    // The events of what vanishes come at the system's own time.
    options.watch.events = shape.vanishes.is_none();
    let (_catalogue, reloader, _notices) = start(source, options, clock).await.unwrap();
    let _running = AbortOnDrop(tokio::spawn(reloader.run()));
    match shape.vanishes {
        Some(path) if path.is_dir() => std::fs::remove_dir_all(path).unwrap(),
        Some(path) => std::fs::remove_file(path).unwrap(),
        None => {}
    }
    // Not before: the compiler is a process, and takes real time.
    pause();
    let passes = async {
        sleep(MINUTE).await;
        let before = scans.load(Ordering::SeqCst);
        sleep(MINUTE * MINUTES).await;
        scans.load(Ordering::SeqCst) - before
    };
    let scans = tokio::select! {
        passed = passes => passed,
        () = spins.notified() => scans.load(Ordering::SeqCst),
    };
    resume();
    scans
}

struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
