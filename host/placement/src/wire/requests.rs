//! What pods request, as the scheduler counts it.

use scupper_common::quantity;
use serde::Deserialize;

use super::{Texts, nullable};
use crate::model::Amounts;

/// The restart policy of an init container that keeps running.
const SIDECAR: &str = "Always";

/// One of `spec.containers` or `spec.initContainers`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Container {
    #[serde(deserialize_with = "nullable")]
    resources: Resources,
    #[serde(deserialize_with = "nullable")]
    restart_policy: String,
    #[serde(deserialize_with = "nullable")]
    pub(super) ports: Vec<Port>,
}

/// One of `ports` of a container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Port {
    pub(super) host_port: Option<u32>,
    #[serde(rename = "hostIP", deserialize_with = "nullable")]
    pub(super) host_ip: String,
    #[serde(deserialize_with = "nullable")]
    pub(super) protocol: String,
}

/// `resources` of a container or a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Resources {
    #[serde(deserialize_with = "nullable")]
    requests: Texts,
}

/// The containers that run together, or an init container with the sidecars before it if it needs more; the pod's own
/// requests in their place; and the overhead of its runtime. Without zeros.
pub fn requests(init: &[Container], containers: &[Container], own: &Resources, overhead: &Texts) -> Amounts {
    let (mut sidecars, mut starting) = (Amounts::new(), Amounts::new());
    for init in init {
        let own = init.resources.amounts();
        if init.is_sidecar() {
            add(&mut sidecars, own);
            raise(&mut starting, sidecars.clone());
        } else {
            let mut together = sidecars.clone();
            add(&mut together, own);
            raise(&mut starting, together);
        }
    }
    let mut total = sidecars;
    for container in containers {
        add(&mut total, container.resources.amounts());
    }
    raise(&mut total, starting);
    total.extend(own.amounts());
    add(&mut total, amounts(overhead));
    total.retain(|_, amount| *amount > 0);
    total
}

impl Container {
    /// It is an init container that keeps running.
    pub(super) fn is_sidecar(&self) -> bool {
        self.restart_policy == SIDECAR
    }
}

impl Resources {
    fn amounts(&self) -> Amounts {
        amounts(&self.requests)
    }
}

/// Those that are quantities.
pub(super) fn amounts(quantities: &Texts) -> Amounts {
    let amount =
        |(name, quantity): (&String, &String)| Some((name.clone(), quantity::quantity(name, quantity)?));
    quantities.iter().filter_map(amount).collect()
}

fn add(total: &mut Amounts, more: Amounts) {
    for (name, amount) in more {
        let sum = total.entry(name).or_default();
        *sum = sum.saturating_add(amount);
    }
}

fn raise(total: &mut Amounts, least: Amounts) {
    for (name, amount) in least {
        let sum = total.entry(name).or_default();
        *sum = amount.max(*sum);
    }
}
