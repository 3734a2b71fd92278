//! The task that keeps the catalogue in line with the configuration: it scans, loads, lets the policy set decide, and
//! scans again. It also accepts commands while it compiles, so that a failing policy is rolled back at once.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use scupper_engine::Time;
use scupper_policy::{ClusterAccess, Runtime};
use scupper_policy_spec::PolicySpec;
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;

use super::candidate::{Loader, Material};
use super::catalogue::{Catalogue, Command, Member};
use super::notice::ReloadNotice;
use super::policy_set::{Candidate, PolicySet, Tried, WantedPolicy};
use super::revision::Revision;
use super::rules::ReloadRules;
use super::scan::{self, ConfigText, PolicySource, Scan, Torn};
use super::settings_texts::SettingsTexts;
use super::start_error::StartError;
use super::store::{Saved, Store};
use super::watch::{Watch, WatchOptions};
use scupper_common::error::chain;

/// The pause before the next scan of files that change all the time. It doubles with each such scan.
const MOVING: Duration = Duration::from_millis(250);
/// The longest such pause.
const LONGEST_MOVING: Duration = Duration::from_secs(30);

/// The pause after so many such scans in a row and one more.
pub(super) fn moving_pause(before: u32) -> Duration {
    MOVING.saturating_mul(1 << before.min(16)).min(LONGEST_MOVING)
}

/// The settings for keeping policies up to date.
#[derive(Clone, Debug, Default)]
pub struct ReloadOptions {
    /// How changes are noticed.
    pub watch: WatchOptions,
    /// When candidates and revisions are rejected, and for how long.
    pub rules: ReloadRules,
    /// The store of the last good revisions for the next process; `None`: none.
    pub state: Option<PathBuf>,
}

/// Keeps the catalogue in line with the configuration.
pub struct Reloader {
    pub(super) policy_set: PolicySet,
    pub(super) loader: Loader,
    pub(super) source: PolicySource,
    pub(super) watch: Watch,
    commands: mpsc::Receiver<Command>,
    /// The last configuration that could be used.
    pub(super) specs: Vec<PolicySpec>,
    /// When to scan again at the latest.
    pub(super) due: Option<Time>,
    /// How many scans in a row found files that were changing.
    torn: u32,
    /// The callers that wait for the next scan, and for the running one.
    asked: Vec<oneshot::Sender<()>>,
    asking: Vec<oneshot::Sender<()>>,
    /// The text of that configuration.
    pub(super) config_text: Option<ConfigText>,
    /// Earlier texts, for the settings of revisions that may return.
    pub(super) texts: SettingsTexts,
    /// The last configuration whose policies were all good.
    pub(super) good: Option<ConfigText>,
    /// The saved state for the next process: the generation, and the good configuration.
    saved: (u64, Option<ConfigText>),
    /// It could not be written, which was reported: the next scan tries again.
    unsaved: bool,
    /// Revisions of an earlier process besides the active ones, the newest first; `None`: they are loaded.
    pub(super) former: Option<Vec<(PolicySpec, String)>>,
    /// Callers that wait for them.
    waiting: Vec<(String, oneshot::Sender<Vec<Arc<Member>>>)>,
}

enum Work {
    Looked(Result<Scan, Torn>),
    Loaded(Vec<Tried>),
    Recalled(Vec<Tried>),
    /// Whether it is on the disk.
    Saved(bool),
}

impl Reloader {
    /// Loads everything once. Afterwards [`Self::run`] keeps it up to date.
    pub async fn start(
        runtime: Arc<Runtime>,
        cluster: Arc<dyn ClusterAccess>,
        source: PolicySource,
        options: ReloadOptions,
        notices: mpsc::UnboundedSender<ReloadNotice>,
    ) -> Result<(Arc<Catalogue>, Self), StartError> {
        let store = match options.state {
            Some(path) => {
                let opened = spawn_blocking(move || Store::open(&path)).await;
                opened.ok().transpose().map_err(StartError::Store)?.map(Arc::new)
            }
            None => None,
        };
        let (catalogue, commands) = Catalogue::new();
        let catalogue = Arc::new(catalogue);
        let clock = runtime.clock();
        let mut reloader = Self {
            policy_set: PolicySet::new(Arc::clone(&catalogue), clock, options.rules, notices),
            loader: Loader {
                runtime,
                cluster,
                store,
            },
            source,
            watch: Watch::new(options.watch),
            commands,
            specs: Vec::new(),
            config_text: None,
            texts: SettingsTexts::default(),
            good: None,
            due: None,
            torn: 0,
            asked: Vec::new(),
            asking: Vec::new(),
            saved: (0, None),
            unsaved: false,
            former: None,
            waiting: Vec::new(),
        };
        reloader.load_initially().await?;
        Ok((catalogue, reloader))
    }

    /// Runs until it is dropped.
    pub async fn run(mut self) {
        let mut work = self.restore();
        loop {
            if work.is_none() {
                work = self.save();
            }
            if work.is_none() && !self.asked.is_empty() {
                self.asking.append(&mut self.asked);
                work = Some(self.scan().map(Work::Looked).boxed());
            }
            let idle = work.is_none();
            let wait = self.wait();
            tokio::select! {
                biased;
                command = self.commands.recv() => match command {
                    Some(command) => self.obey(command),
                    None => return,
                },
                done = run(&mut work), if !idle => work = self.next(done),
                () = self.watch.changed(), if idle => work = Some(self.scan().map(Work::Looked).boxed()),
                () = tokio::time::sleep(wait.unwrap_or_default()), if idle && wait.is_some() => {
                    self.due = None;
                    work = Some(self.scan().map(Work::Looked).boxed());
                }
            }
        }
    }

    /// The time until the next due scan.
    fn wait(&self) -> Option<Duration> {
        Some(self.due?.since(self.policy_set.clock.now()))
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Fault { name, revision, what } => self.policy_set.fault(&name, &revision, &what),
            Command::RollBack { name, answer } => {
                let reported = self.policy_set.roll_back(&name, "an operator requested it", true);
                // The caller may be gone.
                let _told = answer.send(reported).is_ok();
            }
            Command::Kept { name, answer } => {
                self.waiting.push((name, answer));
                self.answer_previous();
            }
            Command::Notify(notice) => self.policy_set.notify(notice),
            Command::Scan(done) => self.asked.push(done),
        }
    }

    /// Handles one finished piece of work, and returns the next.
    fn next(&mut self, done: Work) -> Option<BoxFuture<'static, Work>> {
        match done {
            Work::Looked(scan) => self.looked(scan),
            Work::Loaded(tried) => {
                let again = self.policy_set.apply_results(&self.wanted(), tried);
                self.due = self.due.into_iter().chain(again).min();
                self.publish_config_text();
                self.save().or_else(|| self.answer())
            }
            Work::Recalled(tried) => {
                for Tried {
                    name,
                    revision,
                    result,
                } in tried
                {
                    if let Ok(policy) = result {
                        self.policy_set.restore_previous(&name, revision, policy);
                    }
                }
                self.former = None;
                self.answer_previous();
                None
            }
            Work::Saved(is_saved) => {
                self.unsaved = !is_saved;
                if self.unsaved {
                    let retry = self.policy_set.clock.now() + self.policy_set.rules.retry;
                    self.due = self.due.into_iter().chain([retry]).min();
                }
                self.answer()
            }
        }
    }

    /// Wants this configuration.
    pub(super) fn take(&mut self, scan: &Scan) {
        self.specs = scan.found.iter().map(|found| found.spec.clone()).collect();
        self.config_text.clone_from(&scan.config_text);
        if let Some(text) = &scan.config_text {
            self.texts.note(text, settings(&self.specs));
        }
    }

    /// New drains get the rest of this configuration only with its policies: with its `force` and without the policy
    /// that protects a pod, they would delete that pod.
    pub(super) fn publish_config_text(&self) {
        if self.policy_set.follows_configuration(&self.specs) {
            let catalogue = &self.policy_set.catalogue;
            catalogue.set_config_text(self.config_text.clone());
        }
    }

    fn looked(&mut self, mut scan: Result<Scan, Torn>) -> Option<BoxFuture<'static, Work>> {
        self.watch.scanned();
        let places = match &mut scan {
            Ok(scan) => std::mem::take(&mut scan.places),
            Err(torn) => std::mem::take(&mut torn.places),
        };
        if !places.is_empty() {
            self.watch.cover(places);
        }
        let Ok(scan) = scan else {
            self.due = Some(self.policy_set.clock.now() + moving_pause(self.torn));
            self.torn = self.torn.saturating_add(1);
            self.asked.append(&mut self.asking);
            return None;
        };
        self.torn = 0;
        if self.unsaved {
            self.saved = (0, None);
        }
        if scan.refused.is_none() {
            self.take(&scan);
            let (used, wanted) = (self.policy_set.settings_in_use(), settings(&self.specs));
            self.texts
                .retain(|known| used.contains(known) || wanted.contains(known));
        }
        self.policy_set.refuse_configuration(scan.refused);
        let diff = self.policy_set.diff(scan.found);
        self.due = diff.again;
        self.policy_set.report_away(diff.away);
        Some(
            load_all(self.loader.clone(), diff.candidates)
                .map(Work::Loaded)
                .boxed(),
        )
    }

    /// Answers, once it is known, which revisions can continue the drains of an earlier process.
    fn answer_previous(&mut self) {
        if self.former.is_some() {
            return;
        }
        for (name, answer) in self.waiting.drain(..) {
            // The drain may be over.
            let _told = answer.send(self.policy_set.kept(&name)).is_ok();
        }
    }

    /// Answers the callers that wait for the end of a scan.
    fn answer(&mut self) -> Option<BoxFuture<'static, Work>> {
        for asking in self.asking.drain(..) {
            // The caller may be gone.
            let _told = asking.send(()).is_ok();
        }
        None
    }

    /// Saves the good revisions if they have changed.
    fn save(&mut self) -> Option<BoxFuture<'static, Work>> {
        let store = self.loader.store.clone()?;
        if self.config_text.is_some() && self.policy_set.matches_configuration(&self.specs) {
            self.good.clone_from(&self.config_text);
        }
        let known = (self.policy_set.catalogue.generation(), self.good.clone());
        if self.saved == known {
            return None;
        }
        self.saved = known;
        let saved = Saved {
            policies: self.policy_set.record(),
            config_text: self.good.clone(),
            texts: self.texts.clone(),
            ready: self.policy_set.ready_digests(),
        };
        let files: Vec<PathBuf> = self.specs.iter().map(|spec| spec.file.clone()).collect();
        let is_reported = self.unsaved;
        let write = async move {
            let written = spawn_blocking(move || store.write(saved, &files)).await;
            if let (Ok(Err(error)), false) = (&written, is_reported) {
                let error = chain(error);
                tracing::warn!(target: "scupper::policy", "a restart will not find what is active now: {error}");
            }
            Work::Saved(matches!(written, Ok(Ok(()))))
        };
        Some(write.boxed())
    }

    /// Loads the revisions of an earlier process that are not active now.
    fn restore(&mut self) -> Option<BoxFuture<'static, Work>> {
        let former = self.former.clone()?;
        let loader = self.loader.clone();
        let restore = async move {
            let mut candidates = Vec::new();
            for (spec, digest) in former {
                if let Some(wasm) = loader.kept(&digest).await {
                    candidates.push(Candidate {
                        revision: Revision::of(&spec, &digest),
                        spec,
                        material: Material::Wasm(wasm),
                    });
                }
            }
            Work::Recalled(load_all(loader, candidates).await)
        };
        Some(restore.boxed())
    }

    pub(super) fn wanted(&self) -> Vec<WantedPolicy> {
        let specs = self.specs.iter();
        specs.map(|spec| (spec.name.clone(), spec.mode.clone())).collect()
    }

    pub(super) fn scan(&self) -> impl Future<Output = Result<Scan, Torn>> + Send + use<> {
        self.scan_source(self.source.clone())
    }

    /// Handles the findings of another source.
    pub(super) fn scan_source(
        &self,
        source: PolicySource,
    ) -> impl Future<Output = Result<Scan, Torn>> + Send + use<> {
        let (specs, known) = (self.specs.clone(), self.policy_set.known());
        async move {
            let looked = spawn_blocking(move || scan::scan(&source, &specs, &known)).await;
            looked.unwrap_or_else(|_panicked| Ok(Scan::panicked()))
        }
    }
}

fn settings(specs: &[PolicySpec]) -> BTreeSet<String> {
    let revisions = specs.iter().map(|spec| Revision::of(spec, ""));
    revisions.map(|revision| revision.settings).collect()
}

/// Waits for ever if there is no work.
async fn run(work: &mut Option<BoxFuture<'static, Work>>) -> Work {
    match work {
        Some(work) => work.await,
        None => std::future::pending().await,
    }
}

/// One after the other, because the compiler handles one at a time.
pub(super) async fn load_all(loader: Loader, candidates: Vec<Candidate>) -> Vec<Tried> {
    let mut tried = Vec::with_capacity(candidates.len());
    for Candidate {
        spec,
        revision,
        material,
    } in candidates
    {
        let result = loader.load(&spec, material).await;
        tried.push(Tried {
            name: spec.name,
            revision,
            result,
        });
    }
    tried
}
