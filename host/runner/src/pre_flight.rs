//! Pre-flight arithmetic of a drain: what it reports first, which Deployments it surges, and the refusal of a drain that
//! cannot end, or that leaves data behind.
//!
//! The last two are a planner of the host's own behind all others. It reads namespaces only where budgets hold pods, and
//! volumes only where the settings say so.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::{StreamExt as _, stream};
use scupper_engine::{
    Answer, Budget, Drain, Intent, LocalData, Phase, Plan, PlanAnswer, Pod, PodRef, PolicyInfo, Request,
    Settings, SurgeMethod, SurgeSettings, Time, Uid, Verdict, VolumeClaim,
};
use scupper_pre_flight::{
    Finding, Input, LocalVolumes, NamespaceState, examine, namespaces_if_raised, namespaces_in_doubt, surges,
};

use tokio::time::Instant;

use scupper_cluster::{Cluster, OPTIONAL_READ_PATIENCE as PATIENCE, ReadError, Right, needed_for_certainty};

/// Its name in plans. No policy can have it.
pub const PLANNER: &str = "pre-flight check";

/// After so long the namespaces are read again if the API server did not answer.
const AGAIN: Duration = Duration::from_secs(3);
/// How long a drain that goes on may take to find out what is certain.
const EXAMINED_WITHIN: Duration = Duration::from_secs(5);
/// Namespaces that are read at once.
const AT_ONCE: usize = 4;

/// Since when the API server has been refusing (401, 403) a read that much depends on. Only time between two refusals in a
/// row counts.
#[derive(Clone, Debug, Default)]
pub struct RefusedSince(Arc<Mutex<Option<Instant>>>);

/// The reads of the planner.
#[derive(Clone, Debug, Default)]
pub(crate) struct RefusedReads {
    volumes: RefusedSince,
    namespaces: RefusedSince,
}

impl RefusedSince {
    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A read that failed so may still succeed: without an answer at any time, when refused within the limit.
    pub fn may_pass(&self, error: &ReadError, limit: Duration) -> bool {
        if error.is_forbidden() {
            return self.lock().get_or_insert_with(Instant::now).elapsed() < limit;
        }
        self.end();
        matches!(error, ReadError::Unavailable { .. })
    }

    /// It has succeeded.
    pub fn end(&self) {
        *self.lock() = None;
    }
}

/// What a drain knows before it changes anything.
#[derive(Clone, Debug)]
pub struct PreFlightCheck {
    node: String,
    pods: Vec<Pod>,
    budgets: Vec<Budget>,
    settings: Settings,
    time_left: Option<Duration>,
    volumes: LocalVolumes,
    /// Of a drain that has changed something, nothing is refused any more.
    is_untouched: bool,
    /// No plan has been agreed on in this process: later, Deployments are chosen when their budgets are tried.
    is_planning: bool,
}

/// Adds the planner to the chain, where the settings want it.
#[must_use]
pub fn planned(mut request: Request) -> Request {
    let is_there = request.policies.iter().any(|policy| policy.name == PLANNER);
    let reads_volumes = request.settings.local_data != LocalData::Unread;
    let is_wanted = request.settings.refuse_certain || reads_volumes || request.settings.surge.is_some();
    if is_wanted && request.intent == Intent::Drain && !is_there {
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
    settings: &Settings,
) -> (BTreeMap<String, NamespaceState>, Option<ReadError>) {
    let surge = settings.surge.as_ref();
    let with_autoscalers = surge.is_some_and(|surge| surge.method == SurgeMethod::Scale);
    let reads = names.into_iter().map(async |name| {
        let state = cluster.namespace_state(&name, with_autoscalers).await;
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

/// The same rights in one namespace.
fn in_namespace(rights: &[Right], name: &str) -> Vec<Right> {
    let there = rights.iter().map(|right| Right {
        namespace: name.to_owned(),
        ..right.clone()
    });
    there.collect()
}

/// The namespaces that the user may read so. It asks for its rights first: many installations leave these out, and each
/// refused read would count as one that is missing.
async fn readable(cluster: &Cluster, names: BTreeSet<String>) -> BTreeSet<String> {
    let missing = cluster.missing_rights(needed_for_certainty(), "").await;
    // Without an answer the reads themselves show it.
    let missing = missing.unwrap_or_default();
    if missing.is_empty() {
        return names;
    }
    let missing = &missing;
    let asked = names.into_iter().map(async |name| {
        let lacking = cluster.missing_rights(in_namespace(missing, &name), "").await;
        lacking.unwrap_or_default().is_empty().then_some(name)
    });
    let answers: Vec<_> = stream::iter(asked).buffer_unordered(AT_ONCE).collect().await;
    answers.into_iter().flatten().collect()
}

/// Reads which of these claims only the node can use. What cannot be read is said in the result.
pub async fn read_local_volumes(
    cluster: &Cluster,
    node: &str,
    claims: &BTreeSet<VolumeClaim>,
) -> LocalVolumes {
    match cluster.local_claims(node, claims).await {
        Ok(claims) => LocalVolumes { claims, unread: None },
        Err(error) => unread_volumes(&error),
    }
}

fn unread_volumes(error: &ReadError) -> LocalVolumes {
    LocalVolumes {
        claims: BTreeMap::new(),
        unread: Some(error.to_string()),
    }
}

impl PreFlightCheck {
    /// Of a drain at this moment.
    pub fn of(drain: &Drain, now: Time) -> Self {
        let planned = drain.pods_to_plan();
        let pods = match planned {
            [] => drain.pods().cloned().collect(),
            planned => planned.to_vec(),
        };
        let request = drain.request();
        Self {
            node: request.node.clone(),
            pods,
            budgets: drain.budgets().cloned().collect(),
            settings: request.settings.clone(),
            time_left: request.deadline.map(|deadline| deadline.since(now)),
            volumes: LocalVolumes::default(),
            is_untouched: drain.is_untouched(),
            is_planning: drain.phase() == Phase::Planning,
        }
    }

    /// The same with the budgets of another source.
    #[must_use]
    pub fn with_budgets(self, budgets: &[Budget]) -> Self {
        let budgets = budgets.to_vec();
        Self { budgets, ..self }
    }

    /// The same with what was read of volumes.
    #[must_use]
    pub fn with_volumes(self, volumes: LocalVolumes) -> Self {
        Self { volumes, ..self }
    }

    /// The claims of the pods that are to leave.
    pub fn claims(&self, plan: &Plan) -> BTreeSet<VolumeClaim> {
        self.input(plan, &BTreeMap::new()).claims_of_leaving()
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

    /// The namespaces that decide whether pods are certain to stay.
    pub(crate) fn in_doubt(&self, plan: &Plan) -> BTreeSet<String> {
        namespaces_in_doubt(&self.input(plan, &BTreeMap::new()))
    }

    /// What is found in the plan of a drain that goes on meanwhile, with what is read of these namespaces. Where that is
    /// not known soon, a finding is only likely.
    pub(crate) async fn examined(
        &self,
        cluster: &Cluster,
        plan: &Plan,
        in_doubt: BTreeSet<String>,
    ) -> Vec<Finding> {
        let reading = async {
            let names = readable(cluster, in_doubt).await;
            read_namespaces(cluster, names, &self.settings).await
        };
        let read = tokio::time::timeout(EXAMINED_WITHIN, reading).await;
        let (namespaces, _) = read.unwrap_or_default();
        self.findings(plan, &namespaces)
    }

    fn input<'a>(&'a self, plan: &'a Plan, namespaces: &'a BTreeMap<String, NamespaceState>) -> Input<'a> {
        Input {
            pods: &self.pods,
            plan,
            settings: &self.settings,
            budgets: &self.budgets,
            time_left: self.time_left,
            namespaces,
            volumes: &self.volumes,
        }
    }

    /// Answers for [`PLANNER`] without waiting for rights that are missing.
    pub async fn answer_at_once(self, cluster: &Cluster, draft: Plan) -> PlanAnswer {
        let limit = Duration::ZERO;
        let (answer, _) = self.answer(cluster, draft, &RefusedReads::default(), limit).await;
        answer
    }

    /// Answers for [`PLANNER`], and returns what it read of volumes. A refused read is tried again: within the limit if a
    /// refusal of the drain depends on it, else within [`PATIENCE`].
    pub(crate) async fn answer(
        mut self,
        cluster: &Cluster,
        draft: Plan,
        refusals: &RefusedReads,
        limit: Duration,
    ) -> (PlanAnswer, LocalVolumes) {
        if self.settings.local_data != LocalData::Unread && self.is_untouched {
            let decides = self.settings.local_data == LocalData::Refuse;
            let limit = if decides { limit } else { limit.min(PATIENCE) };
            self.volumes = match cluster.local_claims(&self.node, &self.claims(&draft)).await {
                Ok(claims) => {
                    refusals.volumes.end();
                    LocalVolumes { claims, unread: None }
                }
                Err(error) if refusals.volumes.may_pass(&error, limit) => {
                    return (try_again(&error), self.volumes);
                }
                Err(error) => {
                    tracing::warn!(
                        "pre-flight check: which volumes only the node can use is not known: {error}"
                    );
                    unread_volumes(&error)
                }
            };
        }
        (self.check(cluster, draft, refusals, limit).await, self.volumes)
    }

    /// Adds the Deployments to surge. Pods that are certain to stay all the same, or whose data would, may not leave, so
    /// that the drain does not begin.
    async fn check(
        &self,
        cluster: &Cluster,
        mut draft: Plan,
        refusals: &RefusedReads,
        limit: Duration,
    ) -> PlanAnswer {
        let surge = self.settings.surge.as_ref().filter(|_| self.is_planning);
        if !self.is_untouched && surge.is_none() {
            return PlanAnswer::Plan(draft);
        }
        let refuses = self.settings.refuse_certain && self.is_untouched;
        let (namespaces, unread) = self.read_doubtful(cluster, &draft, refuses, surge).await;
        let limit = limit.min(PATIENCE);
        match unread {
            Some(error) if refusals.namespaces.may_pass(&error, limit) => return try_again(&error),
            Some(error) => {
                tracing::warn!("pre-flight check: what budgets hold cannot be told for certain: {error}");
            }
            None => refusals.namespaces.end(),
        }
        if surge.is_some() {
            draft.surge = surges(&self.input(&draft, &namespaces));
        }
        if !self.is_untouched {
            return PlanAnswer::Plan(draft);
        }
        let mut findings = self.findings(&draft, &namespaces);
        findings.retain(|finding| finding.refuses(&self.settings));
        PlanAnswer::Plan(refused(draft, &findings))
    }
}

impl PreFlightCheck {
    /// Answers which Deployments of pods that their budgets hold are surged.
    pub(crate) async fn choose_surges(self, cluster: &Cluster, plan: &Plan) -> Answer {
        let surge = self.settings.surge.as_ref();
        let (namespaces, unread) = self.read_doubtful(cluster, plan, false, surge).await;
        if let Some(error) = unread {
            let message = error.to_string();
            return Answer::Unavailable { message };
        }
        Answer::Surges(surges(&self.input(plan, &namespaces)))
    }

    /// Reads the namespaces that decide about the plan, and the last reason why one could not be read.
    async fn read_doubtful(
        &self,
        cluster: &Cluster,
        plan: &Plan,
        refuses: bool,
        surge: Option<&SurgeSettings>,
    ) -> (BTreeMap<String, NamespaceState>, Option<ReadError>) {
        let known = BTreeMap::new();
        let input = self.input(plan, &known);
        let decides = |name: &String| refuses || surge.is_some_and(|surge| surge.covers(name));
        let mut doubtful = self.in_doubt(plan);
        doubtful.retain(decides);
        let mut unread = None;
        for name in namespaces_if_raised(&input).into_iter().filter(decides) {
            match cluster.is_any_raised(&name).await {
                Ok(true) => drop(doubtful.insert(name)),
                Ok(false) => {}
                Err(error) => unread = Some(error),
            }
        }
        let (namespaces, error) = read_namespaces(cluster, doubtful, &self.settings).await;
        (namespaces, error.or(unread))
    }
}

fn try_again(error: &ReadError) -> PlanAnswer {
    PlanAnswer::Failed {
        message: error.to_string(),
        retry_after: Some(AGAIN),
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
