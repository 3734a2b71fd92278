//! What another edition of a recorded drain would have come to: with other policies, or with other settings.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use scupper_engine::{HumanDuration, Outcome, Plan, Pod, PolicyInfo, Settings, StepOutcome, Uid, named};
use scupper_policy_spec::PolicySpec;
use scupper_recording::differences as plan_differences;

use super::dry_run::{Asker, DryRun, PlayedDrain};
use super::offline::{OfflineRuntime, PolicyLoadError};
use super::recorded::RecordedCluster;

/// Pods named in a text about the order.
const NAMED: usize = 3;

/// How a recorded drain is played.
#[derive(Clone, Debug)]
pub(crate) struct Edition {
    /// What asked for it.
    pub asker: Asker,
    pub settings: Settings,
    /// How much time it has; `None`: as much as it needs.
    pub limit: Option<Duration>,
    /// Its policies in order; empty: those that are loaded.
    pub chain: Vec<PolicyInfo>,
    /// The policies that are loaded. The others answer as is recorded.
    pub specs: Vec<PolicySpec>,
    /// The loaded policies that had settings, which no recording has.
    pub without_settings: Vec<String>,
}

/// What is different.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DifferentResult {
    /// A pod, the order in a wave, a hook, what the drain waited for, or the end.
    pub what: String,
    /// In the old edition.
    pub old: String,
    /// In the new one.
    pub new: String,
}

/// What a play needed and no recording has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Unknown {
    /// A policy asked for it. The answer was that there is none.
    Fact(String),
    /// How long something takes. In the play it took no time, or as long as is known at least.
    Time(String),
    /// What this policy makes of another draft. In the play it changed nothing.
    Plan(String),
    /// The settings of this policy. In the play it had none.
    Settings(String),
}

impl fmt::Display for Unknown {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fact(what) | Self::Time(what) => write!(out, "{what}"),
            Self::Plan(policy) => write!(
                out,
                "what policy {policy} makes of another plan than the recorded one"
            ),
            Self::Settings(policy) => write!(out, "the settings of policy {policy}"),
        }
    }
}

/// Two drains from the same beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Comparison {
    /// Empty: none.
    pub differences: Vec<DifferentResult>,
    /// What had to be assumed.
    pub unknown: BTreeSet<Unknown>,
    /// How the drain ends in the old edition.
    pub old_end: String,
}

/// What a drain came to.
#[derive(Debug)]
struct Played {
    plan: Option<Plan>,
    /// The pods of its plan that were still there at the end.
    still_there: String,
    /// What it waited for, in words.
    waits: String,
    outcome: Option<Outcome>,
    took: Duration,
    /// How long each hook took.
    hooks: BTreeMap<String, String>,
    unknown: BTreeSet<Unknown>,
}

/// Plays a recorded drain in both editions.
pub(crate) async fn compare(
    workbench: &OfflineRuntime,
    recorded: &RecordedCluster,
    [old, new]: [&Edition; 2],
) -> Result<Comparison, PolicyLoadError> {
    let old = play(workbench, recorded, old).await?;
    let new = play(workbench, recorded, new).await?;
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
    let [still_there, waits] = ["still there at the end", "waits"];
    differences.extend(different(
        still_there,
        old.still_there.clone(),
        new.still_there.clone(),
    ));
    differences.extend(different(waits, old.waits.clone(), new.waits.clone()));
    // What is not known of both makes no difference.
    if (old.took, &old.outcome) != (new.took, &new.outcome) {
        differences.extend(different("end", old.end(), new.end()));
    }
    Ok(Comparison {
        old_end: old.end(),
        differences,
        unknown: old.unknown.into_iter().chain(new.unknown).collect(),
    })
}

async fn play(
    workbench: &OfflineRuntime,
    recorded: &RecordedCluster,
    edition: &Edition,
) -> Result<Played, PolicyLoadError> {
    let drain = PlayedDrain {
        asker: Some(edition.asker.clone()),
        settings: edition.settings.clone(),
        limit: edition.limit,
        chain: edition.chain.clone(),
        recorded: recorded.policies_without(&edition.specs),
    };
    let (specs, cluster) = (edition.specs.clone(), recorded.cluster());
    let mut run = DryRun::on(workbench, specs, cluster, drain).await?;
    run.drain().await;
    let mut hooks = BTreeMap::new();
    for answer in run.hook_answers() {
        let subject = match answer.subject.as_str() {
            "" => String::new(),
            subject => format!(" of {subject}"),
        };
        let after = HumanDuration(answer.after);
        let text = match &answer.outcome {
            StepOutcome::Done => format!("done after {after}"),
            StepOutcome::Pending { progress, .. } if progress.is_empty() => format!("waits after {after}"),
            StepOutcome::Pending { progress, .. } => format!("waits after {after}: {progress}"),
            StepOutcome::Failed { message, .. } => format!("failed after {after}: {message}"),
        };
        let hook = format!("{} of policy {}{subject}", answer.phase, answer.policy);
        hooks.insert(hook, text);
    }
    let mut unknown: BTreeSet<_> = run.asked_in_vain().into_iter().map(Unknown::Fact).collect();
    unknown.extend(run.unknown_answers().iter().cloned());
    unknown.extend(edition.without_settings.iter().cloned().map(Unknown::Settings));
    let plan = run.planned().cloned();
    let times = recorded.unknown_times(&run.asked_to_leave(), &edition.settings, plan.as_ref());
    unknown.extend(times.into_iter().map(Unknown::Time));
    let history = run.history();
    let stay = history.pods.iter().filter(|pod| pod.gone.is_none());
    let stay: Vec<_> = stay.map(|pod| pod.pod.to_string()).collect();
    Ok(Played {
        plan,
        still_there: if stay.is_empty() {
            "none".to_owned()
        } else {
            counted(&stay)
        },
        waits: scupper::waits_in_words(&history),
        outcome: run.outcome().cloned(),
        took: run.took(),
        hooks,
        unknown,
    })
}

impl Played {
    fn end(&self) -> String {
        // At a deadline a drain ends, whatever takes longer.
        let is_at_deadline = matches!(self.outcome, Some(Outcome::DeadlineExceeded { .. }) | None);
        let is_open = self
            .unknown
            .iter()
            .any(|unknown| matches!(unknown, Unknown::Time(_)));
        let least = if is_open && !is_at_deadline {
            "at least "
        } else {
            ""
        };
        let took = format!("{least}{}", HumanDuration(self.took));
        match &self.outcome {
            Some(outcome @ (Outcome::Blocked { .. } | Outcome::PolicyFailed { .. })) => {
                format!("{} after {took}: {outcome}", outcome.name())
            }
            Some(outcome) => format!("{} after {took}", outcome.name()),
            None => format!("no end within {took}"),
        }
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
            let what = counted(&pods);
            DifferentResult { what, old, new }
        })
        .collect();
    differences.sort_by(|one, other| one.what.cmp(&other.what));
    differences
}

/// Of many, how many they are before the first.
fn counted(pods: &[String]) -> String {
    match pods.len() {
        0..=NAMED => pods.join(", "),
        many => format!("{many} pods: {}", named(pods, NAMED)),
    }
}

/// Waves with the same pods in another order.
fn order(names: &BTreeMap<&Uid, &Pod>, old: &Played, new: &Played) -> Vec<DifferentResult> {
    let (Some(old), Some(new)) = (&old.plan, &new.plan) else {
        return Vec::new();
    };
    let list = |pods: &[Uid]| {
        let pods = pods.iter().filter_map(|pod| names.get(pod));
        named(pods.map(|pod| &pod.id), NAMED)
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
