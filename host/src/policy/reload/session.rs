//! The policies as one drain sees them: their list never changes, their code may.

use std::sync::{Arc, Mutex, PoisonError};

use scupper_engine::{Plan, PlanAnswer, PolicyInfo, StepOutcome, Time};

use super::catalogue::{Catalogue, Member};
use super::edition::Edition;
use crate::policy::loaded::{Loaded, no_hooks, no_planner};
use crate::policy::{PlanCall, Policies, StepCall};

/// One drain's policies. Each call runs wholly on one edition; the next one may run on a newer edition, if that reads
/// the state of the one before and still does what the engine was promised at the drain's beginning.
pub struct Session {
    catalogue: Option<Arc<Catalogue>>,
    pins: Mutex<Vec<Arc<Member>>>,
    promised: Vec<PolicyInfo>,
}

impl Session {
    pub(super) fn new(catalogue: Arc<Catalogue>) -> Self {
        let members = catalogue.active().members.clone();
        Self::of(Some(catalogue), members)
    }

    /// Policies that are never swapped.
    pub fn fixed(policies: Policies) -> Self {
        let member = |policy: Arc<Loaded>| {
            Arc::new(Member {
                edition: Edition {
                    digest: policy.description.digest.clone(),
                    settings: String::new(),
                },
                policy,
                generation: 0,
                since: Time::default(),
            })
        };
        Self::of(None, policies.into_loaded().into_iter().map(member).collect())
    }

    fn of(catalogue: Option<Arc<Catalogue>>, members: Vec<Arc<Member>>) -> Self {
        Self {
            catalogue,
            promised: members.iter().map(|member| member.policy.info()).collect(),
            pins: Mutex::new(members),
        }
    }

    /// What the engine must know of them, in chain order. It stays so for the whole drain.
    pub fn infos(&self) -> Vec<PolicyInfo> {
        self.promised.clone()
    }

    /// Asks a policy's planner. Whatever the policy does, there is an answer within its wall time.
    pub async fn plan(&self, call: PlanCall<'_>) -> PlanAnswer {
        let Some(member) = self.take(call.policy) else {
            return no_planner(call.policy);
        };
        member.policy.plan(&call).await.unwrap_or_else(|error| {
            self.failed(&member, &error);
            member.policy.failed_plan(&error, call.draft)
        })
    }

    /// What the engine hears when a policy's plan does not hold, which is a failure like any other.
    pub fn unsound(&self, policy: &str, message: String, draft: &Plan) -> PlanAnswer {
        let pins = self.pins.lock().unwrap_or_else(PoisonError::into_inner);
        match pins.iter().find(|pin| pin.name() == policy) {
            Some(pin) => pin.policy.unsound(message, draft),
            None => no_planner(policy),
        }
    }

    /// Takes one step of a policy's hook. Whatever the policy does, there is an outcome within its wall time.
    pub async fn step(&self, call: StepCall<'_>) -> StepOutcome {
        let Some(member) = self.take(&call.step.policy) else {
            return no_hooks(&call.step.policy);
        };
        member.policy.step(&call).await.unwrap_or_else(|error| {
            self.failed(&member, &error);
            member.policy.failed_step(&error)
        })
    }

    /// The edition for the next call: the active one where it fits, or else the one that this drain has.
    fn take(&self, name: &str) -> Option<Arc<Member>> {
        let mut pins = self.pins.lock().unwrap_or_else(PoisonError::into_inner);
        let pin = pins.iter_mut().find(|pin| pin.name() == name)?;
        let promised = self.promised.iter().find(|info| info.name == name)?;
        let active = self.catalogue.as_ref().map(|catalogue| catalogue.active());
        let newer = active.as_ref().and_then(|active| active.member(name));
        if let Some(newer) = newer
            && !Arc::ptr_eq(newer, pin)
            && follows(&newer.policy, &pin.policy, promised)
        {
            *pin = Arc::clone(newer);
        }
        Some(Arc::clone(pin))
    }

    fn failed(&self, member: &Arc<Member>, error: &crate::policy::CallError) {
        if let Some(catalogue) = &self.catalogue {
            catalogue.failed(member, error);
        }
    }
}

/// Whether an edition can go on where another one was.
fn follows(newer: &Loaded, older: &Loaded, promised: &PolicyInfo) -> bool {
    let has = newer.info();
    newer.description.state_version == older.description.state_version
        && (has.planner || !promised.planner)
        && promised.phases.iter().all(|phase| has.phases.contains(phase))
}
