//! Drains only the pods that hold the GPUs that a DrainRequest names.

mod holding;
mod settings;

use scupper_sdk::{
    Description, Draft, Drain, Grant, Node, Planner, Pod, Policy, Problem, Verdict, config, description,
    facts::{self, DrainRequest},
    log,
};

use crate::holding::{Holding, holding};
use crate::settings::{Settings, Unmapped};

struct Gpu;

scupper_sdk::export!(Gpu with planner);

impl Policy for Gpu {
    fn describe() -> Description {
        description!("Evicts only the pods that hold the GPUs that a DrainRequest names")
            .config_schema(include_str!("../config.schema.json"))
            .wants(Grant::facts_of_request())
            .wants(Grant::facts_of_resources())
    }

    fn check_config() -> Vec<Problem> {
        config::check(&settings::KEYS, Settings::read())
    }
}

impl Planner for Gpu {
    fn plan(_drain: &Drain, _node: &Node, draft: &mut Draft<'_>) -> Result<(), String> {
        let settings = Settings::read()?;
        let requests = facts::drain_requests()?;
        let named = named(&settings, &requests);
        if named.is_empty() {
            return Ok(());
        }
        let mut pods = Vec::new();
        for pod in draft.pods() {
            // Pods that stay anyway, such as those of DaemonSets, are not checked.
            if draft.decision(pod).is_some_and(|it| it.verdict != Verdict::Keep) {
                pods.push((pod, holding(&settings, pod, &named)?));
            }
        }
        let mut unknown = pods
            .iter()
            .filter(|(_, holding)| matches!(holding, Holding::Unknown(_)));
        let is_widened = settings.unmapped == Unmapped::WholeNode && unknown.next().is_some();
        if is_widened {
            log::warn!("draining the whole node: the GPUs of some pods are unknown");
        }
        let names = named.join(", ");
        for (pod, holding) in pods {
            match (holding, settings.unmapped) {
                (Holding::Named(gpu), _) => draft.explain(pod, format!("holds {gpu}")),
                (Holding::Unknown(why), Unmapped::WholeNode) => {
                    draft.explain(pod, format!("{why}, so the whole node is drained"));
                }
                (Holding::None, _) if is_widened => {}
                // It has no GPU any more, but the request waits until it is gone.
                (Holding::None, _) if pod.is_finished() && is_named(&requests, pod) => {}
                (Holding::None, _) => draft.keep(pod, format!("holds none of the GPUs to drain: {names}")),
                (Holding::Unknown(why), Unmapped::Keep) => {
                    draft.keep(pod, format!("{why}; it stays although it may hold {names}"));
                }
                (Holding::Unknown(why), Unmapped::Refuse) => {
                    draft.refuse(pod, format!("{why}; it may hold {names}"));
                }
            }
        }
        Ok(())
    }
}

/// The GPUs that the requests name; none: at least one request is for the whole node.
fn named(settings: &Settings, requests: &[DrainRequest]) -> Vec<String> {
    let all: Vec<_> = requests
        .iter()
        .map(|request| settings.named_by(request))
        .collect();
    if all.iter().any(Vec::is_empty) {
        return Vec::new();
    }
    let mut all = all.concat();
    all.sort();
    all.dedup();
    all
}

/// Whether a request names the pod itself.
fn is_named(requests: &[DrainRequest], pod: &Pod) -> bool {
    let mut named = requests.iter().flat_map(|request| &request.pods_to_drain);
    named.any(|named| named.namespace == pod.namespace && named.name == pod.name)
}

#[cfg(test)]
mod tests;
