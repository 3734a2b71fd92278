//! What is worth an Event of what holds a drain up: each pod and reason once, after a while, and no more than a person
//! would read.

use std::collections::{BTreeMap, BTreeSet};

use scupper_engine::{Duration, PodRef, Reason, Request, Time, Uid};

use super::conditions::NodeEvent;
use super::words::one_line;

/// Whatever holds a pod up for less is over before anybody has read of it.
const AFTER: Duration = Duration::from_secs(30);

/// Events of one drain. `scupper status` shows the others.
const MOST: usize = 50;

/// Remembers what was told of one drain.
#[derive(Debug, Default)]
pub struct StuckPods {
    since: BTreeMap<(Uid, &'static str), Time>,
    told: BTreeSet<(Uid, &'static str)>,
}

impl StuckPods {
    /// The Events that are due, each about a pod.
    pub fn due(
        &mut self,
        now: Time,
        request: &Request,
        pods: &[(PodRef, Reason)],
    ) -> Vec<(PodRef, NodeEvent)> {
        let stuck: Vec<_> = pods
            .iter()
            .filter(|(_, reason)| is_worth_an_event(reason))
            .collect();
        let held: BTreeSet<_> = stuck
            .iter()
            .map(|(pod, reason)| (pod.uid.clone(), reason.name()))
            .collect();
        self.since.retain(|key, _| held.contains(key));
        let mut due = Vec::new();
        for (pod, reason) in stuck {
            let key = (pod.uid.clone(), reason.name());
            let since = *self.since.entry(key.clone()).or_insert(now);
            if now.since(since) < AFTER || self.told.len() >= MOST || !self.told.insert(key) {
                continue;
            }
            let note = format!("{} waits for this pod: {reason}", request.name);
            let event = NodeEvent {
                warning: true,
                reason: reason.name().to_owned(),
                note: one_line(&note),
            };
            due.push((pod.clone(), event));
        }
        due
    }
}

/// Somebody may have to do something about it.
const fn is_worth_an_event(reason: &Reason) -> bool {
    matches!(
        reason,
        Reason::BudgetExhausted { .. }
            | Reason::BudgetNotObserved { .. }
            | Reason::MoreThanOneBudget { .. }
            | Reason::EvictionRefused { .. }
            | Reason::Forbidden { .. }
            | Reason::TerminatingPastGrace { .. }
            | Reason::KeepsComingBack
            | Reason::NamespaceTerminating
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture::{pod, request};

    fn held(has: u32) -> Reason {
        Reason::BudgetExhausted {
            budget: "cart".into(),
            message: format!("needs 2 and has {has}"),
        }
    }

    #[test]
    fn each_pod_and_reason_is_told_once_and_only_after_a_while() {
        let mut stuck = StuckPods::default();
        let mut told = Vec::new();
        for second in 0..300_u32 {
            let now = Time::from_millis(u64::from(second) * 1000);
            // The number in the server's words moves, which is no news.
            let mut pods = vec![
                (pod("cart-1"), held(second % 2)),
                (pod("web"), Reason::ParallelLimit),
            ];
            // This one is never held up for long at once.
            if second % 20 < 15 {
                pods.push((pod("cart-2"), held(1)));
            }
            let due = stuck.due(now, &request(), &pods);
            told.extend(due.into_iter().map(|(pod, event)| (second, pod.name, event)));
        }
        let [(second, name, event)] = told.as_slice() else {
            panic!("{told:?}")
        };
        assert_eq!(
            (*second, name.as_str(), event.reason.as_str()),
            (30, "cart-1", "BudgetExhausted")
        );
        assert!(
            event
                .note
                .starts_with("drain-worker-1 waits for this pod: disruption budget cart")
        );
        // Another reason is news.
        let finalizers = Reason::TerminatingPastGrace {
            since: Time::default(),
            finalizers: "a".into(),
        };
        let pods = [(pod("cart-1"), finalizers)];
        assert_eq!(stuck.due(Time::from_millis(300_000), &request(), &pods), []);
        assert_eq!(stuck.due(Time::from_millis(330_000), &request(), &pods).len(), 1);
    }

    #[test]
    fn a_full_node_does_not_flood_its_namespaces() {
        let mut stuck = StuckPods::default();
        let pods: Vec<_> = (0..500)
            .map(|number| (pod(&format!("cart-{number}")), held(0)))
            .collect();
        let mut count = 0;
        for minute in 0..60 {
            count += stuck
                .due(Time::from_millis(minute * 60_000), &request(), &pods)
                .len();
        }
        assert_eq!(count, MOST);
    }
}
