//! What was typed, checked and turned into what `app` works with. All that is wrong is told at once.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use scupper_engine::{Filters, Settings};

use super::args::{DrainArgs, OnFailure, PluginArgs, PolicyArgs, Scope};
use super::commands::chain;
use crate::app::config::{self, Configuration, DrainFile, OwnCordon};
use crate::app::{PluginOptions, PoliciesOptions};
use crate::policy::{PolicySource, PolicySpec, ReloadOptions, check_policy_name};

/// As the driver drains unless it is told otherwise: without asking a person who is not there.
const FORCE: bool = false;
const IGNORE_DAEMONSETS: bool = true;
const DELETE_EMPTYDIR_DATA: bool = true;

/// What is wrong with the command line's values.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub(crate) struct OptionsError(pub(crate) Vec<String>);

/// Collects problems so that all of them are told at once.
#[derive(Default)]
struct Problems(Vec<String>);

impl Problems {
    fn check<T>(&mut self, value: Result<T, String>) -> Option<T> {
        value.map_err(|problem| self.0.push(problem)).ok()
    }

    fn end<T>(self, value: Option<T>) -> Result<T, OptionsError> {
        match value {
            Some(value) if self.0.is_empty() => Ok(value),
            _ => Err(OptionsError(self.0)),
        }
    }
}

/// The plugin's options.
pub(crate) fn plugin(args: &PluginArgs) -> Result<PluginOptions, OptionsError> {
    let mut problems = Problems::default();
    let (mut policies, file) = policies(&mut problems, &args.policies);
    policies.source = args.policies.config.as_deref().map(source);
    let on_failure = args.on_failure.map(OwnCordon::from).or(file.on_failure);
    let settings = drain(&mut problems, &args.drain, &file, on_failure);
    let eviction_timeout = eviction_timeout(&mut problems, &args.drain, &file);
    let sla = chosen(&mut problems, "--sla", args.sla.as_ref(), file.sla);
    let defaults = PluginOptions::default();
    let options = (|| {
        Some(PluginOptions {
            kubeconfig: args.cluster.kubeconfig.clone(),
            eviction_timeout,
            driver_name: args.driver_name.clone(),
            node_name: args.node_name.clone(),
            kubelet_root: args.kubelet_root.clone(),
            sla: sla.or(defaults.sla).filter(|sla| !sla.is_zero()),
            node_scope: args.scope == Scope::Node,
            settings: settings?,
            policies,
            metrics: args.metrics_address,
            ..defaults
        })
    })();
    problems.end(options)
}

/// What `plan` needs of them.
pub(crate) fn planning(
    args: &DrainArgs,
    chosen: &PolicyArgs,
) -> Result<(Settings, PoliciesOptions, Duration), OptionsError> {
    let mut problems = Problems::default();
    let (policies, file) = policies(&mut problems, chosen);
    let settings = drain(&mut problems, args, &file, file.on_failure);
    let timeout = eviction_timeout(&mut problems, args, &file);
    let options = settings.map(|settings| (settings, policies, timeout));
    problems.end(options)
}

/// A flag that is given wins over the file, and the file over the default.
fn drain(
    problems: &mut Problems,
    args: &DrainArgs,
    file: &DrainFile,
    on_failure: Option<OwnCordon>,
) -> Option<Settings> {
    let own_pod = problems.check(crate::app::own_pod_from_env(|name| std::env::var(name).ok()));
    let defaults = Filters::default();
    let grace_period = args.grace_period.or(file.grace_period);
    Some(Settings {
        filters: Filters {
            force: args.force.or(file.force).unwrap_or(FORCE),
            ignore_daemonsets: args
                .ignore_daemonsets
                .or(file.ignore_daemonsets)
                .unwrap_or(IGNORE_DAEMONSETS),
            delete_emptydir_data: args
                .delete_emptydir_data
                .or(file.delete_emptydir_data)
                .unwrap_or(DELETE_EMPTYDIR_DATA),
            ..defaults
        },
        grace_seconds: grace_period.and_then(|seconds| u64::try_from(seconds).ok()),
        own_pod: own_pod?,
        uncordon_on_failure: on_failure == Some(OwnCordon::Rollback),
        ..Settings::default()
    })
}

fn eviction_timeout(problems: &mut Problems, args: &DrainArgs, file: &DrainFile) -> Duration {
    let flag = args.eviction_timeout.as_ref();
    let timeout = chosen(problems, "--eviction-timeout", flag, file.eviction_timeout);
    timeout.unwrap_or_else(|| PluginOptions::default().eviction_timeout)
}

/// The flag's duration, or else the file's.
fn chosen(
    problems: &mut Problems,
    flag: &str,
    given: Option<&String>,
    file: Option<Duration>,
) -> Option<Duration> {
    match given {
        Some(text) => problems.check(duration(flag, text)),
        None => file,
    }
}

impl From<OnFailure> for OwnCordon {
    fn from(flag: OnFailure) -> Self {
        match flag {
            OnFailure::Keep => Self::Keep,
            OnFailure::Rollback => Self::Rollback,
        }
    }
}

/// The file as a driver reads it again when it changes.
fn source(file: &Path) -> PolicySource {
    let file = file.to_owned();
    PolicySource {
        files: vec![file.clone()],
        read: Arc::new(move || {
            let read = config::read(&file).map_err(|error| chain(&error))?;
            Ok(read.policies)
        }),
    }
}

/// The policies of the file, or else those of the flags, and what else the file says.
fn policies(problems: &mut Problems, args: &PolicyArgs) -> (PoliciesOptions, DrainFile) {
    let configuration = match &args.config {
        Some(file) => problems.check(config::read(file).map_err(|error| chain(&error))),
        None => None,
    };
    let Configuration { policies, drain, .. } = configuration.unwrap_or_default();
    let options = PoliciesOptions {
        policies: match args.config {
            Some(_) => policies,
            None => from_flags(problems, args),
        },
        cache: args.policy_cache.clone(),
        reload: ReloadOptions {
            state: state_dir(args.state_dir.as_deref(), args.policy_cache.as_deref()),
            ..ReloadOptions::default()
        },
        ..PoliciesOptions::default()
    };
    (options, drain)
}

fn from_flags(problems: &mut Problems, args: &PolicyArgs) -> Vec<PolicySpec> {
    let mut policies: Vec<PolicySpec> = Vec::new();
    for given in &args.policies {
        let Some((name, file)) = problems.check(policy(given)) else {
            continue;
        };
        if policies.iter().any(|policy| policy.name == name) {
            problems.0.push(format!(
                "--policy {given}: there is a policy {name} already; give this one another name"
            ));
            continue;
        }
        policies.push(PolicySpec {
            name,
            file,
            ..PolicySpec::default()
        });
    }
    for given in &args.grants {
        let Some((name, grant)) = given.split_once('=') else {
            problems
                .0
                .push(format!("--grant {given}: must be NAME=CAPABILITY:TARGET"));
            continue;
        };
        let Some(policy) = policies.iter_mut().find(|policy| policy.name == name) else {
            problems
                .0
                .push(format!("--grant {given}: there is no --policy {name}=FILE"));
            continue;
        };
        let grant = grant.parse().map_err(|error| format!("--grant {given}: {error}"));
        policy.grants.extend(problems.check(grant));
    }
    for given in &args.policy_config {
        let parsed = given.split_once('=').and_then(|(key, value)| {
            let (name, key) = key.split_once('.')?;
            Some((name, key.to_owned(), value.to_owned()))
        });
        let Some((name, key, value)) = parsed else {
            problems
                .0
                .push(format!("--policy-config {given}: must be NAME.KEY=VALUE"));
            continue;
        };
        match policies.iter_mut().find(|policy| policy.name == name) {
            Some(policy) => {
                if policy.config.insert(key, value).is_some() {
                    problems
                        .0
                        .push(format!("--policy-config {given}: this key is given twice"));
                }
            }
            None => problems.0.push(format!(
                "--policy-config {given}: there is no --policy {name}=FILE"
            )),
        }
    }
    policies
}

/// Where the last good policies are kept: by default beside their compiled code.
pub(super) fn state_dir(given: Option<&Path>, cache: Option<&Path>) -> Option<PathBuf> {
    let beside = || cache.map(|cache| cache.join("state"));
    given.map(Path::to_owned).or_else(beside)
}

fn policy(given: &str) -> Result<(String, PathBuf), String> {
    match given.split_once('=') {
        Some((name, file)) if !file.is_empty() => match check_policy_name(name) {
            Ok(()) => Ok((name.to_owned(), file.into())),
            Err(wrong) => Err(format!("--policy {given}: {wrong}")),
        },
        _ => Err(format!(
            "--policy {given}: must be NAME=FILE, for instance slurm=slurm.wasm"
        )),
    }
}

/// A duration as Kubernetes writes them.
pub(crate) fn duration(flag: &str, text: &str) -> Result<Duration, String> {
    config::duration(text)
        .ok_or_else(|| format!("{flag} {text}: must be a duration such as 90s, 30m or 1h30m"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_wrong_is_told_at_once() {
        let args = PolicyArgs {
            policies: vec![
                "slurm=a.wasm".into(),
                "slurm=b.wasm".into(),
                "Bad=c.wasm".into(),
                "x".into(),
            ],
            grants: vec![
                "slurm=node-annotations:a/".into(),
                "other=b:c".into(),
                "nonsense".into(),
            ],
            policy_config: vec!["slurm.a=1".into(), "slurm.a=2".into(), "b".into()],
            ..PolicyArgs::default()
        };
        let mut problems = Problems::default();
        let policies = from_flags(&mut problems, &args);
        assert_eq!(problems.0.len(), 7, "{:?}", problems.0);
        let [slurm] = &policies[..] else {
            panic!("{policies:?}")
        };
        assert_eq!(
            slurm.grants.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["node-annotations:a/"]
        );
    }
}
