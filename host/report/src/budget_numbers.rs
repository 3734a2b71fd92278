//! The numbers of a disruption budget: `plan` and `status` show the same.

use scupper_engine::Budget;
use serde_json::{Value, json};

use super::messages::count;

/// `1 eviction`
pub(crate) fn allowed_text(budget: &Budget) -> String {
    count(
        usize::try_from(budget.disruptions_allowed).unwrap_or(0),
        "eviction",
    )
}

/// `it needs 2 healthy pods and has 3`, as the engine says it
pub(crate) fn need_text(budget: &Budget) -> String {
    let needed = usize::try_from(budget.desired_healthy).unwrap_or(0);
    let spent = match budget.disruptions_allowed <= 0 && budget.current_healthy > budget.desired_healthy {
        true => Budget::SPENT,
        false => "",
    };
    format!(
        "it needs {} and has {}{spent}",
        count(needed, "healthy pod"),
        budget.current_healthy
    )
}

/// Which budget it is, and its numbers.
pub(crate) fn budget_to_json(budget: &Budget) -> Value {
    json!({
        "namespace": budget.namespace, "name": budget.name, "allowed": budget.disruptions_allowed.max(0),
        "needed": budget.desired_healthy, "healthy": budget.current_healthy,
    })
}
