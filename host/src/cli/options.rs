//! What was typed, checked and turned into what `app` works with. All that is wrong is told at once.

use std::path::PathBuf;
use std::time::Duration;

use scupper_engine::{Filters, Settings};

use super::args::{DrainArgs, OnFailure, PluginArgs, PolicyArgs, Scope};
use crate::app::config::{self, is_policy_name};
use crate::app::{PluginOptions, PoliciesOptions};
use crate::policy::PolicySpec;

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
    let settings = drain(&mut problems, &args.drain, args.on_failure);
    let eviction_timeout = problems.check(duration("--eviction-timeout", &args.drain.eviction_timeout));
    let sla = problems.check(duration("--sla", &args.sla));
    let policies = policies(&mut problems, &args.policies);
    let options = (|| {
        Some(PluginOptions {
            kubeconfig: args.cluster.kubeconfig.clone(),
            eviction_timeout: eviction_timeout?,
            driver_name: args.driver_name.clone(),
            node_name: args.node_name.clone(),
            kubelet_root: args.kubelet_root.clone(),
            sla: sla.filter(|sla| !sla.is_zero()),
            node_scope: args.scope == Scope::Node,
            settings: settings?,
            policies: policies?,
            metrics: args.metrics_address,
            ..PluginOptions::default()
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
    let settings = drain(&mut problems, args, OnFailure::Keep);
    let timeout = problems.check(duration("--eviction-timeout", &args.eviction_timeout));
    let policies = policies(&mut problems, chosen);
    let options = (|| Some((settings?, policies?, timeout?)))();
    problems.end(options)
}

fn drain(problems: &mut Problems, args: &DrainArgs, on_failure: OnFailure) -> Option<Settings> {
    let own_pod = problems.check(crate::app::own_pod_from_env(|name| std::env::var(name).ok()));
    Some(Settings {
        filters: Filters {
            force: args.force,
            ignore_daemonsets: args.ignore_daemonsets,
            delete_emptydir_data: args.delete_emptydir_data,
            ..Filters::default()
        },
        grace_seconds: u64::try_from(args.grace_period).ok(),
        own_pod: own_pod?,
        uncordon_on_failure: on_failure == OnFailure::Rollback,
        ..Settings::default()
    })
}

fn policies(problems: &mut Problems, args: &PolicyArgs) -> Option<PoliciesOptions> {
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
    for given in &args.config {
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
    Some(PoliciesOptions {
        policies,
        cache: args.policy_cache.clone(),
        ..PoliciesOptions::default()
    })
}

fn policy(given: &str) -> Result<(String, PathBuf), String> {
    match given.split_once('=') {
        Some((name, file)) if is_policy_name(name) && !file.is_empty() => Ok((name.to_owned(), file.into())),
        Some((name, _)) if !is_policy_name(name) => Err(format!(
            "--policy {given}: the name must be lower-case letters, digits and '-', and at most 40 of them"
        )),
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
            config: vec!["slurm.a=1".into(), "slurm.a=2".into(), "b".into()],
            policy_cache: None,
        };
        let mut problems = Problems::default();
        let options = policies(&mut problems, &args).unwrap();
        assert_eq!(problems.0.len(), 7, "{:?}", problems.0);
        let [slurm] = &options.policies[..] else {
            panic!("{options:?}")
        };
        assert_eq!(
            slurm.grants.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["node-annotations:a/"]
        );
    }
}
