//! The state of the host in memory: one for each thread, so that tests can run in parallel.

use std::{cell::RefCell, collections::BTreeMap, rc::Rc};

use crate::{
    Decision, Drain, Entry, Grant, Node, Phase, Plan, Pod, Subject, Uid, Verdict, Wave,
    facts::{Budget, DrainRequest, Job, Namespace, Owner, PeerGroup, Resources, Volume},
    http::{Error, Request, Response},
    log::Level,
};

thread_local! {
    static STATE: RefCell<State> = RefCell::new(State::default());
}

/// The time at which every test begins: 2027-01-15T08:00:00Z.
const BEGINNING: u64 = 1_800_000_000_000;

/// Answers requests.
pub(super) type Server = Rc<RefCell<dyn FnMut(&Request) -> Result<Response, Error>>>;

pub(super) struct State {
    pub(super) config: BTreeMap<String, String>,
    pub(super) node: Node,
    pub(super) pods: Vec<Pod>,
    pub(super) drain: Drain,
    pub(super) cluster_uid: Uid,
    /// The operator has declared that the machine is off.
    pub(super) machine_is_off: bool,
    pub(super) log: Vec<(Level, String)>,
    /// The grants of the policy that is being called; `None` for a planner, which has none.
    pub(super) grants: Option<Vec<Grant>>,
    /// The grants of the policy that is being called, also for a planner.
    pub(super) wants: Vec<Grant>,
    /// Why a fact could not be read for the plan.
    pub(super) unread: Option<String>,
    pub(super) namespaces: Vec<Namespace>,
    pub(super) budgets: Vec<Budget>,
    /// By the UID of the pod.
    pub(super) owners: BTreeMap<String, Vec<Owner>>,
    pub(super) jobs: BTreeMap<String, Job>,
    /// By the UID of the pod.
    pub(super) resources: BTreeMap<String, Resources>,
    pub(super) controller_peers: Vec<PeerGroup>,
    pub(super) group_peers: Vec<PeerGroup>,
    /// By the UID of the pod.
    pub(super) volumes: BTreeMap<String, Vec<Volume>>,
    pub(super) drain_requests: Vec<DrainRequest>,
    pub(super) request_labels: Vec<Entry>,
    pub(super) request_annotations: Vec<Entry>,
    /// A check is being called: it may send requests, and change nothing.
    pub(super) checks: bool,
    /// The error of every call to the API server.
    pub(super) outage: Option<String>,
    /// Why the API server refuses changes of a pod, by its UID.
    pub(super) denied: BTreeMap<String, String>,
    pub(super) server: Option<Server>,
    /// The Events that the policy emitted.
    pub(super) events: Vec<String>,
    /// The plan that was made last; `None`: the first draft.
    pub(super) plan: Option<Plan>,
    /// The hook whose step is being taken.
    pub(super) hook: Option<(Phase, Subject)>,
    /// The state of unfinished hooks.
    pub(super) hooks: Vec<(Phase, Subject, Vec<u8>)>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            config: BTreeMap::new(),
            node: Node {
                uid: "uid-of-node-1".to_owned(),
                name: "node-1".to_owned(),
                labels: Vec::new(),
                annotations: Vec::new(),
                unschedulable: false,
                own_cordon: false,
                conditions: Vec::new(),
            },
            pods: Vec::new(),
            drain: Drain {
                id: "uid-of-maintenance".to_owned(),
                name: "maintenance".to_owned(),
                trigger: "test".to_owned(),
                started: BEGINNING,
                found_drained: false,
                held: false,
                deadline: None,
                now: BEGINNING,
            },
            cluster_uid: "uid-of-cluster".to_owned(),
            machine_is_off: false,
            log: Vec::new(),
            grants: None,
            wants: Vec::new(),
            unread: None,
            namespaces: Vec::new(),
            budgets: Vec::new(),
            owners: BTreeMap::new(),
            jobs: BTreeMap::new(),
            resources: BTreeMap::new(),
            controller_peers: Vec::new(),
            group_peers: Vec::new(),
            volumes: BTreeMap::new(),
            drain_requests: Vec::new(),
            request_labels: Vec::new(),
            request_annotations: Vec::new(),
            checks: false,
            outage: None,
            denied: BTreeMap::new(),
            server: None,
            events: Vec::new(),
            plan: None,
            hook: None,
            hooks: Vec::new(),
        }
    }
}

impl State {
    /// The leaving pods that the host passes to the step.
    pub(super) fn leaving(&self) -> Vec<Uid> {
        let Some((phase, subject)) = &self.hook else {
            return Vec::new();
        };
        if matches!(
            phase,
            Phase::OnCancel | Phase::BeforeUncordon | Phase::AfterUncordon
        ) {
            return Vec::new();
        }
        let plan = self.plan.clone().unwrap_or_else(|| draft(&self.pods));
        let is_meant = |wave: &Wave| !matches!(subject, Subject::Wave(name) if *name != wave.name);
        let is_there = |uid: &Uid| self.pods.iter().any(|pod| pod.uid == *uid);
        let waves = plan.waves.into_iter().filter(is_meant);
        waves.flat_map(|wave| wave.pods).filter(is_there).collect()
    }
}

/// The host's first draft: every pod leaves, except mirror pods and those of DaemonSets.
pub(super) fn draft(pods: &[Pod]) -> Plan {
    let decide = |pod: &Pod| {
        let (verdict, reason) = match pod {
            _ if pod.mirror => (Verdict::Keep, "mirror pod"),
            _ if pod.is_controlled_by("DaemonSet") => (Verdict::Keep, "managed by a DaemonSet"),
            _ => (Verdict::Evict, "evictable"),
        };
        Decision {
            pod: pod.uid.clone(),
            verdict,
            reason: reason.to_owned(),
            policy: "kubectl".to_owned(),
        }
    };
    let decisions: Vec<_> = pods.iter().map(decide).collect();
    let leaving = decisions.iter().filter(|decision| decision.verdict.leaves());
    let waves = vec![Wave::new(
        "all",
        leaving.map(|decision| decision.pod.clone()).collect(),
    )];
    crate::Draft::new(pods, Plan { decisions, waves }).finish()
}

/// Reads or changes this thread's state.
pub(super) fn with<T>(act: impl FnOnce(&mut State) -> T) -> T {
    STATE.with_borrow_mut(act)
}

pub(super) fn set(entries: &mut Vec<Entry>, key: &str, value: &str) {
    remove(entries, key);
    entries.push(Entry {
        key: key.to_owned(),
        value: value.to_owned(),
    });
}

pub(super) fn remove(entries: &mut Vec<Entry>, key: &str) {
    entries.retain(|entry| entry.key != key);
}
