//! The YAML of a scenario, as types without behaviour.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Map, Value};
use serde_saphyr::Spanned;

use super::shorthand::{BudgetForm, NamespaceFields, NodeForm, OwnerFields, PodForm, RequestForm};
use super::values::{ScenarioDuration, ScenarioTime, Text, text_or};

/// A scenario.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct ScenarioForm {
    /// Its purpose, in one sentence.
    pub(super) about: String,
    /// The time of the drain's start: `2026-11-23T10:00:00Z`.
    pub(super) time: Option<ScenarioTime>,
    /// The policy's entry in `scupper.yaml`, without its name and its module.
    pub(super) policy: Map<String, Value>,
    /// Instead of `policy`: a chain, as in `scupper.yaml`. The policy under test is the one without a `module`.
    pub(super) policies: Vec<Map<String, Value>>,
    /// The section `drain` of `scupper.yaml`.
    pub(super) drain: Map<String, Value>,
    /// A snapshot to start from: the output of `kubectl get node,pods,pdb -o yaml`.
    pub(super) cluster: Option<PathBuf>,
    pub(super) node: NodeForm,
    pub(super) pods: Vec<PodForm>,
    pub(super) budgets: Vec<BudgetForm>,
    /// What policies learn of namespaces. Those of the pods exist in any case.
    pub(super) namespaces: Vec<NamespaceFields>,
    /// The workloads above the pods' controllers, and what policies learn of either.
    pub(super) owners: Vec<OwnerFields>,
    /// What policies learn of the object that requests the drain.
    pub(super) request: RequestForm,
    /// The DrainRequests that request it: the `spec` of each, as in the API.
    pub(super) drain_requests: Vec<Map<String, Value>>,
    /// The answers of the policy's servers, in this order.
    pub(super) answers: Vec<AnswerForm>,
    pub(super) plan: Option<Spanned<PlanForm>>,
    pub(super) steps: Vec<Spanned<StepForm>>,
    pub(super) ends: Option<Spanned<EndForm>>,
}

impl Default for ScenarioForm {
    fn default() -> Self {
        Self {
            about: String::new(),
            time: None,
            policy: Map::new(),
            policies: Vec::new(),
            drain: Map::new(),
            cluster: None,
            node: NodeForm::default(),
            pods: Vec::new(),
            budgets: Vec::new(),
            namespaces: Vec::new(),
            owners: Vec::new(),
            request: RequestForm::default(),
            drain_requests: Vec::new(),
            answers: Vec::new(),
            plan: None,
            steps: Vec::new(),
            ends: None,
        }
    }
}

/// The expected plan. Each given list is complete.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct PlanForm {
    pub(super) evict: Option<Vec<String>>,
    pub(super) delete: Option<Vec<String>>,
    pub(super) await_completion: Option<Vec<String>>,
    pub(super) keep: Option<Vec<String>>,
    pub(super) refuse: Option<Vec<String>>,
    pub(super) waves: Option<Vec<WaveForm>>,
    pub(super) reasons: BTreeMap<String, String>,
}

/// A wave of the plan.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct WaveForm {
    pub(super) name: String,
    pub(super) pods: Option<Vec<String>>,
    pub(super) max_parallel: Option<u32>,
    pub(super) timeout: Option<ScenarioDuration>,
    pub(super) max_grace_period: Option<ScenarioDuration>,
}

/// An event or an expectation.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum StepForm {
    /// Time passes.
    Pass(ScenarioDuration),
    /// An expectation of a hook's answer or of the cluster.
    Expect(Box<ExpectForm>),
    /// A pod changes.
    Pod(Box<PodForm>),
    /// A pod arrives.
    Add(Box<PodForm>),
    /// A pod is removed by another client.
    Remove(String),
    /// The node changes.
    Node(Box<NodeForm>),
    /// A budget changes or is created.
    Budget(BudgetForm),
    /// A namespace changes, or is new.
    Namespace(NamespaceFields),
    /// One more answer of a server, after the existing ones.
    Answer(AnswerForm),
    /// The policy cannot reach the API server, for this long.
    Outage(ScenarioDuration),
    /// The drain is cancelled.
    Cancel(String),
    /// The driver dies and restarts.
    Restart,
    /// The drain ends, and the node is uncordoned.
    Uncordon,
}

/// An expectation of a hook's step, or of the current cluster.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct ExpectForm {
    /// A phase: time advances until its hook answers.
    pub(super) hook: Option<String>,
    /// The policy, in a chain.
    pub(super) policy: Option<String>,
    /// The wave or the pod of the call.
    pub(super) of: Option<String>,
    /// The time limit; default: a day.
    pub(super) within: Option<ScenarioDuration>,
    pub(super) done: bool,
    pub(super) pending: Option<String>,
    pub(super) failed: Option<String>,
    pub(super) waiting_for: Option<WaitingForm>,
    pub(super) again_after: Option<ScenarioDuration>,
    pub(super) retry_after: Option<ScenarioDuration>,
    /// Every request that the step sent: `METHOD URL`.
    pub(super) sends: Option<Vec<Text>>,
    /// Every Kubernetes Event that the step emitted: `REASON of OBJECT: NOTE`.
    pub(super) emits: Option<Vec<Text>>,
    /// Annotations of the node; null: the key must be missing.
    pub(super) annotations: BTreeMap<String, Option<String>>,
    pub(super) cordoned: Option<bool>,
    pub(super) here: Vec<String>,
    pub(super) gone: Vec<String>,
    /// Annotations of pods.
    pub(super) pods: BTreeMap<String, PodExpectation>,
}

impl ExpectForm {
    /// It has something that only a hook's answer can have.
    pub(super) const fn is_of_hook(&self) -> bool {
        let names = self.policy.is_some() || self.of.is_some() || self.within.is_some();
        let answers = self.done || self.pending.is_some() || self.failed.is_some();
        let details = self.waiting_for.is_some() || self.again_after.is_some() || self.retry_after.is_some();
        names || answers || details || self.sends.is_some() || self.emits.is_some()
    }
}

/// An expectation of a pod.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct PodExpectation {
    pub(super) annotations: BTreeMap<String, Option<String>>,
}

/// The blockers of a hook: their names, or their names and details.
#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "a list of names, or a map from names to what is awaited"
)]
pub(super) enum WaitingForm {
    Names(Vec<String>),
    Details(BTreeMap<String, String>),
}

/// A server's answer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct AnswerForm {
    /// `METHOD URL`; `*` matches anything.
    pub(super) to: String,
    #[serde(default = "ok")]
    pub(super) status: u16,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    /// A text verbatim, anything else as JSON.
    #[serde(default)]
    pub(super) body: Value,
    /// This error instead of an answer.
    pub(super) error: Option<NoAnswer>,
    /// The number of uses; default: once, `0`: always.
    pub(super) times: Option<u32>,
}

/// Why a request gets no answer.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum NoAnswer {
    /// The server does not exist; nothing was sent.
    Unreachable,
    /// It was sent, and the response was incomplete.
    Broken,
    /// The time limit expired.
    Timeout,
}

const fn ok() -> u16 {
    200
}

/// The expected end of the drain.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct EndFields {
    pub(super) outcome: String,
    pub(super) message: Option<String>,
    pub(super) within: Option<ScenarioDuration>,
}

text_or! {
    /// The expected end of the drain: the outcome's name, or more.
    EndForm, EndFields, |outcome| EndFields { outcome, ..EndFields::default() }
}
