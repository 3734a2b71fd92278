//! The lines about budgets in a plan, the API server's answers, and a plan as JSON.

use std::time::Duration;

use scupper_engine::{EvictAnswer, Plan, Pod};
use serde_json::json;

use super::super::fixture::pod;
use super::super::{answer_text, answers_to_json, plan_budget_lines, plan_budgets_to_json, planned_to_json};
use super::samples::{budget, outcomes, plan, pods};
use super::{Variants, accepted, complete, pretty, variants};

variants!(EvictAnswer: Accepted NotFound UidMismatch BudgetExhausted BudgetNotObserved MoreThanOneBudget Throttled
    NamespaceTerminating Forbidden Refused Unreachable);

fn answers() -> Vec<EvictAnswer> {
    let message = || "in the server's words".to_owned();
    let retry_after = Duration::from_secs(10);
    let all = vec![
        EvictAnswer::Accepted,
        EvictAnswer::NotFound,
        EvictAnswer::UidMismatch { message: message() },
        EvictAnswer::BudgetExhausted {
            budget: "cart".to_owned(),
            message: message(),
        },
        EvictAnswer::BudgetNotObserved {
            message: message(),
            retry_after,
        },
        EvictAnswer::MoreThanOneBudget { message: message() },
        EvictAnswer::Throttled {
            message: message(),
            retry_after: None,
        },
        EvictAnswer::NamespaceTerminating { message: message() },
        EvictAnswer::Forbidden { message: message() },
        EvictAnswer::Refused {
            code: 403,
            message: message(),
            retry_after: None,
        },
        EvictAnswer::Unreachable { message: message() },
    ];
    complete(&all);
    all
}

#[test]
fn answers_to_evictions() {
    let words = answers().iter().map(answer_text).collect::<Vec<_>>().join("\n");
    let answers = answers().into_iter().map(|answer| (pod("web-1"), answer));
    let json = answers_to_json(&answers.collect::<Vec<_>>());
    accepted("eviction-answers", &format!("{words}\n{}", pretty(&[json])));
}

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
