//! Loads policies of the tests and calls them; a node with pods.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

mod fake_cluster;

pub(crate) use crate::guests::{core_module, guest, guests, scratch};
use scupper_common::clock::Clock;
use scupper_engine::{
    Condition, Decision, HookPhase, HookStep, Node, Plan, PlanAnswer, Pod, PodPhase, PodRef, StepOutcome,
    Subject, Time, Uid, Verdict, Wave,
};
use scupper_policy::{
    DrainInfo, LoadError, LoadFault, Network, PlanCall, Policies, Runtime, RuntimeOptions, Secrets, StepCall,
};
use scupper_policy_spec::{Grant, Limits, PolicySpec};

pub(crate) use fake_cluster::FakeCluster;

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
        limits: patient(),
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
            uid: Uid::new(format!("uid-{number:04}")),
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
        volume_claims: Vec::new(),
        host_paths: Vec::new(),
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
        uid: Uid::new("node-uid"),
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
        ..Plan::default()
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
        machine_is_off: false,
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
    step_on(&node(), "p", policies, (phase, state)).await
}

/// Takes a step of a policy on a node, in a phase, with this state.
pub(crate) async fn step_on(
    node: &Node,
    policy: &str,
    policies: &Policies,
    (phase, state): (HookPhase, &[u8]),
) -> StepOutcome {
    let pods = [pod(1), pod(2)];
    let pods = pods.iter().collect::<Vec<_>>();
    let step = HookStep {
        policy: policy.to_owned(),
        phase,
        subject: Subject::Node,
        state: state.to_vec(),
        leaving: Vec::new(),
    };
    let drain = DrainInfo {
        own_pod: pods.last().map(|pod| &pod.id.uid),
        ..drain()
    };
    policies
        .step(StepCall {
            step: &step,
            drain,
            node,
            pods: &pods,
        })
        .await
}

/// The usual limits but for those of wall-clock time: on a busy machine a little CPU time takes long.
fn patient() -> Limits {
    Limits {
        plan_wall: Duration::from_secs(120),
        step_wall: Duration::from_secs(120),
        ..Limits::default()
    }
}

/// Low limits of CPU time.
pub(crate) fn short() -> Limits {
    Limits {
        probe_cpu: Duration::from_millis(100),
        plan_cpu: Duration::from_millis(300),
        step_cpu: Duration::from_millis(300),
        ..patient()
    }
}
