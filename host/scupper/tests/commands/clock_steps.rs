//! The wall clock is set while a drain runs: no timer freezes, and no deadline expires early.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use crate::rig::{LIMIT, Rig, Run, Running};

/// The program with a wall clock that the test sets.
struct Stepped<'a> {
    rig: &'a Rig,
    library: PathBuf,
    offset: PathBuf,
}

impl<'a> Stepped<'a> {
    fn new(rig: &'a Rig) -> Self {
        let library = crate::clock_library::library(rig.dir.path());
        let offset = rig.dir.path().join("wall-offset");
        let stepped = Self { rig, library, offset };
        stepped.set(0);
        stepped
    }

    /// Sets the wall clock off by this many seconds.
    fn set(&self, seconds: i64) {
        let next = self.offset.with_extension("next");
        fs::write(&next, seconds.to_string()).unwrap();
        fs::rename(next, &self.offset).unwrap();
    }

    fn start(&self, args: &[&str]) -> Running {
        let env = [
            ("LD_PRELOAD", self.library.to_str().unwrap()),
            ("WALL_OFFSET", self.offset.to_str().unwrap()),
        ];
        self.rig.start_in(args, &env)
    }
}

const HOUR: i64 = 3600;

#[test]
fn a_clock_set_forward_does_not_end_a_drain() {
    let rig = Rig::new();
    rig.apply(rig.pod("web", "worker-1").stuck());
    let stepped = Stepped::new(&rig);
    let mut drain = stepped.start(&["drain", "worker-1", "--timeout", "10m"]);
    drain.prints("evict    shop/web");
    stepped.set(HOUR);
    // The next event makes it check its deadline.
    rig.apply(rig.pod("late", "worker-1"));
    drain.prints("evict    shop/late");
    rig.api.store().delete("pods", "shop", "web").unwrap();
    let run = drain.ended();
    assert_eq!(run.code, Some(0), "{run:#?}");
}

#[test]
fn a_clock_set_back_does_not_stop_the_timers_of_a_drain() {
    let rig = Rig::new();
    rig.apply(rig.pod("web", "worker-1").stuck());
    let stepped = Stepped::new(&rig);
    let mut drain = stepped.start(&["drain", "worker-1", "--timeout", "5s"]);
    drain.prints("evict    shop/web");
    stepped.set(-HOUR);
    let begun = Instant::now();
    let Run { code, stdout, stderr } = drain.ended();
    assert!(begun.elapsed() < LIMIT);
    assert_eq!(code, Some(6), "{stdout}{stderr}");
}
