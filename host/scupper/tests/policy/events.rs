//! Kubernetes Events in a policy's name: granted, valid, few, and never the same twice in a row.

use std::sync::Arc;

use scupper_engine::{HookPhase, PlanAnswer, StepOutcome};
use scupper_policy::{LoadFault, Policies};
use scupper_policy_spec::PolicySpec;

use crate::support::{FakeCluster, chain, fault, grant, load_spec, plan, runtime, spec, step};

/// The policy `p` that may emit Events about its node and its pods.
async fn emits(cluster: &Arc<FakeCluster>) -> Policies {
    let spec = PolicySpec {
        grants: vec![grant("events:node"), grant("events:pods")],
        ..spec("emits")
    };
    let access = Arc::clone(cluster);
    let loaded = Policies::load(&runtime(), &[spec], access).await;
    loaded.unwrap_or_else(|error| panic!("{}", chain(&error)))
}

async fn script(policies: &Policies, lines: &str) -> String {
    match step(policies, HookPhase::BeforeDrain, lines.as_bytes()).await {
        StepOutcome::Failed { message, .. } => message,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn emits_about_its_node_and_its_pods() {
    let cluster = Arc::new(FakeCluster::default());
    let policies = emits(&cluster).await;
    let answers = script(
        &policies,
        "node JobsRunning 3 jobs run\npod JobsRunning job 7 runs",
    )
    .await;
    assert_eq!(answers, "done; done");
    assert_eq!(
        *cluster.writes.lock().unwrap(),
        [
            "events node-1 warning p JobsRunning 3 jobs run",
            "events shop/web-1 warning p JobsRunning job 7 runs",
        ]
    );
    let usage = policies.usage();
    assert_eq!((usage[0].most.events, usage[0].total.events), (2, 2));
}

#[tokio::test]
async fn emits_no_invalid_event() {
    let cluster = Arc::new(FakeCluster::default());
    let policies = emits(&cluster).await;
    let lines = [
        "node jobs_running 3 jobs run",
        "node JobsRunning two\\nlines",
        "node JobsRunning",
        "stranger JobsRunning of another node",
    ];
    let answers = script(&policies, &lines.join("\n")).await;
    assert_eq!(answers.matches("Error::Invalid").count(), 3, "{answers}");
    assert!(
        answers.contains("Error::NotFound(\"no pod on the node"),
        "{answers}"
    );
    assert_eq!(*cluster.writes.lock().unwrap(), [] as [String; 0]);
}

#[tokio::test]
async fn the_same_event_again_is_dropped_and_a_flood_is_refused() {
    let cluster = Arc::new(FakeCluster::default());
    let policies = emits(&cluster).await;
    let line = "node JobsRunning 3 jobs run";
    for _ in 0..5 {
        assert_eq!(
            script(&policies, &[line; 100].join("\n")).await,
            ["done"; 100].join("; ")
        );
    }
    assert_eq!(cluster.writes.lock().unwrap().len(), 1);
    let answer = script(&policies, "many JobsRunning job").await;
    let written = cluster.writes.lock().unwrap().len();
    // Nine are left of the burst, and ten seconds earn one more.
    assert!((10..=13).contains(&written), "{written}");
    assert_eq!(answer, format!("{} refused", 1001 - written));
}

#[tokio::test]
async fn an_event_that_the_api_server_did_not_take_may_be_emitted_again() {
    let away = Arc::new(FakeCluster {
        away: true,
        ..FakeCluster::default()
    });
    let policies = emits(&away).await;
    let answers = script(
        &policies,
        "node JobsRunning 3 jobs run\nnode JobsRunning 3 jobs run",
    )
    .await;
    assert_eq!(answers.matches("the API server is away").count(), 2, "{answers}");
}

#[tokio::test]
async fn events_are_granted_by_subject_and_only_to_hooks() {
    let mut narrow = spec("emits");
    narrow.grants = vec![grant("events:node")];
    let Err(error) = load_spec(narrow).await else {
        panic!("it was loaded")
    };
    let (reported, text) = fault(error);
    assert!(matches!(reported, LoadFault::NotGranted(_)), "{text}");
    assert!(text.ends_with("events:pods"), "{text}");
    let mut odd = spec("echo");
    odd.grants = vec![grant("events:services")];
    let Err(error) = load_spec(odd).await else {
        panic!("it was loaded")
    };
    assert!(chain(&error).contains("write node or pods"), "{}", chain(&error));
    let cluster = Arc::new(FakeCluster::default());
    let PlanAnswer::Refused { message } = plan(&emits(&cluster).await, 1).await else {
        panic!("no refusal")
    };
    assert!(message.contains("only `step` may emit"), "{message}");
    assert_eq!(*cluster.writes.lock().unwrap(), [] as [String; 0]);
}
