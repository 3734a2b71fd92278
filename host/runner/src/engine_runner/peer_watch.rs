//! Pods on other nodes that hooks wait for: instead of asking again and again, a hook is called when one of them changes.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use futures::stream::{self, BoxStream, SelectAll, StreamExt as _};
use scupper_api::Change;
use scupper_api::facts::{Peer, PeerSelection};
use scupper_cluster::Cluster;
use scupper_engine::{Event, Uid};
use scupper_policy::KnownPeers;
use tokio::time::{Instant, sleep_until};

/// The least time between two calls because of changes: each call lists the pods again.
const LEAST: Duration = Duration::from_secs(5);

/// What the hooks of one drain wait for, by policy.
#[derive(Default)]
pub(super) struct PeerWatches(BTreeMap<String, PeerWatch>);

/// The pods that one policy has asked about in its last step.
struct PeerWatch {
    wanted: Vec<PeerSelection>,
    changes: SelectAll<BoxStream<'static, ()>>,
    has_changed: bool,
    /// When the policy may be called again.
    next: Instant,
}

/// What a hook may wait for: the pod's node, and whether it is terminating.
type Seen = BTreeMap<Uid, (String, bool)>;

impl PeerWatches {
    /// Watches what a step has learned, if its hook waits, and else nothing. A watch of the same pods goes on.
    pub(super) fn set(&mut self, cluster: &Cluster, policy: &str, known: Vec<KnownPeers>) {
        let wanted: Vec<_> = known.iter().map(|known| known.wanted.clone()).collect();
        if self.0.get(policy).is_some_and(|watch| watch.wanted == wanted) {
            return;
        }
        self.0.remove(policy);
        if !wanted.is_empty() {
            let watch = PeerWatch {
                wanted,
                changes: stream::select_all(known.into_iter().map(|known| changes(cluster, known))),
                has_changed: false,
                next: Instant::now() + LEAST,
            };
            self.0.insert(policy.to_owned(), watch);
        }
    }

    /// The next call of a hook. Never comes while nothing is watched. Dropping it loses no change.
    pub(super) async fn next(&mut self) -> Event {
        loop {
            let changed = self.0.iter().filter(|(_, watch)| watch.has_changed);
            let soonest = changed.min_by_key(|(_, watch)| watch.next);
            let soonest = soonest.map(|(policy, watch)| (policy.clone(), watch.next));
            let Some((policy, at)) = soonest else {
                self.change().await;
                continue;
            };
            let is_due = tokio::select! {
                () = sleep_until(at) => true,
                () = self.change() => false,
            };
            if is_due && let Some(watch) = self.0.get_mut(&policy) {
                watch.has_changed = false;
                watch.next = Instant::now() + LEAST;
                return Event::HookDue { policy };
            }
        }
    }

    /// Notes the next change of any of the pods.
    async fn change(&mut self) {
        poll_fn(|context| {
            for watch in self.0.values_mut() {
                if watch.changes.poll_next_unpin(context) == Poll::Ready(Some(())) {
                    watch.has_changed = true;
                    return Poll::Ready(());
                }
            }
            Poll::Pending
        })
        .await;
    }
}

/// Yields when the pods are not as they were known.
fn changes(cluster: &Cluster, known: KnownPeers) -> BoxStream<'static, ()> {
    let pods = known.pods();
    let mut seen: Seen = pods.map(|pod| (pod.id.uid.clone(), state(pod))).collect();
    let wanted = known.wanted;
    let changes = cluster.peer_changes(&wanted);
    let news =
        changes.filter_map(move |change| std::future::ready(apply(&mut seen, &wanted, change).then_some(())));
    news.boxed()
}

fn state(pod: &Peer) -> (String, bool) {
    (pod.node.clone(), pod.deletion.is_some())
}

/// Whether the change matters.
fn apply(seen: &mut Seen, wanted: &PeerSelection, change: Change<Peer>) -> bool {
    let is_wanted = |pod: &Peer| wanted.includes(pod);
    match change {
        Change::Listed(pods) => {
            let pods = pods.iter().filter(|pod| is_wanted(pod));
            let now = pods.map(|pod| (pod.id.uid.clone(), state(pod))).collect();
            let is_news = *seen != now;
            *seen = now;
            is_news
        }
        Change::Applied(pod) if is_wanted(&pod) => {
            let now = state(&pod);
            seen.insert(pod.id.uid, now.clone()) != Some(now)
        }
        Change::Applied(_) => false,
        // Also a pod that has ended, which the watch does not select any more.
        Change::Deleted(pod) => seen.remove(&pod.id.uid).is_some(),
    }
}

#[cfg(test)]
mod tests {
    use scupper_engine::{PodPhase, PodRef};

    use super::*;

    fn pod(uid: &str, node: &str, controller: &str) -> Peer {
        Peer {
            id: PodRef {
                namespace: "ml".to_owned(),
                name: uid.to_owned(),
                uid: Uid::new(uid),
            },
            node: node.to_owned(),
            phase: PodPhase::Running,
            ready: true,
            deletion: None,
            controller: Some(Uid::new(controller)),
            groups: Vec::new(),
        }
    }

    #[test]
    fn only_a_change_that_a_hook_may_wait_for_calls_it() {
        let wanted = PeerSelection {
            controllers: [Uid::new("train")].into(),
            ..PeerSelection::default()
        };
        let mut seen = Seen::from([(Uid::new("a"), ("n2".to_owned(), false))]);
        let mut is_news = |change| apply(&mut seen, &wanted, change);
        let a = pod("a", "n2", "train");
        assert!(!is_news(Change::Listed(vec![a.clone(), pod("b", "n3", "web")])));
        // Its readiness, its labels.
        let unready = Peer {
            ready: false,
            ..a.clone()
        };
        assert!(!is_news(Change::Applied(unready)));
        assert!(!is_news(Change::Applied(pod("c", "n3", "web"))));
        assert!(!is_news(Change::Deleted(pod("b", "n3", "web"))));
        let ending = Peer {
            deletion: Some(scupper_engine::Time::from_millis(1)),
            ..a.clone()
        };
        assert!(is_news(Change::Applied(ending.clone())));
        assert!(!is_news(Change::Applied(ending)));
        assert!(is_news(Change::Deleted(a.clone())));
        assert!(!is_news(Change::Deleted(a)));
        assert!(is_news(Change::Applied(pod("d", "", "train"))));
        assert!(is_news(Change::Applied(pod("d", "n4", "train"))));
        // After a break of the watch.
        assert!(is_news(Change::Listed(Vec::new())));
        assert!(!is_news(Change::Listed(Vec::new())));
    }
}
