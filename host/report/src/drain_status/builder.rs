//! Collects the status of a drain from its notices until the status is published.

use std::collections::BTreeMap;

use scupper_engine::{Notice, Phase, PodRef, Reason, Time, Uid};

use super::{
    DrainStatus, ForceStatus, ForcedNames, HookKey, HookStatus, PlanSummary, PodStatus, VolumesStatus,
    WaveStatus,
};

/// The status of one drain, as its notices describe it.
#[derive(Debug, Default)]
pub struct StatusBuilder {
    wave: Option<WaveStatus>,
    waves: BTreeMap<Uid, String>,
    /// The name of the reason why each pod waits, and since when.
    waits: BTreeMap<Uid, (String, Time)>,
    hooks: BTreeMap<HookKey, HookStatus>,
    volumes: Option<VolumesStatus>,
    /// Pods that were deleted shortly before the deadline.
    forced: Vec<PodRef>,
    ended: Option<String>,
    /// `None`: the plan is not requested.
    plan: Option<Option<PlanSummary>>,
}

impl StatusBuilder {
    /// Includes the plan, for a client that follows the drain.
    #[must_use]
    pub fn with_plan(mut self) -> Self {
        self.plan = Some(None);
        self
    }

    /// Takes over how long pods have been waiting, from the status that an earlier process of the same drain published.
    pub fn resume(&mut self, published: &DrainStatus) {
        for pod in &published.pods {
            let name = pod.reason.name();
            let Some(since) = pod.since else { continue };
            let known = self.waits.entry(pod.uid.clone());
            let known = known.or_insert_with(|| (name.to_owned(), since));
            if known.0 == name {
                known.1 = known.1.min(since);
            }
        }
    }

    /// Updates the status from a notice.
    pub fn notice(&mut self, now: Time, notice: &Notice) {
        match notice {
            Notice::Planned(plan) => {
                let waves = plan.waves.iter();
                let named =
                    waves.flat_map(|wave| wave.pods.iter().map(|uid| (uid.clone(), wave.name.clone())));
                self.waves = named.collect();
                if let Some(kept) = &mut self.plan {
                    *kept = Some(PlanSummary::of(plan));
                }
            }
            Notice::WaveStarted { .. } => self.wave = WaveStatus::of(notice),
            Notice::HookWaiting { since, .. } => {
                // Another process, whose clock may be ahead, started this hook.
                let since = (*since).min(now);
                if let Some(hook) = HookStatus::of(notice) {
                    self.hooks.insert(hook.key(), HookStatus { since, ..hook });
                }
            }
            Notice::HookDone {
                policy,
                phase,
                subject,
            } => {
                self.hooks.remove(&(policy.clone(), *phase, subject.clone()));
            }
            Notice::PodWaits { pod, reason } => {
                let known = self.waits.get(&pod.uid);
                if known.is_none_or(|(name, _)| name != reason.name()) {
                    let begun = (reason.name().to_owned(), now);
                    self.waits.insert(pod.uid.clone(), begun);
                }
            }
            Notice::Forced { pod, .. } if !self.forced.contains(pod) => self.forced.push(pod.clone()),
            Notice::PodGone { pod, .. } => {
                self.waits.remove(&pod.uid);
            }
            Notice::AwaitsVolumes { .. } => self.volumes = VolumesStatus::of(notice),
            // A pod has come, and must leave first.
            Notice::VolumesSettled { .. } | Notice::Phase(Phase::Evicting) => self.volumes = None,
            Notice::Finished { outcome, .. } if !outcome.is_success() => {
                self.ended = Some(format!("{}: {outcome}", outcome.name()));
            }
            _ => {}
        }
    }

    /// Builds the status at this moment, with every pod and its reason.
    /// `force`: when pods that still stand are deleted, and which.
    pub fn build(
        &self,
        now: Time,
        drain: &str,
        pods: Vec<(PodRef, Reason)>,
        force: Option<(Time, Vec<PodRef>)>,
    ) -> DrainStatus {
        let (kept, leaving): (Vec<_>, Vec<_>) =
            pods.into_iter().partition(|(_, reason)| *reason == Reason::Kept);
        let pods = leaving.into_iter().map(|(pod, reason)| PodStatus {
            wave: self.waves.get(&pod.uid).cloned().unwrap_or_default(),
            since: self.since(&pod.uid, &reason),
            uid: pod.uid,
            reason,
        });
        DrainStatus {
            drain: drain.to_owned(),
            at: now,
            machine_is_off: false,
            ended: self.ended.clone(),
            plan: self.plan.clone().flatten(),
            wave: self.wave.clone(),
            hooks: self.hooks.values().cloned().collect(),
            volumes: self.volumes.clone(),
            force: self.force_of(force),
            estimate: None,
            pods: pods.collect(),
            more: 0,
            kept: kept.into_iter().map(|(pod, _)| pod.uid).collect(),
        }
    }

    fn force_of(&self, force: Option<(Time, Vec<PodRef>)>) -> Option<ForceStatus> {
        let (begins, ahead) = force?;
        let ahead = ahead.iter().filter(|pod| !self.forced.contains(pod));
        let force = ForceStatus {
            begins,
            ahead: ForcedNames::of(ahead),
            deleted: ForcedNames::of(self.forced.iter()),
        };
        force.says_anything().then_some(force)
    }

    /// The engine reports a reason when it changes. A pod whose last reported reason differs has therefore just
    /// changed.
    fn since(&self, pod: &Uid, reason: &Reason) -> Option<Time> {
        let (name, since) = self.waits.get(pod)?;
        (name == reason.name()).then_some(*since)
    }
}
