//! Plans of several nodes, side by side.

use std::panic::resume_unwind;
use std::sync::Arc;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use scupper_api::LifecycleTransition;
use scupper_engine::{EvictAnswer, Intent, PodRef, Request, Settings, Verdict};
use tokio_util::task::AbortOnDropHandle;

use super::target::{Drains, drains};
use super::{HandedOver, PlanOptions, Planned, PlannedTrigger, dry_run};
use crate::handover::{offered, offered_for};
use crate::{CommandError, HandOverError};
use scupper_cluster::Cluster;
use scupper_common::clock::Clock;
use scupper_driver::load_policies;
use scupper_policy::{EnvironmentFindings, Policies, Severity};
use scupper_policy_reload::Session;

/// So many plans are made at once.
const AT_ONCE: usize = 4;

/// What the plans of several nodes have in common.
struct Planner {
    cluster: Cluster,
    policies: Policies,
    session: Session,
    options: PlanOptions,
    template: Request,
    handed_over: Option<Offered>,
    asked_by: PlannedTrigger,
}

/// What drivers offer, and the settings of the drains that are handed over to them.
struct Offered {
    transitions: Vec<LifecycleTransition>,
    settings: Settings,
}

pub(super) async fn plans(cluster: &Cluster, options: PlanOptions) -> Result<Vec<Planned>, CommandError> {
    let Drains {
        nodes,
        template,
        served,
    } = drains(cluster, &options).await?;
    let asked_by = PlannedTrigger::of(&template, served.as_ref(), options.as_driver);
    let loaded = load_policies(
        &options.policies,
        options.compiler.clone(),
        options.clock,
        cluster,
        served,
    )
    .await?;
    let policies = loaded.policies;
    let handed_over = handed_over(cluster, &options).await?;
    options.progress.begin("planned", nodes.len());
    let planner = Arc::new(Planner {
        cluster: cluster.clone(),
        session: Session::fixed(policies.clone()),
        policies,
        options,
        template,
        handed_over,
        asked_by,
    });
    let (at_once, progress) = (planner.at_once(), planner.options.progress.clone());
    let running = stream::iter(nodes).map(|node| {
        let planner = Arc::clone(&planner);
        AbortOnDropHandle::new(tokio::spawn(async move { planner.plan(node).await }))
    });
    running
        .buffered(at_once)
        .map(|ended| ended.unwrap_or_else(|panic| resume_unwind(panic.into_panic())))
        .inspect_ok(|_| progress.step())
        .try_collect()
        .await
}

/// As `scupper drain` finds out whether a driver is there.
async fn handed_over(cluster: &Cluster, options: &PlanOptions) -> Result<Option<Offered>, CommandError> {
    let Some(HandedOver { driver, settings }) = &options.handed_over else {
        return Ok(None);
    };
    let offered = match offered(cluster.clone(), driver, Intent::Drain).await {
        Ok(offered) => offered,
        // Without the right to see it, this account drains with --local.
        Err(HandOverError::Discover { source, .. }) if source.is_forbidden() => {
            tracing::warn!(
                "whether a driver would drain is not known, so this is what --local would do: {source}"
            );
            None
        }
        Err(error) => return Err(error.into()),
    };
    Ok(offered.map(|(_, transitions)| Offered {
        transitions,
        settings: settings.clone(),
    }))
}

impl Planner {
    /// Evictions that are only asked about are asked about one after another.
    const fn at_once(&self) -> usize {
        if self.options.ask_server { 1 } else { AT_ONCE }
    }

    async fn plan(&self, node: String) -> Result<Planned, CommandError> {
        let (cluster, options) = (&self.cluster, &self.options);
        let now = options.clock.now();
        let of_driver = self.handed_over.as_ref();
        let of_driver = of_driver.filter(|it| offered_for(&it.transitions, &node).is_some());
        let settings = of_driver.map_or(&self.template.settings, |it| &it.settings);
        let request = Request {
            node,
            deadline: options.settings.time_limit.map(|timeout| now + timeout),
            settings: settings.clone(),
            policies: self.session.infos(),
            ..self.template.clone()
        };
        let by = (&self.session, options.is_examined);
        let asked_by = PlannedTrigger {
            is_handed_over: of_driver.is_some(),
            ..self.asked_by.clone()
        };
        let mut planned = dry_run(cluster, by, options.clock, request.clone(), &asked_by).await?;
        planned.with_flags = with_flags(cluster, by, options.clock, request, &planned).await?;
        if options.is_examined {
            planned.environment = environment_of(&self.policies, &planned).await;
        }
        if options.ask_server {
            planned.answers = ask(cluster, &planned, options.settings.engine.grace_seconds).await;
        }
        Ok(planned)
    }
}

/// What the policies of a plan find wrong with what they depend on, as for the doctor.
async fn environment_of(policies: &Policies, planned: &Planned) -> Vec<EnvironmentFindings> {
    let Some((_, node)) = planned.drain.as_ref().filter(|_| planned.result.is_ok()) else {
        return Vec::new();
    };
    let mut found = policies.check(Some(node)).await;
    for policy in &mut found {
        policy.findings.retain(|finding| finding.severity != Severity::Ok);
    }
    found.retain(|policy| !policy.findings.is_empty());
    found
}

/// The plan with the flags that are missing. A pod may need several, and names one at a time.
async fn with_flags(
    cluster: &Cluster,
    by: (&Session, bool),
    clock: Clock,
    mut request: Request,
    planned: &Planned,
) -> Result<Option<(Vec<&'static str>, Box<Planned>)>, CommandError> {
    let mut all = Vec::new();
    let mut missing = planned.missing_flags();
    let mut last = None;
    while let Some((flags, filters)) = missing {
        all.extend(flags);
        request.settings.filters = filters;
        let next = dry_run(cluster, by, clock, request.clone(), &planned.asked_by).await?;
        missing = next.missing_flags();
        last = Some(next);
    }
    Ok(last.map(|last| (all, Box::new(last))))
}

/// Tries each eviction and deletion as a server-side dry run, one after another: together they would share a budget.
async fn ask(cluster: &Cluster, planned: &Planned, grace: Option<u64>) -> Option<Vec<(PodRef, EvictAnswer)>> {
    let plan = planned.result.as_ref().ok()?;
    let mut answers = Vec::new();
    for pod in &planned.pods {
        let decision = plan.decision(&pod.id.uid);
        let answer = match decision.map(|decision| decision.verdict) {
            Some(Verdict::Evict) => cluster.would_evict(&pod.id, grace).await,
            Some(Verdict::Delete) => cluster.would_delete(&pod.id, grace).await,
            _ => continue,
        };
        answers.push((pod.id.clone(), answer));
    }
    answers.sort_by(|(one, _), (other, _)| one.cmp(other));
    Some(answers)
}
