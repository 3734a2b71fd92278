//! The handle on the API server that the whole edge hangs on.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use scupper_engine::{Condition, Node, Time};

use super::OFFICIAL_GROUP;
use super::api_requests::RequestObserver;
use super::daemonsets::DaemonSets;
use super::event_cache::EventCache;
use super::in_flight::InFlight;
use super::kubeconfig::Connection;
use super::watch_health::WatchHealth;
use scupper_common::clock::Clock;

/// Long enough for a server under load, short enough that people see what is wrong.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// What `kubectl` asks for.
const DEFAULT_PAGE: u32 = 500;

/// How to reach the API server.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// Which server, and as whom.
    pub connection: Connection,
    /// The limit of one eviction request.
    pub eviction_timeout: Duration,
    /// The limit of every other request.
    pub request_timeout: Duration,
    /// Objects a page of a list; 0: all in one.
    pub page_size: u32,
    /// Who counts the requests.
    pub observer: Option<RequestObserver>,
    /// The user as whom pods are evicted, such as `system:node:worker-1`; `None`: as the connected user.
    pub evict_as: Option<String>,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            connection: Connection::default(),
            eviction_timeout: DEFAULT_TIMEOUT,
            request_timeout: DEFAULT_TIMEOUT,
            page_size: DEFAULT_PAGE,
            observer: None,
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
    event_cache: EventCache,
    in_flight: Mutex<InFlight>,
    /// The UID of each budget by namespace and name, as the watch has shown it.
    budgets: Mutex<BTreeMap<(String, String), String>>,
}

impl Cluster {
    /// Over a client that is there already.
    pub fn from_client(client: kube::Client, options: ConnectOptions, clock: Clock) -> Self {
        Self::at(None, client, options, clock)
    }

    /// Over a client of the server with this host and port.
    pub(super) fn at(
        server: Option<(String, u16)>,
        client: kube::Client,
        options: ConnectOptions,
        clock: Clock,
    ) -> Self {
        let eviction_timeout = options.eviction_timeout;
        let shared = Shared {
            client,
            options,
            clock,
            daemon_sets: tokio::sync::Mutex::default(),
            conditions: Mutex::default(),
            server,
            watch_health: WatchHealth::default(),
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

    /// The API server's host and port, where they are known.
    pub fn server(&self) -> Option<(&str, u16)> {
        let (host, port) = self.shared.server.as_ref()?;
        Some((host, *port))
    }

    /// The same with the lifecycle objects in another API group.
    #[must_use]
    pub fn with_lifecycle_group(self, group: &str) -> Self {
        Self {
            lifecycle_group: Arc::from(group),
            ..self
        }
    }

    /// The same with another limit of one eviction request.
    #[must_use]
    pub fn with_eviction_timeout(self, eviction_timeout: Duration) -> Self {
        Self {
            eviction_timeout,
            ..self
        }
    }

    /// How many evictions at once the API server bears just now, by how it has answered all drains of this connection;
    /// at least one.
    pub fn evictions_at_once(&self) -> usize {
        self.in_flight(|in_flight| in_flight.limit())
    }

    /// What is known of how the API server answers evictions.
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

    /// The Events that were written.
    pub(super) fn event_cache(&self) -> &EventCache {
        &self.shared.event_cache
    }

    /// What is written for others to read.
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

    /// Remembers the conditions of a node as they were seen last.
    pub(super) fn remember_conditions(&self, node: &Node) {
        if let Ok(mut seen) = self.shared.conditions.lock() {
            seen.insert(node.name.clone(), node.conditions.clone());
        }
    }

    /// Remembers the UIDs of all budgets that there are.
    pub(super) fn remember_budgets(&self, all: BTreeMap<(String, String), String>) {
        if let Ok(mut seen) = self.shared.budgets.lock() {
            *seen = all;
        }
    }

    /// Remembers the UID of one more budget; `None`: it is gone.
    pub(super) fn remember_budget(&self, budget: (String, String), uid: Option<String>) {
        if let Ok(mut seen) = self.shared.budgets.lock() {
            match uid {
                Some(uid) => seen.insert(budget, uid),
                None => seen.remove(&budget),
            };
        }
    }

    /// The UID of a budget as it was seen last.
    pub(super) fn budget_uid(&self, namespace: &str, name: &str) -> Option<String> {
        let key = (namespace.to_owned(), name.to_owned());
        self.shared.budgets.lock().ok()?.get(&key).cloned()
    }

    /// The conditions of a node as they were seen last.
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
