//! What another edition of a policy would have made of recorded drains.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use scupper_engine::{HumanDuration, Outcome, Plan, Pod, Settings, StepOutcome, Uid};
use scupper_policy_spec::PolicySpec;
use scupper_recording::differences as plan_differences;

use super::dry_run::DryRun;
use super::offline::{OfflineRuntime, PolicyLoadError};
use super::recorded::RecordedCluster;

/// Pods named in a text about the order.
const NAMED: usize = 3;

/// What is different.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DifferentResult {
    /// A pod, the order in a wave, a hook, or the end.
    pub what: String,
    /// With the old component.
    pub old: String,
    /// With the new one.
    pub new: String,
}

/// Two drains from the same beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Comparison {
    /// Empty: none.
    pub differences: Vec<DifferentResult>,
    /// What a policy asked for and no recording has; the answer was that there is nothing.
    pub unknown: BTreeSet<String>,
    /// How the drain ends with the old component.
    pub old_end: String,
}

/// What a drain came to.
#[derive(Debug)]
struct Played {
    plan: Option<Plan>,
    end: String,
    /// How long each hook took.
    hooks: BTreeMap<String, String>,
}

/// Plays a recorded drain with both components. Other policies of the drain have no part in it.
pub(crate) async fn compare(
    workbench: &OfflineRuntime,
    recorded: &RecordedCluster,
    [old, new]: [&PolicySpec; 2],
) -> Result<Comparison, PolicyLoadError> {
    let mut unknown = BTreeSet::new();
    let old = play(workbench, recorded, old, &mut unknown).await?;
    let new = play(workbench, recorded, new, &mut unknown).await?;
    let names: BTreeMap<&Uid, &Pod> = recorded.pods().map(|pod| (&pod.id.uid, pod)).collect();
    let mut differences = pods(&names, &old, &new);
    if differences.is_empty() {
        differences = order(&names, &old, &new);
    }
    let hooks: BTreeSet<&String> = old.hooks.keys().chain(new.hooks.keys()).collect();
    let took = |played: &Played, hook: &String| {
        let took = played.hooks.get(hook);
        took.cloned().unwrap_or_else(|| "not called".to_owned())
    };
    differences.extend(
        hooks
            .into_iter()
            .filter_map(|hook| different(&format!("hook {hook}"), took(&old, hook), took(&new, hook))),
    );
    let old_end = old.end.clone();
    differences.extend(different("end", old.end, new.end));
    Ok(Comparison {
        differences,
        unknown,
        old_end,
    })
}

async fn play(
    workbench: &OfflineRuntime,
    recorded: &RecordedCluster,
    spec: &PolicySpec,
    unknown: &mut BTreeSet<String>,
) -> Result<Played, PolicyLoadError> {
    // Surges, and looks at a machine that is off, need what no recording has.
    let settings = Settings {
        surge: None,
        machine_is_off: false,
        ..recorded.settings.clone()
    };
    let (cluster, limit) = (recorded.cluster(), recorded.limit);
    let mut run = DryRun::on(workbench, spec.clone(), cluster, settings, limit).await?;
    run.drain().await;
    let hooks = run.hook_answers().iter().map(|answer| {
        let subject = match answer.subject.as_str() {
            "" => String::new(),
            subject => format!(" of {subject}"),
        };
        let after = HumanDuration(answer.after);
        let text = match &answer.outcome {
            StepOutcome::Done => format!("done after {after}"),
            StepOutcome::Pending { progress, .. } => format!("waits after {after}: {progress}"),
            StepOutcome::Failed { message, .. } => format!("failed after {after}: {message}"),
        };
        (format!("{}{subject}", answer.phase), text)
    });
    let hooks = hooks.collect();
    unknown.extend(run.asked_in_vain());
    Ok(Played {
        plan: run.planned().cloned(),
        end: end(run.outcome(), run.took()),
        hooks,
    })
}

fn end(outcome: Option<&Outcome>, took: Duration) -> String {
    let took = HumanDuration(took);
    match outcome {
        Some(outcome @ (Outcome::Blocked { .. } | Outcome::PolicyFailed { .. })) => {
            format!("{} after {took}: {outcome}", outcome.name())
        }
        Some(outcome) => format!("{} after {took}", outcome.name()),
        None => format!("no end within {took}"),
    }
}

fn different(what: &str, old: String, new: String) -> Option<DifferentResult> {
    let what = what.to_owned();
    (old != new).then_some(DifferentResult { what, old, new })
}

/// Pods with another verdict, wave or grace period: those with the same change together.
fn pods(known: &BTreeMap<&Uid, &Pod>, old: &Played, new: &Played) -> Vec<DifferentResult> {
    // Without a plan the end says why.
    let (Some(old), Some(new)) = (&old.plan, &new.plan) else {
        return Vec::new();
    };
    let mut changes: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    let pods: Vec<Pod> = known.values().map(|pod| (*pod).clone()).collect();
    for difference in plan_differences(old, new, &pods) {
        let change = (difference.active.to_string(), difference.shadow.to_string());
        // A place in a wave is in neither text.
        if change.0 != change.1 {
            changes
                .entry(change)
                .or_default()
                .push(difference.pod.to_string());
        }
    }
    let mut differences: Vec<_> = changes
        .into_iter()
        .map(|((old, new), mut pods)| {
            pods.sort();
            let what = match pods.len() {
                0..=NAMED => pods.join(", "),
                many => format!("{many} pods: {}", first(pods.into_iter())),
            };
            DifferentResult { what, old, new }
        })
        .collect();
    differences.sort_by(|one, other| one.what.cmp(&other.what));
    differences
}

/// A few of many.
fn first(mut pods: impl ExactSizeIterator<Item = String>) -> String {
    let named: Vec<_> = pods.by_ref().take(NAMED).collect();
    match pods.len() {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// Waves with the same pods in another order.
fn order(names: &BTreeMap<&Uid, &Pod>, old: &Played, new: &Played) -> Vec<DifferentResult> {
    let (Some(old), Some(new)) = (&old.plan, &new.plan) else {
        return Vec::new();
    };
    let list = |pods: &[Uid]| {
        let pods: Vec<_> = pods.iter().filter_map(|pod| names.get(pod)).collect();
        first(pods.into_iter().map(|pod| pod.id.to_string()))
    };
    let waves = old.waves.iter().zip(&new.waves).enumerate();
    waves
        .filter(|(_, (old, new))| old.pods != new.pods)
        .map(|(number, (old, new))| {
            let first = old.pods.iter().zip(&new.pods).position(|(old, new)| old != new);
            let from = first.unwrap_or_default();
            let rest = |pods: &[Uid]| list(pods.get(from..).unwrap_or_default());
            DifferentResult {
                what: format!(
                    "order in wave {} {}, from pod {} on",
                    number + 1,
                    old.name,
                    from + 1
                ),
                old: rest(&old.pods),
                new: rest(&new.pods),
            }
        })
        .collect()
}
