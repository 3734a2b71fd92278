//! `scupper doctor`: what was found, for people and for programs.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;

use super::args::{ClusterArgs, EvictAs};
use super::commands::{failed, print};
use super::exit::Exit;
use crate::app::{self, DoctorOptions, Finding, FindingState};
use crate::cluster::LEASE_NAMESPACE;
use crate::report::Format;
use crate::text::spaced_line;

/// `scupper doctor`
#[derive(Debug, clap::Args)]
pub struct DoctorArgs {
    /// The node that the driver is to run on. Without it only what concerns all nodes is looked at.
    #[arg(long, env = "NODE_NAME", value_name = "NAME")]
    pub node: Option<String>,
    /// The driver's name.
    #[arg(long, default_value = "drain.slm.k8s.io", value_name = "NAME")]
    pub driver_name: String,
    /// Ask this machine's kubelet whether it knows SLM, below this directory: /var/lib/kubelet as a rule. For ten
    /// seconds at most a socket of ours is there for it to find.
    #[arg(long, value_name = "DIR")]
    pub kubelet_root: Option<PathBuf>,
    /// The namespace of the leases of nodes: the driver's own.
    #[arg(long, env = "POD_NAMESPACE", default_value = LEASE_NAMESPACE, value_name = "NAMESPACE")]
    pub lease_namespace: String,
    /// As whom the driver evicts pods, as its flag of this name says.
    #[arg(long, value_enum, default_value_t = EvictAs::Driver)]
    pub evict_as: EvictAs,
    /// The driver's configuration file: its policies check their surroundings (with --node, for this node), and which flags
    /// of `scupper drain` may override it is shown. Run it where the driver's secrets can be read.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// Looks, and tells.
pub(super) async fn run(args: &DoctorArgs, format: Format) -> ExitCode {
    let options = DoctorOptions {
        kubeconfig: args.cluster.kubeconfig.clone(),
        node: args.node.clone(),
        driver: args.driver_name.clone(),
        kubelet_root: args.kubelet_root.clone(),
        lease_namespace: args.lease_namespace.clone(),
        evict_as_node: args.evict_as == EvictAs::Node,
        config: args.config.clone(),
    };
    match app::doctor(options).await {
        Ok(findings) => {
            for finding in &findings {
                print(&match format {
                    Format::Human => for_people(finding),
                    Format::Json => for_programs(finding),
                });
            }
            exit_of(&findings).into()
        }
        Err(error) => failed(&error),
    }
}

fn exit_of(findings: &[Finding]) -> Exit {
    let wrong = |finding: &Finding| finding.state == FindingState::Wrong;
    if findings.iter().any(wrong) {
        Exit::Found
    } else {
        Exit::Done
    }
}

const fn word(state: FindingState) -> &'static str {
    match state {
        FindingState::Fine => "ok",
        FindingState::Note => "note",
        FindingState::Wrong => "wrong",
    }
}

fn for_people(finding: &Finding) -> String {
    let Finding {
        subject,
        state,
        text,
        remedy,
    } = finding;
    // The API server's and the kubelet's words are in it.
    let found = format!("{:<6}{subject:<14}{}", word(*state), spaced_line(text));
    match remedy {
        Some(remedy) => format!("{found}\n{:<20}{remedy}", "do:"),
        None => found,
    }
}

fn for_programs(finding: &Finding) -> String {
    json!({
        "subject": finding.subject,
        "state": word(finding.state),
        "text": finding.text,
        "remedy": finding.remedy,
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_says_what_to_do_and_only_what_is_wrong_counts() {
        let mut finding = Finding {
            subject: "rights".to_owned(),
            state: FindingState::Note,
            text: "no right to delete pods".to_owned(),
            remedy: Some("add it".to_owned()),
        };
        assert_eq!(
            for_people(&finding),
            "note  rights        no right to delete pods\ndo:                 add it"
        );
        assert_eq!(exit_of(std::slice::from_ref(&finding)), Exit::Done);
        finding.state = FindingState::Wrong;
        assert_eq!(exit_of(std::slice::from_ref(&finding)), Exit::Found);
        let json: serde_json::Value = serde_json::from_str(&for_programs(&finding)).unwrap();
        assert_eq!(
            (&json["state"], &json["remedy"]),
            (&json!("wrong"), &json!("add it"))
        );
    }
}
