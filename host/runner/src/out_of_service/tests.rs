//! The planner, when the hooks take part, and what ends the drain.

use scupper_engine::{Condition, Decision, Settings, Uid};
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
    let uid = |number: usize| Uid::new(format!("u-{number}"));
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
    let plan = with_deletions(draft());
    let verdicts: Vec<_> = plan.decisions.iter().map(|decision| decision.verdict).collect();
    assert_eq!(
        verdicts,
        [Verdict::Delete, Verdict::Keep, Verdict::Delete, Verdict::Refuse]
    );
    assert_eq!(plan.decisions[1].reason, "drafted");
    let [wave] = &plan.waves[..] else {
        panic!("{:?}", plan.waves)
    };
    assert_eq!(wave.pods, [Uid::new("u-2"), Uid::new("u-0")]);
    assert_eq!(
        (wave.max_parallel, wave.timeout, wave.max_grace_seconds),
        (None, None, None)
    );
    assert_eq!(with_deletions(Plan::default()), Plan::default());
}

/// Answers every read of a node with `Ready=Unknown`, and every read of a Lease with this.
fn cluster(code: u16, lease: &'static str) -> Cluster {
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| async move {
        let node = r#"{"metadata": {"name": "worker-1"}, "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}"#;
        let is_lease = request.uri().path().contains("/leases/");
        let (code, body) = if is_lease { (code, lease) } else { (200, node) };
        let body = kube::client::Body::from(body.as_bytes().to_vec());
        Ok::<_, std::convert::Infallible>(http::Response::builder().status(code).body(body).unwrap())
    });
    let client = kube::Client::new(service, "default");
    let clock = scupper_common::clock::Clock::starting_at(scupper_engine::Time::from_millis(1_000_000_000));
    Cluster::from_client(client, scupper_cluster::ConnectOptions::default(), clock)
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_may_not_be_read_is_tried_again_and_then_refuses_the_drain() {
    let forbidden = r#"{"kind": "Status", "code": 403, "reason": "Forbidden", "message": "not yours"}"#;
    let (cluster, looks) = (cluster(403, forbidden), KubeletLooks::default());
    let limit = Duration::from_secs(120);
    let ask = || plan(&cluster, "worker-1", draft(), &looks, limit);
    for _ in 0..2 {
        let answer = ask().await;
        let is_retried = matches!(
            &answer,
            PlanAnswer::Failed {
                retry_after: Some(_),
                ..
            }
        );
        assert!(is_retried, "{answer:?}");
        tokio::time::advance(Duration::from_secs(60)).await;
    }
    let PlanAnswer::Refused { message } = ask().await else {
        panic!("not refused")
    };
    for words in [
        "whether the kubelet of node worker-1 is silent cannot be told",
        "kube-node-lease",
        "not yours",
    ] {
        assert!(message.contains(words), "{message}");
    }
    assert!(matches!(
        plan_at_once(&cluster, "worker-1", draft()).await,
        PlanAnswer::Refused { .. }
    ));
}

#[tokio::test(start_paused = true)]
async fn an_expired_lease_lets_the_plan_pass() {
    let expired = r#"{"metadata": {"name": "worker-1", "uid": "l", "resourceVersion": "3"},
        "spec": {"leaseDurationSeconds": 40, "renewTime": "1970-01-01T00:00:00.000000Z"}}"#;
    let answer = plan_at_once(&cluster(200, expired), "worker-1", draft()).await;
    assert_eq!(answer, PlanAnswer::Plan(with_deletions(draft())));
}

#[test]
fn a_drain_that_has_begun_is_cancelled_once_the_node_is_not_unknown() {
    let ordered = |machine_is_off, intent, is_untouched, ready| {
        let event = Event::Node(Some(node(Some(ready))));
        order(&request(machine_is_off, intent), is_untouched, &event).is_some()
    };
    assert!(ordered(true, Intent::Drain, false, "True"));
    assert!(
        ordered(true, Intent::Drain, false, "False"),
        "only a kubelet writes it"
    );
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
