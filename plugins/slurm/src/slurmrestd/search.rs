//! Finds the jobs on the nodes of a drain.
//!
//! slurmrestd cannot filter jobs by node. Its short list has every job's state, its long one 5 to 9 KB per job. So the long
//! list is used only if there are few jobs. Otherwise each running job is fetched once by its number: a draining node gets
//! no new jobs, so a job that was elsewhere stays elsewhere. The node's jobs are saved in the hook's state and fetched again.
//! slurmrestd needs seconds for the short list of 50,000 jobs, so it is read again only when all of these have ended.
//!
//! The last task of an array has the array's number, and its response contains all tasks: if these are too many, its nodes
//! are unknown. A running job keeps its nodes busy, so it is not on a free one; in other states the drain waits for it.

use std::collections::BTreeMap;

use super::hook_state::HookState;
use super::job::{Job, may_run};
use super::node::{Load, SlurmNode};
use super::numbers;
use super::server::Server;
use super::slurm_error::SlurmError;
use super::states::States;

/// With at most this many jobs in the cluster the long list fits into a response.
const FEW: usize = 300;
/// The most jobs that one step fetches by number. With its other requests a step stays below the host's limit of 64.
const ASKED: usize = 40;
/// Of these, the most jobs already known to be on the node.
const KNOWN: usize = 20;

/// The jobs on the nodes.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) jobs: Vec<Job>,
    /// The number of running jobs of the cluster that are not checked yet: any of them may be on the nodes.
    pub(super) unseen: usize,
    /// The hook's state is full: the search continues when one of these has ended.
    pub(super) full: bool,
}

/// All jobs that may be on one of these nodes, which all drain.
pub(super) fn jobs(
    server: &Server<'_>,
    hook_state: &mut HookState,
    nodes: &[SlurmNode],
) -> Result<Found, SlurmError> {
    if hook_state.looked {
        let ids = [
            numbers::read(&hook_state.here),
            numbers::read(&hook_state.unplaced),
        ]
        .concat();
        let known = if ids.is_empty() {
            None
        } else {
            server.states(&ids)?
        };
        // A job that the response lacks is over and forgotten.
        let found = known.map(|states| Search::new(server, nodes, &states).go(hook_state));
        if let Some(found) = found.transpose()?.filter(|found| !found.jobs.is_empty()) {
            return Ok(found);
        }
    }
    let Some(states) = server.states(&[])? else {
        // Slurm before 24.05 has no short list.
        return all(server, nodes);
    };
    if states.there.is_empty() && !states.has_nameless {
        return Ok(Found::default());
    }
    if states.listed <= FEW || states.has_nameless {
        match all(server, nodes) {
            Err(SlurmError::TooLong { .. }) if !states.has_nameless => {}
            found => return found,
        }
    }
    Search::new(server, nodes, &states).go(hook_state)
}

/// By the long list.
fn all(server: &Server<'_>, nodes: &[SlurmNode]) -> Result<Found, SlurmError> {
    Ok(Found {
        jobs: on(server.jobs()?, nodes),
        ..Found::default()
    })
}

fn on(mut jobs: Vec<Job>, nodes: &[SlurmNode]) -> Vec<Job> {
    let here = |job: &Job| nodes.iter().any(|node| job.may_run_on(&node.name));
    name_other_parts(&mut jobs, here);
    jobs.into_iter().filter(here).collect()
}

/// Notes with each part of a heterogeneous job on which other nodes the job runs.
fn name_other_parts(jobs: &mut [Job], here: impl Fn(&Job) -> bool) {
    let mut elsewhere: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for job in jobs.iter().filter(|job| may_run(&job.state) && !here(job)) {
        if let Some(whole) = job.heterogeneous() {
            elsewhere.entry(whole).or_default().push(job.nodes().to_owned());
        }
    }
    for job in jobs {
        let others = job.heterogeneous().and_then(|whole| elsewhere.get(&whole));
        job.elsewhere = others.map_or_else(String::new, |nodes| nodes.join(","));
    }
}

/// Fetches each running job of one list of states.
struct Search<'a> {
    server: &'a Server<'a>,
    nodes: &'a [SlurmNode],
    states: &'a States,
    asked: usize,
    here: Vec<u64>,
    unplaced: Vec<u64>,
    /// Each once: the response for the first part of a heterogeneous job contains the others.
    jobs: BTreeMap<u64, Job>,
}

impl<'a> Search<'a> {
    const fn new(server: &'a Server<'a>, nodes: &'a [SlurmNode], states: &'a States) -> Self {
        Self {
            server,
            nodes,
            states,
            asked: 0,
            here: Vec::new(),
            unplaced: Vec::new(),
            jobs: BTreeMap::new(),
        }
    }

    fn go(mut self, hook_state: &mut HookState) -> Result<Found, SlurmError> {
        for id in numbers::read(&hook_state.here) {
            self.known(id)?;
        }
        for id in numbers::read(&hook_state.unplaced) {
            self.ask_again(id)?;
        }
        let states = self.states;
        let after = |seen: u64| states.there.range(seen.saturating_add(1)..);
        for (id, _) in after(hook_state.seen) {
            if self.asked >= ASKED || numbers::is_full(&self.here) {
                break;
            }
            self.ask(*id)?;
            hook_state.seen = *id;
        }
        hook_state.here = numbers::write(&self.here);
        hook_state.unplaced = numbers::write(&self.unplaced);
        let unseen = after(hook_state.seen).count();
        hook_state.looked = unseen == 0;
        Ok(Found {
            unseen,
            full: numbers::is_full(&self.here),
            jobs: self.jobs(),
        })
    }

    /// Handles a job that was on the nodes. If there are many, the known facts suffice.
    fn known(&mut self, id: u64) -> Result<(), SlurmError> {
        let Some(state) = self.states.there.get(&id) else {
            return Ok(());
        };
        let found = if self.asked < KNOWN { self.fetch(id)? } else { None };
        let names: Vec<&str> = self.nodes.iter().map(|node| node.name.as_str()).collect();
        self.keep(id, found.unwrap_or_else(|| vec![Job::known(id, state, &names)]));
        Ok(())
    }

    /// Handles a job whose response was too long. While a node is in use, the job's nodes do not matter.
    fn ask_again(&mut self, id: u64) -> Result<(), SlurmError> {
        if self.states.there.contains_key(&id) && !self.is_free() {
            self.unplaced.push(id);
            return Ok(());
        }
        self.ask(id)
    }

    fn is_free(&self) -> bool {
        self.nodes.iter().all(|node| node.load() == Load::Free)
    }

    /// Handles a job with unknown nodes.
    fn ask(&mut self, id: u64) -> Result<(), SlurmError> {
        let Some(state) = self.states.there.get(&id) else {
            return Ok(());
        };
        match self.fetch(id)? {
            Some(found) => self.keep(id, found),
            None if *state == ["RUNNING"] && self.is_free() => {}
            None => self.unplaced.push(id),
        }
        Ok(())
    }

    /// `None`: its array has more tasks than fit into a response.
    fn fetch(&mut self, id: u64) -> Result<Option<Vec<Job>>, SlurmError> {
        self.asked = self.asked.saturating_add(1);
        match self.server.parts(id) {
            Ok(jobs) => Ok(Some(on(jobs, self.nodes))),
            // The state has room for some of these.
            Err(SlurmError::TooLong { .. }) if self.unplaced.len() < numbers::UNPLACED => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A job that is no longer there is dropped.
    fn keep(&mut self, id: u64, found: Vec<Job>) {
        if !found.is_empty() {
            self.here.push(id);
        }
        self.jobs.extend(found.into_iter().map(|job| (job.id(), job)));
    }

    /// Jobs that may be anywhere are returned only if no other job holds the node.
    fn jobs(self) -> Vec<Job> {
        let Self {
            jobs,
            unplaced,
            states,
            ..
        } = self;
        if !jobs.is_empty() {
            return jobs.into_values().collect();
        }
        let there = unplaced.iter().filter_map(|id| states.there.get_key_value(id));
        there.map(|(id, state)| Job::known(*id, state, &[])).collect()
    }
}
