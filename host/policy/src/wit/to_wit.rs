//! The engine's types as guests see them, borrowed: the arguments of `make-plan` and `step`.
//!
//! A node may have hundreds of pods with dozens of labels each, so the lists inside the records are slices of a few
//! long vectors instead of one small vector each.

use std::collections::BTreeMap;
use std::ops::Range;

use scupper_engine::{Condition, Node, Plan, Pod, PodPhase, Uid, Verdict, Wave, whole_millis};

use super::bindings::scupper::drain::types;
use crate::DrainInfo;

type Entry<'a> = types::EntryParam<'a>;

/// The lists inside the records of one node and its pods.
pub(crate) struct Lists<'a> {
    node: &'a Node,
    pods: &'a [&'a Pod],
    own_pod: Option<&'a Uid>,
    entries: Vec<Entry<'a>>,
    conditions: Vec<types::ConditionParam<'a>>,
    finalizers: Vec<&'a str>,
    spans: Vec<ListRanges>,
    node_span: ListRanges,
}

/// Where one object's lists are.
#[derive(Clone, Default)]
struct ListRanges {
    labels: Range<usize>,
    annotations: Range<usize>,
    conditions: Range<usize>,
    finalizers: Range<usize>,
}

impl<'a> Lists<'a> {
    pub(crate) fn of(node: &'a Node, pods: &'a [&'a Pod], own_pod: Option<&'a Uid>) -> Self {
        let mut lists = Self {
            node,
            pods,
            own_pod,
            entries: Vec::with_capacity(pods.len() * 16),
            conditions: Vec::with_capacity(pods.len() * 5),
            finalizers: Vec::new(),
            spans: Vec::with_capacity(pods.len()),
            node_span: ListRanges::default(),
        };
        lists.node_span = lists.add(&node.labels, &node.annotations, &node.conditions, &[]);
        for pod in pods {
            let span = lists.add(&pod.labels, &pod.annotations, &pod.conditions, &pod.finalizers);
            lists.spans.push(span);
        }
        lists
    }

    fn add(
        &mut self,
        labels: &'a BTreeMap<String, String>,
        annotations: &'a BTreeMap<String, String>,
        conditions: &'a [Condition],
        finalizers: &'a [String],
    ) -> ListRanges {
        ListRanges {
            labels: append(&mut self.entries, labels.iter().map(entry)),
            annotations: append(&mut self.entries, annotations.iter().map(entry)),
            conditions: append(&mut self.conditions, conditions.iter().map(condition)),
            finalizers: append(&mut self.finalizers, finalizers.iter().map(String::as_str)),
        }
    }

    /// The node.
    pub(crate) fn node(&self) -> types::NodeParam<'_> {
        let Node {
            name,
            uid,
            unschedulable,
            checkpoint,
            ..
        } = self.node;
        types::NodeParam {
            uid: uid.as_str(),
            name,
            labels: slice(&self.entries, &self.node_span.labels),
            annotations: slice(&self.entries, &self.node_span.annotations),
            unschedulable: *unschedulable,
            own_cordon: checkpoint
                .as_ref()
                .is_some_and(|checkpoint| checkpoint.own_cordon),
            conditions: slice(&self.conditions, &self.node_span.conditions),
        }
    }

    /// The pods.
    pub(crate) fn pods(&self) -> Vec<types::PodParam<'_>> {
        self.pods
            .iter()
            .zip(&self.spans)
            .map(|(pod, span)| self.pod(pod, span))
            .collect()
    }

    fn pod<'s>(&'s self, pod: &'s Pod, span: &ListRanges) -> types::PodParam<'s> {
        types::PodParam {
            uid: pod.id.uid.as_str(),
            namespace: &pod.id.namespace,
            name: &pod.id.name,
            labels: slice(&self.entries, &span.labels),
            annotations: slice(&self.entries, &span.annotations),
            controller: pod.controller.as_ref().map(|owner| types::ControllerParam {
                api_version: &owner.api_version,
                kind: &owner.kind,
                name: &owner.name,
                uid: owner.uid.as_str(),
            }),
            phase: phase(pod.phase),
            ready: pod.ready,
            conditions: slice(&self.conditions, &span.conditions),
            priority: pod.priority,
            priority_class_name: &pod.priority_class,
            termination_grace_period_seconds: pod.grace_seconds,
            creation_timestamp: pod.created.as_millis(),
            deletion_timestamp: pod.deletion.map(|deletion| deletion.at.as_millis()),
            finalizers: slice(&self.finalizers, &span.finalizers),
            has_empty_dir: pod.empty_dir,
            host_network: pod.host_network,
            hostname: &pod.hostname,
            mirror: pod.is_mirror(),
            driver: self.own_pod == Some(&pod.id.uid),
        }
    }
}

/// The lists inside the records of one plan.
pub(crate) struct PlanLists<'a> {
    decisions: Vec<types::DecisionParam<'a>>,
    uids: Vec<&'a str>,
    spans: Vec<Range<usize>>,
    waves: &'a [Wave],
}

impl<'a> PlanLists<'a> {
    pub(crate) fn of(plan: &'a Plan) -> Self {
        let decision = |decision: &'a scupper_engine::Decision| types::DecisionParam {
            pod: decision.pod.as_str(),
            verdict: verdict(decision.verdict),
            reason: &decision.reason,
            policy: &decision.policy,
        };
        let mut uids = Vec::with_capacity(plan.decisions.len());
        let spans = plan
            .waves
            .iter()
            .map(|wave| append(&mut uids, wave.pods.iter().map(|uid| uid.as_str())));
        let spans = spans.collect();
        Self {
            decisions: plan.decisions.iter().map(decision).collect(),
            uids,
            spans,
            waves: &plan.waves,
        }
    }

    /// The waves, which the plan borrows in turn.
    pub(crate) fn waves(&self) -> Vec<types::WaveParam<'_>> {
        let wave = |(wave, span): (&'a Wave, &Range<usize>)| types::WaveParam {
            name: &wave.name,
            pods: slice(&self.uids, span),
            max_parallel: wave.max_parallel,
            timeout: wave.timeout.map(whole_millis),
            max_grace_period_seconds: wave.max_grace_seconds,
        };
        self.waves.iter().zip(&self.spans).map(wave).collect()
    }

    /// The plan.
    pub(crate) fn plan<'s>(&'s self, waves: &'s [types::WaveParam<'s>]) -> types::PlanParam<'s> {
        types::PlanParam {
            decisions: &self.decisions,
            waves,
        }
    }
}

/// The drain.
pub(crate) fn drain<'a>(drain: &DrainInfo<'a>) -> types::Drain<'a> {
    types::Drain {
        id: drain.id,
        name: drain.name,
        trigger: drain.trigger,
        started: drain.started.as_millis(),
        found_drained: drain.found_drained,
        held: drain.held,
        deadline: drain.deadline.map(|deadline| deadline.as_millis()),
        now: drain.now.as_millis(),
    }
}

pub(crate) const fn phase(phase: PodPhase) -> types::PodPhase {
    match phase {
        PodPhase::Pending => types::PodPhase::Pending,
        PodPhase::Running => types::PodPhase::Running,
        PodPhase::Succeeded => types::PodPhase::Succeeded,
        PodPhase::Failed => types::PodPhase::Failed,
        PodPhase::Unknown => types::PodPhase::Unknown,
    }
}

const fn verdict(verdict: Verdict) -> types::Verdict {
    match verdict {
        Verdict::Evict => types::Verdict::Evict,
        Verdict::Delete => types::Verdict::Delete,
        Verdict::AwaitCompletion => types::Verdict::AwaitCompletion,
        Verdict::Keep => types::Verdict::Keep,
        Verdict::Refuse => types::Verdict::Refuse,
    }
}

fn entry<'a>((key, value): (&'a String, &'a String)) -> Entry<'a> {
    Entry { key, value }
}

fn condition(condition: &Condition) -> types::ConditionParam<'_> {
    types::ConditionParam {
        type_: &condition.kind,
        status: &condition.status,
        reason: &condition.reason,
        message: &condition.message,
        last_transition_time: condition.since.map(|since| since.as_millis()),
    }
}

/// Appends the items and returns their range.
fn append<T>(list: &mut Vec<T>, items: impl Iterator<Item = T>) -> Range<usize> {
    let start = list.len();
    list.extend(items);
    start..list.len()
}

/// Every range was made by [`append`] on the same vector, so none is outside it.
fn slice<'s, T>(list: &'s [T], range: &Range<usize>) -> &'s [T] {
    list.get(range.clone()).unwrap_or_default()
}
