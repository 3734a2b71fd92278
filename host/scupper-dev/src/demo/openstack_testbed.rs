//! The real OpenStack of the demo: started, queried and ended through the testbed's program.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use serde_json::Value;
use tempfile::NamedTempFile;

use super::demo_cluster::DemoError;

/// The drained host.
pub(super) const HOST: &str = "compute-a";

/// A real OpenStack. Dropping the last handle ends it.
#[derive(Clone)]
pub(super) struct Cloud {
    bed: Arc<Testbed>,
    auth: Arc<Value>,
    nova: String,
    secret: Arc<NamedTempFile>,
}

/// The processes to end.
struct Testbed {
    program: PathBuf,
    state: PathBuf,
}

impl Cloud {
    /// Starts it without servers. It ends with this process in any case.
    pub(super) async fn start(program: &Path, state: &Path) -> Result<Self, DemoError> {
        let bed = Arc::new(Testbed {
            program: program.to_owned(),
            state: state.to_owned(),
        });
        let owner = std::process::id().to_string();
        let owned = ["--owner", owner.as_str()];
        // If its ports are taken, it is created anew.
        if ask(&bed, "up", &owned).await.is_err() {
            ask(&bed, "wipe", &[]).await?;
            ask(&bed, "up", &owned).await?;
        }
        ask(&bed, "purge", &[]).await?;
        let clouds = std::fs::read(state.join("clouds.yaml")).map_err(DemoError::Folder)?;
        let clouds: Value =
            serde_json::from_slice(&clouds).map_err(|error| DemoError::OpenStack(error.to_string()))?;
        let auth = clouds.pointer("/clouds/testbed-drain-limited/auth").cloned();
        let auth = auth.unwrap_or_default();
        let mut secret = NamedTempFile::new().map_err(DemoError::Folder)?;
        secret
            .write_all(text(&auth, "application_credential_secret").as_bytes())
            .map_err(DemoError::Folder)?;
        let exports = ask(&bed, "env", &[]).await?;
        let nova = exports
            .lines()
            .find_map(|line| line.strip_prefix("export TESTBED_NOVA_URL='"));
        let nova = nova.unwrap_or_default().trim_end_matches('\'');
        Ok(Self {
            nova: nova.trim_end_matches("/v2.1").to_owned(),
            auth: Arc::new(auth),
            secret: Arc::new(secret),
            bed,
        })
    }

    /// The origin of Keystone.
    pub(super) fn keystone(&self) -> String {
        let url = text(&self.auth, "auth_url");
        url.trim_end_matches("/v3").to_owned()
    }

    /// The origin of Nova.
    pub(super) fn nova(&self) -> String {
        self.nova.clone()
    }

    pub(super) fn credential_id(&self) -> String {
        text(&self.auth, "application_credential_id")
    }

    pub(super) fn secret_file(&self) -> &Path {
        self.secret.path()
    }

    /// `compute-a is disabled and up: reason`
    pub(super) async fn services(&self) -> Result<Vec<String>, DemoError> {
        let all = self.ask("status", &[]).await?;
        let line = |line: &str| {
            let mut words = line.split_whitespace();
            (words.next()? == "nova-compute").then_some(())?;
            let (host, status, state) = (words.next()?, words.next()?, words.next()?);
            let reason = words.collect::<Vec<_>>().join(" ");
            let reason = if reason.is_empty() {
                reason
            } else {
                format!(": {reason}")
            };
            Some(format!("{host} is {status} and {state}{reason}"))
        };
        let mut lines: Vec<String> = all.lines().filter_map(line).collect();
        lines.sort_unstable();
        Ok(lines)
    }

    /// Each server's name and host.
    pub(super) async fn servers(&self) -> Result<BTreeMap<String, String>, DemoError> {
        let all = self.ask("list", &[]).await?;
        let server = |line: &str| {
            let mut words = line.split_whitespace().skip(1);
            Some((words.next()?.to_owned(), words.next()?.to_owned()))
        };
        Ok(all.lines().filter_map(server).collect())
    }

    pub(super) async fn ask(&self, command: &str, options: &[&str]) -> Result<String, DemoError> {
        ask(&self.bed, command, options).await
    }
}

async fn ask(bed: &Arc<Testbed>, command: &str, options: &[&str]) -> Result<String, DemoError> {
    let mut process = bed.command(command);
    process.args(options);
    let program = bed.program.display().to_string();
    let run = tokio::task::spawn_blocking(move || process.output());
    let reported = |text: &[u8]| String::from_utf8_lossy(text).trim().to_owned();
    match run.await {
        Ok(Ok(output)) if output.status.success() => Ok(reported(&output.stdout)),
        Ok(Ok(output)) => Err(DemoError::OpenStack(reported(&output.stderr))),
        Ok(Err(error)) => Err(DemoError::OpenStack(format!("{program}: {error}"))),
        Err(error) => Err(DemoError::OpenStack(error.to_string())),
    }
}

fn text(value: &Value, key: &str) -> String {
    let text = value.get(key).and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}

impl Testbed {
    /// In its own process group: Ctrl-C is for us, and we end it in order.
    fn command(&self, command: &str) -> Command {
        let mut process = Command::new(&self.program);
        process
            .arg(command)
            .arg(&self.state)
            .stdin(Stdio::null())
            .process_group(0);
        process
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        let failed = match self.command("down").output() {
            Ok(output) if output.status.success() => return,
            Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
            Err(error) => error.to_string(),
        };
        tracing::error!(folder = %self.state.display(), "the real OpenStack could not be ended: {failed}");
    }
}
