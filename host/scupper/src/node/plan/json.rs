//! A plan as JSON, as `deploy/schemas/plan.schema.json` describes it.

use scupper_drain_report::shadow_to_json;
use scupper_driver::OUT_OF_SERVICE;
use scupper_engine::Trigger;
use scupper_policy::EnvironmentFindings;
use scupper_report::{findings_to_json, plan_budgets_to_json, plan_force_to_json};
use serde_json::{Value, json};

use super::answers::answers_to_json;
use super::loosening::loosened_to_json;
use scupper_use_cases::Planned;

/// What a policy finds wrong with what it depends on.
fn environment_to_json(of: &EnvironmentFindings) -> impl Iterator<Item = Value> {
    of.findings.iter().map(|found| {
        json!({
            "policy": of.policy,
            "severity": found.severity.as_str(),
            "subject": found.subject,
            "message": found.message,
            "fix": found.fix,
        })
    })
}

/// What is told of a drain with the flags that are missing. If it were refused as well, the reasons are those of the first.
const WITH_FLAGS: [&str; 5] = ["flags", "plan", "budgets", "findings", "shadows"];

/// A plan for programs.
pub(super) fn of(planned: &Planned) -> Value {
    let mut json = scupper_report::planned_to_json(&planned.node, &planned.pods, &planned.result);
    let mut add = |name: &str, value: Value| {
        if let Some(fields) = json.as_object_mut() {
            fields.insert(name.to_owned(), value);
        }
    };
    if let Some(words) = &planned.not_ready {
        add("notReady", words.as_str().into());
    }
    if planned.asked_by.trigger == Trigger::DrainRequest {
        add("drainRequests", planned.asked_by.requests.clone().into());
    }
    if let Some(answers) = &planned.answers {
        add("answers", answers_to_json(answers));
    }
    if let Ok(plan) = &planned.result {
        let budgets = plan_budgets_to_json(plan, &planned.pods, planned.budgets.as_deref());
        add("budgets", budgets);
        let volumes =
            super::volumes::plan_volumes_to_json(plan, &planned.pods, planned.settings.wait_for_volumes);
        add("waitForVolumes", volumes);
        let force = plan_force_to_json(plan, &planned.pods, planned.force());
        add("atDeadline", force);
        let notify_before = planned.settings.notify_before;
        add("notifyBeforeSeconds", notify_before.as_secs_f64().into());
        add(
            "taint",
            planned.settings.machine_is_off.then_some(OUT_OF_SERVICE).into(),
        );
        add("continues", planned.continues.clone().into());
        add("findings", findings_to_json(&planned.findings));
        let environment = planned.environment.iter().flat_map(environment_to_json);
        add("policyFindings", environment.collect());
        add("loosened", loosened_to_json(plan));
        add("shadows", planned.shadows.iter().map(shadow_to_json).collect());
    }
    if let Some((flags, rest)) = &planned.with_flags {
        let mut rest = of(rest);
        if let Some(fields) = rest.as_object_mut() {
            fields.insert("flags".to_owned(), json!(flags));
            fields.retain(|name, _| WITH_FLAGS.contains(&name.as_str()));
        }
        add("withFlags", rest);
    }
    json
}
