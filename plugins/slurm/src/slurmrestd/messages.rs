//! Messages about a drain that waits.

use scupper_sdk::count;
use scupper_sdk::time::moment;

use super::job::Job;
use super::node::{Load, SlurmNode};
use super::search::Found;

/// The most characters of a job's name to show.
const NAME: usize = 60;

/// The number of jobs, and when they end.
pub(crate) fn progress(nodes: &[SlurmNode], found: &Found) -> String {
    let known = known(nodes, &found.jobs);
    let unseen = count(found.unseen, "other job");
    match (found.unseen, found.full) {
        (0, _) => known,
        (_, false) => format!("{known}; {unseen} of the cluster still to be checked"),
        (_, true) => format!("{known}; {unseen} of the cluster to be checked when one of these has ended"),
    }
}

fn known(nodes: &[SlurmNode], jobs: &[Job]) -> String {
    let names: Vec<_> = nodes.iter().map(|node| node.name.as_str()).collect();
    let on = names.join(", ");
    if jobs.is_empty() {
        return format!("no job is listed on {on}, but it is not known to be free");
    }
    let count = count(jobs.len(), "job");
    let mut ends: Vec<u64> = jobs.iter().filter_map(Job::ends).collect();
    ends.sort_unstable();
    let ends: Vec<String> = ends.into_iter().map(moment).collect();
    match (ends.first(), ends.last()) {
        _ if ends.len() < jobs.len() => format!("{count} on {on}"),
        (Some(first), Some(last)) if first != last => {
            format!("{count} on {on}, the first at most until {first}, the last until {last}")
        }
        (_, Some(last)) => format!("{count} on {on}, at most until {last}"),
        _ => format!("{count} on {on}"),
    }
}

/// `job 4711`
pub(crate) fn job_name(job: &Job) -> String {
    match job.id() {
        0 => "a job without a number".to_owned(),
        _ => format!("job {}", job.label()),
    }
}

/// The job's name, user, state and end.
pub(crate) fn job(job: &Job, nodes: &[SlurmNode]) -> String {
    let of = if job.user.is_empty() {
        String::new()
    } else {
        format!(" of {}", plain(&job.user))
    };
    let mut text = match plain(&job.name) {
        name if name.is_empty() && of.is_empty() => job.state(),
        name => format!("{name}{of}: {}", job.state()),
    };
    if let Some(end) = job.ends() {
        text.push_str(", at most until ");
        text.push_str(&moment(end));
    }
    if let Some(also) = elsewhere(job) {
        text.push_str(", ");
        text.push_str(&also);
    }
    if !nodes.iter().any(|node| job.is_placed(&node.name)) {
        text.push_str(", and Slurm does not say on which nodes");
    }
    text
}

/// `a part of heterogeneous job 17, which also runs on gpu-2`
pub(crate) fn elsewhere(job: &Job) -> Option<String> {
    let whole = job.heterogeneous()?;
    Some(match job.elsewhere.as_str() {
        "" => format!("a part of heterogeneous job {whole}"),
        nodes => format!(
            "a part of heterogeneous job {whole}, which also runs on {}",
            plain(nodes)
        ),
    })
}

/// What the drain waits for on a node without known jobs.
pub(crate) fn node(node: &SlurmNode, has_jobs: bool) -> Option<String> {
    if node.is_rebooting() {
        return Some(format!("reboots by `scontrol reboot`: {}", plain(&node.reason)));
    }
    match node.load() {
        Load::Free => None,
        Load::NotResponding => Some(
            "does not respond: its jobs may still run; if the machine is off, drain it with --node-is-off"
                .to_owned(),
        ),
        Load::Unknown => Some(format!("unknown state: {}", node.state())),
        Load::Busy(_) if has_jobs => None,
        Load::Busy(word) => Some(format!("{}, though no job is listed", word.to_lowercase())),
    }
}

fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(NAME).collect()
}
