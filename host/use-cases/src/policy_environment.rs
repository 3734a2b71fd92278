//! The environment of the policies in a configuration file, as each policy checks it for `scupper doctor`.

use std::collections::BTreeSet;
use std::path::Path;

use scupper_engine::Node;

use super::doctor::Finding;
use scupper_cluster::Cluster;
use scupper_common::clock::Clock;
use scupper_driver::{LoadedPolicies, PoliciesOptions, chain, load_policies};
use scupper_policy::{PolicyFinding, Severity};
use scupper_policy_spec::{Capability, PolicySpec};

/// Has the policies of a file look, each by itself: one that is not loaded hides no finding of another.
pub(crate) async fn of_file(file: &Path, cluster: &Cluster, node: Option<&str>) -> PolicyEnvironment {
    // What is wrong with the file is a finding of its own.
    let Ok(read) = scupper_config::read(file) else {
        return PolicyEnvironment::default();
    };
    let node = match node {
        Some(name) => cluster.node(name).await.ok().flatten(),
        None => None,
    };
    let mut environment = PolicyEnvironment::default();
    for spec in read.in_reach().policies {
        environment.add_policy(spec, file, cluster, node.as_ref()).await;
    }
    environment
}

/// What was learned of the policies in a file.
#[derive(Debug, Default)]
pub(crate) struct PolicyEnvironment {
    /// What each found.
    pub(crate) findings: Vec<Finding>,
    /// The targets of the facts that they ask for.
    pub(crate) facts: BTreeSet<String>,
    /// Any of them annotates pods.
    pub(crate) annotates_pods: bool,
}

impl PolicyEnvironment {
    async fn add_policy(&mut self, spec: PolicySpec, file: &Path, cluster: &Cluster, node: Option<&Node>) {
        let (name, options) = (
            spec.name.clone(),
            PoliciesOptions {
                policies: vec![spec],
                ..PoliciesOptions::default()
            },
        );
        match load_policies(&options, None, Clock::System, cluster, None).await {
            Ok(loaded) => {
                let described = loaded.policies.descriptions().into_iter();
                for grant in described.flat_map(|it| it.grants) {
                    match grant.capability {
                        Capability::Facts => drop(self.facts.insert(grant.target)),
                        Capability::PodAnnotations => self.annotates_pods = true,
                        _ => {}
                    }
                }
                self.findings.extend(checked(&name, &loaded, node).await);
            }
            Err(error) => {
                let remedy = format!("run `scupper config check {}`", file.display());
                self.findings.push(Finding::wrong(name, chain(&error), remedy));
            }
        }
    }
}

async fn checked(name: &str, loaded: &LoadedPolicies, node: Option<&Node>) -> Vec<Finding> {
    let checked = loaded.policies.check(node).await;
    let mut findings = Vec::new();
    if is_shadow(loaded) {
        let text = "it is a shadow: it plans real drains without effect";
        findings.push(Finding::fine(name, text.to_owned()));
    }
    if checked.is_empty() && findings.is_empty() {
        let takes_part = node.is_none_or(|node| loaded.policies.infos().iter().all(|info| info.is_for(node)));
        let text = match takes_part {
            true => "it does not check its surroundings",
            false => "it takes no part in drains of this node (`node-selector`)",
        };
        return vec![Finding::fine(name, text.to_owned())];
    }
    let found = checked.into_iter().flat_map(|checked| checked.findings);
    findings.extend(found.map(|found| for_doctor(name, found)));
    findings
}

fn is_shadow(loaded: &LoadedPolicies) -> bool {
    let policies = loaded.policies.descriptions().into_iter();
    policies.map(|policy| policy.mode).any(|mode| mode.is_shadow())
}

fn for_doctor(policy: &str, found: PolicyFinding) -> Finding {
    let text = format!("{}: {}", found.subject, found.message);
    match found.severity {
        Severity::Ok => Finding::fine(policy, text),
        Severity::Warning => Finding::note(policy, text, found.fix),
        Severity::Error => Finding::wrong(policy, text, found.fix),
    }
}
