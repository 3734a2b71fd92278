//! Whether a policy of the configuration loosens what an earlier one of the chain decides, for the pods of a node.

use std::path::Path;

use scupper_engine::Settings;

use super::Finding;
use crate::plan::plan_of_node;
use scupper_cluster::Cluster;
use scupper_common::clock::Clock;
use scupper_driver::{PoliciesOptions, load_policies};
use scupper_policy_reload::Session;
use scupper_report::loosened_texts;

const SUBJECT: &str = "chain";
const REMEDY: &str = "change the rules of one of them, or list the later policy first";

/// What the policies of a file decide together. What is wrong with one of them is a finding of its own.
pub(super) async fn of_file(
    file: &Path,
    cluster: &Cluster,
    node: Option<&str>,
    settings: &Settings,
) -> Vec<Finding> {
    let Ok(read) = scupper_config::read(file) else {
        return Vec::new();
    };
    let options = PoliciesOptions {
        policies: read.policies,
        ..PoliciesOptions::default()
    };
    let Ok(loaded) = load_policies(&options, None, Clock::System, cluster, None).await else {
        return Vec::new();
    };
    let session = Session::fixed(loaded.policies);
    if session.infos().iter().filter(|policy| policy.planner).count() < 2 {
        return Vec::new();
    }
    let Some(node) = node else {
        let text = "whether a policy loosens what an earlier one decides depends on the pods of a node, and none was named";
        return vec![Finding::note(
            SUBJECT,
            text.to_owned(),
            "add --node NAME".to_owned(),
        )];
    };
    let planned = match plan_of_node(cluster, &session, node, settings).await {
        Ok(planned) => planned,
        Err(error) => {
            let text = format!("no plan of node {node} can be made: {error}");
            return vec![Finding::note(SUBJECT, text, String::new())];
        }
    };
    match &planned.result {
        Ok(plan) if plan.loosened.is_empty() => {
            let text = format!("no policy loosens what an earlier one decides for the pods of {node}");
            vec![Finding::fine(SUBJECT, text)]
        }
        Ok(plan) => {
            let texts = loosened_texts(plan, &planned.pods).into_iter();
            let found = |text| {
                Finding::note(
                    SUBJECT,
                    format!("a later policy loosens: {text}"),
                    REMEDY.to_owned(),
                )
            };
            texts.map(found).collect()
        }
        Err(outcome) => {
            let text = format!("a drain of node {node} would end at once: {outcome}");
            vec![Finding::note(SUBJECT, text, format!("run `scupper plan {node}`"))]
        }
    }
}
