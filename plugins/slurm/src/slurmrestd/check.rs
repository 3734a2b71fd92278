//! Checks whether drains can succeed, for `scupper doctor` and when the driver loads the policy. Changes nothing.

use scupper_sdk::time::length;
use scupper_sdk::{Finding, Node, cluster, count};

use super::hook_state::HookState;
use super::naming::Naming;
use super::node::SlurmNode;
use super::reason;
use super::server::{REQUEUES, Server};
use super::settings::Slurmrestd;
use super::slurm_error::SlurmError;
use super::{messages, search};
use crate::settings::{HeldPods, Settings};
use crate::slurmrestd::ladder::Action;

/// The most bytes of one entry in the lists that grow with the cluster.
const BYTES_OF_NODE: usize = 3_000;
const BYTES_OF_STATE: usize = 90;
const BYTES_OF_JOB: usize = 9_000;

const TOKEN: &str = "token";
const RIGHTS: &str = "rights";
const NODE_NAME: &str = "node name";
const LIMITS: &str = "response limit";
const LADDER: &str = "ladder";
/// The most heterogeneous jobs to name.
const MOST: usize = 5;

/// Checks everything that a drain needs from slurmrestd.
pub(crate) fn check_all(all: &Settings, node: Option<&Node>) -> Vec<Finding> {
    let settings = &all.slurmrestd;
    let mut server = Server::new(settings, None);
    let nodes = match server.nodes() {
        Ok(nodes) => nodes,
        Err(error) => return vec![failed(&error)],
    };
    let version = server.version.unwrap_or_default();
    let mut findings = vec![
        Finding::ok(TOKEN, "Slurm accepts it"),
        Finding::ok("API version", format!("slurmrestd serves v0.0.{version}")),
        listed(nodes.len(), "node", BYTES_OF_NODE),
    ];
    let found = node.map(|node| in_slurm(all, node, &nodes, &mut findings));
    // Any node shows the permission.
    findings.extend(
        found
            .flatten()
            .or_else(|| nodes.first())
            .map(|node| right(&server, node)),
    );
    findings.push(jobs(&server));
    findings.extend(ladder(settings, &server));
    if let Some(node) = found.flatten() {
        findings.extend(heterogeneous(settings, &server, node));
    }
    findings
}

/// The finding for an error that ends the checks.
fn failed(error: &SlurmError) -> Finding {
    let (subject, fix) = match error {
        SlurmError::Token(_) => (
            TOKEN,
            "write a token of an operator to the file of the secret `token`: scontrol token username=slurm lifespan=86400 \
             | sed s/^SLURM_JWT=//",
        ),
        SlurmError::NotAllowed(_) => (
            RIGHTS,
            "sacctmgr modify user where name=NAME set adminlevel=operator",
        ),
        SlurmError::TooOld(_) | SlurmError::NoVersion(_) | SlurmError::NotServed(_) => ("API version", ""),
        SlurmError::TooLong { .. } => (LIMITS, ""),
        SlurmError::NoController(_) => ("slurmctld", "scontrol ping"),
        SlurmError::NotGranted(_) => ("grants", ""),
        SlurmError::NoCluster(error) => return error.finding(),
        _ => ("slurmrestd", ""),
    };
    Finding::error(subject, error.to_string(), fix)
}

/// The node in Slurm.
fn in_slurm<'a>(
    all: &Settings,
    node: &Node,
    nodes: &'a [SlurmNode],
    findings: &mut Vec<Finding>,
) -> Option<&'a SlurmNode> {
    let settings = &all.slurmrestd;
    if settings.naming == Naming::Pods {
        findings.push(Finding::ok(
            NODE_NAME,
            "each Slurm pod has its own Slurm node; a drain finds it",
        ));
        findings.extend(without_pod(all, || {
            "it has no Slurm node: its drains do not wait for jobs".to_owned()
        }));
        return None;
    }
    let names = settings.naming.names(&settings.table, node, &[]);
    let missing = match names.as_deref() {
        Ok([name, ..]) => match nodes.iter().find(|known| known.name == *name) {
            Some(found) => {
                findings.push(standing(all, node, found));
                findings.extend(unheld(all, found));
                return Some(found);
            }
            None => format!("{name} is not among Slurm's {}", count(nodes.len(), "node")),
        },
        Ok([]) => return None,
        Err(missing) => missing.clone(),
    };
    findings.push(if settings.ignores_unknown {
        let message = format!("{missing}: drained without Slurm, as configured by `not-in-slurm`");
        Finding::warning(NODE_NAME, message, "")
    } else {
        let fix = "set `slurm-node` or `slurm-node-table`, or `not-in-slurm` to `ignore`";
        Finding::error(NODE_NAME, missing, fix)
    });
    None
}

fn standing(settings: &Settings, kubernetes: &Node, node: &SlurmNode) -> Finding {
    let message = match node.reason.trim() {
        "" => format!("{} is {} in Slurm", node.name, node.state()),
        reason => format!("{} is {} in Slurm: {reason}", node.name, node.state()),
    };
    let ours = match reason::has_drained(kubernetes, settings, node) {
        Ok(ours) => ours,
        Err(error) => return failed(&error),
    };
    if ours {
        let fix = format!(
            "when the maintenance is over: scupper uncordon {}",
            kubernetes.name
        );
        return Finding::warning(NODE_NAME, message, fix);
    }
    if node.is_draining() && reason::is_of_scupper(node) {
        let fix = "uncordon that node, or correct `slurm-node`: two nodes cannot share one Slurm node";
        return Finding::error(NODE_NAME, message, fix);
    }
    if node.is_draining() || node.is_out_of_service() {
        let fix = format!(
            "if this is resolved: scontrol update NodeName={} State=RESUME",
            node.name
        );
        return Finding::warning(NODE_NAME, message, fix);
    }
    Finding::ok(NODE_NAME, message)
}

/// Jobs without a pod before which a drain would wait for them.
fn unheld(settings: &Settings, node: &SlurmNode) -> Option<Finding> {
    if settings.hold == HeldPods::Node {
        return None;
    }
    without_pod(settings, || {
        let then = if settings.slurmrestd.holds_without_pods {
            "its drains hold all pods until the jobs have ended"
        } else {
            "its drains are refused while it has jobs"
        };
        format!(
            "with `hold: slurm-pods` jobs of {} are awaited before such pods leave; {then}",
            node.name
        )
    })
}

/// The finding for a Kubernetes node without Slurm pods.
fn without_pod(settings: &Settings, then: impl FnOnce() -> String) -> Option<Finding> {
    const HOLD: &str = "hold";
    let pods = match cluster::list_pods() {
        Ok(pods) => pods,
        Err(error) => {
            return Some(Finding::warning(
                HOLD,
                format!("the node's pods cannot be read: {error}"),
                "",
            ));
        }
    };
    if pods.iter().any(|pod| settings.covers(pod)) {
        return None;
    }
    Some(Finding::warning(
        HOLD,
        format!("the node has no pod with the labels of `label`; {}", then()),
        "correct `label` and `namespace`",
    ))
}

/// Heterogeneous jobs on the node that a ladder meets: what it does with their parts on other nodes.
fn heterogeneous(settings: &Slurmrestd, server: &Server<'_>, node: &SlurmNode) -> Vec<Finding> {
    if settings.ladder.is_empty() {
        return Vec::new();
    }
    let then = if settings.ends_heterogeneous {
        "what the ladder does with a first part, Slurm does with all parts (`heterogeneous: ladder`)"
    } else {
        "no rung touches it (`heterogeneous: wait`)"
    };
    // Errors are already reported.
    let found = search::jobs(server, &mut HookState::default(), std::slice::from_ref(node));
    let found = found.unwrap_or_default().jobs;
    let parts = found
        .iter()
        .filter_map(|job| Some((job, messages::elsewhere(job)?)));
    parts
        .take(MOST)
        .map(|(job, part)| {
            let message = format!("{} on {} is {part}: {then}", messages::job_name(job), node.name);
            Finding::warning(LADDER, message, "")
        })
        .collect()
}

/// Sends an empty update, which Slurm refuses exactly if it would refuse an update.
fn right(server: &Server<'_>, node: &SlurmNode) -> Finding {
    match server.may_change(&node.name) {
        Ok(()) => Finding::ok(RIGHTS, "the token's user may change nodes"),
        Err(error) => failed(&error),
    }
}

/// The lists of jobs that a drain needs.
fn jobs(server: &Server<'_>) -> Finding {
    let listed = match server.states(&[]) {
        Ok(Some(states)) => Ok(listed(states.listed, "job", BYTES_OF_STATE)),
        Ok(None) => server.jobs().map(|jobs| listed(jobs.len(), "job", BYTES_OF_JOB)),
        Err(error) => Err(error),
    };
    listed.unwrap_or_else(|error| failed(&error))
}

fn listed(number: usize, one: &str, bytes: usize) -> Finding {
    let message = format!(
        "{} listed, with up to {bytes} bytes for each; `limits.response` holds {} by default",
        count(number, one),
        (4_usize << 20).checked_div(bytes).unwrap_or_default()
    );
    Finding::ok(LIMITS, message)
}

/// Rungs that this Slurm does not support, and drains that are too short.
fn ladder(settings: &Slurmrestd, server: &Server<'_>) -> Vec<Finding> {
    let Some(first) = settings.ladder.first() else {
        return Vec::new();
    };
    let begins = length(first.before);
    let shorter = if settings.scales_ladder {
        "shorten it"
    } else {
        "are refused"
    };
    let mut findings = vec![Finding::ok(
        LADDER,
        format!("begins {begins} before the deadline; drains with less time {shorter}"),
    )];
    let requeues = settings.ladder.iter().any(|rung| rung.action == Action::Requeue);
    if requeues && !server.serves(REQUEUES) {
        let message = format!("this slurmrestd has no v0.0.{REQUEUES}, so it cannot requeue a job");
        findings.push(Finding::warning(
            LADDER,
            message,
            "remove `requeue` from `ladder`",
        ));
    }
    findings
}
