//! Which Deployments a plan restarts, and why it names others as impossible.

use std::collections::BTreeMap;
use std::time::Duration;

use scupper_engine::{
    Amount, BudgetLimit, Pod, Settings, SurgeMethod, SurgePlan, SurgeSettings, Uid, UnhealthyPods, Verdict,
    Wave,
};
use scupper_pre_flight::{Certainty, Input, Owner, Rollout, examine, namespaces_if_raised, surges};

use crate::examples::{Scene, web_pods};
use crate::objects::evict_all;

/// A Deployment with one replica and the strategy that is the default.
fn single() -> Scene {
    scene(1, 1)
}

fn scene(replicas: u32, least: u32) -> Scene {
    let mut scene = Scene::of(replicas, BudgetLimit::MinAvailable(Amount::Pods(least)));
    deployment(&mut scene).rollout = Some(Rollout {
        recreate: false,
        paused: false,
        max_unavailable: 0,
        max_surge: 1,
    });
    scene
}

fn deployment(scene: &mut Scene) -> &mut Owner {
    &mut scene.owners.as_mut().unwrap()[0]
}

fn settings() -> Settings {
    Settings {
        surge: Some(SurgeSettings {
            method: SurgeMethod::Restart,
            namespaces: [].into(),
            timeout: Duration::from_secs(300),
        }),
        ..Settings::default()
    }
}

fn found(scene: &Scene, settings: &Settings) -> SurgePlan {
    scene.with(|input| surges(&Input { settings, ..*input }))
}

/// The only reason why it is impossible.
fn obstacle(scene: &Scene) -> String {
    let found = found(scene, &settings());
    assert!(found.surges.is_empty(), "{found:?}");
    assert_eq!(found.impossible.len(), 1, "{found:?}");
    found.impossible[0].reason.clone()
}

#[test]
fn a_deployment_whose_budget_can_never_open_is_restarted() {
    for scene in [single(), scene(3, 3), scene(2, 4)] {
        let found = found(&scene, &settings());
        assert!(found.impossible.is_empty(), "{found:?}");
        let [surge] = found.surges.as_slice() else {
            panic!("{found:?}");
        };
        assert_eq!(surge.deployment.to_string(), "Deployment shop/web");
        assert_eq!(surge.budget, "keep");
        assert_eq!(surge.pods.len(), scene.pods.len());
    }
}

#[test]
fn what_a_surge_resolves_is_no_finding() {
    let scene = single();
    let certain = |surge: SurgePlan| {
        let mut plan = evict_all(&scene.pods);
        plan.surge = surge;
        scene.with(|input| {
            examine(&Input {
                plan: &plan,
                ..*input
            })
        })
    };
    assert_eq!(certain(SurgePlan::default())[0].certainty, Certainty::Certain);
    assert_eq!(certain(found(&scene, &settings())), []);
}

#[test]
fn a_budget_that_spares_unready_pods_holds_ready_ones_all_the_same() {
    let mut scene = single();
    scene.budgets[0].unhealthy_pods = UnhealthyPods::AlwaysAllow;
    assert_eq!(found(&scene, &settings()).surges.len(), 1);
}

#[test]
fn a_rollout_that_is_under_way_does_not_hide_that_the_budget_is_closed() {
    let mut scene = single();
    deployment(&mut scene).settled = false;
    scene.budgets[0].expected_pods = 1;
    assert_eq!(found(&scene, &settings()).surges.len(), 1);
}

#[test]
fn nothing_is_restarted_without_need() {
    let none = |scene: &Scene, settings: &Settings| assert!(found(scene, settings).is_empty());
    none(&single(), &Settings::default());
    none(&single().open(), &settings());
    let mut elsewhere = settings();
    elsewhere.surge.as_mut().unwrap().namespaces = ["db".to_owned()].into();
    none(&single(), &elsewhere);
    none(
        &Scene {
            terminating: true,
            ..single()
        },
        &settings(),
    );
    none(
        &Scene {
            owners: None,
            ..single()
        },
        &settings(),
    );
    let mut unready = single();
    unready.pods[0].ready = false;
    unready.budgets[0].unhealthy_pods = UnhealthyPods::AlwaysAllow;
    none(&unready, &settings());
}

#[test]
fn a_deployment_that_would_remove_pods_first_is_impossible() {
    let with = |change: fn(&mut Rollout)| {
        let mut scene = single();
        change(deployment(&mut scene).rollout.as_mut().unwrap());
        obstacle(&scene)
    };
    assert!(with(|rollout| rollout.recreate = true).starts_with("its strategy is Recreate"));
    assert!(with(|rollout| rollout.paused = true).starts_with("its rollouts are paused"));
    assert_eq!(
        with(|rollout| rollout.max_unavailable = 1),
        "a rollout may remove pods before it replaces them (maxUnavailable 1, maxSurge 1 of its replicas); set \
         maxUnavailable: 0 and maxSurge: 1"
    );
    assert!(with(|rollout| rollout.max_surge = 0).contains("maxSurge 0"));
}

#[test]
fn other_workloads_are_named_as_impossible() {
    let kind = |kind: &str| {
        let mut scene = single();
        let owner = deployment(&mut scene);
        owner.rollout = None;
        kind.clone_into(&mut owner.kind);
        obstacle(&scene)
    };
    assert_eq!(
        kind("StatefulSet"),
        "a StatefulSet removes a pod before it replaces it"
    );
    assert_eq!(
        kind("ReplicationController"),
        "only Deployments can be restarted by a rollout"
    );
    let mut bare = single();
    bare.pods[0].controller = None;
    assert_eq!(obstacle(&bare), "the pod has no controller that would replace it");
}

/// With another plan.
fn planned(scene: &Scene, change: impl FnOnce(&mut scupper_engine::Plan), settings: &Settings) -> SurgePlan {
    let mut plan = evict_all(&scene.pods);
    change(&mut plan);
    scene.with(|input| {
        let plan = &plan;
        surges(&Input {
            plan,
            settings,
            ..*input
        })
    })
}

#[test]
fn a_deployment_of_which_a_pod_stays_or_leaves_later_is_not_restarted() {
    let scene = scene(2, 2);
    let reason = |plan: SurgePlan| {
        assert!(plan.surges.is_empty(), "{plan:?}");
        plan.impossible[0].reason.clone()
    };
    for verdict in [Verdict::Keep, Verdict::AwaitCompletion, Verdict::Delete] {
        let kept = planned(&scene, |plan| plan.decisions[1].verdict = verdict, &settings());
        assert_eq!(reason(kept), "the plan does not evict its pod shop/web-1");
    }
    let waves = planned(
        &scene,
        |plan| {
            let last = plan.waves[0].pods.pop().unwrap();
            let later = Wave {
                name: "later".to_owned(),
                pods: vec![last],
                ..plan.waves[0].clone()
            };
            plan.waves.push(later);
        },
        &settings(),
    );
    assert_eq!(reason(waves), "its pods on the node stand in different waves");
    let narrow = planned(&scene, |plan| plan.waves[0].max_parallel = Some(1), &settings());
    assert_eq!(
        reason(narrow),
        "it has 2 pods on the node, and their wave lets 1 leave at once"
    );
    let own = Settings {
        own_pod: Some(scene.pods[0].id.clone()),
        ..settings()
    };
    assert_eq!(
        reason(planned(&scene, |_| {}, &own)),
        "its pod shop/web-0 is the driver itself"
    );
}

#[test]
fn pods_of_one_deployment_under_two_budgets_mean_one_restart() {
    let mut scene = scene(2, 2);
    let labels = |name: &str| {
        BTreeMap::from([
            ("app".to_owned(), "web".to_owned()),
            ("part".to_owned(), name.to_owned()),
        ])
    };
    let pods: Vec<Pod> = web_pods(2)
        .into_iter()
        .zip(["a", "b"])
        .map(|(pod, part)| Pod {
            labels: labels(part),
            ..pod
        })
        .collect();
    scene.pods = pods;
    deployment(&mut scene).settled = false;
    let budgets = ["a", "b"].map(|part| {
        let mut budget = scene.budgets[0].clone();
        part.clone_into(&mut budget.name);
        budget.selector.labels = labels(part);
        budget.expected_pods = 1;
        budget.desired_healthy = 1;
        budget
    });
    scene.budgets = budgets.to_vec();
    let found = found(&scene, &settings());
    assert_eq!(found.surges.len(), 1, "{found:?}");
    assert_eq!(found.surges[0].pods.len(), 2);
    assert_eq!(found.surges[0].deployment.uid, Uid::new("web"));
}

fn raising() -> Settings {
    let mut settings = settings();
    settings.surge.as_mut().unwrap().method = SurgeMethod::Scale;
    settings
}

/// The plan of a drain that raises replicas, in a namespace with this autoscaler.
fn raised(scene: &Scene, autoscaler: Option<(&str, &str)>) -> SurgePlan {
    let settings = raising();
    scene.with(|input| {
        let mut namespaces = input.namespaces.clone();
        let autoscalers: BTreeMap<_, _> = autoscaler
            .map(|(of, name)| (of.to_owned(), name.to_owned()))
            .into_iter()
            .collect();
        for state in namespaces.values_mut() {
            *state = state.clone().with_autoscalers(autoscalers.clone());
        }
        surges(&Input {
            settings: &settings,
            namespaces: &namespaces,
            ..*input
        })
    })
}

/// The only reason why the replicas are not raised.
fn not_raised(scene: &Scene, autoscaler: Option<(&str, &str)>) -> String {
    let found = raised(scene, autoscaler);
    assert!(found.surges.is_empty(), "{found:?}");
    assert_eq!(found.impossible.len(), 1, "{found:?}");
    found.impossible[0].reason.clone()
}

#[test]
fn replicas_are_raised_where_one_more_opens_the_budget_whatever_the_rollouts_do() {
    let mut recreated = single();
    deployment(&mut recreated).rollout.as_mut().unwrap().recreate = true;
    let mut in_two_waves = scene(2, 2);
    in_two_waves.pods.truncate(2);
    for scene in [single(), scene(3, 3), recreated, in_two_waves] {
        let found = raised(&scene, Some(("other", "hpa")));
        assert!(found.impossible.is_empty(), "{found:?}");
        assert_eq!(found.method, SurgeMethod::Scale);
        assert_eq!(found.surges.len(), 1, "{found:?}");
        assert_eq!(found.surges[0].pods.len(), scene.pods.len());
    }
}

#[test]
fn replicas_are_not_raised_where_that_does_not_help_or_would_be_undone() {
    assert_eq!(
        not_raised(&scene(2, 4), None),
        "one replica more does not open its budget (minAvailable: 4)"
    );
    let none_unavailable = Scene::of(2, BudgetLimit::MaxUnavailable(Amount::Pods(0)));
    let all_available = Scene::of(2, BudgetLimit::MinAvailable(Amount::Percent(100)));
    for mut scene in [none_unavailable, all_available] {
        deployment(&mut scene)
            .rollout
            .clone_from(&deployment(&mut single()).rollout);
        let reason = not_raised(&scene, None);
        assert!(
            reason.starts_with("one replica more does not open its budget"),
            "{reason}"
        );
    }
    assert_eq!(
        not_raised(&single(), Some(("web", "web-hpa"))),
        "HorizontalPodAutoscaler web-hpa sets its replicas, and would take one more back"
    );
    let mut paused = single();
    deployment(&mut paused).rollout.as_mut().unwrap().paused = true;
    assert_eq!(raised(&paused, None).surges.len(), 1);
    deployment(&mut paused).settled = false;
    paused.budgets[0].expected_pods = 1;
    assert_eq!(not_raised(&paused, None), "a rollout of it is paused; resume it");
    let mut set = single();
    deployment(&mut set).kind = "StatefulSet".to_owned();
    deployment(&mut set).rollout = None;
    assert_eq!(
        not_raised(&set, None),
        "one more pod of a StatefulSet replaces none of the others"
    );
    // Without the right to read autoscalers.
    let unread = found(&single(), &raising());
    assert!(unread.surges.is_empty() && unread.impossible[0].reason.contains("could not be read"));
}

/// Another drain has raised the Deployment of this scene: it has a pod more, which is ready or not.
fn raised_by_another(replicas: u32, is_ready: bool) -> Scene {
    let mut scene = scene(replicas, replicas);
    let web = deployment(&mut scene);
    web.raised = 1;
    let mut more = web_pods(replicas as usize + 1).remove(replicas as usize);
    more.node = "node-2".to_owned();
    more.ready = is_ready;
    scene.pods.push(more);
    let budget = &mut scene.budgets[0];
    budget.expected_pods += 1;
    budget.current_healthy += i32::from(is_ready);
    budget.disruptions_allowed = i32::from(is_ready);
    scene
}

#[test]
fn the_replica_of_another_drain_hides_no_closed_budget() {
    for scene in [
        raised_by_another(1, true),
        raised_by_another(3, false),
        raised_by_another(4, true),
    ] {
        assert_eq!(raised(&scene, None).surges.len(), 1);
        assert_eq!(found(&scene, &settings()).surges.len(), 1);
        let findings = scene.with(examine);
        assert!(
            findings
                .iter()
                .any(|finding| finding.certainty == Certainty::Certain),
            "{findings:?}"
        );
        assert!(scene.with(namespaces_if_raised).contains("shop"));
    }
    // The owner has begun a rollout since.
    let mut rolling = raised_by_another(3, false);
    deployment(&mut rolling).settled = false;
    let findings = rolling.with(examine);
    let of_budget = findings.iter().filter(|it| !it.budgets.is_empty());
    let of_budget: Vec<_> = of_budget.map(|it| it.certainty).collect();
    assert_eq!(of_budget, [Certainty::Likely]);
    let mut of_owner = raised_by_another(3, true);
    let web = deployment(&mut of_owner);
    (web.replicas, web.raised) = (Some(4), 0);
    assert!(raised(&of_owner, None).is_empty());
    let mut open = scene(3, 1).open();
    open.budgets[0].desired_healthy = 1;
    assert!(open.with(namespaces_if_raised).is_empty());
}
