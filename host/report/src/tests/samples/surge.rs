//! Samples of Deployments that a drain surges.

use std::time::Duration;

use scupper_engine::{DeploymentRef, NotSurged, Notice, Surge, SurgeMethod, SurgePlan, SurgeStep, Uid};

use super::NOW;
use crate::fixture::pod;

fn deployment() -> DeploymentRef {
    DeploymentRef {
        namespace: "shop".to_owned(),
        name: "web".to_owned(),
        uid: Uid::new("deployment"),
    }
}

pub(crate) fn surges() -> SurgePlan {
    let impossible = NotSurged {
        kind: "StatefulSet".to_owned(),
        name: "db".to_owned(),
        budget: "db".to_owned(),
        pods: vec![pod("db-0")],
        reason: "a StatefulSet removes a pod before it replaces it".to_owned(),
    };
    let surge = Surge {
        deployment: deployment(),
        replicas: Some(2),
        budget: "cart".to_owned(),
        pods: vec![pod("web-1"), pod("web-2")],
    };
    SurgePlan {
        method: SurgeMethod::Restart,
        surges: vec![surge],
        impossible: vec![impossible],
    }
}

/// The same, by one replica more.
pub(super) fn raises() -> SurgePlan {
    SurgePlan {
        method: SurgeMethod::Scale,
        ..surges()
    }
}

pub(crate) fn surge_steps() -> [Notice; 6] {
    let restarted = SurgeStep::Restarted {
        until: NOW + Duration::from_secs(300),
    };
    let gave_up = SurgeStep::GaveUp {
        message: "no replacement was ready within 5m00s".to_owned(),
    };
    let raised = SurgeStep::Raised {
        until: NOW + Duration::from_secs(300),
    };
    let left = SurgeStep::LeftRaised {
        message: "another client has set its replicas to 7".to_owned(),
    };
    let steps = [
        restarted,
        SurgeStep::Replaced,
        gave_up,
        raised,
        SurgeStep::TakenBack,
        left,
    ];
    steps.map(|step| Notice::Surge {
        deployment: deployment(),
        step,
    })
}
