//! The SLM trigger with its whole environment.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::limit::LIMIT;
use futures::FutureExt;
use futures::future::BoxFuture;
use scupper_api::{ClaimStatus, LifecycleTransition};
use scupper_common::clock::Clock;
use scupper_common::tasks::{TaskEnded, Tasks};
use scupper_contract::registration::registration_client::RegistrationClient;
use scupper_contract::registration::{InfoRequest, PluginInfo, RegistrationStatus};
use scupper_contract::slm::slm_plugin_client::SlmPluginClient;
use scupper_contract::slm::{
    EndLifecycleTransitionRequest, LifecycleTransitionResponse, StartLifecycleTransitionRequest,
};
use scupper_engine::{Outcome, Time};
use scupper_triggers::slm::{
    ClaimApi, ClaimError, EventSnapshot, EventUpdate, LifecycleChange, LifecycleEvent, Registration,
    SLM_TRIGGER, SlmDeps, SlmError, SlmOptions, TransitionApi, TransitionApiError, TransitionChange,
    TransitionCondition, VersionedEvent, start,
};
use scupper_triggers::{
    DrainCommand, DrainReport, DrainReportSender, DriverChanges, DriverState, ResumePoint,
};
use tempfile::TempDir;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::{Channel, Endpoint};

pub(crate) const DRIVER: &str = "drain.slm.k8s.io";
pub(crate) const NODE: &str = "worker-1";

/// The requests to the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ApiCall {
    Publish(LifecycleTransition),
    Withdraw(String),
    Warn(String, String),
}

/// An API server that carries out requests, and shows the results in the watch of transitions.
pub(crate) struct Api {
    pub(crate) calls: Mutex<Vec<ApiCall>>,
    /// The next request finds a bug.
    pub(crate) panics: AtomicBool,
    watch: mpsc::UnboundedSender<TransitionChange>,
}

impl Api {
    fn note(
        &self,
        calls: ApiCall,
        change: Option<TransitionChange>,
    ) -> BoxFuture<'_, Result<(), TransitionApiError>> {
        assert!(!self.panics.load(Ordering::Relaxed), "scripted");
        self.calls.lock().unwrap().push(calls);
        if let Some(change) = change {
            self.watch.send(change).unwrap_or_default();
        }
        async { Ok(()) }.boxed()
    }
}

/// Only the kubelet claims here.
struct NoClaims;

impl ClaimApi for NoClaims {
    fn read<'a>(&'a self, event: &'a str) -> BoxFuture<'a, Result<EventSnapshot, ClaimError>> {
        panic!("looked at {event} to claim it")
    }

    fn write<'a>(
        &'a self,
        seen: &'a VersionedEvent,
        _: &'a EventUpdate,
    ) -> BoxFuture<'a, Result<VersionedEvent, ClaimError>> {
        panic!("wrote {seen:?}")
    }

    fn delete<'a>(&'a self, seen: &'a VersionedEvent) -> BoxFuture<'a, Result<(), ClaimError>> {
        panic!("removed {seen:?}")
    }

    fn set_condition<'a>(
        &'a self,
        condition: &'a TransitionCondition,
    ) -> BoxFuture<'a, Result<(), ClaimError>> {
        panic!("wrote {condition:?}")
    }
}

impl TransitionApi for Api {
    fn publish<'a>(
        &'a self,
        transition: &'a LifecycleTransition,
    ) -> BoxFuture<'a, Result<(), TransitionApiError>> {
        self.note(
            ApiCall::Publish(transition.clone()),
            Some(TransitionChange::Applied(transition.clone())),
        )
    }

    fn withdraw<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), TransitionApiError>> {
        let gone = TransitionChange::Deleted(name.to_owned());
        self.note(ApiCall::Withdraw(name.to_owned()), Some(gone))
    }

    fn warn<'a>(
        &'a self,
        reason: &'a str,
        message: &'a str,
    ) -> BoxFuture<'a, Result<(), TransitionApiError>> {
        self.note(ApiCall::Warn(reason.to_owned(), message.to_owned()), None)
    }
}

/// A kubelet's directories.
pub(crate) struct Root(TempDir);

impl Root {
    pub(crate) fn new() -> Self {
        let root = Self::empty();
        for dir in ["plugins", "plugins_registry"] {
            std::fs::create_dir(root.path().join(dir)).unwrap();
        }
        root
    }

    pub(crate) fn empty() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// The registration sockets that a kubelet would see.
    pub(crate) fn registry(&self) -> Vec<PathBuf> {
        let visible = |path: &PathBuf| !path.file_name().unwrap().to_str().unwrap().starts_with('.');
        let entries = std::fs::read_dir(self.path().join("plugins_registry")).unwrap();
        let mut paths: Vec<_> = entries
            .map(|entry| entry.unwrap().path())
            .filter(visible)
            .collect();
        paths.sort();
        paths
    }

    pub(crate) fn services(&self) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.path().join("plugins").join(DRIVER)) else {
            return Vec::new();
        };
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    pub(crate) fn options(&self, instance: &str) -> SlmOptions {
        SlmOptions {
            kubelet_root: self.path().to_owned(),
            clock: Clock::starting_at(Time::from_millis(1_000_000)),
            ..SlmOptions::new(DRIVER, NODE, instance.to_owned())
        }
    }
}

/// A running trigger.
pub(crate) struct SlmTrigger {
    pub(crate) events: mpsc::UnboundedSender<LifecycleChange>,
    pub(crate) transitions: mpsc::UnboundedSender<TransitionChange>,
    pub(crate) commands: mpsc::Receiver<DrainCommand>,
    pub(crate) reports: DrainReportSender,
    pub(crate) driver_state: watch::Sender<DriverState>,
    pub(crate) registration: watch::Receiver<Registration>,
    pub(crate) api: Arc<Api>,
    pub(crate) stop: CancellationToken,
    pub(crate) task: JoinHandle<Result<(), Ended>>,
}

/// Why its tasks ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Ended {
    #[error(transparent)]
    Slm(#[from] SlmError),
    #[error(transparent)]
    Task(#[from] TaskEnded),
}

impl Drop for SlmTrigger {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl SlmTrigger {
    pub(crate) fn open(options: SlmOptions, resume: Option<ResumePoint>) -> Self {
        let (events, changes) = mpsc::unbounded_channel();
        let (transitions, transition_changes) = mpsc::unbounded_channel();
        let (command_sender, commands) = mpsc::channel(16);
        let mut reports = DrainReportSender::default();
        let (driver_state, driver_states) = watch::channel(DriverState::Idle);
        let (registered, registration) = watch::channel(Registration::Waiting);
        let api = Arc::new(Api {
            calls: Mutex::default(),
            panics: AtomicBool::default(),
            watch: transitions.clone(),
        });
        let stop = CancellationToken::new();
        let deps = SlmDeps {
            heartbeat: Arc::new(|| {}),
            events: UnboundedReceiverStream::new(changes),
            transitions: UnboundedReceiverStream::new(transition_changes),
            commands: command_sender,
            driver_changes: DriverChanges::new(reports.subscribe(), driver_states),
            registration: registered,
            sole_instance: watch::channel(false).0,
            find_resume_point: Arc::new(move || std::future::ready(resume.clone()).boxed()),
            claims: Arc::new(NoClaims),
        };
        let mut tasks = Tasks::default();
        let server = Arc::clone(&api) as Arc<dyn TransitionApi>;
        let started = start(options, server, deps, stop.clone(), &mut tasks);
        let stopping = stop.clone();
        let task = tokio::spawn(async move {
            started?;
            let ended = tasks.supervise(SLM_TRIGGER, || stopping.is_cancelled()).await;
            tasks.shut_down().await;
            ended
        });
        Self {
            events,
            transitions,
            commands,
            reports,
            driver_state,
            registration,
            api,
            stop,
            task,
        }
    }

    /// A trigger that a kubelet has registered, and an API server without events.
    pub(crate) async fn registered(root: &Root) -> (Self, Kubelet) {
        let trigger = Self::open(root.options("one"), None);
        trigger.list(vec![]);
        trigger
            .transitions
            .send(TransitionChange::Listed(vec![]))
            .unwrap();
        let mut kubelet = Kubelet::meet(&wait_for_socket(root).await).await;
        kubelet.notify(true, "").await;
        (trigger, kubelet)
    }

    pub(crate) fn list(&self, events: Vec<LifecycleEvent>) {
        self.events.send(LifecycleChange::Listed(events)).unwrap();
    }

    pub(crate) fn apply(&self, event: LifecycleEvent) {
        self.events.send(LifecycleChange::Applied(event)).unwrap();
    }

    pub(crate) fn gone(&self, uid: &str) {
        self.events
            .send(LifecycleChange::Deleted(uid.to_owned()))
            .unwrap();
    }

    pub(crate) fn working(&self, id: &str) {
        self.driver_state.send_replace(DriverState::Running {
            id: id.to_owned(),
            what: String::new(),
        });
    }

    pub(crate) fn ended(&self, id: &str, outcome: Outcome) {
        self.reports.send(&DrainReport::Ended {
            id: id.to_owned(),
            outcome: Some(outcome),
            partial: false,
        });
        self.driver_state.send_replace(DriverState::Idle);
    }

    pub(crate) async fn command(&mut self) -> DrainCommand {
        within("a command", self.commands.recv()).await.unwrap()
    }

    /// Waits for a request to the API server that satisfies `wanted`.
    pub(crate) async fn calls(&self, what: &str, wanted: impl Fn(&ApiCall) -> bool) -> ApiCall {
        eventually(what, || {
            self.api
                .calls
                .lock()
                .unwrap()
                .iter()
                .find(|calls| wanted(calls))
                .cloned()
        })
        .await
    }

    pub(crate) async fn registration(&mut self, wanted: &Registration) {
        within(
            "the registration",
            self.registration.wait_for(|now| now == wanted),
        )
        .await
        .unwrap();
    }

    /// Lets the trigger process everything sent so far, and a due tick.
    pub(crate) async fn settle(&self) {
        for _ in 0..200 {
            tokio::task::yield_now().await;
        }
    }

    pub(crate) async fn end(mut self) -> Result<(), Ended> {
        within("the trigger's end", &mut self.task).await.unwrap()
    }
}

/// An event that is claimed for us.
pub(crate) fn claimed(uid: &str, name: &str) -> LifecycleEvent {
    LifecycleEvent {
        uid: uid.to_owned(),
        name: name.to_owned(),
        created: None,
        deleting: false,
        transition: DRIVER.to_owned(),
        node: NODE.to_owned(),
        claim: ClaimStatus::Claimed,
        driver: Some(DRIVER.to_owned()),
        sla: None,
        flags: None,
    }
}

/// A small kubelet: it knows one driver.
pub(crate) struct Kubelet {
    registration: RegistrationClient<Channel>,
    pub(crate) info: PluginInfo,
    pub(crate) service: SlmPluginClient<Channel>,
}

impl Kubelet {
    /// Calls `GetInfo`, and dials the endpoint.
    pub(crate) async fn meet(socket: &Path) -> Self {
        let mut registration = RegistrationClient::new(dial(socket).await);
        let info = registration.get_info(InfoRequest {}).await.unwrap().into_inner();
        let service = SlmPluginClient::new(dial(Path::new(&info.endpoint)).await);
        Self {
            registration,
            info,
            service,
        }
    }

    pub(crate) async fn notify(&mut self, plugin_registered: bool, error: &str) {
        let status = RegistrationStatus {
            plugin_registered,
            error: error.to_owned(),
        };
        self.registration
            .notify_registration_status(status)
            .await
            .unwrap();
    }

    pub(crate) async fn start(&mut self, event: &str) -> Answer {
        Answer::from(
            self.service
                .start_lifecycle_transition(start_request(event))
                .await,
        )
    }

    pub(crate) async fn end(&mut self, event: &str) -> Answer {
        let StartLifecycleTransitionRequest {
            transition_name,
            event_name,
            node_name,
            start,
            end,
        } = start_request(event);
        let request = EndLifecycleTransitionRequest {
            transition_name,
            event_name,
            node_name,
            start,
            end,
            sla_expired: false,
        };
        Answer::from(self.service.end_lifecycle_transition(request).await)
    }
}

pub(crate) fn start_request(event: &str) -> StartLifecycleTransitionRequest {
    StartLifecycleTransitionRequest {
        transition_name: DRIVER.to_owned(),
        event_name: event.to_owned(),
        node_name: NODE.to_owned(),
        start: "drain-started".to_owned(),
        end: "drain-complete".to_owned(),
    }
}

/// An answer, without the node that every answer contains.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Condition(String),
    Empty,
    Error(String),
}

impl Answer {
    pub(crate) fn condition(reason: &str) -> Self {
        Self::Condition(reason.to_owned())
    }

    fn from(result: Result<tonic::Response<LifecycleTransitionResponse>, tonic::Status>) -> Self {
        let response = result.unwrap().into_inner();
        assert_eq!(response.node_name, NODE);
        match (response.lifecycle_condition.as_str(), response.error.as_str()) {
            ("", "") => Self::Empty,
            ("", error) => Self::Error(error.to_owned()),
            (reason, "") => Self::Condition(reason.to_owned()),
            both => panic!("a condition and an error: {both:?}"),
        }
    }
}

pub(crate) async fn dial(socket: &Path) -> Channel {
    Endpoint::from_shared(format!("unix:{}", socket.display()))
        .unwrap()
        .connect()
        .await
        .unwrap()
}

pub(crate) async fn wait_for_socket(root: &Root) -> PathBuf {
    eventually("a registration socket", || root.registry().first().cloned()).await
}

/// Polls until there is a value. By the machine's clock, because tokio's may be stopped.
pub(crate) async fn eventually<T>(what: &str, mut read: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = read() {
            return found;
        }
        assert!(start.elapsed() < LIMIT, "waited {LIMIT:?} for {what}");
        tokio::task::yield_now().await;
        tokio::task::spawn_blocking(|| std::thread::sleep(Duration::from_millis(2)))
            .await
            .unwrap();
    }
}

/// Stops tokio's clock. It advances only when the test advances it: a permanent blocking task keeps tokio from
/// advancing it while real sockets are in use.
pub(crate) fn still() -> std::sync::mpsc::Sender<()> {
    let (stay, stopped) = std::sync::mpsc::channel::<()>();
    tokio::task::spawn_blocking(move || stopped.recv().unwrap_or_default());
    tokio::time::pause();
    stay
}

/// Waits for a future, by the machine's clock.
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    let (_stay, limit) = std::sync::mpsc::channel::<()>();
    let limit = tokio::task::spawn_blocking(move || limit.recv_timeout(LIMIT));
    tokio::select! {
        done = future => done,
        _ = limit => panic!("waited {LIMIT:?} for {what}"),
    }
}
