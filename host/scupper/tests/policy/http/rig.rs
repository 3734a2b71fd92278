//! One policy that sends the test's requests, names that resolve to loopback, and its grants.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use futures::FutureExt;
use futures::future::BoxFuture;
use scupper_common::clock::Clock;
use scupper_engine::{HookPhase, Node, StepOutcome};
use scupper_policy::{Endpoint, LoadError, Network, Policies, Resolve, Runtime, RuntimeOptions, Secrets};
use scupper_policy_spec::{HttpGrant, Networks, PolicySpec, SecretGrant, SecretSource};

use crate::support::{FakeCluster, grant, node, scratch, spec, step_on};

/// Only loopback, as all test servers are there.
pub(crate) const LOOPBACK: Networks = Networks {
    loopback: true,
    private: false,
};

/// The setup of the policy, before it is loaded.
pub(crate) struct Rig {
    pub(crate) spec: PolicySpec,
    pub(crate) names: Names,
    pub(crate) forbidden: Vec<Endpoint>,
    pub(crate) memory: Secrets,
    pub(crate) cluster: Arc<FakeCluster>,
}

/// A loaded policy.
pub(crate) struct Loaded {
    pub(crate) policies: Policies,
    pub(crate) cluster: Arc<FakeCluster>,
}

/// Names and their addresses. An unlisted name is on loopback; one without an entry here never answers.
#[derive(Clone, Default)]
pub(crate) struct Names(Arc<Mutex<BTreeMap<String, Option<Vec<IpAddr>>>>>);

impl Names {
    /// Replaces its addresses.
    pub(crate) fn set(&self, name: &str, addresses: &[&str]) {
        let addresses = addresses.iter().map(|text| text.parse().unwrap()).collect();
        self.0.lock().unwrap().insert(name.to_owned(), Some(addresses));
    }

    /// Lookups of this name hang.
    pub(crate) fn silence(&self, name: &str) {
        self.0.lock().unwrap().insert(name.to_owned(), None);
    }
}

impl Resolve for Names {
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let known = self.0.lock().unwrap().get(host).cloned();
        let itself = host.parse().unwrap_or_else(|_| "127.0.0.1".parse().unwrap());
        async move {
            match known.unwrap_or_else(|| Some(vec![itself])) {
                Some(addresses) => Ok(addresses),
                None => std::future::pending().await,
            }
        }
        .boxed()
    }
}

impl Rig {
    /// A policy without any grant.
    pub(crate) fn new() -> Self {
        let mut spec = spec("fetches");
        spec.grants = vec![grant("node-annotations:seen.example.com/")];
        Self {
            spec,
            names: Names::default(),
            forbidden: Vec::new(),
            memory: Secrets::default(),
            cluster: Arc::new(FakeCluster::default()),
        }
    }

    /// It may send everything to this origin, which is on loopback, and requests to.
    pub(crate) fn origin(self, origin: &str) -> Self {
        const METHODS: &str = "GET,HEAD,POST,PUT,PATCH,DELETE";
        let http = HttpGrant {
            origin: origin.to_owned(),
            methods: METHODS.split(',').map(str::to_owned).collect(),
            networks: LOOPBACK,
            ..HttpGrant::default()
        };
        self.http(http).wants(&format!("http {METHODS} {origin}"))
    }

    /// A grant of requests.
    pub(crate) fn http(mut self, grant: HttpGrant) -> Self {
        self.spec.http.push(grant);
        self
    }

    /// It requests this.
    pub(crate) fn wants(mut self, line: &str) -> Self {
        let wants = self.spec.config.entry("wants".to_owned()).or_default();
        wants.push_str(line);
        wants.push('\n');
        self
    }

    /// It may use a secret from a file, and requests to.
    pub(crate) fn file(self, name: &str, file: &Path, origins: &[&str]) -> Self {
        self.secret(name, SecretSource::File(file.to_owned()), origins)
    }

    /// It may use a secret, and requests to.
    pub(crate) fn secret(mut self, name: &str, source: SecretSource, origins: &[&str]) -> Self {
        self.spec.secrets.push(SecretGrant {
            name: name.to_owned(),
            source,
            origins: origins.iter().map(|origin| (*origin).to_owned()).collect(),
        });
        self.wants(&format!("secret {name}"))
    }

    /// Loads it.
    pub(crate) async fn try_load(&self) -> Result<Loaded, LoadError> {
        let options = RuntimeOptions {
            shipped: None,
            cache: scratch().join("compiled"),
            compiler: env!("CARGO_BIN_EXE_scupper").into(),
            clock: Clock::System,
            network: Network {
                resolver: Arc::new(self.names.clone()),
                forbidden: self.forbidden.clone(),
                http_mock: None,
            },
            secrets: self.memory.clone(),
        };
        let runtime = Runtime::new(options).unwrap();
        let cluster = Arc::clone(&self.cluster);
        let policies = Policies::load(&runtime, std::slice::from_ref(&self.spec), cluster).await?;
        Ok(Loaded {
            policies,
            cluster: Arc::clone(&self.cluster),
        })
    }

    /// Loads it.
    pub(crate) async fn load(&self) -> Loaded {
        let loaded = self.try_load().await;
        loaded.unwrap_or_else(|error| panic!("{}", crate::support::chain(&error)))
    }
}

impl Loaded {
    /// Takes a step with these lines, and returns the policy's answer.
    pub(crate) async fn step(&self, lines: &[&str]) -> String {
        self.step_as("p", lines).await
    }

    /// The same for a policy with another name.
    pub(crate) async fn step_as(&self, policy: &str, lines: &[&str]) -> String {
        self.answer(&node(), policy, lines).await
    }

    /// The same on another node.
    pub(crate) async fn step_on(&self, name: &str, lines: &[&str]) -> String {
        let node = Node {
            name: name.to_owned(),
            ..node()
        };
        self.answer(&node, "p", lines).await
    }

    async fn answer(&self, node: &Node, policy: &str, lines: &[&str]) -> String {
        let lines = lines.join("\n");
        let state = (HookPhase::BeforeDrain, lines.as_bytes());
        match step_on(node, policy, &self.policies, state).await {
            StepOutcome::Failed { message, .. } => message,
            other => panic!("{other:?}"),
        }
    }
}

/// A file with this secret in it.
pub(crate) fn secret_file(value: &str) -> PathBuf {
    let (file, path) = tempfile::NamedTempFile::new_in(scratch())
        .unwrap()
        .keep()
        .unwrap();
    drop(file);
    std::fs::write(&path, value).unwrap();
    path
}
