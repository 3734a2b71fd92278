//! Pods for tests.

use super::state;
use crate::{Condition, Controller, Pod, PodPhase, Timestamp};

/// A running pod of a ReplicaSet, with a grace period of 30 seconds.
///
/// # Panics
/// If `full_name` is not `namespace/name`.
pub fn pod(full_name: &str) -> Pod {
    let (namespace, name) = full_name.split_once('/').unwrap_or_default();
    assert!(
        !namespace.is_empty() && !name.is_empty(),
        "`{full_name}` is not namespace/name"
    );
    Pod {
        uid: format!("uid-of-{namespace}-{name}"),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        labels: Vec::new(),
        annotations: Vec::new(),
        controller: Some(controller("ReplicaSet", name)),
        phase: PodPhase::Running,
        ready: true,
        conditions: Vec::new(),
        priority: 0,
        priority_class_name: String::new(),
        termination_grace_period_seconds: 30,
        creation_timestamp: state::with(|state| state.drain.started),
        deletion_timestamp: None,
        finalizers: Vec::new(),
        has_empty_dir: false,
        host_network: false,
        hostname: String::new(),
        mirror: false,
        driver: false,
    }
}

impl Pod {
    /// Sets a label.
    #[must_use]
    pub fn with_label(mut self, key: &str, value: &str) -> Self {
        state::set(&mut self.labels, key, value);
        self
    }

    /// Sets an annotation.
    #[must_use]
    pub fn with_annotation(mut self, key: &str, value: &str) -> Self {
        state::set(&mut self.annotations, key, value);
        self
    }

    /// Sets the condition of this type.
    #[must_use]
    pub fn with_condition(mut self, condition_type: &str, status: &str) -> Self {
        self.conditions
            .retain(|condition| condition.type_ != condition_type);
        self.conditions.push(Condition::new(condition_type, status, None));
        self
    }

    /// Sets the priority.
    #[must_use]
    pub fn with_priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// Sets the grace period.
    #[must_use]
    pub fn with_grace_period_seconds(mut self, seconds: u64) -> Self {
        self.termination_grace_period_seconds = seconds;
        self
    }

    /// Makes a DaemonSet its controller.
    #[must_use]
    pub fn of_daemon_set(mut self) -> Self {
        self.controller = Some(controller("DaemonSet", &self.name));
        self
    }

    /// Another pod with the same name, created at this time.
    #[must_use]
    pub fn replaced_at(mut self, created: Timestamp) -> Self {
        self.uid = format!("{}-again", self.uid);
        self.creation_timestamp = created;
        self
    }
}

impl Condition {
    /// A condition without a reason.
    pub fn new(condition_type: &str, status: &str, last_transition_time: Option<Timestamp>) -> Self {
        Self {
            type_: condition_type.to_owned(),
            status: status.to_owned(),
            reason: String::new(),
            message: String::new(),
            last_transition_time,
        }
    }
}

fn controller(kind: &str, name: &str) -> Controller {
    Controller {
        api_version: "apps/v1".to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        uid: format!("uid-of-{kind}-{name}"),
    }
}
