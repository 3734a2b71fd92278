//! A policy that plans beside the chain of a drain: which chain it would be part of, and how its planner is called.
//!
//! It must not know what is compared, or who reports a difference.

use std::sync::Arc;

use scupper_engine::{PlanAnswer, PolicyInfo};
use scupper_policy::{CallError, PlanCall};

use super::catalogue::Member;

/// A shadow policy of a drain.
pub struct Shadow {
    member: Arc<Member>,
    chain: Vec<PolicyInfo>,
}

impl Shadow {
    /// The shadows among the policies of a moment.
    pub(super) fn of(members: &[Arc<Member>]) -> Vec<Self> {
        let shadows = members.iter().filter(|member| member.mode().is_shadow());
        let shadow = |member: &Arc<Member>| Self {
            member: Arc::clone(member),
            chain: chain(members, member),
        };
        shadows.map(shadow).collect()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.member.name()
    }

    /// The policy of the chain whose place it would take; `None`: it would come in addition.
    pub fn instead_of(&self) -> Option<&str> {
        self.member.mode().instead_of()
    }

    /// SHA-256 of its component, in hex.
    pub fn digest(&self) -> &str {
        &self.member.revision.digest
    }

    /// The engine's view of it.
    pub fn info(&self) -> PolicyInfo {
        self.member.policy.info()
    }

    /// The chain as it would be if the shadow were promoted, in the engine's view.
    pub fn chain(&self) -> &[PolicyInfo] {
        &self.chain
    }

    /// Calls its planner. A failure is reported, whatever `on-failure` says.
    pub(super) async fn plan(&self, call: PlanCall<'_>) -> PlanAnswer {
        let failed = |error: CallError| PlanAnswer::Failed {
            message: error.to_string(),
            retry_after: None,
        };
        self.member.policy.plan(&call).await.unwrap_or_else(failed)
    }
}

/// The chain of the active policies and this shadow, at its place and without the policy that it stands for.
fn chain(members: &[Arc<Member>], shadow: &Arc<Member>) -> Vec<PolicyInfo> {
    let replaced = shadow.mode().instead_of();
    let stays = |member: &&Arc<Member>| {
        Arc::ptr_eq(member, shadow) || !member.mode().is_shadow() && Some(member.name()) != replaced
    };
    let chain = members.iter().filter(stays);
    chain.map(|member| member.policy.info()).collect()
}
