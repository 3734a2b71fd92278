//! A testbed: for the whole run, kept warm between runs, ended with this process.

use std::fs::File;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::nova::Nova;
use crate::tool::Tool;

/// The drained host, and the other one.
pub(crate) const A: &str = "compute-a";
pub(crate) const B: &str = "compute-b";
/// In a cell of its own.
pub(crate) const C: &str = "compute-c";
/// It records migrations, and is needed for all changes.
pub(crate) const CONDUCTOR: &str = "nova-conductor";

/// How a testbed is set up.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    /// The name of its state; of the second and further ones with a number.
    pub(crate) state: &'static str,
    /// The number of live migrations that one of its hosts runs at a time.
    pub(crate) max_live: u32,
    /// With two of them there is also `compute-c`, in the second.
    pub(crate) cells: u32,
}

pub(crate) const USUAL: Kind = Kind {
    state: "tests",
    max_live: 2,
    cells: 1,
};
/// A host migrates more servers at a time.
pub(crate) const WIDE: Kind = Kind {
    max_live: 10,
    ..USUAL
};
pub(crate) const TWO_CELLS: Kind = Kind {
    state: "cells",
    cells: 2,
    ..USUAL
};

pub(crate) struct Testbed {
    tool: Tool,
    state: PathBuf,
    /// For files of its own, such as secrets; removed at the end.
    scratch: TempDir,
    /// Held as long as the testbed is ours.
    _lock: File,
    clouds: Value,
    nova: String,
    image: String,
}

impl Testbed {
    pub(crate) fn up(kind: Kind, number: usize) -> Self {
        let cache = std::env::var_os("SCUPPER_CACHE")
            .filter(|cache| !cache.is_empty())
            .map_or_else(|| PathBuf::from("/var/cache/scupper"), PathBuf::from);
        let folder = cache.join("testbeds/openstack/state");
        std::fs::create_dir_all(&folder).unwrap();
        let name = match number {
            1 => kind.state.to_owned(),
            more => format!("{}-{more}", kind.state),
        };
        let lock = File::create(folder.join(format!("{name}.lock"))).unwrap();
        lock.lock().unwrap();
        let state = folder.join(name);
        let owner = std::process::id().to_string();
        let (max_live, cells) = (kind.max_live.to_string(), kind.cells.to_string());
        // The last run may have ended while tokens were short-lived.
        let options = [
            "--max-live",
            &max_live,
            "--cells",
            &cells,
            "--token-ttl",
            "3600",
            "--owner",
            &owner,
        ];
        let tool = Tool::start();
        let up = || tool.ask("up", &state, &options);
        // A testbed that cannot restart, because its ports are taken, is created anew.
        if let Err(first) = up() {
            tool.ask("wipe", &state, &[]).unwrap();
            up().unwrap_or_else(|why| {
                panic!(
                    "this machine cannot run the testbed: {why}\n(at first: {first})\n(SCUPPER_SKIP=real-openstack leaves this out)"
                )
            });
        }
        let clouds = std::fs::read(state.join("clouds.yaml")).unwrap();
        let exports = tool.ask("env", &state, &[]).unwrap();
        let export = |name: &str| {
            let begins = format!("export {name}='");
            let value = exports
                .lines()
                .find_map(|line| line.strip_prefix(begins.as_str()));
            value.unwrap().trim_end_matches('\'').to_owned()
        };
        Self {
            clouds: serde_json::from_slice(&clouds).unwrap(),
            nova: export("TESTBED_NOVA_URL"),
            image: export("TESTBED_IMAGE"),
            tool,
            state,
            scratch: TempDir::new().unwrap(),
            _lock: lock,
        }
    }

    fn ask(&self, command: &str, arguments: &[&str]) -> String {
        self.tool.ask(command, &self.state, arguments).unwrap()
    }

    /// A file of this testbed alone, with this text.
    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let file = self.scratch.path().join(name);
        std::fs::write(&file, text).unwrap();
        file
    }

    pub(crate) fn down(&self) {
        self.ask("down", &[]);
    }

    /// No server, and both compute services enabled. A scenario that failed may have left the conductor or a nova-compute
    /// paused, and nothing is deleted without them.
    pub(crate) fn purge(&self) {
        self.resume(CONDUCTOR);
        // It may also have stopped it, and then there is nothing to resume.
        self.tool.ask("resume", &self.state, &[A]).ok();
        self.ask("purge", &[]);
    }

    /// Boots servers, and returns their ids.
    pub(crate) fn boot(&self, count: usize, more: &[&str]) -> Vec<String> {
        let count = count.to_string();
        let ids = self.ask("boot", &[&[count.as_str()], more].concat());
        ids.split_whitespace().map(str::to_owned).collect()
    }

    pub(crate) fn stop_compute(&self, host: &str) {
        self.ask("stop-compute", &[host, "--hard"]);
    }

    pub(crate) fn start_compute(&self, host: &str) {
        self.ask("start-compute", &[host]);
    }

    /// Pauses a service; its messages wait.
    pub(crate) fn pause(&self, service: &str) {
        self.ask("pause", &[service]);
    }

    /// The same, for callers that cannot borrow the testbed.
    pub(crate) fn pausing(&self, service: &str) -> impl FnMut() + Send + 'static {
        let record = self.state.join(format!("run/{service}.json"));
        let record: Value = serde_json::from_slice(&std::fs::read(record).unwrap()).unwrap();
        // It leads its own process group.
        let group = format!("-{}", record["pid"].as_i64().unwrap());
        move || {
            let kill = Command::new("kill").args(["-STOP", "--", &group]).status();
            assert!(kill.unwrap().success());
        }
    }

    pub(crate) fn resume(&self, service: &str) {
        self.ask("resume", &[service]);
    }

    /// Finished migrations away from the host, of servers that are gone, until the next purge.
    pub(crate) fn records(&self, count: usize, servers: usize) {
        self.ask(
            "records",
            &[&count.to_string(), "--servers", &servers.to_string()],
        );
    }

    /// A compute service that is down for good and disabled for this reason, until the next purge.
    pub(crate) fn ghost(&self, host: &str, reason: &str) {
        self.ask("ghost", &[host, "--reason", reason]);
    }

    /// Whether Nova reaches the second cell.
    pub(crate) fn cell2(&self, up: bool) {
        self.ask("cell2", &[if up { "up" } else { "down" }]);
    }

    /// Enables or disables a user of Keystone. Its tokens end.
    pub(crate) fn user_enabled(&self, user: &str, enabled: bool) {
        let step = if enabled { "--enable" } else { "--disable" };
        self.ask("user", &[user, step]);
    }

    /// The lifetime of new tokens.
    pub(crate) fn token_ttl(&self, seconds: u32) {
        self.ask("token-ttl", &[&seconds.to_string()]);
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

    /// The image of the servers.
    pub(crate) fn image(&self) -> &str {
        &self.image
    }

    /// An administrator for observation.
    pub(crate) fn nova(&self) -> Nova {
        Nova::login(self.keystone_url(), self.nova_url(), self.auth("admin"))
    }
}
