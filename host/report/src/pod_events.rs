//! Decides which obstacles of a drain become Events: each pod and reason after a delay, and each budget that blocks
//! pods. Repetitions are counted, and the number of Events stays readable.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use scupper_common::event_throttle::{EventThrottle, Repeated};
use scupper_engine::{PodRef, Reason, Request, Time, named};

use super::conditions::NodeEvent;
use super::messages::one_line;

/// Obstacles that last less than this are over before the operator can read about them.
const AFTER: Duration = Duration::from_secs(30);

/// An obstacle that lasts this long counts again, because Events expire, after an hour in most clusters.
const REPEAT_AFTER: Duration = Duration::from_secs(1800);

/// Maximum number of Events about pods per drain, and of Events about budgets. `scupper status` shows the rest.
const MAX_EVENTS: usize = 50;

/// Maximum number of pods named in an Event about their budget.
const MAX_NAMED_PODS: usize = 5;

/// A pod, and the name of its reason.
type PodAndReason = (PodRef, &'static str);

/// The namespace and the name of a budget.
type BudgetKey = (String, String);

/// A due Event about a budget: the budget's name, a pod that it blocks, the Event, and the number of occurrences.
pub type BudgetEvent = (String, PodRef, NodeEvent, Repeated);

/// The Events of one drain that were already published.
#[derive(Debug, Default)]
pub struct PodEvents {
    pods: BlockedKeys<PodAndReason>,
    budgets: BlockedKeys<BudgetKey>,
    /// The pod that each budget blocked last.
    examples: BTreeMap<BudgetKey, PodRef>,
}

/// The current obstacles of a drain, and the published Events about them.
#[derive(Debug)]
struct BlockedKeys<K> {
    held: BTreeMap<K, BlockedSince>,
    published: EventThrottle<K, NodeEvent>,
}

impl<K> Default for BlockedKeys<K> {
    fn default() -> Self {
        Self {
            held: BTreeMap::new(),
            published: EventThrottle::default(),
        }
    }
}

/// An obstacle that has lasted without a break.
#[derive(Debug)]
struct BlockedSince {
    since: Time,
    last_counted: Option<Time>,
}

impl PodEvents {
    /// The due Events about pods.
    pub fn due(
        &mut self,
        now: Time,
        request: &Request,
        pods: &[(PodRef, Reason)],
    ) -> Vec<(PodRef, NodeEvent, Repeated)> {
        let stuck = pods.iter().filter(|(_, reason)| is_worth_an_event(reason));
        let stuck = stuck.map(|(pod, reason)| ((pod.clone(), reason.name()), event(request, reason)));
        let due = self.pods.due(now, stuck.collect()).into_iter();
        due.map(|((pod, _), event, repeated)| (pod, event, repeated))
            .collect()
    }

    /// The due Events about budgets, whichever pods these block.
    pub fn due_of_budgets(
        &mut self,
        now: Time,
        request: &Request,
        pods: &[(PodRef, Reason)],
    ) -> Vec<BudgetEvent> {
        let mut blocked: BTreeMap<BudgetKey, Vec<&PodRef>> = BTreeMap::new();
        for (pod, reason) in pods {
            if let Reason::BudgetExhausted { budget, .. } = reason
                && !budget.is_empty()
            {
                let key = (pod.namespace.clone(), budget.clone());
                blocked.entry(key).or_default().push(pod);
            }
        }
        let first = blocked
            .iter()
            .filter_map(|(key, pods)| Some((key.clone(), (*pods.first()?).clone())));
        self.examples.extend(first);
        let events = blocked
            .iter()
            .map(|(key, pods)| (key.clone(), budget_event(request, pods)));
        let due = self.budgets.due(now, events.collect()).into_iter();
        let due = due.filter_map(|(key, event, repeated)| {
            let pod = self.examples.get(&key)?.clone();
            Some((key.1, pod, event, repeated))
        });
        due.collect()
    }
}

impl<K: Ord + Clone> BlockedKeys<K> {
    /// Returns the due Events. `stuck` contains all current obstacles.
    fn due(&mut self, now: Time, stuck: Vec<(K, NodeEvent)>) -> Vec<(K, NodeEvent, Repeated)> {
        let keys: BTreeSet<_> = stuck.iter().map(|(key, _)| key).collect();
        self.held.retain(|key, _| keys.contains(key));
        for (key, event) in stuck {
            let begun = BlockedSince {
                since: now,
                last_counted: None,
            };
            let entry = self.held.entry(key.clone()).or_insert(begun);
            let has_room = self.published.len() < MAX_EVENTS || self.published.contains(&key);
            if has_room && entry.is_due(now) {
                self.published.record(now, key, event);
            }
        }
        self.published.due(now)
    }
}

impl BlockedSince {
    fn is_due(&mut self, now: Time) -> bool {
        let is_due = match self.last_counted {
            None => now.since(self.since) >= AFTER,
            Some(last_counted) => now.since(last_counted) >= REPEAT_AFTER,
        };
        if is_due {
            self.last_counted = Some(now);
        }
        is_due
    }
}

fn event(request: &Request, reason: &Reason) -> NodeEvent {
    let note = format!("{} waits for this pod: {reason}", request.name);
    NodeEvent {
        warning: true,
        reason: reason.name().to_owned(),
        note: one_line(&note),
    }
}

fn budget_event(request: &Request, pods: &[&PodRef]) -> NodeEvent {
    let named = named(pods.iter().map(|pod| pod.name.as_str()), MAX_NAMED_PODS);
    let note = format!(
        "{} of node {} waits: this budget blocks {named}",
        request.name, request.node
    );
    NodeEvent {
        warning: true,
        reason: "BudgetExhausted".to_owned(),
        note: one_line(&note),
    }
}

/// Whether the operator may have to act on a reason.
const fn is_worth_an_event(reason: &Reason) -> bool {
    matches!(
        reason,
        Reason::BudgetExhausted { .. }
            | Reason::BudgetNotObserved { .. }
            | Reason::MoreThanOneBudget { .. }
            | Reason::EvictionRefused { .. }
            | Reason::Forbidden { .. }
            | Reason::TerminatingPastGrace { .. }
            | Reason::NamespaceTerminating
            | Reason::Refused { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{pod, request};

    fn held(has: u32) -> Reason {
        Reason::BudgetExhausted {
            budget: "cart".into(),
            message: format!("needs 2 and has {has}"),
        }
    }

    fn at(second: u64) -> Time {
        Time::from_millis(second * 1000)
    }

    #[test]
    fn a_pods_reason_is_reported_only_after_a_while() {
        let mut stuck = PodEvents::default();
        let mut published = Vec::new();
        for second in 0..300_u32 {
            // The number in the text of the server changes, which is not news.
            let mut pods = vec![
                (pod("cart-1"), held(second % 2)),
                (pod("web"), Reason::ParallelLimit),
            ];
            // This obstacle never lasts long without a break.
            if second % 20 < 15 {
                pods.push((pod("cart-2"), held(1)));
            }
            let due = stuck.due(at(second.into()), &request(), &pods);
            published.extend(due.into_iter().map(|(pod, event, _)| (second, pod.name, event)));
        }
        let [(second, name, event)] = published.as_slice() else {
            panic!("{published:?}")
        };
        assert_eq!(
            (*second, name.as_str(), event.reason.as_str()),
            (30, "cart-1", "BudgetExhausted")
        );
        assert!(
            event
                .note
                .starts_with("drain-worker-1 waits for this pod: budget cart")
        );
        // A different reason is news.
        let finalizers = Reason::TerminatingPastGrace {
            since: Time::default(),
            finalizers: "a".into(),
        };
        let pods = [(pod("cart-1"), finalizers)];
        assert_eq!(stuck.due(at(300), &request(), &pods), []);
        assert_eq!(stuck.due(at(330), &request(), &pods).len(), 1);
    }

    /// Returns when Events are published within some hours, each with the number of occurrences since the last one.
    fn published(seconds: u64, is_held: impl Fn(u64) -> bool) -> Vec<(u64, u32)> {
        let mut stuck = PodEvents::default();
        let mut published = Vec::new();
        for second in 0..seconds {
            let held = is_held(second).then(|| (pod("cart-1"), held(1)));
            let due = stuck.due(at(second), &request(), held.as_slice());
            published.extend(due.into_iter().map(|(_, _, repeated)| (second, repeated.times)));
        }
        published
    }

    #[test]
    fn a_recurring_reason_is_counted_and_reported_sparingly() {
        // The pod is blocked for 40 seconds of each minute, for ten minutes, and once more an hour later.
        let is_held = |second: u64| second % 60 < 40 && second < 600 || (4000..4031).contains(&second);
        assert_eq!(
            published(5000, is_held),
            [(30, 1), (90, 1), (390, 5), (690, 3), (4030, 1)],
            "the last ones of the ten minutes, too"
        );
    }

    #[test]
    fn a_lasting_reason_is_reported_again_before_its_event_expires() {
        let published = published(2 * 3600, |_| true);
        assert_eq!(published, [(30, 1), (1830, 1), (3630, 1), (5430, 1)]);
    }

    #[test]
    fn a_budget_gets_one_event_for_all_of_its_pods() {
        let mut stuck = PodEvents::default();
        let mut published = Vec::new();
        for second in 0..100 {
            // The pods disappear one by one, which changes nothing for the remaining ones.
            let names = ["cart-1", "cart-2", "cart-3"];
            let pods = names.into_iter().skip(usize::from(second > 20));
            let pods: Vec<_> = pods.map(|name| (pod(name), held(1))).collect();
            let due = stuck.due_of_budgets(at(second), &request(), &pods);
            published.extend(due.into_iter().map(|event| (second, event)));
        }
        let [(second, (budget, pod, event, repeated))] = published.as_slice() else {
            panic!("{published:?}")
        };
        assert_eq!(
            (*second, budget.as_str(), pod.name.as_str()),
            (30, "cart", "cart-2")
        );
        assert_eq!((event.reason.as_str(), repeated.times), ("BudgetExhausted", 1));
        assert_eq!(
            event.note,
            "drain-worker-1 of node worker-1 waits: this budget blocks cart-2, cart-3"
        );
    }

    #[test]
    fn a_full_node_does_not_flood_its_namespaces() {
        let mut stuck = PodEvents::default();
        let pods: Vec<_> = (0..500)
            .map(|number| (pod(&format!("cart-{number}")), held(0)))
            .collect();
        let mut count = 0;
        for minute in 0..60 {
            count += stuck.due(at(minute * 60), &request(), &pods).len();
        }
        assert_eq!(count, 2 * MAX_EVENTS, "after a while, and half an hour later");
    }
}
