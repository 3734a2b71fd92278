//! Checks flags and turns them into options of the driver. Reports all problems at once.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use scupper_engine::PodRef;

use scupper_config::{
    Configuration, DrainRequestsFile, DrainSettings, GivenSettings, beside, out_of_reach_text,
};
use scupper_driver::{KubeletPluginOptions, PoliciesOptions};
use scupper_policy_reload::{
    ConfigText, DesiredPolicies, PolicySource, ReloadOptions, has_saved_configuration,
};
use scupper_policy_spec::{PolicySpec, check_policy_name};
use scupper_traces::{TraceSettings, trace_settings};
use scupper_triggers::slm::Claimant;

use super::args::{Claim, EvictAs, PluginArgs, PolicyArgs, ScopeArg};
use crate::output::inform;

/// What is wrong with the command line's values.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct OptionsError(pub Vec<String>);

/// Collects problems, to report all of them at once.
#[derive(Default)]
pub(super) struct Problems(Vec<String>);

impl Problems {
    pub(super) fn check<T>(&mut self, value: Result<T, String>) -> Option<T> {
        value.map_err(|problem| self.0.push(problem)).ok()
    }

    pub(super) fn end<T>(self, value: Option<T>) -> Result<T, OptionsError> {
        match value {
            Some(value) if self.0.is_empty() => Ok(value),
            _ => Err(OptionsError(self.0)),
        }
    }
}

/// The plugin's options.
pub(crate) fn plugin(args: &PluginArgs) -> Result<KubeletPluginOptions, OptionsError> {
    let mut problems = Problems::default();
    let (mut policies, file, _) = policies(&mut problems, &args.policies, ConfigMode::Watched);
    policies.source = args.policies.config.as_deref().map(source);
    let mut flags = args.drain.given(&mut problems);
    if let Some(names) = &args.allow_overrides {
        problems.check(flags.allow_overrides(names));
    }
    if args.evict_as == EvictAs::Node && args.cluster.as_user.is_some() {
        let clash = "--evict-as node already impersonates the node; remove --as";
        problems.check::<()>(Err(clash.to_owned()));
    }
    let keep_finished = problems.check(duration("--keep-finished", &args.keep_finished));
    let mut drain = DrainSettings::default().with(&file).with(&flags);
    drain.engine.own_pod = own_pod(&mut problems).flatten();
    let recordings = args
        .recordings
        .place(&mut problems, policies.reload.state.clone());
    let traces = traces(&mut problems, args.otlp_endpoint.as_deref());
    let options = KubeletPluginOptions {
        connection: args.cluster.connection(),
        driver_name: args.driver_name.clone(),
        node_name: args.node_name.clone(),
        kubelet_root: args.kubelet_root.clone(),
        node_scope: args.scope == ScopeArg::Node,
        claimant: args.claim.into(),
        evict_as_node: args.evict_as == EvictAs::Node,
        keep_finished: keep_finished.unwrap_or_default(),
        drain,
        drain_flags: args.policies.config.as_ref().map(|_| flags),
        policies,
        metrics: args.metrics_address,
        traces,
        recordings,
        lease_namespace: args.lease_namespace.clone(),
        ..KubeletPluginOptions::default()
    };
    problems.end(Some(options))
}

pub(super) fn own_pod(problems: &mut Problems) -> Option<Option<PodRef>> {
    problems.check(scupper_driver::own_pod_from_env(|name| std::env::var(name).ok()))
}

fn traces(problems: &mut Problems, flag: Option<&str>) -> Option<TraceSettings> {
    match trace_settings(flag, |name| std::env::var(name).ok()) {
        Ok(settings) => settings,
        Err(wrong) => {
            problems.0.extend(wrong.iter().map(ToString::to_string));
            None
        }
    }
}

/// The trace collector that the environment names.
pub fn traces_from_env() -> Result<Option<TraceSettings>, OptionsError> {
    let mut problems = Problems::default();
    let traces = traces(&mut problems, None);
    problems.end(Some(traces))
}

impl From<Claim> for Claimant {
    fn from(flag: Claim) -> Self {
        match flag {
            Claim::Auto => Self::Auto,
            Claim::Kubelet => Self::Kubelet,
            Claim::Driver => Self::Driver,
        }
    }
}

/// The file as a driver reads it again when it changes.
fn source(file: &Path) -> PolicySource {
    // What is kept of it must mean the same in another working directory.
    let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    PolicySource {
        files: vec![file.clone()],
        read: Arc::new(move || {
            scupper_config::read(&file)
                .map(desired_policies)
                .map_err(|error| scupper_driver::chain(&error))
        }),
        parse_saved: Arc::new(|said| {
            let read = scupper_config::read_text(&said.file, &said.text);
            read.map(desired_policies)
                .map_err(|error| scupper_driver::chain(&error))
        }),
    }
}

/// What a driver takes from a configuration.
pub fn desired_policies(read: Configuration) -> DesiredPolicies {
    DesiredPolicies {
        policies: read.policies,
        config_text: Some(ConfigText {
            file: read.file,
            text: read.text,
        }),
    }
}

/// How often a configuration file is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ConfigMode {
    OneShot,
    /// A driver keeps the last good one, and starts on it while the file is broken.
    Watched,
}

/// The policies of the file, or else those of the flags, and what else the file says.
pub(super) fn policies(
    problems: &mut Problems,
    args: &PolicyArgs,
    mode: ConfigMode,
) -> (PoliciesOptions, GivenSettings, Option<DrainRequestsFile>) {
    let state = state_dir(args.state_dir.as_deref(), args.policy_cache.as_deref());
    let is_kept = || mode == ConfigMode::Watched && state.as_deref().is_some_and(has_saved_configuration);
    let configuration = match args.config.as_deref().map(scupper_config::read) {
        // The driver says what is wrong with the file when it takes the one that it kept.
        Some(Err(_)) if is_kept() => None,
        Some(read) => problems.check(read.map_err(|error| scupper_driver::chain(&error))),
        None => None,
    };
    let Configuration {
        policies,
        drain,
        drain_requests,
        ..
    } = configuration.unwrap_or_default();
    let options = PoliciesOptions {
        policies: match args.config {
            Some(_) if mode == ConfigMode::Watched => policies,
            Some(ref file) => policies
                .into_iter()
                .map(|policy| in_reach(problems, policy, file))
                .collect(),
            None => from_flags(problems, args),
        },
        cache: args.policy_cache.clone(),
        reload: ReloadOptions {
            state,
            ..ReloadOptions::default()
        },
        ..PoliciesOptions::default()
    };
    (options, drain, drain_requests)
}

/// A driver's configuration names files of its image. For one command, a file of the same name beside the configuration takes
/// the place of one that is not here.
fn in_reach(problems: &mut Problems, policy: PolicySpec, config: &Path) -> PolicySpec {
    if let Some(text) = out_of_reach_text(&policy, config) {
        problems.0.push(format!("--config {}: {text}", config.display()));
        return policy;
    }
    let Some(beside) = beside(&policy.file, config) else {
        return policy;
    };
    inform(&format!(
        "policy {}: {} is loaded in place of {}, which does not exist",
        policy.name,
        beside.display(),
        policy.file.display()
    ));
    PolicySpec {
        file: beside,
        ..policy
    }
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
    scupper_config::duration(text)
        .ok_or_else(|| format!("{flag} {text}: must be a duration such as 90s, 30m or 1h30m"))
}

/// As for `kubectl`: a number alone is seconds, and 0 means no limit.
pub(super) fn request_timeout(text: &str) -> Result<Duration, String> {
    /// Longer than any command runs.
    const NO_LIMIT: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    let seconds = text.parse().ok().map(Duration::from_secs);
    match seconds.or_else(|| scupper_config::duration(text)) {
        Some(limit) if limit.is_zero() => Ok(NO_LIMIT),
        Some(limit) => Ok(limit),
        None => Err("must be a duration such as 10s or 1m".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_problems_are_reported_at_once() {
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
