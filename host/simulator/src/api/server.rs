//! The handle of a running server, for tests, the demo and the simulators.

use std::net::SocketAddr;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::access::{Allowed, Forbidden, Rule};
use super::cluster;
use super::faults::{Fault, Faults};
use super::kinds::{self, Kind, Lifecycle};
use super::requests::{RequestLog, RequestRecord};
use super::serve::{self, Service};
use super::store::Store;
use super::table::Table;
use super::write;

/// The options of a server.
#[derive(Clone, Debug)]
pub struct Options {
    /// How the kinds of SLM are served.
    pub lifecycle: Lifecycle,
    /// Their group name.
    pub lifecycle_group: String,
    /// More kinds, as from CRDs.
    pub kinds: Vec<Kind>,
    /// Deleted pods end, and created pods start, as with kubelets.
    pub kubelets: bool,
    /// How long a deleted pod takes to end without the annotation `testbed/takes`.
    pub takes: Duration,
    /// The delay of the disruption controller after a change; `None`: no disruption controller.
    pub disruption: Option<Duration>,
    /// ReplicaSets, StatefulSets and DaemonSets create missing pods.
    pub owners: bool,
    /// How often watches get a BOOKMARK.
    pub bookmark_every: Duration,
    /// Watches support `sendInitialEvents`. Older servers refuse it.
    pub watch_list: bool,
    /// The number of remembered changes; older watches are refused.
    pub history: usize,
    /// The port on the loopback interface; 0 for a free one.
    pub port: u16,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            lifecycle: Lifecycle::Native,
            lifecycle_group: "lifecycle.k8s.io".to_owned(),
            kinds: Vec::new(),
            kubelets: true,
            takes: Duration::ZERO,
            disruption: Some(Duration::ZERO),
            owners: true,
            bookmark_every: Duration::from_secs(60),
            watch_list: true,
            history: 50_000,
            port: 0,
        }
    }
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The port is not available.
    #[error("cannot listen on 127.0.0.1:{port}; choose another port, or 0 for a free one")]
    Bind {
        /// The wanted port.
        port: u16,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// The store refused the first objects.
    #[error("cannot create the namespace {0}")]
    Namespace(&'static str),
}

/// A Kubernetes API server on the loopback. It ends when this is dropped.
pub struct ApiServer {
    service: Arc<Service>,
    controllers: watch::Sender<bool>,
    address: SocketAddr,
    stop: CancellationToken,
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        self.shutdown();
    }
}

impl ApiServer {
    /// Binds, creates the namespaces that every cluster has, and starts to serve.
    pub async fn start(options: Options) -> Result<Self, StartError> {
        let bound = |source| StartError::Bind {
            port: options.port,
            source,
        };
        let listener = TcpListener::bind(("127.0.0.1", options.port))
            .await
            .map_err(bound)?;
        let address = listener.local_addr().map_err(bound)?;
        let kinds: Vec<Arc<Kind>> = kinds::all(options.lifecycle, &options.lifecycle_group, &options.kinds)
            .into_iter()
            .map(Arc::new)
            .collect();
        let mut table = Table::new(kinds.clone(), options.history);
        make_namespaces(&mut table)?;
        let stop = CancellationToken::new();
        let service = Arc::new(Service {
            store: Store::new(table),
            kinds,
            log: RequestLog::default(),
            faults: Faults::new(),
            rules: std::sync::Mutex::new(Vec::new()),
            running: watch::Sender::new(true),
            breaker: std::sync::Mutex::new(stop.child_token()),
            bookmark_every: options.bookmark_every,
            watch_list: options.watch_list,
        });
        tokio::spawn(serve::accept(listener, Arc::clone(&service), stop.clone()));
        let controllers = watch::Sender::new(true);
        cluster::start(
            &options,
            &service.store,
            &service.running.subscribe(),
            &controllers.subscribe(),
            &stop,
        );
        Ok(Self {
            service,
            controllers,
            address,
            stop,
        })
    }

    /// Ends everything: watches without an error, connections, controllers. Dropping also does this.
    pub fn shutdown(&self) {
        self.stop.cancel();
    }

    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A kubeconfig for the administrator.
    pub fn kubeconfig(&self) -> String {
        self.kubeconfig_for("admin")
    }

    /// A kubeconfig for a user, whose bearer token is its name.
    pub fn kubeconfig_for(&self, user: &str) -> String {
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "simulator",
            "clusters": [{"name": "simulator", "cluster": {"server": self.url()}}],
            "users": [{"name": user, "user": {"token": user}}],
            "contexts": [{"name": "simulator", "context": {"cluster": "simulator", "user": user}}],
        });
        // JSON is YAML.
        format!("{config:#}\n")
    }

    /// A configuration for kube-rs without its retries, which would hide the server's responses.
    pub fn client_config(&self) -> kube::Config {
        let mut config = kube::Config::new(self.url().parse().unwrap_or_default());
        config.default_retry = false;
        config.auth_info.token = Some("admin".to_owned().into());
        config
    }

    /// Direct access to the objects, without the API.
    pub fn store(&self) -> Store {
        self.service.store.clone()
    }

    /// Every request so far.
    pub fn requests(&self) -> Vec<RequestRecord> {
        self.service.log.since(0)
    }

    /// A place in the log, for [`Self::requests_since`].
    pub fn mark(&self) -> usize {
        self.service.log.count()
    }

    /// The requests after a mark.
    pub fn requests_since(&self, mark: usize) -> Vec<RequestRecord> {
        self.service.log.since(mark)
    }

    /// Adds faults. The first one that matches a request hits it.
    pub fn faults(&self, faults: impl IntoIterator<Item = Fault>) {
        self.service.faults.add(faults);
    }

    /// Removes all faults.
    pub fn clear_faults(&self) {
        self.service.faults.clear();
    }

    /// Sets the seed for faults with a probability.
    pub fn seed(&self, seed: u64) {
        self.service.faults.seed(seed);
    }

    /// Ends all watches without an error.
    pub fn break_watches(&self) {
        let mut breaker = self
            .service
            .breaker
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *breaker, self.stop.child_token()).cancel();
    }

    /// Drops the history: watches and pages of earlier versions get 410.
    pub fn compact_history(&self) {
        self.service.store.write(Table::compact);
    }

    /// Pauses the server: requests get no response, watches no events, and controllers stop.
    pub fn pause(&self) {
        self.service.running.send_replace(false);
    }

    /// Resumes the server.
    pub fn resume(&self) {
        self.service.running.send_replace(true);
    }

    /// Pauses the controllers: budgets become stale, namespaces stay, owners create no pods.
    pub fn pause_controllers(&self) {
        self.controllers.send_replace(false);
    }

    /// Resumes the controllers.
    pub fn resume_controllers(&self) {
        self.controllers.send_replace(true);
    }

    /// Adds a rule for refused requests.
    pub fn set_forbidden(&self, rule: Forbidden) {
        self.rules().push(Rule::Forbidden(rule));
    }

    /// From now on the user with this bearer token has only these rights: verb and resource, as in [`Forbidden`].
    pub fn allow_only(&self, user: &str, rights: &[(&str, &str)]) {
        let owned = |(verb, resource): &(&str, &str)| ((*verb).to_owned(), (*resource).to_owned());
        let allowed = Allowed {
            user: user.to_owned(),
            rights: rights.iter().map(owned).collect(),
        };
        self.rules().push(Rule::AllBut(allowed));
    }

    /// Removes all rules.
    pub fn clear_forbidden(&self) {
        self.rules().clear();
    }

    fn rules(&self) -> std::sync::MutexGuard<'_, Vec<Rule>> {
        self.service.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn make_namespaces(table: &mut Table) -> Result<(), StartError> {
    let Some(kind) = table.kind("namespaces") else {
        return Ok(());
    };
    for name in ["default", "kube-system", "kube-node-lease", "kube-public"] {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        write::create(table, &kind, None, object, false).map_err(|_failure| StartError::Namespace(name))?;
    }
    Ok(())
}
