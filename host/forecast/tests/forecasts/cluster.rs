//! Nodes with pods whose times are known, or follow a distribution that no forecast knows.

use std::collections::BTreeMap;
use std::time::Duration;

use fastrand::Rng;
use scupper_engine::{
    Budget, Controller, Intent, Node, Pod, PodPhase, PodRef, Request, Selector, Settings, Time, Uid,
    UnhealthyPods, draft,
};
use scupper_forecast::{Learned, Situation};
use scupper_recording::ObservedTimes;

pub(crate) const BEGIN: Time = Time::from_millis(1_800_000_000_000);

pub(crate) const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn pod(name: &str) -> Pod {
    pod_of(name, "web")
}

pub(crate) fn pod_of(name: &str, app: &str) -> Pod {
    let controller = Controller {
        api_version: "apps/v1".to_owned(),
        kind: "ReplicaSet".to_owned(),
        name: format!("{app}-68c5fcd9c5"),
        uid: Uid::new("uid-of-web"),
        missing: false,
    };
    Pod {
        id: PodRef {
            namespace: "shop".to_owned(),
            name: name.to_owned(),
            uid: Uid::new(format!("uid-of-{name}")),
        },
        node: "worker-1".to_owned(),
        labels: [("app", app), ("pod-template-hash", "68c5fcd9c5")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
        annotations: BTreeMap::new(),
        controller: Some(controller),
        phase: PodPhase::Running,
        ready: true,
        conditions: Vec::new(),
        priority: 0,
        priority_class: String::new(),
        grace_seconds: 30,
        created: Time::from_millis(0),
        deletion: None,
        finalizers: Vec::new(),
        empty_dir: false,
        host_network: false,
        hostname: String::new(),
        cordon_toleration: None,
        volume_claims: Vec::new(),
        host_paths: Vec::new(),
    }
}

pub(crate) fn budget(disruptions_allowed: i32) -> Budget {
    budget_of("web", disruptions_allowed)
}

pub(crate) fn budget_of(app: &str, disruptions_allowed: i32) -> Budget {
    Budget {
        namespace: "shop".to_owned(),
        name: app.to_owned(),
        selector: Selector {
            labels: BTreeMap::from([("app".to_owned(), app.to_owned())]),
            expressions: Vec::new(),
            nothing: false,
        },
        unhealthy_pods: UnhealthyPods::IfHealthyBudget,
        disruptions_allowed,
        current_healthy: 3,
        desired_healthy: 3 - disruptions_allowed,
        expected_pods: 3,
        limit: None,
        observed: true,
    }
}

pub(crate) fn situation(budgets: Vec<Budget>) -> Situation {
    let pods: Vec<_> = ["web-1", "web-2", "web-3"].map(pod).into();
    let settings = Settings::default();
    Situation {
        at: BEGIN,
        plan: draft(&pods, &settings, BEGIN),
        request: Request {
            id: "1".to_owned(),
            name: "drain-worker-1".to_owned(),
            trigger: "command".to_owned(),
            intent: Intent::Drain,
            node: "worker-1".to_owned(),
            deadline: None,
            settings,
            policies: Vec::new(),
        },
        node: Node {
            name: "worker-1".to_owned(),
            uid: Uid::new("uid-of-worker-1"),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            unschedulable: false,
            conditions: Vec::new(),
            checkpoint: None,
            cancel: None,
            resource_version: "1".to_owned(),
        },
        pods,
        budgets,
        checkpoint: None,
        services: Vec::new(),
    }
}

/// Times that follow a distribution which no forecast knows: most are short, few are long.
pub(crate) struct Hidden {
    median: f64,
    spread: f64,
}

impl Hidden {
    fn draw(&self, random: &mut Rng) -> Duration {
        // Nearly normal.
        let normal = (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
        Duration::from_secs_f64(self.median * (self.spread * normal).exp())
    }

    fn some(&self, random: &mut Rng, number: usize) -> Vec<Duration> {
        (0..number).map(|_| self.draw(random)).collect()
    }
}

/// A node with some workloads, and what so many drains have shown of them.
pub(crate) fn random_cluster(random: &mut Rng) -> (Situation, impl Fn(&mut Rng, usize) -> Learned + use<>) {
    let workloads: Vec<_> = (0..random.usize(1..6))
        .map(|number| {
            let pods = (0..random.usize(1..8)).map(|pod| {
                let mut pod = pod_of(&format!("w{number}-{pod}"), &format!("w{number}"));
                pod.grace_seconds = 3_600;
                pod
            });
            let ends = Hidden {
                median: 2.0 + 60.0 * random.f64(),
                spread: 0.2 + 0.6 * random.f64(),
            };
            let replaced = Hidden {
                median: 1.0 + 40.0 * random.f64(),
                spread: 0.2 + 0.6 * random.f64(),
            };
            let budget = random.bool().then(|| budget_of(&format!("w{number}"), 1));
            (pods.collect::<Vec<_>>(), ends, replaced, budget)
        })
        .collect();
    let mut situation = situation(Vec::new());
    situation.pods = workloads.iter().flat_map(|(pods, ..)| pods.clone()).collect();
    situation.budgets = workloads
        .iter()
        .filter_map(|(.., budget)| budget.clone())
        .collect();
    situation.plan = draft(&situation.pods, &situation.request.settings, BEGIN);
    let learn = move |random: &mut Rng, number: usize| {
        let mut learned = Learned::default();
        for (pods, ends, replaced, budget) in &workloads {
            let endings = ends.some(random, number);
            let replacements = replaced.some(random, number);
            learned.add(&ObservedTimes {
                endings: endings.into_iter().map(|took| (pods[0].clone(), took)).collect(),
                replacements: budget
                    .iter()
                    .flat_map(|budget| {
                        let name = (budget.namespace.clone(), budget.name.clone());
                        replacements.iter().map(move |took| (name.clone(), *took))
                    })
                    .collect(),
                ..ObservedTimes::default()
            });
        }
        learned
    };
    (situation, learn)
}
