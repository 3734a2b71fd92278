//! Follows one kind of objects: one full list, then the changes, until the stream is dropped.
//!
//! The list comes with the watch itself if the server supports that (one request), else as a LIST before it. A watch
//! that ends normally resumes where it was. A broken one restarts with a full list: after a break nothing is certain,
//! not even that the server's versions are comparable. Nor is it after a resumed watch that brings nothing at all: a server
//! whose store was restored from a backup is silent about versions that it has not reached yet.
//!
//! Many people may list and not watch: `kubectl drain` only lists. For them the full list is repeated, and the watch tried
//! again each time, because a refusal may be a hiccup.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use futures::stream::{self, Stream, StreamExt as _};
use kube::core::WatchEvent;
use scupper_api::Change;
use scupper_common::error::chain;
use tokio::time::{Instant, sleep, timeout};

use super::Cluster;
use super::listing::{Events, ListResult, Reduce, Source, WatchBreak, WatchRequests, WatchedObject};
use super::optional_reads::OptionalReads;
use super::sieve::{KeepAll, Sieve};
use super::watch_health::WatchStatus;

/// Bookmarks arrive every minute or two; after this much silence the watch restarts.
const SILENCE: Duration = Duration::from_secs(180);

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// How often the pause doubles while a drain waits for what it could do without.
const MOST_SOON: u32 = 3;

/// The pause between tries to read what the drain does without. It doubles, because rights are granted by people.
const FIRST_BARRED_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_BARRED_PAUSE: Duration = Duration::from_secs(60);

/// The pause between two lists where the user may not watch. A list that takes long is repeated less often.
const LIST_AGAIN: Duration = Duration::from_secs(1);
const LIST_SHARE: u32 = 10;

enum State<T> {
    /// A full list is needed.
    Start,
    /// The user lacks the right to read them, which is tolerated; tried again after a while.
    Barred,
    /// Resume after this version.
    Resume(String),
    /// The watch is open; the last received version.
    Open(String, Events<T>),
}

struct Watch<T, U, S> {
    requests: WatchRequests,
    sieve: S,
    reduce: Reduce<T, U>,
    pauses: u32,
    /// How often in a row the drain did without them.
    barred: u32,
    /// The user may list them, and not watch them.
    is_listed: bool,
    /// That was reported.
    is_reported: bool,
    /// How long the last full list took.
    list_took: Duration,
    optional_reads: OptionalReads,
    health: WatchStatus,
    /// Something came since the last full list or the last resumption.
    is_heard: bool,
    /// That it broke, since it last worked.
    event_cache: bool,
    state: State<T>,
}

/// Follows the objects, each reduced to what the caller keeps. The stream never ends.
pub(super) fn watch<T, U>(
    cluster: &Cluster,
    source: Source,
    reduce: Reduce<T, U>,
) -> impl Stream<Item = Change<U>> + Send + use<T, U>
where
    T: WatchedObject,
    U: Send + 'static,
{
    watch_through(cluster, source, KeepAll, reduce)
}

/// The same of those that the sieve keeps. One that it no longer keeps counts as deleted.
pub(super) fn watch_through<T, U, S>(
    cluster: &Cluster,
    source: Source,
    sieve: S,
    reduce: Reduce<T, U>,
) -> impl Stream<Item = Change<U>> + Send + use<T, U, S>
where
    T: WatchedObject,
    U: Send + 'static,
    S: Sieve<T>,
{
    let requests = WatchRequests::new(cluster.client().clone(), source, cluster.options().clone());
    let watch = Watch {
        requests,
        sieve,
        reduce,
        pauses: 0,
        barred: 0,
        is_listed: false,
        is_reported: false,
        list_took: Duration::ZERO,
        optional_reads: cluster.optional_reads().clone(),
        health: cluster.watch_health().of_one(),
        is_heard: false,
        event_cache: false,
        state: State::Start,
    };
    stream::unfold(watch, |mut watch| async {
        let change = watch.next().await;
        Some((change, watch))
    })
}

impl<T: WatchedObject, U, S: Sieve<T>> Watch<T, U, S> {
    async fn next(&mut self) -> Change<U> {
        loop {
            match std::mem::replace(&mut self.state, State::Start) {
                State::Start => match self.list().await {
                    Ok((objects, listing)) => {
                        self.state = match listing {
                            ListResult::Followed(version, events) => State::Open(version, events),
                            ListResult::Until(version) => State::Resume(version),
                        };
                        self.is_heard = true;
                        self.healthy();
                        return Change::Listed(objects);
                    }
                    Err(WatchBreak::Forbidden(_)) if !std::mem::replace(&mut self.is_listed, true) => {}
                    Err(WatchBreak::Forbidden(message)) if self.is_barred() => {
                        self.state = State::Barred;
                        if let Some(change) = self.none(&message) {
                            return change;
                        }
                    }
                    Err(fault) => self.heal(fault).await,
                },
                State::Barred => {
                    let pause = FIRST_BARRED_PAUSE.saturating_mul(1 << self.barred.min(16));
                    self.barred = self.barred.saturating_add(1);
                    sleep(pause.min(LONGEST_BARRED_PAUSE)).await;
                }
                State::Resume(version) => match self.requests.open(&version).await {
                    Ok(events) => {
                        self.may_watch();
                        self.is_heard = false;
                        self.state = State::Open(version, events);
                    }
                    Err(WatchBreak::Forbidden(message)) => self.list_again(message).await,
                    Err(fault) => self.heal(fault).await,
                },
                State::Open(version, mut events) => match timeout(SILENCE, events.next()).await {
                    Ok(Some(Ok(event))) => match self.handle(event, version, events) {
                        Ok(Some(change)) => return change,
                        Ok(None) => {}
                        Err(fault) => self.heal(fault).await,
                    },
                    Ok(Some(Err(error))) => self.heal(WatchBreak::Failed(chain(&error))).await,
                    // A silent end: the time limit passed, or we were too slow for a burst of changes.
                    Ok(None) => {
                        self.pause().await;
                        self.state = State::Resume(version);
                    }
                    // The next turn starts with a full list.
                    Err(_) if !self.is_heard => {}
                    Err(_) => self.state = State::Resume(version),
                },
            }
        }
    }

    async fn list(&mut self) -> Result<(Vec<U>, ListResult<T>), WatchBreak> {
        let begun = Instant::now();
        let by_watch = !self.is_listed;
        let listed = self.requests.list(by_watch, &mut self.sieve, self.reduce).await;
        self.list_took = begun.elapsed();
        listed
    }

    /// The user may not watch these; the state is `Start` here, where they are listed.
    async fn list_again(&mut self, message: String) {
        self.is_listed = true;
        if !std::mem::replace(&mut self.is_reported, true) {
            let resource = self.requests.resource();
            tracing::info!(
                message,
                "no right to watch {resource}; listing them again and again"
            );
        }
        self.health
            .is(Some(format!("{}: {message}", self.requests.path())));
        sleep(LIST_AGAIN.max(self.list_took.saturating_mul(LIST_SHARE))).await;
    }

    fn may_watch(&mut self) {
        self.is_listed = false;
        if std::mem::take(&mut self.is_reported) {
            tracing::info!("{} can be watched", self.requests.resource());
            self.health.is(None);
        }
    }

    fn handle(
        &mut self,
        event: WatchEvent<T>,
        version: String,
        events: Events<T>,
    ) -> Result<Option<Change<U>>, WatchBreak> {
        let next = |object: &T| match object.meta().resource_version.as_str() {
            "" => version.clone(),
            version => version.to_owned(),
        };
        let (version, change) = match event {
            WatchEvent::Added(mut object) | WatchEvent::Modified(mut object) => {
                let version = next(&object);
                let is_kept = self.sieve.keeps(&mut object);
                let object = (self.reduce)(object);
                let change = match is_kept {
                    true => Change::Applied(object),
                    false => Change::Deleted(object),
                };
                (version, Some(change))
            }
            WatchEvent::Deleted(object) => {
                self.sieve.forget(&object);
                (next(&object), Some(Change::Deleted((self.reduce)(object))))
            }
            WatchEvent::Bookmark(bookmark) => (bookmark.metadata.resource_version, None),
            WatchEvent::Error(status) => return Err(WatchBreak::from_status(&status)),
        };
        self.mended();
        self.is_heard = true;
        self.event_cache = false;
        self.state = State::Open(version, events);
        Ok(change)
    }

    /// A refusal is not a hiccup, and the drain can do without these objects.
    fn is_barred(&self) -> bool {
        self.requests.optional() && !self.optional_reads.may_pass(self.requests.path())
    }

    /// Reports unreadable objects as empty, once.
    fn none(&mut self, message: &str) -> Option<Change<U>> {
        if self.barred > 0 {
            return None;
        }
        self.event_cache = false;
        self.health.is(None);
        tracing::warn!(
            message,
            "forbidden to list {}; treating them as empty until a later try succeeds",
            self.requests.resource()
        );
        Some(Change::Listed(Vec::new()))
    }

    /// Recovers from a break; the state is `Start` here.
    async fn heal(&mut self, fault: WatchBreak) {
        let path = self.requests.path().to_owned();
        if self.requests.optional() && matches!(fault, WatchBreak::Forbidden(_)) {
            self.pauses = self.pauses.min(MOST_SOON);
        }
        if matches!(fault, WatchBreak::Failed(_)) {
            self.optional_reads.failed(&path);
        }
        match fault {
            WatchBreak::Expired => tracing::debug!(path, "watch is too old, listing anew"),
            WatchBreak::NoSuchField => {
                let selector = self.sieve.other_selector();
                tracing::warn!(
                    path,
                    selector = selector.as_deref().unwrap_or("none: it sends those of all nodes"),
                    "the server cannot select these by field, because their CustomResourceDefinition declares no \
                     selectable field; selecting otherwise"
                );
                self.requests.select_by(selector);
            }
            WatchBreak::NoStreamingList(message) => {
                tracing::debug!(
                    path,
                    message,
                    "the server does not send lists through watches, listing first"
                );
                self.requests.list_first();
            }
            WatchBreak::Forbidden(error) | WatchBreak::Failed(error) => {
                // The count of pauses does not show this: finding out how to list takes some of them.
                if !std::mem::replace(&mut self.event_cache, true) {
                    tracing::warn!(path, error, "watch broke, trying again");
                } else {
                    tracing::debug!(path, error, tries = self.pauses, "watch is still broken");
                    self.health.is(Some(format!("{path}: {error}")));
                }
            }
        }
        self.pause().await;
    }

    fn healthy(&mut self) {
        self.optional_reads.succeeded(self.requests.path());
        if std::mem::take(&mut self.barred) > 0 {
            tracing::info!("{} can be listed again", self.requests.resource());
        }
        if std::mem::take(&mut self.event_cache) && self.pauses > 1 {
            tracing::info!(path = self.requests.path(), "watch works again");
        }
        self.mended();
    }

    fn mended(&mut self) {
        if std::mem::take(&mut self.pauses) > 1 {
            self.health.is(None);
        }
    }

    /// Pauses, longer each time, with jitter so that drivers do not retry together.
    async fn pause(&mut self) {
        let pause = FIRST_PAUSE
            .saturating_mul(1 << self.pauses.min(16))
            .min(LONGEST_PAUSE);
        self.pauses = self.pauses.saturating_add(1);
        let jitter = u32::try_from(RandomState::new().hash_one(self.pauses) % 128).unwrap_or(64);
        sleep(pause * (192 + jitter) / 256).await;
    }
}
