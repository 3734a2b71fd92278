//! The policies as one drain sees them: their list never changes, their code may.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use scupper_engine::{HookPhase, HookStep, Plan, PlanAnswer, PolicyInfo, StepOutcome, Time};
use scupper_policy::{LoadedPolicy, PlanCall, Policies, StepCall, no_hooks, no_planner};

use super::catalogue::{Catalogue, Member};
use super::notice::ReloadNotice;
use super::revision::Revision;
use super::shadow::Shadow;

/// One drain's policies. Each call runs entirely on one revision; the next call may use a newer revision, if that one
/// reads the state of its predecessor and still has the planner and hooks that the engine knows from the drain's start. A drain
/// always leaves a revision that was rolled back; its replacement does not receive state that it cannot read.
pub struct Session {
    catalogue: Option<Arc<Catalogue>>,
    pins: Mutex<Vec<Arc<Member>>>,
    promised: Vec<PolicyInfo>,
    /// They stay the same for the whole drain.
    shadows: Vec<Shadow>,
    /// The hooks whose restart was reported: by policy, phase, and the version of their state.
    begun_again: Mutex<BTreeSet<(String, HookPhase, u32)>>,
}

impl Session {
    pub(super) fn new(catalogue: Arc<Catalogue>) -> Self {
        let members = catalogue.active().members.clone();
        Self::of(Some(catalogue), members)
    }

    /// Policies that are never swapped.
    pub fn fixed(policies: Policies) -> Self {
        let member = |policy: Arc<LoadedPolicy>| {
            let revision = Revision {
                digest: policy.description.digest.clone(),
                settings: String::new(),
            };
            Arc::new(Member::new(policy, revision, 0, Time::default()))
        };
        Self::of(None, policies.into_loaded().into_iter().map(member).collect())
    }

    pub(super) fn of(catalogue: Option<Arc<Catalogue>>, members: Vec<Arc<Member>>) -> Self {
        let shadows = Shadow::of(&members);
        let active = members.into_iter().filter(|member| !member.mode().is_shadow());
        let active: Vec<_> = active.collect();
        Self {
            catalogue,
            promised: active.iter().map(|member| member.policy.info()).collect(),
            shadows,
            pins: Mutex::new(active),
            begun_again: Mutex::default(),
        }
    }

    /// The engine's view of them, in chain order. It stays the same for the whole drain.
    pub fn infos(&self) -> Vec<PolicyInfo> {
        self.promised.clone()
    }

    /// The policies that would plan if they were active, in the order of the configuration. Not those that have become
    /// shadows since the drain began.
    pub fn shadows(&self) -> &[Shadow] {
        &self.shadows
    }

    /// Calls the planner of a policy or a shadow beside the drain: a failure of it counts for no rollback.
    pub async fn plan_beside(&self, call: PlanCall<'_>) -> PlanAnswer {
        if let Some(shadow) = self.shadows.iter().find(|shadow| shadow.name() == call.policy) {
            return shadow.plan(call).await;
        }
        match self.pin(call.policy) {
            Some(pin) => {
                let answer = pin.policy.plan(&call).await;
                answer.unwrap_or_else(|error| pin.policy.failed_plan(&error, call.draft))
            }
            None => no_planner(call.policy),
        }
    }

    /// Their names, with the SHA-256 of the component and of the settings that they have now, in hex.
    pub fn revisions(&self) -> Vec<(String, [String; 2])> {
        let pins = self.pins.lock().unwrap_or_else(PoisonError::into_inner);
        let revision = |pin: &Arc<Member>| [pin.revision.digest.clone(), pin.revision.settings.clone()];
        pins.iter()
            .map(|pin| (pin.name().to_owned(), revision(pin)))
            .collect()
    }

    /// Calls a policy's planner. Whatever the policy does, this returns an answer within its wall-clock limit.
    pub async fn plan(&self, call: PlanCall<'_>) -> PlanAnswer {
        let Some(member) = self.take(call.policy) else {
            return no_planner(call.policy);
        };
        if self.misses_promise(&member, |info| info.planner) {
            return PlanAnswer::Plan(call.draft.clone());
        }
        member.policy.plan(&call).await.unwrap_or_else(|error| {
            self.failed(&member, &error);
            member.policy.failed_plan(&error, call.draft)
        })
    }

    /// The answer to the engine when a policy's plan is invalid; that counts as a failure of the policy.
    pub fn unsound(&self, policy: &str, message: String, draft: &Plan) -> PlanAnswer {
        if let Some(catalogue) = &self.catalogue
            && let Some(pin) = self.pin(policy)
        {
            catalogue.fault(&pin, format!("make-plan: {message}"));
        }
        self.unsound_beside(policy, message, draft)
    }

    /// The same beside the drain: it counts for no rollback.
    pub fn unsound_beside(&self, policy: &str, message: String, draft: &Plan) -> PlanAnswer {
        match self.pin(policy) {
            Some(pin) => pin.policy.unsound(message, draft),
            None => no_planner(policy),
        }
    }

    /// The revision that this drain has.
    fn pin(&self, policy: &str) -> Option<Arc<Member>> {
        let pins = self.pins.lock().unwrap_or_else(PoisonError::into_inner);
        pins.iter().find(|pin| pin.name() == policy).cloned()
    }

    /// Takes one step of a policy's hook, whose state has this version; `None`: there is no state. Whatever the policy
    /// does, this returns an outcome within its wall-clock limit, and the version of the new state.
    pub async fn step(&self, call: StepCall<'_>, wrote: Option<u32>) -> (StepOutcome, Option<u32>) {
        let Some(member) = self.take(&call.step.policy) else {
            return (no_hooks(&call.step.policy), None);
        };
        let reads = Some(member.reads());
        if self.misses_promise(&member, |info| info.phases.contains(&call.step.phase)) {
            return (StepOutcome::Done, reads);
        }
        let outcome = match wrote.filter(|wrote| *wrote != member.reads()) {
            None => member.policy.step(&call).await,
            Some(wrote) => {
                self.notify_hook_restarted(&member, call.step.phase, wrote);
                let step = HookStep {
                    state: Vec::new(),
                    ..call.step.clone()
                };
                member.policy.step(&StepCall { step: &step, ..call }).await
            }
        };
        let outcome = outcome.unwrap_or_else(|error| {
            self.failed(&member, &error);
            member.policy.failed_step(&error)
        });
        (outcome, reads)
    }

    /// The version of hook state that a policy currently reads and writes.
    pub fn state_version(&self, policy: &str) -> Option<u32> {
        self.take(policy).map(|member| member.reads())
    }

    /// The revision for the next call: the active one where it fits, or else the one that this drain has. A shadow never
    /// fits, because no drain follows it.
    fn take(&self, name: &str) -> Option<Arc<Member>> {
        let mut pins = self.pins.lock().unwrap_or_else(PoisonError::into_inner);
        let pin = pins.iter_mut().find(|pin| pin.name() == name)?;
        let promised = self.promised.iter().find(|info| info.name == name)?;
        let active = self.catalogue.as_ref().map(|catalogue| catalogue.active());
        let newer = active.as_ref().and_then(|active| active.member(name));
        let newer = newer.filter(|newer| !newer.mode().is_shadow());
        if let Some(newer) = newer
            && !Arc::ptr_eq(newer, pin)
            && (pin.is_withdrawn() || follows(&newer.policy, &pin.policy, promised))
        {
            *pin = Arc::clone(newer);
        }
        Some(Arc::clone(pin))
    }

    /// After a rollback the new revision may lack a planner or hook that the engine expects. That is then skipped, as
    /// in a drain that began with this revision.
    fn misses_promise(&self, member: &Member, does: impl Fn(&PolicyInfo) -> bool) -> bool {
        let promised = self.promised.iter().find(|info| info.name == member.name());
        promised.is_some_and(&does) && !does(&member.policy.info())
    }

    /// Once for all hooks of a phase: there may be one for each pod.
    fn notify_hook_restarted(&self, member: &Member, phase: HookPhase, wrote: u32) {
        let hooks = (member.name().to_owned(), phase, wrote);
        let mut reported = self.begun_again.lock().unwrap_or_else(PoisonError::into_inner);
        if reported.insert(hooks)
            && let Some(catalogue) = &self.catalogue
        {
            catalogue.notify(ReloadNotice::HookRestarted {
                name: member.name().to_owned(),
                digest: member.revision.digest.clone(),
                phase,
                wrote,
                reads: member.reads(),
            });
        }
    }

    fn failed(&self, member: &Arc<Member>, error: &scupper_policy::CallError) {
        if let Some(catalogue) = &self.catalogue {
            catalogue.failed(member, error);
        }
    }
}

/// Whether a revision can continue after another one.
fn follows(newer: &LoadedPolicy, older: &LoadedPolicy, promised: &PolicyInfo) -> bool {
    let has = newer.info();
    newer.description.state_version == older.description.state_version
        && (has.planner || !promised.planner)
        && promised.phases.iter().all(|phase| has.phases.contains(phase))
}
