//! The jobs that a rung of the ladder acts on, and those that it leaves alone.
//!
//! A request for the first part of a heterogeneous job reaches all its parts, and a request for the number of an array all
//! its tasks, on whatever nodes they run. So tasks are addressed as tasks, and heterogeneous jobs are left alone unless the
//! configuration says otherwise.

use super::job::Job;
use super::ladder::Action;
use super::messages;
use super::node::SlurmNode;
use super::search::Found;
use super::server::Server;
use super::slurm_error::SlurmError;
use crate::settings::Settings;

/// The most jobs of which a step asks for more than their number and state.
const ASKED: usize = 8;

pub(super) struct Targets {
    /// The jobs to act on, with their addresses, by number.
    pub(super) jobs: Vec<(Job, String)>,
    /// Parts of heterogeneous jobs that are left alone.
    pub(super) left: Vec<Job>,
    /// More jobs follow in the next step.
    pub(super) later: bool,
    /// Not all running jobs of the cluster are checked.
    pub(super) unseen: bool,
    /// The hook's state is full.
    pub(super) full: bool,
}

impl Targets {
    /// The rung is done for jobs up to the number `done`.
    pub(super) fn of(
        settings: &Settings,
        server: &Server<'_>,
        nodes: &[SlurmNode],
        (found, done): (&Found, u64),
    ) -> Result<Self, SlurmError> {
        let mut targets = Self {
            jobs: Vec::new(),
            left: Vec::new(),
            later: false,
            unseen: found.unseen > 0,
            full: found.full,
        };
        // A job that may be on any node must not be ended.
        let here = |job: &&Job| nodes.iter().any(|node| job.is_on(&node.name));
        let due = |job: &&Job| job.id() > 0 && !job.is_completing();
        let mut asked = 0;
        for job in found.jobs.iter().filter(here).filter(due) {
            let job = match job.is_bare && job.id() > done {
                true if asked == ASKED => {
                    targets.later = true;
                    continue;
                }
                true => {
                    asked += 1;
                    whole(server, job)?
                }
                false => Some(job.clone()),
            };
            if let Some(job) = job {
                targets.add(settings, job);
            }
        }
        targets.jobs.sort_by_key(|(job, _)| job.id());
        Ok(targets)
    }

    fn add(&mut self, settings: &Settings, job: Job) {
        if job.heterogeneous().is_some() && !settings.slurmrestd.ends_heterogeneous {
            self.left.push(job);
        } else if let Some(address) = job.address() {
            self.jobs.push((job, address));
        }
    }

    /// Only these of the jobs to act on.
    pub(super) fn only(&self, keep: impl Fn(&Job) -> bool) -> Self {
        Self {
            jobs: self.jobs.iter().filter(|(job, _)| keep(job)).cloned().collect(),
            left: self.left.clone(),
            ..*self
        }
    }

    /// What people have to know of heterogeneous jobs.
    pub(super) fn words(&self, action: &Action) -> impl Iterator<Item = String> {
        let is_requeue = *action == Action::Requeue;
        let acted = self.jobs.iter().filter_map(move |(job, _)| {
            let part = messages::elsewhere(job)?;
            let others = if is_requeue || job.is_first_part() {
                "its other parts are reached as well"
            } else {
                "its other parts are not reached"
            };
            Some(format!("job {} is {part}: {others}", job.label()))
        });
        let left = self.left.iter().map(|job| {
            let part = messages::elsewhere(job).unwrap_or_default();
            format!(
                "job {}, {part}, is left alone (`heterogeneous: wait`)",
                job.label()
            )
        });
        acted.chain(left)
    }
}

/// The job with all that Slurm says of it. `None`: it has ended.
fn whole(server: &Server<'_>, job: &Job) -> Result<Option<Job>, SlurmError> {
    let found = server.job(job.id())?;
    Ok(found.into_iter().find(|other| other.id() == job.id()))
}
