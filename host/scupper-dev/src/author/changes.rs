//! What is changed about a recorded drain: components of its policies, and what a configuration file says.

use std::fmt;
use std::path::PathBuf;

use scupper_config::{Configuration, DrainSettings};
use scupper_engine::{PolicyInfo, Settings};
use scupper_policy_spec::{PolicyMode, PolicySpec};
use thiserror::Error;

use super::comparison::Edition;
use super::recorded::RecordedCluster;

/// Settings that need a cluster: a play has what the recorded drain had.
const NOT_PLAYED: [&str; 8] = [
    "allow-overrides",
    "eviction-timeout",
    "forbidden-timeout",
    "local-data",
    "notify-before",
    "pre-flight",
    "surge",
    "wait-for-volumes",
];

/// The changes.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Policies by name, with their new components.
    pub components: Vec<(String, PathBuf)>,
    /// What it does not say stays as recorded.
    pub config: Option<Configuration>,
}

/// A policy that is not there.
#[derive(Debug, Error)]
#[error(
    "--policy {name}: {} has no policy of this name{}",
    place.display(), Others(has)
)]
pub(crate) struct NoSuchPolicy {
    /// Its name.
    pub name: String,
    /// The recording, or the configuration file.
    pub place: PathBuf,
    /// The policies that are.
    pub has: Vec<String>,
}

struct Others<'a>(&'a [String]);

impl fmt::Display for Others<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => write!(
                out,
                " and no other; list the policies of the drain in a file for --config"
            ),
            names => write!(out, "; it has {}: name one of these", names.join(", ")),
        }
    }
}

impl Changes {
    /// `announce=new.wasm, scupper.yaml`
    pub(crate) fn text(&self) -> String {
        let components = self.components.iter();
        let components = components.map(|(name, file)| format!("{name}={}", file.display()));
        let config = self.config.iter().map(|config| config.file.display().to_string());
        components.chain(config).collect::<Vec<_>>().join(", ")
    }

    /// The settings of the file that no play follows.
    pub(crate) fn not_played(&self) -> Vec<String> {
        let Some(config) = &self.config else {
            return Vec::new();
        };
        let given = config.drain.file_values();
        let ignored = NOT_PLAYED.iter().filter(|name| given.contains_key(**name));
        ignored
            .map(|name| format!("drain.{name} of {}", config.file.display()))
            .collect()
    }

    /// The drain of the recording in this file with them.
    pub(crate) fn of(&self, recorded: &RecordedCluster, file: PathBuf) -> Result<Edition, NoSuchPolicy> {
        let mut edition = recorded.as_recorded().clone();
        let mut place = (file, recorded.policies.clone());
        if let Some(config) = &self.config {
            edition = with_settings(&edition, config);
            let active = config.policies.iter();
            let active = active.filter(|spec| spec.mode == PolicyMode::Active);
            edition.specs = active.cloned().collect();
            if !config.policies.is_empty() {
                let names: Vec<_> = edition.specs.iter().map(|spec| spec.name.clone()).collect();
                // The host's own planners and hooks stand behind all policies.
                edition
                    .chain
                    .retain(|policy| !recorded.policies.contains(&policy.name));
                edition.chain.splice(..0, names.iter().map(|name| unloaded(name)));
                place = (config.file.clone(), names);
            }
        }
        for (name, component) in &self.components {
            if !place.1.contains(name) {
                let (place, has) = place;
                let name = name.clone();
                return Err(NoSuchPolicy { name, place, has });
            }
            match edition.specs.iter_mut().find(|spec| spec.name == *name) {
                Some(spec) => spec.file.clone_from(component),
                None => {
                    let spec = PolicySpec {
                        name: name.clone(),
                        file: component.clone(),
                        ..PolicySpec::default()
                    };
                    let had_settings = recorded.had_other_settings(&spec);
                    edition
                        .without_settings
                        .extend(had_settings.then(|| name.clone()));
                    edition.specs.push(spec);
                }
            }
        }
        Ok(edition)
    }
}

/// A policy whose place in the chain is known, and nothing else yet.
fn unloaded(name: &str) -> PolicyInfo {
    PolicyInfo {
        name: name.to_owned(),
        ..PolicyInfo::default()
    }
}

fn with_settings(edition: &Edition, config: &Configuration) -> Edition {
    let before = DrainSettings {
        engine: edition.settings.clone(),
        time_limit: edition.limit,
        ..DrainSettings::default()
    };
    let after = before.with(&config.drain);
    let recorded = edition.settings.clone();
    Edition {
        settings: Settings {
            surge: recorded.surge,
            local_data: recorded.local_data,
            notify_before: recorded.notify_before,
            refuse_certain: recorded.refuse_certain,
            wait_for_volumes: recorded.wait_for_volumes,
            forbidden_timeout: recorded.forbidden_timeout,
            ..after.engine
        },
        limit: after.time_limit,
        ..edition.clone()
    }
}
