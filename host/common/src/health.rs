//! Answers liveness and readiness probes: whether the driver's loops run, and what the driver still waits for before it
//! can accept a request.
//!
//! The components report both. This module must not know the components.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// A loop without a heartbeat for this long counts as stuck. Running loops beat far more often.
const STILL: Duration = Duration::from_secs(30);

/// The state behind the probes. Clones share it.
#[derive(Clone, Default)]
pub struct Health {
    parts: Arc<Mutex<Parts>>,
}

#[derive(Default)]
struct Parts {
    next: u64,
    loops: BTreeMap<u64, Loop>,
    needs: BTreeMap<&'static str, Check>,
}

/// A readiness check. The error describes what is missing, for people.
type Check = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

#[derive(Debug)]
struct Loop {
    name: &'static str,
    turned: Instant,
}

/// The heartbeat of one loop. A loop that drops it is no longer checked.
pub struct Heartbeat {
    number: u64,
    health: Health,
}

impl Health {
    /// Maximum time between two beats.
    pub const BEAT: Duration = Duration::from_secs(5);

    /// Registers a loop that runs from now on.
    pub fn pulse(&self, name: &'static str) -> Heartbeat {
        let mut parts = self.parts();
        parts.next += 1;
        let number = parts.next;
        let turned = Instant::now();
        parts.loops.insert(number, Loop { name, turned });
        drop(parts);
        Heartbeat {
            number,
            health: self.clone(),
        }
    }

    /// Adds a requirement for readiness, or replaces the one of the same name. Each probe runs the check. Its error
    /// describes what is missing, for people.
    pub fn needs(&self, what: &'static str, check: impl Fn() -> Result<(), String> + Send + Sync + 'static) {
        self.parts().needs.insert(what, Arc::new(check));
    }

    /// Checks that every loop runs.
    ///
    /// # Errors
    /// Returns the stuck loops, one line each.
    pub fn alive(&self) -> Result<(), String> {
        let now = Instant::now();
        let still = |it: &&Loop| now.duration_since(it.turned) >= STILL;
        let parts = self.parts();
        let lines = parts.loops.values().filter(still).map(|it| {
            let waited = now.duration_since(it.turned).as_secs();
            format!("the loop of the {} has not turned for {waited}s", it.name)
        });
        none_or(lines.collect())
    }

    /// Checks that every requirement is met.
    ///
    /// # Errors
    /// Returns the missing requirements, one line each.
    pub fn ready(&self) -> Result<(), String> {
        let needs = self.parts().needs.clone();
        let lines = needs
            .iter()
            .filter_map(|(what, check)| Some(format!("{what}: {}", check().err()?)));
        none_or(lines.collect())
    }

    fn parts(&self) -> MutexGuard<'_, Parts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Heartbeat {
    /// Records that the loop has run.
    pub fn beat(&self) {
        if let Some(it) = self.health.parts().loops.get_mut(&self.number) {
            it.turned = Instant::now();
        }
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.health.parts().loops.remove(&self.number);
    }
}

fn none_or(lines: Vec<String>) -> Result<(), String> {
    if lines.is_empty() {
        Ok(())
    } else {
        Err(lines.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_stuck_loop_is_named() {
        let health = Health::default();
        let desk = health.pulse("desk");
        let drive = health.pulse("drive");
        tokio::time::advance(Duration::from_secs(20)).await;
        assert_eq!(health.alive(), Ok(()));
        desk.beat();
        tokio::time::advance(Duration::from_secs(20)).await;
        let still = "the loop of the drive has not turned for 40s".to_owned();
        assert_eq!(health.alive(), Err(still));
        // A finished drain is no longer checked.
        drop(drive);
        assert_eq!(health.alive(), Ok(()));
    }

    #[test]
    fn missing_parts_are_named_until_they_are_present() {
        let health = Health::default();
        assert_eq!(health.ready(), Ok(()));
        let synced = Arc::new(AtomicBool::new(false));
        let is_synced = Arc::clone(&synced);
        health.needs("watch", move || {
            let synced = is_synced.load(Ordering::Relaxed);
            synced.then_some(()).ok_or_else(|| "not in sync".to_owned())
        });
        health.needs("kubelet", || Err("no word yet".to_owned()));
        let both = "kubelet: no word yet\nwatch: not in sync".to_owned();
        assert_eq!(health.ready(), Err(both));
        health.needs("kubelet", || Ok(()));
        synced.store(true, Ordering::Relaxed);
        assert_eq!(health.ready(), Ok(()));
    }
}
