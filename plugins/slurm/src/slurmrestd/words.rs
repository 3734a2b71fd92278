//! What people are told while it waits.

use scupper_sdk::Call;

use super::job::Job;
use super::node::{Load, SlurmNode};

/// Characters of a job's name that are shown.
const NAME: usize = 60;

/// How many jobs there are, and when they end.
pub(crate) fn progress(call: &Call, nodes: &[SlurmNode], jobs: &[Job]) -> String {
    let names: Vec<_> = nodes.iter().map(|node| node.name.as_str()).collect();
    let on = names.join(", ");
    let count = match jobs.len() {
        0 => return format!("no job is listed on {on}, but it is not known to be free"),
        1 => "1 job".to_owned(),
        more => format!("{more} jobs"),
    };
    let mut ends: Vec<u64> = jobs.iter().filter_map(Job::ends).collect();
    ends.sort_unstable();
    let known = ends.len() == jobs.len();
    let left = |end: &u64| duration(end.saturating_sub(call.drain.now));
    match (ends.first(), ends.last()) {
        (Some(first), Some(last)) if known && ends.len() > 1 => format!(
            "{count} on {on}, by their time limits over in {} to {}",
            left(first),
            left(last)
        ),
        (Some(only), _) if known => format!("{count} on {on}, by its time limit over in {}", left(only)),
        _ => format!("{count} on {on}"),
    }
}

/// `job 4711`
pub(crate) fn job_name(job: &Job) -> String {
    match job.id() {
        0 => "a job without a number".to_owned(),
        id => format!("job {id}"),
    }
}

/// Whose it is, how it stands, and when it ends.
pub(crate) fn job(call: &Call, job: &Job, nodes: &[SlurmNode]) -> String {
    let of = if job.user.is_empty() {
        String::new()
    } else {
        format!(" of {}", plain(&job.user))
    };
    let mut text = format!("{}{of}: {}", plain(&job.name), job.state());
    if let Some(end) = job.ends() {
        text.push_str(", over by its time limit in ");
        text.push_str(&duration(end.saturating_sub(call.drain.now)));
    }
    if !nodes.iter().any(|node| job.is_placed(&node.name)) {
        text.push_str(", and Slurm does not say on which nodes");
    }
    text
}

/// What is awaited of a node that has no jobs to tell of.
pub(crate) fn node(node: &SlurmNode, has_jobs: bool) -> Option<String> {
    match node.load() {
        Load::Free => None,
        Load::Silent => Some("does not respond: what ran there may still run".to_owned()),
        Load::Unknown => Some(format!("its state is not known: {}", node.state())),
        Load::Busy(_) if has_jobs => None,
        Load::Busy(word) => Some(format!("{}, though no job is listed", word.to_lowercase())),
    }
}

/// `3h 20m`: the two largest units.
fn duration(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m {}s", seconds % 60),
        (0, ..) => format!("{hours}h {minutes}m"),
        _ => format!("{days}d {hours}h"),
    }
}

fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(NAME).collect()
}
