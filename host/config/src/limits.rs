//! The limits of a policy by their names in the file. A limit without a name does not compile.

use std::time::Duration;

use scupper_policy_spec::Limits;

use super::shape::{Field, Object, Shape};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// No call of a policy needs longer; a policy that waits longer returns and is called again.
const LONGEST_CALL_MS: u64 = 10 * 60 * 1000;

/// The settings under `limits`.
pub(super) static LIMITS: Object = Object {
    fields: &[
        bytes(
            "memory",
            64 * KIB,
            4 * GIB,
            "Bytes of all memories of the policy together. Default 64Mi.",
        ),
        count(
            "table-elements",
            0,
            10_000_000,
            "Elements of all its tables together. Default 20000.",
        ),
        count(
            "instances",
            1,
            1_000,
            "Core instances in its component. Default 128.",
        ),
        count(
            "memories",
            1,
            100,
            "Memories in its component, and the same number of tables for each core instance. Default 8.",
        ),
        time(
            "cpu-per-probe",
            "CPU time of describe, check-config and phases, each. Default 250ms.",
        ),
        time("cpu-per-plan", "CPU time of one plan. Default 1s."),
        time("cpu-per-step", "CPU time of one step of a hook. Default 5s."),
        time(
            "wall-per-plan",
            "Wall-clock limit for one plan, and for each call while the policy is loaded. Default 5s.",
        ),
        time(
            "wall-per-step",
            "Wall-clock limit for one step of a hook, including its requests. Default 30s.",
        ),
        bytes(
            "answer",
            KIB,
            64 * MIB,
            "Bytes that the policy may pass to the driver in one answer or one call. Default 4Mi.",
        ),
        count(
            "handles",
            0,
            100_000,
            "Handles to resources that it may hold at once. Default 1000.",
        ),
        count(
            "log-lines-per-minute",
            0,
            60_000,
            "Lines that it may log in a minute, a twelfth of them at once. Default 600.",
        ),
        bytes(
            "log-bytes-per-minute",
            0,
            64 * MIB,
            "Bytes that it may log in a minute, a quarter of them at once. Default 256Ki.",
        ),
        count(
            "requests-per-step",
            0,
            10_000,
            "Requests that one step of a hook may send. Default 64.",
        ),
        time(
            "wall-per-request",
            "Wall-clock limit for one request, from the name lookup to the last byte of the response. Default 20s.",
        ),
        bytes(
            "response",
            KIB,
            64 * MIB,
            "Bytes of one response's body. Default 4Mi.",
        ),
    ],
    one_of: &[],
};

const fn bytes(name: &'static str, least: u64, most: u64, doc: &'static str) -> Field {
    Field::new(name, Shape::Quantity { least, most }, doc)
}

const fn count(name: &'static str, least: i64, most: i64, doc: &'static str) -> Field {
    Field::new(name, Shape::Whole { least, most }, doc)
}

const fn time(name: &'static str, doc: &'static str) -> Field {
    let shape = Shape::Duration {
        least_ms: 1,
        most_ms: LONGEST_CALL_MS,
    };
    Field::new(name, shape, doc)
}

/// The field that stores a limit.
pub(super) enum LimitField<'a> {
    Count(&'a mut usize),
    Rate(&'a mut u32),
    Duration(&'a mut Duration),
}

/// Every limit and its name in the file.
pub(super) fn slots(limits: &mut Limits) -> Vec<(&'static str, LimitField<'_>)> {
    // No `..` here: a new limit needs a name, and a field in the table above.
    let Limits {
        memory,
        table_elements,
        instances,
        memories,
        probe_cpu,
        plan_cpu,
        step_cpu,
        plan_wall,
        step_wall,
        answer_bytes,
        handles,
        log_lines_per_minute,
        log_bytes_per_minute,
        requests,
        request_wall,
        response_bytes,
    } = limits;
    vec![
        ("memory", LimitField::Count(memory)),
        ("table-elements", LimitField::Count(table_elements)),
        ("instances", LimitField::Count(instances)),
        ("memories", LimitField::Count(memories)),
        ("cpu-per-probe", LimitField::Duration(probe_cpu)),
        ("cpu-per-plan", LimitField::Duration(plan_cpu)),
        ("cpu-per-step", LimitField::Duration(step_cpu)),
        ("wall-per-plan", LimitField::Duration(plan_wall)),
        ("wall-per-step", LimitField::Duration(step_wall)),
        ("answer", LimitField::Count(answer_bytes)),
        ("handles", LimitField::Count(handles)),
        ("log-lines-per-minute", LimitField::Rate(log_lines_per_minute)),
        ("log-bytes-per-minute", LimitField::Rate(log_bytes_per_minute)),
        ("requests-per-step", LimitField::Rate(requests)),
        ("wall-per-request", LimitField::Duration(request_wall)),
        ("response", LimitField::Count(response_bytes)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units;

    /// Checks the defaults that the descriptions state.
    #[test]
    fn every_limit_has_a_name_and_states_its_default() {
        let mut limits = Limits::default();
        let slots = slots(&mut limits);
        let names: Vec<_> = slots.iter().map(|(name, _)| *name).collect();
        let fields: Vec<_> = LIMITS.fields.iter().map(|field| field.name).collect();
        assert_eq!(names, fields);
        for ((name, slot), field) in slots.into_iter().zip(LIMITS.fields) {
            let default = match (slot, &field.shape) {
                (LimitField::Count(count), Shape::Quantity { .. }) => units::bytes(*count as u64),
                (LimitField::Count(count), Shape::Whole { .. }) => count.to_string(),
                (LimitField::Rate(count), Shape::Quantity { .. }) => units::bytes(u64::from(*count)),
                (LimitField::Rate(count), Shape::Whole { .. }) => count.to_string(),
                (LimitField::Duration(span), Shape::Duration { .. }) => {
                    units::millis(span.as_millis() as u64)
                }
                _ => panic!("{name} has another shape than its limit"),
            };
            let reported = format!("Default {default}.");
            assert!(
                field.doc.ends_with(&reported),
                "{name}: {reported} != {}",
                field.doc
            );
        }
    }
}
