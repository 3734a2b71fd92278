//! Facts as WIT's records.

use scupper_api::{DrainRequestFields, Entity};
use scupper_engine::UnhealthyPods;

use super::answers::Asker;
use super::peers::PeerGroup;
use super::resources::{DeviceFact, DeviceSource, ResourcesFact};
use super::source::{BudgetFact, OwnerFact, PeerFact};
use super::volumes::{ClaimedVolume, PodVolume};
use crate::wit::bindings::scupper::drain::facts;
use crate::wit::to_wit;
use crate::wit::to_wit_owned::entries;

pub(super) fn drain_request(found: &DrainRequestFields) -> facts::DrainRequest {
    let found = found.clone();
    let entity = |entity: Entity| facts::Entity {
        type_: entity.kind,
        value: entity.value,
    };
    let names = found.pods_to_drain.into_iter().flat_map(|(namespace, names)| {
        let pod = move |name| facts::PodName {
            namespace: namespace.clone(),
            name,
        };
        names.into_iter().map(pod)
    });
    facts::DrainRequest {
        namespace: found.namespace,
        name: found.name,
        uid: found.uid,
        labels: entries(found.labels),
        annotations: entries(found.annotations),
        creation_timestamp: found.created.map(|created| created.as_millis()),
        check_name: found.check_name,
        error_codes: found.error_codes,
        recommended_action: found.recommended_action,
        health_event_id: found.health_event_id,
        reason: found.reason,
        entities_impacted: found.entities.into_iter().map(entity).collect(),
        metadata: entries(found.metadata),
        pods_to_drain: names.collect(),
    }
}

pub(super) fn budget(fact: BudgetFact, asker: &Asker) -> facts::Budget {
    let BudgetFact {
        budget,
        expected_pods,
    } = fact;
    let covered = asker.pods.iter().filter(|pod| pod.is_of(&budget));
    let pods = covered.map(|pod| pod.id.uid.0.clone()).collect();
    let count = |number: i32| u32::try_from(number).unwrap_or(0);
    facts::Budget {
        pods,
        namespace: budget.namespace,
        name: budget.name,
        expected_pods: count(expected_pods),
        desired_healthy: count(budget.desired_healthy),
        current_healthy: count(budget.current_healthy),
        disruptions_allowed: count(budget.disruptions_allowed),
        unhealthy_pod_eviction_policy: match budget.unhealthy_pods {
            UnhealthyPods::IfHealthyBudget => facts::UnhealthyPodEvictionPolicy::IfHealthyBudget,
            UnhealthyPods::AlwaysAllow => facts::UnhealthyPodEvictionPolicy::AlwaysAllow,
        },
        observed: budget.observed,
    }
}

pub(super) fn owner(fact: OwnerFact) -> facts::Owner {
    let OwnerFact { reference, marks, .. } = fact;
    facts::Owner {
        api_version: reference.api_version,
        kind: reference.kind,
        name: reference.name,
        uid: reference.uid.0,
        labels: entries(marks.labels),
        annotations: entries(marks.annotations),
        replicas: fact.replicas,
        ready_replicas: fact.ready_replicas,
        strategy: fact.strategy,
    }
}

pub(super) fn resources(fact: ResourcesFact) -> facts::Resources {
    let request = |(name, amount)| facts::ResourceRequest { name, amount };
    facts::Resources {
        requests: fact.requests.into_iter().map(request).collect(),
        devices: fact.devices.into_iter().map(device).collect(),
        unallocated_claims: fact.unallocated,
    }
}

fn device(fact: DeviceFact) -> facts::Device {
    facts::Device {
        source: match fact.source {
            DeviceSource::Claim(name) => facts::DeviceSource::ResourceClaim(name),
            DeviceSource::Annotation(key) => facts::DeviceSource::Annotation(key),
        },
        driver: fact.id.driver,
        pool: fact.id.pool,
        name: fact.id.name,
        admin_access: fact.admin_access,
        attributes: entries(fact.attributes),
    }
}

pub(super) fn volume(volume: PodVolume) -> facts::Volume {
    let claim = |claim: ClaimedVolume| facts::VolumeClaim {
        name: claim.name,
        volume: claim.fact.volume,
        kind: claim.kind,
        storage_class: claim.fact.storage_class,
        access_modes: claim.fact.access_modes,
        attached_to: claim.attached_to,
    };
    facts::Volume {
        name: volume.name,
        kind: volume.kind,
        node_local: volume.node_local,
        claim: volume.claim.map(claim),
    }
}

pub(super) fn peer_group(group: PeerGroup) -> facts::PeerGroup {
    facts::PeerGroup {
        name: group.name,
        pods: group.pods.into_iter().map(|uid| uid.0).collect(),
        others: group.others.into_iter().map(peer).collect(),
    }
}

fn peer(fact: PeerFact) -> facts::Peer {
    facts::Peer {
        uid: fact.pod.uid.0,
        name: fact.pod.name,
        node: fact.node,
        phase: to_wit::phase(fact.phase),
        ready: fact.ready,
        deletion_timestamp: fact.deletion.map(|deletion| deletion.as_millis()),
    }
}
