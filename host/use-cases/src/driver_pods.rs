//! The driver's pod on a node, for commands that get no answer from the driver.

use futures::{StreamExt as _, TryStreamExt as _, stream};
use scupper_cluster::{Cluster, ReadError};
use scupper_engine::Pod;

/// The label of the driver's pods in every installation.
pub(crate) const SELECTOR: &str = "app.kubernetes.io/name=scupper";
/// Nodes that are looked at side by side.
const AT_ONCE: usize = 16;

/// It is a driver's, and is not being deleted.
pub(crate) fn is_of_driver(pod: &Pod) -> bool {
    let has = |(label, value): (&str, &str)| pod.labels.get(label).is_some_and(|text| text == value);
    pod.deletion.is_none() && SELECTOR.split_once('=').is_some_and(has)
}

/// The driver's pod on this node: of two, as in an update, the one that is ready.
pub(crate) async fn on(cluster: &Cluster, node: &str) -> Result<Option<Pod>, ReadError> {
    let pods = cluster.pods_with(node, SELECTOR).await?;
    let pods = pods.into_iter().filter(is_of_driver);
    Ok(pods.max_by_key(|pod| pod.ready))
}

/// The first of these nodes that has one, with it.
pub(crate) async fn on_any(cluster: &Cluster, nodes: &[String]) -> Result<Option<(String, Pod)>, ReadError> {
    let found = stream::iter(nodes)
        .map(async |node| on(cluster, node).await.map(|pod| Some((node.clone(), pod?))))
        .buffered(AT_ONCE)
        .try_filter_map(async |found| Ok(found));
    std::pin::pin!(found).try_next().await
}
