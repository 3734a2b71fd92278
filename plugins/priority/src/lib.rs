//! Waves by pod priority, as the kubelet's graceful node shutdown has them: the least important pods leave first, and
//! each group of priorities has its own time.
//!
//! This is a policy to copy: a planner in about a hundred lines, with its configuration and its tests.

use std::{fmt::Display, time::Duration};

use scupper_sdk::{Description, Draft, Drain, Node, Planner, Pod, Policy, Problem, config, description};

/// Ordinary pods, important ones, and those of the system classes, which begin at 2000000000.
const DEFAULT_GROUPS: &str = "0=5m,1000=5m,2000000000=1m";

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
        let groups = groups().map_err(|problem| problem.message)?;
        // A wave begins when the one before has ended, so lowest first is the order of the waves.
        for group in &groups {
            // Only those that leave anyway: who leaves is for other policies to say, this one only sorts.
            for pod in draft.leaving() {
                if group.priority == priority_group(&groups, pod) {
                    draft.move_to_wave(pod, &group.wave);
                }
            }
            // When the budget is over, the next wave begins even if a pod of this one is still ending. Nor may a pod
            // ask for a longer grace period than the time its group has; a shorter one stays as it is.
            draft
                .wave(&group.wave)
                .timeout(group.budget)
                .max_grace_period_seconds(group.budget.as_secs());
        }
        Ok(())
    }
}

/// Pods from this priority on, up to where the next group begins.
struct Group {
    priority: i32,
    budget: Duration,
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

/// `0=5m,1000=90s`: what the operator configured, or the default.
fn groups() -> Result<Vec<Group>, Problem> {
    let text = config::get("groups").unwrap_or_else(|| DEFAULT_GROUPS.to_owned());
    let groups: Vec<Group> = text
        .split(',')
        .map(|part| group(part.trim()))
        .collect::<Result<_, _>>()?;
    if groups.is_sorted_by(|low, high| low.priority < high.priority) {
        Ok(groups)
    } else {
        Err(problem("the priorities must ascend", &text))
    }
}

fn group(text: &str) -> Result<Group, Problem> {
    let (priority, budget) = text
        .split_once('=')
        .ok_or_else(|| problem("write PRIORITY=TIME", text))?;
    let priority = priority
        .trim()
        .parse()
        .map_err(|error| problem(error, priority))?;
    let budget = duration(budget.trim()).ok_or_else(|| problem("write a time like 90s, 5m or 1h", budget))?;
    Ok(Group {
        priority,
        budget,
        wave: format!("priority {priority} and above"),
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
    Problem::new(
        "groups",
        format!("`{text}`: {what}; an example is {DEFAULT_GROUPS}"),
    )
}

#[cfg(test)]
mod tests;
