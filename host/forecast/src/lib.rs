//! How a drain will probably go: the engine plays the planned drain many times on a cluster in memory, each time with other
//! times for pods to end, replacements to be ready and hooks to finish, drawn from those of recorded drains.
//!
//! ```text
//!   recordings ──► learned ──┐
//!   plan, pods, budgets ─────┴─► play (engine, cluster model), many times ──► Forecast
//! ```
//!
//! It must not know clusters, policies' code, or who asks.
#![deny(missing_docs)]

mod basis;
mod end_times;
mod group;
mod learned;
mod notice;
mod play;
mod run;
mod savings;
mod services;
mod together;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use scupper_engine::{Budget, Checkpoint, Node, Plan, Pod, PodRef, Request, Time, Uid};
use scupper_recording::DrainHistory;

pub use basis::{Basis, NotPlayed};
pub use end_times::EndTimes;
pub use learned::{Learned, READY_WITHIN, Workload};
pub use notice::{NOTICE, notice_refusal};
pub use savings::{Change, Saving, savings};
pub use services::{Service, ServiceLoss};
pub use together::{Ends, Together};

use group::Played;
use play::Play;

/// The end of a play that has none: nothing would change any more, or not within a week.
pub const NO_END: &str = "no end";

/// The drain that was planned, as the cluster is now.
#[derive(Clone, Debug)]
pub struct Situation {
    /// When it begins, or goes on.
    pub at: Time,
    /// What was asked for.
    pub request: Request,
    /// The node.
    pub node: Node,
    /// Its pods.
    pub pods: Vec<Pod>,
    /// All budgets.
    pub budgets: Vec<Budget>,
    /// The agreed plan.
    pub plan: Plan,
    /// How far it is, if it has begun.
    pub checkpoint: Option<Checkpoint>,
    /// The Services whose endpoints leave with its pods, as far as anybody wants to know.
    pub services: Vec<Service>,
}

impl Situation {
    /// With the pods that the plan has decided on: others have come meanwhile.
    pub fn of(
        at: Time,
        (request, node): (&Request, &Node),
        pods: impl IntoIterator<Item = Pod>,
        budgets: Vec<Budget>,
        plan: &Plan,
    ) -> Self {
        let decided: BTreeSet<_> = plan.decisions.iter().map(|decision| &decision.pod).collect();
        Self {
            at,
            request: request.clone(),
            node: node.clone(),
            pods: pods
                .into_iter()
                .filter(|pod| decided.contains(&pod.id.uid))
                .collect(),
            budgets,
            plan: plan.clone(),
            checkpoint: None,
            services: Vec::new(),
        }
    }

    /// A drain that has come so far. The pods that have left since it was planned are not in its plan any more.
    #[must_use]
    pub fn from(mut self, checkpoint: Checkpoint) -> Self {
        let pods: BTreeSet<_> = self.pods.iter().map(|pod| &pod.id.uid).collect();
        self.plan
            .decisions
            .retain(|decision| pods.contains(&decision.pod));
        for wave in &mut self.plan.waves {
            wave.pods.retain(|pod| pods.contains(pod));
        }
        self.plan.waves.retain(|wave| !wave.pods.is_empty());
        self.checkpoint = Some(checkpoint);
        self
    }

    /// The budgets that count a pod that is to leave.
    pub fn budgets_of_leaving(&self) -> impl Iterator<Item = &Budget> {
        let pods: Vec<&Pod> = basis::leaving(self).collect();
        let counts = move |budget: &&Budget| pods.iter().any(|pod| budget.selects(pod));
        self.budgets.iter().filter(counts)
    }
}

/// What many plays have shown.
#[derive(Clone, Debug)]
pub struct Forecast {
    /// The ends of those that drained the node.
    pub ends: Ends,
    /// How the others ended, in one word, and how many of them.
    pub other_ends: BTreeMap<String, usize>,
    /// Pods that were still there at the end of each of them.
    pub still_there: Vec<PodRef>,
    /// The drain in the middle, from the quickest to the slowest; `None`: there were no plays.
    pub typical: Option<DrainHistory>,
    /// What it rests on.
    pub basis: Basis,
}

impl Forecast {
    /// Plays the drain so many times. The same input gives the same result.
    pub fn of(situation: &Situation, learned: &Learned, plays: usize) -> Self {
        let play = Play::of([situation], learned);
        let mut all = side_by_side(plays, |seed| play.run(seed as u64, 1).played());
        all.sort_by_key(|(seed, played)| (!played.is_drained, played.took, *seed));
        let middle = all.get(all.len().saturating_sub(1) / 2).map(|(seed, _)| *seed);
        let mut other_ends = BTreeMap::new();
        for (_, played) in all.iter().filter(|(_, played)| !played.is_drained) {
            *other_ends.entry(played.end.clone()).or_default() += 1;
        }
        Self {
            ends: Ends::of([situation], &all),
            other_ends,
            still_there: still_there(situation, &all),
            typical: middle.and_then(|seed| play.history(seed as u64)),
            basis: Basis::of(situation, learned),
        }
    }

    /// The time within which so many tenths of all plays have drained the node, if so many do.
    pub fn quantile(&self, tenths: usize) -> Option<Duration> {
        self.ends.quantile(tenths)
    }
}

/// How long those took that drained the node, the shortest first.
pub(crate) fn times_of_drained<'a>(played: impl Iterator<Item = &'a Played>) -> Vec<Duration> {
    let drained = played.filter(|played| played.is_drained);
    let mut times: Vec<_> = drained.map(|played| played.took).collect();
    times.sort();
    times
}

/// The place, among so many that are sorted, of the first below which so many tenths of them are, itself among these.
pub(crate) fn place(of: usize, tenths: usize) -> usize {
    (of * tenths).div_ceil(10).max(1) - 1
}

/// Plays on all cores, each play with its seed.
fn side_by_side(plays: usize, play: impl Fn(usize) -> Played + Sync) -> Vec<(usize, Played)> {
    on_all_cores(plays, |seed| (seed, play(seed)))
}

/// Does something for each number below this one, on all cores. In their order.
pub fn on_all_cores<T: Send>(below: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(below);
    let next = AtomicUsize::new(0);
    let take = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|number| *number < below);
    let mut done: Vec<(usize, T)> = thread::scope(|scope| {
        let of_thread = || {
            std::iter::from_fn(take)
                .map(|number| (number, work(number)))
                .collect::<Vec<_>>()
        };
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(of_thread)).collect();
        let ended = running.into_iter().map(thread::ScopedJoinHandle::join);
        ended
            .flat_map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    done.sort_unstable_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, what)| what).collect()
}

/// The pods that were there at the end of every play.
fn still_there(situation: &Situation, all: &[(usize, Played)]) -> Vec<PodRef> {
    let mut left: Option<BTreeSet<Uid>> = None;
    for (_, played) in all {
        left = Some(match left {
            None => played.left.clone(),
            Some(left) => &left & &played.left,
        });
    }
    let left = left.unwrap_or_default();
    let pods = situation.pods.iter().filter(|pod| left.contains(&pod.id.uid));
    pods.map(|pod| pod.id.clone()).collect()
}
