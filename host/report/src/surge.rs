//! Deployments that a drain restarts or raises: in its plan, in its lines, in Events, and as JSON.

use std::time::Duration;

use scupper_engine::{DeploymentRef, HumanDuration, PodRef, SurgeMethod, SurgePlan, SurgeStep, Time};
use serde_json::{Value, json};

use super::conditions::NodeEvent;
use super::drain_status::SurgeSummary;
use super::messages::one_line;
use scupper_common::clock::rfc3339;

/// The lines about surges in a plan.
pub fn surge_lines(plan: &SurgePlan) -> Vec<String> {
    if plan.is_empty() {
        return Vec::new();
    }
    let title = match plan.method {
        SurgeMethod::Restart => "Restarts of Deployments whose budgets allow no eviction:",
        SurgeMethod::Scale => "Deployments with one replica more, because their budgets allow no eviction:",
    };
    let mut lines = vec![title.to_owned()];
    let texts = surge_texts(plan).into_iter();
    lines.extend(texts.map(|text| format!("  {text}")));
    lines
}

/// The surges, and the workloads that cannot be surged.
pub fn surge_texts(plan: &SurgePlan) -> Vec<String> {
    SurgeSummary::of(plan).texts()
}

/// A step of a surge as a line of a drain.
pub(crate) fn step_text(now: Time, deployment: &DeploymentRef, step: &SurgeStep) -> String {
    one_line(&match step {
        SurgeStep::Restarted { until } => format!(
            "{deployment} is restarting; its rollout has {} to replace the pods on this node",
            HumanDuration(whole_seconds(until.since(now)))
        ),
        SurgeStep::Raised { until } => format!(
            "{deployment} has one replica more; its pods on this node have {} to leave",
            HumanDuration(whole_seconds(until.since(now)))
        ),
        SurgeStep::Replaced => format!("{deployment}: the rollout has replaced its pods on this node"),
        SurgeStep::TakenBack => {
            format!("{deployment}: its replicas are as they were before the drain raised them")
        }
        SurgeStep::LeftRaised { message } => {
            format!("{deployment}: the drain does not take its extra replica back: {message}")
        }
        SurgeStep::GaveUp { message } => {
            format!("{deployment}: {message}; its pods on this node wait for their budget")
        }
    })
}

/// Rounded up: the API server's answer takes a moment of the time limit, which the operator set in whole seconds.
pub(super) fn whole_seconds(time: Duration) -> Duration {
    Duration::from_secs(time.as_secs() + u64::from(time.subsec_nanos() > 0))
}

/// A step of a surge as an Event of the node. A finished replacement needs no Event.
pub(crate) fn step_event(drain: &str, deployment: &DeploymentRef, step: &SurgeStep) -> Option<NodeEvent> {
    let (warning, reason, note) = match step {
        SurgeStep::Restarted { .. } => (
            false,
            "DeploymentRestarted",
            format!("{drain}: {deployment} is restarted to replace its pods on this node"),
        ),
        SurgeStep::GaveUp { message } => (
            true,
            "DeploymentNotReplaced",
            format!("{drain}: {deployment}: {message}; its pods on this node wait for their budget"),
        ),
        SurgeStep::Raised { .. } => (
            false,
            "DeploymentRaised",
            format!("{drain}: {deployment} has one replica more, so that its pods on this node can leave"),
        ),
        SurgeStep::TakenBack => (
            false,
            "DeploymentTakenBack",
            format!("{drain}: the replicas of {deployment} are as they were before the drain raised them"),
        ),
        SurgeStep::LeftRaised { message } => (
            true,
            "DeploymentLeftRaised",
            format!("{drain}: the drain does not take the extra replica of {deployment} back: {message}"),
        ),
        SurgeStep::Replaced => return None,
    };
    Some(NodeEvent {
        warning,
        reason: reason.to_owned(),
        note: one_line(&note),
    })
}

/// A step of a surge, as fields of an object.
pub(crate) fn step_to_json(deployment: &DeploymentRef, step: &SurgeStep) -> Value {
    let (until, message) = match step {
        SurgeStep::Restarted { until } | SurgeStep::Raised { until } => (Some(rfc3339(*until)), None),
        SurgeStep::Replaced | SurgeStep::TakenBack => (None, None),
        SurgeStep::GaveUp { message } | SurgeStep::LeftRaised { message } => (None, Some(message)),
    };
    json!({
        "deployment": name(deployment), "step": step.name(), "until": until, "message": message,
    })
}

/// The surges of a plan; `None`: there is nothing to say.
pub(crate) fn surges_to_json(plan: &SurgePlan) -> Option<Value> {
    let pods = |pods: &[PodRef]| pods.iter().map(PodRef::to_string).collect::<Vec<_>>();
    let surges = plan.surges.iter().map(|surge| {
        json!({
            "deployment": name(&surge.deployment), "replicas": surge.replicas, "budget": surge.budget,
            "pods": pods(&surge.pods),
        })
    });
    let impossible = plan.impossible.iter().map(|not| {
        let kind = Some(&not.kind).filter(|kind| !kind.is_empty());
        json!({
            "kind": kind, "name": not.name, "budget": not.budget, "pods": pods(&not.pods), "reason": not.reason,
        })
    });
    let (surges, impossible): (Vec<_>, Vec<_>) = (surges.collect(), impossible.collect());
    let all = match plan.method {
        SurgeMethod::Restart => json!({"restarts": surges, "impossible": impossible}),
        SurgeMethod::Scale => json!({"restarts": [], "raises": surges, "impossible": impossible}),
    };
    (!plan.is_empty()).then_some(all)
}

fn name(deployment: &DeploymentRef) -> String {
    format!("{}/{}", deployment.namespace, deployment.name)
}

#[cfg(test)]
mod tests {
    use scupper_engine::{NotSurged, Surge, Uid};

    use super::*;
    use crate::fixture::pod;

    fn web() -> DeploymentRef {
        DeploymentRef {
            namespace: "shop".to_owned(),
            name: "web".to_owned(),
            uid: Uid::new("web"),
        }
    }

    fn plan() -> SurgePlan {
        let surge = |replicas, pods: &[&str]| Surge {
            deployment: web(),
            replicas,
            budget: "keep".to_owned(),
            pods: pods.iter().map(|name| pod(name)).collect(),
        };
        let not = |kind: &str, name: &str| NotSurged {
            kind: kind.to_owned(),
            name: name.to_owned(),
            budget: "keep".to_owned(),
            pods: vec![pod("db-0")],
            reason: "it\ncannot".to_owned(),
        };
        SurgePlan {
            method: SurgeMethod::Restart,
            surges: vec![surge(Some(1), &["a"]), surge(Some(4), &["a", "b", "c", "d"])],
            impossible: vec![not("StatefulSet", "db"), not("", "db-0")],
        }
    }

    #[test]
    fn a_plan_names_what_is_restarted_and_what_cannot_be() {
        assert_eq!(
            surge_lines(&plan()),
            [
                "Restarts of Deployments whose budgets allow no eviction:",
                "  Deployment shop/web is restarted to replace shop/a (budget keep)",
                "  Deployment shop/web is restarted to replace shop/a, shop/b, shop/c and 1 more pod (budget keep); the \
                 rollout replaces all of its 4 pods",
                "  cannot restart StatefulSet db, which has shop/db-0 (budget keep): it cannot",
                "  cannot replace shop/db-0 (budget keep): it cannot",
            ]
        );
        assert_eq!(surge_lines(&SurgePlan::default()), Vec::<String>::new());
        assert_eq!(surges_to_json(&SurgePlan::default()), None);
        let json = surges_to_json(&plan()).unwrap();
        assert_eq!(
            json["restarts"][0],
            json!({"deployment": "shop/web", "replicas": 1, "budget": "keep", "pods": ["shop/a"]})
        );
        assert_eq!(json["impossible"][1]["kind"], Value::Null);
    }

    #[test]
    fn a_plan_names_what_is_raised_and_what_cannot_be() {
        let plan = SurgePlan {
            method: SurgeMethod::Scale,
            ..plan()
        };
        assert_eq!(
            surge_lines(&plan),
            [
                "Deployments with one replica more, because their budgets allow no eviction:",
                "  Deployment shop/web gets one replica more, 1 -> 2, until shop/a is gone (budget keep)",
                "  Deployment shop/web gets one replica more, 4 -> 5, until shop/a, shop/b, shop/c and 1 more pod are \
                 gone (budget keep)",
                "  cannot raise the replicas of StatefulSet db, which has shop/db-0 (budget keep): it cannot",
                "  cannot replace shop/db-0 (budget keep): it cannot",
            ]
        );
        let json = surges_to_json(&plan).unwrap();
        assert_eq!(json["restarts"], json!([]));
        assert_eq!(json["raises"][0]["deployment"], "shop/web");
    }

    #[test]
    fn each_step_of_a_raise_has_its_line_and_its_event() {
        let now = Time::from_millis(1_000);
        let until = now + Duration::from_secs(300);
        let message = "another client has set its replicas to 7".to_owned();
        let steps = [
            SurgeStep::Raised { until },
            SurgeStep::TakenBack,
            SurgeStep::LeftRaised { message },
        ];
        let texts = steps.each_ref().map(|step| step_text(now, &web(), step));
        assert_eq!(
            texts,
            [
                "Deployment shop/web has one replica more; its pods on this node have 5m00s to leave",
                "Deployment shop/web: its replicas are as they were before the drain raised them",
                "Deployment shop/web: the drain does not take its extra replica back: another client has set its replicas \
                 to 7",
            ]
        );
        let events = steps.each_ref().map(|step| {
            let event = step_event("drain-1", &web(), step).unwrap();
            (event.warning, event.reason)
        });
        let expected = [
            (false, "DeploymentRaised"),
            (false, "DeploymentTakenBack"),
            (true, "DeploymentLeftRaised"),
        ];
        assert_eq!(
            events,
            expected.map(|(warning, reason)| (warning, reason.to_owned()))
        );
    }

    #[test]
    fn each_step_has_its_line_and_what_needs_attention_its_event() {
        let now = Time::from_millis(1_000);
        let restarted = SurgeStep::Restarted {
            until: now + Duration::from_millis(299_001),
        };
        let gave_up = SurgeStep::GaveUp {
            message: "no replacement was ready within 5m00s".to_owned(),
        };
        let texts = [&restarted, &SurgeStep::Replaced, &gave_up].map(|step| step_text(now, &web(), step));
        assert_eq!(
            texts,
            [
                "Deployment shop/web is restarting; its rollout has 5m00s to replace the pods on this node",
                "Deployment shop/web: the rollout has replaced its pods on this node",
                "Deployment shop/web: no replacement was ready within 5m00s; its pods on this node wait for their budget",
            ]
        );
        let event = |step| step_event("drain-1", &web(), step).map(|event| (event.warning, event.reason));
        assert_eq!(event(&restarted), Some((false, "DeploymentRestarted".to_owned())));
        assert_eq!(event(&gave_up), Some((true, "DeploymentNotReplaced".to_owned())));
        assert_eq!(event(&SurgeStep::Replaced), None);
    }
}
