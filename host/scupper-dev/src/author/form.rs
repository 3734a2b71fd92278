//! The YAML of a scenario, as types. It gives them no meaning.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Map, Value};
use serde_saphyr::Spanned;

use super::shorthand::{BudgetForm, NodeForm, PodForm};
use super::values::{Span, Text, text_or};

/// A scenario.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct ScenarioForm {
    /// What it shows, in one sentence.
    pub(super) about: String,
    /// What `scupper.yaml` says of the policy, without its name and its module.
    pub(super) policy: Map<String, Value>,
    /// Instead of `policy`: a chain, as `scupper.yaml` has it. The policy under test is the one without a `module`.
    pub(super) policies: Vec<Map<String, Value>>,
    /// What `scupper.yaml` says of drains.
    pub(super) drain: Map<String, Value>,
    /// A snapshot to begin with: what `kubectl get node,pods,pdb -o yaml` printed.
    pub(super) cluster: Option<PathBuf>,
    pub(super) node: NodeForm,
    pub(super) pods: Vec<PodForm>,
    pub(super) budgets: Vec<BudgetForm>,
    /// What the servers answer that the policy speaks to, in this order.
    pub(super) answers: Vec<AnswerForm>,
    pub(super) plan: Option<Spanned<PlanForm>>,
    pub(super) steps: Vec<Spanned<StepForm>>,
    pub(super) ends: Option<Spanned<EndForm>>,
}

impl Default for ScenarioForm {
    fn default() -> Self {
        Self {
            about: String::new(),
            policy: Map::new(),
            policies: Vec::new(),
            drain: Map::new(),
            cluster: None,
            node: NodeForm::default(),
            pods: Vec::new(),
            budgets: Vec::new(),
            answers: Vec::new(),
            plan: None,
            steps: Vec::new(),
            ends: None,
        }
    }
}

/// The plan that is expected. A list that is given is all of its kind.
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
    pub(super) timeout: Option<Span>,
    pub(super) max_grace_period: Option<Span>,
}

/// Something that happens, or is expected.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum StepForm {
    /// Time passes.
    Pass(Span),
    /// A hook answers, or things are as they should be.
    Expect(Box<ExpectForm>),
    /// A pod changes.
    Pod(Box<PodForm>),
    /// A pod comes.
    Add(Box<PodForm>),
    /// A pod goes without us.
    Remove(String),
    /// The node changes.
    Node(Box<NodeForm>),
    /// A budget changes, or is new.
    Budget(BudgetForm),
    /// One more answer of a server, after those that there are.
    Answer(AnswerForm),
    /// The policy cannot reach the API server, for this long.
    Outage(Span),
    /// The drain is cancelled.
    Cancel(String),
    /// The driver dies and starts anew.
    Restart,
    /// The drain ends, and maintenance is over.
    Uncordon,
}

/// What is expected of a step of a hook, or of the cluster as it is now.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct ExpectForm {
    /// A phase: time advances until its hook answers.
    pub(super) hook: Option<String>,
    /// The policy, in a chain.
    pub(super) policy: Option<String>,
    /// The wave or the pod that it is called for.
    pub(super) of: Option<String>,
    /// How long that may take; default: a day.
    pub(super) within: Option<Span>,
    pub(super) done: bool,
    pub(super) pending: Option<String>,
    pub(super) failed: Option<String>,
    pub(super) waiting_for: Option<WaitingForm>,
    pub(super) again_after: Option<Span>,
    pub(super) retry_after: Option<Span>,
    /// Every request that the step sent: `METHOD URL`.
    pub(super) sends: Option<Vec<Text>>,
    /// Every Kubernetes Event that the step emitted: `REASON of OBJECT: NOTE`.
    pub(super) emits: Option<Vec<Text>>,
    /// Annotations of the node; null: it has none of this key.
    pub(super) annotations: BTreeMap<String, Option<String>>,
    pub(super) cordoned: Option<bool>,
    pub(super) here: Vec<String>,
    pub(super) gone: Vec<String>,
    /// Annotations of pods.
    pub(super) pods: BTreeMap<String, PodExpectation>,
}

/// What is expected of a pod.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct PodExpectation {
    pub(super) annotations: BTreeMap<String, Option<String>>,
}

/// Whom a hook waits for: their names, or their names and what is awaited of each.
#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "a list of names, or a map from names to what is awaited"
)]
pub(super) enum WaitingForm {
    Names(Vec<String>),
    Details(BTreeMap<String, String>),
}

/// What a server answers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct AnswerForm {
    /// `METHOD URL`; `*` stands for anything.
    pub(super) to: String,
    #[serde(default = "ok")]
    pub(super) status: u16,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    /// A text as it is, anything else as JSON.
    #[serde(default)]
    pub(super) body: Value,
    /// No answer but this error.
    pub(super) error: Option<NoAnswer>,
    /// How often; without it once, `0`: always.
    pub(super) times: Option<u32>,
}

/// Why a request gets no answer.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum NoAnswer {
    /// The server does not exist; nothing was sent.
    Unreachable,
    /// It was sent, and no whole answer came.
    Broken,
    /// The time was over.
    Timeout,
}

const fn ok() -> u16 {
    200
}

/// How the drain is to end.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct EndFields {
    pub(super) outcome: String,
    pub(super) message: Option<String>,
    pub(super) within: Option<Span>,
}

text_or! {
    /// How the drain is to end: the outcome's name, or more.
    EndForm, EndFields, |outcome| EndFields { outcome, ..EndFields::default() }
}
