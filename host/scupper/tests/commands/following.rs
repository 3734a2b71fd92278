//! How a command follows the drain that it has handed over.

use scupper_simulator::api::Forbidden;
use serde_json::{Value, json};

use crate::kubelet_node::{Agent, EVENTS, asks, until};
use crate::rig::Rig;

/// The same lines as a drain in the terminal: the plan, the wave, the blockers; each of them once.
#[test]
fn a_followed_drain_prints_the_plan_the_waves_and_what_blocks_a_pod() {
    let rig = Rig::new();
    let _agent = Agent::start(&rig, false);
    rig.apply(rig.pod("db", "worker-1"));
    rig.budget("keep-db", "db");
    rig.apply(rig.pod("other", "worker-1"));
    let mut drain = rig.start(&asks("drain", &["--pod-selector", "app!=other"]));
    let lines = [
        "plan     1 pod to evict in 1 wave, 1 to keep",
        "         wave 1 all: shop/db",
        "         stays: shop/other (",
        "wave     1 of 1, all: 1 pod to evict",
        "waits    shop/db: budget keep-db blocks it",
    ];
    for line in lines {
        drain.prints(line);
    }
    let store = rig.api.store();
    store
        .delete("poddisruptionbudgets.policy", "shop", "keep-db")
        .unwrap();
    let run = drain.ended();
    assert_eq!(run.code, Some(0), "{run:#?}");
    for line in lines {
        assert_eq!(run.stdout.matches(line).count(), 1, "{line}: {run:#?}");
    }
    // Whichever watch is quicker.
    let at = |words: &str| {
        run.stdout
            .find(words)
            .unwrap_or_else(|| panic!("{words}: {run:#?}"))
    };
    assert!(at("gone     shop/db") < at("Succeeded"), "{run:#?}");
    let node = rig.node("worker-1");
    let left = &node["metadata"]["annotations"]["scupper.dev/drain-status"];
    assert!(left.is_null(), "a drain that is done leaves no word: {node}");
}

#[test]
fn a_followed_drain_reports_a_cancel_by_another_user() {
    let rig = Rig::new();
    let _agent = Agent::start(&rig, false);
    rig.apply(rig.pod("stuck", "worker-1").stuck());
    let mut drain = rig.start(&asks("drain", &[]));
    drain.prints("Claimed");
    until("the node is cordoned", || rig.is_cordoned("worker-1"));
    let run = rig.run(&asks("cancel", &[]));
    assert_eq!(run.code, Some(0), "{run:#?}");
    let run = drain.ended();
    assert_eq!(run.code, Some(5), "{run:#?}");
    let end = run.stdout.lines().find(|line| line.contains("Cancelled in"));
    // The word is said once.
    assert!(end.is_some_and(|end| !end.contains(": cancelled: ")), "{run:#?}");
}

/// An API server that restarts refuses for a while what it granted before, and then shows it as missing.
#[test]
fn a_driver_that_continues_is_followed_where_the_api_server_refuses_its_event_for_a_while() {
    for verbs in [&["list", "watch"][..], &["list", "watch", "get"]] {
        let rig = Rig::new();
        let _agent = Agent::start(&rig, false);
        rig.act_as("sre");
        rig.apply(rig.pod("stuck", "worker-1").stuck());
        let mut drain = rig.start(&asks("drain", &[]));
        drain.prints("Claimed");
        let before = rig.api.mark();
        for verb in verbs {
            rig.api.set_forbidden(Forbidden {
                user: "sre".to_owned(),
                verb: (*verb).to_owned(),
                resource: EVENTS.to_owned(),
                ..Forbidden::default()
            });
        }
        rig.api.break_watches();
        let looks = || {
            let requests = rig.api.requests_since(before).into_iter();
            requests
                .filter(|it| it.user == "sre" && it.resource == EVENTS && it.verb == "get")
                .any(|it| it.status.is_some())
        };
        let has_ended = || drain.stdout().contains("  end  ");
        until("the command looks itself, or ends", || looks() || has_ended());
        assert!(!has_ended(), "{verbs:?}: {}", drain.stdout());
        rig.api.clear_forbidden();
        rig.api.store().delete("pods", "shop", "stuck").unwrap();
        let run = drain.ended();
        assert_eq!(run.code, Some(0), "{verbs:?}: {run:#?}");
        assert!(run.stdout.contains("Drained in"), "{run:#?}");
    }
}

/// The driver deletes the event that has succeeded, between two lists.
#[test]
fn what_the_driver_has_done_is_told_where_nothing_showed_the_end_of_its_event() {
    for cordoned in [false, true] {
        let rig = Rig::new();
        let _agent = Agent::start(&rig, false);
        rig.act_as("sre");
        rig.api.set_forbidden(Forbidden {
            user: "sre".to_owned(),
            verb: "watch".to_owned(),
            resource: EVENTS.to_owned(),
            ..Forbidden::default()
        });
        if cordoned {
            let cordon = |node: &mut Value| node["spec"]["unschedulable"] = json!(true);
            rig.inside(|| rig.api.store().edit("nodes", "", "worker-1", cordon))
                .unwrap();
        }
        rig.apply(rig.pod("web", "worker-1").takes(2.0));
        for (command, words) in [("drain", "Drained in"), ("uncordon", "Uncordoned in")] {
            // Somebody else's cordon is not lifted by the driver's uncordon.
            if command == "uncordon" && cordoned {
                continue;
            }
            let run = rig.run(&asks(command, &[]));
            assert_eq!(run.code, Some(0), "{command}: {run:#?}");
            assert!(run.stdout.contains(words), "{command}: {run:#?}");
        }
    }
}
