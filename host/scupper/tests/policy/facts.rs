//! What policies learn about the cluster, and what the host asks for it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use scupper_engine::{Controller, HookPhase, PlanAnswer, Pod, StepOutcome, Time, Uid};
use scupper_policy::{
    DrainFacts, DrainInfo, Facts, LoadError, LoadFault, Observation, Observer, PlanCall, Policies,
};
use scupper_policy_spec::{FACTS, Limits, PolicySpec};

use crate::support::{FakeCluster, draft, drain, fault, grant, node, pod, runtime, short, spec, step};

/// The guest with these questions and all grants.
pub(crate) fn asks(questions: &str) -> PolicySpec {
    PolicySpec {
        grants: FACTS.map(|fact| grant(&format!("facts:{fact}"))).to_vec(),
        config: [("ask".to_owned(), questions.to_owned())].into(),
        ..spec("asks")
    }
}

pub(crate) async fn load(specs: &[PolicySpec], cluster: &Arc<FakeCluster>) -> Result<Policies, LoadError> {
    Policies::load(&runtime(), specs, Arc::<FakeCluster>::clone(cluster)).await
}

/// Pods in so many namespaces.
fn pods_in(namespaces: usize) -> Vec<Pod> {
    let in_namespace = |number: usize| {
        let mut pod = pod(number);
        pod.id.namespace = format!("ns-{}", number % namespaces);
        pod
    };
    (0..2 * namespaces).map(in_namespace).collect()
}

pub(crate) async fn plan_of(
    policies: &Policies,
    policy: &str,
    pods: &[Pod],
    facts: Option<&Arc<Facts>>,
) -> PlanAnswer {
    let (node, draft, pods) = (node(), draft(pods), pods.iter().collect::<Vec<_>>());
    let drain = DrainInfo { facts, ..drain() };
    let call = PlanCall {
        policy,
        drain,
        node: &node,
        pods: &pods,
        draft: &draft,
    };
    policies.plan(call).await
}

/// What the guest learned for its plan.
pub(crate) async fn learned(policies: &Policies, pods: &[Pod], facts: Option<&Arc<Facts>>) -> String {
    match plan_of(policies, "p", pods, facts).await {
        PlanAnswer::Refused { message } => message,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn asked(cluster: &FakeCluster) -> Vec<String> {
    std::mem::take(&mut *cluster.asked.lock().unwrap())
}

#[tokio::test]
async fn a_planner_learns_of_the_request_and_of_namespaces() {
    let cluster = Arc::new(FakeCluster::default());
    let questions = "request\nnamespace shop\nnamespace no-such\nnamespace ../nodes\nnamespace shop";
    let policies = load(&[asks(questions)], &cluster).await.unwrap();
    assert!(asked(&cluster).is_empty(), "loading sends no request");
    assert_eq!(
        learned(&policies, &[pod(1)], None).await,
        "LifecycleEvent maintenance Some(\"42\"); shop Some(\"shop\"); not found: no no-such; not found: `../nodes` \
         cannot be the name of a namespace; shop Some(\"shop\")"
    );
    assert_eq!(
        asked(&cluster),
        [
            "event maintenance drain-uid",
            "namespace shop",
            "namespace no-such"
        ]
    );
}

#[tokio::test]
async fn only_a_lifecycle_event_has_labels_to_read() {
    let cluster = Arc::new(FakeCluster::default());
    let policies = load(&[asks("request")], &cluster).await.unwrap();
    for trigger in ["cordon", "command"] {
        let (node, draft) = (node(), draft(&[]));
        let drain = DrainInfo { trigger, ..drain() };
        let call = PlanCall {
            policy: "p",
            drain,
            node: &node,
            pods: &[],
            draft: &draft,
        };
        let PlanAnswer::Refused { message } = policies.plan(call).await else {
            panic!("no refusal")
        };
        assert_eq!(message, format!("{trigger} maintenance None"));
    }
    assert!(asked(&cluster).is_empty());
}

#[tokio::test]
async fn all_planners_of_a_plan_get_the_same_answers_and_the_next_plan_those_of_a_minute() {
    let cluster = Arc::new(FakeCluster::default());
    let other = PolicySpec {
        name: "q".to_owned(),
        ..asks("namespace no-such\nrequest\nnamespace shop")
    };
    let chain = [asks("request\nnamespace shop\nnamespace no-such"), other];
    let policies = load(&chain, &cluster).await.unwrap();
    let (mut facts, pods) = (DrainFacts::default(), [pod(1)]);
    let mut plan = async |chain, now| {
        let facts = facts.of_plan(chain, Time::from_millis(now));
        let first = learned(&policies, &pods, Some(&facts)).await;
        let again = learned(&policies, &pods, Some(&facts)).await;
        assert_eq!(first, again);
        let other = plan_of(&policies, "q", &pods, Some(&facts)).await;
        assert!(matches!(other, PlanAnswer::Refused { .. }), "{other:?}");
        asked(&cluster)
    };
    let all = [
        "event maintenance drain-uid",
        "namespace shop",
        "namespace no-such",
    ];
    assert_eq!(plan(1, 1_000).await, all);
    // What does not exist may exist now.
    assert_eq!(plan(2, 60_999).await, ["namespace no-such"]);
    assert_eq!(plan(3, 61_000).await, all);
    assert!(plan(3, 200_000).await.is_empty(), "it is still the same plan");
}

#[tokio::test]
async fn many_namespaces_come_in_one_list() {
    let cluster = Arc::new(FakeCluster::default());
    let questions = |count: usize| {
        let lines: Vec<_> = (0..count)
            .map(|number| format!("namespace ns-{number}"))
            .collect();
        lines.join("\n")
    };
    let policies = load(&[asks(&questions(12))], &cluster).await.unwrap();
    let reported = learned(&policies, &pods_in(12), None).await;
    assert_eq!(reported.matches("Some(").count(), 12, "{reported}");
    assert_eq!(
        asked(&cluster),
        ["namespace ns-0", "namespace ns-1", "namespace ns-2", "namespaces"]
    );
    let policies = load(&[asks(&questions(6))], &cluster).await.unwrap();
    let reported = learned(&policies, &pods_in(6), None).await;
    assert_eq!(reported.matches("Some(").count(), 6, "{reported}");
    assert_eq!(asked(&cluster).len(), 6);
}

#[tokio::test]
async fn a_plan_without_an_answer_is_made_again_whatever_the_policy_makes_of_it() {
    for (then, remedy) in [("", "refuse"), ("trap", "refuse"), ("go on", "ignore")] {
        let cluster = Arc::new(FakeCluster {
            away: true,
            ..FakeCluster::default()
        });
        let mut spec = asks("namespace shop\nnamespace bank\nrequest");
        spec.config.insert("then".to_owned(), then.to_owned());
        if remedy == "ignore" {
            spec.on_failure.planner = scupper_policy_spec::FailurePolicy::Ignore;
        }
        let policies = load(&[spec], &cluster).await.unwrap();
        let PlanAnswer::Failed { message, retry_after } = plan_of(&policies, "p", &[pod(1)], None).await
        else {
            panic!("`{then}`")
        };
        assert_eq!(
            message,
            "a fact that it asked for could not be read: the API server is away"
        );
        assert!(retry_after.is_some());
        assert_eq!(asked(&cluster), ["namespace shop"], "it is asked once");
    }
}

#[tokio::test]
async fn fetching_does_not_count_against_the_policys_time() {
    let cluster = Arc::new(FakeCluster {
        delay: Duration::from_secs(2),
        ..FakeCluster::default()
    });
    let limits = Limits {
        plan_wall: Duration::from_secs(1),
        ..short()
    };
    let spec = PolicySpec {
        limits,
        ..asks("namespace shop\nrequest")
    };
    let policies = load(&[spec], &cluster).await.unwrap();
    let reported = learned(&policies, &[pod(1)], None).await;
    assert!(reported.ends_with("Some(\"42\")"), "{reported}");
}

#[tokio::test]
async fn a_silent_api_server_holds_a_plan_up_once() {
    let cluster = Arc::new(FakeCluster {
        silent: true,
        ..FakeCluster::default()
    });
    let policies = load(&[asks("namespace shop\nnamespace bank\nrequest")], &cluster)
        .await
        .unwrap();
    let PlanAnswer::Failed { message, .. } = plan_of(&policies, "p", &[pod(1)], None).await else {
        panic!("it has a plan")
    };
    assert!(
        message.ends_with("could not be read: the API server did not answer within 10 s"),
        "{message}"
    );
}

#[tokio::test]
async fn one_call_may_not_ask_for_everything() {
    let cluster = Arc::new(FakeCluster::default());
    let policies = load(
        &[asks("namespaces 256\nnamespaces 257\nnamespace other-3")],
        &cluster,
    )
    .await
    .unwrap();
    assert_eq!(
        learned(&policies, &[pod(1)], None).await,
        "other-255 Some(\"other-255\"); one call may ask for 256 namespaces besides those of its pods, and learn 8 MiB (or 64 KiB \
         for each of its pods) of labels, annotations and other texts; a hook can ask for more in its next step; other-3 \
         Some(\"other-3\")"
    );
    assert_eq!(asked(&cluster).len(), 256);
}

#[tokio::test]
async fn a_step_asks_anew_and_a_check_only_for_namespaces() {
    let cluster = Arc::new(FakeCluster::default());
    let policies = load(&[asks("request\nnamespace shop")], &cluster).await.unwrap();
    for _ in 0..2 {
        let StepOutcome::Failed { message, .. } = step(&policies, HookPhase::BeforeDrain, &[]).await else {
            panic!("no failure")
        };
        assert_eq!(
            message,
            "LifecycleEvent maintenance Some(\"42\"); shop Some(\"shop\")"
        );
        assert_eq!(asked(&cluster), ["event maintenance drain-uid", "namespace shop"]);
    }
    let checked = policies.check(Some(&node())).await;
    assert_eq!(
        checked[0].findings[0].message,
        "not granted: `check` is called outside of drains and may ask only for namespaces; shop Some(\"shop\")"
    );
    assert_eq!(asked(&cluster), ["namespace shop"]);
}

#[tokio::test]
async fn each_fact_is_granted_by_itself() {
    let cluster = Arc::new(FakeCluster::default());
    let mut narrow = asks("request");
    narrow.grants.truncate(1);
    let Err(error) = load(&[narrow.clone()], &cluster).await else {
        panic!("it was loaded")
    };
    let (missing, text) = fault(error);
    assert!(matches!(missing, LoadFault::NotGranted(_)));
    for fact in &FACTS[1..] {
        assert!(text.contains(&format!("--grant p=facts:{fact}")), "{text}");
    }
    assert!(!text.contains("facts:request"), "{text}");
    narrow.grants.push(grant("facts:everything"));
    let Err(error) = load(&[narrow], &cluster).await else {
        panic!("it was loaded")
    };
    let (_, text) = fault(error);
    assert!(
        text.contains(
            "`everything` is not a target of facts; write one of request, namespaces, budgets, owners, resources, volumes, peers"
        ),
        "{text}"
    );
}

#[test]
fn a_plan_has_no_facts_of_another_drain() {
    let (mut one, mut other) = (DrainFacts::default(), DrainFacts::default());
    let now = Time::from_millis(0);
    assert!(Arc::ptr_eq(&one.of_plan(1, now), &one.of_plan(1, now)));
    assert!(!Arc::ptr_eq(&one.of_plan(1, now), &other.of_plan(1, now)));
    assert!(!Arc::ptr_eq(&one.of_plan(1, now), &one.of_plan(2, now)));
}

/// Pods of so many ReplicaSets `webN-1`, two each.
pub(crate) fn pods_of(sets: usize) -> Vec<Pod> {
    let of_set = |number: usize| {
        let name = format!("web{}-1", number % sets);
        Pod {
            controller: Some(controller("ReplicaSet", &name)),
            ..pod(number)
        }
    };
    (0..2 * sets).map(of_set).collect()
}

fn controller(kind: &str, name: &str) -> Controller {
    Controller {
        api_version: "apps/v1".to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        uid: Uid::new(format!("uid-of-{kind}-{name}")),
        missing: false,
    }
}

/// Records what policies ask.
#[derive(Default)]
struct Questions(Mutex<Vec<String>>);

impl Observer for Questions {
    fn observe(&self, observation: Observation<'_>) {
        if let Observation::Asked { policy, fact, result } = observation {
            let (fact, result) = (fact.as_str(), result.as_str());
            self.0.lock().unwrap().push(format!("{policy} {fact} {result}"));
        }
    }
}

#[tokio::test]
async fn each_question_is_observed_with_its_result() {
    let questions = Arc::new(Questions::default());
    let runtime = runtime().observed_by(Arc::<Questions>::clone(&questions));
    let seen = || std::mem::take(&mut *questions.0.lock().unwrap());
    let asked_of = async |ask: &str, cluster: &Arc<FakeCluster>| {
        let cluster = Arc::<FakeCluster>::clone(cluster);
        let policies = Policies::load(&runtime, &[asks(ask)], cluster).await.unwrap();
        seen();
        // The SDK does not ask for owners of a pod without one.
        plan_of(&policies, "p", &pods_of(1)[..1], None).await;
        seen()
    };
    let here = Arc::new(FakeCluster::default());
    let questions = "request\nnamespace shop\nnamespace shop\nnamespace no-such\nnamespace ../nodes";
    assert_eq!(
        asked_of(questions, &here).await,
        [
            "p request answered",
            "p namespaces answered",
            "p namespaces answered",
            "p namespaces not-found"
        ]
    );
    assert_eq!(
        asked_of("budgets\nowners\nresources\nvolumes\npeers", &here).await,
        ["budgets", "owners", "resources", "volumes", "peers", "peers"]
            .map(|fact| format!("p {fact} answered"))
    );
    let away = Arc::new(FakeCluster {
        away: true,
        ..FakeCluster::default()
    });
    assert_eq!(asked_of("budgets", &away).await, ["p budgets unavailable"]);
    let many = asked_of("namespaces 257", &here).await;
    assert_eq!(many.last().map(String::as_str), Some("p namespaces too-many"));
    assert_eq!(many.len(), 257);
}

#[tokio::test]
async fn a_planner_learns_of_the_budgets_of_its_pods() {
    let cluster = Arc::new(FakeCluster::default());
    let policies = load(&[asks("budgets\nbudgets")], &cluster).await.unwrap();
    let one =
        r#"shop/keep ["uid-0001", "uid-0002"] 3 3 2 0 UnhealthyPodEvictionPolicy::AlwaysAllow true true"#;
    assert_eq!(
        learned(&policies, &[pod(1), pod(2)], None).await,
        format!("{one}; {one}")
    );
    assert_eq!(asked(&cluster), ["budgets"]);
    assert_eq!(learned(&policies, &[], None).await, "; ");
}

#[tokio::test]
async fn owners_come_from_the_controller_upwards() {
    let cluster = Arc::new(FakeCluster::default());
    let policies = load(&[asks("owners")], &cluster).await.unwrap();
    let with = |kind: &str, name: &str| {
        let owned = Pod {
            controller: Some(controller(kind, name)),
            ..pod(1)
        };
        [owned]
    };
    let set = r#"ReplicaSet/cart-1 Some("cart-1") Some(3) Some(2) """#;
    let above = r#"Deployment/cart Some("cart") Some(3) Some(2) "Recreate""#;
    let pods = with("ReplicaSet", "cart-1");
    assert_eq!(learned(&policies, &pods, None).await, format!("{set} < {above}"));
    assert_eq!(
        asked(&cluster),
        ["ReplicaSet shop/cart-1", "Deployment shop/cart"]
    );
    for (kind, name) in [("RayCluster", "train"), ("ReplicaSet", "gone-1")] {
        let reported = learned(&policies, &with(kind, name), None).await;
        assert_eq!(reported, format!("{kind}/{name} None None None \"\""));
    }
    // Another object has the name of one that is gone.
    let mut pods = with("ReplicaSet", "cart-1");
    pods[0].controller.as_mut().unwrap().uid = Uid::new("of the first");
    let reported = learned(&policies, &pods, None).await;
    assert_eq!(reported, "ReplicaSet/cart-1 None None None \"\"");
    assert_eq!(
        learned(&policies, &[pod(1)], None).await,
        "",
        "it has no controller"
    );
}

#[tokio::test]
async fn a_job_says_how_many_failures_it_bears() {
    let cluster = Arc::new(FakeCluster::default());
    let policies = load(&[asks("job")], &cluster).await.unwrap();
    let of = |kind: &str| {
        let owned = Pod {
            controller: Some(controller(kind, "train")),
            ..pod(1)
        };
        [owned]
    };
    assert_eq!(
        learned(&policies, &of("Job"), None).await,
        "train 1 1 Some(2) DisruptionAction::FailIndex true"
    );
    assert_eq!(asked(&cluster), ["Job shop/train"]);
    assert_eq!(learned(&policies, &of("ReplicaSet"), None).await, "no job");
    assert!(asked(&cluster).is_empty(), "the SDK does not ask for others");
    // Another object has the name of one that is gone.
    let mut pods = of("Job");
    pods[0].controller.as_mut().unwrap().uid = Uid::new("of the first");
    assert_eq!(learned(&policies, &pods, None).await, "no job");
}

#[tokio::test]
async fn many_owners_come_in_one_list_of_each_kind() {
    let cluster = Arc::new(FakeCluster::default());
    let policies = load(&[asks("owners")], &cluster).await.unwrap();
    let reported = learned(&policies, &pods_of(3), None).await;
    assert_eq!(reported.matches(" < Deployment/web").count(), 6, "{reported}");
    assert_eq!(asked(&cluster), ["ReplicaSets of shop", "Deployments of shop"]);
    let reported = learned(&policies, &pods_of(2), None).await;
    assert_eq!(reported.matches(" < Deployment/web").count(), 4, "{reported}");
    assert_eq!(asked(&cluster).len(), 4);
}

#[tokio::test]
async fn only_the_pods_of_the_call_have_owners() {
    let cluster = Arc::new(FakeCluster::default());
    let policies = load(&[asks("stranger")], &cluster).await.unwrap();
    let reported = learned(&policies, &pods_of(1), None).await;
    assert_eq!(reported, "not found: no pod of this call has the UID");
    assert!(asked(&cluster).is_empty());
}

#[tokio::test]
async fn what_one_call_learns_has_a_limit() {
    let cluster = Arc::new(FakeCluster {
        padding: "x".repeat(200 * 1024),
        ..FakeCluster::default()
    });
    let spec = PolicySpec {
        limits: Limits {
            memory: 512 * 1024 * 1024,
            ..Limits::default()
        },
        ..asks("namespaces 40\nnamespaces 41")
    };
    let policies = load(&[spec], &cluster).await.unwrap();
    let reported = learned(&policies, &[pod(1)], None).await;
    assert!(
        reported.starts_with("other-39 Some(\"other-39\"); one call may ask for 256 namespaces besides"),
        "{reported}"
    );
}
