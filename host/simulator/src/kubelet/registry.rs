//! Registers and deregisters plugins as sockets come and go.
//!
//! On each tick (once a second) removed and recreated sockets are deregistered first, then unregistered ones are tried, each
//! path at its own pace. A failed path is retried after a pause that doubles; the pause survives the recreation of the socket,
//! and a success ends it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::cleanup;
use super::handle::Inner;
use super::record::Entry;
use super::registration::{self, Plugin, Tried};
use super::sockets::{Socket, Sockets};

/// Watches and registers until dropped.
pub(super) async fn run(inner: Arc<Inner>, sockets: Sockets) {
    let mut registry = Registry {
        sockets,
        registered: BTreeMap::new(),
        trying: JoinSet::new(),
        busy: BTreeSet::new(),
        pauses: BTreeMap::new(),
        inner,
    };
    loop {
        registry.tick();
        registry.settle().await;
    }
}

struct Registry {
    sockets: Sockets,
    /// By socket: its incarnation when it was tried, and the plugin behind it.
    registered: BTreeMap<PathBuf, (u64, Plugin)>,
    trying: JoinSet<(PathBuf, u64, Tried)>,
    busy: BTreeSet<PathBuf>,
    pauses: BTreeMap<PathBuf, Pause>,
    inner: Arc<Inner>,
}

struct Pause {
    since: Instant,
    length: Duration,
}

impl Registry {
    fn tick(&mut self) {
        let wanted = self.sockets.poll().clone();
        let gone = |path: &Path, generation: u64| {
            wanted
                .get(path)
                .is_none_or(|socket| socket.generation != generation)
        };
        let stale = self
            .registered
            .iter()
            .filter(|(path, (generation, _))| gone(path, *generation));
        let stale: Vec<PathBuf> = stale.map(|(path, _)| path.clone()).collect();
        for path in stale {
            if let Some((_, plugin)) = self.registered.remove(&path) {
                self.deregister(&plugin);
            }
        }
        for (path, socket) in wanted {
            self.consider(path, socket);
        }
    }

    fn consider(&mut self, path: PathBuf, socket: Socket) {
        let paused = self
            .pauses
            .get(&path)
            .is_some_and(|pause| pause.since.elapsed() <= pause.length);
        if paused || self.registered.contains_key(&path) || !self.busy.insert(path.clone()) {
            return;
        }
        let inner = Arc::clone(&self.inner);
        self.trying.spawn(async move {
            let options = &inner.options;
            let tried = registration::attempt(&path, &inner.plugins, options).await;
            (path, socket.generation, tried)
        });
    }

    /// Handles results of attempts until the next tick.
    async fn settle(&mut self) {
        let tick = sleep(self.inner.options.timing.registry_tick);
        tokio::pin!(tick);
        loop {
            tokio::select! {
                () = &mut tick => return,
                Some(done) = self.trying.join_next(), if !self.trying.is_empty() => {
                    if let Ok((path, generation, tried)) = done {
                        self.tried(path, generation, tried);
                    }
                }
            }
        }
    }

    fn tried(&mut self, path: PathBuf, generation: u64, tried: Tried) {
        self.busy.remove(&path);
        if tried.attempt.error.is_some() {
            let timing = &self.inner.options.timing;
            let doubled = |pause: &Pause| (pause.length * 2).min(timing.backoff_max);
            let length = self.pauses.get(&path).map_or(timing.backoff, doubled);
            self.pauses.insert(
                path.clone(),
                Pause {
                    since: Instant::now(),
                    length,
                },
            );
        } else {
            self.pauses.remove(&path);
        }
        self.inner.record.add(Entry::Attempted(tried.attempt));
        match tried.plugin {
            Some(plugin) if tried.undo => self.deregister(&plugin),
            Some(plugin) => {
                self.registered.insert(path, (generation, plugin));
            }
            None => {}
        }
    }

    fn deregister(&self, plugin: &Plugin) {
        let driver = plugin.driver.clone();
        let inner = Arc::clone(&self.inner);
        self.inner
            .plugins
            .deregister(&plugin.driver, &plugin.endpoint, || {
                cleanup::after_driver(inner, driver)
            });
    }
}
