//! The drains of a play, side by side or one after another, on one cluster: budgets that count pods of several nodes are the
//! same for all.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use scupper_engine::{Budget, Time, Uid, whole_millis};

use crate::play::{Draws, Play};
use crate::run::NodeRun;
use crate::services::Absence;

/// Drains under way.
pub(crate) struct Group<'a> {
    pub(crate) runs: Vec<NodeRun<'a>>,
    /// The runs of which a budget counts pods, by its namespace and name, where it does so of several.
    shared: BTreeMap<(String, String), Vec<usize>>,
    draws: Draws<'a>,
    began: Time,
    overhead: Option<usize>,
    at_once: usize,
}

/// How they went.
pub(crate) struct Played {
    /// All of them.
    pub(crate) is_drained: bool,
    /// How the first ended that did not drain its node, or the last one, in one word.
    pub(crate) end: String,
    pub(crate) took: Duration,
    /// The pods of the plans that are still there.
    pub(crate) left: BTreeSet<Uid>,
    /// The endpoints that were missing, and when.
    pub(crate) absences: BTreeMap<Uid, Absence>,
}

impl<'a> Group<'a> {
    pub(crate) fn begin(play: &'a Play<'a>, seed: u64, at_once: usize, is_watched: bool) -> Self {
        let mut draws = play.draws(seed);
        let nodes = play.nodes.iter();
        let runs: Vec<_> = nodes
            .map(|node| NodeRun::new(node, &mut draws, is_watched))
            .collect();
        let began = runs.iter().map(|run| run.model.now).max();
        Self {
            shared: shared(&runs),
            runs,
            draws,
            began: began.unwrap_or(Time::from_millis(0)),
            overhead: play.overhead,
            at_once,
        }
    }

    /// Until all have ended, or nothing changes any more.
    pub(crate) fn go(&mut self) {
        self.advance(self.began);
        loop {
            self.start_more();
            while self.act() {}
            let has_ended = self.runs.iter().all(|run| !run.is_running());
            let is_over = has_ended && self.runs.iter().all(NodeRun::is_started);
            if is_over || !has_ended && !self.pass() {
                break;
            }
        }
    }

    fn start_more(&mut self) {
        let running = self.runs.iter().filter(|run| run.is_running()).count();
        let waiting = self.runs.iter_mut().filter(|run| !run.is_started());
        waiting
            .take(self.at_once.saturating_sub(running))
            .for_each(|run| run.start(&mut self.draws));
    }

    /// Does what is due now; `false`: nothing was.
    fn act(&mut self) -> bool {
        let mut has_acted = false;
        for place in 0..self.runs.len() {
            while let Some(run) = self.runs.get_mut(place)
                && run.act(&mut self.draws)
            {
                has_acted = true;
                self.share(place);
            }
        }
        has_acted
    }

    /// Advances to the next moment; `false`: there is none.
    fn pass(&mut self) -> bool {
        let running = || self.runs.iter().filter(|run| run.is_running());
        if running().all(NodeRun::is_still) {
            let is_over = running().all(|run| run.play.again.is_none());
            let runs = self.runs.iter_mut().filter(|run| run.is_running());
            let again = runs.filter_map(NodeRun::take_again).min();
            if let Some(again) = again {
                self.advance(again);
                self.runs.iter_mut().for_each(NodeRun::look_again);
                return true;
            }
            if is_over {
                return false;
            }
        }
        let until = self.runs.iter().filter(|run| run.is_running());
        let until = until.map(NodeRun::until).max();
        let next = self.runs.iter().filter_map(NodeRun::next).min();
        let Some(next) = next.filter(|next| until.is_some_and(|until| *next <= until)) else {
            return false;
        };
        self.advance(next);
        true
    }

    fn advance(&mut self, to: Time) {
        for place in 0..self.runs.len() {
            if let Some(run) = self.runs.get_mut(place) {
                run.advance(to);
            }
            self.share(place);
        }
    }

    /// The budgets that others have in common with this run are as it has left them.
    fn share(&mut self, changed: usize) {
        let run = self.runs.get_mut(changed);
        let budgets = run.map(|run| run.model.take_changed_budgets());
        for budget in budgets.into_iter().flatten() {
            let others = self.shared.get(&name_of(&budget)).into_iter().flatten();
            for other in others.filter(|other| **other != changed) {
                if let Some(run) = self.runs.get_mut(*other) {
                    run.model.set_budget(budget.clone());
                }
            }
        }
    }

    /// How they went.
    pub(crate) fn played(&mut self) -> Played {
        let draws = &mut self.draws;
        let overhead = self.overhead;
        // Recorded drains had pods; one without any takes nothing worth a forecast.
        let runs = self.runs.iter().filter(|run| !run.play.leaving.is_empty());
        let overheads = runs.filter_map(|_| overhead.and_then(|place| draws.draw(place)));
        // What one drain takes besides, those that run beside it do not wait for.
        let side_by_side = self.at_once.clamp(1, self.runs.len().max(1));
        let besides = overheads.sum::<Duration>() / u32::try_from(side_by_side).unwrap_or(u32::MAX);
        let undrained = self.runs.iter().find(|run| !run.is_drained());
        let last = undrained.or_else(|| self.runs.last());
        let now = self.runs.iter().map(|run| run.model.now).max();
        Played {
            is_drained: undrained.is_none(),
            end: last.map_or("", NodeRun::end).to_owned(),
            took: now.unwrap_or(self.began).since(self.began) + Duration::from_millis(whole_millis(besides)),
            left: self.runs.iter().flat_map(NodeRun::left).collect(),
            absences: self.runs.iter_mut().flat_map(NodeRun::take_absences).collect(),
        }
    }
}

fn name_of(budget: &Budget) -> (String, String) {
    (budget.namespace.clone(), budget.name.clone())
}

/// The runs of each budget that has several.
fn shared(runs: &[NodeRun<'_>]) -> BTreeMap<(String, String), Vec<usize>> {
    let mut by_name: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (place, run) in runs.iter().enumerate() {
        for budget in run.model.budgets() {
            by_name.entry(name_of(budget)).or_default().push(place);
        }
    }
    by_name.retain(|_, among| among.len() > 1);
    by_name
}
