//! What pre-flight arithmetic calls certain, in many drawn clusters that are played to the end.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use scupper_engine::{Amount, Budget, BudgetLimit, Pod, PodRef, Uid, UnhealthyPods, draft};
use scupper_forecast::{Forecast, Learned, Situation};
use scupper_pre_flight::{Certainty, Finding, Input, LocalVolumes, NamespaceState, Owner, examine};

use crate::cluster::{BEGIN, budget_of, pod_of, situation};

/// A namespace with Deployments, of which some pods are on the node.
struct Cluster {
    owners: Vec<Owner>,
    pods: Vec<Pod>,
    budgets: Vec<Budget>,
}

fn draw(random: &mut Rng) -> Cluster {
    let mut cluster = Cluster {
        owners: Vec::new(),
        pods: Vec::new(),
        budgets: Vec::new(),
    };
    for number in 0..random.usize(1..=4) {
        let (app, replicas) = (format!("w{number}"), random.u32(1..=5));
        let uid = Uid::new(format!("uid-of-{app}"));
        let here = random.u32(1..=replicas);
        for number in 0..replicas {
            let mut pod = pod_of(&format!("{app}-{number}"), &app);
            if let Some(controller) = &mut pod.controller {
                controller.uid = uid.clone();
            }
            pod.ready = random.u8(..) > 40;
            if number >= here {
                pod.node = "worker-2".to_owned();
            }
            cluster.pods.push(pod);
        }
        cluster.owners.push(Owner {
            uid,
            kind: "ReplicaSet".to_owned(),
            name: app.clone(),
            parent: None,
            replicas: Some(replicas),
            raised: 0,
            settled: random.u8(..) > 30,
            labels: [("app".to_owned(), app.clone())].into(),
            rollout: None,
        });
        for budget in 0..[0, 1, 1, 1, 2][random.usize(0..5)] {
            cluster.budgets.push(Budget {
                name: format!("{app}-{budget}"),
                limit: Some(limit(random)),
                unhealthy_pods: match random.u8(..) {
                    0..60 => UnhealthyPods::AlwaysAllow,
                    _ => UnhealthyPods::IfHealthyBudget,
                },
                ..budget_of(&app, 0)
            });
        }
    }
    cluster
}

fn limit(random: &mut Rng) -> BudgetLimit {
    let amount = match random.bool() {
        true => Amount::Pods(random.u32(0..=5)),
        false => Amount::Percent([0, 20, 34, 50, 80, 100][random.usize(0..6)]),
    };
    match random.bool() {
        true => BudgetLimit::MinAvailable(amount),
        false => BudgetLimit::MaxUnavailable(amount),
    }
}

impl Cluster {
    /// As the disruption controller counts.
    fn count(&mut self) {
        for budget in &mut self.budgets {
            let pods: Vec<_> = self.pods.iter().filter(|pod| budget.selects(pod)).collect();
            let expected = pods.len() as u32;
            let of = |amount| match amount {
                Amount::Pods(pods) => pods,
                // Both are rounded up.
                Amount::Percent(percent) => (expected * percent).div_ceil(100),
            };
            let desired = match budget.limit {
                Some(BudgetLimit::MinAvailable(amount)) => of(amount),
                Some(BudgetLimit::MaxUnavailable(amount)) => expected.saturating_sub(of(amount)),
                None => 0,
            };
            let healthy = pods.iter().filter(|pod| pod.ready).count() as i32;
            budget.expected_pods = expected as i32;
            budget.desired_healthy = desired as i32;
            budget.current_healthy = healthy;
            budget.disruptions_allowed = (healthy - desired as i32).max(0);
        }
    }

    fn findings(&self, situation: &Situation) -> Vec<Finding> {
        let state = NamespaceState::new(false, self.pods.clone(), self.owners.clone());
        examine(&Input {
            pods: &situation.pods,
            plan: &situation.plan,
            settings: &situation.request.settings,
            budgets: &self.budgets,
            time_left: None,
            namespaces: &BTreeMap::from([("shop".to_owned(), state)]),
            volumes: &LocalVolumes::default(),
        })
    }

    fn situation(&self) -> Situation {
        let mut situation = situation(self.budgets.clone());
        let here = self.pods.iter().filter(|pod| pod.node == "worker-1");
        situation.pods = here.cloned().collect();
        situation.plan = draft(&situation.pods, &situation.request.settings, BEGIN);
        situation
    }
}

fn pods(findings: &[Finding], certainty: Certainty) -> BTreeSet<&PodRef> {
    let findings = findings.iter().filter(|finding| finding.certainty == certainty);
    findings.flat_map(|finding| &finding.pods).collect()
}

#[test]
fn no_pod_leaves_that_certainly_stays() {
    let mut random = Rng::with_seed(2_000);
    let (mut certain, mut drained) = (0, 0);
    for number in 0..2_000 {
        let mut cluster = draw(&mut random);
        cluster.count();
        let findings = cluster.findings(&cluster.situation());
        let stay = pods(&findings, Certainty::Certain);
        certain += stay.len();
        // As it is, and if every pod is ready, which is the most that waiting can bring.
        for recovers in [false, true] {
            for pod in &mut cluster.pods {
                pod.ready |= recovers;
            }
            cluster.count();
            let forecast = Forecast::of(&cluster.situation(), &Learned::default(), 1);
            drained += forecast.ends.drained.len();
            for pod in &stay {
                assert!(
                    forecast.still_there.contains(pod),
                    "cluster {number}, recovered {recovers}: {pod} leaves: {findings:#?}"
                );
            }
        }
    }
    println!("{certain} pods certainly stay; {drained} of 4000 plays drain the node");
    assert!(certain > 1_000 && drained > 1_000, "{certain} {drained}");
}
