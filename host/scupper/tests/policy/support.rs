//! A cluster that records the writes; a node with pods.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) use crate::guests::{core_module, guest, guests, scratch};
use futures::FutureExt;
use futures::future::BoxFuture;
use scupper_common::clock::Clock;
use scupper_engine::{
    Budget, Condition, Controller, Decision, HookPhase, HookStep, Node, Plan, PlanAnswer, Pod, PodPhase,
    PodRef, Selector, StepOutcome, Subject, Time, Uid, UnhealthyPods, Verdict, Wave,
};
use scupper_policy::{
    AccessError, BudgetFact, ClusterAccess, DrainInfo, FactSource, LoadError, LoadFault, Marks,
    NamespaceFact, Network, OwnerFact, PlanCall, Policies, PolicyEvent, Runtime, RuntimeOptions, Secrets,
    StepCall,
};
use scupper_policy_spec::{Capability, Grant, Limits, PolicySpec};

/// A runtime whose compiled policies all tests share.
pub(crate) fn runtime() -> Runtime {
    runtime_in(&scratch().join("compiled"))
}

/// A runtime with its own directory.
pub(crate) fn runtime_in(cache: &Path) -> Runtime {
    runtime_with(cache, Path::new(env!("CARGO_BIN_EXE_scupper")))
}

/// A runtime with another compiler.
pub(crate) fn runtime_with(cache: &Path, compiler: &Path) -> Runtime {
    let options = RuntimeOptions {
        shipped: None,
        cache: cache.to_owned(),
        compiler: compiler.to_owned(),
        clock: Clock::System,
        network: Network::default(),
        secrets: Secrets::default(),
    };
    Runtime::new(options).unwrap()
}

/// A policy called `p` from a guest.
pub(crate) fn spec(name: &str) -> PolicySpec {
    PolicySpec {
        name: "p".to_owned(),
        file: guest(name),
        ..PolicySpec::default()
    }
}

/// Loads one policy.
pub(crate) async fn load_spec(spec: PolicySpec) -> Result<Policies, LoadError> {
    Policies::load(&runtime(), &[spec], Arc::new(FakeCluster::default())).await
}

/// Loads one guest.
pub(crate) async fn load(name: &str) -> Policies {
    load_spec(spec(name))
        .await
        .unwrap_or_else(|error| panic!("{}", chain(&error)))
}

/// Loads a guest that must fail to load, and returns the error.
pub(crate) async fn refused(name: &str) -> (LoadFault, String) {
    let Err(error) = load_spec(spec(name)).await else {
        panic!("`{name}` was loaded")
    };
    fault(error)
}

/// An error and all its sources in one line, as users see it.
pub(crate) fn fault(error: LoadError) -> (LoadFault, String) {
    let text = chain(&error);
    (*error.fault, text)
}

/// An error and its sources.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let sources = std::iter::successors(Some(error), |error| error.source());
    sources.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// A grant of annotations.
pub(crate) fn grant(text: &str) -> Grant {
    text.parse().unwrap()
}

/// A pod with a value in every field.
pub(crate) fn pod(number: usize) -> Pod {
    let name = format!("web-{number}");
    Pod {
        id: PodRef {
            namespace: "shop".to_owned(),
            name,
            uid: Uid(format!("uid-{number:04}")),
        },
        node: "node-1".to_owned(),
        labels: (0..6)
            .map(|label| (format!("example.com/label-{label}"), format!("value-{label}")))
            .collect(),
        annotations: BTreeMap::from([("note".to_owned(), format!("pod {number}"))]),
        controller: None,
        phase: PodPhase::Running,
        ready: true,
        conditions: vec![condition("Ready")],
        priority: 5,
        priority_class: "high".to_owned(),
        grace_seconds: 30,
        created: Time::from_millis(1_700_000_000_000),
        deletion: None,
        finalizers: vec!["example.com/wait".to_owned()],
        empty_dir: true,
        host_network: false,
        hostname: "web".to_owned(),
        cordon_toleration: None,
    }
}

fn condition(kind: &str) -> Condition {
    Condition {
        kind: kind.to_owned(),
        status: "True".to_owned(),
        reason: "Because".to_owned(),
        message: "it is".to_owned(),
        since: Some(Time::from_millis(1_700_000_000_500)),
    }
}

/// The node.
pub(crate) fn node() -> Node {
    Node {
        name: "node-1".to_owned(),
        uid: Uid("node-uid".to_owned()),
        labels: BTreeMap::from([("zone".to_owned(), "a".to_owned())]),
        annotations: BTreeMap::new(),
        unschedulable: true,
        conditions: vec![condition("Ready")],
        checkpoint: None,
        cancel: None,
        resource_version: "7".to_owned(),
    }
}

/// The host's draft for these pods: all of them are evicted, in one wave.
pub(crate) fn draft(pods: &[Pod]) -> Plan {
    let decision = |pod: &Pod| Decision {
        pod: pod.id.uid.clone(),
        verdict: Verdict::Evict,
        reason: "it can".to_owned(),
        policy: "kubectl".to_owned(),
    };
    let wave = Wave {
        name: "pods".to_owned(),
        pods: pods.iter().map(|pod| pod.id.uid.clone()).collect(),
        max_parallel: None,
        timeout: None,
        max_grace_seconds: None,
        policy: "kubectl".to_owned(),
    };
    Plan {
        decisions: pods.iter().map(decision).collect(),
        waves: vec![wave],
    }
}

/// The drain.
pub(crate) fn drain() -> DrainInfo<'static> {
    DrainInfo {
        id: "drain-uid",
        name: "maintenance",
        trigger: "LifecycleEvent",
        started: Time::from_millis(1_700_000_100_000),
        found_drained: false,
        held: false,
        deadline: Some(Time::from_millis(1_700_000_900_000)),
        now: Time::from_millis(1_700_000_200_000),
        own_pod: None,
        facts: None,
    }
}

/// Asks `p` for a plan for this many pods.
pub(crate) async fn plan(policies: &Policies, count: usize) -> PlanAnswer {
    let pods: Vec<Pod> = (0..count).map(pod).collect();
    plan_for(policies, &pods).await
}

/// Asks `p` for a plan for these pods.
pub(crate) async fn plan_for(policies: &Policies, pods: &[Pod]) -> PlanAnswer {
    let (node, draft, pods) = (node(), draft(pods), pods.iter().collect::<Vec<_>>());
    policies
        .plan(PlanCall {
            policy: "p",
            drain: drain(),
            node: &node,
            pods: &pods,
            draft: &draft,
        })
        .await
}

/// Asks `p` for a plan that fails, and returns its message.
pub(crate) async fn failed_plan(policies: &Policies) -> String {
    match plan(policies, 1).await {
        PlanAnswer::Failed { message, .. } => message,
        other => panic!("{other:?}"),
    }
}

/// Takes a step of `p` in a phase, with this state.
pub(crate) async fn step(policies: &Policies, phase: HookPhase, state: &[u8]) -> StepOutcome {
    step_of("p", policies, phase, state).await
}

/// Takes a step of a policy in a phase, with this state.
pub(crate) async fn step_of(
    policy: &str,
    policies: &Policies,
    phase: HookPhase,
    state: &[u8],
) -> StepOutcome {
    let pods = [pod(1), pod(2)];
    let (node, pods) = (node(), pods.iter().collect::<Vec<_>>());
    let step = HookStep {
        policy: policy.to_owned(),
        phase,
        subject: Subject::Node,
        state: state.to_vec(),
    };
    let drain = DrainInfo {
        own_pod: pods.last().map(|pod| &pod.id.uid),
        ..drain()
    };
    policies
        .step(StepCall {
            step: &step,
            drain,
            node: &node,
            pods: &pods,
        })
        .await
}

/// Low limits.
pub(crate) fn short() -> Limits {
    Limits {
        probe_cpu: Duration::from_millis(100),
        plan_cpu: Duration::from_millis(300),
        step_cpu: Duration::from_millis(300),
        // On a busy machine a little CPU time takes a long wall-clock time.
        plan_wall: Duration::from_secs(120),
        step_wall: Duration::from_secs(120),
        ..Limits::default()
    }
}

/// Records the writes.
#[derive(Default)]
pub(crate) struct FakeCluster {
    /// One line for each write.
    pub(crate) writes: Mutex<Vec<String>>,
    /// Its Secrets, by `namespace/name/key`.
    pub(crate) secrets: Mutex<BTreeMap<String, String>>,
    /// It never answers.
    pub(crate) silent: bool,
    /// It is unreachable.
    pub(crate) away: bool,
    /// It answers what is asked as a fact after so long.
    pub(crate) delay: Duration,
    /// A long annotation of its namespaces.
    pub(crate) padding: String,
    /// It has a bug.
    pub(crate) panics: bool,
    /// What was asked for as a fact.
    pub(crate) asked: Mutex<Vec<String>>,
    /// The annotations of its node.
    pub(crate) annotations: BTreeMap<String, String>,
}

impl FakeCluster {
    fn answer<T: Send + 'static>(&self, value: T) -> BoxFuture<'_, Result<T, AccessError>> {
        let answer = async move {
            match self {
                Self { silent: true, .. } => std::future::pending().await,
                Self { panics: true, .. } => panic!("the cluster edge has a bug"),
                Self { away: true, .. } => Err(AccessError::Unavailable("the API server is away".to_owned())),
                _ => Ok(value),
            }
        };
        answer.boxed()
    }

    fn write(
        &self,
        what: Capability,
        name: &str,
        key: &str,
        value: Option<&str>,
    ) -> BoxFuture<'_, Result<(), AccessError>> {
        let value = value.unwrap_or("removed");
        self.writes
            .lock()
            .unwrap()
            .push(format!("{what} {name} {key} {value}"));
        self.answer(())
    }
}

impl ClusterAccess for FakeCluster {
    fn node<'a>(&'a self, _node: &'a str) -> BoxFuture<'a, Result<Node, AccessError>> {
        self.answer(Node {
            annotations: self.annotations.clone(),
            ..node()
        })
    }

    fn pods<'a>(&'a self, _node: &'a str) -> BoxFuture<'a, Result<Vec<Pod>, AccessError>> {
        self.answer(vec![pod(1), pod(2), pod(3)])
    }

    fn annotate_node<'a>(
        &'a self,
        node: &'a str,
        key: &'a str,
        value: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), AccessError>> {
        self.write(Capability::NodeAnnotations, node, key, value)
    }

    fn secret<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Vec<u8>, AccessError>> {
        let known = self
            .secrets
            .lock()
            .unwrap()
            .get(&format!("{namespace}/{name}/{key}"))
            .cloned();
        match known {
            Some(value) => self.answer(value.into_bytes()),
            None => async { Err(AccessError::NotFound("secret".to_owned())) }.boxed(),
        }
    }

    fn annotate_pod<'a>(
        &'a self,
        pod: &'a PodRef,
        key: &'a str,
        value: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), AccessError>> {
        self.write(Capability::PodAnnotations, &pod.to_string(), key, value)
    }

    fn emit<'a>(&'a self, event: &'a PolicyEvent<'a>) -> BoxFuture<'a, Result<(), AccessError>> {
        let PolicyEvent {
            policy, reason, note, ..
        } = event;
        let kind = if event.warning { "warning" } else { "normal" };
        let about = event
            .pod
            .map_or_else(|| event.node.to_owned(), ToString::to_string);
        self.write(
            Capability::Events,
            &about,
            kind,
            Some(&format!("{policy} {reason} {note}")),
        )
    }
}

impl FakeCluster {
    fn fact<T: Send + 'static>(&self, what: &str, fact: T) -> BoxFuture<'_, Result<T, AccessError>> {
        self.asked.lock().unwrap().push(what.to_owned());
        let answer = self.answer(fact);
        async move {
            tokio::time::sleep(self.delay).await;
            answer.await
        }
        .boxed()
    }
}

impl FactSource for FakeCluster {
    fn lifecycle_event<'a>(
        &'a self,
        name: &'a str,
        uid: &'a str,
    ) -> BoxFuture<'a, Result<Marks, AccessError>> {
        self.fact(&format!("event {name} {uid}"), marks("ticket", "42"))
    }

    fn namespace<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<NamespaceFact, AccessError>> {
        if name.starts_with("no-") {
            self.asked.lock().unwrap().push(format!("namespace {name}"));
            return async move { Err(AccessError::NotFound(format!("no {name}"))) }.boxed();
        }
        let mut found = namespace(name);
        found
            .marks
            .annotations
            .insert("padding".to_owned(), self.padding.clone());
        self.fact(&format!("namespace {name}"), found)
    }

    fn namespaces(&self) -> BoxFuture<'_, Result<BTreeMap<String, NamespaceFact>, AccessError>> {
        let all = (0..20).map(|number| format!("ns-{number}"));
        self.fact(
            "namespaces",
            all.map(|name| (name.clone(), namespace(&name))).collect(),
        )
    }

    fn budgets(&self) -> BoxFuture<'_, Result<Vec<BudgetFact>, AccessError>> {
        let budget = |namespace: &str| BudgetFact {
            expected_pods: 3,
            budget: Budget {
                namespace: namespace.to_owned(),
                name: "keep".to_owned(),
                selector: Selector::EVERYTHING,
                unhealthy_pods: UnhealthyPods::AlwaysAllow,
                disruptions_allowed: 0,
                current_healthy: 2,
                desired_healthy: 3,
                observed: true,
            },
        };
        self.fact("budgets", vec![budget("shop"), budget("bank")])
    }

    fn owner<'a>(
        &'a self,
        namespace: &'a str,
        reference: &'a Controller,
    ) -> BoxFuture<'a, Result<Option<OwnerFact>, AccessError>> {
        let what = format!("{} {namespace}/{}", reference.kind, reference.name);
        let uid = Uid(format!("uid-of-{}-{}", reference.kind, reference.name));
        let there = Controller {
            uid,
            ..reference.clone()
        };
        self.fact(&what, owner_fact(there))
    }

    fn owners<'a>(
        &'a self,
        namespace: &'a str,
        like: &'a Controller,
    ) -> BoxFuture<'a, Result<Vec<OwnerFact>, AccessError>> {
        let named = |number: usize| {
            let name = match like.kind.as_str() {
                "Deployment" => format!("web{number}"),
                _ => format!("web{number}-1"),
            };
            Controller {
                uid: Uid(format!("uid-of-{}-{name}", like.kind)),
                name,
                ..like.clone()
            }
        };
        let all = (0..9).filter_map(|number| owner_fact(named(number)));
        self.fact(&format!("{}s of {namespace}", like.kind), all.collect())
    }
}

fn deployment(name: &str) -> Controller {
    Controller {
        api_version: "apps/v1".to_owned(),
        kind: "Deployment".to_owned(),
        name: name.to_owned(),
        uid: Uid(format!("uid-of-Deployment-{name}")),
        missing: false,
    }
}

/// A ReplicaSet `NAME-HASH` belongs to the Deployment `NAME`.
fn owner_fact(reference: Controller) -> Option<OwnerFact> {
    if !matches!(reference.kind.as_str(), "ReplicaSet" | "Deployment") || reference.name.starts_with("gone-")
    {
        return None;
    }
    let above = reference.name.split_once('-').map(|(name, _)| deployment(name));
    Some(OwnerFact {
        marks: marks("tier", &reference.name),
        replicas: Some(3),
        ready_replicas: Some(2),
        strategy: if reference.kind == "Deployment" {
            "Recreate"
        } else {
            ""
        }
        .to_owned(),
        controller: above.filter(|_| reference.kind == "ReplicaSet"),
        reference,
    })
}

fn namespace(name: &str) -> NamespaceFact {
    NamespaceFact {
        marks: marks("team", name),
        deletion: None,
    }
}

fn marks(key: &str, value: &str) -> Marks {
    Marks {
        labels: BTreeMap::from([(key.to_owned(), value.to_owned())]),
        annotations: BTreeMap::new(),
    }
}
