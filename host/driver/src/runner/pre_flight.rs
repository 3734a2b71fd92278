//! Pre-flight arithmetic of a drain: what it reports first, and the refusal of a drain that cannot end.
//!
//! The refusal is a planner of the host's own behind all others. It reads namespaces only where budgets hold pods.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::{StreamExt as _, stream};
use scupper_engine::pre_flight::{Certainty, Finding, Input, NamespaceState, examine, namespaces_in_doubt};
use scupper_engine::{
    Budget, Drain, Intent, Plan, PlanAnswer, Pod, PodRef, PolicyInfo, Request, Settings, Time, Uid, Verdict,
};

use scupper_cluster::{Cluster, ReadError};

/// Its name in plans. No policy can have it.
pub const PLANNER: &str = "pre-flight check";

/// After so long the namespaces are read again if the API server did not answer.
const AGAIN: Duration = Duration::from_secs(3);
/// Namespaces that are read at once.
const AT_ONCE: usize = 4;

/// What a drain knows before it changes anything.
#[derive(Clone, Debug)]
pub struct PreFlight {
    pods: Vec<Pod>,
    budgets: Vec<Budget>,
    settings: Settings,
    time_left: Option<Duration>,
    /// Of a drain that has changed something, nothing is refused any more.
    is_untouched: bool,
}

/// Adds the planner to the chain, where the settings want it.
#[must_use]
pub fn planned(mut request: Request) -> Request {
    let is_there = request.policies.iter().any(|policy| policy.name == PLANNER);
    if request.settings.refuse_certain && request.intent == Intent::Drain && !is_there {
        request.policies.push(PolicyInfo {
            name: PLANNER.to_owned(),
            planner: true,
            ..PolicyInfo::default()
        });
    }
    request
}

/// Reads these namespaces. Those that cannot be read are left out, and the last reason is returned.
pub async fn read_namespaces(
    cluster: &Cluster,
    names: impl IntoIterator<Item = String>,
) -> (BTreeMap<String, NamespaceState>, Option<ReadError>) {
    let reads = names.into_iter().map(async |name| {
        let state = cluster.namespace_state(&name).await;
        (name, state)
    });
    let read: Vec<_> = stream::iter(reads).buffer_unordered(AT_ONCE).collect().await;
    let (mut states, mut unread) = (BTreeMap::new(), None);
    for (name, state) in read {
        match state {
            Ok(state) => drop(states.insert(name, state)),
            Err(error) => unread = Some(error),
        }
    }
    (states, unread)
}

impl PreFlight {
    /// Of a drain at this moment.
    pub fn of(drain: &Drain, now: Time) -> Self {
        let planned = drain.pods_to_plan();
        let pods = match planned {
            [] => drain.pods().cloned().collect(),
            planned => planned.to_vec(),
        };
        let request = drain.request();
        Self {
            pods,
            budgets: drain.budgets().cloned().collect(),
            settings: request.settings.clone(),
            time_left: request.deadline.map(|deadline| deadline.since(now)),
            is_untouched: drain.is_untouched(),
        }
    }

    /// The same with the budgets of another source.
    #[must_use]
    pub fn with_budgets(self, budgets: &[Budget]) -> Self {
        let budgets = budgets.to_vec();
        Self { budgets, ..self }
    }

    /// The namespaces of the pods that are to leave.
    pub fn namespaces(&self, plan: &Plan) -> BTreeSet<String> {
        let leaves = |pod: &&Pod| {
            let decision = plan.decision(&pod.id.uid);
            decision.is_some_and(|decision| decision.verdict.leaves())
        };
        let leaving = self.pods.iter().filter(leaves);
        leaving.map(|pod| pod.id.namespace.clone()).collect()
    }

    /// What is found in the plan, with what is known of these namespaces.
    pub fn findings(&self, plan: &Plan, namespaces: &BTreeMap<String, NamespaceState>) -> Vec<Finding> {
        examine(&self.input(plan, namespaces))
    }

    fn input<'a>(&'a self, plan: &'a Plan, namespaces: &'a BTreeMap<String, NamespaceState>) -> Input<'a> {
        Input {
            pods: &self.pods,
            plan,
            settings: &self.settings,
            budgets: &self.budgets,
            time_left: self.time_left,
            namespaces,
        }
    }

    /// Answers for [`PLANNER`]: pods that are certain to stay may not leave, so that the drain does not begin.
    pub async fn refuse(&self, cluster: &Cluster, draft: Plan) -> PlanAnswer {
        let doubtful = match self.is_untouched {
            true => namespaces_in_doubt(&self.input(&draft, &BTreeMap::new())),
            false => return PlanAnswer::Plan(draft),
        };
        let (namespaces, unread) = read_namespaces(cluster, doubtful).await;
        match unread {
            Some(error @ ReadError::Unavailable { .. }) => {
                return PlanAnswer::Failed {
                    message: error.to_string(),
                    retry_after: Some(AGAIN),
                };
            }
            Some(error) => {
                tracing::warn!("pre-flight check: what budgets hold cannot be told for certain: {error}");
            }
            None => {}
        }
        let mut findings = self.findings(&draft, &namespaces);
        findings.retain(|finding| finding.certainty == Certainty::Certain);
        PlanAnswer::Plan(refused(draft, &findings))
    }
}

/// The plan with the pods of these findings refused.
fn refused(mut plan: Plan, findings: &[Finding]) -> Plan {
    let reason = |finding: &Finding| match finding.change.as_str() {
        "" => finding.reason.clone(),
        change => format!("{}; change: {change}", finding.reason),
    };
    let held = findings.iter().flat_map(|finding| {
        finding
            .pods
            .iter()
            .map(move |PodRef { uid, .. }| (uid, reason(finding)))
    });
    let held: BTreeMap<&Uid, String> = held.collect();
    for decision in &mut plan.decisions {
        if let Some(reason) = held.get(&decision.pod) {
            decision.verdict = Verdict::Refuse;
            decision.reason.clone_from(reason);
        }
    }
    for wave in &mut plan.waves {
        wave.pods.retain(|uid| !held.contains_key(uid));
    }
    plan
}
