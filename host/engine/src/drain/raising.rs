//! Deployments whose replicas the drain raises by one, until their pods have left the node. The replica is taken back
//! then, when the surge is given up, and however the drain ends.
//!
//! The checkpoint names a Deployment before its raise is asked for, so that another process takes it back. What is done
//! twice for that reason, the cluster edge recognizes.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::Drain;
use super::backoff::Backoff;
use super::outbox::Job;
use super::replies::WriteReply;
use super::surge::{Stage, surging};
use crate::{Notice, Phase, Raised, Reason, Surge, SurgeMethod, SurgeStep, Task, Time, Uid};

/// What remains for the last write of the node once take-backs are no longer waited for.
const LAST_WRITE: Duration = Duration::from_secs(5);

/// The Deployments to take back.
#[derive(Debug, Default)]
pub(super) struct Raises {
    open: BTreeMap<Uid, Raise>,
    /// Those of which this process has asked for the take-back: a drain raises a Deployment once.
    over: BTreeSet<Uid>,
}

#[derive(Debug)]
struct Raise {
    raised: Raised,
    /// The change of the checkpoint that names it.
    revision: u64,
    /// When this process planned it, or found it in a checkpoint.
    since: Time,
    state: State,
    retry_at: Time,
    tries: u32,
    /// Why the last take-back failed.
    problem: Option<String>,
    /// It was reported as left.
    is_left: bool,
}

/// What is known of the raise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It was not asked for.
    Planned,
    /// It was asked for, and was not answered yet, or was refused.
    Asked,
    /// It may have happened: an answer was lost.
    Possible,
    /// It has happened, or an earlier process may have reported it.
    Reported,
}

impl Raise {
    const fn new(raised: Raised, revision: u64, since: Time, state: State) -> Self {
        Self {
            raised,
            revision,
            since,
            state,
            retry_at: since,
            tries: 0,
            problem: None,
            is_left: false,
        }
    }
}

impl Raises {
    /// As an earlier process left them.
    pub(super) fn restored(raised: Vec<Raised>, now: Time) -> Self {
        let raises = raised.into_iter().map(|raised| {
            let uid = raised.deployment.uid.clone();
            (uid, Raise::new(raised, 0, now, State::Reported))
        });
        Self {
            open: raises.collect(),
            over: BTreeSet::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// This drain's raise of the Deployment is over.
    pub(super) fn is_over(&self, deployment: &Uid) -> bool {
        self.over.contains(deployment)
    }

    /// For the checkpoint.
    pub(super) fn saved(&self) -> Vec<Raised> {
        self.open.values().map(|raise| raise.raised.clone()).collect()
    }

    /// One has not been taken back.
    pub(super) fn any_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// The raise was asked for.
    pub(super) fn asked(&mut self, deployment: &Uid) {
        if let Some(raise) = self.open.get_mut(deployment)
            && raise.state == State::Planned
        {
            raise.state = State::Asked;
        }
    }

    /// The request for it did not go out.
    pub(super) fn withdrawn(&mut self, deployment: &Uid) {
        if let Some(raise) = self.open.get_mut(deployment)
            && raise.state == State::Asked
        {
            raise.state = State::Planned;
        }
    }

    /// The raise was answered.
    pub(super) fn answered(&mut self, deployment: &Uid, reply: &WriteReply) {
        let Some(raise) = self.open.get_mut(deployment) else {
            return;
        };
        raise.state = match (reply, raise.state) {
            (WriteReply::Written { .. }, _) => State::Reported,
            (WriteReply::Failed { .. }, State::Asked) => State::Possible,
            (_, state) => state,
        };
    }
}

impl Drain {
    /// Raises the Deployment of a pod that its budget holds, if that is planned and its time has come.
    pub(super) fn raise(&mut self, pod: &Uid) {
        let Some(surge) = self.surges.to_raise(pod, self.now) else {
            return;
        };
        if self.is_raise_saved(&surge) {
            self.raises.asked(&surge.deployment.uid);
            self.ask_for_surge(&surge.deployment);
        }
    }

    /// The checkpoint on the node names it, so that it is taken back whatever happens.
    fn is_raise_saved(&mut self, surge: &Surge) -> bool {
        let uid = &surge.deployment.uid;
        if let Some(raise) = self.raises.open.get(uid) {
            // That of an earlier drain is taken back first.
            let is_own = self.is_own(raise);
            return is_own && self.checkpoint_state.is_saved(raise.revision);
        }
        self.plan_raise(surge);
        false
    }

    fn plan_raise(&mut self, surge: &Surge) {
        let raised = Raised {
            deployment: surge.deployment.clone(),
            drain: self.surge_mark(),
            pods: surge.pods.iter().map(|pod| pod.uid.clone()).collect(),
        };
        let revision = self.checkpoint_state.change();
        let raise = Raise::new(raised, revision, self.now, State::Planned);
        self.raises.open.insert(surge.deployment.uid.clone(), raise);
    }

    /// The pods of the new plan for which an earlier process has raised Deployments already.
    pub(super) fn extend_raises(&mut self, surges: &[Surge]) {
        let own = self.surge_mark();
        for surge in surges {
            let Some(raise) = self.raises.open.get_mut(&surge.deployment.uid) else {
                continue;
            };
            let pods = surge.pods.iter().map(|pod| &pod.uid);
            let known = &raise.raised.pods;
            let more: Vec<Uid> = pods.filter(|uid| !known.contains(uid)).cloned().collect();
            if !more.is_empty() && raise.raised.drain == own {
                raise.raised.pods.extend(more);
                raise.revision = self.checkpoint_state.change();
            }
        }
    }

    /// The Deployment that was raised for this pod.
    pub(super) fn raised_for(&self, pod: &Uid) -> Option<Reason> {
        let mut raises = self.raises.open.values();
        let raise = raises.find(|raise| raise.raised.pods.contains(pod))?;
        Some(surging(&raise.raised.deployment, SurgeMethod::Scale))
    }

    /// Takes back what is no longer needed.
    pub(super) fn take_raises_back(&mut self) {
        if (self.paused && self.outcome.is_none()) || self.phase.is_last() {
            return;
        }
        let unneeded = self.raises.open.iter().filter(|(uid, raise)| {
            self.now >= raise.retry_at && !self.outbox.writes_deployment(uid) && self.is_unneeded(uid, raise)
        });
        let unneeded: Vec<(Uid, Raised, State)> = unneeded
            .map(|(uid, raise)| (uid.clone(), raise.raised.clone(), raise.state))
            .collect();
        for (
            uid,
            Raised {
                deployment, drain, ..
            },
            state,
        ) in unneeded
        {
            if state == State::Planned {
                self.forget_raise(&uid);
            } else {
                if drain == self.surge_mark() {
                    self.raises.over.insert(uid.clone());
                }
                let task = Task::TakeBack { deployment, drain };
                self.outbox.push(task, Job::TakeBack(uid));
            }
        }
    }

    fn is_unneeded(&self, deployment: &Uid, raise: &Raise) -> bool {
        self.outcome.is_some()
            || !self.is_own(raise)
            || self.cluster.are_gone(&raise.raised.pods) && !self.may_need(raise)
            || match self.surges.stage(deployment) {
                Some(stage) => stage == Stage::GivenUp,
                // An earlier process raised it.
                None => {
                    self.now >= raise.since + self.surge_timeout() && self.is_any_waiting(&raise.raised.pods)
                }
            }
    }

    fn is_own(&self, raise: &Raise) -> bool {
        raise.raised.drain == self.surge_mark()
    }

    /// The plan may name other pods of its Deployment: a process that continues a drain plans for pods that came back
    /// meanwhile.
    fn may_need(&self, raise: &Raise) -> bool {
        self.phase == Phase::Planning && self.now < raise.since + self.surge_timeout()
    }

    /// One of these pods has not begun to leave.
    fn is_any_waiting(&self, pods: &BTreeSet<Uid>) -> bool {
        let mut there = pods.iter().filter_map(|uid| self.cluster.pod(uid));
        there.any(|pod| pod.deletion.is_none())
    }

    /// A raise that has certainly not happened needs no take-back.
    pub(super) fn raise_refused(&mut self, deployment: &Uid) {
        let raise = self.raises.open.get(deployment);
        if raise.is_some_and(|raise| raise.state == State::Asked) {
            self.forget_raise(deployment);
        }
    }

    fn forget_raise(&mut self, deployment: &Uid) {
        if self.raises.open.remove(deployment).is_some() {
            self.checkpoint_state.change();
        }
    }

    /// Takes the API server's answer to a take-back.
    pub(super) fn take_back_answered(&mut self, deployment: &Uid, reply: WriteReply) {
        let Some(raise) = self.raises.open.get_mut(deployment) else {
            return;
        };
        let message = match reply {
            WriteReply::Written { .. } => {
                let step = SurgeStep::TakenBack;
                let is_known = raise.state == State::Reported;
                return self.end_raise(deployment, is_known.then_some(step));
            }
            WriteReply::NodeGone => return self.end_raise(deployment, None),
            WriteReply::Rejected { message } => {
                return self.end_raise(deployment, Some(SurgeStep::LeftRaised { message }));
            }
            WriteReply::Conflict => String::from("the Deployment has changed meanwhile"),
            WriteReply::Forbidden { message } | WriteReply::Failed { message } => message,
        };
        raise.problem = Some(message.clone());
        raise.retry_at = Backoff::UNREACHABLE.after(self.now, raise.tries, deployment.as_str());
        raise.tries = raise.tries.saturating_add(1);
        let task = String::from("take-back");
        self.outbox.notify(Notice::Retrying { task, message });
    }

    fn end_raise(&mut self, deployment: &Uid, step: Option<SurgeStep>) {
        let raise = self.raises.open.get(deployment);
        if let Some((raise, step)) = raise.zip(step) {
            let deployment = raise.raised.deployment.clone();
            self.outbox.notify(Notice::Surge { deployment, step });
        }
        self.forget_raise(deployment);
    }

    /// The last write of the node waits for them: it may remove the checkpoint that names them.
    pub(super) fn awaits_take_backs(&self, closing: Time) -> bool {
        !self.raises.open.is_empty() && self.now < self.take_backs_end(closing)
    }

    fn take_backs_end(&self, closing: Time) -> Time {
        self.writes_end(closing) - LAST_WRITE
    }

    /// Reports what could not be taken back in time.
    pub(super) fn leave_raises(&mut self) {
        for raise in self.raises.open.values_mut().filter(|raise| !raise.is_left) {
            raise.is_left = true;
            let message = raise.problem.clone();
            let message = message.unwrap_or_else(|| String::from("the API server has not answered"));
            let deployment = raise.raised.deployment.clone();
            let step = SurgeStep::LeftRaised { message };
            self.outbox.notify(Notice::Surge { deployment, step });
        }
    }

    /// When raises must be looked at.
    pub(super) fn raises_due(&self) -> impl Iterator<Item = Time> {
        let is_empty = self.raises.open.is_empty();
        let closing = self.ending.closing().filter(|_| !is_empty);
        let end = closing.map(|closing| self.take_backs_end(closing));
        let timeout = self.surge_timeout();
        let raises = self.raises.open.values();
        raises
            .flat_map(move |raise| [raise.retry_at, raise.since + timeout])
            .chain(end)
    }
}
