//! Lets jobs end before their pods are evicted, and asks those that can for a checkpoint.

mod checkpoints;
mod evictions;
mod settings;

use scupper_sdk::{
    Call, Description, Draft, Drain, Grant, Hold, Hooks, Node, Outcome, Phase, Planner, Pod, Policy, Problem,
    Verdict, config, description, facts, hold,
};

use crate::{checkpoints::Unasked, evictions::Evictions, settings::Settings};

/// How the names of waves that wait begin.
const WAVES: &str = "jobs";

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
            if let Some(checkpoints) = settings.checkpoints {
                description = description.wants(checkpoints.grant());
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
        let (mut held, mut awaited) = (Vec::new(), Vec::new());
        let mut evictions = Evictions::default();
        for pod in draft.running() {
            let Some((hold, why)) = hold_of(&settings, pod)? else {
                continue;
            };
            if settings.keeps_jobs
                && draft.removes(pod)
                && let Some(job) = evictions.job_that_fails(pod)?
            {
                let reason = format!("its eviction would fail Job {} for good", job.name);
                draft.tighten(pod, Verdict::AwaitCompletion, None, reason);
                awaited.push(pod);
                continue;
            }
            let reason = format!("{why}, evicted {}", hold.when(pod, drain));
            if draft.tighten(pod, Verdict::Evict, Some(hold.of_pod(pod, drain)), reason) {
                held.push((pod, hold));
            }
        }
        draft.hold(WAVES, drain, held);
        // Such a pod may run for days, and must not delay the others.
        draft.await_last(awaited);
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
        let unasked = match &settings.checkpoints {
            // All pods save at the same time.
            Some(checkpoints) if call.phase == Phase::BeforeDrain => {
                return checkpoints::ask_all(checkpoints, call);
            }
            Some(checkpoints) if call.phase == Phase::OnCancel => {
                return checkpoints
                    .withdraw(call)
                    .map_or_else(Outcome::from, |()| Outcome::Done);
            }
            // Those that came later, and those that could not be asked yet.
            Some(checkpoints) => Unasked::of(checkpoints, call),
            None => Unasked::default(),
        };
        hold::step(WAVES, call, |pod| awaited(&settings, pod, call, &unasked))
    }
}

/// How long a pod may run, and why; `None`: as long as any other pod.
fn hold_of(settings: &Settings, pod: &Pod) -> Result<Option<(Hold, String)>, facts::Error> {
    if let Some(time) = settings.checkpoint_time(pod) {
        return Ok(Some((Hold::at_most(time), "saves a checkpoint".to_owned())));
    }
    let label = settings
        .labels
        .iter()
        .find(|label| label.matches(pod.label(label.key())));
    let what = match label {
        Some(label) => Some(format!("label {label}")),
        None => facts::owner_of_kind(pod, &settings.kinds)?,
    };
    Ok(what.map(|what| {
        let (cap, odd) = settings.cap_of(pod);
        let why = match odd {
            Some(odd) => format!("{what}, {odd}"),
            None => what,
        };
        (Hold::at_most(cap), why)
    }))
}

/// What a pod still has to do before it may leave.
fn awaited(settings: &Settings, pod: &Pod, call: &Call, unasked: &Unasked<'_>) -> Option<String> {
    match &settings.checkpoints {
        Some(checkpoints) if checkpoints.is_done(pod, &call.drain) => None,
        _ if settings.checkpoint_time(pod).is_some() => Some(unasked.why(pod)),
        _ => Some("still runs".to_owned()),
    }
}

#[cfg(test)]
mod tests;
