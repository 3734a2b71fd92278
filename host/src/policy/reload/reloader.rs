//! The task that keeps the catalogue as the operator wants it: looks, loads, has the roster decide, and looks again.
//! While something is compiled it still takes orders, so that a failing policy is rolled back at once.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use scupper_engine::Time;
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;

use super::candidate::Loader;
use super::catalogue::{Catalogue, Order};
use super::look::{self, Look, PolicySource};
use super::notice::ReloadNotice;
use super::roster::{Candidate, Roster, Tried};
use super::rules::ReloadRules;
use super::watch::{Watch, WatchOptions};
use crate::policy::{ClusterAccess, LoadError, LoadFault, PolicySpec, Runtime};

/// When things that never stand still are looked at again.
const MOVING: scupper_engine::Duration = scupper_engine::Duration::from_millis(250);

/// How policies are kept up to date.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReloadOptions {
    /// How changes are noticed.
    pub watch: WatchOptions,
    /// What is refused, when, and for how long.
    pub rules: ReloadRules,
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
}

/// Keeps the catalogue as the operator wants it.
pub struct Reloader {
    roster: Roster,
    loader: Loader,
    source: PolicySource,
    watch: Watch,
    orders: mpsc::Receiver<Order>,
    /// The last configuration that could be used.
    specs: Vec<PolicySpec>,
    /// When to look again, whatever happens.
    due: Option<Time>,
    /// Who waits for the next look, and for the one that runs.
    asked: Vec<oneshot::Sender<()>>,
    asking: Vec<oneshot::Sender<()>>,
}

enum Work {
    Looked(Look),
    Loaded(Vec<Tried>),
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
        let (catalogue, orders) = Catalogue::new();
        let catalogue = Arc::new(catalogue);
        let clock = runtime.options.clock;
        let mut reloader = Self {
            roster: Roster::new(Arc::clone(&catalogue), clock, options.rules, notices),
            loader: Loader { runtime, cluster },
            source,
            watch: Watch::new(options.watch),
            orders,
            specs: Vec::new(),
            due: None,
            asked: Vec::new(),
            asking: Vec::new(),
        };
        reloader.load_first().await?;
        Ok((catalogue, reloader))
    }

    async fn load_first(&mut self) -> Result<(), StartError> {
        let mut look = self.look().await;
        if let Some(reason) = look.refused.take() {
            return Err(StartError::Configuration(reason));
        }
        self.watch.cover(look.places);
        self.specs = look.found.iter().map(|found| found.spec.clone()).collect();
        for found in &mut look.found {
            let failed = |fault: LoadFault| LoadError {
                policy: found.spec.name.clone(),
                file: found.spec.file.clone(),
                fault: Box::new(fault),
            };
            if let Err(error) = &mut found.module {
                let error = std::mem::replace(error, crate::policy::SourceError::NotAFile);
                return Err(failed(LoadFault::Source(error)).into());
            }
        }
        let sifted = self.roster.sift(look.found);
        let mut tried = load_all(self.loader.clone(), sifted.candidates).await;
        if let Some(at) = tried.iter().position(|tried| tried.result.is_err()) {
            let Tried { name, result, .. } = tried.swap_remove(at);
            if let Err(fault) = result {
                let file = self.specs.iter().find(|spec| spec.name == name);
                return Err(StartError::Policy(LoadError {
                    file: file.map(|spec| spec.file.clone()).unwrap_or_default(),
                    policy: name,
                    fault: Box::new(fault),
                }));
            }
        }
        self.due = self.roster.settle(&self.names(), tried);
        Ok(())
    }

    /// Runs until it is dropped.
    pub async fn run(mut self) {
        let mut work: Option<BoxFuture<'static, Work>> = None;
        loop {
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
        Some(Duration::from_millis(span.as_millis()))
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Fault { name, edition, what } => self.roster.fault(&name, &edition, &what),
            Order::RollBack { name, answer } => {
                let told = self.roster.roll_back(&name, "somebody asked for it", true);
                // Whoever asked may be gone.
                let _told = answer.send(told).is_ok();
            }
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
                self.answer();
                None
            }
        }
    }

    fn looked(&mut self, look: Look) -> Option<BoxFuture<'static, Work>> {
        if !look.places.is_empty() {
            self.watch.cover(look.places);
        }
        if look.torn {
            self.due = Some(self.roster.clock.now() + MOVING);
            self.asked.append(&mut self.asking);
            return None;
        }
        let good = look.refused.is_none();
        self.roster.refuse_configuration(look.refused);
        if good {
            self.specs = look.found.iter().map(|found| found.spec.clone()).collect();
        }
        let sifted = self.roster.sift(look.found);
        self.due = sifted.again;
        Some(
            load_all(self.loader.clone(), sifted.candidates)
                .map(Work::Loaded)
                .boxed(),
        )
    }

    fn answer(&mut self) {
        for asking in self.asking.drain(..) {
            // Whoever asked may be gone.
            let _told = asking.send(()).is_ok();
        }
    }

    fn names(&self) -> Vec<String> {
        self.specs.iter().map(|spec| spec.name.clone()).collect()
    }

    fn look(&self) -> impl Future<Output = Look> + Send + use<> {
        let (source, specs, known) = (self.source.clone(), self.specs.clone(), self.roster.known());
        async move {
            let looked = spawn_blocking(move || look::look(&source, &specs, &known)).await;
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
async fn load_all(loader: Loader, candidates: Vec<Candidate>) -> Vec<Tried> {
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
