//! Notices possible changes: through events of the directories, and by polling.
//!
//! An event only means "scan again": kubelets, editors and network file systems differ in their events. Events come in
//! bursts, so the watch waits for a moment of quiet, but not for ever.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};

/// How changes are noticed.
#[derive(Clone, Copy, Debug)]
pub struct WatchOptions {
    /// The quiet that ends a burst of events.
    pub debounce: Duration,
    /// The longest wait for the end of a burst.
    pub longest_burst: Duration,
    /// The interval of scans without any event: not every file system reports changes.
    pub poll: Duration,
    /// Whether to use the system's file events at all.
    pub events: bool,
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self {
            debounce: Duration::from_millis(250),
            longest_burst: Duration::from_secs(2),
            poll: Duration::from_secs(30),
            events: true,
        }
    }
}

/// Watches directories.
pub(super) struct Watch {
    options: WatchOptions,
    stirred: Arc<Notify>,
    watcher: Option<RecommendedWatcher>,
    places: BTreeSet<PathBuf>,
    /// File events are disabled.
    reported: bool,
    polled: Instant,
    /// The start of the current burst of events.
    burst: Option<Instant>,
}

impl Watch {
    pub(super) fn new(options: WatchOptions) -> Self {
        Self {
            options,
            stirred: Arc::default(),
            watcher: None,
            places: BTreeSet::new(),
            reported: false,
            polled: Instant::now(),
            burst: None,
        }
    }

    /// A scan has ended: the interval to the next one begins, also if it found nothing to watch.
    pub(super) fn scanned(&mut self) {
        self.polled = Instant::now();
    }

    /// Watches exactly these directories from now on. Recreates a watch that has died.
    pub(super) fn cover(&mut self, places: BTreeSet<PathBuf>) {
        if !self.options.events {
            return;
        }
        if self.watcher.is_none() {
            let stirred = Arc::clone(&self.stirred);
            let made = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
                if event.map_or(true, |event| is_change(event.kind)) {
                    stirred.notify_one();
                }
            });
            match made {
                Ok(watcher) => self.watcher = Some(watcher),
                Err(error) => return self.without_events(&error),
            }
        }
        let Some(watcher) = &mut self.watcher else { return };
        for gone in self.places.difference(&places) {
            // The directory may be gone, and its watch with it.
            let _unwatched = watcher.unwatch(gone).is_ok();
        }
        // Adding an existing watch changes nothing; one that died with its directory is restored.
        let failed = places
            .iter()
            .filter_map(|place| watcher.watch(place, RecursiveMode::NonRecursive).err())
            .last();
        self.places = places;
        if let Some(error) = failed {
            self.without_events(&error);
        }
    }

    /// Waits until something may have changed. A cancelled wait loses no event.
    pub(super) async fn changed(&mut self) {
        let began = match self.burst {
            Some(began) => began,
            None => {
                tokio::select! {
                    () = sleep_until(self.polled + self.options.poll) => return,
                    () = self.stirred.notified() => {}
                }
                *self.burst.insert(Instant::now())
            }
        };
        while Instant::now() < began + self.options.longest_burst {
            if timeout(self.options.debounce, self.stirred.notified())
                .await
                .is_err()
            {
                break;
            }
        }
        self.burst = None;
    }

    fn without_events(&mut self, error: &notify::Error) {
        if !self.reported {
            self.reported = true;
            let seconds = self.options.poll.as_secs();
            tracing::warn!(
                target: "scupper::policy",
                "some changes of policies are seen only every {seconds} s, as the system gives no events: {error}; \
                 raise fs.inotify.max_user_instances and fs.inotify.max_user_watches"
            );
        }
    }
}

/// Reads are not changes: our own reads would trigger scans for ever.
const fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) => false,
        _ => true,
    }
}
