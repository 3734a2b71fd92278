//! What was cancelled, as a person and as a program reads it.

use super::*;

#[test]
fn every_answer() {
    let triggers = [
        Trigger::Command,
        Trigger::Cordon,
        Trigger::DrainRequest,
        Trigger::LifecycleEvent,
    ];
    let triggers = triggers.map(Trigger::name);
    let cancelled = |by: &str, drains: &[&str], end| Cancelled {
        node: "worker-1".to_owned(),
        drains: drains.iter().map(|it| (*it).to_owned()).collect(),
        by: by.to_owned(),
        has_events: drains.iter().any(|it| it.starts_with("LifecycleEvent")),
        end,
        was_idle: false,
        was_cordoned: false,
    };
    let drains = ["LifecycleEvent drain-worker-1-x7d2p", "drain drain-worker-1"];
    let mut all = vec![
        Cancelled {
            was_idle: true,
            ..cancelled("", &[], CancelEnd::Ended)
        },
        // The Lease could not be read.
        cancelled("", &[], CancelEnd::Ended),
        Cancelled {
            was_idle: true,
            was_cordoned: true,
            ..cancelled("", &[], CancelEnd::Ended)
        },
        cancelled("LifecycleEvent", &drains, CancelEnd::Ended),
        cancelled("LifecycleEvent", &drains, CancelEnd::RolledBack),
        cancelled("LifecycleEvent", &drains, CancelEnd::Pending),
    ];
    let people = all.iter().map(for_people).collect::<Vec<_>>();
    let programs = all.iter().map(|it| Output::Json.document(&for_programs(it)));
    let programs = programs.collect::<Vec<_>>();
    all = triggers
        .map(|by| cancelled(by, &drains[1..], CancelEnd::Pending))
        .to_vec();
    let errors = all.iter().flat_map(|it| [not_over(it, "60s"), rolled_back(it)]);
    let claimed = Cancelled {
        was_idle: true,
        ..cancelled("", &drains[..1], CancelEnd::Pending)
    };
    let errors = errors.chain([not_over(&claimed, "60s")]).collect::<Vec<_>>();
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("cancel-text", [people, errors].concat().join("\n"));
        insta::assert_snapshot!("cancel-json", programs.join("\n"));
    });
}
