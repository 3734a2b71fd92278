//! Which jobs are on the nodes of a drain.
//!
//! slurmrestd cannot filter jobs by node. Its short list has every job's state, its long one some 5 to 9 KB for each job. So
//! the long one is only asked for where there are few jobs. Elsewhere each job that runs is asked for by its number, once: a
//! node that drains gets no new jobs, so a job that was elsewhere stays elsewhere. Those of the node are kept in the memory
//! and asked for again. slurmrestd takes seconds for the short list of 50,000 jobs, so it is asked for it again only when
//! none of these is left.

use std::collections::BTreeMap;

use super::job::Job;
use super::memory::Memory;
use super::numbers;
use super::server::Server;
use super::states::States;
use super::trouble::Trouble;

/// With so many jobs in the cluster the long list fits the limit of a response.
const FEW: usize = 300;
/// Jobs that one step asks for by number. With what else a step asks, it stays below the host's limit of 64 requests.
const ASKED: usize = 40;
/// Of these, jobs that are known to be on the node.
const KNOWN: usize = 20;

/// The jobs on the nodes.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) jobs: Vec<Job>,
    /// So many running jobs of the cluster have not been looked at: any of them may be on the nodes.
    pub(super) unseen: usize,
    /// No more are looked for until one of these has ended: the memory of a hook is small.
    pub(super) full: bool,
}

/// All jobs that may be on one of these nodes, which all drain.
pub(super) fn jobs(server: &Server<'_>, memory: &mut Memory, nodes: &[String]) -> Result<Found, Trouble> {
    if memory.looked {
        let known = known(server, memory, nodes)?;
        if !known.is_empty() {
            return Ok(Found {
                jobs: known,
                ..Found::default()
            });
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
            Err(Trouble::TooLong { .. }) if !states.has_nameless => {}
            found => return found,
        }
    }
    by_number(server, memory, nodes, &states)
}

/// By the long list.
fn all(server: &Server<'_>, nodes: &[String]) -> Result<Found, Trouble> {
    Ok(Found {
        jobs: on(server.jobs()?, nodes),
        ..Found::default()
    })
}

fn on(jobs: Vec<Job>, nodes: &[String]) -> Vec<Job> {
    let here = |job: &Job| nodes.iter().any(|node| job.may_run_on(node));
    jobs.into_iter().filter(here).collect()
}

/// The jobs that were seen on the nodes and are still there.
fn known(server: &Server<'_>, memory: &mut Memory, nodes: &[String]) -> Result<Vec<Job>, Trouble> {
    let here = numbers::read(&memory.here);
    if here.is_empty() {
        return Ok(Vec::new());
    }
    let states = match server.states(&here) {
        // One of them is over and forgotten: the list of all says which are left.
        Err(Trouble::NoSuchJob) => return Ok(Vec::new()),
        states => states?.unwrap_or_default(),
    };
    let there = States {
        there: here
            .iter()
            .filter_map(|id| states.there.get_key_value(id))
            .map(|(id, state)| (*id, state.clone()))
            .collect(),
        ..states
    };
    by_number(server, memory, nodes, &there).map(|found| found.jobs)
}

/// By asking for each job that runs.
fn by_number(
    server: &Server<'_>,
    memory: &mut Memory,
    nodes: &[String],
    states: &States,
) -> Result<Found, Trouble> {
    let mut jobs = BTreeMap::new();
    let mut here = Vec::new();
    let known = numbers::read(&memory.here);
    let mut asked = 0;
    for (id, state) in known.iter().filter_map(|id| states.there.get_key_value(id)) {
        // What is known of the others will do until there are fewer.
        let found = if asked < KNOWN {
            asked += 1;
            on(server.job(*id)?, nodes)
        } else {
            vec![Job::known(*id, state, nodes)]
        };
        keep(&mut here, &mut jobs, *id, found);
    }
    let from = memory.seen.saturating_add(1);
    for id in states.there.range(from..).map(|(id, _)| *id) {
        if asked == ASKED || numbers::is_full(&here) {
            break;
        }
        asked += 1;
        keep(&mut here, &mut jobs, id, on(server.job(id)?, nodes));
        memory.seen = id;
    }
    let from = memory.seen.saturating_add(1);
    memory.here = numbers::write(&here);
    let unseen = states.there.range(from..).count();
    memory.looked = unseen == 0;
    Ok(Found {
        jobs: jobs.into_values().collect(),
        unseen,
        full: numbers::is_full(&here),
    })
}

/// One that is not there any more is forgotten. The first part of a heterogeneous job brings the others with it.
fn keep(here: &mut Vec<u64>, jobs: &mut BTreeMap<u64, Job>, id: u64, found: Vec<Job>) {
    if !found.is_empty() {
        here.push(id);
    }
    jobs.extend(found.into_iter().map(|job| (job.id(), job)));
}
