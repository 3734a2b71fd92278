//! Writes of the node: the cordon, the checkpoint, and taking both away. One at a time, tried again until it works
//! or can never work.

use core::time::Duration;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;

use super::Drain;
use super::backoff::Backoff;
use super::outbox::Job;
use super::replies::WriteReply;
use super::uncordon::UncordonStep;
use crate::{Checkpoint, HumanDuration, Notice, Outcome, Phase, Task, Time, Uid};

/// A write that is on its way.
#[derive(Clone, Debug)]
pub(super) enum Write {
    Cordon {
        checkpoint: Box<Checkpoint>,
        revision: u64,
        version: String,
    },
    Save {
        checkpoint: Box<Checkpoint>,
        revision: u64,
    },
    Uncordon {
        checkpoint: Option<Box<Checkpoint>>,
        revision: u64,
        version: String,
    },
    Forget,
}

/// When the next write may go out.
#[derive(Debug, Default)]
pub(super) struct Writer {
    retry_at: Time,
    tries: u32,
    /// How long the API server has refused us, from one refusal to the next.
    forbidden: Duration,
    /// When it did so, if that was its last answer.
    forbidden_at: Option<Time>,
    /// The version that a write was decided on when the node had changed since: that write waits for news.
    conflicting: Option<String>,
}

impl Writer {
    pub(super) const fn retry_at(&self) -> Time {
        self.retry_at
    }

    /// The API server refuses us; how long it has done so. Other failures in between neither count nor restart it.
    fn count_refusal(&mut self, now: Time) -> Duration {
        if let Some(last) = self.forbidden_at.replace(now) {
            self.forbidden = self.forbidden.saturating_add(now.since(last));
        }
        self.forbidden
    }
}

impl Write {
    const fn name(&self) -> &'static str {
        match self {
            Self::Cordon { .. } => "cordon",
            Self::Save { .. } => "save",
            Self::Uncordon { .. } => "uncordon",
            Self::Forget => "forget",
        }
    }

    /// What the API server is asked to do.
    const fn what(&self) -> &'static str {
        match self {
            Self::Cordon { .. } => "cordon the node",
            Self::Save { .. } => "save the drain's checkpoint on the node",
            Self::Uncordon { .. } => "uncordon the node",
            Self::Forget => "remove the drain's checkpoint from the node",
        }
    }
}

impl Drain {
    /// Saves what has changed, if anything has. Where hooks stand waits its turn; whatever else is saved carries it.
    pub(super) fn save(&mut self) {
        let saves = match self.phase {
            Phase::Planning | Phase::Finished => false,
            // The cordon carries it.
            Phase::Cordoning => self.cluster.is_cordoned(),
            // A process that resumes does not know yet whose cordon there is.
            Phase::RollingBack if self.cluster.node().is_none() && !self.cordon.is_decided() => false,
            _ => !self.ending.is_closing(),
        };
        let due = self.checkpoint_state.save_due();
        let is_due = due.is_some_and(|due| due <= self.now);
        if saves
            && is_due
            && let Some(node) = self.node_to_write()
        {
            self.checkpoint_state.count_save(self.now);
            let phase = if self.phase == Phase::Cordoning {
                Phase::Holding
            } else {
                self.phase
            };
            self.push_save(self.checkpoint(node, phase, self.cordon.is_ours()));
        }
    }

    /// Saves a checkpoint on the node that it is for, which may be written.
    pub(super) fn push_save(&mut self, checkpoint: Checkpoint) {
        let revision = self.checkpoint_state.revision();
        let task = Task::Save {
            node: checkpoint.node.clone(),
            checkpoint: checkpoint.clone(),
        };
        self.outbox.push(
            task,
            Job::Write(Write::Save {
                checkpoint: Box::new(checkpoint),
                revision,
            }),
        );
    }

    /// Lifts the cordon if no other write is under way; `keep` says what stays on the node.
    pub(super) fn push_uncordon(&mut self, keep: Option<Checkpoint>) {
        let Some((node, version)) = self.version_to_write() else {
            return;
        };
        let revision = self.checkpoint_state.revision();
        let task = Task::Uncordon {
            node,
            checkpoint: keep.clone(),
            version: version.clone(),
        };
        let checkpoint = keep.map(Box::new);
        self.outbox.push(
            task,
            Job::Write(Write::Uncordon {
                checkpoint,
                revision,
                version,
            }),
        );
    }

    pub(super) fn push_forget(&mut self) {
        if let Some(node) = self.node_to_write() {
            self.outbox.push(Task::Forget { node }, Job::Write(Write::Forget));
        }
    }

    /// The UID of the node that may be written now: no write is under way, and the last one did not fail a moment ago.
    pub(super) fn node_to_write(&self) -> Option<Uid> {
        let idle = !self.outbox.writes() && self.now >= self.writer.retry_at;
        let uid = self.cluster.node_uid();
        uid.filter(|_| idle && !self.checkpoint_state.is_node_gone())
            .cloned()
    }

    /// The node and its version, unless a write that was decided on it has failed for that.
    pub(super) fn version_to_write(&self) -> Option<(Uid, String)> {
        let version = self.cluster.node_version()?;
        let node = self.node_to_write()?;
        (self.writer.conflicting.as_ref() != Some(version)).then(|| (node, version.clone()))
    }

    /// A write was answered.
    pub(super) fn write_answered(&mut self, write: Write, reply: WriteReply) {
        match reply {
            WriteReply::Written { version } => {
                self.writer = Writer::default();
                self.written(write, version);
            }
            WriteReply::Forbidden { message } => self.write_forbidden(&write, message),
            WriteReply::Rejected { message } => self.write_rejected(&write, message),
            WriteReply::Conflict => match write {
                Write::Cordon { version, .. } | Write::Uncordon { version, .. } => {
                    self.cordon.refuse();
                    self.writer.conflicting = Some(version);
                }
                Write::Save { .. } | Write::Forget => {
                    self.write_failed(&write, String::from("the node has changed meanwhile"));
                }
            },
            WriteReply::NodeGone => self.node_lost(),
            WriteReply::Failed { message } => self.write_failed(&write, message),
        }
    }

    fn written(&mut self, write: Write, version: String) {
        match write {
            Write::Cordon {
                checkpoint, revision, ..
            } => {
                self.checkpoint_state.saved(revision);
                let news = self.cluster.node_written(version, true, Some(*checkpoint));
                self.cordon_written(news);
            }
            Write::Save { checkpoint, revision } => {
                self.checkpoint_state.saved(revision);
                self.ending.written(checkpoint.phase);
                self.cluster.node_saved(version, Some(*checkpoint));
            }
            Write::Uncordon {
                checkpoint, revision, ..
            } => {
                match checkpoint {
                    Some(_) => self.checkpoint_state.saved(revision),
                    None => self.checkpoint_state.set_on_node(false),
                }
                self.cordon.lift();
                self.uncordon = UncordonStep::Lifted { cordon_kept: false };
                let mark = checkpoint.map(|kept| *kept);
                self.cluster.node_written(version, false, mark);
                self.outbox.notify(Notice::Uncordoned);
            }
            Write::Forget => {
                self.checkpoint_state.set_on_node(false);
                self.cluster.node_saved(version, None);
            }
        }
    }

    fn write_failed(&mut self, write: &Write, message: String) {
        if let Write::Cordon { version, .. } = write {
            self.cordon.lose_answer(version.clone());
        }
        self.writer.forbidden_at = None;
        self.write_again(write, message);
    }

    /// A refusal may be over soon; what outlasts the patience never works. The last try is at its very end.
    fn write_forbidden(&mut self, write: &Write, message: String) {
        self.cordon.refuse();
        let forbidden = self.writer.count_refusal(self.now);
        let patience = self.request.settings.forbidden_timeout;
        if forbidden >= patience {
            let what = write.what();
            let message = format!(
                "the API server has refused to {what} for {}: {message}",
                HumanDuration(forbidden)
            );
            self.write_rejected(write, message);
            return;
        }
        self.write_again(write, message);
        let last = self.now + patience.saturating_sub(forbidden);
        self.writer.retry_at = self.writer.retry_at.min(last);
    }

    fn write_again(&mut self, write: &Write, message: String) {
        self.writer.retry_at = Backoff::UNREACHABLE.after(self.now, self.writer.tries, &self.request.id);
        self.writer.tries = self.writer.tries.saturating_add(1);
        self.outbox.notify(Notice::Retrying {
            task: String::from(write.name()),
            message,
        });
    }

    /// It will never work. A drain that cannot save cannot continue; one that is ending ends without it.
    fn write_rejected(&mut self, write: &Write, message: String) {
        self.cordon.refuse();
        if self.outcome.is_some() {
            self.outbox.notify(Notice::Retrying {
                task: String::from(write.name()),
                message,
            });
            self.checkpoint_state.give_up();
        } else {
            self.stop(Outcome::Failed { message });
        }
    }
}
