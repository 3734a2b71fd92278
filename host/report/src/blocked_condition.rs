//! The message of `DrainInProgress`: what blocks the drain, so that `kubectl describe node` never presents a drain that
//! a budget blocks as one that makes progress, or when it will probably end. A drain that nothing blocks for long, and of
//! which nothing is known, writes no further message.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use scupper_api::NodeCondition;
use scupper_engine::{
    HookPhase, Intent, Node, Notice, Phase, PodRef, Reason, Request, SurgeMethod, Time, VolumesLeft, named,
};

use super::conditions::{STARTED, conditions_of_started, of_drain, pair};
use super::drain_status::Estimate;
use super::messages::{count, one_line};

/// Obstacles that last less than this are over before the operator can read about them.
const AFTER: Duration = Duration::from_secs(30);

/// Minimum time between two changes of the message.
const EVERY: Duration = Duration::from_secs(60);

/// Number of causes that the message names; it counts the others.
const NAMED: usize = 5;

/// Keeps the message of one drain up to date.
#[derive(Debug, Default)]
pub struct BlockedCondition {
    /// Hooks that have not finished.
    hooks: BTreeSet<(String, HookPhase)>,
    /// The volumes that it waits for.
    volumes: Option<VolumesLeft>,
    /// When the drain became blocked; something has blocked it ever since.
    since: Option<Time>,
    /// When the message was last written.
    written: Option<Time>,
    /// The message on the node, as long as the node says that the drain is in progress.
    on_node: Option<String>,
    /// When the drain will probably end, as text, and until when that can be true.
    ends: Option<(String, Time)>,
}

impl BlockedCondition {
    /// Records the current node.
    pub fn observe(&mut self, node: &Node) {
        let mut conditions = node.conditions.iter();
        let found = conditions.find(|it| it.kind == "DrainInProgress" && it.status == "True");
        self.on_node = found.map(|it| it.message.clone());
    }

    /// When the drain will probably end is known. The message keeps what was known first: each change is a request.
    pub fn estimated(&mut self, now: Time, estimate: &Estimate) {
        self.ends = estimate.at_text(now).map(|text| (text, estimate.last()));
    }

    /// Updates the state from a notice.
    pub fn notice(&mut self, notice: &Notice) {
        match notice {
            Notice::HookWaiting { policy, phase, .. } => {
                self.hooks.insert((policy.clone(), *phase));
            }
            Notice::HookDone { policy, phase, .. } => {
                self.hooks.remove(&(policy.clone(), *phase));
            }
            Notice::AwaitsVolumes { left, .. } => self.volumes = Some(left.clone()),
            Notice::VolumesSettled { .. } | Notice::Phase(Phase::Evicting) => self.volumes = None,
            _ => {}
        }
    }

    /// The pair of a drain that nothing blocks.
    pub fn started(&self, now: Time, request: &Request) -> Vec<NodeCondition> {
        let ends = self.ends.as_ref().filter(|(_, last)| now < *last);
        conditions_of_started(request, ends.map(|(text, _)| text.as_str()))
    }

    /// Returns the pair of conditions that is due, given the reason why each pod waits.
    pub fn due(
        &mut self,
        now: Time,
        request: &Request,
        phase: Phase,
        waiting: &[(PodRef, Reason)],
    ) -> Option<Vec<NodeCondition>> {
        if !phase.needs_cordon() || request.intent != Intent::Drain {
            return None;
        }
        let mut causes = causes(&self.hooks, waiting);
        causes.extend(self.volumes.as_ref().map(volumes_cause));
        let since = *self.since.get_or_insert(now);
        if causes.is_empty() {
            self.since = None;
        }
        let is_time = self.written.is_none_or(|written| now.since(written) >= EVERY);
        let has_lasted = causes.is_empty() || now.since(since) >= AFTER;
        let on_node = self.on_node.as_ref().filter(|_| is_time && has_lasted)?;
        let changes = if causes.is_empty() {
            self.started(now, request)
        } else {
            let message = format!("drain {} is waiting for: {}", request.name, named(&causes, NAMED));
            of_drain(request, pair("True", "False", STARTED, &one_line(&message)))
        };
        let says_it = |change: &NodeCondition| {
            // What an earlier process knew of the end is not known here.
            let is_more = on_node.strip_prefix(&change.message);
            is_more.is_some_and(|more| more.is_empty() || self.ends.is_none() && more.starts_with(';'))
        };
        if changes.iter().any(says_it) {
            return None;
        }
        self.written = Some(now);
        Some(changes)
    }
}

/// The causes that block the drain, each with the number of pods that it blocks.
fn causes(hooks: &BTreeSet<(String, HookPhase)>, waiting: &[(PodRef, Reason)]) -> Vec<String> {
    let hooks = hooks.iter();
    let hooks = hooks.map(|(policy, phase)| format!("the {phase} hook of {policy}"));
    let mut pods: BTreeMap<String, usize> = BTreeMap::new();
    for (pod, reason) in waiting {
        if let Some(cause) = cause(pod, reason) {
            *pods.entry(cause).or_default() += 1;
        }
    }
    let pods = pods.into_iter();
    hooks
        .chain(pods.map(|(cause, number)| format!("{cause} ({})", count(number, "pod"))))
        .collect()
}

fn volumes_cause(left: &VolumesLeft) -> String {
    match left.attached().len() {
        0 => "news of the node's volumes".to_owned(),
        attached => format!("{} to be detached", count(attached, "volume")),
    }
}

/// A short text for a cause, stable as long as the cause lasts; `None` for a reason that every drain goes through.
fn cause(pod: &PodRef, reason: &Reason) -> Option<String> {
    let namespace = &pod.namespace;
    Some(match reason {
        Reason::BudgetExhausted { budget, .. } if !budget.is_empty() => {
            format!("budget {namespace}/{budget}")
        }
        Reason::BudgetExhausted { .. } => format!("a budget in {namespace}"),
        Reason::Surging { workload, method } => match method {
            SurgeMethod::Restart => format!("the restart of {workload}"),
            SurgeMethod::Scale => format!("one replica more of {workload}"),
        },
        Reason::BudgetNotObserved { .. } => format!("the status of a budget in {namespace}"),
        Reason::MoreThanOneBudget { .. } => {
            format!("all but one of the budgets of a pod in {namespace} to go")
        }
        Reason::TerminatingPastGrace { finalizers, .. } if finalizers.is_empty() => {
            "the end of pods that have outlived their grace period".to_owned()
        }
        Reason::TerminatingPastGrace { .. } => "the finalizers of terminating pods".to_owned(),
        Reason::EvictionRefused { code, .. } => format!("evictions that are refused with {code}"),
        Reason::Forbidden { .. } => "the right to evict".to_owned(),
        Reason::NamespaceTerminating => format!("namespace {namespace} to be deleted"),
        Reason::AwaitingCompletion => "pods that run to completion".to_owned(),
        Reason::Throttled { .. } | Reason::Unreachable { .. } => "the API server".to_owned(),
        Reason::NodeUncordoned => "the node to be cordoned again".to_owned(),
        Reason::PlannerFailed { policy, .. } => format!("the planner of {policy}"),
        Reason::Refused { policy, .. } if policy.is_empty() => "pods that may not leave".to_owned(),
        Reason::Refused { policy, .. } => format!("pods that policy {policy} does not let leave"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use scupper_engine::{Condition, Subject};

    use super::*;
    use crate::fixture::{self, pod, request};

    fn at(second: u64) -> Time {
        Time::from_millis(second * 1000)
    }

    fn node(message: &str) -> Node {
        let mut node = fixture::node(fixture::mark("command", Phase::Evicting));
        node.conditions = vec![Condition {
            kind: "DrainInProgress".into(),
            status: "True".into(),
            reason: STARTED.into(),
            message: message.into(),
            since: None,
        }];
        node
    }

    fn budget(name: &str, number: u32) -> (PodRef, Reason) {
        let reason = Reason::BudgetExhausted {
            budget: "cart".into(),
            message: format!("it has {number}"),
        };
        (pod(name), reason)
    }

    const UNDER_WAY: &str = "drain drain-worker-1 is under way";

    /// Runs the condition once a second, with a node that shows the last message; returns each message with its second.
    fn story(seconds: u64, waiting: impl Fn(u64) -> Vec<(PodRef, Reason)>) -> Vec<(u64, String)> {
        let mut condition = BlockedCondition::default();
        condition.observe(&node(UNDER_WAY));
        let mut story = Vec::new();
        for second in 0..seconds {
            let due = condition.due(at(second), &request(), Phase::Evicting, &waiting(second));
            if let Some(changes) = due {
                let statuses: Vec<_> = changes.iter().map(|it| (it.status, it.reason.as_str())).collect();
                assert_eq!(statuses, [("True", STARTED), ("False", STARTED)]);
                condition.observe(&node(&changes[0].message));
                story.push((second, changes[0].message.clone()));
            }
        }
        story
    }

    #[test]
    fn a_drain_that_nothing_blocks_for_long_writes_nothing() {
        assert_eq!(story(600, |_| Vec::new()), []);
        let short = |second: u64| {
            (second % 40 < 25)
                .then(|| budget("cart-1", 1))
                .into_iter()
                .collect()
        };
        assert_eq!(story(600, short), []);
    }

    #[test]
    fn a_blocker_is_named_and_later_removed() {
        let reported = story(400, |second| match second {
            10..100 => vec![budget("cart-1", 1), budget("cart-2", 2)],
            // The text of the server changes, but a new number of pods is reported one minute later at the earliest.
            100..200 => vec![budget("cart-1", second as u32)],
            _ => Vec::new(),
        });
        let expected = [
            (
                40,
                "drain drain-worker-1 is waiting for: budget shop/cart (2 pods)",
            ),
            (
                100,
                "drain drain-worker-1 is waiting for: budget shop/cart (1 pod)",
            ),
            (200, UNDER_WAY),
        ];
        let reported: Vec<_> = reported
            .iter()
            .map(|(second, text)| (*second, text.as_str()))
            .collect();
        assert_eq!(reported, expected);
    }

    #[test]
    fn the_end_is_named_only_while_it_can_be_true() {
        let mut condition = BlockedCondition::default();
        condition.observe(&node(UNDER_WAY));
        let due = |condition: &mut BlockedCondition, second, waiting: &[_]| {
            let due = condition.due(at(second), &request(), Phase::Evicting, waiting)?;
            condition.observe(&node(&due[0].message));
            Some(due[0].message.clone())
        };
        condition.estimated(at(1), &Estimate([50, 60, 300].map(at)));
        let ends = "drain drain-worker-1 is under way; it will probably end at 1970-01-01T00:01:00Z (1970-01-01T00:00:50Z to \
                    1970-01-01T00:05:00Z)";
        assert_eq!(due(&mut condition, 1, &[]).as_deref(), Some(ends));
        let held = [budget("cart-1", 1)];
        assert_eq!(due(&mut condition, 70, &held), None);
        assert!(
            due(&mut condition, 100, &held)
                .unwrap()
                .ends_with("budget shop/cart (1 pod)")
        );
        assert_eq!(due(&mut condition, 200, &[]).as_deref(), Some(ends));
        assert_eq!(due(&mut condition, 299, &[]), None);
        assert_eq!(due(&mut condition, 300, &[]).as_deref(), Some(UNDER_WAY));
        // What an earlier process has written stays.
        let mut next = BlockedCondition::default();
        next.observe(&node(ends));
        assert_eq!(due(&mut next, 301, &[]), None);
    }

    #[test]
    fn a_hook_is_named_though_no_pod_waits_for_it() {
        let mut condition = BlockedCondition::default();
        condition.observe(&node(UNDER_WAY));
        let (policy, phase, subject) = ("slurm".to_owned(), HookPhase::BeforeDrain, Subject::Node);
        condition.notice(&Notice::HookWaiting {
            policy: policy.clone(),
            phase,
            subject: subject.clone(),
            since: at(0),
            progress: "1 of 2".into(),
            waiting_for: Vec::new(),
        });
        let due = |condition: &mut BlockedCondition, second| {
            let due = condition.due(at(second), &request(), Phase::Holding, &[])?;
            Some(due[0].message.clone())
        };
        assert_eq!(due(&mut condition, 0), None);
        assert_eq!(
            due(&mut condition, 30).as_deref(),
            Some("drain drain-worker-1 is waiting for: the before-drain hook of slurm")
        );
        condition.notice(&Notice::HookDone {
            policy,
            phase,
            subject,
        });
        // Another process may have changed the message on the node; it is corrected as well.
        condition.observe(&node(
            "drain drain-worker-1 is waiting for: budget shop/gone (1 pod)",
        ));
        assert_eq!(due(&mut condition, 80), None);
        assert_eq!(due(&mut condition, 90).as_deref(), Some(UNDER_WAY));
    }

    #[test]
    fn volumes_are_counted_until_they_are_settled() {
        let mut condition = BlockedCondition::default();
        condition.observe(&node(UNDER_WAY));
        let due = |condition: &mut BlockedCondition, second| {
            let due = condition.due(at(second), &request(), Phase::Detaching, &[])?;
            Some(due[0].message.clone())
        };
        let waits = |message: &str| Notice::AwaitsVolumes {
            left: VolumesLeft::Unknown {
                message: message.to_owned(),
            },
            since: at(0),
            until: at(600),
        };
        condition.notice(&waits("forbidden"));
        assert_eq!(due(&mut condition, 0), None);
        assert_eq!(
            due(&mut condition, 30).as_deref(),
            Some("drain drain-worker-1 is waiting for: news of the node's volumes")
        );
        condition.observe(&node(
            "drain drain-worker-1 is waiting for: news of the node's volumes",
        ));
        condition.notice(&Notice::VolumesSettled { left: None });
        assert_eq!(due(&mut condition, 90).as_deref(), Some(UNDER_WAY));
    }
}
