//! `scupper doctor`: what was found, for people and for programs.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::NonEmptyStringValueParser;
use clap_complete::engine::ArgValueCompleter;
use serde_json::{Value, json};

use super::args::{ClusterArgs, EvictAs};
use super::completion;
use super::exit::Exit;
use super::output::Output;
use crate::output::{failed, print, print_lines};
use scupper_cluster::LEASE_NAMESPACE;
use scupper_common::text::spaced_line;
use scupper_report::Format;
use scupper_use_cases::{self as use_cases, DoctorOptions, Finding, FindingState};

/// `scupper doctor`
#[derive(Debug, clap::Args)]
pub struct DoctorArgs {
    /// Node that the driver is to run on [default: check only what concerns all nodes]
    #[arg(long, env = "NODE_NAME", hide_env_values = true, value_name = "NAME", value_parser = NonEmptyStringValueParser::new(), add = ArgValueCompleter::new(completion::nodes))]
    pub node: Option<String>,
    /// Name of the driver
    #[arg(long, default_value = "drain.slm.k8s.io", value_name = "NAME")]
    pub driver_name: String,
    /// Root directory of this machine's kubelet, usually /var/lib/kubelet, to ask it whether it knows SLM; for up to
    /// ten seconds a socket of Scupper appears there [default: do not ask]
    #[arg(long, value_name = "DIR")]
    pub kubelet_root: Option<PathBuf>,
    /// Namespace of the per-node Leases that prevent concurrent drains: the driver's
    #[arg(long, env = "POD_NAMESPACE", hide_env_values = true, default_value = LEASE_NAMESPACE, value_name = "NAMESPACE")]
    pub lease_namespace: String,
    /// Account that evicts pods, as for `scupper kubelet-plugin`
    #[arg(long, value_enum, default_value_t = EvictAs::Driver, hide_possible_values = true, value_name = "driver|node")]
    pub evict_as: EvictAs,
    /// Configuration file of the driver, whose policies then check their surroundings (for --node, if given); run it
    /// where the driver's secrets can be read
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// Runs the checks and prints the findings.
pub(super) async fn run(args: &DoctorArgs, output: Output) -> ExitCode {
    let options = DoctorOptions {
        connection: args.cluster.connection(),
        node: args.node.clone(),
        driver: args.driver_name.clone(),
        kubelet_root: args.kubelet_root.clone(),
        lease_namespace: args.lease_namespace.clone(),
        evict_as_node: args.evict_as == EvictAs::Node,
        config: args.config.clone(),
    };
    match use_cases::doctor(options).await {
        Ok(findings) => {
            for finding in &findings {
                match output.format() {
                    Format::Human => print_lines(&for_people(finding)),
                    Format::Json => print(&output.document(&for_programs(finding))),
                }
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

const fn state_name(state: FindingState) -> &'static str {
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
    let found = format!("{:<6}{subject:<14}{}", state_name(*state), spaced_line(text));
    match remedy {
        Some(remedy) => format!("{found}\n{:<20}{remedy}", "do:"),
        None => found,
    }
}

fn for_programs(finding: &Finding) -> Value {
    json!({
        "subject": finding.subject,
        "state": state_name(finding.state),
        "text": finding.text,
        "remedy": finding.remedy,
    })
}

#[cfg(test)]
mod texts;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_names_the_remedy_and_only_errors_count() {
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
        let json: Value = for_programs(&finding);
        assert_eq!(
            (&json["state"], &json["remedy"]),
            (&json!("wrong"), &json!("add it"))
        );
    }
}
