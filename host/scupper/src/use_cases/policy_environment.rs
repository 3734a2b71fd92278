//! The environment of the policies in a configuration file, as each policy checks it for `scupper doctor`.

use std::path::Path;

use scupper_engine::Node;

use super::doctor::Finding;
use scupper_cluster::Cluster;
use scupper_common::clock::Clock;
use scupper_driver::{PoliciesOptions, chain, load_policies};
use scupper_policy::{PolicyFinding, Severity};
use scupper_policy_spec::PolicySpec;

/// Has the policies of a file look, each by itself: one that is not loaded hides no finding of another.
pub(crate) async fn of_file(file: &Path, cluster: &Cluster, node: Option<&str>) -> Vec<Finding> {
    // What is wrong with the file is a finding of its own.
    let Ok(read) = scupper_config::read(file) else {
        return Vec::new();
    };
    let node = match node {
        Some(name) => cluster.node(name).await.ok().flatten(),
        None => None,
    };
    let mut findings = Vec::new();
    for spec in read.policies {
        findings.extend(of_policy(spec, file, cluster, node.as_ref()).await);
    }
    findings
}

async fn of_policy(spec: PolicySpec, file: &Path, cluster: &Cluster, node: Option<&Node>) -> Vec<Finding> {
    let name = spec.name.clone();
    let options = PoliciesOptions {
        policies: vec![spec],
        ..PoliciesOptions::default()
    };
    let loaded = match load_policies(&options, None, Clock::System, cluster).await {
        Ok(loaded) => loaded,
        Err(error) => {
            let remedy = format!("run `scupper config check {}`", file.display());
            return vec![Finding::wrong(name, chain(&error), remedy)];
        }
    };
    let checked = loaded.policies.check(node).await;
    if checked.is_empty() {
        let takes_part = node.is_none_or(|node| loaded.policies.infos().iter().all(|info| info.is_for(node)));
        let text = match takes_part {
            true => "it does not check its surroundings",
            false => "it takes no part in drains of this node (`node-selector`)",
        };
        return vec![Finding::fine(name, text.to_owned())];
    }
    let findings = checked.into_iter().flat_map(|checked| checked.findings);
    findings.map(|found| for_doctor(&name, found)).collect()
}

fn for_doctor(policy: &str, found: PolicyFinding) -> Finding {
    let text = format!("{}: {}", found.subject, found.message);
    match found.severity {
        Severity::Ok => Finding::fine(policy, text),
        Severity::Warning => Finding::note(policy, text, found.fix),
        Severity::Error => Finding::wrong(policy, text, found.fix),
    }
}
