//! Sorts pods into waves by priority, like the kubelet's graceful node shutdown: the least important pods leave first, and
//! each group of priorities can have its own time.
//!
//! This is a policy to copy: a planner in about a hundred lines, with its configuration and its tests.

use std::{fmt::Display, time::Duration};

use scupper_sdk::{Description, Draft, Drain, Node, Planner, Pod, Policy, Problem, config, description};

/// Ordinary pods, important ones, and those of the system classes, which begin at 2000000000. There are no times by default,
/// because a time that is too short costs work.
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
        // Without this check a misspelt key would be silently ignored.
        config::check(&["groups"], groups())
    }
}

impl Planner for Priority {
    fn plan(_drain: &Drain, _node: &Node, draft: &mut Draft<'_>) -> Result<(), String> {
        // Already checked when the policy was loaded; a policy still never panics on its input.
        let groups = groups()?;
        // A wave begins when the previous one has ended, so the lowest group is the first wave.
        for group in &groups {
            // Only pods that leave anyway: other policies decide which pods leave.
            for pod in draft.leaving() {
                if group.priority == priority_group(&groups, pod) {
                    draft.move_to_wave(pod, &group.wave);
                }
            }
            // After this time the next wave begins, even if a pod of this one is still terminating. The time also caps
            // the grace period of each pod.
            if let Some(budget) = group.budget {
                let wave = draft.wave(&group.wave);
                wave.timeout(budget).max_grace_period_seconds(budget.as_secs());
            }
        }
        // A pod that an earlier policy lets end by itself, without a time, would hold up all groups behind its own.
        draft.await_last(draft.leaving());
        Ok(())
    }
}

/// Pods from this priority on, up to where the next group begins.
struct Group {
    priority: i32,
    /// `None`: no time limit.
    budget: Option<Duration>,
    wave: String,
}

/// The lower end of a pod's group: the highest that is not above its priority. Pods below the lowest group belong to it, so
/// that every pod has a group.
fn priority_group(groups: &[Group], pod: &Pod) -> i32 {
    let reached = groups.iter().rev().find(|group| group.priority <= pod.priority);
    reached
        .or_else(|| groups.first())
        .map_or(0, |group| group.priority)
}

/// The configured groups, or the default.
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
    let budget = time.map(|time| {
        config::duration(time).ok_or_else(|| problem("must have a time such as 90s, 5m or 1h", time))
    });
    let priority: i32 = priority.parse().map_err(|error| problem(error, priority))?;
    Ok(Group {
        priority,
        budget: budget.transpose()?,
        wave: wave_name(priority),
    })
}

/// A minus sign would read as a second dash.
fn wave_name(priority: i32) -> String {
    let minus = if priority < 0 { "minus-" } else { "" };
    format!("priority-{minus}{}", priority.unsigned_abs())
}

fn problem(what: impl Display, text: &str) -> Problem {
    Problem::new("groups", format!("`{text}`: {what}; an example is {EXAMPLE}"))
}

#[cfg(test)]
mod tests;
