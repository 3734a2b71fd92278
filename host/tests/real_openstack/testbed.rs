//! A testbed: one of two for the whole run, kept warm between runs, ended with this process.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::nova::Nova;

const SCRIPT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/testbeds/openstack/openstack-testbed"
);
/// The host that is drained, and the other one.
pub(crate) const A: &str = "compute-a";
pub(crate) const B: &str = "compute-b";

pub(crate) struct Testbed {
    state: PathBuf,
    /// Held as long as the testbed is ours.
    _lock: File,
    clouds: Value,
    nova: String,
}

impl Testbed {
    pub(crate) fn up(name: &str) -> Self {
        let cache = std::env::var_os("SCUPPER_CACHE")
            .filter(|cache| !cache.is_empty())
            .map_or_else(|| PathBuf::from("/var/cache/scupper"), PathBuf::from);
        let folder = cache.join("testbeds/openstack/state");
        std::fs::create_dir_all(&folder).unwrap();
        let lock = File::create(folder.join(format!("{name}.lock"))).unwrap();
        lock.lock().unwrap();
        let state = folder.join(name);
        let owner = std::process::id().to_string();
        // The last run may have ended while tokens were short-lived.
        let options = ["--max-live", "2", "--token-ttl", "3600", "--owner", &owner];
        let up = || script("up", &state, &options);
        // What cannot be started again, as somebody has its ports, is begun anew.
        if let Err(first) = up() {
            script("wipe", &state, &[]).unwrap();
            up().unwrap_or_else(|why| {
                panic!(
                    "this machine cannot run the testbed: {why}\n(at first: {first})\n(SCUPPER_SKIP=real-openstack leaves this out)"
                )
            });
        }
        let clouds = std::fs::read(state.join("clouds.yaml")).unwrap();
        let exports = script("env", &state, &[]).unwrap();
        let nova = exports
            .lines()
            .find_map(|line| line.strip_prefix("export TESTBED_NOVA_URL='"));
        Self {
            clouds: serde_json::from_slice(&clouds).unwrap(),
            nova: nova.unwrap().trim_end_matches('\'').to_owned(),
            state,
            _lock: lock,
        }
    }

    /// Unlike that of any other testbed of this run.
    pub(crate) fn name(&self) -> String {
        self.state.file_name().unwrap().display().to_string()
    }

    pub(crate) fn down(&self) {
        script("down", &self.state, &[]).unwrap();
    }

    /// No server, and both compute services enabled.
    pub(crate) fn purge(&self) {
        script("purge", &self.state, &[]).unwrap();
    }

    /// Boots servers, and gives their ids.
    pub(crate) fn boot(&self, count: usize, more: &[&str]) -> Vec<String> {
        let count = count.to_string();
        let ids = script("boot", &self.state, &[&[count.as_str()], more].concat()).unwrap();
        ids.split_whitespace().map(str::to_owned).collect()
    }

    pub(crate) fn stop_compute(&self, host: &str) {
        script("stop-compute", &self.state, &[host, "--hard"]).unwrap();
    }

    pub(crate) fn start_compute(&self, host: &str) {
        script("start-compute", &self.state, &[host]).unwrap();
    }

    /// How long tokens live that are made from now on.
    pub(crate) fn token_ttl(&self, seconds: u32) {
        script("token-ttl", &self.state, &[&seconds.to_string()]).unwrap();
    }

    /// `testbed-<name>` of clouds.yaml.
    pub(crate) fn auth(&self, name: &str) -> &Value {
        &self.clouds["clouds"][format!("testbed-{name}")]["auth"]
    }

    /// `http://127.0.0.1:PORT/v3`
    pub(crate) fn keystone_url(&self) -> &str {
        self.auth("admin")["auth_url"].as_str().unwrap()
    }

    /// `http://127.0.0.1:PORT/v2.1`
    pub(crate) fn nova_url(&self) -> &str {
        &self.nova
    }

    /// An administrator who looks on.
    pub(crate) fn nova(&self) -> Nova {
        Nova::login(self.keystone_url(), self.nova_url(), self.auth("admin"))
    }
}

fn script(command: &str, state: &std::path::Path, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(SCRIPT)
        .arg(command)
        .arg(state)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned())
}
