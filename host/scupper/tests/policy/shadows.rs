//! Plans of shadow policies with real guests: what they cost, what they may do, and what comes of their failures.

use std::sync::Arc;

use scupper_engine::{Request, Time};
use scupper_policy::{Facts, Policies};
use scupper_policy_reload::Session;
use scupper_policy_spec::{FailurePolicy, OnFailure, PolicyMode, PolicySpec};
use scupper_recording::{ShadowPlan, ShadowResult};
use scupper_runner::shadows::{PlanInputs, plan_shadows};

use crate::facts::{asked, asks, load};
use crate::support::{FakeCluster, node, pod, short, spec};

fn shadow(name: &str, instead_of: Option<&str>, spec: PolicySpec) -> PolicySpec {
    let instead_of = instead_of.map(str::to_owned);
    PolicySpec {
        name: name.to_owned(),
        mode: PolicyMode::Shadow { instead_of },
        ..spec
    }
}

/// Decides this about every pod.
fn decides(verdict: &str) -> PolicySpec {
    PolicySpec {
        config: [("verdict".to_owned(), verdict.to_owned())].into(),
        ..spec("decides")
    }
}

/// The same as the active policy `a`.
fn decides_first(verdict: &str) -> PolicySpec {
    PolicySpec {
        name: "a".to_owned(),
        ..decides(verdict)
    }
}

/// What the shadows among these policies would make of a drain of three pods.
async fn plans(policies: Policies, facts: &Arc<Facts>) -> Vec<ShadowPlan> {
    let session = Session::fixed(policies);
    let mut request: Request = scupper_report::fixture::request();
    request.node = node().name;
    request.policies = session.infos();
    request.settings.filters.delete_emptydir_data = true;
    request.settings.filters.force = true;
    let now = Time::from_millis(1_700_000_200_000);
    let inputs = PlanInputs {
        request,
        node: node(),
        pods: (0..3).map(pod).collect(),
        budgets: Vec::new(),
        started: now,
        now,
        facts: Arc::clone(facts),
    };
    let mut plans = Vec::new();
    plan_shadows(&session, &inputs, |plan| plans.push(plan)).await;
    plans
}

async fn results(specs: &[PolicySpec]) -> Vec<ShadowPlan> {
    let policies = load(specs, &Arc::default()).await.unwrap();
    plans(policies, &Arc::default()).await
}

#[tokio::test]
async fn the_chain_of_a_shadow_is_the_one_after_its_promotion() {
    let chains = |specs: Vec<PolicySpec>| async move {
        let policies = load(&specs, &Arc::default()).await.unwrap();
        let session = Session::fixed(policies);
        let names = |infos: &[scupper_engine::PolicyInfo]| -> Vec<String> {
            infos.iter().map(|info| info.name.clone()).collect()
        };
        let shadows = session.shadows().iter();
        (
            names(&session.infos()),
            shadows.map(|shadow| names(shadow.chain())).collect::<Vec<_>>(),
        )
    };
    let active = |name: &str| PolicySpec {
        name: name.to_owned(),
        ..spec("echo")
    };
    let specs = vec![
        shadow("s", None, spec("echo")),
        active("a"),
        shadow("a-next", Some("a"), spec("echo")),
        active("b"),
    ];
    let (chain, shadows) = chains(specs).await;
    assert_eq!(chain, ["a", "b"]);
    assert_eq!(shadows, [vec!["s", "a", "b"], vec!["a-next", "b"]]);
}

#[tokio::test]
async fn a_shadow_is_compared_with_the_chain_without_it() {
    let specs = [
        decides_first("await completion"),
        shadow("additional", None, decides("delete")),
        shadow("same", Some("a"), decides("await completion")),
        shadow("other", Some("a"), decides("delete")),
        shadow("refuses", None, spec("refuse")),
    ];
    let plans = results(&specs).await;
    let names: Vec<_> = plans.iter().map(|plan| plan.result.name()).collect();
    assert_eq!(names, ["differs", "agrees", "differs", "refuses"], "{plans:#?}");
    let pods: Vec<_> = plans.iter().map(ShadowPlan::pods).collect();
    assert_eq!(pods, [3, 0, 3, 3]);
    assert_eq!(
        plans[2].to_string(),
        "shadow policy other (instead of a) would treat 3 pods differently: shop/web-0: delete in wave 1 all instead of \
         await completion in wave 1 all; shop/web-1: delete in wave 1 all instead of await completion in wave 1 all; \
         shop/web-2: delete in wave 1 all instead of await completion in wave 1 all"
    );
}

/// A drain that may not begin is not a failure, and its plan is compared like any other.
#[tokio::test]
async fn pods_that_may_not_leave_with_the_shadow_are_a_difference() {
    let plans = results(&[
        decides_first("delete"),
        shadow("refuses-pods", None, decides("refuse")),
        shadow("without", Some("a"), spec("echo")),
    ])
    .await;
    let verdicts = plans[0].to_string();
    assert!(
        verdicts.contains("shop/web-0: refuse (configured) instead of delete in wave 1 all"),
        "{verdicts}"
    );
    assert_eq!((plans[0].pods(), plans[1].pods()), (3, 3), "{plans:#?}");
}

/// Whatever `on-failure` says: it is about drains that follow the policy.
#[tokio::test]
async fn a_shadow_that_fails_is_reported_and_the_next_one_plans() {
    let hasty = PolicySpec {
        limits: short(),
        on_failure: OnFailure::new(Some(FailurePolicy::Ignore), None),
        ..spec("spins_in_plan")
    };
    let specs = [
        shadow("spins", None, hasty),
        shadow("traps", None, spec("panics")),
        shadow("lies", None, spec("bad_plan")),
        shadow("deletes", None, decides("delete")),
    ];
    let plans = results(&specs).await;
    let words = ["CPU", "look_up_the_impossible", "does not hold"];
    for (plan, word) in plans.iter().zip(words) {
        let ShadowResult::Failed(message) = &plan.result else {
            panic!("{plan:?}")
        };
        assert!(message.contains(word) && plan.pods() == 0, "{plan}");
    }
    assert_eq!(plans[3].result.name(), "differs", "{}", plans[3]);
}

#[tokio::test]
async fn shadows_ask_only_what_the_chain_has_not_asked_and_each_thing_once() {
    let cluster = Arc::new(FakeCluster::default());
    let goes_on = |questions: &str| {
        let mut spec = asks(questions);
        spec.config.insert("then".to_owned(), "go on".to_owned());
        spec
    };
    let specs = [
        PolicySpec {
            name: "a".to_owned(),
            ..goes_on("namespace shop")
        },
        shadow("s", None, goes_on("namespace shop\nnamespace web")),
        shadow("t", None, goes_on("namespace web")),
    ];
    let policies = load(&specs, &cluster).await.unwrap();
    let facts = Arc::default();
    let all = plans(policies.clone(), &facts).await;
    assert!(
        all.iter().all(|plan| plan.result == ShadowResult::Agrees),
        "{all:?}"
    );
    assert_eq!(asked(&cluster), ["namespace shop", "namespace web"]);
    plans(policies, &facts).await;
    assert!(asked(&cluster).is_empty(), "what the chain knows is not asked");
}

#[tokio::test]
async fn the_first_read_that_fails_is_the_last() {
    let cluster = Arc::new(FakeCluster {
        away: true,
        ..FakeCluster::default()
    });
    let specs = [
        shadow("s", None, asks("namespace shop")),
        shadow("t", None, asks("namespace web")),
    ];
    let policies = load(&specs, &cluster).await.unwrap();
    let all = plans(policies, &Arc::default()).await;
    let failed = all.iter().filter(|plan| plan.result.name() == "failed").count();
    assert_eq!(failed, 2, "{all:?}");
    assert_eq!(asked(&cluster), ["namespace shop"]);
    let second = all[1].to_string();
    assert!(
        second.starts_with("shadow policy t has no plan: it was not tried after shadow s: "),
        "{second}"
    );
}

/// A drain goes on without an active policy whose invalid plan is ignored, and so does the comparison.
#[tokio::test]
async fn an_invalid_plan_of_an_active_policy_is_ignored_beside_the_drain_as_in_it() {
    let lies = |on_failure| PolicySpec {
        on_failure: OnFailure::new(Some(on_failure), None),
        ..spec("bad_plan")
    };
    for (on_failure, result) in [
        (FailurePolicy::Ignore, "differs"),
        (FailurePolicy::Refuse, "failed"),
    ] {
        let plans = results(&[lies(on_failure), shadow("deletes", None, decides("delete"))]).await;
        assert_eq!(plans[0].result.name(), result, "{}", plans[0]);
    }
}

/// A policy has in a shadow what it was granted, and no more.
#[tokio::test]
async fn a_shadow_without_a_grant_does_not_load() {
    let ungranted = PolicySpec {
        grants: Vec::new(),
        ..asks("namespace shop")
    };
    let loaded = load(&[shadow("s", None, ungranted)], &Arc::default()).await;
    assert!(loaded.is_err_and(|error| error.fault.to_string().contains("grant")));
}
