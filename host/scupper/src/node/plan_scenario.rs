//! Saves plans as scenarios for `scupper policy test`: the objects that were read, the policies, and what they decided.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use scupper_engine::{Blocker, Decision, Outcome, Plan, PodRef, Uid, Verdict, Wave};
use serde_json::{Map, Value, json};
use thiserror::Error;

use super::options::Draining;
use crate::yaml;
use scupper_runner::pre_flight;
use scupper_use_cases::Planned;

/// The file with the objects; a scenario is named after its node.
const SNAPSHOT: &str = "cluster.json";
/// In front of each scenario.
const HEAD: &str = "\
# Saved by scupper plan. Replay it with `scupper policy test`. In the folder `scenarios` of a policy's crate, remove the
# policy's `module`: the test then builds the crate and runs what it has built.
";

/// Why a scenario could not be saved.
#[derive(Debug, Error)]
pub(crate) enum SaveError {
    /// The configuration cannot be read again.
    #[error("cannot read {} again", file.display())]
    Configuration {
        /// The file.
        file: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The configuration has changed since it was loaded.
    #[error("{} has changed since Scupper loaded it; try again", .0.display())]
    Changed(PathBuf),
    /// A file cannot be written. An existing one is never replaced.
    #[error("cannot create {}", file.display())]
    Create {
        /// The file or folder.
        file: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
}

/// The inputs of the plans.
pub(super) struct Made<'a> {
    pub(super) config: &'a Path,
    pub(super) draining: &'a Draining,
}

/// Creates one scenario for each plan, and one file with all objects. Returns the scenarios. Blocks.
pub(super) fn save(
    folder: &Path,
    made: &Made<'_>,
    plans: &[Planned],
    objects: &Value,
) -> Result<Vec<PathBuf>, SaveError> {
    let (policies, drain) = configuration(made)?;
    let mut files = vec![(folder.join(SNAPSHOT), format!("{objects:#}\n"))];
    for planned in plans {
        let scenario = json!({
            "about": format!("Node {} as scupper plan found it", planned.node),
            "time": scupper_common::clock::rfc3339(planned.at),
            "request": {"trigger": planned.asked_by.trigger.name(), "name": planned.asked_by.name},
            "policies": policies,
            "drain": drain,
            "cluster": SNAPSHOT,
            "node": planned.node,
            "plan": expectations(planned),
        });
        let text = format!("{HEAD}{}\n", yaml::document(&scenario));
        files.push((folder.join(format!("{}.yaml", planned.node)), text));
    }
    create_all(folder, &files)?;
    Ok(files.into_iter().skip(1).map(|(file, _)| file).collect())
}

/// All of the files or none: an older scenario stays what it is.
fn create_all(folder: &Path, files: &[(PathBuf, String)]) -> Result<(), SaveError> {
    std::fs::create_dir_all(folder).map_err(|source| SaveError::Create {
        file: folder.to_owned(),
        source,
    })?;
    for (at, (file, text)) in files.iter().enumerate() {
        let mut exists = true;
        let written = std::fs::File::create_new(file).and_then(|mut opened| {
            exists = false;
            opened.write_all(text.as_bytes())
        });
        if let Err(source) = written {
            let ours = files.iter().take(if exists { at } else { at + 1 });
            for (file, _) in ours {
                let _gone = std::fs::remove_file(file);
            }
            let file = file.clone();
            return Err(SaveError::Create { file, source });
        }
    }
    Ok(())
}

/// The sections `policies` and `drain`, as they were in effect.
fn configuration(made: &Made<'_>) -> Result<(Value, Value), SaveError> {
    let changed = || SaveError::Changed(made.config.to_owned());
    let text = std::fs::read_to_string(made.config).map_err(|source| SaveError::Configuration {
        file: made.config.to_owned(),
        source,
    })?;
    let mut whole: Map<String, Value> = serde_saphyr::from_str(&text).map_err(|_| changed())?;
    let mut policies = whole.remove("policies").unwrap_or_default();
    let entries = policies.as_array_mut().ok_or_else(changed)?;
    if entries.len() != made.draining.policies.policies.len() {
        return Err(changed());
    }
    for (entry, policy) in entries.iter_mut().zip(&made.draining.policies.policies) {
        let file = std::path::absolute(&policy.file).unwrap_or_else(|_| policy.file.clone());
        let fields = entry.as_object_mut().ok_or_else(changed)?;
        fields.insert("module".to_owned(), file.display().to_string().into());
    }
    let drain = match whole.remove("drain") {
        Some(Value::Object(drain)) => drain,
        _ => Map::new(),
    };
    Ok((policies, drain_section(drain, made)))
}

/// Writes flags into the settings, and the command's defaults where the file says nothing: a scenario has only the file.
fn drain_section(mut drain: Map<String, Value>, made: &Made<'_>) -> Value {
    for (key, value) in made.draining.defaults.file_values() {
        drain.entry(key).or_insert(value);
    }
    drain.extend(made.draining.flags.file_values());
    match made.draining.settings.time_limit {
        Some(timeout) => drain.insert("sla".to_owned(), milliseconds(timeout).into()),
        None => drain.remove("sla"),
    };
    Value::Object(drain)
}

/// The plan as a scenario's section `plan`, in full.
fn expectations(planned: &Planned) -> Value {
    let names: BTreeMap<&Uid, &PodRef> = planned.pods.iter().map(|pod| (&pod.id.uid, &pod.id)).collect();
    let name = |uid: &Uid| {
        names
            .get(uid)
            .map_or_else(|| uid.to_string(), ToString::to_string)
    };
    match &planned.result {
        Ok(plan) => expected_plan(plan, &name),
        // A scenario runs the policies, not the host's own check behind them.
        Err(Outcome::Blocked { pods }) if pods.iter().any(is_of_host) => json!({}),
        Err(Outcome::Blocked { pods }) => {
            let refused = pods
                .iter()
                .map(|blocker| (blocker.pod.to_string(), Value::from(blocker.reason.clone())));
            let reasons: Map<String, Value> = refused.collect();
            let names: Vec<&String> = reasons.keys().collect();
            json!({ "refuse": names, "reasons": reasons })
        }
        // A scenario's plan cannot express another end: the replay shows whether there is a plan.
        Err(_) => json!({}),
    }
}

fn is_of_host(blocker: &Blocker) -> bool {
    blocker.policy == pre_flight::PLANNER
}

fn expected_plan(plan: &Plan, name: &dyn Fn(&Uid) -> String) -> Value {
    let of = |verdict: Verdict| -> Vec<String> {
        let decisions = plan
            .decisions
            .iter()
            .filter(|decision| decision.verdict == verdict);
        decisions.map(|decision| name(&decision.pod)).collect()
    };
    let reason = |decision: &Decision| (name(&decision.pod), Value::from(decision.reason.clone()));
    let reasons: Map<String, Value> = plan.decisions.iter().map(reason).collect();
    let waves: Vec<Value> = plan.waves.iter().map(|wave| expected_wave(wave, name)).collect();
    json!({
        "evict": of(Verdict::Evict),
        "delete": of(Verdict::Delete),
        "await-completion": of(Verdict::AwaitCompletion),
        "keep": of(Verdict::Keep),
        "waves": waves,
        "reasons": reasons,
    })
}

fn expected_wave(wave: &Wave, name: &dyn Fn(&Uid) -> String) -> Value {
    let pods: Vec<String> = wave.pods.iter().map(name).collect();
    let mut fields = Map::new();
    fields.insert("name".to_owned(), wave.name.clone().into());
    fields.insert("pods".to_owned(), pods.into());
    if let Some(most) = wave.max_parallel {
        fields.insert("max-parallel".to_owned(), most.into());
    }
    if let Some(timeout) = wave.timeout {
        fields.insert("timeout".to_owned(), milliseconds(timeout).into());
    }
    if let Some(seconds) = wave.max_grace_seconds {
        fields.insert("max-grace-period".to_owned(), format!("{seconds}s").into());
    }
    Value::Object(fields)
}

fn milliseconds(time: Duration) -> String {
    format!("{}ms", time.as_millis())
}
