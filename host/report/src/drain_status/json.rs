//! The facts of a drain as JSON: lines of a local and of a followed drain and `status` write the same records.

use scupper_engine::{HookPhase, PodRef, Reason, Subject, Time};
use serde_json::{Value, json};

use super::text::reason_text;
use super::{HookStatus, WaveStatus};
use scupper_common::clock::rfc3339;

impl WaveStatus {
    pub(crate) fn to_json(&self) -> Value {
        json!({ "name": self.name, "number": self.number, "of": self.of })
    }
}

impl HookStatus {
    pub(crate) fn to_json(&self) -> Value {
        let waiting_for = self.waiting_for.iter();
        let waiting_for = waiting_for
            .map(|on| json!({ "what": on.what, "detail": on.detail, "since": on.since.map(rfc3339) }));
        let fields = json!({
            "since": rfc3339(self.since), "progress": self.progress,
            "waitingFor": waiting_for.collect::<Vec<_>>(),
        });
        joined(hook_name_to_json(&self.policy, self.phase, &self.subject), fields)
    }
}

/// Which hook it is.
pub(crate) fn hook_name_to_json(policy: &str, phase: HookPhase, subject: &Subject) -> Value {
    let subject = match subject {
        Subject::Node => json!({ "node": true }),
        Subject::Wave(wave) => json!({ "wave": wave }),
        Subject::Pod(uid) => json!({ "pod": uid.as_str() }),
    };
    json!({ "policy": policy, "phase": phase.to_string(), "subject": subject })
}

/// A pod, and why it is still there.
pub(crate) fn pod_to_json(pod: &PodRef, reason: &Reason, now: Time) -> Value {
    let reason = json!({ "reason": reason.name(), "message": reason_text(reason, now) });
    joined(pod_name_to_json(pod), reason)
}

/// Which pod it is.
pub(crate) fn pod_name_to_json(pod: &PodRef) -> Value {
    json!({ "pod": pod.to_string(), "uid": pod.uid.as_str() })
}

/// Both objects as one.
pub(crate) fn joined(mut object: Value, fields: Value) -> Value {
    if let (Some(object), Value::Object(fields)) = (object.as_object_mut(), fields) {
        object.extend(fields);
    }
    object
}
