//! The driver and the compiler's child in one container: neither kills the other, and a compilation that killed the
//! driver is not repeated.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use scupper_simulator::api::{self, ApiServer};
use serde_json::json;

use crate::hostile::bytes::bomb;

const LIMIT: Duration = Duration::from_secs(240);
const MIB: u64 = 1024 * 1024;

/// A node with one policy, on which drivers are started one after the other.
struct Node {
    _api: ApiServer,
    policy: PathBuf,
    folder: tempfile::TempDir,
}

impl Node {
    async fn with(policy: PathBuf) -> Self {
        let api = ApiServer::start(api::Options::default()).await.unwrap();
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "worker-1"}});
        api.store().apply(node).unwrap();
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("kubeconfig"), api.kubeconfig()).unwrap();
        Self {
            _api: api,
            policy,
            folder,
        }
    }

    /// Starts a driver, in a cgroup if there is one.
    fn driver(&self, cgroup: Option<&Cgroup>) -> Driver {
        let log = self.folder.path().join("log");
        let mut command = match cgroup {
            None => Command::new(env!("CARGO_BIN_EXE_scupper")),
            Some(cgroup) => {
                let mut shell = Command::new("sh");
                shell
                    .args(["-c", r#"echo $$ > "$0" && exec "$@""#])
                    .arg(cgroup.dir.join("cgroup.procs"))
                    .arg(env!("CARGO_BIN_EXE_scupper"));
                shell
            }
        };
        command
            .args(["kubelet-plugin", "--node-name=worker-1", "--claim=self"])
            .arg(format!("--kubelet-root={}", self.path("kubelet")))
            .arg(format!("--kubeconfig={}", self.path("kubeconfig")))
            .arg(format!("--policy=p={}", self.policy.display()))
            .arg(format!("--policy-cache={}", self.path("cache")))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).unwrap());
        Driver {
            child: command.spawn().unwrap(),
            log,
        }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// The mark of the current compilation.
    fn mark(&self) -> Option<PathBuf> {
        let files = fs::read_dir(self.path("cache")).ok()?;
        let mut paths = files.map(|file| file.unwrap().path());
        paths.find(|path| path.extension().is_some_and(|ending| ending == "compiling"))
    }
}

struct Driver {
    child: Child,
    log: PathBuf,
}

impl Driver {
    fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Its compiler.
    fn compiler(&mut self) -> Pid {
        let mut found = None;
        self.until("the compiler runs", |driver| {
            found = children(driver.child.id()).into_iter().find(|child| {
                let command = fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
                command
                    .split(|byte| *byte == 0)
                    .any(|word| word == b"compile-policy")
            });
            found.is_some()
        });
        Pid::from_raw(i32::try_from(found.unwrap()).unwrap()).unwrap()
    }

    fn until(&mut self, what: &str, mut holds: impl FnMut(&mut Self) -> bool) {
        let begun = Instant::now();
        while !holds(self) {
            assert!(begun.elapsed() < LIMIT, "{what}: in vain\n{}", self.log());
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("{what}: the driver ended before: {status}\n{}", self.log());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn ended(&mut self) -> ExitStatus {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(begun.elapsed() < LIMIT, "it does not end\n{}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The processes that a process has started.
fn children(parent: u32) -> Vec<u32> {
    let is_child = |pid: u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status.contains(&format!("\nPPid:\t{parent}\n"))
    };
    let pids = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    pids.filter(|pid| is_child(*pid)).collect()
}

fn lives(pid: Pid) -> bool {
    // A process is dead before its parent has waited for it.
    let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).unwrap_or_default();
    !(status.is_empty() || status.contains("State:\tZ") || status.contains("State:\tX"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_whose_compilation_killed_the_driver_is_not_compiled_again_automatically() {
    let node = Node::with(bomb("killed")).await;
    let mut first = node.driver(None);
    let compiler = first.compiler();
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    let begun = Instant::now();
    while lives(compiler) {
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "the compiler outlives its driver"
        );
        std::thread::sleep(Duration::from_millis(5));
    }

    let mark = node.mark().expect("what was being compiled is not marked");
    let mut second = node.driver(None);
    let status = second.ended();
    let log = second.log();
    assert_eq!(status.code(), Some(3), "{log}");
    assert!(
        log.contains("the driver was killed while it compiled this policy")
            && log.contains(mark.to_str().unwrap()),
        "{log}"
    );

    // A user asks to try it again; and a driver that stops in order was not killed by it.
    fs::remove_file(&mark).unwrap();
    let mut third = node.driver(None);
    third.compiler();
    assert_eq!(node.mark().as_ref(), Some(&mark));
    kill_process(Pid::from_child(&third.child), Signal::TERM).unwrap();
    assert!(third.ended().success(), "{}", third.log());
    assert_eq!(node.mark(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_needs_more_memory_than_the_container_has_does_not_kill_the_driver() {
    let cgroup = match Cgroup::with(512 * MIB) {
        Ok(cgroup) => cgroup,
        Err(why) => {
            eprintln!("SKIPPED: no cgroup with a memory limit can be made here: {why}");
            return;
        }
    };
    let node = Node::with(bomb("container")).await;
    let mut driver = node.driver(Some(&cgroup));
    let status = driver.ended();
    let log = driver.log();
    eprintln!(
        "{} limit, {} processes killed:\n{log}",
        cgroup.version,
        cgroup.killed()
    );
    assert_eq!(cgroup.killed(), 0, "the kernel had to kill: {log}");
    assert_eq!(status.code(), Some(3), "{log}");
    assert!(
        log.contains(
            "that the memory limit of 512 MiB leaves: raise the memory limit of the driver's container"
        ),
        "{log}"
    );
    assert_eq!(node.mark(), None, "the driver lived");
}

/// A cgroup of this test.
struct Cgroup {
    dir: PathBuf,
    version: &'static str,
}

impl Cgroup {
    /// A cgroup with this much memory that is killed as a whole, or why there is none.
    fn with(limit: u64) -> Result<Self, String> {
        let own = fs::read_to_string("/proc/self/cgroup").map_err(|error| error.to_string())?;
        let below = |line: &str, controller: &str| {
            let (_, rest) = line.split_once(':')?;
            let path = rest.strip_prefix(controller)?.strip_prefix(":/")?;
            Some(path.to_owned())
        };
        let v1 = own.lines().find_map(|line| below(line, "memory"));
        let v2 = own.lines().find_map(|line| below(line, ""));
        let limit = limit.to_string();
        let rows = [
            ("cgroup v2", "/sys/fs/cgroup", v2.clone(), "memory.max"),
            // This process would block a group below its own.
            (
                "cgroup v2",
                "/sys/fs/cgroup",
                v2.map(|_| String::new()),
                "memory.max",
            ),
            ("cgroup v1", "/sys/fs/cgroup/memory", v1, "memory.limit_in_bytes"),
        ];
        let mut why = String::from("no hierarchy with a memory controller");
        for (version, mount, path, file) in rows {
            let Some(path) = path else { continue };
            let dir = Path::new(mount)
                .join(path)
                .join(format!("scupper-test-{}", std::process::id()));
            let limited = fs::create_dir(&dir).and_then(|()| {
                // Only the kernel creates it: elsewhere this is an ordinary directory.
                File::options()
                    .write(true)
                    .open(dir.join(file))?
                    .write_all(limit.as_bytes())
            });
            match limited {
                Ok(()) => {
                    // All of it is killed, as kubelets configure it; v1 has no such setting.
                    for (file, value) in [("memory.oom.group", "1"), ("memory.swap.max", "0")] {
                        if version == "cgroup v2" && dir.join(file).exists() {
                            fs::write(dir.join(file), value).unwrap();
                        }
                    }
                    return Ok(Self { dir, version });
                }
                Err(error) => {
                    why = format!("{}: {error}", dir.display());
                    fs::remove_dir(&dir).ok();
                }
            }
        }
        Err(why)
    }

    /// The number of its processes that the kernel has killed for lack of memory.
    fn killed(&self) -> u64 {
        let events =
            ["memory.events", "memory.oom_control"].map(|file| fs::read_to_string(self.dir.join(file)));
        let events = events.into_iter().flatten().collect::<String>();
        let count = events.lines().find_map(|line| line.strip_prefix("oom_kill "));
        count.unwrap().parse().unwrap()
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // Its processes have ended, but the kernel may need a moment to notice.
        for _ in 0..1000 {
            if fs::remove_dir(&self.dir).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(std::thread::panicking(), "{} is left behind", self.dir.display());
    }
}
