//! The requests behind a watch: a full list, through the watch itself if the server supports that, and the changes
//! after a version.

use futures::stream::{BoxStream, StreamExt as _};
use http::Request;
use kube::core::{Status, WatchEvent};
use scupper_common::error::chain;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::ConnectOptions;
use super::pages::Pages;
use super::sieve::Sieve;
use super::transport::Fault;
use super::wire::Object;

/// Time after which the server ends a watch.
const WATCH_SECONDS: u32 = 600;

/// The annotation of the bookmark after the last object of the initial list.
const END_OF_LIST: &str = "k8s.io/initial-events-end";

/// The objects to follow.
#[derive(Clone, Debug)]
pub(super) struct Source {
    /// `/api/v1/pods`
    pub(super) path: String,
    /// The selector, such as `fieldSelector=spec.nodeName=worker-1`, escaped for a URL.
    pub(super) selector: Option<String>,
    /// Without the right to read them the stream reports them as empty, once, when [`OptionalReads`] says so.
    ///
    /// [`OptionalReads`]: super::optional_reads::OptionalReads
    pub(super) optional: bool,
}

impl Source {
    /// Without a selector; the right to read them is required.
    pub(super) const fn all(path: String) -> Self {
        Self {
            path,
            selector: None,
            optional: false,
        }
    }
}

/// An object type that can be followed.
pub(super) trait WatchedObject: Object + DeserializeOwned + Clone + Send + 'static {}

impl<T: Object + DeserializeOwned + Clone + Send + 'static> WatchedObject for T {}

/// Reduces an object, as soon as it is decoded, to what stays in memory: others decide how large objects are.
pub(super) type Reduce<T, U> = fn(T) -> U;

/// The events of a watch.
pub(super) type Events<T> = BoxStream<'static, kube::Result<WatchEvent<T>>>;

/// The reason why a watch broke.
pub(super) enum WatchBreak {
    /// The server does not support lists through watches.
    NoStreamingList(String),
    /// The server cannot select by this field.
    NoSuchField,
    /// The version is too old: list again at once.
    Expired,
    /// The user lacks the right.
    Forbidden(String),
    /// Anything else.
    Failed(String),
}

/// How the watch continues after a full list.
pub(super) enum ListResult<T> {
    /// The same request continues with changes; the list's version.
    Followed(String, Events<T>),
    /// The list is complete up to this version.
    Until(String),
}

/// Sends the requests.
pub(super) struct WatchRequests {
    client: kube::Client,
    source: Source,
    options: ConnectOptions,
    streaming: bool,
}

impl WatchRequests {
    /// Creates the requests for these objects.
    pub(super) const fn new(client: kube::Client, source: Source, options: ConnectOptions) -> Self {
        Self {
            client,
            source,
            options,
            streaming: true,
        }
    }

    /// The path of the followed objects.
    pub(super) fn path(&self) -> &str {
        &self.source.path
    }

    /// The name of their kind: `pods`.
    pub(super) fn resource(&self) -> &str {
        let path = &self.source.path;
        path.rsplit('/').next().unwrap_or(path)
    }

    /// True if the reader can do without them.
    pub(super) const fn optional(&self) -> bool {
        self.source.optional
    }

    /// From now on the server selects by this; `None`: the reader selects the objects.
    pub(super) fn select_by(&mut self, selector: Option<String>) {
        self.source.selector = selector;
    }

    /// From now on sends a LIST before the watch.
    pub(super) const fn list_first(&mut self) {
        self.streaming = false;
    }

    /// Reads a full list, and returns how to continue after it. `by_watch`: through the watch, where the server supports that.
    pub(super) async fn list<T: WatchedObject, U>(
        &self,
        by_watch: bool,
        sieve: &mut impl Sieve<T>,
        reduce: Reduce<T, U>,
    ) -> Result<(Vec<U>, ListResult<T>), WatchBreak> {
        sieve.begin_list();
        if by_watch && self.streaming {
            return self.streaming_list(sieve, reduce).await;
        }
        let mut objects = Vec::new();
        let pages = Pages::of(&self.client, &self.options, &self.source.path).up_to(sieve.page_size());
        let each = |mut object| {
            if sieve.keeps(&mut object) {
                objects.push(reduce(object));
            }
        };
        let version = pages
            .read(|query| get(&self.source, query), each)
            .await
            .map_err(WatchBreak::from_fault)?;
        Ok((objects, ListResult::Until(version)))
    }

    async fn streaming_list<T: WatchedObject, U>(
        &self,
        sieve: &mut impl Sieve<T>,
        reduce: Reduce<T, U>,
    ) -> Result<(Vec<U>, ListResult<T>), WatchBreak> {
        let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
        let mut events = match self.request::<T>(query).await {
            Err(WatchBreak::Failed(message)) if message.contains("sendInitialEvents") => {
                return Err(WatchBreak::NoStreamingList(message));
            }
            other => other?,
        };
        let mut objects: Vec<(String, U)> = Vec::new();
        loop {
            let Ok(event) = timeout(self.options.request_timeout, events.next()).await else {
                return Err(WatchBreak::NoStreamingList("its list does not end".to_owned()));
            };
            match event {
                Some(Ok(WatchEvent::Added(mut object))) => {
                    if sieve.keeps(&mut object) {
                        objects.push((object.meta().uid.clone(), reduce(object)));
                    }
                }
                Some(Ok(WatchEvent::Modified(mut object))) => {
                    objects.retain(|(other, _)| *other != object.meta().uid);
                    if sieve.keeps(&mut object) {
                        objects.push((object.meta().uid.clone(), reduce(object)));
                    }
                }
                Some(Ok(WatchEvent::Deleted(object))) => {
                    objects.retain(|(other, _)| *other != object.meta().uid);
                    sieve.forget(&object);
                }
                Some(Ok(WatchEvent::Bookmark(bookmark))) => {
                    if bookmark
                        .metadata
                        .annotations
                        .get(END_OF_LIST)
                        .is_some_and(|value| value == "true")
                    {
                        return Ok((
                            objects.into_iter().map(|(_, it)| it).collect(),
                            ListResult::Followed(bookmark.metadata.resource_version, events),
                        ));
                    }
                }
                Some(Ok(WatchEvent::Error(status))) => return Err(WatchBreak::from_status(&status)),
                Some(Err(error)) => return Err(WatchBreak::Failed(chain(&error))),
                None => return Err(WatchBreak::Failed("the list broke off".to_owned())),
            }
        }
    }

    /// Opens a watch of the changes after a version.
    pub(super) async fn open<T: WatchedObject>(&self, version: &str) -> Result<Events<T>, WatchBreak> {
        self.request(&format!("resourceVersion={version}")).await
    }

    async fn request<T: WatchedObject>(&self, query: &str) -> Result<Events<T>, WatchBreak> {
        let query = format!("watch=1&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}&{query}");
        let request = get(&self.source, &query).map_err(WatchBreak::from_fault)?;
        match timeout(
            self.options.request_timeout,
            self.client.request_events::<T>(request),
        )
        .await
        {
            Ok(Ok(events)) => Ok(events.boxed()),
            Ok(Err(kube::Error::Api(status))) => Err(WatchBreak::from_status(&status)),
            Ok(Err(kube::Error::Service(error))) => Err(WatchBreak::Failed(chain(error.as_ref()))),
            Ok(Err(error)) => Err(WatchBreak::Failed(chain(&error))),
            Err(_) => Err(WatchBreak::Failed(format!(
                "no answer within {} s",
                self.options.request_timeout.as_secs_f32()
            ))),
        }
    }
}

/// Reads all objects, consistently instead of from a cache, with the list's version.
pub(super) async fn list<T: DeserializeOwned>(
    client: &kube::Client,
    source: &Source,
    options: &ConnectOptions,
) -> Result<(Vec<T>, String), Fault> {
    let mut objects = Vec::new();
    let version = for_each(client, source, options, |object| objects.push(object)).await?;
    Ok((objects, version))
}

/// The same, with what a sieve keeps.
pub(super) async fn list_through<T: DeserializeOwned>(
    client: &kube::Client,
    source: &Source,
    options: &ConnectOptions,
    sieve: &mut impl Sieve<T>,
) -> Result<(Vec<T>, String), Fault> {
    let mut objects = Vec::new();
    let pages = Pages::of(client, options, &source.path).up_to(sieve.page_size());
    let each = |mut object| {
        if sieve.keeps(&mut object) {
            objects.push(object);
        }
    };
    let version = pages.read(|query| get(source, query), each).await?;
    Ok((objects, version))
}

/// The same for a caller that keeps less of each object than is read.
pub(super) async fn for_each<T: DeserializeOwned>(
    client: &kube::Client,
    source: &Source,
    options: &ConnectOptions,
    each: impl FnMut(T),
) -> Result<String, Fault> {
    let pages = Pages::of(client, options, &source.path);
    pages.read(|query| get(source, query), each).await
}

fn get(source: &Source, query: &str) -> Result<Request<Vec<u8>>, Fault> {
    let selector = source
        .selector
        .as_ref()
        .map(|selector| format!("{selector}&"))
        .unwrap_or_default();
    let request = Request::get(format!("{}?{selector}{query}", source.path)).body(Vec::new());
    request.map_err(|error| Fault::Malformed(error.to_string()))
}

impl WatchBreak {
    pub(super) fn from_status(status: &Status) -> Self {
        match status.code {
            410 => Self::Expired,
            403 => Self::Forbidden(status.message.clone()),
            // The second is that of a CRD without selectable fields.
            400 if ["field label not supported", "is not a known field selector"]
                .iter()
                .any(|text| status.message.contains(text)) =>
            {
                Self::NoSuchField
            }
            _ => Self::Failed(status.message.clone()),
        }
    }

    fn from_fault(fault: Fault) -> Self {
        match fault {
            Fault::Refused(_, status) => Self::from_status(&status),
            Fault::Unreachable(message) | Fault::Malformed(message) => Self::Failed(message),
        }
    }
}
