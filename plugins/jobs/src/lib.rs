//! Lets jobs end before their pods are evicted, and asks those that can for a checkpoint.

mod checkpoint;
mod settings;

use scupper_sdk::{
    Call, Description, Draft, Drain, Grant, Hold, Hooks, Node, Outcome, Phase, Planner, Pod, Policy, Problem,
    config, description, facts, hold,
};

use crate::settings::Settings;

struct Jobs;

scupper_sdk::export!(Jobs with planner, hooks);

impl Policy for Jobs {
    fn describe() -> Description {
        let mut description =
            description!("Lets jobs end or save a checkpoint before their pods are evicted")
                .config_schema(include_str!("../config.schema.json"));
        if let Ok(settings) = Settings::read() {
            if !settings.kinds.is_empty() {
                description = description.wants(Grant::facts_of_owners());
            }
            if let Some(prefix) = settings.checkpoints {
                description = description.wants(Grant::pod_annotations(&prefix));
            }
        }
        description
    }

    fn check_config() -> Vec<Problem> {
        config::check(&settings::KEYS, Settings::read())
    }
}

impl Planner for Jobs {
    fn plan(drain: &Drain, _node: &Node, draft: &mut Draft<'_>) -> Result<(), String> {
        let settings = Settings::read()?;
        let mut held = Vec::new();
        for pod in draft
            .leaving()
            .into_iter()
            .filter(|pod| !pod.is_finished() && !pod.driver)
        {
            if let Some((hold, why)) = hold_of(&settings, pod)? {
                draft.evict(pod, format!("{why}, evicted {}", hold.when(drain)));
                held.push((pod, hold));
            }
        }
        draft.hold(drain, held);
        Ok(())
    }
}

impl Hooks for Jobs {
    fn phases() -> Vec<Phase> {
        match Settings::read() {
            Ok(settings) if settings.checkpoints.is_some() => {
                vec![Phase::BeforeDrain, Phase::BeforeWave, Phase::OnCancel]
            }
            _ => vec![Phase::BeforeWave],
        }
    }

    fn step(call: &Call) -> Outcome {
        let settings = match Settings::read() {
            Ok(settings) => settings,
            Err(problem) => return problem.into(),
        };
        if call.phase == Phase::OnCancel {
            return checkpoint::withdraw(&settings, call).map_or_else(Outcome::from, |()| Outcome::Done);
        }
        // Before the drain, so that all pods save at the same time; before a wave for those that came later.
        if let Err(error) = checkpoint::request(&settings, call) {
            return error.into();
        }
        let hold_of = |pod: &Pod| Ok(hold_of(&settings, pod)?.map(|(hold, _)| hold));
        hold::step(call, hold_of, |pod| {
            checkpoint::awaited(&settings, pod, &call.drain)
        })
    }
}

/// How long a pod may run, and why; `None`: as long as any other pod.
fn hold_of(settings: &Settings, pod: &Pod) -> Result<Option<(Hold, String)>, facts::Error> {
    if let Some(time) = checkpoint::time(settings, pod) {
        return Ok(Some((Hold::at_most(time), "saves a checkpoint".to_owned())));
    }
    let Some(what) = job_of(settings, pod)? else {
        return Ok(None);
    };
    let own = settings
        .cap_annotation
        .as_deref()
        .and_then(|key| pod.annotation(key));
    // A value that is no time has no effect, as the pod's owner may not lengthen the drain.
    let cap = own
        .and_then(config::duration)
        .map_or(settings.cap, |own| own.min(settings.cap));
    Ok(Some((Hold::at_most(cap), what)))
}

/// The job that a pod belongs to, for people.
fn job_of(settings: &Settings, pod: &Pod) -> Result<Option<String>, facts::Error> {
    let by_label = settings.labels.iter().find(|(key, pattern)| {
        pod.label(key)
            .is_some_and(|value| config::matches(pattern, value))
    });
    if let Some((key, pattern)) = by_label {
        return Ok(Some(format!("label {key}={pattern}")));
    }
    let is_job = |kind: &str| settings.kinds.iter().any(|job| job == kind);
    match &pod.controller {
        None => Ok(None),
        Some(_) if settings.kinds.is_empty() => Ok(None),
        Some(controller) if is_job(&controller.kind) => {
            Ok(Some(format!("{} {}", controller.kind, controller.name)))
        }
        Some(_) => {
            let owners = facts::owners(pod)?;
            let job = owners.into_iter().find(|owner| is_job(&owner.kind));
            Ok(job.map(|owner| format!("{} {}", owner.kind, owner.name)))
        }
    }
}

#[cfg(test)]
mod tests;
