//! Commands that are not answered yet, notices that are not picked up yet, and how many of each went out.
//!
//! This module must not know why anything is asked.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use super::budget_tracker::BudgetKey;
use super::hook_state::HookKey;
use super::verify::ListRequest;
use super::writes::Write;
use crate::{Command, CommandId, Notice, Removal, Task, Totals, Uid};

/// What an answer will be about.
#[derive(Clone, Debug)]
pub(super) enum Job {
    /// The planner under way answers.
    Plan,
    /// A hook's step.
    Step(HookKey),
    /// A write of the node.
    Write(Write),
    /// An eviction or a deletion, and the budget that pays for it.
    Remove {
        uid: Uid,
        by: Removal,
        /// Its number among the pod's requests.
        request: u32,
        /// A deletion because the deadline is near.
        forced: bool,
        reserved: Option<BudgetKey>,
    },
    /// A list of pods.
    List(ListRequest),
    /// The choice of the Deployments to surge.
    ChooseSurges,
    /// The surge of this Deployment.
    Surge(Uid),
    /// Its replicas are taken back.
    TakeBack(Uid),
    /// A list of volumes, and how many events about them had come when it was requested.
    Volumes { mark: u64 },
}

/// Commands and notices on their way out.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    last_id: u64,
    queue: VecDeque<Command>,
    open: BTreeMap<CommandId, Job>,
    /// How many evictions and deletions are open.
    removals: usize,
    /// Deletions because the deadline is near.
    forced_removals: usize,
    notices: VecDeque<Notice>,
    /// What went out so far.
    totals: Totals,
}

impl Outbox {
    /// Something to do.
    pub(super) fn push(&mut self, task: Task, job: Job) {
        self.last_id += 1;
        self.totals.push(&task);
        let id = CommandId(self.last_id);
        self.queue.push_back(Command { id, task });
        if let Some(count) = self.count_of(&job) {
            *count += 1;
        }
        self.open.insert(id, job);
    }

    fn close_job(&mut self, id: CommandId) -> Option<Job> {
        let job = self.open.remove(&id)?;
        if let Some(count) = self.count_of(&job) {
            *count = count.saturating_sub(1);
        }
        Some(job)
    }

    const fn count_of(&mut self, job: &Job) -> Option<&mut usize> {
        match job {
            Job::Remove { forced: true, .. } => Some(&mut self.forced_removals),
            Job::Remove { .. } => Some(&mut self.removals),
            _ => None,
        }
    }

    /// The next thing to do.
    pub(super) fn pop(&mut self) -> Option<Command> {
        self.queue.pop_front()
    }

    /// What the answer with this id is about; `None` for a second answer, and for one that nothing waits for.
    pub(super) fn answered(&mut self, id: CommandId) -> Option<Job> {
        self.close_job(id)
    }

    /// Takes back commands that are not picked up yet.
    pub(super) fn take_back(&mut self, mut unwanted: impl FnMut(&Task) -> bool) -> Vec<(Task, Job)> {
        let mut taken = Vec::new();
        let mut kept = VecDeque::new();
        for command in core::mem::take(&mut self.queue) {
            if unwanted(&command.task) {
                taken.extend(self.close_job(command.id).map(|job| (command.task, job)));
            } else {
                kept.push_back(command);
            }
        }
        self.queue = kept;
        for (task, _) in &taken {
            self.totals.take_back(task);
        }
        taken
    }

    /// Nothing more is asked, and no answer is waited for.
    pub(super) fn close(&mut self) {
        self.queue.clear();
        self.open.clear();
        (self.removals, self.forced_removals) = (0, 0);
    }

    /// Something to report.
    pub(super) fn notify(&mut self, notice: Notice) {
        self.totals.notify(&notice);
        self.notices.push_back(notice);
    }

    /// Instead of the end that is not picked up yet.
    pub(super) fn replace_end(&mut self, end: Notice) {
        let is_end = |notice: &&mut Notice| matches!(notice, Notice::Finished { .. });
        if let Some(notice) = self.notices.iter_mut().find(is_end) {
            *notice = end;
        }
    }

    /// What went out, by this process and those before it.
    pub(super) const fn totals(&self) -> &Totals {
        &self.totals
    }

    /// To count what no command or notice shows.
    pub(super) const fn totals_mut(&mut self) -> &mut Totals {
        &mut self.totals
    }

    /// The next thing to report.
    pub(super) fn next_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// A write of the node has not been answered.
    pub(super) fn writes(&self) -> bool {
        self.write_under_way().is_some()
    }

    /// The write of the node that has not been answered.
    pub(super) fn write_under_way(&self) -> Option<&Write> {
        self.open.values().find_map(|job| match job {
            Job::Write(write) => Some(write),
            _ => None,
        })
    }

    /// A list has not been answered.
    pub(super) fn lists(&self) -> bool {
        self.open.values().any(|job| matches!(job, Job::List(_)))
    }

    /// A write of this Deployment has not been answered.
    pub(super) fn writes_deployment(&self, uid: &Uid) -> bool {
        let is_of = |job: &Job| matches!(job, Job::Surge(of) | Job::TakeBack(of) if of == uid);
        self.open.values().any(is_of)
    }

    /// A choice of surges has not been answered.
    pub(super) fn chooses_surges(&self) -> bool {
        self.open.values().any(|job| matches!(job, Job::ChooseSurges))
    }

    /// A list of volumes has not been answered.
    pub(super) fn lists_volumes(&self) -> bool {
        self.open.values().any(|job| matches!(job, Job::Volumes { .. }))
    }

    /// The pods whose eviction or deletion is not picked up yet.
    pub(super) fn queued_removals(&self) -> Vec<Uid> {
        self.queue
            .iter()
            .filter_map(|command| command.task.removes())
            .map(|pod| pod.uid.clone())
            .collect()
    }

    /// How many evictions and deletions have not been answered: those because the deadline is near, or all others.
    pub(super) const fn removals(&self, because_of_deadline: bool) -> usize {
        if because_of_deadline {
            self.forced_removals
        } else {
            self.removals
        }
    }

    /// The hooks whose step has not been answered.
    pub(super) fn steps(&self) -> impl Iterator<Item = &HookKey> {
        self.open.values().filter_map(|job| match job {
            Job::Step(key) => Some(key),
            _ => None,
        })
    }
}
