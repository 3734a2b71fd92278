//! The driver's part: loads openstack.wasm through the policy edge, takes its steps, keeps its state.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use scupper_common::clock::Clock;
use scupper_engine::{HookPhase, HookStep, Node, StepOutcome, Subject, Time, Uid};
use scupper_policy::{
    DrainInfo, Network, NoCluster, Policies, PolicyFinding, Runtime, RuntimeOptions, Secrets, StepCall,
};
use scupper_policy_spec::{HttpGrant, Networks, PolicySpec, SecretGrant, SecretSource};
use xtask::policies;
use xtask::workspace::Workspace;

use crate::limit::LIMIT;
use crate::testbed::Testbed;

/// The node whose host is `compute-a`.
pub(crate) const NODE: &str = "node-1";

/// The credential, and additional configuration.
pub(crate) struct Setup<'a> {
    /// As in `testbed-<name>` of clouds.yaml.
    pub(crate) who: &'a str,
    pub(crate) config: &'a [(&'a str, &'a str)],
    /// Instead of Nova itself.
    pub(crate) proxy: Option<&'a str>,
    /// Instead of Keystone itself.
    pub(crate) keystone: Option<&'a str>,
}

/// The credential with the minimal permissions for a drain.
pub(crate) const fn limited<'a>(config: &'a [(&'a str, &'a str)]) -> Setup<'a> {
    Setup {
        who: "drain-limited",
        config,
        proxy: None,
        keystone: None,
    }
}

/// This policy's part of a drain of the node.
pub(crate) struct Drain {
    policies: Policies,
    states: BTreeMap<HookPhase, Vec<u8>>,
    id: String,
    started: Time,
    secret: String,
}

impl Drain {
    pub(crate) async fn new(bed: &Testbed, setup: &Setup<'_>) -> Self {
        let policies = load(bed, setup).await;
        Self {
            policies,
            states: BTreeMap::new(),
            id: format!("drain-{}", now().as_millis()),
            started: now(),
            secret: secret(bed, setup.who),
        }
    }

    /// The reason that the drain writes for disabling nova-compute.
    pub(crate) fn mark(&self) -> String {
        format!("scupper: node={NODE} cluster=testbed drain={}", self.id)
    }

    /// The process dies, with its token and with the state since the last save: here, all of it.
    pub(crate) async fn killed(self, bed: &Testbed, setup: &Setup<'_>) -> Self {
        let policies = load(bed, setup).await;
        Self {
            policies,
            states: BTreeMap::new(),
            ..self
        }
    }

    /// Takes one step, and keeps its state as the engine does.
    pub(crate) async fn step(&mut self, phase: HookPhase) -> StepOutcome {
        let node = node();
        let step = HookStep {
            policy: "openstack".to_owned(),
            phase,
            subject: Subject::Node,
            state: self.states.get(&phase).cloned().unwrap_or_default(),
            leaving: Vec::new(),
        };
        let drain = DrainInfo {
            id: &self.id,
            name: "maintenance",
            trigger: "test",
            started: self.started,
            found_drained: false,
            held: false,
            machine_is_off: false,
            deadline: None,
            now: now(),
            own_pod: None,
            facts: None,
        };
        let call = StepCall {
            step: &step,
            drain,
            node: &node,
            pods: &[],
        };
        let outcome = self.policies.step(call).await;
        // No credential in the policy's messages and state.
        let shown = format!("{outcome:?}");
        assert!(!shown.contains(&self.secret), "a secret is shown");
        if let StepOutcome::Pending { state, .. } = &outcome {
            let text = String::from_utf8_lossy(state).into_owned();
            assert!(!text.contains(&self.secret) && !text.contains("gAAAAA"), "{text}");
            self.states.insert(phase, state.clone());
        }
        outcome
    }

    /// The policy's findings before a drain.
    pub(crate) async fn check(&self) -> Vec<PolicyFinding> {
        let checked = self.policies.check(Some(&node())).await;
        let findings = checked.into_iter().next().unwrap().findings;
        assert!(
            !format!("{findings:?}").contains(&self.secret),
            "a secret is shown"
        );
        findings
    }

    /// Takes steps until the hook has finished; an error is its failure.
    pub(crate) async fn run(&mut self, phase: HookPhase) -> Result<(), String> {
        self.run_while(phase, |_, _| true).await.map(|through| {
            assert!(through);
        })
    }

    /// Takes steps of emptying the host until this many migrations run.
    pub(crate) async fn until_running(&mut self, migrations: usize) {
        let under_way = self
            .run_while(HookPhase::BeforeDrain, |_, waiting| {
                waiting.iter().filter(|on| on.contains("running")).count() < migrations
            })
            .await;
        assert_eq!(under_way, Ok(false));
    }

    /// Takes steps as long as this holds for its progress and its blockers.
    pub(crate) async fn run_while(
        &mut self,
        phase: HookPhase,
        mut goes_on: impl FnMut(&str, &[String]) -> bool,
    ) -> Result<bool, String> {
        let begun = Instant::now();
        loop {
            let (progress, waiting, after) = match self.step(phase).await {
                StepOutcome::Done => return Ok(true),
                StepOutcome::Failed { message, .. } => return Err(message),
                StepOutcome::Pending {
                    progress,
                    waiting_for,
                    again_after,
                    ..
                } => (progress, waiting_for, again_after),
            };
            let waiting: Vec<String> = waiting
                .into_iter()
                .map(|on| format!("{}: {}", on.what, on.detail))
                .collect();
            if !goes_on(&progress, &waiting) {
                return Ok(false);
            }
            assert!(begun.elapsed() < LIMIT, "no end of it: {progress} {waiting:#?}");
            tokio::time::sleep(after).await;
        }
    }
}

async fn load(bed: &Testbed, setup: &Setup<'_>) -> Policies {
    let options = RuntimeOptions {
        shipped: None,
        cache: scratch().join("compiled"),
        compiler: env!("CARGO_BIN_EXE_scupper").into(),
        clock: Clock::System,
        network: Network::default(),
        secrets: Secrets::default(),
    };
    let runtime = Runtime::new(options).unwrap();
    let loaded = Policies::load(
        &runtime,
        &[spec(bed, setup)],
        Arc::new(NoCluster("there is no cluster")),
    )
    .await;
    loaded.unwrap_or_else(|error| panic!("{error:?}"))
}

/// The operator's settings in scupper.yaml.
pub(crate) fn spec(bed: &Testbed, setup: &Setup<'_>) -> PolicySpec {
    let keystone_url = setup.keystone.unwrap_or_else(|| bed.keystone_url());
    let keystone = keystone_url.trim_end_matches("/v3").to_owned();
    let nova_url = setup.proxy.unwrap_or_else(|| bed.nova_url());
    let nova = nova_url.trim_end_matches("/v2.1").to_owned();
    let auth = bed.auth(setup.who);
    let mut config = BTreeMap::from(
        [
            ("auth-url", keystone_url),
            ("region-name", "RegionOne"),
            ("cluster", "testbed"),
            ("host-table", "node-1=compute-a"),
            ("poll-seconds", "1"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned())),
    );
    let where_nova_is = match setup.proxy {
        Some(proxy) => ("compute-endpoint-override", proxy),
        None => ("compute-url", nova.as_str()),
    };
    config.insert(where_nova_is.0.to_owned(), where_nova_is.1.to_owned());
    for key in [
        "application_credential_id",
        "username",
        "user_domain_id",
        "project_name",
        "project_domain_id",
    ] {
        if let Some(value) = auth[key].as_str() {
            config.insert(key.replace('_', "-"), value.to_owned());
        }
    }
    for (key, value) in setup.config {
        config.insert((*key).to_owned(), (*value).to_owned());
    }
    let grant = |origin: &str, methods: &[&str]| HttpGrant {
        origin: origin.to_owned(),
        methods: methods.iter().map(ToString::to_string).collect(),
        networks: Networks {
            loopback: true,
            private: false,
        },
        ..HttpGrant::default()
    };
    let (name, file) = secret_file(bed, setup.who);
    PolicySpec {
        name: "openstack".to_owned(),
        file: component(),
        config,
        grants: vec!["events:node".parse().unwrap()],
        http: vec![
            grant(&keystone, &["POST", "DELETE"]),
            grant(&nova, &["GET", "POST", "PUT", "DELETE"]),
        ],
        secrets: vec![
            SecretGrant {
                name,
                source: SecretSource::File(file),
                origins: vec![keystone.clone()],
            },
            SecretGrant {
                name: "token".to_owned(),
                source: SecretSource::Captured {
                    origin: keystone.clone(),
                    header: "X-Subject-Token".to_owned(),
                },
                origins: vec![keystone, nova],
            },
        ],
        ..PolicySpec::default()
    }
}

pub(crate) fn secret(bed: &Testbed, who: &str) -> String {
    let auth = bed.auth(who);
    let secret = auth["application_credential_secret"].as_str();
    secret.or_else(|| auth["password"].as_str()).unwrap().to_owned()
}

fn secret_file(bed: &Testbed, who: &str) -> (String, PathBuf) {
    let file = bed.file(&format!("secret-of-{who}"), &secret(bed, who));
    let application = bed.auth(who)["application_credential_id"].is_string();
    let name = if application {
        "application-credential-secret"
    } else {
        "password"
    };
    (name.to_owned(), file)
}

/// openstack.wasm, built once.
pub(crate) fn component() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        let built = policies::build(&Workspace::read().unwrap(), &["openstack".to_owned()], None).unwrap();
        built.into_iter().next().unwrap().file
    };
    BUILT.get_or_init(build).clone()
}

/// This process's folder for all its files.
pub(crate) fn scratch() -> &'static std::path::Path {
    static SCRATCH: OnceLock<tempfile::TempDir> = OnceLock::new();
    SCRATCH.get_or_init(|| tempfile::tempdir().unwrap()).path()
}

fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Time::from_millis(u64::try_from(since.as_millis()).unwrap())
}

fn node() -> Node {
    Node {
        name: NODE.to_owned(),
        uid: Uid::new("uid-of-node-1"),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        unschedulable: true,
        conditions: Vec::new(),
        checkpoint: None,
        cancel: None,
        resource_version: "1".to_owned(),
    }
}
