//! Checks of a policy's surroundings: one call of `check` with the limits of a step, and its answer cut to size.

use scupper_common::text::into_line;
use scupper_engine::Node;

use super::loaded::LoadedPolicy;
use crate::imports::store_data::CallScope;
use crate::runtime::bounds::Bounds;
use crate::runtime::guest::{Guest, answered};
use crate::wit::bindings::exports::scupper::drain::surroundings;
use crate::wit::to_wit::Lists;
use crate::{CallError, Policies};

/// The most findings of one check, as in `wit/`.
const FINDINGS: usize = 32;
/// Bytes of a finding's subject.
const SUBJECT_BYTES: usize = 64;
/// Bytes of a finding's message, and of its fix.
const TEXT_BYTES: usize = 1024;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Everything is in order.
    Ok,
    /// Drains work, but not all of them, or not for long.
    Warning,
    /// No drain can succeed in this state.
    Error,
}

/// One finding about a policy's surroundings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyFinding {
    /// The severity.
    pub severity: Severity,
    /// The checked item, in a word or two.
    pub subject: String,
    /// The result of the check.
    pub message: String,
    /// How to fix it; empty: no action needed.
    pub fix: String,
}

/// The findings of one policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvironmentFindings {
    /// The operator's name for it.
    pub policy: String,
    /// Its findings; a check that itself failed is one error.
    pub findings: Vec<PolicyFinding>,
}

impl Severity {
    /// In one word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl LoadedPolicy {
    /// Runs its check of the surroundings. `None`: it has no check, or takes no part in drains of this node.
    pub async fn check(&self, node: Option<&Node>) -> Option<EnvironmentFindings> {
        if node.is_some_and(|node| !self.info().is_for(node)) {
            return None;
        }
        let findings = match self.guest.check(node).await {
            Ok(findings) => findings?,
            Err(error) => vec![failed(&error)],
        };
        Some(EnvironmentFindings {
            policy: self.description.name.clone(),
            findings,
        })
    }
}

impl Policies {
    /// Runs each policy's check of the surroundings, in chain order. Policies without a check are left out.
    pub async fn check(&self, node: Option<&Node>) -> Vec<EnvironmentFindings> {
        let mut checked = Vec::new();
        for policy in self.clone().into_loaded() {
            checked.extend(policy.check(node).await);
        }
        checked
    }
}

impl Guest {
    /// Runs its check of the surroundings. `None`: it has no check.
    pub(crate) async fn check(&self, node: Option<&Node>) -> Result<Option<Vec<PolicyFinding>>, CallError> {
        let Some(surroundings) = &self.exports.surroundings else {
            return Ok(None);
        };
        let lists = node.map(|node| Lists::of(node, &[], None));
        let bounds = Bounds::new(&self.limits, self.limits.step_cpu, self.limits.step_wall);
        let facts = self.fact_scope(None, &[]);
        let checked = node.map(|node| node.name.clone());
        let work = async {
            let (mut store, instance) = self
                .open(&bounds, None, (CallScope::Servers(checked), facts))
                .await?;
            let surroundings = surroundings.load(&mut store, &instance)?;
            let node = lists.as_ref().map(Lists::node);
            surroundings.call_check(&mut store, node).await
        };
        let found = self.run("check", &bounds, work, answered).await?;
        Ok(Some(found.into_iter().take(FINDINGS).map(finding).collect()))
    }
}

/// A failed check is also a finding: it says nothing about the surroundings, but the policy's steps may fail in the
/// same way.
fn failed(error: &CallError) -> PolicyFinding {
    PolicyFinding {
        severity: Severity::Error,
        subject: "check".to_owned(),
        message: format!("its check of its surroundings failed: {}", error.fault),
        fix: "see the driver's log for what the policy said".to_owned(),
    }
}

fn finding(finding: surroundings::Finding) -> PolicyFinding {
    PolicyFinding {
        severity: match finding.severity {
            surroundings::Severity::Ok => Severity::Ok,
            surroundings::Severity::Warning => Severity::Warning,
            surroundings::Severity::Error => Severity::Error,
        },
        subject: into_line(finding.subject, SUBJECT_BYTES),
        message: into_line(finding.message, TEXT_BYTES),
        fix: into_line(finding.fix, TEXT_BYTES),
    }
}
