//! What is kept of a drain's notices until somebody wants to see it.

use std::collections::BTreeMap;

use scupper_engine::{HookPhase, Notice, PodRef, Reason, Subject, Time, Uid};

use super::{DriverView, HookView, PlanView, PodView, WaveView};

/// Remembers what notices say of one drain.
#[derive(Debug, Default)]
pub struct ViewKeeper {
    wave: Option<WaveView>,
    waves: BTreeMap<Uid, String>,
    hooks: BTreeMap<(String, HookPhase, Subject), HookView>,
    ended: Option<String>,
    /// `None`: nobody wants it.
    plan: Option<Option<PlanView>>,
}

impl ViewKeeper {
    /// With the plan, because somebody follows it.
    #[must_use]
    pub fn and_plan(mut self) -> Self {
        self.plan = Some(None);
        self
    }

    /// Something happened.
    pub fn notice(&mut self, now: Time, notice: &Notice) {
        match notice {
            Notice::Planned(plan) => {
                let waves = plan.waves.iter();
                let named =
                    waves.flat_map(|wave| wave.pods.iter().map(|uid| (uid.clone(), wave.name.clone())));
                self.waves = named.collect();
                if let Some(kept) = &mut self.plan {
                    *kept = Some(PlanView::of(plan));
                }
            }
            Notice::WaveStarted { name, number, of, .. } => {
                self.wave = Some(WaveView {
                    name: name.clone(),
                    number: *number,
                    of: *of,
                });
            }
            Notice::HookWaiting {
                policy,
                phase,
                subject,
                progress,
                waiting_for,
            } => {
                let key = (policy.clone(), *phase, subject.clone());
                let since = self.hooks.get(&key).map_or(now, |known| known.since);
                let hook = HookView {
                    policy: policy.clone(),
                    phase: *phase,
                    subject: subject.clone(),
                    since,
                    progress: progress.clone(),
                    waiting_for: waiting_for.clone(),
                };
                self.hooks.insert(key, hook);
            }
            Notice::HookDone {
                policy,
                phase,
                subject,
            } => {
                self.hooks.remove(&(policy.clone(), *phase, subject.clone()));
            }
            Notice::Finished { outcome, .. } if !outcome.is_success() => {
                self.ended = Some(format!("{}: {outcome}", outcome.name()));
            }
            _ => {}
        }
    }

    /// All that is known now, with every pod and why it is there.
    pub fn view(&self, now: Time, drain: &str, pods: Vec<(PodRef, Reason)>) -> DriverView {
        let leaving = pods.into_iter().filter(|(_, reason)| *reason != Reason::Kept);
        let pods = leaving.map(|(pod, reason)| PodView {
            wave: self.waves.get(&pod.uid).cloned().unwrap_or_default(),
            uid: pod.uid,
            reason,
        });
        DriverView {
            drain: drain.to_owned(),
            at: now,
            ended: self.ended.clone(),
            plan: self.plan.clone().flatten(),
            wave: self.wave.clone(),
            hooks: self.hooks.values().cloned().collect(),
            pods: pods.collect(),
            more: 0,
        }
    }
}
