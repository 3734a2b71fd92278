//! The lines about budgets in a plan, and a plan as JSON.

use scupper_engine::{Plan, Pod};
use serde_json::json;

use super::super::{plan_budget_lines, plan_budgets_to_json, planned_to_json};
use super::samples::{budget, outcomes, plan, pods};
use super::{accepted, pretty};

#[test]
fn budgets_of_a_plan() {
    let budgets = [
        budget("web", "web-1", 0, true),
        budget("db", "db-0", 1, true),
        budget("stale", "db-0", 1, false),
    ];
    let (plan, pods) = (plan(), pods());
    let mut text = String::new();
    for budgets in [None, Some(&[][..]), Some(&budgets[..])] {
        let lines = plan_budget_lines(&plan, &pods, budgets);
        let json = plan_budgets_to_json(&plan, &pods, budgets);
        text.push_str(&format!("{}\n{}\n", lines.join("\n"), pretty(&[json])));
    }
    accepted("plan-budgets", &text);
}

#[test]
fn a_plan_as_json() {
    let known: Vec<Pod> = pods().into_iter().take(6).collect();
    let json = |result| planned_to_json("worker-1", &known, &result);
    let mut all = vec![json(Ok(plan())), json(Ok(Plan::default()))];
    for outcome in outcomes() {
        let mut ended = json(Err(outcome));
        // The pods are the same each time.
        ended["pods"] = json!({});
        all.push(ended);
    }
    accepted("plan-json", &pretty(&all));
}
