//! The real slurm.wasm in the real policy edge, its hooks called as the engine calls them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use scupper_common::clock::Clock;
use scupper_engine::{HookPhase, HookStep, Node, StepOutcome, Subject, Time, Uid, WaitingOn};
use scupper_policy::{DrainInfo, Network, NoCluster, Policies, Runtime, RuntimeOptions, Secrets, StepCall};
use scupper_policy_spec::{HttpGrant, Networks, PolicySpec, SecretGrant, SecretSource};

use crate::testbed::{LIMIT, NODE, Testbed};

/// A step that asks for another within this time has more to do now.
const SOON: Duration = Duration::from_millis(500);
/// The poll interval.
pub(crate) const POLL: Duration = Duration::from_secs(1);
/// The beginning of the reason of a drain of the rig's node.
pub(crate) const OURS: &str = "scupper: node=worker-1 cluster=testbed drain=drain-uid: maintenance";

/// One drain of the Kubernetes node `worker-1`, which is `slurm-worker-0` in Slurm.
pub(crate) struct Rig {
    policies: Policies,
    node: Node,
    id: String,
    /// Its start; absent: at each step.
    started: Option<Time>,
    deadline: Option<Time>,
    states: Mutex<BTreeMap<HookPhase, Vec<u8>>>,
}

/// The message of a waiting step.
#[derive(Clone, Debug)]
pub(crate) struct Waits {
    pub(crate) progress: String,
    pub(crate) waiting_for: Vec<WaitingOn>,
}

/// The policy, built once.
pub(crate) fn module() -> PathBuf {
    crate::support::policies().join("slurm.wasm")
}

/// The operator's settings: this Slurm, this token, and these additional keys.
pub(crate) fn spec(url: &str, token: &Path, config: &[(&str, &str)]) -> PolicySpec {
    let mut keys = BTreeMap::from(
        [
            ("way", "slurmrestd"),
            ("url", url),
            ("slurm-node-table", "worker-1=slurm-worker-0"),
            ("poll-seconds", "1"),
            ("cluster", "testbed"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned())),
    );
    keys.extend(
        config
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned())),
    );
    PolicySpec {
        name: "slurm".to_owned(),
        file: module(),
        grants: vec!["events:node".parse().unwrap()],
        http: vec![HttpGrant {
            origin: url.to_owned(),
            methods: ["GET", "POST", "DELETE"].map(str::to_owned).into(),
            paths: vec!["/slurm/".to_owned()],
            networks: Networks {
                loopback: true,
                private: false,
            },
            ca: None,
        }],
        secrets: vec![SecretGrant {
            name: "token".to_owned(),
            source: SecretSource::File(token.to_owned()),
            origins: vec![url.to_owned()],
        }],
        config: keys,
        ..PolicySpec::default()
    }
}

impl Rig {
    /// With the token of the testbed.
    pub(crate) async fn load(testbed: &Testbed, config: &[(&str, &str)]) -> Self {
        Self::load_with(testbed, &testbed.token_file(), config).await
    }

    pub(crate) async fn load_with(testbed: &Testbed, token: &Path, config: &[(&str, &str)]) -> Self {
        Self::load_spec(spec(&testbed.url(), token, config)).await
    }

    pub(crate) async fn load_spec(spec: PolicySpec) -> Self {
        let policies = Policies::load(&runtime(), &[spec], Arc::new(NoCluster("there is no cluster"))).await;
        Self {
            policies: policies.unwrap_or_else(|error| panic!("{error:?}")),
            node: node(),
            id: "drain-uid".to_owned(),
            started: None,
            deadline: None,
            states: Mutex::default(),
        }
    }

    /// The drain began now, with a deadline this long from now. Returns its start.
    pub(crate) fn deadline_in(&mut self, left: Duration) -> Time {
        let left = u64::try_from(left.as_millis()).unwrap();
        let now = Clock::System.now();
        self.started = Some(now);
        self.deadline = Some(Time::from_millis(now.as_millis() + left));
        now
    }

    /// Another drain of the same node, or the uncordon after it.
    pub(crate) fn another(&mut self, id: &str) {
        self.id = id.to_owned();
        self.states.get_mut().unwrap().clear();
    }

    /// One step.
    pub(crate) async fn step(&self, phase: HookPhase) -> StepOutcome {
        let kept = self.states.lock().unwrap().get(&phase).cloned();
        let step = HookStep {
            policy: "slurm".to_owned(),
            phase,
            subject: Subject::Node,
            state: kept.unwrap_or_default(),
            leaving: Vec::new(),
        };
        let now = Clock::System.now();
        let drain = DrainInfo {
            id: &self.id,
            name: "maintenance",
            trigger: "test",
            started: self.started.unwrap_or(now),
            found_drained: false,
            held: false,
            machine_is_off: false,
            deadline: self.deadline,
            now,
            own_pod: None,
            facts: None,
        };
        let call = StepCall {
            step: &step,
            drain,
            node: &self.node,
            pods: &[],
        };
        let outcome = self.policies.step(call).await;
        if let StepOutcome::Pending { state, .. } = &outcome {
            assert!(state.len() <= 1024, "{} bytes of state", state.len());
            self.states.lock().unwrap().insert(phase, state.clone());
        }
        outcome
    }

    /// The policy's findings: `severity subject: message`.
    pub(crate) async fn check(&self) -> Vec<String> {
        let checked = self.policies.check(Some(&self.node)).await;
        let findings = checked.into_iter().flat_map(|policy| policy.findings);
        findings
            .map(|found| format!("{} {}: {}", found.severity.as_str(), found.subject, found.message))
            .collect()
    }

    /// Takes steps, as often as they ask for it, until one has nothing to do soon.
    pub(crate) async fn settle(&self, phase: HookPhase) -> StepOutcome {
        loop {
            match self.step(phase).await {
                StepOutcome::Pending { again_after, .. } if again_after < SOON => {
                    tokio::time::sleep(again_after).await;
                }
                outcome => return outcome,
            }
        }
    }

    /// It waits, and reports it.
    pub(crate) async fn waits(&self) -> Waits {
        match self.settle(HookPhase::BeforeDrain).await {
            StepOutcome::Pending {
                progress,
                waiting_for,
                ..
            } => Waits {
                progress,
                waiting_for,
            },
            other => panic!("{other:?}"),
        }
    }

    /// It finishes a phase, sooner or later.
    pub(crate) async fn done(&self, phase: HookPhase) {
        let begun = Instant::now();
        loop {
            match self.settle(phase).await {
                StepOutcome::Done => return,
                other => assert!(begun.elapsed() < LIMIT, "{phase}: {other:?}"),
            }
            tokio::time::sleep(POLL / 2).await;
        }
    }

    /// The step failed, for good or not, with this text.
    pub(crate) async fn fails(&self, phase: HookPhase, for_good: bool, words: &str) {
        match self.settle(phase).await {
            StepOutcome::Failed { message, retry_after } => {
                assert!(message.contains(words), "{words}: {message}");
                assert_eq!(retry_after.is_none(), for_good, "{message}");
            }
            other => panic!("{words}: {other:?}"),
        }
    }
}

fn runtime() -> Runtime {
    static CACHE: OnceLock<tempfile::TempDir> = OnceLock::new();
    let cache = CACHE.get_or_init(|| tempfile::tempdir().unwrap());
    Runtime::new(RuntimeOptions {
        shipped: None,
        cache: cache.path().join("compiled"),
        compiler: PathBuf::from(env!("CARGO_BIN_EXE_scupper")),
        clock: Clock::System,
        network: Network::default(),
        secrets: Secrets::default(),
    })
    .unwrap()
}

fn node() -> Node {
    Node {
        name: "worker-1".to_owned(),
        uid: Uid::new("node-uid"),
        labels: BTreeMap::from([("example.com/slurm".to_owned(), NODE.to_owned())]),
        annotations: BTreeMap::new(),
        unschedulable: true,
        conditions: Vec::new(),
        checkpoint: None,
        cancel: None,
        resource_version: "1".to_owned(),
    }
}
