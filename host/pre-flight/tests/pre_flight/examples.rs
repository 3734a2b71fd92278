//! Each finding by example: what it names, why, and the smallest change that helps.

use std::collections::BTreeMap;
use std::time::Duration;

use scupper_engine::{
    Amount, Budget, BudgetLimit, Deletion, Pod, PodPhase, Settings, Time, Uid, UnhealthyPods, Verdict,
};
use scupper_pre_flight::{
    Certainty, Concern, Finding, Input, LocalVolumes, NamespaceState, Owner, examine, namespaces_in_doubt,
};

use crate::objects::{Labels, budget, evict_all, labels, pod};

use BudgetLimit::{MaxUnavailable, MinAvailable};

fn web() -> Labels {
    labels(&[("app", "web")])
}

/// The Deployment `web` with its ReplicaSet.
fn deployment(replicas: u32, settled: bool) -> Vec<Owner> {
    let owner = |uid: &str, kind: &str, parent: Option<&str>| Owner {
        uid: Uid::new(uid),
        kind: kind.to_owned(),
        name: uid.to_owned(),
        parent: parent.map(Uid::new),
        replicas: Some(replicas),
        raised: 0,
        settled,
        labels: web(),
        rollout: None,
    };
    vec![
        owner("web", "Deployment", None),
        owner("web-1", "ReplicaSet", Some("web")),
    ]
}

pub(crate) fn web_pods(count: usize) -> Vec<Pod> {
    let one = |number| pod(&format!("web-{number}"), web(), Some(("ReplicaSet", "web-1")));
    (0..count).map(one).collect()
}

/// A node with all pods of the namespace.
#[derive(Clone)]
pub(crate) struct Scene {
    pub(crate) pods: Vec<Pod>,
    pub(crate) budgets: Vec<Budget>,
    pub(crate) owners: Option<Vec<Owner>>,
    pub(crate) terminating: bool,
    pub(crate) left: Option<Duration>,
}

impl Scene {
    pub(crate) fn of(replicas: u32, limit: BudgetLimit) -> Self {
        let healthy = i32::try_from(replicas).unwrap();
        Self {
            pods: web_pods(replicas as usize),
            budgets: vec![budget("keep", web(), limit, healthy)],
            owners: Some(deployment(replicas, true)),
            terminating: false,
            left: None,
        }
    }

    /// Its budget allows an eviction now.
    pub(crate) fn open(mut self) -> Self {
        self.budgets[0].disruptions_allowed = 1;
        self.budgets[0].desired_healthy -= 1;
        self
    }

    pub(crate) fn with<T>(&self, examine: impl FnOnce(&Input<'_>) -> T) -> T {
        let mut namespaces = BTreeMap::new();
        if let Some(owners) = &self.owners {
            let state = NamespaceState::new(self.terminating, self.pods.clone(), owners.clone());
            namespaces.insert("shop".to_owned(), state);
        }
        examine(&Input {
            pods: &self.pods,
            plan: &evict_all(&self.pods),
            settings: &Settings::default(),
            budgets: &self.budgets,
            time_left: self.left,
            namespaces: &namespaces,
            volumes: LocalVolumes::NONE,
        })
    }

    fn findings(&self) -> Vec<Finding> {
        self.with(examine)
    }

    /// Of each finding: how sure, about what, how many pods.
    fn brief(&self) -> Vec<(Certainty, Concern, usize)> {
        let findings = self.findings().into_iter();
        findings
            .map(|finding| (finding.certainty, finding.concern, finding.pods.len()))
            .collect()
    }
}

const CLOSED: (Certainty, Concern) = (Certainty::Certain, Concern::ClosedBudget);

#[test]
fn closed_budgets_name_the_smallest_change_that_opens_them() {
    for (replicas, limit, change) in [
        (
            1,
            MinAvailable(Amount::Pods(1)),
            "minAvailable: 1 -> 0, or replicas of Deployment web: 1 -> 2",
        ),
        (
            3,
            MinAvailable(Amount::Pods(3)),
            "minAvailable: 3 -> 2, or replicas of Deployment web: 3 -> 4",
        ),
        (
            2,
            MinAvailable(Amount::Pods(4)),
            "minAvailable: 4 -> 1, or replicas of Deployment web: 2 -> 5",
        ),
        (3, MinAvailable(Amount::Percent(100)), "minAvailable: 100% -> 66%"),
        (
            1,
            MinAvailable(Amount::Percent(50)),
            "minAvailable: 50% -> 0%, or replicas of Deployment web: 1 -> 2",
        ),
        (
            2,
            MinAvailable(Amount::Percent(75)),
            "minAvailable: 75% -> 50%, or replicas of Deployment web: 2 -> 4",
        ),
        (2, MaxUnavailable(Amount::Pods(0)), "maxUnavailable: 0 -> 1"),
        (2, MaxUnavailable(Amount::Percent(0)), "maxUnavailable: 0% -> 1%"),
    ] {
        let findings = Scene::of(replicas, limit).findings();
        let finding = &findings[0];
        assert_eq!(
            (finding.certainty, finding.concern),
            CLOSED,
            "{limit}: {findings:?}"
        );
        assert_eq!(finding.change, change);
        assert_eq!(finding.pods.len(), replicas as usize);
        assert_eq!(finding.budgets, ["shop/keep"]);
        let reason = format!("budget shop/keep ({limit}) blocks its pods even when all are healthy");
        assert_eq!(finding.reason, reason);
    }
}

#[test]
fn a_budget_that_opens_by_itself_is_not_found() {
    for (replicas, limit) in [
        (2, MinAvailable(Amount::Pods(1))),
        (2, MinAvailable(Amount::Percent(50))),
        (3, MaxUnavailable(Amount::Pods(1))),
        (1, MaxUnavailable(Amount::Percent(1))),
    ] {
        let mut scene = Scene::of(replicas, limit);
        // One of its pods is not ready just now.
        scene.budgets[0].current_healthy -= 1;
        scene.budgets[0].desired_healthy -= 1;
        let found = scene
            .brief()
            .into_iter()
            .find(|(_, concern, _)| *concern == Concern::ClosedBudget);
        assert_eq!(found, None, "{limit}");
    }
}

type Change = fn(&mut Scene);

#[test]
fn what_may_change_by_itself_is_only_likely() {
    let closed = Scene::of(2, MinAvailable(Amount::Pods(2)));
    let changes: [(&str, Change); 7] = [
        ("nothing is known of the namespace", |scene| scene.owners = None),
        ("a rollout is under way", |scene| {
            scene.owners = Some(deployment(2, false))
        }),
        ("its owner was not read", |scene| scene.owners = Some(Vec::new())),
        ("the workload is being scaled down", |scene| {
            scene.owners = Some(deployment(1, true))
        }),
        ("pods that become unready may go", |scene| {
            scene.budgets[0].unhealthy_pods = UnhealthyPods::AlwaysAllow;
        }),
        ("the namespace goes with its pods", |scene| {
            scene.terminating = true
        }),
        ("a workload without pods may add some", |scene| {
            let job = Owner {
                uid: Uid::new("job"),
                replicas: None,
                ..deployment(1, true)[0].clone()
            };
            scene.owners.as_mut().unwrap().push(job);
        }),
    ];
    for (case, change) in changes {
        let mut scene = closed.clone();
        change(&mut scene);
        let found = scene.brief();
        assert!(
            found.contains(&(Certainty::Likely, Concern::ClosedBudget, 2)),
            "{case}: {found:?}"
        );
        assert!(
            found
                .iter()
                .all(|(certainty, ..)| *certainty == Certainty::Likely),
            "{case}"
        );
    }
    assert_eq!(closed.brief(), [(CLOSED.0, CLOSED.1, 2)]);
}

#[test]
fn pods_that_the_api_server_lets_go_are_not_held() {
    let changes: [fn(&mut Pod); 3] = [
        |pod| pod.phase = PodPhase::Succeeded,
        |pod| pod.phase = PodPhase::Pending,
        |pod| {
            pod.deletion = Some(Deletion {
                at: Time::default(),
                grace_seconds: 30,
            });
        },
    ];
    for change in changes {
        let mut scene = Scene::of(2, MinAvailable(Amount::Pods(2)));
        change(&mut scene.pods[0]);
        let certain = scene.findings().remove(0);
        let names: Vec<_> = certain.pods.iter().map(|pod| pod.name.as_str()).collect();
        assert_eq!(names, ["web-1"]);
    }
    let scene = Scene::of(2, MinAvailable(Amount::Pods(2)));
    let mut plan = evict_all(&scene.pods);
    plan.decisions[0].verdict = Verdict::Delete;
    plan.decisions[1].verdict = Verdict::Keep;
    scene.with(|input| {
        assert_eq!(
            examine(&Input {
                plan: &plan,
                ..*input
            }),
            []
        )
    });
}

#[test]
fn a_budget_over_pods_without_a_controller_needs_a_number() {
    let mut scene = Scene::of(1, MaxUnavailable(Amount::Pods(1)));
    scene.pods[0].controller = None;
    scene.budgets[0].expected_pods = 0;
    scene.budgets[0].desired_healthy = 0;
    let finding = scene.findings().remove(0);
    // Its containers may end by themselves.
    assert_eq!(
        (finding.certainty, finding.concern),
        (Certainty::Likely, Concern::ClosedBudget)
    );
    assert!(
        finding.change.starts_with("set minAvailable to a number"),
        "{finding:?}"
    );
}

#[test]
fn pods_under_two_budgets() {
    let mut scene = Scene::of(2, MinAvailable(Amount::Pods(1)));
    scene
        .budgets
        .push(budget("other", Labels::new(), MaxUnavailable(Amount::Pods(1)), 2));
    let finding = scene.findings().remove(0);
    assert_eq!(
        (finding.certainty, finding.concern),
        (Certainty::Certain, Concern::SeveralBudgets)
    );
    assert_eq!(finding.budgets, ["shop/keep", "shop/other"]);
    assert_eq!(finding.pods.len(), 2);
    assert_eq!(
        finding.change,
        "delete 1 of these budgets, or narrow their selectors"
    );
    scene.owners = None;
    assert_eq!(scene.brief(), [(Certainty::Likely, Concern::SeveralBudgets, 2)]);
    let reason = scene.findings().remove(0).reason;
    let why = " (whether that is certain is not known: the workloads of namespace shop could not be read)";
    assert!(reason.ends_with(why), "{reason}");
}

#[test]
fn single_pods_that_a_budget_does_not_hold() {
    let mut scene = Scene::of(1, MinAvailable(Amount::Pods(0))).open();
    let finding = scene.findings().remove(0);
    assert_eq!(
        (finding.certainty, finding.concern),
        (Certainty::Likely, Concern::SingleReplica)
    );
    assert_eq!(finding.change, "replicas of Deployment web: 1 -> 2");
    scene.budgets[0] = budget("keep", web(), MinAvailable(Amount::Pods(1)), 1);
    assert_eq!(scene.brief(), [(CLOSED.0, CLOSED.1, 1)]);
}

#[test]
fn finalizers_namespaces_and_local_data() {
    let mut scene = Scene::of(2, MinAvailable(Amount::Pods(1))).open();
    scene.terminating = true;
    scene.pods[0].finalizers = vec![
        "example.com/backup".to_owned(),
        "batch.kubernetes.io/job-tracking".to_owned(),
    ];
    scene.pods[1].finalizers = vec!["batch.kubernetes.io/job-tracking".to_owned()];
    scene.pods[1].empty_dir = true;
    let found = scene.brief();
    let likely = |concern, pods| (Certainty::Likely, concern, pods);
    assert_eq!(
        found,
        [
            likely(Concern::TerminatingNamespace, 2),
            likely(Concern::Finalizers, 1),
            likely(Concern::LocalData, 1)
        ]
    );
    assert!(
        scene.findings()[1]
            .reason
            .ends_with("removed: example.com/backup")
    );
}

#[test]
fn grace_periods_that_the_deadline_cuts_off() {
    let mut scene = Scene::of(3, MinAvailable(Amount::Pods(1))).open();
    scene.left = Some(Duration::from_secs(60));
    scene.pods[0].grace_seconds = 61;
    scene.pods[1].grace_seconds = 60;
    scene.pods[2].grace_seconds = 3600;
    scene.pods[2].deletion = Some(Deletion {
        at: Time::default(),
        grace_seconds: 10,
    });
    let finding = scene.findings().remove(0);
    assert_eq!((finding.concern, finding.pods.len()), (Concern::GracePeriod, 1));
    assert_eq!(
        finding.reason,
        "the pod may take 1m01s to end, and the drain only 1m00s"
    );
    // What shortens the grace period of the eviction counts.
    let settings = Settings {
        grace_seconds: Some(10),
        ..Settings::default()
    };
    let mut plan = evict_all(&scene.pods);
    plan.waves[0].max_grace_seconds = Some(60);
    scene.with(|input| {
        assert_eq!(
            examine(&Input {
                settings: &settings,
                ..*input
            }),
            []
        );
        assert_eq!(
            examine(&Input {
                plan: &plan,
                ..*input
            }),
            []
        );
    });
}

#[test]
fn only_what_budgets_hold_asks_for_more() {
    let doubt = |scene: &Scene| scene.with(namespaces_in_doubt);
    assert!(doubt(&Scene::of(2, MinAvailable(Amount::Pods(2)))).contains("shop"));
    let mut open = Scene::of(2, MinAvailable(Amount::Pods(1))).open();
    assert!(doubt(&open).is_empty());
    open.budgets
        .push(budget("other", web(), MinAvailable(Amount::Pods(1)), 2));
    assert!(doubt(&open).contains("shop"));
}
