//! One policy on one snapshot: its plan, the steps of its hooks, and their cost.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use scupper_cluster_model::PodTimes;
use scupper_engine::{
    HookPhase, HookStep, Intent, Outcome, Plan, Pod, PolicyInfo, Request, Settings, StepOutcome, Subject,
    Time, Uid, Wave,
};
use thiserror::Error;

use super::cluster_access::SharedCluster;
use super::comparison::Unknown;
use super::memory_cluster::MemoryCluster;
use super::offline::{OfflineRuntime, PolicyLoadError};
use super::recorded_policies::RecordedPolicies;
use super::runner::{HookAnswer, ScenarioRunner, Until};
use super::scenario::BEGINNING;
use super::snapshot::Snapshot;
use scupper::{Planned, PlannedTrigger};
use scupper_policy::{LoadFault, Policies, PolicyUsage};
use scupper_policy_reload::Session;
use scupper_policy_spec::{FailurePolicy, OnFailure, PolicySpec};
use scupper_recording::DrainHistory;

/// The longest simulated time of a drain.
const AT_MOST: Duration = Duration::from_secs(24 * 3600);

/// A policy on a snapshot.
pub(crate) struct DryRun {
    policies: Policies,
    policy: String,
    runner: ScenarioRunner,
    start: Time,
}

/// What asks for a drain.
#[derive(Clone, Debug)]
pub(crate) struct Asker {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) trigger: String,
}

/// The drain to play.
#[derive(Debug, Default)]
pub(super) struct PlayedDrain {
    /// `None`: a command, or the DrainRequests of the cluster.
    pub(super) asker: Option<Asker>,
    pub(super) settings: Settings,
    /// How much time it has; `None`: as much as it needs.
    pub(super) limit: Option<Duration>,
    /// Its policies in order; empty: those that are loaded.
    pub(super) chain: Vec<PolicyInfo>,
    /// Those that are not loaded.
    pub(super) recorded: RecordedPolicies,
}

/// One step of a hook.
#[derive(Clone, Debug)]
pub(crate) struct Stepped {
    /// Its time, since the first step.
    pub at: Duration,
    /// Its answer.
    pub outcome: StepOutcome,
}

/// The cost of calls.
#[derive(Clone, Debug)]
pub(crate) struct Figures {
    /// The function.
    pub function: &'static str,
    /// Of a step.
    pub phase: Option<HookPhase>,
    /// The number of calls.
    pub calls: usize,
    /// The median.
    pub median: Duration,
    /// The longest.
    pub worst: Duration,
}

/// Why a driver would not make such a call of a hook.
#[derive(Debug, Error)]
pub(crate) enum SubjectError {
    /// The policy does not want it.
    #[error("policy {policy} has no {phase} hook; it has {phases}")]
    Phase {
        /// The policy.
        policy: String,
        /// The phase.
        phase: HookPhase,
        /// Those that it has.
        phases: String,
    },
    /// The phase has other subjects.
    #[error("{phase} is called for the node; leave out --of {of}")]
    Node {
        /// The phase.
        phase: HookPhase,
        /// What was named.
        of: String,
    },
    /// There is no such wave.
    #[error("{phase} is called for a wave; the plan has {waves}: name one with --of")]
    Wave {
        /// The phase.
        phase: HookPhase,
        /// Those of the plan.
        waves: String,
    },
    /// There is no such pod.
    #[error("{phase} is called for a pod that leaves; those of the plan are {pods}: name one with --of")]
    Pod {
        /// The phase.
        phase: HookPhase,
        /// Those of the plan.
        pods: String,
    },
}

impl DryRun {
    /// Sets it up. The cluster is in memory, and no request leaves the machine, so all requested capabilities are
    /// granted, except secrets, of which there are none.
    pub(crate) async fn begin(
        workbench: &OfflineRuntime,
        spec: PolicySpec,
        snapshot: Snapshot,
        settings: Settings,
    ) -> Result<Self, PolicyLoadError> {
        let mut cluster = MemoryCluster::new(BEGINNING, snapshot.node);
        for pod in snapshot.pods {
            cluster.model.add_pod(pod, PodTimes::ends_after(None));
        }
        for budget in snapshot.budgets {
            cluster.model.set_budget(budget);
        }
        (cluster.facts, cluster.elsewhere) = (snapshot.facts, snapshot.elsewhere);
        let drain = PlayedDrain {
            settings,
            ..PlayedDrain::default()
        };
        Self::on(workbench, vec![asking_author(spec)], cluster, drain).await
    }

    /// On this cluster.
    pub(super) async fn on(
        workbench: &OfflineRuntime,
        mut specs: Vec<PolicySpec>,
        cluster: MemoryCluster,
        drain: PlayedDrain,
    ) -> Result<Self, PolicyLoadError> {
        let start = cluster.model.now;
        let node = cluster.model.node.name.clone();
        let asker = drain.asker.unwrap_or_else(|| Asker {
            id: "uid-of-maintenance".to_owned(),
            name: "maintenance".to_owned(),
            trigger: cluster.trigger_or("command"),
        });
        let cluster = SharedCluster::new(cluster);
        let policies = load_granted(workbench, &mut specs, &cluster).await?;
        let mut chain = drain.chain;
        let infos = policies.infos();
        for place in &mut chain {
            if let Some(info) = infos.iter().find(|info| info.name == place.name) {
                place.clone_from(info);
            }
        }
        let request = Request {
            id: asker.id,
            name: asker.name,
            trigger: asker.trigger,
            intent: Intent::Drain,
            node,
            deadline: drain.limit.map(|limit| start + limit),
            settings: drain.settings,
            policies: if chain.is_empty() { infos } else { chain },
        };
        let mut runner = ScenarioRunner::begin(cluster, Session::fixed(policies.clone()), request);
        runner.recorded = drain.recorded;
        Ok(Self {
            runner,
            policies,
            policy: specs
                .into_iter()
                .next()
                .map_or_else(String::new, |spec| spec.name),
            start,
        })
    }

    /// Its plan.
    pub(crate) async fn plan(&mut self) -> Planned {
        let _stop = self.runner.go(&Until::Planned, self.start + AT_MOST).await;
        let (node, pods, budgets) = {
            let cluster = self.runner.cluster.lock();
            let pods = cluster.model.pods().cloned().collect();
            (
                cluster.model.node.name.clone(),
                pods,
                cluster.model.budgets().to_vec(),
            )
        };
        let result = match (&self.runner.plan, &self.runner.outcome) {
            (Some(plan), _) => Ok(plan.clone()),
            (None, Some(outcome)) => Err(outcome.clone()),
            (None, None) => Err(Outcome::Failed {
                message: "the engine came to no plan".to_owned(),
            }),
        };
        Planned {
            at: self.runner.now(),
            deadline: None,
            node,
            asked_by: PlannedTrigger::default(),
            pods,
            result,
            settings: Settings::default(),
            continues: None,
            budgets: Some(budgets),
            // A snapshot has no limits of budgets, and no pods of other nodes.
            findings: Vec::new(),
            environment: Vec::new(),
            not_ready: None,
            answers: None,
            shadows: Vec::new(),
            with_flags: None,
            drain: None,
        }
    }

    /// The whole drain as printed lines, and its outcome. It has a day, without interventions.
    pub(crate) async fn drain(&mut self) -> (&[String], Option<&Outcome>) {
        let _stop = self.runner.go(&Until::Ended, self.start + AT_MOST).await;
        (&self.runner.story, self.runner.outcome.as_ref())
    }

    /// Its plan, once there is one.
    pub(super) const fn planned(&self) -> Option<&Plan> {
        self.runner.plan.as_ref()
    }

    /// How the drain has ended.
    pub(super) const fn outcome(&self) -> Option<&Outcome> {
        self.runner.outcome.as_ref()
    }

    /// What its pods waited for.
    pub(super) fn history(&mut self) -> DrainHistory {
        self.runner.history()
    }

    /// The pods that it has asked to leave.
    pub(super) fn asked_to_leave(&self) -> BTreeSet<Uid> {
        let cluster = self.runner.cluster.lock();
        let leaving = cluster.model.pods().filter(|pod| pod.deletion.is_some());
        let asked = leaving.map(|pod| &pod.id).chain(cluster.model.gone());
        asked.map(|pod| pod.uid.clone()).collect()
    }

    /// What policies that are not loaded were asked and no recording has.
    pub(super) const fn unknown_answers(&self) -> &BTreeSet<Unknown> {
        &self.runner.recorded.unknown
    }

    /// How long it has run.
    pub(super) fn took(&self) -> Duration {
        self.runner.took()
    }

    /// The answers of its hooks so far.
    pub(super) fn hook_answers(&self) -> &[HookAnswer] {
        &self.runner.answers
    }

    /// What it asked for and the cluster in memory cannot know: facts, and servers.
    pub(super) fn asked_in_vain(&self) -> BTreeSet<String> {
        let mut asked = self.runner.cluster.lock().asked.clone();
        let sent = self.runner.answers.iter().flat_map(|answer| &answer.sent);
        asked.extend(sent.map(|request| format!("the answer to {request}")));
        asked
    }

    /// Takes steps of one hook until it has finished, up to this number.
    pub(crate) async fn steps(&mut self, phase: HookPhase, subject: &Subject, most: usize) -> Vec<Stepped> {
        let mut taken = Vec::new();
        let planned = self.plan().await.result;
        let leaving = planned.map(|plan| plan.leaving_for(phase, subject).cloned().collect());
        let mut step = HookStep {
            policy: self.policy.clone(),
            phase,
            subject: subject.clone(),
            state: Vec::new(),
            leaving: leaving.unwrap_or_default(),
        };
        while taken.len() < most {
            let at = self.runner.now().since(self.start);
            let outcome = self.runner.step(&step).await;
            let again = match &outcome {
                StepOutcome::Done => None,
                StepOutcome::Pending {
                    state, again_after, ..
                } => {
                    step.state.clone_from(state);
                    Some(*again_after)
                }
                StepOutcome::Failed { retry_after, .. } => *retry_after,
            };
            taken.push(Stepped { at, outcome });
            match again {
                Some(span) => self.runner.wait(span),
                None => break,
            }
        }
        taken
    }

    /// Whom a driver would call this hook for: the node, or the wave or the pod that `of` names, by default the first one
    /// of the plan.
    pub(crate) async fn subject(
        &mut self,
        phase: HookPhase,
        of: Option<&str>,
    ) -> Result<Subject, SubjectError> {
        let phases = self.phases();
        if !phases.contains(&phase) {
            return Err(SubjectError::Phase {
                policy: self.policy.clone(),
                phase,
                phases: listed(phases.iter().map(ToString::to_string)),
            });
        }
        let plan = self.plan().await.result.unwrap_or_default();
        match phase {
            HookPhase::BeforeWave => {
                let named = |wave: &&Wave| of.is_none_or(|of| wave.name == of);
                let wave = plan.waves.iter().find(named);
                let waves = || listed(plan.waves.iter().map(|wave| wave.name.clone()));
                wave.map(|wave| Subject::Wave(wave.name.clone()))
                    .ok_or_else(|| SubjectError::Wave {
                        phase,
                        waves: waves(),
                    })
            }
            HookPhase::BeforeEvict => {
                let name = |uid: &Uid| self.runner.cluster.lock().model.name_of(uid);
                let leaving = || plan.waves.iter().flat_map(|wave| &wave.pods);
                let pod = leaving().find(|uid| of.is_none_or(|of| name(uid) == of));
                pod.cloned().map(Subject::Pod).ok_or_else(|| SubjectError::Pod {
                    phase,
                    pods: listed(leaving().map(name)),
                })
            }
            _ => match of {
                None => Ok(Subject::Node),
                Some(of) => Err(SubjectError::Node {
                    phase,
                    of: of.to_owned(),
                }),
            },
        }
    }

    fn phases(&self) -> Vec<HookPhase> {
        let infos = self.policies.infos().into_iter();
        infos.take(1).flat_map(|info| info.phases).collect()
    }

    /// Calls the planner and the first step of each hook this many times each.
    pub(crate) async fn bench(&mut self, rounds: usize) -> Vec<Figures> {
        let mut figures = Vec::new();
        let infos = self.policies.infos();
        let Some(info) = infos.into_iter().next() else {
            return figures;
        };
        if info.planner {
            let draft = self.runner.draft();
            let plan = async || drop(self.runner.plan_once(&self.policy, &draft).await);
            figures.extend(Figures::of(("make-plan", None), rounds, plan).await);
        }
        let planned = self.plan().await.result.unwrap_or_default();
        for phase in info.phases {
            // A node without pods has no wave and no pod to call it for.
            let Ok(subject) = self.subject(phase, None).await else {
                continue;
            };
            let step = HookStep {
                policy: self.policy.clone(),
                phase,
                leaving: planned.leaving_for(phase, &subject).cloned().collect(),
                subject,
                state: Vec::new(),
            };
            let take = async || drop(self.runner.step(&step).await);
            figures.extend(Figures::of(("step", Some(phase)), rounds, take).await);
        }
        figures
    }

    /// Its usage so far.
    pub(crate) fn usage(&self) -> Option<PolicyUsage> {
        self.policies.usage().into_iter().next()
    }
}

/// Names, in a sentence.
fn listed(names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.collect();
    match names.is_empty() {
        true => "none".to_owned(),
        false => names.join(", "),
    }
}

/// Whatever the configuration says: the author waits for the answer.
pub(super) fn asking_author(spec: PolicySpec) -> PolicySpec {
    PolicySpec {
        on_failure: OnFailure {
            planner: FailurePolicy::Refuse,
            hooks: FailurePolicy::Refuse,
            ..spec.on_failure
        },
        ..spec
    }
}

/// Loads them with all grants that they ask for: no request leaves the machine.
async fn load_granted(
    workbench: &OfflineRuntime,
    specs: &mut [PolicySpec],
    cluster: &SharedCluster,
) -> Result<Policies, PolicyLoadError> {
    // The first policy that lacks something is named.
    for _ in 0..specs.len() {
        let error = match workbench.load(specs, cluster).await {
            Err(PolicyLoadError::Load(error)) => error,
            loaded => return loaded,
        };
        let LoadFault::NotGranted(missing) = error.fault.as_ref() else {
            return Err(error.into());
        };
        let Some(spec) = specs.iter_mut().find(|spec| spec.name == error.policy) else {
            return Err(error.into());
        };
        spec.grants
            .extend(missing.iter().map(|missing| missing.grant.clone()));
    }
    workbench.load(specs, cluster).await
}

impl Figures {
    async fn of(
        (function, phase): (&'static str, Option<HookPhase>),
        rounds: usize,
        mut call: impl AsyncFnMut(),
    ) -> Option<Self> {
        let mut times = Vec::with_capacity(rounds);
        for _ in 0..rounds {
            let began = Instant::now();
            call().await;
            times.push(began.elapsed());
        }
        times.sort_unstable();
        Some(Self {
            function,
            phase,
            calls: times.len(),
            median: *times.get(times.len() / 2)?,
            worst: *times.last()?,
        })
    }
}

impl Snapshot {
    /// A node with this many pods of a few workloads, for measurements.
    pub(crate) fn of_pods(count: usize) -> Self {
        let node = super::shorthand::plain_node("node-1");
        let pod = |number: usize| -> Option<Pod> {
            let name = format!("shop/cart-{number}");
            let uid = format!("uid-{number}");
            let fields = super::shorthand::PodFields::labelled(name, number);
            fields.pod(&node.name, uid, Time::default()).ok()
        };
        Self {
            pods: (0..count).filter_map(pod).collect(),
            ..Self::of_node(node)
        }
    }
}
