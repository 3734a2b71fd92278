//! The handle on the API server that the whole edge uses.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, Uri};
use scupper_engine::{Condition, Node, Time};
use tower::{BoxError, service_fn};

use super::OFFICIAL_GROUP;
use super::api_requests::RequestObserver;
use super::daemonsets::DaemonSets;
use super::event_cache::EventCache;
use super::kubeconfig::Connection;
use super::optional_reads::{OPTIONAL_READ_PATIENCE, OptionalReads};
use super::recording::Recorder;
use super::watch_health::WatchHealth;
use scupper_common::clock::Clock;
use scupper_common::in_flight::InFlight;

/// Long enough for a server under load, short enough for users to notice a fault.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// The page size of `kubectl`.
const DEFAULT_PAGE: u32 = 500;

/// Options for connecting to the API server.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// The server and the user.
    pub connection: Connection,
    /// Time limit of one eviction request.
    pub eviction_timeout: Duration,
    /// Time limit of every other request.
    pub request_timeout: Duration,
    /// Number of objects per page of a list; 0 requests all at once.
    pub page_size: u32,
    /// How long a refusal (401, 403) of a read that a drain can do without may be a hiccup.
    pub refusal_patience: Duration,
    /// Counts the requests.
    pub observer: Option<RequestObserver>,
    /// Keeps what is read.
    pub recorder: Option<Recorder>,
    /// The user to impersonate for evictions, such as `system:node:worker-1`; `None` evicts as the connected user.
    pub evict_as: Option<String>,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            connection: Connection::default(),
            eviction_timeout: DEFAULT_TIMEOUT,
            request_timeout: DEFAULT_TIMEOUT,
            page_size: DEFAULT_PAGE,
            refusal_patience: OPTIONAL_READ_PATIENCE,
            observer: None,
            recorder: None,
            evict_as: None,
        }
    }
}

/// The API server. Clones share one connection.
#[derive(Clone)]
pub struct Cluster {
    shared: Arc<Shared>,
    lifecycle_group: Arc<str>,
    eviction_timeout: Duration,
}

struct Shared {
    client: kube::Client,
    options: ConnectOptions,
    clock: Clock,
    daemon_sets: tokio::sync::Mutex<DaemonSets>,
    conditions: Mutex<BTreeMap<String, Vec<Condition>>>,
    server: Option<(String, u16)>,
    watch_health: WatchHealth,
    optional_reads: OptionalReads,
    event_cache: EventCache,
    in_flight: Mutex<InFlight>,
    /// The UID of each budget by namespace and name, from the watch.
    budgets: Mutex<BTreeMap<(String, String), String>>,
}

impl Cluster {
    /// Creates a handle over an existing client.
    pub fn from_client(client: kube::Client, options: ConnectOptions, clock: Clock) -> Self {
        Self::at(None, client, options, clock)
    }

    /// Creates a handle on a cluster that is no server: a function answers each request, by its method and address.
    pub fn answered<B>(
        answer: impl Fn(&Method, &Uri) -> Response<B> + Send + 'static,
        options: ConnectOptions,
    ) -> Self
    where
        B: hyper::body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        let service = service_fn(move |request: Request<kube::client::Body>| {
            std::future::ready(Ok::<_, Infallible>(answer(request.method(), request.uri())))
        });
        Self::from_client(kube::Client::new(service, "default"), options, Clock::System)
    }

    /// Creates a handle over a client of the server with this host and port.
    pub(super) fn at(
        server: Option<(String, u16)>,
        client: kube::Client,
        options: ConnectOptions,
        clock: Clock,
    ) -> Self {
        let eviction_timeout = options.eviction_timeout;
        let optional_reads = OptionalReads::new(options.refusal_patience);
        let shared = Shared {
            client,
            options,
            clock,
            daemon_sets: tokio::sync::Mutex::default(),
            conditions: Mutex::default(),
            server,
            watch_health: WatchHealth::default(),
            optional_reads,
            event_cache: EventCache::default(),
            in_flight: Mutex::default(),
            budgets: Mutex::default(),
        };
        Self {
            shared: Arc::new(shared),
            lifecycle_group: Arc::from(OFFICIAL_GROUP),
            eviction_timeout,
        }
    }

    /// The API server's host and port, if known.
    pub fn server(&self) -> Option<(&str, u16)> {
        let (host, port) = self.shared.server.as_ref()?;
        Some((host, *port))
    }

    /// Uses another API group for the lifecycle objects.
    #[must_use]
    pub fn with_lifecycle_group(self, group: &str) -> Self {
        Self {
            lifecycle_group: Arc::from(group),
            ..self
        }
    }

    /// Uses another time limit for eviction requests.
    #[must_use]
    pub fn with_eviction_timeout(self, eviction_timeout: Duration) -> Self {
        Self {
            eviction_timeout,
            ..self
        }
    }

    /// How many concurrent evictions the API server can currently handle, judged by its answers to all drains of this
    /// connection; at least one.
    pub fn evictions_at_once(&self) -> usize {
        self.in_flight(|in_flight| in_flight.limit())
    }

    /// Accesses the statistics on eviction answers.
    pub(super) fn in_flight<T>(&self, look: impl FnOnce(&mut InFlight) -> T) -> T {
        let mut in_flight = self
            .shared
            .in_flight
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        look(&mut in_flight)
    }

    pub(super) const fn eviction_timeout(&self) -> Duration {
        self.eviction_timeout
    }

    pub(super) fn client(&self) -> &kube::Client {
        &self.shared.client
    }

    pub(super) fn options(&self) -> &ConnectOptions {
        &self.shared.options
    }

    pub(super) fn watch_health(&self) -> &WatchHealth {
        &self.shared.watch_health
    }

    pub(super) fn optional_reads(&self) -> &OptionalReads {
        &self.shared.optional_reads
    }

    /// The cache of written Events.
    pub(super) fn event_cache(&self) -> &EventCache {
        &self.shared.event_cache
    }

    /// The current time, for timestamps in API objects.
    pub(super) fn now(&self) -> Time {
        self.shared.clock.wall()
    }

    /// The API group of the lifecycle objects.
    pub fn lifecycle_group(&self) -> &str {
        &self.lifecycle_group
    }

    pub(super) fn daemon_sets(&self) -> &tokio::sync::Mutex<DaemonSets> {
        &self.shared.daemon_sets
    }

    /// Remembers the conditions of a node.
    pub(super) fn remember_conditions(&self, node: &Node) {
        if let Ok(mut seen) = self.shared.conditions.lock() {
            seen.insert(node.name.clone(), node.conditions.clone());
        }
    }

    /// Remembers the UIDs of all existing budgets.
    pub(super) fn remember_budgets(&self, all: BTreeMap<(String, String), String>) {
        if let Ok(mut seen) = self.shared.budgets.lock() {
            *seen = all;
        }
    }

    /// Remembers the UID of one more budget; `None` if it was deleted.
    pub(super) fn remember_budget(&self, budget: (String, String), uid: Option<String>) {
        if let Ok(mut seen) = self.shared.budgets.lock() {
            match uid {
                Some(uid) => seen.insert(budget, uid),
                None => seen.remove(&budget),
            };
        }
    }

    /// The last known UID of a budget.
    pub(super) fn budget_uid(&self, namespace: &str, name: &str) -> Option<String> {
        let key = (namespace.to_owned(), name.to_owned());
        self.shared.budgets.lock().ok()?.get(&key).cloned()
    }

    /// The last known conditions of a node.
    pub(super) fn seen_conditions(&self, node: &str) -> Option<Vec<Condition>> {
        self.shared.conditions.lock().ok()?.get(node).cloned()
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster")
            .field("options", &self.shared.options)
            .finish_non_exhaustive()
    }
}
