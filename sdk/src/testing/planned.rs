//! A plan with pods by name, as a test reads it.

use std::collections::BTreeSet;

use crate::{Decision, Plan, Pod, Verdict, Wave};

/// A plan and its pods.
#[derive(Clone, Debug)]
pub struct Planned {
    plan: Plan,
    pods: Vec<Pod>,
}

impl Planned {
    pub(super) fn new(plan: Plan, pods: Vec<Pod>) -> Self {
        Self { plan, pods }
    }

    /// The plan itself.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The verdict on the pod `namespace/name`.
    pub fn verdict(&self, full_name: &str) -> Option<Verdict> {
        self.decision(full_name).map(|decision| decision.verdict)
    }

    /// The reason of the verdict on the pod `namespace/name`.
    pub fn reason(&self, full_name: &str) -> Option<&str> {
        self.decision(full_name).map(|decision| decision.reason.as_str())
    }

    /// The wave of this name.
    pub fn wave(&self, name: &str) -> Option<&Wave> {
        self.plan.waves.iter().find(|wave| wave.name == name)
    }

    /// All waves as lines like `all: shop/cart shop/db`.
    pub fn waves(&self) -> Vec<String> {
        let line = |wave: &Wave| {
            let names = wave.pods.iter().map(|uid| self.name(uid));
            names.fold(format!("{}:", wave.name), |line, name| format!("{line} {name}"))
        };
        self.plan.waves.iter().map(line).collect()
    }

    /// Checks what the host checks: every pod has one decision, exactly the leaving pods are in waves, each in one, mirror
    /// pods stay, the driver's own pod is last, and the names of waves are unique.
    pub(super) fn assert_valid(&self) {
        let mut decided = BTreeSet::new();
        for decision in &self.plan.decisions {
            assert!(
                decided.insert(&decision.pod),
                "{} has two decisions",
                self.name(&decision.pod)
            );
            assert!(
                self.pods.iter().any(|pod| pod.uid == decision.pod),
                "{} is not on the node",
                decision.pod
            );
        }
        let mut names = BTreeSet::new();
        for wave in &self.plan.waves {
            assert!(
                !wave.name.is_empty() && names.insert(&wave.name),
                "two waves are named `{}`",
                wave.name
            );
            assert!(
                wave.max_parallel != Some(0),
                "wave `{}` lets no pod leave",
                wave.name
            );
        }
        let in_waves: Vec<_> = self.plan.waves.iter().flat_map(|wave| &wave.pods).collect();
        for pod in &self.pods {
            let name = pod.full_name();
            let leaves = self.verdict(&name).map(Verdict::leaves);
            let times = in_waves.iter().filter(|uid| ***uid == pod.uid).count();
            assert!(leaves.is_some(), "{name} has no decision");
            assert!(
                times == usize::from(leaves == Some(true)),
                "{name} is in {times} waves"
            );
            assert!(
                !(pod.mirror && leaves == Some(true)),
                "{name} is a mirror pod and cannot leave"
            );
            let last = in_waves.last().is_some_and(|uid| **uid == pod.uid);
            assert!(
                !pod.driver || times == 0 || last,
                "{name} is the driver's and does not leave last"
            );
        }
    }

    fn decision(&self, full_name: &str) -> Option<&Decision> {
        let pod = self.pods.iter().find(|pod| pod.full_name() == full_name)?;
        self.plan
            .decisions
            .iter()
            .find(|decision| decision.pod == pod.uid)
    }

    fn name(&self, uid: &str) -> String {
        let pod = self.pods.iter().find(|pod| pod.uid == uid);
        pod.map_or_else(|| uid.to_owned(), Pod::full_name)
    }
}
