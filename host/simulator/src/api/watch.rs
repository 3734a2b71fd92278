//! Watches: initial objects, changes, bookmarks, and the end of the stream, as lines of JSON.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::failure::{Cause, Failure};
use super::selector::Selection;
use super::shape::Shape;
use super::store::Store;
use super::table::{Change, Table};
use super::target::{Query, Target};

/// A stream of events, line by line.
pub(crate) struct Watcher {
    store: Store,
    latest: watch::Receiver<u64>,
    running: watch::Receiver<bool>,
    broken: CancellationToken,
    target: Target,
    selection: Selection,
    shape: Shape,
    /// Everything up to this version has been sent.
    seen: u64,
    lines: VecDeque<Bytes>,
    bookmarks: Option<Duration>,
    next_bookmark: Instant,
    ends: Instant,
    over: bool,
}

/// The server's part of a watch.
pub(crate) struct Setting {
    pub(crate) store: Store,
    pub(crate) running: watch::Receiver<bool>,
    pub(crate) broken: CancellationToken,
    pub(crate) bookmark_every: Duration,
    pub(crate) watch_list: bool,
}

/// A real server chooses half an hour to an hour.
const LONGEST: Duration = Duration::from_secs(45 * 60);
/// The time of the last bookmark before the end.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// Where a watch begins.
struct Start {
    seen: u64,
    initial: bool,
    mark_end: bool,
}

impl Watcher {
    pub(crate) fn start(
        setting: Setting,
        target: Target,
        query: &Query,
        shape: Shape,
    ) -> Result<Self, Failure> {
        let selection = Selection::parse(
            &target.kind,
            query.text("labelSelector"),
            query.text("fieldSelector"),
        )?;
        let begin = check(&target, query, setting.watch_list)?;
        let latest = setting.store.latest();
        let timeout = query
            .number("timeoutSeconds")
            .filter(|it| *it > 0)
            .map_or(LONGEST, Duration::from_secs);
        let ends = Instant::now() + timeout;
        let bookmarks = query
            .flag("allowWatchBookmarks")
            .then_some(setting.bookmark_every);
        let mut watcher = Self {
            latest,
            running: setting.running,
            broken: setting.broken,
            target,
            selection,
            shape,
            seen: 0,
            lines: VecDeque::new(),
            bookmarks,
            next_bookmark: ends,
            ends,
            over: false,
            store: setting.store,
        };
        let store = watcher.store.clone();
        store.read(|table| watcher.begin(table, &begin));
        watcher.plan_bookmark();
        Ok(watcher)
    }

    fn begin(&mut self, table: &Table, start: &Start) {
        self.seen = if start.initial { table.version } else { start.seen };
        if !start.initial {
            if start.seen < table.oldest {
                let why = format!("too old resource version: {} ({})", start.seen, table.oldest);
                self.line("ERROR", &Failure::expired(why).body);
                self.over = true;
            }
            return;
        }
        let resource = self.target.kind.resource();
        let namespace = self.target.namespace.clone();
        let wanted = self.target.name.clone();
        for (key, object) in table.list(&resource, namespace.as_deref()) {
            if wanted.as_ref().is_none_or(|it| *it == key.name) && self.selection.matches(object) {
                let object = self.shape.object(object);
                self.line("ADDED", &object);
            }
        }
        if start.mark_end {
            let bookmark = self.shape.bookmark(&self.target.kind, table.version, true);
            self.line("BOOKMARK", &bookmark);
        }
    }

    /// The next line; `None` when the server ends the stream.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        loop {
            if self.running.wait_for(|it| *it).await.is_err() {
                return None;
            }
            if let Some(line) = self.lines.pop_front() {
                return Some(line);
            }
            if self.over {
                return None;
            }
            self.latest.mark_unchanged();
            if !self.catch_up() {
                return None;
            }
            if !self.lines.is_empty() {
                continue;
            }
            tokio::select! {
                biased;
                () = self.broken.cancelled() => return None,
                changed = self.latest.changed() => changed.ok()?,
                () = sleep_until(self.next_bookmark), if self.next_bookmark < self.ends => self.bookmark(),
                () = sleep_until(self.ends) => return None,
            }
        }
    }

    /// Reads the new changes; false if the watch fell too far behind.
    fn catch_up(&mut self) -> bool {
        let store = self.store.clone();
        store.read(|table| {
            if self.seen >= table.version {
                return true;
            }
            let Some(changes) = table.since(self.seen) else {
                return false;
            };
            for change in changes {
                self.send(change);
            }
            self.seen = table.version;
            true
        })
    }

    fn send(&mut self, change: &Arc<Change>) {
        let key = &change.key;
        if key.resource != self.target.kind.resource()
            || self
                .target
                .namespace
                .as_ref()
                .is_some_and(|it| *it != key.namespace)
            || self.target.name.as_ref().is_some_and(|it| *it != key.name)
        {
            return;
        }
        let before = change
            .before
            .as_ref()
            .is_some_and(|it| self.selection.matches(it));
        let now = !change.gone && self.selection.matches(&change.object);
        let what = match (before, now) {
            (false, false) => return,
            (false, true) => "ADDED",
            (true, true) => "MODIFIED",
            (true, false) => "DELETED",
        };
        let object = self.shape.object(&change.object);
        self.line(what, &object);
    }

    fn line(&mut self, what: &str, object: &Value) {
        let mut line = json!({"type": what, "object": object}).to_string();
        line.push('\n');
        self.lines.push_back(Bytes::from(line));
    }

    fn bookmark(&mut self) {
        let bookmark = self.shape.bookmark(&self.target.kind, self.seen, false);
        self.line("BOOKMARK", &bookmark);
        self.plan_bookmark();
    }

    fn plan_bookmark(&mut self) {
        let Some(every) = self.bookmarks else { return };
        let now = Instant::now();
        let last = self.ends.checked_sub(LAST_BOOKMARK).unwrap_or(now);
        self.next_bookmark = if now >= last {
            self.ends
        } else {
            (now + every).min(last)
        };
    }
}

fn check(target: &Target, query: &Query, watch_list: bool) -> Result<Start, Failure> {
    let version = query.text("resourceVersion");
    let marks = query.flag("allowWatchBookmarks");
    let matching = query.text("resourceVersionMatch");
    let asked = query.flag("sendInitialEvents");
    let refused = |field, why| {
        let details = json!({"group": "meta.k8s.io", "kind": "ListOptions"});
        Err(Failure::invalid_as(
            "ListOptions.meta.k8s.io",
            details,
            "",
            &[Cause::forbidden(field, why)],
        ))
    };
    if asked && !watch_list {
        let why = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
        return refused("sendInitialEvents", why);
    }
    if asked && matching != "NotOlderThan" {
        let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        return refused("resourceVersionMatch", why);
    }
    if !asked && !matching.is_empty() {
        let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
        return refused("resourceVersionMatch", why);
    }
    let initial = asked || version.is_empty() || version == "0";
    let seen = match version {
        "" => 0,
        text => text.parse().map_err(|_error| {
            Failure::bad_request(format!(
                "{}: invalid resource version \"{text}\"",
                target.kind.resource()
            ))
        })?,
    };
    Ok(Start {
        seen,
        initial,
        mark_end: marks,
    })
}
