//! A cluster with a drain transition, a kubelet on it, and a scripted driver: the setup of the tests of events.

use scupper_simulator::kubelet::{Options, Record};
use serde_json::json;

use crate::cluster::Cluster;
use crate::driver::{Plugin, Registered, Reply, Service};
use crate::world::{LIMIT, World};

pub(crate) const DRIVER: &str = "drain.example";
pub(crate) const DRAIN: &str = "drain";
pub(crate) const START: &str = "drain-started";
pub(crate) const END: &str = "drain-complete";

/// A cluster with the drain transition, and a kubelet on it.
pub(crate) async fn world() -> (Cluster, World) {
    world_with(|_| {}).await
}

pub(crate) async fn world_with(change: impl FnOnce(&mut Options)) -> (Cluster, World) {
    let cluster = Cluster::start().await;
    cluster
        .transition(
            DRAIN,
            json!({"driver": DRIVER, "start": START, "end": END, "allNodes": true}),
        )
        .await;
    let world = World::on(cluster.client(), change).await;
    (cluster, world)
}

/// A registered driver that answers by `replies`.
pub(crate) async fn driver(world: &World, replies: impl IntoIterator<Item = Reply>) -> (Service, Registered) {
    driver_at(world, "a", replies).await
}

pub(crate) async fn driver_at(
    world: &World,
    name: &str,
    replies: impl IntoIterator<Item = Reply>,
) -> (Service, Registered) {
    let service = Service::serve(&world.service(name), replies);
    let front = Registered::serve(&world.registry(name), Plugin::new(DRIVER, &service.path));
    assert!(front.wait_notified(1).await[0].0);
    (service, front)
}

pub(crate) fn kinds(service: &Service) -> Vec<&'static str> {
    service.calls().iter().map(|heard| heard.call).collect()
}

/// Waits until the kubelet has written a terminal status, and returns it.
pub(crate) async fn ended(world: &World, event: &str) -> String {
    let status = |record: &Record| {
        record
            .finished()
            .into_iter()
            .find(|(name, _)| name == event)
            .map(|(_, status)| status)
    };
    world
        .kubelet
        .wait_for(|record| status(record).is_some(), LIMIT)
        .await
        .unwrap();
    status(world.kubelet.record()).unwrap()
}

/// Waits for this many more passes.
pub(crate) async fn passes(world: &World, more: usize) {
    let before = world.kubelet.passes().len();
    world
        .kubelet
        .wait_for(|record| record.passes().len() >= before + more, LIMIT)
        .await
        .unwrap();
}
