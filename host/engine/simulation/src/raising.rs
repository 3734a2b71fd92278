//! Deployments whose replicas a drain raises by one and takes back: how the host does it, and what a drain may ask.
//!
//! Invariant 8: what was raised is taken back, once, whatever happens in between.

use std::collections::BTreeMap;

use scupper_engine::{
    Answer, Checkpoint, CommandId, DeploymentRef, HookPhase, Request, Subject, SurgeMethod, Task, Uid,
    Verdict, surge_mark, whole_millis,
};

use crate::cluster::{Change, Cluster, NODE};
use crate::invariants::Invariants;
use crate::scenario::Mood;
use crate::server::Done;
use crate::surge::deployment;
use crate::timers::Chore;
use crate::violation::{Checked, broken};
use crate::world::World;

/// A Deployment as a drain has left it.
#[derive(Debug, Default)]
pub(crate) struct RaisedTruth {
    /// The last drain that has written it.
    pub(crate) by: String,
    /// It has one replica more than its owner wants; of another drain, also that its rollout is under way.
    pub(crate) stands: bool,
    /// Its pod is ready.
    pub(crate) ready: bool,
    /// The drain is that of another node.
    pub(crate) of_other: bool,
}

/// A failure of a write of a Deployment, and whether it happens all the same.
fn failure(lot: u64, wild: bool) -> (Option<Answer>, bool) {
    let message = String::from("scripted");
    match lot {
        0 => (Some(Answer::WriteConflict), false),
        1 if wild => (Some(Answer::Rejected { message }), false),
        3 => (Some(Answer::Unavailable { message }), false),
        4 => (Some(Answer::Unavailable { message }), true),
        _ => (None, true),
    }
}

impl World {
    /// The host raises a Deployment.
    pub(crate) fn raise(&mut self, deployment: &DeploymentRef, drain: &str) -> Done {
        self.write_deployment(deployment, |cluster, now, uid| cluster.raise(now, uid, drain))
    }

    /// The host takes it back.
    pub(crate) fn take_back(&mut self, deployment: &DeploymentRef, drain: &str) -> Done {
        self.write_deployment(deployment, |cluster, now, uid| cluster.take_back(now, uid, drain))
    }

    pub(crate) fn write_deployment(
        &mut self,
        deployment: &DeploymentRef,
        write: impl FnOnce(&mut Cluster, u64, &Uid) -> Answer,
    ) -> Done {
        let message = String::from("scripted");
        let forbidden = self.is_forbidden();
        let wild = self.scenario.mood == Mood::Wild;
        let Some(rollouts) = &mut self.cluster.rollouts else {
            return Done::now(Answer::Rejected { message });
        };
        if forbidden {
            return Done::now(Answer::Forbidden { message });
        }
        let lot = self.rng.below(20);
        // The Deployment is gone.
        if lot == 2 && wild {
            rollouts.raised.remove(&deployment.uid);
            return Done::now(Answer::NodeGone);
        }
        let (failed, happens) = failure(lot, wild);
        let answer = happens.then(|| write(&mut self.cluster, self.now, &deployment.uid));
        Done::now(failed.or(answer).unwrap_or(Answer::Rejected { message }))
    }

    /// Invariant 8.
    pub(crate) fn raises_are_back(&self) -> Checked {
        let Some(rollouts) = &self.cluster.rollouts else {
            return Ok(());
        };
        // Nothing names them any more after a crash.
        let is_mark_lost = self.wiped
            || self
                .cluster
                .node
                .as_ref()
                .is_none_or(|node| node.uid.as_str() != "n1");
        let own = surge_mark(NODE, &Uid::new("n1"), &self.request.id);
        for (uid, truth) in &rollouts.raised {
            let is_reported = self.invariants.surges.left.contains(uid);
            if truth.stands && truth.by == own && !is_reported && !is_mark_lost {
                return broken(8, format!("{uid} stays raised"));
            }
        }
        Ok(())
    }
}

impl Cluster {
    fn raise(&mut self, now: u64, uid: &Uid, drain: &str) -> Answer {
        let message = String::from("scripted");
        let Some(rollouts) = &mut self.rollouts else {
            return Answer::Rejected { message };
        };
        let after = rollouts.ready_after();
        let truth = rollouts.raised.entry(uid.clone()).or_default();
        let version = String::new();
        rollouts.is_mistaken |= truth.by == drain && truth.of_other;
        if truth.by == drain {
            return match truth.stands {
                true => Answer::Written { version },
                false => Answer::Rejected { message },
            };
        }
        if truth.stands {
            return Answer::Busy { message };
        }
        *truth = RaisedTruth {
            by: drain.to_owned(),
            stands: true,
            ready: false,
            of_other: false,
        };
        if let Some(after) = after {
            let chore = Chore::RaiseReady(uid.clone());
            self.changes.push(Change::Later(now + after, chore));
        }
        Answer::Written { version }
    }

    fn take_back(&mut self, now: u64, uid: &Uid, drain: &str) -> Answer {
        let message = String::from("scripted");
        let Some(rollouts) = &mut self.rollouts else {
            return Answer::Rejected { message };
        };
        let truth = rollouts.raised.entry(uid.clone()).or_default();
        rollouts.is_mistaken |= truth.by == drain && truth.of_other;
        if truth.by == drain || !truth.stands {
            // A raise that arrives later finds that the drain has written it.
            drain.clone_into(&mut truth.by);
            truth.of_other = false;
            truth.stands = false;
            if std::mem::take(&mut truth.ready) {
                self.add_elsewhere(now, uid, -1);
            }
        }
        Answer::Written {
            version: String::new(),
        }
    }

    /// The extra replica's pod is ready.
    pub(crate) fn raise_ready(&mut self, now: u64, uid: &Uid) {
        let raised = self.rollouts.as_mut().and_then(|it| it.raised.get_mut(uid));
        if let Some(truth) = raised.filter(|truth| truth.stands && !truth.ready) {
            truth.ready = true;
            self.add_elsewhere(now, uid, 1);
        }
    }

    pub(crate) fn add_elsewhere(&mut self, now: u64, uid: &Uid, more: i32) {
        let pods = self.pods.values().map(|truth| &truth.pod);
        let pods = pods.chain(self.gone.values().map(|(pod, _)| pod));
        let pods: Vec<_> = pods
            .filter(|pod| deployment(pod).is_some_and(|it| it.uid == *uid))
            .cloned()
            .collect();
        let mut changed = Vec::new();
        for (name, truth) in &mut self.budgets {
            if pods.iter().any(|pod| truth.budget.selects(pod)) {
                truth.elsewhere += more;
                changed.push(name.clone());
            }
        }
        for name in changed {
            self.sync(now, &name);
        }
    }
}

impl Invariants {
    /// The pods for which this process, or one before it, has raised a Deployment.
    pub(crate) fn restore_raised(&mut self, checkpoint: Option<&Checkpoint>) {
        let raised = checkpoint.into_iter().flat_map(|checkpoint| &checkpoint.raised);
        let raised = raised.map(|raised| (raised.deployment.uid.clone(), raised.pods.clone()));
        self.surges.restored = raised.collect();
    }

    fn one_write_at_a_time(deployment: &DeploymentRef, outstanding: &BTreeMap<CommandId, Task>) -> Checked {
        let is_same = |task: &Task| {
            matches!(task, Task::Surge { deployment: other, .. } | Task::TakeBack { deployment: other, .. }
                if other == deployment)
        };
        match outstanding.values().any(is_same) {
            true => broken(8, format!("{deployment} is written twice at once")),
            false => Ok(()),
        }
    }

    /// A write of a Deployment.
    pub(crate) fn deployment_write(
        &mut self,
        now: u64,
        task: &Task,
        request: &Request,
        truth: &Cluster,
        outstanding: &BTreeMap<CommandId, Task>,
    ) -> Checked {
        match task {
            Task::Surge {
                deployment,
                method: SurgeMethod::Restart,
                ..
            } => self.surge(now, deployment, request, outstanding),
            Task::Surge { deployment, .. } => self.raise(now, deployment, request, truth, outstanding),
            Task::TakeBack { deployment, drain } => {
                self.take_back(now, deployment, drain, request, outstanding)
            }
            _ => Ok(()),
        }
    }

    /// A raise is for pods that are there, and the node's checkpoint names it.
    fn raise(
        &mut self,
        now: u64,
        deployment: &DeploymentRef,
        request: &Request,
        truth: &Cluster,
        outstanding: &BTreeMap<CommandId, Task>,
    ) -> Checked {
        Self::one_write_at_a_time(deployment, outstanding)?;
        if self.surges.over.contains(&deployment.uid) {
            return broken(8, format!("{deployment} is raised twice"));
        }
        let Some(pods) = self.surges.planned.get(&deployment.uid) else {
            return broken(1, format!("{deployment} is raised, which the plan does not say"));
        };
        self.all_done(request, HookPhase::BeforeDrain, &Subject::Node)?;
        self.removal_is_timely(now, &deployment.uid)?;
        let waits = |uid: &Uid| {
            self.knowledge.there.contains_key(uid)
                && !self.knowledge.deleting.contains(uid)
                && self.plans.verdicts.get(uid) == Some(&Verdict::Evict)
        };
        if !pods.iter().any(|pod| waits(&pod.uid)) {
            return broken(1, format!("{deployment} is raised for no pod"));
        }
        let mark = truth.node.as_ref().and_then(|node| node.checkpoint.as_ref());
        let names = |mark: &Checkpoint| mark.raised.iter().any(|raised| raised.deployment == *deployment);
        match mark.filter(|mark| mark.id == request.id && !names(mark)) {
            Some(_) => broken(8, format!("{deployment} is raised, which no checkpoint names")),
            None => {
                self.surges.open.insert(deployment.uid.clone());
                Ok(())
            }
        }
    }

    /// A replica is taken back when it is no longer needed.
    fn take_back(
        &mut self,
        now: u64,
        deployment: &DeploymentRef,
        drain: &str,
        request: &Request,
        outstanding: &BTreeMap<CommandId, Task>,
    ) -> Checked {
        Self::one_write_at_a_time(deployment, outstanding)?;
        let uid = &deployment.uid;
        self.surges.tried.insert(uid.clone());
        let planned = self.surges.planned.get(uid).into_iter().flatten();
        let restored = self.surges.restored.get(uid).into_iter().flatten();
        let mut pods = planned.map(|pod| &pod.uid).chain(restored).peekable();
        let node = self.knowledge.node_uid.as_ref();
        let is_foreign = node.is_none_or(|uid| drain != surge_mark(NODE, uid, &request.id));
        if pods.peek().is_none() && !is_foreign {
            return broken(8, format!("{deployment} is taken back, which was not raised"));
        }
        let surge = request.settings.surge.as_ref();
        let timeout = surge.map_or(u64::MAX, |surge| whole_millis(surge.timeout));
        let is_old = self.surges.restored.contains_key(uid) && now >= self.since.saturating_add(timeout);
        if self.surges.ends || is_foreign || is_old || self.surges.given_up.contains(uid) {
            return Ok(());
        }
        match pods.find(|pod| self.knowledge.there.contains_key(*pod)) {
            Some(pod) => broken(8, format!("{deployment} is taken back while {pod} is there")),
            None => Ok(()),
        }
    }
}
