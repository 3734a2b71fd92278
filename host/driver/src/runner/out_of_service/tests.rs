//! The planner, when the hooks take part, and what ends the drain.

use scupper_engine::{Decision, Settings, Uid};
use scupper_report::fixture;

use super::*;

fn request(machine_is_off: bool, intent: Intent) -> Request {
    Request {
        intent,
        settings: Settings {
            machine_is_off,
            ..Settings::default()
        },
        ..fixture::request()
    }
}

fn node(ready: Option<&str>) -> Node {
    let mut node = fixture::node(fixture::mark("command", scupper_engine::Phase::Evicting));
    let ready = ready.map(|status| Condition {
        kind: "Ready".to_owned(),
        status: status.to_owned(),
        reason: String::new(),
        message: String::new(),
        since: None,
    });
    node.conditions = ready.into_iter().collect();
    node
}

fn phases(request: &Request) -> Vec<HookPhase> {
    let own = request.policies.iter().find(|policy| policy.name == POLICY);
    own.map(|policy| policy.phases.clone()).unwrap_or_default()
}

#[test]
fn only_the_word_taints_and_only_our_own_mark_is_cleaned_up() {
    let given = planned(request(true, Intent::Drain), None);
    assert_eq!(phases(&given), [HookPhase::BeforeDrain, HookPhase::OnCancel]);
    assert_eq!(planned(given.clone(), None), given, "once");
    let uncordon = request(true, Intent::Uncordon);
    assert_eq!(planned(uncordon.clone(), None), uncordon);
    let without = request(false, Intent::Drain);
    let mut marked = node(Some("Unknown"));
    assert_eq!(planned(without.clone(), Some(&marked)), without);
    for (mark, expected) in [
        ("another", vec![]),
        (without.id.as_str(), vec![HookPhase::OnCancel]),
    ] {
        marked.annotations = [(Node::OUT_OF_SERVICE.to_owned(), mark.to_owned())].into();
        let given = planned(without.clone(), Some(&marked));
        assert_eq!(phases(&given), expected, "{mark}");
        assert!(
            given
                .policies
                .iter()
                .all(|policy| policy.name != POLICY || !policy.planner)
        );
    }
}

fn draft() -> Plan {
    let verdicts = [
        Verdict::Evict,
        Verdict::Keep,
        Verdict::AwaitCompletion,
        Verdict::Refuse,
    ];
    let uid = |number: usize| Uid(format!("u-{number}"));
    let decisions = verdicts
        .into_iter()
        .enumerate()
        .map(|(number, verdict)| Decision {
            pod: uid(number),
            verdict,
            reason: "drafted".to_owned(),
            policy: String::new(),
        });
    let wave = |name: &str, number| Wave {
        name: name.to_owned(),
        pods: vec![uid(number)],
        max_parallel: Some(1),
        timeout: Some(AGAIN),
        max_grace_seconds: Some(1),
        policy: String::new(),
    };
    Plan {
        decisions: decisions.collect(),
        waves: vec![wave("first", 2), wave("second", 0)],
        ..Plan::default()
    }
}

#[test]
fn what_leaves_is_deleted_in_one_wave_and_what_stays_stays() {
    let PlanAnswer::Plan(plan) = plan(Some(&node(Some("Unknown"))), draft()) else {
        panic!("no plan")
    };
    let verdicts: Vec<_> = plan.decisions.iter().map(|decision| decision.verdict).collect();
    assert_eq!(
        verdicts,
        [Verdict::Delete, Verdict::Keep, Verdict::Delete, Verdict::Refuse]
    );
    assert_eq!(plan.decisions[1].reason, "drafted");
    let [wave] = &plan.waves[..] else {
        panic!("{:?}", plan.waves)
    };
    assert_eq!(wave.pods, [Uid("u-2".to_owned()), Uid("u-0".to_owned())]);
    assert_eq!(
        (wave.max_parallel, wave.timeout, wave.max_grace_seconds),
        (None, None, None)
    );
    let nothing = PlanAnswer::Plan(Plan::default());
    assert_eq!(super::plan(None, Plan::default()), nothing);
}

#[test]
fn a_node_that_is_ready_or_says_nothing_is_refused() {
    for ready in [Some("True"), None, Some("?")] {
        let answer = plan(Some(&node(ready)), draft());
        assert!(
            matches!(answer, PlanAnswer::Refused { .. }),
            "{ready:?}: {answer:?}"
        );
    }
}

#[test]
fn a_drain_that_has_begun_is_cancelled_once_the_node_is_ready() {
    let ordered = |machine_is_off, intent, is_untouched, ready| {
        let event = Event::Node(Some(node(Some(ready))));
        order(&request(machine_is_off, intent), is_untouched, &event).is_some()
    };
    assert!(ordered(true, Intent::Drain, false, "True"));
    assert!(!ordered(true, Intent::Drain, false, "Unknown"));
    assert!(!ordered(true, Intent::Drain, true, "True"), "its plan is refused");
    assert!(!ordered(false, Intent::Drain, false, "True"));
    assert!(!ordered(true, Intent::Uncordon, false, "True"));
    assert_eq!(
        order(&request(true, Intent::Drain), false, &Event::Node(None)),
        None
    );
    // A process continues it without the flag.
    let without = request(false, Intent::Drain);
    for (mark, expected) in [(without.id.as_str(), true), ("another", false)] {
        let mut marked = node(Some("True"));
        marked.annotations = [(Node::OUT_OF_SERVICE.to_owned(), mark.to_owned())].into();
        let event = Event::Node(Some(marked));
        assert_eq!(order(&without, false, &event).is_some(), expected, "{mark}");
        assert_eq!(order(&without, true, &event), None, "{mark}");
    }
}

#[test]
fn a_conflict_is_tried_again_and_an_invalid_write_is_not() {
    let retried = |error| {
        let StepOutcome::Failed { retry_after, .. } = failed(error) else {
            return false;
        };
        retry_after.is_some()
    };
    let rejected = |code| WriteError::Rejected {
        what: String::new(),
        code,
        message: String::new(),
    };
    assert!(retried(WriteError::Conflict {
        what: String::new(),
        message: String::new()
    }));
    assert!(retried(WriteError::Unavailable {
        what: String::new(),
        message: String::new()
    }));
    assert!(retried(rejected(403)));
    assert!(!retried(rejected(422)));
}

#[test]
fn a_taint_is_called_left_over_once_the_node_is_ready_and_no_drain_is_under_way() {
    let left = |ready, phase, is_marked: bool| {
        let mut node = node(ready);
        node.checkpoint = Some(fixture::mark("command", phase));
        let mark = (Node::OUT_OF_SERVICE.to_owned(), "drain".to_owned());
        node.annotations.extend(is_marked.then_some(mark));
        still_tainted(&node).is_some()
    };
    let over = scupper_engine::Phase::Finished;
    assert!(left(Some("True"), over, true));
    assert!(!left(Some("True"), over, false));
    assert!(!left(Some("True"), scupper_engine::Phase::RollingBack, true));
    for ready in [None, Some("Unknown"), Some("False")] {
        assert!(!left(ready, over, true), "{ready:?}");
    }
}
