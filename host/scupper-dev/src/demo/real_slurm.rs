//! The demo on a real Slurm: real jobs on a real node of it, and a simulated Kubernetes node of the same name.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use scupper_simulator::api::{Store, StoreError, objects};
use serde_json::Value;
use tempfile::TempDir;

use super::DemoOutput;
use super::demo_cluster::{
    AbortOnDrop, DRIVER, DemoCluster, DemoError, EVENTS, UNCORDON, interrupts, worker,
};
use scupper_driver::PoliciesOptions;
use scupper_policy_spec::{HttpGrant, Networks, PolicySpec, SecretGrant, SecretSource};

/// The node's name in both Slurm and Kubernetes.
const NODE: &str = "slurm-worker-0";
/// The user, the name and the seconds of each job: the shortest is last, so that all run when the drain begins.
const JOBS: [(&str, &str, &str); 3] = [
    ("bob", "train", "14"),
    ("alice", "evaluate", "11"),
    ("alice", "report", "8"),
];
/// The limit until they run: Slurm's scheduler starts jobs each second.
const JOBS_START: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(400);

/// Runs it, and ends Slurm in any case, Ctrl-C included.
pub(super) async fn run(policy: &Path, script: &Path, output: &DemoOutput) -> Result<(), DemoError> {
    // Signals are caught from here on, and handled once Slurm is up: a half-started Slurm could not be ended in order.
    let interrupted = interrupts().map_err(DemoError::Signals)?;
    let slurm = Slurm::start(script.to_owned()).await?;
    tokio::select! {
        played = scenes(policy, &slurm, output) => played,
        () = interrupted => Err(DemoError::Stopped),
    }
}

async fn scenes(policy: &Path, slurm: &Slurm, output: &DemoOutput) -> Result<(), DemoError> {
    let say = output.speaker();
    let cluster = super::cluster_objects::cluster().await?;
    build(&cluster.store()).map_err(DemoError::Scene)?;
    say(&format!(
        "A real Slurm {}: slurmctld, two slurmd with real jobs, and slurmrestd. The node {NODE} of Kubernetes is simulated;",
        slurm.fact("slurm_version"),
    ));
    say("the driver and slurm.wasm are the real ones, and talk to slurmrestd.\n");
    let demo_cluster = DemoCluster::set(cluster, NODE, policies(policy, slurm), output).await?;
    for (user, name, seconds) in JOBS {
        let more = [
            "--user",
            user,
            "--name",
            name,
            "--seconds",
            seconds,
            "--node",
            NODE,
        ];
        let job = slurm.ask("submit", &more).await?;
        say(&format!(
            "$ sbatch --job-name={name} …    # as {user}: job {job}, {seconds} seconds on {NODE}"
        ));
    }
    slurm.all_jobs_run().await?;
    let before = slurm.node().await?;
    say(&format!("\n$ sinfo\n            {before}"));
    let watched = watch(slurm.clone(), before, say.clone());
    let _watch = AbortOnDrop(tokio::spawn(watched));
    say(&format!(
        "\n$ kubectl create -f drain.yaml    # a LifecycleEvent: transition {DRIVER}, node {NODE}"
    ));
    demo_cluster.transition("drain-slurm-worker-0", DRIVER).await?;
    say(&format!("\n$ sinfo\n            {}", slurm.node().await?));
    say(&format!(
        "\n$ kubectl create -f maintenance-complete.yaml    # transition {UNCORDON}"
    ));
    demo_cluster
        .transition("maintenance-complete-slurm-worker-0", UNCORDON)
        .await?;
    say(&format!("\n$ sinfo\n            {}", slurm.node().await?));
    demo_cluster.clear().await
}

/// A worker's pods: those of Slurm and of the shop are evicted, the exporter is kept.
fn build(store: &Store) -> Result<(), StoreError> {
    let slurmd = objects::pod("slurm", "slurmd-0", NODE)
        .label("app.kubernetes.io/name", "slurmd")
        .owner_statefulset("slurmd")
        .takes(0.7);
    worker(store, NODE, slurmd)
}

fn policies(file: &Path, slurm: &Slurm) -> PoliciesOptions {
    let url = slurm.fact("url");
    let keys = [("way", "slurmrestd"), ("url", &url), ("poll-seconds", "1")];
    let policy = PolicySpec {
        name: "slurm".to_owned(),
        file: file.to_owned(),
        grants: EVENTS.parse().into_iter().collect(),
        http: vec![HttpGrant {
            origin: url.clone(),
            methods: vec!["GET".to_owned(), "POST".to_owned()],
            paths: vec!["/slurm/".to_owned()],
            networks: Networks {
                loopback: true,
                private: false,
            },
            ca: None,
        }],
        secrets: vec![SecretGrant {
            name: "token".to_owned(),
            source: SecretSource::File(slurm.fact("token_file").into()),
            origins: vec![url.clone()],
        }],
        config: BTreeMap::from(keys.map(|(key, value)| (key.to_owned(), value.to_owned()))),
        ..PolicySpec::default()
    };
    PoliciesOptions {
        policies: vec![policy],
        ..PoliciesOptions::default()
    }
}

/// Prints jobs that end and the state of the node, as Slurm's own clients see them.
async fn watch(slurm: Slurm, mut was: String, say: impl Fn(&str)) {
    let mut known = BTreeSet::new();
    loop {
        let jobs = slurm
            .exec(&["squeue", "-h", "-o", "%i of %u (%j)"])
            .await
            .unwrap_or_default();
        let jobs: BTreeSet<String> = jobs.lines().map(str::to_owned).collect();
        for over in known.difference(&jobs) {
            say(&format!("            (Slurm: job {over} has ended)"));
        }
        known = jobs;
        if let Ok(is) = slurm.node().await {
            if is != was {
                say(&format!("            (Slurm: {is})"));
            }
            was = is;
        }
        tokio::time::sleep(POLL).await;
    }
}

/// A real Slurm. Dropping the last handle ends it.
#[derive(Clone)]
struct Slurm {
    script: PathBuf,
    facts: Value,
    folder: std::sync::Arc<Folder>,
}

/// Its folder.
struct Folder {
    script: PathBuf,
    folder: TempDir,
}

impl Slurm {
    async fn start(script: PathBuf) -> Result<Self, DemoError> {
        let folder = tempfile::Builder::new()
            .prefix("scupper-slurm-")
            .tempdir()
            .map_err(DemoError::Folder)?;
        let mut slurm = Self {
            script: script.clone(),
            facts: Value::Null,
            folder: std::sync::Arc::new(Folder { script, folder }),
        };
        let facts = slurm.ask("up", &[]).await?;
        slurm.facts = serde_json::from_str(&facts).map_err(|error| DemoError::Slurm(error.to_string()))?;
        Ok(slurm)
    }

    fn fact(&self, name: &str) -> String {
        let fact = self.facts.get(name).and_then(Value::as_str);
        fact.unwrap_or_default().to_owned()
    }

    /// One line about the node, without a star that Slurm sets briefly and without the reason of a drain that is over.
    async fn node(&self) -> Result<String, DemoError> {
        let asked = self
            .exec(&["sinfo", "-h", "-N", "-n", NODE, "-o", "%T|%E"])
            .await?;
        let (state, reason) = asked.split_once('|').unwrap_or((&asked, ""));
        let state = state.trim_end_matches('*');
        Ok(if state.starts_with("drain") {
            format!("{NODE} is {state}: {reason}")
        } else {
            format!("{NODE} is {state}")
        })
    }

    /// Together, so that none ends while another one is still being started.
    async fn all_jobs_run(&self) -> Result<(), DemoError> {
        let begun = tokio::time::Instant::now();
        loop {
            let running = self.exec(&["squeue", "-h", "-t", "running", "-o", "%i"]).await?;
            if running.lines().count() == JOBS.len() {
                return Ok(());
            }
            if begun.elapsed() > JOBS_START {
                return Err(DemoError::Slurm(format!(
                    "of {} jobs only these run: {running}",
                    JOBS.len()
                )));
            }
            tokio::time::sleep(POLL).await;
        }
    }

    async fn exec(&self, command: &[&str]) -> Result<String, DemoError> {
        self.ask("exec", &[&["--"], command].concat()).await
    }

    async fn ask(&self, command: &str, options: &[&str]) -> Result<String, DemoError> {
        let mut command = self.folder.command(&self.script, command);
        command.args(options);
        let run = tokio::task::spawn_blocking(move || command.output());
        let reported = |text: &[u8]| String::from_utf8_lossy(text).trim().to_owned();
        match run.await {
            Ok(Ok(Output { status, stdout, .. })) if status.success() => Ok(reported(&stdout)),
            Ok(Ok(output)) => Err(DemoError::Slurm(reported(&output.stderr))),
            Ok(Err(error)) => Err(DemoError::Slurm(format!("{}: {error}", self.script.display()))),
            Err(error) => Err(DemoError::Slurm(error.to_string())),
        }
    }
}

impl Folder {
    /// In its own process group: Ctrl-C is for us, and we end it in order.
    fn command(&self, script: &Path, command: &str) -> Command {
        let mut process = Command::new(script);
        process
            .arg(command)
            .arg(self.folder.path())
            .stdin(Stdio::null())
            .process_group(0);
        process
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let ended = self.command(&self.script, "down").arg("--purge").output();
        let failed = match ended {
            Ok(output) if output.status.success() => return,
            Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
            Err(error) => error.to_string(),
        };
        tracing::error!(folder = %self.folder.path().display(), "the real Slurm could not be ended: {failed}");
    }
}
