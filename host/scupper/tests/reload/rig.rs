//! A directory with policies, and a catalogue that follows it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, pending};
use scupper_api::facts::{FactObject, FactQuery};
use scupper_common::clock::Clock;
use scupper_engine::{HookPhase, HookStep, Node, Pod, PodRef, StepOutcome, Subject, Time, Uid};
use scupper_policy::{
    AccessError, ClusterAccess, DrainInfo, FactError, Network, PolicyEvent, Runtime, RuntimeOptions, Secrets,
    StepCall,
};
use scupper_policy_reload::{
    Catalogue, PolicySource, ReloadNotice, ReloadOptions, ReloadRules, Reloader, Session, SlotStatus,
    StartError, WatchOptions,
};
use scupper_policy_spec::PolicySpec;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::guests::{guest, scratch};
pub(crate) use crate::limit::LIMIT;

/// A directory, and its catalogue.
pub(crate) struct Rig {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) notices: mpsc::UnboundedReceiver<ReloadNotice>,
    specs: Arc<Mutex<Result<Vec<PolicySpec>, String>>>,
    task: JoinHandle<()>,
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Scans only run on request, and candidates are not rate limited.
pub(crate) fn still() -> ReloadOptions {
    ReloadOptions {
        watch: WatchOptions {
            poll: Duration::from_secs(3600),
            events: false,
            ..WatchOptions::default()
        },
        rules: ReloadRules {
            burst: u32::MAX,
            ..ReloadRules::default()
        },
        state: None,
    }
}

/// With file events; polling would be too late for any test.
pub(crate) fn watching() -> ReloadOptions {
    let debounce = Duration::from_millis(50);
    let watch = WatchOptions {
        debounce,
        events: true,
        ..still().watch
    };
    ReloadOptions { watch, ..still() }
}

/// No file events, but a regular scan.
pub(crate) fn polling() -> ReloadOptions {
    let poll = Duration::from_millis(20);
    ReloadOptions {
        watch: WatchOptions {
            poll,
            ..still().watch
        },
        ..still()
    }
}

/// The runtime whose compiled policies all tests of this process share.
pub(crate) fn runtime(clock: Clock) -> Arc<Runtime> {
    runtime_with(clock, env!("CARGO_BIN_EXE_scupper").into())
}

/// A runtime with another compiler.
pub(crate) fn runtime_with(clock: Clock, compiler: PathBuf) -> Arc<Runtime> {
    let options = RuntimeOptions {
        shipped: None,
        cache: scratch().join("compiled"),
        compiler,
        clock,
        network: Network::closed(),
        secrets: Secrets::default(),
    };
    Arc::new(Runtime::new(options).unwrap())
}

/// A policy of a file, with a configuration.
pub(crate) fn named(name: &str, file: &Path, config: &[(&str, &str)]) -> PolicySpec {
    let entry = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    PolicySpec {
        name: name.to_owned(),
        file: file.to_owned(),
        config: config.iter().map(entry).collect(),
        ..PolicySpec::default()
    }
}

/// The bytes of a guest.
pub(crate) fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(guest(name)).unwrap()
}

/// Replaces a file as careful programs do.
pub(crate) fn replace(file: &Path, bytes: &[u8]) {
    let temporary = file.with_extension("part");
    std::fs::write(&temporary, bytes).unwrap();
    std::fs::rename(&temporary, file).unwrap();
}

/// Starts with these policies.
pub(crate) async fn start(
    source: PolicySource,
    options: ReloadOptions,
    clock: Clock,
) -> Result<(Arc<Catalogue>, Reloader, mpsc::UnboundedReceiver<ReloadNotice>), StartError> {
    start_on(runtime(clock), source, options).await
}

/// An API server that never answers.
struct SilentCluster;

type Answer<'a, T> = BoxFuture<'a, Result<T, AccessError>>;

impl ClusterAccess for SilentCluster {
    fn ask<'a>(&'a self, _query: &'a FactQuery) -> BoxFuture<'a, Result<Vec<FactObject>, FactError>> {
        pending().boxed()
    }

    fn cluster_uid(&self) -> Answer<'_, Uid> {
        pending().boxed()
    }

    fn node<'a>(&'a self, _node: &'a str) -> Answer<'a, Node> {
        pending().boxed()
    }

    fn pods<'a>(&'a self, _node: &'a str) -> Answer<'a, Vec<Pod>> {
        pending().boxed()
    }

    fn annotate_node<'a>(&'a self, _node: &'a str, _key: &'a str, _value: Option<&'a str>) -> Answer<'a, ()> {
        pending().boxed()
    }

    fn annotate_pod<'a>(
        &'a self,
        _pod: &'a PodRef,
        _key: &'a str,
        _value: Option<&'a str>,
    ) -> Answer<'a, ()> {
        pending().boxed()
    }

    fn emit<'a>(&'a self, _event: &'a PolicyEvent<'a>) -> Answer<'a, ()> {
        pending().boxed()
    }

    fn secret<'a>(&'a self, _namespace: &'a str, _name: &'a str, _key: &'a str) -> Answer<'a, Vec<u8>> {
        pending().boxed()
    }
}

/// Starts on a runtime of its own.
async fn start_on(
    runtime: Arc<Runtime>,
    source: PolicySource,
    options: ReloadOptions,
) -> Result<(Arc<Catalogue>, Reloader, mpsc::UnboundedReceiver<ReloadNotice>), StartError> {
    let (sender, notices) = mpsc::unbounded_channel();
    let cluster = Arc::new(SilentCluster);
    let (catalogue, reloader) = Reloader::start(runtime, cluster, source, options, sender).await?;
    Ok((catalogue, reloader, notices))
}

impl Rig {
    /// One policy `p`, which is this guest to begin with, in the file `p.wasm`.
    pub(crate) async fn of(guest: &str, options: ReloadOptions) -> Self {
        Self::with_config(guest, &[], options).await
    }

    pub(crate) async fn with_config(guest: &str, config: &[(&str, &str)], options: ReloadOptions) -> Self {
        let dir = tempfile::tempdir().unwrap();
        replace(&dir.path().join("p.wasm"), &bytes(guest));
        Self::in_dir(dir, config, options).await.unwrap()
    }

    /// With the existing file `p.wasm`, or without it.
    pub(crate) async fn in_dir(
        dir: tempfile::TempDir,
        config: &[(&str, &str)],
        options: ReloadOptions,
    ) -> Result<Self, StartError> {
        let specs = vec![named("p", &dir.path().join("p.wasm"), config)];
        Self::with_specs(dir, specs, options).await
    }

    /// With the whole configuration of the policies.
    pub(crate) async fn with_specs(
        dir: tempfile::TempDir,
        specs: Vec<PolicySpec>,
        options: ReloadOptions,
    ) -> Result<Self, StartError> {
        Self::on(runtime(Clock::System), dir, specs, options).await
    }

    /// On a runtime of its own.
    pub(crate) async fn on(
        runtime: Arc<Runtime>,
        dir: tempfile::TempDir,
        specs: Vec<PolicySpec>,
        options: ReloadOptions,
    ) -> Result<Self, StartError> {
        let specs = Arc::new(Mutex::new(Ok(specs)));
        let read = Arc::clone(&specs);
        let source = PolicySource::of(Vec::new(), move || read.lock().unwrap().clone());
        let (catalogue, reloader, notices) = start_on(runtime, source, options).await?;
        Ok(Self {
            dir,
            catalogue,
            notices,
            specs,
            task: tokio::spawn(reloader.run()),
        })
    }

    /// Kills it, and returns the directory that it leaves behind.
    pub(crate) fn end(mut self) -> tempfile::TempDir {
        self.task.abort();
        std::mem::replace(&mut self.dir, tempfile::tempdir().unwrap())
    }

    /// The policy's file.
    pub(crate) fn file(&self) -> PathBuf {
        self.dir.path().join("p.wasm")
    }

    /// Puts another guest in its place.
    pub(crate) fn put(&self, guest: &str) {
        replace(&self.file(), &bytes(guest));
    }

    /// Changes the configuration of the policies.
    pub(crate) fn set_specs(&self, specs: Result<Vec<PolicySpec>, String>) {
        *self.specs.lock().unwrap() = specs;
    }

    /// Changes the configuration of `p`.
    pub(crate) fn configure(&self, config: &[(&str, &str)]) {
        self.set_specs(Ok(vec![named("p", &self.file(), config)]));
    }

    /// Scans everything now.
    pub(crate) async fn rescan(&self) {
        let looked = tokio::time::timeout(LIMIT, self.catalogue.rescan()).await;
        assert!(looked.unwrap(), "no scan runs");
    }

    /// The state of `p`.
    pub(crate) fn slot(&self) -> SlotStatus {
        let slots = self.catalogue.slots();
        slots.iter().find(|slot| slot.name == "p").unwrap().clone()
    }

    /// The version of `p` that is active.
    pub(crate) fn version(&self) -> String {
        self.slot().version
    }

    /// Waits until a version of `p` is active, and returns the notices until then.
    pub(crate) async fn until_active(&mut self, version: &str) -> Vec<ReloadNotice> {
        let mut reported = Vec::new();
        let active = |notice: &ReloadNotice| match notice {
            ReloadNotice::Activated { version: other, .. } => other == version,
            _ => false,
        };
        while !reported.last().is_some_and(active) {
            reported.push(self.next().await);
        }
        reported
    }

    /// The next notice.
    pub(crate) async fn next(&mut self) -> ReloadNotice {
        let next = tokio::time::timeout(LIMIT, self.notices.recv()).await;
        let slots = || self.catalogue.slots();
        next.unwrap_or_else(|_| panic!("nothing is reported: {:?}", slots()))
            .unwrap()
    }

    /// All notices so far.
    pub(crate) fn reported(&mut self) -> Vec<ReloadNotice> {
        std::iter::from_fn(|| self.notices.try_recv().ok()).collect()
    }
}

/// The progress of `p` before a drain, as its answer states it.
pub(crate) async fn step(session: &Session) -> String {
    match step_in(session, HookPhase::BeforeDrain).await {
        StepOutcome::Pending { progress, state, .. } => {
            let version = progress.split(' ').next().unwrap();
            assert_eq!(version.as_bytes(), state, "an answer of two revisions");
            progress.trim_end().to_owned()
        }
        StepOutcome::Failed { message, .. } => message,
        StepOutcome::Done => "done".to_owned(),
    }
}

/// One step of `p` in a phase.
pub(crate) async fn step_in(session: &Session, phase: HookPhase) -> StepOutcome {
    step_after(session, phase, (b"", None)).await.0
}

/// One step of `p` in a phase, after a state of this version.
pub(crate) async fn step_after(
    session: &Session,
    phase: HookPhase,
    (state, version): (&[u8], Option<u32>),
) -> (StepOutcome, Option<u32>) {
    let step = HookStep {
        policy: "p".to_owned(),
        phase,
        subject: Subject::Node,
        state: state.to_vec(),
        leaving: Vec::new(),
    };
    let drain = DrainInfo {
        id: "drain-uid",
        name: "maintenance",
        trigger: "LifecycleEvent",
        started: Time::from_millis(1),
        found_drained: false,
        held: false,
        machine_is_off: false,
        deadline: None,
        now: Time::from_millis(2),
        own_pod: None,
        facts: None,
    };
    let call = StepCall {
        step: &step,
        drain,
        node: &node(),
        pods: &[],
    };
    session.step(call, version).await
}

fn node() -> Node {
    Node {
        name: "node-1".to_owned(),
        uid: Uid::new("node-uid"),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        unschedulable: true,
        conditions: Vec::new(),
        checkpoint: None,
        cancel: None,
        resource_version: "7".to_owned(),
    }
}
