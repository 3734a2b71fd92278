//! A small Kubernetes: pods, workloads, budgets, and who acts on them. Written from the sources of the eviction
//! subresource and of the disruption, Deployment, ReplicaSet and StatefulSet controllers, not from the code under test.

use scupper_engine::{Amount, Budget, BudgetLimit, Deletion, Pod, PodPhase, Time, Uid, UnhealthyPods};
use scupper_pre_flight::{NamespaceState, Owner};

use crate::objects::{self, Labels};

pub(crate) const NODE: &str = "node-1";

/// What a workload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// With a ReplicaSet for each revision.
    Deployment,
    ReplicaSet,
    StatefulSet,
    /// Its pods finish, and others come.
    Job,
}

/// A workload. All are in one namespace.
#[derive(Clone, Debug)]
pub(crate) struct Workload {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    pub(crate) labels: Labels,
    /// Of a Job: how many pods it may have at once.
    pub(crate) replicas: usize,
    /// The revision of the template.
    pub(crate) revision: usize,
    /// A rollout may have so many pods more than replicas.
    pub(crate) surge: usize,
}

/// A pod, and what the API does not show of it.
#[derive(Clone, Debug)]
pub(crate) struct Living {
    pub(crate) pod: Pod,
    /// Place of its workload; `None`: it has no controller.
    pub(crate) workload: Option<usize>,
    pub(crate) revision: usize,
}

impl Living {
    pub(crate) fn is_active(&self) -> bool {
        self.pod.deletion.is_none() && !self.pod.is_finished()
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct World {
    pub(crate) workloads: Vec<Workload>,
    pub(crate) pods: Vec<Living>,
    pub(crate) budgets: Vec<Budget>,
    pub(crate) born: usize,
}

impl Workload {
    /// The UID of what controls the pods of a revision.
    pub(crate) fn controller(&self, revision: usize) -> (&'static str, String) {
        match self.kind {
            Kind::Deployment => ("ReplicaSet", format!("{}-{revision}", self.name)),
            Kind::ReplicaSet => ("ReplicaSet", self.name.clone()),
            Kind::StatefulSet => ("StatefulSet", self.name.clone()),
            Kind::Job => ("Job", self.name.clone()),
        }
    }

    /// The disruption controller finds a scale.
    const fn counts_replicas(&self) -> bool {
        !matches!(self.kind, Kind::Job)
    }
}

impl World {
    pub(crate) fn active(&self, workload: usize) -> Vec<usize> {
        let of = |(place, it): (usize, &Living)| {
            (it.workload == Some(workload) && it.is_active()).then_some(place)
        };
        self.pods.iter().enumerate().filter_map(of).collect()
    }

    /// A new pod of a workload, or one without a controller.
    pub(crate) fn add(&mut self, workload: Option<usize>, labels: Labels, node: &str) -> usize {
        self.born += 1;
        let name = format!("pod-{}", self.born);
        let revision = workload.map_or(0, |place| self.workloads[place].revision);
        let controller = workload.map(|place| self.workloads[place].controller(revision));
        let controller = controller.as_ref().map(|(kind, uid)| (*kind, uid.as_str()));
        let mut pod = objects::pod(&name, labels, controller);
        pod.node = node.to_owned();
        pod.ready = false;
        pod.phase = PodPhase::Pending;
        self.pods.push(Living {
            pod,
            workload,
            revision,
        });
        self.pods.len() - 1
    }

    /// The pod begins to end.
    pub(crate) fn delete(&mut self, place: usize) {
        let ending = Deletion {
            at: Time::default(),
            grace_seconds: 30,
        };
        self.pods[place].pod.deletion.get_or_insert(ending);
    }

    /// Turns a workload one step toward what it wants, as its controller does.
    pub(crate) fn reconcile(&mut self, place: usize) {
        let workload = self.workloads[place].clone();
        let active = self.active(place);
        let old: Vec<usize> = active
            .iter()
            .copied()
            .filter(|&pod| self.pods[pod].revision != workload.revision)
            .collect();
        let (wanted, have) = (workload.replicas, active.len());
        let new = have - old.len();
        let unready_old = old.iter().copied().find(|&pod| !self.pods[pod].pod.ready);
        let ready = active.iter().filter(|&&pod| self.pods[pod].pod.ready).count();
        match workload.kind {
            // Old pods go once enough are ready; without surge, at most one is missing.
            Kind::Deployment if !old.is_empty() && new < wanted && have < wanted + workload.surge => {
                self.add(Some(place), workload.labels, "elsewhere");
            }
            Kind::Deployment if !old.is_empty() => {
                let least = if workload.surge > 0 {
                    wanted
                } else {
                    wanted.saturating_sub(1)
                };
                let goes = unready_old.or_else(|| old.first().copied().filter(|_| ready > least));
                if let Some(goes) = goes {
                    self.delete(goes);
                }
            }
            Kind::StatefulSet if have == wanted && !old.is_empty() && ready == have => self.delete(old[0]),
            _ if have < wanted => {
                self.add(Some(place), workload.labels, "elsewhere");
            }
            _ if have > wanted => self.delete(active[have - 1]),
            _ => {}
        }
    }

    /// The disruption controller writes the status of a budget.
    pub(crate) fn sync(&mut self, place: usize) {
        let budget = &self.budgets[place];
        let selected: Vec<&Living> = self.pods.iter().filter(|it| budget.selects(&it.pod)).collect();
        let healthy = selected
            .iter()
            .filter(|it| it.pod.deletion.is_none() && it.pod.ready)
            .count();
        let mut scales: Vec<usize> = selected.iter().filter_map(|it| it.workload).collect();
        scales.sort_unstable();
        scales.dedup();
        let fails = scales
            .iter()
            .any(|&scale| !self.workloads[scale].counts_replicas());
        let scale: usize = scales.iter().map(|&scale| self.workloads[scale].replicas).sum();
        let percent = |of: u32| (scale * of as usize).div_ceil(100);
        let (expected, desired) = match budget.limit.unwrap() {
            BudgetLimit::MinAvailable(Amount::Pods(least)) => (selected.len(), least as usize),
            BudgetLimit::MinAvailable(Amount::Percent(least)) => (scale, percent(least)),
            BudgetLimit::MaxUnavailable(Amount::Pods(most)) => (scale, scale.saturating_sub(most as usize)),
            BudgetLimit::MaxUnavailable(Amount::Percent(most)) => {
                (scale, scale.saturating_sub(percent(most)))
            }
        };
        let is_number = matches!(budget.limit, Some(BudgetLimit::MinAvailable(Amount::Pods(_))));
        let budget = &mut self.budgets[place];
        if fails && !is_number {
            // "failed sync"
            budget.disruptions_allowed = 0;
            budget.observed = true;
            return;
        }
        let allowed = if expected == 0 {
            0
        } else {
            healthy.saturating_sub(desired)
        };
        let number = |count: usize| i32::try_from(count).unwrap();
        budget.disruptions_allowed = number(allowed);
        budget.current_healthy = number(healthy);
        budget.desired_healthy = number(desired);
        budget.expected_pods = number(expected);
        budget.observed = true;
    }

    /// The eviction subresource: whether the pod's deletion was accepted.
    pub(crate) fn evict(&mut self, place: usize) -> bool {
        let pod = &self.pods[place].pod;
        let ignored = pod.phase == PodPhase::Pending || pod.is_finished() || pod.deletion.is_some();
        let selecting: Vec<usize> = (0..self.budgets.len())
            .filter(|&budget| self.budgets[budget].selects(pod))
            .collect();
        let granted = ignored
            || match selecting.as_slice() {
                [] => true,
                &[one] => self.budget_grants(one, self.pods[place].pod.ready),
                _ => false,
            };
        if granted {
            self.delete(place);
        }
        granted
    }

    fn budget_grants(&mut self, place: usize, is_ready: bool) -> bool {
        let budget = &mut self.budgets[place];
        let is_met = budget.desired_healthy > 0 && budget.current_healthy >= budget.desired_healthy;
        if !is_ready && (budget.unhealthy_pods == UnhealthyPods::AlwaysAllow || is_met) {
            return true;
        }
        if !budget.observed || budget.disruptions_allowed <= 0 {
            return false;
        }
        budget.disruptions_allowed -= 1;
        true
    }

    /// The pods on the node.
    pub(crate) fn on_node(&self) -> Vec<Pod> {
        let here = self.pods.iter().filter(|it| it.pod.node == NODE);
        here.map(|it| it.pod.clone()).collect()
    }

    pub(crate) fn has(&self, uid: &Uid) -> bool {
        let mut all = self.pods.iter();
        all.any(|it| it.pod.id.uid == *uid && it.pod.deletion.is_none())
    }

    /// The namespace as the API server shows it.
    pub(crate) fn state(&self) -> NamespaceState {
        let owners = (0..self.workloads.len()).flat_map(|place| self.owners(place));
        let pods = self.pods.iter().map(|it| it.pod.clone());
        NamespaceState::new(false, pods.collect(), owners.collect())
    }

    fn owners(&self, place: usize) -> Vec<Owner> {
        let workload = &self.workloads[place];
        let active = self.active(place);
        let updated = active
            .iter()
            .filter(|&&pod| self.pods[pod].revision == workload.revision);
        // Counts in a status may be late, so what is missing or too many shows only in the pods.
        let settled = updated.count() == active.len();
        let owner = |uid: &str, kind: &str, parent: Option<&str>| Owner {
            uid: Uid::new(uid),
            kind: kind.to_owned(),
            name: uid.to_owned(),
            parent: parent.map(Uid::new),
            replicas: workload
                .counts_replicas()
                .then(|| u32::try_from(workload.replicas).unwrap()),
            raised: 0,
            settled,
            labels: workload.labels.clone(),
            rollout: None,
        };
        if workload.kind != Kind::Deployment {
            let (kind, uid) = workload.controller(workload.revision);
            return vec![owner(&uid, kind, None)];
        }
        let sets = (0..=workload.revision).map(|revision| workload.controller(revision));
        let sets = sets.map(|(kind, uid)| owner(&uid, kind, Some(&workload.name)));
        sets.chain([owner(&workload.name, "Deployment", None)]).collect()
    }
}
