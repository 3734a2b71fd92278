//! Waves by pod priority, as the kubelet's graceful node shutdown has them: the least important pods leave first, and
//! each group of priorities can have a time of its own.
//!
//! This is a policy to copy: a planner in about a hundred lines, with its configuration and its tests.

use std::{fmt::Display, time::Duration};

use scupper_sdk::{Description, Draft, Drain, Node, Planner, Pod, Policy, Problem, config, description};

/// Ordinary pods, important ones, and those of the system classes, which begin at 2000000000. Nobody is hurried unless
/// the operator says so: a time that is too short costs somebody their work.
const DEFAULT_GROUPS: &str = "0,1000,2000000000";
const EXAMPLE: &str = "0=5m,1000=90s,2000000000=30s";

struct Priority;

scupper_sdk::export!(Priority with planner);

impl Policy for Priority {
    fn describe() -> Description {
        description!("Evicts pods in waves by priority, lowest first, with a time budget for each wave")
            .config_schema(include_str!("../config.schema.json"))
    }

    fn check_config() -> Vec<Problem> {
        // A misspelt key would be a setting that silently does nothing.
        let mut problems = config::unknown_keys(&["groups"]);
        problems.extend(groups().err());
        problems
    }
}

impl Planner for Priority {
    fn plan(_drain: &Drain, _node: &Node, draft: &mut Draft<'_>) -> Result<(), String> {
        // Checked when the policy was loaded; a policy still never panics on what it is given.
        let groups = groups()?;
        // A wave begins when the one before has ended, so lowest first is the order of the waves.
        for group in &groups {
            // Only those that leave anyway: who leaves is for other policies to say, this one only sorts.
            for pod in draft.leaving() {
                if group.priority == priority_group(&groups, pod) {
                    draft.move_to_wave(pod, &group.wave);
                }
            }
            // When the time is over, the next wave begins even if a pod of this one is still ending. Nor does a pod
            // get a longer grace period than its group has time; a shorter one stays as it is.
            if let Some(budget) = group.budget {
                let wave = draft.wave(&group.wave);
                wave.timeout(budget).max_grace_period_seconds(budget.as_secs());
            }
        }
        Ok(())
    }
}

/// Pods from this priority on, up to where the next group begins.
struct Group {
    priority: i32,
    /// None: as long as it takes.
    budget: Option<Duration>,
    wave: String,
}

/// The lower end of the group that a pod falls in: the highest that is not above its priority. Pods below the lowest
/// group go with it, so that none is left out.
fn priority_group(groups: &[Group], pod: &Pod) -> i32 {
    let reached = groups.iter().rev().find(|group| group.priority <= pod.priority);
    reached
        .or_else(|| groups.first())
        .map_or(0, |group| group.priority)
}

/// What the operator configured, or the default: groups with commas between them.
fn groups() -> Result<Vec<Group>, Problem> {
    let text = config::get("groups").unwrap_or_else(|| DEFAULT_GROUPS.to_owned());
    let groups: Vec<Group> = text.split(',').map(group).collect::<Result<_, _>>()?;
    if groups.is_sorted_by(|low, high| low.priority < high.priority) {
        Ok(groups)
    } else {
        Err(problem("the priorities must ascend", &text))
    }
}

/// `1000` or `1000=90s`
fn group(text: &str) -> Result<Group, Problem> {
    let (priority, time) = match text.split_once('=') {
        Some((priority, time)) => (priority.trim(), Some(time.trim())),
        None => (text.trim(), None),
    };
    let budget =
        time.map(|time| duration(time).ok_or_else(|| problem("write a time like 90s, 5m or 1h", time)));
    let priority: i32 = priority.parse().map_err(|error| problem(error, priority))?;
    let wave = format!("priority {priority} and above");
    Ok(Group {
        priority,
        budget: budget.transpose()?,
        wave,
    })
}

/// `90s`, `5m` or `1h`, and more than nothing.
fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return None,
    };
    let seconds = number.parse::<u64>().ok()?.checked_mul(seconds)?;
    (seconds > 0).then(|| Duration::from_secs(seconds))
}

fn problem(what: impl Display, text: &str) -> Problem {
    Problem::new("groups", format!("`{text}`: {what}; an example is {EXAMPLE}"))
}

#[cfg(test)]
mod tests;
