//! The surges of Deployments in the summary of a plan: which a drain makes, and which it cannot make.

use scupper_engine::{NotSurged, PodRef, Surge, SurgeMethod, SurgePlan};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::wire::short;
use crate::messages::{count, one_line};

/// Number of pods in the summary, and in a line.
const PODS: usize = 6;
const NAMED: usize = 3;

/// The surges of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SurgeSummary {
    /// Their replicas are raised; otherwise they are restarted.
    #[serde(default, skip_serializing_if = "is_false")]
    pub raises: bool,
    /// The Deployments.
    pub restarts: Vec<Restart>,
    /// Workloads that it cannot surge.
    pub impossible: Vec<ImpossibleRestart>,
}

/// A Deployment that the drain surges.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restart {
    /// `namespace/name`
    pub deployment: String,
    /// How many pods it has; `None`: unknown.
    pub replicas: Option<u32>,
    /// The budget that allows no eviction.
    pub budget: String,
    /// `namespace/name` of the first pods on the node.
    pub pods: Vec<String>,
    /// Number of further pods.
    pub more: u32,
}

/// A workload that the drain cannot surge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImpossibleRestart {
    /// Its kind; empty: unknown.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The budget that allows no eviction.
    pub budget: String,
    /// `namespace/name` of the first pods on the node.
    pub pods: Vec<String>,
    /// Number of further pods.
    pub more: u32,
    /// Why it cannot.
    pub reason: String,
}

impl SurgeSummary {
    /// Summarizes the surges of a plan.
    pub fn of(plan: &SurgePlan) -> Self {
        Self {
            raises: plan.method == SurgeMethod::Scale,
            restarts: plan.surges.iter().map(Restart::of).collect(),
            impossible: plan.impossible.iter().map(ImpossibleRestart::of).collect(),
        }
    }

    /// Nothing is surged, and nothing would have to be.
    pub const fn is_empty(&self) -> bool {
        self.restarts.is_empty() && self.impossible.is_empty()
    }

    /// One line for each.
    pub fn texts(&self) -> Vec<String> {
        let restarts = self.restarts.iter().map(|restart| match self.raises {
            true => restart.raise_text(),
            false => restart.text(),
        });
        let impossible = self.impossible.iter().map(|not| not.text(self.raises));
        restarts.chain(impossible).collect()
    }

    /// As JSON; `None`: there is nothing to say.
    pub(crate) fn to_json(&self) -> Option<Value> {
        let restarts = self.restarts.iter().map(|restart| {
            json!({
                "deployment": restart.deployment, "replicas": restart.replicas, "budget": restart.budget,
                "pods": restart.pods, "more": restart.more,
            })
        });
        let impossible = self.impossible.iter().map(|not| {
            let kind = Some(&not.kind).filter(|kind| !kind.is_empty());
            json!({
                "kind": kind, "name": not.name, "budget": not.budget, "pods": not.pods, "more": not.more,
                "reason": not.reason,
            })
        });
        let (surges, impossible): (Vec<_>, Vec<_>) = (restarts.collect(), impossible.collect());
        let all = match self.raises {
            true => json!({"restarts": [], "raises": surges, "impossible": impossible}),
            false => json!({"restarts": surges, "impossible": impossible}),
        };
        (!self.is_empty()).then_some(all)
    }

    /// The first ones, with short texts, for the annotation.
    pub(super) fn shortened(&self, groups: usize) -> Self {
        let all = |texts: &[String]| texts.iter().map(|text| short(text)).collect();
        let restarts = self.restarts.iter().take(groups).map(|restart| Restart {
            deployment: short(&restart.deployment),
            budget: short(&restart.budget),
            pods: all(&restart.pods),
            ..*restart
        });
        let impossible = self.impossible.iter().take(groups).map(|not| ImpossibleRestart {
            kind: short(&not.kind),
            name: short(&not.name),
            budget: short(&not.budget),
            pods: all(&not.pods),
            reason: short(&not.reason),
            ..*not
        });
        Self {
            raises: self.raises,
            restarts: restarts.collect(),
            impossible: impossible.collect(),
        }
    }
}

impl Restart {
    fn of(surge: &Surge) -> Self {
        let (pods, more) = first_names(&surge.pods);
        Self {
            deployment: format!("{}/{}", surge.deployment.namespace, surge.deployment.name),
            replicas: surge.replicas,
            budget: surge.budget.clone(),
            pods,
            more,
        }
    }

    fn raise_text(&self) -> String {
        let replicas = self
            .replicas
            .map(|replicas| format!(", {replicas} -> {},", replicas.saturating_add(1)));
        one_line(&format!(
            "Deployment {} gets one replica more{} until {} {} gone (budget {})",
            self.deployment,
            replicas.unwrap_or_default(),
            names(&self.pods, self.more),
            if self.pods.len() == 1 { "is" } else { "are" },
            self.budget,
        ))
    }

    fn text(&self) -> String {
        let all = self.replicas.map(|replicas| {
            let pods = count(replicas as usize, "pod");
            format!("; the rollout replaces all of its {pods}")
        });
        one_line(&format!(
            "Deployment {} is restarted to replace {} (budget {}){}",
            self.deployment,
            names(&self.pods, self.more),
            self.budget,
            all.filter(|_| self.replicas != Some(1)).unwrap_or_default()
        ))
    }
}

impl ImpossibleRestart {
    fn of(not: &NotSurged) -> Self {
        let (pods, more) = first_names(&not.pods);
        Self {
            kind: not.kind.clone(),
            name: not.name.clone(),
            budget: not.budget.clone(),
            pods,
            more,
            reason: not.reason.clone(),
        }
    }

    fn text(&self, raises: bool) -> String {
        let pods = names(&self.pods, self.more);
        let Self {
            kind,
            name,
            budget,
            reason,
            ..
        } = self;
        one_line(&match kind.as_str() {
            "" => format!("cannot replace {pods} (budget {budget}): {reason}"),
            kind => {
                let what = if raises {
                    "raise the replicas of"
                } else {
                    "restart"
                };
                format!("cannot {what} {kind} {name}, which has {pods} (budget {budget}): {reason}")
            }
        })
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// The names of the first pods, and the number of the others.
fn first_names(pods: &[PodRef]) -> (Vec<String>, u32) {
    let more = pods.len().saturating_sub(PODS);
    let first = pods.iter().take(PODS).map(PodRef::to_string);
    (first.collect(), u32::try_from(more).unwrap_or(u32::MAX))
}

fn names(pods: &[String], more: u32) -> String {
    let named: Vec<_> = pods.iter().take(NAMED).map(String::as_str).collect();
    let named = named.join(", ");
    match pods.len().saturating_sub(NAMED) + more as usize {
        0 => named,
        more => format!("{named} and {}", count(more, "more pod")),
    }
}
