//! The engine's view of the cluster: three watches merged into one stream of its events.

use futures::future::ready;
use futures::stream::{self, Stream, StreamExt as _};
use scupper_api::Change;
use scupper_checkpoint::CheckpointFault;
use scupper_engine::{Budget, Event, Node};

use super::Cluster;
use super::budget::WireBudget;
use super::listing::Source;
use super::node::WireNode;
use super::pod::WirePod;
use super::read::{nodes, pods_of};
use super::watch::watch;

const BUDGETS: &str = "/apis/policy/v1/poddisruptionbudgets";

impl Cluster {
    /// The API server refuses to list the budgets: the streams report that there are none, and that is not known.
    pub fn may_not_list_budgets(&self) -> bool {
        self.optional_reads().is_refused(BUDGETS)
    }

    /// Streams changes of the node, its pods and the budgets, starting with a full list of each. The stream never ends;
    /// after a break it retries with back-off and sends a new full list.
    pub fn watch(&self, node: &str) -> impl Stream<Item = Event> + Send + 'static + use<> {
        stream::select(self.watch_pods(node), self.node_events(node))
    }

    /// Like [`Self::watch`] without the node, for callers that already watch it.
    pub fn watch_pods(&self, node: &str) -> impl Stream<Item = Event> + Send + 'static + use<> {
        stream::select_all([self.pod_events(node).boxed(), self.budget_events().boxed()])
    }

    fn pod_events(&self, node: &str) -> impl Stream<Item = Event> + Send + use<> {
        let cluster = self.clone();
        watch(self, pods_of(node), WirePod::into_engine).then(move |change| {
            let cluster = cluster.clone();
            async move {
                match change {
                    Change::Listed(mut pods) => {
                        cluster.mark_missing(&mut pods, true).await;
                        Event::Pods(pods)
                    }
                    Change::Applied(pod) => {
                        let mut pod = [pod];
                        cluster.mark_missing(&mut pod, false).await;
                        let [pod] = pod;
                        Event::PodApplied(pod)
                    }
                    Change::Deleted(pod) => Event::PodDeleted(pod.id.uid),
                }
            }
        })
    }

    /// Streams the budgets. Evictions respect budgets even if the driver cannot read them; only its messages are then
    /// less detailed.
    fn budget_events(&self) -> impl Stream<Item = Event> + Send + use<> {
        let source = Source {
            path: BUDGETS.to_owned(),
            selector: None,
            optional: true,
        };
        let changes = watch(self, source, WireBudget::with_uid);
        let cluster = self.clone();
        changes.map(move |change| match change {
            Change::Listed(budgets) => {
                let uids = budgets.iter().map(|(uid, budget)| (key(budget), uid.clone()));
                cluster.remember_budgets(uids.collect());
                Event::Budgets(budgets.into_iter().map(|(_, budget)| budget).collect())
            }
            Change::Applied((uid, budget)) => {
                cluster.remember_budget(key(&budget), Some(uid));
                Event::BudgetApplied(budget)
            }
            Change::Deleted((_, budget)) => {
                cluster.remember_budget(key(&budget), None);
                let Budget { namespace, name, .. } = budget;
                Event::BudgetDeleted { namespace, name }
            }
        })
    }

    /// Streams the node alone; `None` if it does not exist. Never ends.
    pub fn node_changes(&self, node: &str) -> impl Stream<Item = Option<Node>> + Send + 'static + use<> {
        self.node_events(node).filter_map(|event| {
            ready(match event {
                Event::Node(node) => Some(node),
                _ => None,
            })
        })
    }

    fn node_events(&self, node: &str) -> impl Stream<Item = Event> + Send + use<> {
        let cluster = self.clone();
        let mut reported = None;
        let changes = watch(self, nodes(node), |node: WireNode| node);
        changes.map(move |change| match change {
            Change::Listed(nodes) => Event::Node(
                nodes
                    .into_iter()
                    .next()
                    .map(|node| cluster.to_node(node, &mut reported)),
            ),
            Change::Applied(node) => Event::Node(Some(cluster.to_node(node, &mut reported))),
            Change::Deleted(_) => Event::Node(None),
        })
    }

    /// Converts the node to the engine's type. An unreadable checkpoint is reported once.
    pub(super) fn to_node(&self, node: WireNode, reported: &mut Option<CheckpointFault>) -> Node {
        let (node, fault) = node.into_engine();
        if let Some(fault) = &fault
            && reported.as_ref() != Some(fault)
        {
            let annotation = super::node::DRAIN_ANNOTATION;
            tracing::warn!(node = node.name, annotation, %fault, "the checkpoint on the node is not ours to read; going on without it");
        }
        *reported = fault;
        self.remember_conditions(&node);
        node
    }
}

fn key(budget: &Budget) -> (String, String) {
    (budget.namespace.clone(), budget.name.clone())
}
