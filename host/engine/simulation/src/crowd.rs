//! Drains of other nodes that surge the same Deployments, some of them by requests with the same ids. While one has a
//! Deployment, its budget may look open, and no other drain gets it.

use std::collections::BTreeMap;

use scupper_engine::{DeploymentRef, SurgeMethod, Uid, surge_mark};

use crate::cluster::{Change, Cluster};
use crate::rng::Rng;
use crate::surge::deployment;
use crate::timers::Chore;
use crate::violation::{Checked, broken};
use crate::world::World;

/// When other drains come, and what tells one from another.
pub(crate) fn arrivals(rng: &mut Rng) -> Vec<(u64, Chore)> {
    if !rng.chance(750) {
        return Vec::new();
    }
    let count = rng.between(1, 6);
    let drains = (0..count).map(|_| (rng.span(15_000, 240_000), Chore::OtherDrain(rng.next())));
    drains.collect()
}

impl Cluster {
    /// A drain of another node surges a Deployment that has pods here, unless another one has it.
    pub(crate) fn other_drain(&mut self, now: u64, lot: u64) {
        let pods = self.on_node().filter_map(|truth| deployment(&truth.pod));
        let known: BTreeMap<Uid, DeploymentRef> = pods.map(|it| (it.uid.clone(), it)).collect();
        let mut rng = Rng::new(lot);
        let all: Vec<Uid> = known.into_keys().collect();
        let Some((rollouts, uid)) = self.rollouts.as_mut().zip(rng.pick(&all).cloned()) else {
            return;
        };
        let truth = rollouts.raised.entry(uid.clone()).or_default();
        if truth.stands {
            return;
        }
        let request = format!("request-{}", rng.between(1, 2));
        truth.by = surge_mark("node-2", &Uid::new("n2"), &request);
        truth.stands = true;
        truth.ready = false;
        truth.of_other = true;
        if rollouts.method == SurgeMethod::Scale {
            let after = rng.span(2_000, 120_000);
            self.changes
                .push(Change::Later(now + after, Chore::RaiseReady(uid.clone())));
        }
        let ends = rng.span(400_000, 900_000);
        self.changes
            .push(Change::Later(now + ends, Chore::OtherDrainEnds(uid)));
    }

    /// It takes its replica back, or its rollout is over.
    pub(crate) fn other_drain_ends(&mut self, now: u64, uid: &Uid) {
        let raised = self.rollouts.as_mut().and_then(|it| it.raised.get_mut(uid));
        let Some(truth) = raised.filter(|truth| truth.stands && truth.of_other) else {
            return;
        };
        truth.stands = false;
        if std::mem::take(&mut truth.ready) {
            self.add_elsewhere(now, uid, -1);
        }
    }
}

impl World {
    /// Invariant 5.
    pub(crate) fn keeps_to_its_own(&self) -> Checked {
        match self.cluster.rollouts.as_ref().is_some_and(|it| it.is_mistaken) {
            true => broken(5, "a drain of another node is taken for this one"),
            false => Ok(()),
        }
    }
}
