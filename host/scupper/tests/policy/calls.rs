//! Well-behaved guests: their input, and the use of their answers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use scupper_engine::{Controller, Deletion, HookPhase, PlanAnswer, StepOutcome, Time, Uid, Verdict};
use scupper_policy::{DrainInfo, PlanCall, Policies};
use scupper_policy_spec::{Limits, PolicySpec};

use crate::support::{
    FakeCluster, draft, drain, grant, load, load_spec, node, plan, plan_for, pod, runtime, spec, step,
};

#[tokio::test]
async fn echo_leaves_plan_and_authors_as_they_are() {
    let policies = load("echo").await;
    let pods: Vec<_> = (0..110).map(pod).collect();
    assert_eq!(plan_for(&policies, &pods).await, PlanAnswer::Plan(draft(&pods)));
    assert_eq!(plan(&policies, 0).await, PlanAnswer::Plan(draft(&[])));
}

#[tokio::test]
async fn five_thousand_pods_fit_into_the_limits() {
    // Lowering the pods is the host's own work, which is slow in a debug build.
    let limits = Limits {
        plan_cpu: Duration::from_secs(20),
        plan_wall: Duration::from_secs(60),
        ..Limits::default()
    };
    let policies = load_spec(PolicySpec {
        limits,
        ..spec("echo")
    })
    .await
    .unwrap();
    let pods: Vec<_> = (0..5000).map(pod).collect();
    assert_eq!(plan_for(&policies, &pods).await, PlanAnswer::Plan(draft(&pods)));
}

#[tokio::test]
async fn waves_come_back_in_order_and_with_their_limits() {
    let policies = load("waves").await;
    let PlanAnswer::Plan(answer) = plan(&policies, 3).await else {
        panic!("no plan")
    };
    let names: Vec<_> = answer.waves.iter().map(|wave| wave.name.as_str()).collect();
    assert_eq!(names, ["of uid-0002", "of uid-0001"]);
    let first = &answer.waves[0];
    assert_eq!(first.pods, [Uid::new("uid-0002")]);
    assert_eq!(first.max_parallel, Some(1));
    assert_eq!(first.timeout, Some(Duration::from_secs(60)));
    assert_eq!(first.max_grace_seconds, Some(30));
    // It asked for 0, with which the API server would forget a pod that still runs.
    assert_eq!(answer.waves[1].max_grace_seconds, Some(1));
}

#[tokio::test]
async fn a_changed_decision_is_the_policys_on_one_line_of_bounded_length() {
    let policies = load("waves").await;
    let PlanAnswer::Plan(answer) = plan(&policies, 3).await else {
        panic!("no plan")
    };
    let [changed, kept, ..] = answer.decisions.as_slice() else {
        panic!("{answer:?}")
    };
    assert_eq!((changed.verdict, changed.policy.as_str()), (Verdict::Keep, "p"));
    assert!(
        changed.reason.starts_with(r"two\nlines and much too long"),
        "{}",
        changed.reason
    );
    assert!(
        changed.reason.len() <= 256 && changed.reason.ends_with('…'),
        "{}",
        changed.reason
    );
    assert_eq!(
        (kept.policy.as_str(), kept.reason.as_str()),
        ("kubectl", "it can")
    );
}

#[tokio::test]
async fn a_refusal_is_one_bounded_line() {
    let PlanAnswer::Refused { message } = plan(&load("refuse").await, 1).await else {
        panic!("no refusal")
    };
    assert!(message.starts_with(r"not node-1:\u{1b}[2J never"), "{message}");
    assert!(message.len() <= 1024, "{}", message.len());
}

#[tokio::test]
async fn witness_sees_every_field_of_a_pod() {
    let mut last = pod(9);
    last.controller = Some(Controller {
        api_version: "apps/v1".to_owned(),
        kind: "ReplicaSet".to_owned(),
        name: "web".to_owned(),
        uid: Uid::new("owner-uid"),
        missing: false,
    });
    last.deletion = Some(Deletion {
        at: Time::from_millis(1_700_000_300_000),
        grace_seconds: 5,
    });
    last.annotations
        .insert(scupper_engine::MIRROR_ANNOTATION.to_owned(), "x".to_owned());
    last.host_network = true;
    let pods = [pod(1), last];
    let (policies, node, plan) = (load("witness").await, node(), draft(&pods));
    let own_pod = pods[1].id.uid.clone();
    let drain = DrainInfo {
        own_pod: Some(&own_pod),
        ..drain()
    };
    let pods: Vec<_> = pods.iter().collect();
    let call = PlanCall {
        policy: "p",
        drain,
        node: &node,
        pods: &pods,
        draft: &plan,
    };
    let PlanAnswer::Refused { message } = policies.plan(call).await else {
        panic!("no refusal")
    };
    for field in [
        r#"uid: "uid-0009""#,
        r#"namespace: "shop""#,
        r#"name: "web-9""#,
        r#"Entry { key: "example.com/label-5", value: "value-5" }"#,
        r#"Controller { api-version: "apps/v1", kind: "ReplicaSet", name: "web", uid: "owner-uid" }"#,
        "phase: PodPhase::Running",
        "ready: true",
    ] {
        assert!(message.contains(field), "{field} is missing in {message}");
    }
}

#[tokio::test]
async fn witness_hooks_receive_phase_subject_and_state() {
    let policies = load("witness").await;
    let [info] = policies.infos().try_into().unwrap();
    assert!(info.planner);
    assert_eq!(info.phases, [HookPhase::BeforeCordon, HookPhase::AfterDrain]);
    let StepOutcome::Failed { message, retry_after } = step(&policies, HookPhase::BeforeCordon, b"ab").await
    else {
        panic!("no failure")
    };
    assert_eq!(message, "Phase::BeforeCordon Subject::Node [97, 98] 2");
    assert_eq!(retry_after, None);
}

#[tokio::test]
async fn steps_go_from_pending_to_done_and_lists_are_bounded() {
    let policies = load("steps").await;
    let first = step(&policies, HookPhase::BeforeDrain, b"").await;
    let asked = StepOutcome::Pending {
        state: b"asked".to_vec(),
        again_after: Duration::from_secs(3),
        progress: "asked the jobs to end".to_owned(),
        waiting_for: Vec::new(),
    };
    assert_eq!(first, asked);
    let second = step(&policies, HookPhase::BeforeDrain, b"asked").await;
    let StepOutcome::Pending {
        state,
        progress,
        waiting_for,
        ..
    } = second
    else {
        panic!("{second:?}")
    };
    assert_eq!(
        (state.as_slice(), progress.as_str()),
        (b"waiting".as_slice(), r"waiting\nfor jobs")
    );
    assert_eq!(waiting_for.len(), 100);
    assert_eq!(waiting_for[0].detail, r"to checkpoint\u{7}");
    assert_eq!(waiting_for[0].since, Some(drain().started));
    assert_eq!(waiting_for[99].what, "151 more");
    assert_eq!(
        step(&policies, HookPhase::BeforeDrain, b"waiting").await,
        StepOutcome::Done
    );
}

#[tokio::test]
async fn a_failed_step_reports_when_to_retry_or_never() {
    let policies = load("steps").await;
    let message = "the job server is away".to_owned();
    let again = StepOutcome::Failed {
        message: message.clone(),
        retry_after: Some(Duration::from_secs(7)),
    };
    assert_eq!(step(&policies, HookPhase::OnCancel, b"").await, again);
    let never = StepOutcome::Failed {
        message,
        retry_after: None,
    };
    assert_eq!(step(&policies, HookPhase::OnCancel, b"final").await, never);
}

#[tokio::test]
async fn configured_reads_its_configuration_and_describes_itself() {
    let mut spec = spec("configured");
    spec.config = BTreeMap::from([("mode".to_owned(), "slow".to_owned())]);
    let policies = load_spec(spec).await.unwrap();
    assert_eq!(
        plan(&policies, 1).await,
        PlanAnswer::Refused {
            message: "slow".to_owned()
        }
    );
    let [about] = policies.descriptions().try_into().unwrap();
    assert_eq!(
        (about.name.as_str(), about.title.as_str(), about.version.as_str()),
        ("p", "configured", "1.2.3")
    );
    assert_eq!(
        (about.summary.as_str(), about.state_version),
        ("Is configured", 7)
    );
    assert_eq!(
        (about.config_schema.as_str(), about.planner, about.digest.len()),
        ("{}", true, 64)
    );
}

/// The instructions of `annotates`, and the result.
async fn script(cluster: &Arc<FakeCluster>, lines: &str) -> String {
    let mut spec = spec("annotates");
    spec.grants = vec![
        grant("node-annotations:drain.example.com/"),
        grant("pod-annotations:drain.example.com/"),
    ];
    let access = Arc::clone(cluster);
    let policies = Policies::load(&runtime(), &[spec], access).await.unwrap();
    match step(&policies, HookPhase::BeforeDrain, lines.as_bytes()).await {
        StepOutcome::Failed { message, .. } => message,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn annotates_below_its_prefixes() {
    let cluster = Arc::new(FakeCluster::default());
    let lines = "node drain.example.com/a 1\nnode drain.example.com/a\npod drain.example.com/pod-a 2\npod drain.example.com/pod-a";
    assert_eq!(script(&cluster, lines).await, "done; done; done; done");
    let writes = cluster.writes.lock().unwrap().clone();
    assert_eq!(
        writes,
        [
            "node-annotations node-1 drain.example.com/a 1",
            "node-annotations node-1 drain.example.com/a removed",
            "pod-annotations shop/web-1 drain.example.com/pod-a 2",
            "pod-annotations shop/web-1 drain.example.com/pod-a removed",
        ]
    );
}

#[tokio::test]
async fn annotates_nothing_else() {
    let cluster = Arc::new(FakeCluster::default());
    // Granted but not requested; neither; another domain below it; no name; the cluster's own.
    let lines = [
        "pod drain.example.com/other 1",
        "node other.example.com/a 1",
        "node drain.example.com.evil.com/a 1",
        "node drain.example.com/ 1",
        "node node.kubernetes.io/exclude-from-external-load-balancers 1",
    ];
    let answers = script(&cluster, &lines.join("\n")).await;
    assert_eq!(answers.matches("not granted:").count(), lines.len(), "{answers}");
    let answer = script(&cluster, "stranger drain.example.com/pod-a 1").await;
    assert!(answer.starts_with("not found: no pod on the node"), "{answer}");
    let answer = script(&cluster, "node-long drain.example.com/a 40000").await;
    assert!(answer.contains("more than 32768 bytes"), "{answer}");
    assert_eq!(*cluster.writes.lock().unwrap(), [] as [String; 0]);
}

#[tokio::test]
async fn a_policy_reads_only_its_granted_part_of_the_nodes_annotations() {
    let annotations = [
        ("drain.example.com/a", 20_000),
        ("drain.example.com/b", 30_000),
        // Other clients' annotations do not count.
        ("other.example.com/c", 100_000),
    ];
    let cluster = Arc::new(FakeCluster {
        annotations: annotations
            .map(|(key, bytes)| (key.to_owned(), "x".repeat(bytes)))
            .into(),
        ..FakeCluster::default()
    });
    let lines = [
        "node-long drain.example.com/c 20000",
        "node-long drain.example.com/c 15000",
        // An existing value is replaced.
        "node-long drain.example.com/b 32000",
        "node drain.example.com/b",
    ];
    let answers = script(&cluster, &lines.join("\n")).await;
    let answers: Vec<&str> = answers.split("; ").collect();
    assert!(
        answers[0].starts_with("not granted:")
            && answers[0].contains("would have 70057 bytes, and 65536 are the most"),
        "{answers:?}"
    );
    assert!(
        answers[1].contains("`drain.example.com/b` with 30019"),
        "{answers:?}"
    );
    assert_eq!(answers[2..], ["done", "done", "done"], "{answers:?}");
    assert_eq!(cluster.writes.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn a_step_writes_only_so_often() {
    let cluster = Arc::new(FakeCluster::default());
    let answer = script(&cluster, "node-many drain.example.com/a 1000").await;
    assert!(answer.contains("one step may write 100 times"), "{answer}");
    assert_eq!(cluster.writes.lock().unwrap().len(), 100);
}

#[tokio::test]
async fn a_step_reads_the_cluster_and_learns_when_it_is_unavailable() {
    assert_eq!(
        script(&Arc::new(FakeCluster::default()), "look").await,
        "node-1 3 true"
    );
    let away = Arc::new(FakeCluster {
        away: true,
        ..FakeCluster::default()
    });
    let answer = script(&away, "look\nnode drain.example.com/a 1").await;
    assert_eq!(answer.matches("the API server is away").count(), 3, "{answer}");
}

#[tokio::test]
async fn the_cluster_is_closed_to_planners() {
    let cluster = Arc::new(FakeCluster::default());
    let mut spec = spec("annotates");
    spec.grants = vec![
        grant("node-annotations:drain.example.com/"),
        grant("pod-annotations:drain.example.com/pod-"),
    ];
    let access = Arc::clone(&cluster);
    let policies = Policies::load(&runtime(), &[spec], access).await.unwrap();
    let PlanAnswer::Refused { message } = plan(&policies, 1).await else {
        panic!("no refusal")
    };
    assert!(
        message.contains("NotGranted") && message.ends_with("false; false"),
        "{message}"
    );
    assert_eq!(*cluster.writes.lock().unwrap(), [] as [String; 0]);
}

#[tokio::test]
async fn no_other_policy_answers_for_a_missing_one() {
    let policies = Policies::load(&runtime(), &[], Arc::new(FakeCluster::default()))
        .await
        .unwrap();
    let absent = "there is no policy `p`".to_owned();
    assert_eq!(
        plan(&policies, 1).await,
        PlanAnswer::Failed {
            message: absent.clone(),
            retry_after: None,
        }
    );
    let outcome = step(&policies, HookPhase::BeforeDrain, b"").await;
    assert_eq!(
        outcome,
        StepOutcome::Failed {
            message: absent,
            retry_after: None
        }
    );
}
