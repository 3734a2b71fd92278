//! Following one kind of objects: one full list, then what changes, for as long as somebody listens.
//!
//! The list comes with the watch itself where the server can do that (one request), else as a LIST before it. A watch
//! that ends by itself goes on where it was. One that breaks begins anew with a full list: after a break nothing is
//! certain, not even that the server still counts versions as before.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use futures::stream::{self, BoxStream, Stream, StreamExt as _};
use http::Request;
use kube::core::{Status, WatchEvent};
use serde::de::DeserializeOwned;
use tokio::time::{sleep, timeout};

use super::transport::{self, Fault, words};
use super::wire::{Object, Page};

/// Objects a page of a list.
pub(super) const PAGE: u32 = 500;

/// How long a watch may last before the server ends it.
const WATCH_SECONDS: u32 = 600;

/// Bookmarks come every minute or two: after such a silence we ask anew.
const SILENCE: Duration = Duration::from_secs(180);

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The annotation of the bookmark after the last object of the initial list.
const END_OF_LIST: &str = "k8s.io/initial-events-end";

/// What a stream of objects tells. Breaks of the watch are healed and show as a fresh `Listed`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change<T> {
    /// All of them, as one consistent list.
    Listed(Vec<T>),
    /// One is new or has changed.
    Applied(T),
    /// One is gone. Its last state.
    Deleted(T),
}

/// Which objects to follow.
#[derive(Clone, Debug)]
pub(super) struct Source {
    /// `/api/v1/pods`
    pub(super) path: String,
    /// `spec.nodeName=worker-1`, already fit for a URL.
    pub(super) field_selector: Option<String>,
    /// Without the right to read them there are none to be seen, and the stream says so once.
    pub(super) optional: bool,
}

/// What can be followed.
pub(super) trait Followed: Object + DeserializeOwned + Clone + Send + 'static {}

impl<T: Object + DeserializeOwned + Clone + Send + 'static> Followed for T {}

type Events<T> = BoxStream<'static, kube::Result<WatchEvent<T>>>;

enum State<T> {
    /// A full list is needed.
    Start,
    /// Go on after this version.
    Resume(String),
    /// Listening; the last version heard of.
    Open(String, Events<T>),
}

/// Why a watch does not go on.
enum Break {
    /// The server does not send lists through watches.
    NoStreamingList(String),
    /// It cannot select by this field.
    NoSuchField,
    /// The version is too old: list anew at once.
    Expired,
    /// We may not.
    Forbidden(String),
    /// Anything else.
    Failed(String),
}

struct Watch<T> {
    asker: Asker,
    pauses: u32,
    state: State<T>,
}

/// Makes the requests.
struct Asker {
    client: kube::Client,
    source: Source,
    limit: Duration,
    streaming: bool,
}

/// Follows the objects. The stream never ends.
pub(super) fn watch<T>(
    client: kube::Client,
    source: Source,
    limit: Duration,
) -> impl Stream<Item = Change<T>> + Send + use<T>
where
    T: Followed,
{
    let asker = Asker {
        client,
        source,
        limit,
        streaming: true,
    };
    let watch = Watch {
        asker,
        pauses: 0,
        state: State::Start,
    };
    stream::unfold(watch, |mut watch| async {
        let change = watch.next().await;
        Some((change, watch))
    })
}

impl<T: Followed> Watch<T> {
    async fn next(&mut self) -> Change<T> {
        loop {
            match std::mem::replace(&mut self.state, State::Start) {
                State::Start => match self.asker.list().await {
                    Ok((objects, state)) => {
                        self.state = state;
                        self.healthy();
                        return Change::Listed(objects);
                    }
                    Err(Break::Forbidden(message)) if self.asker.source.optional => {
                        self.asker.source.optional = false;
                        tracing::warn!(
                            path = self.asker.source.path,
                            message,
                            "no right to read these; going on as if there were none"
                        );
                        return Change::Listed(Vec::new());
                    }
                    Err(fault) => self.heal(fault).await,
                },
                State::Resume(version) => match self.asker.open(&version).await {
                    Ok(events) => self.state = State::Open(version, events),
                    Err(fault) => self.heal(fault).await,
                },
                State::Open(version, mut events) => match timeout(SILENCE, events.next()).await {
                    Ok(Some(Ok(event))) => match self.hear(event, version, events) {
                        Ok(Some(change)) => return change,
                        Ok(None) => {}
                        Err(fault) => self.heal(fault).await,
                    },
                    Ok(Some(Err(error))) => self.heal(Break::Failed(words(&error))).await,
                    // An end without a word: its time is over, or we were too slow for a burst of changes.
                    Ok(None) => {
                        self.pause().await;
                        self.state = State::Resume(version);
                    }
                    Err(_) => self.state = State::Resume(version),
                },
            }
        }
    }

    fn hear(
        &mut self,
        event: WatchEvent<T>,
        version: String,
        events: Events<T>,
    ) -> Result<Option<Change<T>>, Break> {
        let next = |object: &T| match object.meta().resource_version.as_str() {
            "" => version.clone(),
            version => version.to_owned(),
        };
        let (version, change) = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                (next(&object), Some(Change::Applied(object)))
            }
            WatchEvent::Deleted(object) => (next(&object), Some(Change::Deleted(object))),
            WatchEvent::Bookmark(bookmark) => (bookmark.metadata.resource_version, None),
            WatchEvent::Error(status) => return Err(of_status(&status)),
        };
        self.pauses = 0;
        self.state = State::Open(version, events);
        Ok(change)
    }

    /// After a break; the state is `Start` here.
    async fn heal(&mut self, fault: Break) {
        let path = &self.asker.source.path;
        match fault {
            Break::Expired => tracing::debug!(path, "watch is too old, listing anew"),
            Break::NoSuchField => {
                tracing::debug!(path, "the server cannot select by field, selecting here");
                self.asker.source.field_selector = None;
            }
            Break::NoStreamingList(message) => {
                tracing::debug!(
                    path,
                    message,
                    "the server does not send lists through watches, listing first"
                );
                self.asker.streaming = false;
            }
            Break::Forbidden(error) | Break::Failed(error) => {
                if self.pauses == 0 {
                    tracing::warn!(path, error, "watch broke, trying again");
                } else {
                    tracing::debug!(path, error, tries = self.pauses, "watch is still broken");
                }
            }
        }
        self.pause().await;
    }

    fn healthy(&mut self) {
        if self.pauses > 1 {
            tracing::info!(path = self.asker.source.path, "watch works again");
        }
        self.pauses = 0;
    }

    /// Longer each time, and not at the same moment as everybody else.
    async fn pause(&mut self) {
        let pause = FIRST_PAUSE
            .saturating_mul(1 << self.pauses.min(16))
            .min(LONGEST_PAUSE);
        self.pauses = self.pauses.saturating_add(1);
        let jitter = u32::try_from(RandomState::new().hash_one(self.pauses) % 128).unwrap_or(64);
        sleep(pause * (192 + jitter) / 256).await;
    }
}

impl Asker {
    /// A full list, and how to go on from it.
    async fn list<T: Followed>(&self) -> Result<(Vec<T>, State<T>), Break> {
        if self.streaming {
            return self.streaming_list().await;
        }
        let (objects, version) = list(&self.client, &self.source, self.limit)
            .await
            .map_err(of_fault)?;
        Ok((objects, State::Resume(version)))
    }

    async fn streaming_list<T: Followed>(&self) -> Result<(Vec<T>, State<T>), Break> {
        let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
        let mut events = match self.request(query).await {
            Err(Break::Failed(message)) if message.contains("sendInitialEvents") => {
                return Err(Break::NoStreamingList(message));
            }
            other => other?,
        };
        let mut objects: Vec<T> = Vec::new();
        loop {
            let Ok(event) = timeout(self.limit, events.next()).await else {
                return Err(Break::NoStreamingList("its list does not end".to_owned()));
            };
            match event {
                Some(Ok(WatchEvent::Added(object))) => objects.push(object),
                Some(Ok(WatchEvent::Modified(object))) => {
                    objects.retain(|other| other.meta().uid != object.meta().uid);
                    objects.push(object);
                }
                Some(Ok(WatchEvent::Deleted(object))) => {
                    objects.retain(|other| other.meta().uid != object.meta().uid);
                }
                Some(Ok(WatchEvent::Bookmark(bookmark))) => {
                    if bookmark
                        .metadata
                        .annotations
                        .get(END_OF_LIST)
                        .is_some_and(|value| value == "true")
                    {
                        return Ok((objects, State::Open(bookmark.metadata.resource_version, events)));
                    }
                }
                Some(Ok(WatchEvent::Error(status))) => return Err(of_status(&status)),
                Some(Err(error)) => return Err(Break::Failed(words(&error))),
                None => return Err(Break::Failed("the list broke off".to_owned())),
            }
        }
    }

    async fn open<T: Followed>(&self, version: &str) -> Result<Events<T>, Break> {
        self.request(&format!("resourceVersion={version}")).await
    }

    async fn request<T: Followed>(&self, query: &str) -> Result<Events<T>, Break> {
        let query = format!("watch=1&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}&{query}");
        let request = get(&self.source, &query).map_err(of_fault)?;
        match timeout(self.limit, self.client.request_events::<T>(request)).await {
            Ok(Ok(events)) => Ok(events.boxed()),
            Ok(Err(kube::Error::Api(status))) => Err(of_status(&status)),
            Ok(Err(kube::Error::Service(error))) => Err(Break::Failed(words(error.as_ref()))),
            Ok(Err(error)) => Err(Break::Failed(words(&error))),
            Err(_) => Err(Break::Failed(format!(
                "no answer within {} s",
                self.limit.as_secs_f32()
            ))),
        }
    }
}

/// All objects, from the source of truth and not from a cache, and the list's version.
pub(super) async fn list<T: DeserializeOwned>(
    client: &kube::Client,
    source: &Source,
    limit: Duration,
) -> Result<(Vec<T>, String), Fault> {
    let mut objects = Vec::new();
    let mut query = format!("limit={PAGE}");
    loop {
        let page: Page<T> = transport::call(client, get(source, &query)?, limit).await?;
        objects.extend(page.items);
        if page.metadata.continue_token.is_empty() {
            return Ok((objects, page.metadata.resource_version));
        }
        query = format!("limit={PAGE}&continue={}", page.metadata.continue_token);
    }
}

fn get(source: &Source, query: &str) -> Result<Request<Vec<u8>>, Fault> {
    let selector = source
        .field_selector
        .as_ref()
        .map(|fields| format!("fieldSelector={fields}&"))
        .unwrap_or_default();
    let request = Request::get(format!("{}?{selector}{query}", source.path)).body(Vec::new());
    request.map_err(|error| Fault::Malformed(error.to_string()))
}

fn of_status(status: &Status) -> Break {
    match status.code {
        410 => Break::Expired,
        401 | 403 => Break::Forbidden(status.message.clone()),
        400 if status.message.contains("field label not supported") => Break::NoSuchField,
        _ => Break::Failed(status.message.clone()),
    }
}

fn of_fault(fault: Fault) -> Break {
    match fault {
        Fault::Refused(_, status) => of_status(&status),
        Fault::Unreachable(message) | Fault::Malformed(message) => Break::Failed(message),
    }
}
