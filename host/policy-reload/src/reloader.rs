//! The task that keeps the catalogue as the operator wants it: looks, loads, has the roster decide, and looks again.
//! While something is compiled it still takes orders, so that a failing policy is rolled back at once.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use scupper_engine::Time;
use scupper_policy::{ClusterAccess, LoadError, Runtime};
use scupper_policy_spec::PolicySpec;
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;

use super::candidate::{Loader, Material};
use super::catalogue::{Catalogue, Member, Order};
use super::notice::ReloadNotice;
use super::policy_set::{Candidate, Roster, Tried};
use super::revision::Edition;
use super::rules::ReloadRules;
use super::scan::{self, Look, PolicySource, SourceText};
use super::store::{Saved, Store, StoreError};
use super::watch::{Watch, WatchOptions};
use scupper_common::error::chain;

/// When things that never stand still are looked at again.
const MOVING: scupper_engine::Duration = scupper_engine::Duration::from_millis(250);

/// How policies are kept up to date.
#[derive(Clone, Debug, Default)]
pub struct ReloadOptions {
    /// How changes are noticed.
    pub watch: WatchOptions,
    /// What is refused, when, and for how long.
    pub rules: ReloadRules,
    /// Where the last good editions are kept for the next process; `None`: nowhere.
    pub state: Option<PathBuf>,
}

/// Why there are no policies to begin with.
#[derive(Debug, Error)]
pub enum StartError {
    /// The configuration cannot be used.
    #[error("{0}")]
    Configuration(String),
    /// A policy cannot be used, and no edition of it was ever good.
    #[error(transparent)]
    Policy(#[from] LoadError),
    /// The last good editions cannot be kept where they should be.
    #[error(transparent)]
    Store(StoreError),
}

/// Keeps the catalogue as the operator wants it.
pub struct Reloader {
    pub(super) roster: Roster,
    pub(super) loader: Loader,
    pub(super) source: PolicySource,
    pub(super) watch: Watch,
    orders: mpsc::Receiver<Order>,
    /// The last configuration that could be used.
    pub(super) specs: Vec<PolicySpec>,
    /// When to look again, whatever happens.
    pub(super) due: Option<Time>,
    /// Who waits for the next look, and for the one that runs.
    asked: Vec<oneshot::Sender<()>>,
    asking: Vec<oneshot::Sender<()>>,
    /// The words of that configuration.
    pub(super) said: Option<SourceText>,
    /// The last one of which everything was good.
    pub(super) good: Option<SourceText>,
    /// What the next process would find: the generation, and the configuration that was good.
    saved: (u64, Option<SourceText>),
    /// Editions besides the active ones that a former process had, the newest first; `None`: they are loaded.
    pub(super) former: Option<Vec<(PolicySpec, String)>>,
    /// Who waits for them.
    waiting: Vec<(String, oneshot::Sender<Vec<Arc<Member>>>)>,
}

enum Work {
    Looked(Look),
    Loaded(Vec<Tried>),
    Recalled(Vec<Tried>),
    Saved,
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
        let (catalogue, orders) = Catalogue::new();
        let catalogue = Arc::new(catalogue);
        let clock = runtime.clock();
        let mut reloader = Self {
            roster: Roster::new(Arc::clone(&catalogue), clock, options.rules, notices),
            loader: Loader {
                runtime,
                cluster,
                store,
            },
            source,
            watch: Watch::new(options.watch),
            orders,
            specs: Vec::new(),
            said: None,
            good: None,
            due: None,
            asked: Vec::new(),
            asking: Vec::new(),
            saved: (0, None),
            former: None,
            waiting: Vec::new(),
        };
        reloader.load_first().await?;
        Ok((catalogue, reloader))
    }

    /// Runs until it is dropped.
    pub async fn run(mut self) {
        let mut work = self.recall();
        loop {
            if work.is_none() {
                work = self.save();
            }
            if work.is_none() && !self.asked.is_empty() {
                self.asking.append(&mut self.asked);
                work = Some(self.look().map(Work::Looked).boxed());
            }
            let idle = work.is_none();
            let wait = self.wait();
            tokio::select! {
                biased;
                order = self.orders.recv() => match order {
                    Some(order) => self.obey(order),
                    None => return,
                },
                done = run(&mut work), if !idle => work = self.next(done),
                () = self.watch.changed(), if idle => work = Some(self.look().map(Work::Looked).boxed()),
                () = tokio::time::sleep(wait.unwrap_or_default()), if idle && wait.is_some() => {
                    self.due = None;
                    work = Some(self.look().map(Work::Looked).boxed());
                }
            }
        }
    }

    /// How long until the next look that must be.
    fn wait(&self) -> Option<Duration> {
        let span = self.due?.since(self.roster.clock.now());
        Some(span.into())
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Fault { name, edition, what } => self.roster.fault(&name, &edition, &what),
            Order::RollBack { name, answer } => {
                let told = self.roster.roll_back(&name, "somebody asked for it", true);
                // Whoever asked may be gone.
                let _told = answer.send(told).is_ok();
            }
            Order::Kept { name, answer } => {
                self.waiting.push((name, answer));
                self.answer_kept();
            }
            Order::Tell(notice) => self.roster.tell(notice),
            Order::Look(done) => self.asked.push(done),
        }
    }

    /// One piece of work is done: what comes after it?
    fn next(&mut self, done: Work) -> Option<BoxFuture<'static, Work>> {
        match done {
            Work::Looked(look) => self.looked(look),
            Work::Loaded(tried) => {
                let again = self.roster.settle(&self.names(), tried);
                self.due = self.due.into_iter().chain(again).min();
                self.save().or_else(|| self.answer())
            }
            Work::Recalled(tried) => {
                for Tried {
                    name,
                    edition,
                    result,
                } in tried
                {
                    if let Ok(policy) = result {
                        self.roster.recall_previous(&name, edition, policy);
                    }
                }
                self.former = None;
                self.answer_kept();
                None
            }
            Work::Saved => self.answer(),
        }
    }

    /// This configuration counts from now on.
    pub(super) fn take(&mut self, look: &Look) {
        self.specs = look.found.iter().map(|found| found.spec.clone()).collect();
        self.said.clone_from(&look.said);
        self.roster.catalogue.say(look.said.clone());
    }

    fn looked(&mut self, mut look: Look) -> Option<BoxFuture<'static, Work>> {
        if !look.places.is_empty() {
            self.watch.cover(std::mem::take(&mut look.places));
        }
        if look.torn {
            self.due = Some(self.roster.clock.now() + MOVING);
            self.asked.append(&mut self.asking);
            return None;
        }
        if look.refused.is_none() {
            self.take(&look);
        }
        self.roster.refuse_configuration(look.refused);
        let sifted = self.roster.sift(look.found);
        self.due = sifted.again;
        Some(
            load_all(self.loader.clone(), sifted.candidates)
                .map(Work::Loaded)
                .boxed(),
        )
    }

    /// Tells drains of a former process which editions could go on with them, as soon as that is known.
    fn answer_kept(&mut self) {
        if self.former.is_some() {
            return;
        }
        for (name, answer) in self.waiting.drain(..) {
            // The drain may be over.
            let _told = answer.send(self.roster.kept(&name)).is_ok();
        }
    }

    /// Tells whoever asked that everything is done.
    fn answer(&mut self) -> Option<BoxFuture<'static, Work>> {
        for asking in self.asking.drain(..) {
            // Whoever asked may be gone.
            let _told = asking.send(()).is_ok();
        }
        None
    }

    /// Writes down what is good, where that has changed.
    fn save(&mut self) -> Option<BoxFuture<'static, Work>> {
        let number = self.roster.catalogue.generation();
        let store = self.loader.store.clone()?;
        if self.said.is_some() && self.roster.is_as_said(&self.specs) {
            self.good.clone_from(&self.said);
        }
        let known = (number, self.good.clone());
        if self.saved == known {
            return None;
        }
        self.saved = known;
        let saved = Saved {
            policies: self.roster.record(),
            said: self.good.clone(),
        };
        let write = async move {
            if let Ok(Err(error)) = spawn_blocking(move || store.write(saved)).await {
                let error = chain(&error);
                tracing::warn!(target: "scupper::policy", "a restart will not find what is active now: {error}");
            }
            Work::Saved
        };
        Some(write.boxed())
    }

    /// Loads the editions that a former process had besides those that are active now.
    fn recall(&mut self) -> Option<BoxFuture<'static, Work>> {
        let former = self.former.clone()?;
        let loader = self.loader.clone();
        let recall = async move {
            let mut candidates = Vec::new();
            for (spec, digest) in former {
                if let Some(wasm) = loader.kept(&digest).await {
                    candidates.push(Candidate {
                        edition: Edition::of(&spec, &digest),
                        spec,
                        material: Material::Wasm(wasm),
                    });
                }
            }
            Work::Recalled(load_all(loader, candidates).await)
        };
        Some(recall.boxed())
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.specs.iter().map(|spec| spec.name.clone()).collect()
    }

    pub(super) fn look(&self) -> impl Future<Output = Look> + Send + use<> {
        self.look_at(self.source.clone())
    }

    /// Looks at what another source says.
    pub(super) fn look_at(&self, source: PolicySource) -> impl Future<Output = Look> + Send + use<> {
        let (specs, known) = (self.specs.clone(), self.roster.known());
        async move {
            let looked = spawn_blocking(move || scan::look(&source, &specs, &known)).await;
            looked.unwrap_or_else(|_panicked| Look::torn())
        }
    }
}

/// For ever, when there is nothing to do.
async fn run(work: &mut Option<BoxFuture<'static, Work>>) -> Work {
    match work {
        Some(work) => work.await,
        None => std::future::pending().await,
    }
}

/// One after the other: the compiler takes one at a time anyway.
pub(super) async fn load_all(loader: Loader, candidates: Vec<Candidate>) -> Vec<Tried> {
    let mut tried = Vec::with_capacity(candidates.len());
    for Candidate {
        spec,
        edition,
        material,
    } in candidates
    {
        let result = loader.load(&spec, material).await;
        tried.push(Tried {
            name: spec.name,
            edition,
            result,
        });
    }
    tried
}
