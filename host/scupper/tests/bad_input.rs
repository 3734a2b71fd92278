//! Each problem before a drain begins gives one clear error and its exit code.
#![expect(
    clippy::unwrap_used,
    dead_code,
    reason = "helpers of tests, of which each file uses its part"
)]

#[path = "support/guests.rs"]
mod guests;
#[path = "support/limit.rs"]
mod limit;
mod support;

use std::path::Path;

use crate::limit::LIMIT;
use scupper_simulator::api::{ApiServer, Forbidden, Options, objects};
use support::{Run, policies, scupper};

const CONFIG: i32 = 3;
const CLUSTER: i32 = 4;
const POLICY: i32 = 7;

struct Fixture {
    api: ApiServer,
    dir: tempfile::TempDir,
    _runtime: tokio::runtime::Runtime,
}

impl Fixture {
    fn new() -> Self {
        Self::with(Options::default())
    }

    fn with(options: Options) -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let api = runtime.block_on(async { ApiServer::start(options).await.unwrap() });
        api.store().apply(objects::node("worker-1").into()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("kubeconfig"), api.kubeconfig()).unwrap();
        for folder in ["plugins", "plugins_registry"] {
            std::fs::create_dir(dir.path().join(folder)).unwrap();
        }
        Self {
            api,
            dir,
            _runtime: runtime,
        }
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    fn file(&self, name: &str, bytes: &[u8]) -> String {
        std::fs::write(self.dir.path().join(name), bytes).unwrap();
        self.path(name)
    }

    /// `scupper plan worker-1` with these flags.
    fn plan(&self, flags: &[&str]) -> Run {
        let kubeconfig = self.path("kubeconfig");
        let mut args = vec!["plan", "worker-1", "--kubeconfig", &kubeconfig];
        args.extend(flags);
        scupper(&args, LIMIT)
    }

    /// `scupper kubelet-plugin` with these flags, which may override valid ones.
    fn plugin(&self, flags: &[&str]) -> Run {
        let (kubeconfig, root) = (self.path("kubeconfig"), self.path(""));
        let mut args = vec!["kubelet-plugin"];
        for (flag, value) in [
            ("--kubeconfig", &*kubeconfig),
            ("--kubelet-root", &*root),
            ("--node-name", "worker-1"),
        ] {
            if !flags.contains(&flag) {
                args.extend([flag, value]);
            }
        }
        args.extend(flags);
        scupper(&args, LIMIT)
    }
}

#[test]
fn a_file_that_is_not_wasm() {
    let fixture = Fixture::new();
    let file = fixture.file("notes.wasm", b"these are my notes");
    fixture
        .plan(&["--policy", &format!("notes={file}")])
        .fails(CONFIG, &["notes", &file]);
}

#[test]
fn a_missing_policy() {
    let fixture = Fixture::new();
    fixture
        .plan(&["--policy", "slurm=/nowhere/slurm.wasm"])
        .fails(CONFIG, &["slurm", "/nowhere/slurm.wasm"]);
}

#[test]
fn a_core_module() {
    let fixture = Fixture::new();
    let file = fixture.file("core.wasm", b"\0asm\x01\0\0\0");
    fixture
        .plan(&["--policy", &format!("core={file}")])
        .fails(CONFIG, &["core", &file, "component"]);
}

#[test]
fn a_component_of_another_world() {
    let fixture = Fixture::new();
    let file = fixture.file("other.wasm", b"\0asm\x0d\0\x01\0");
    fixture
        .plan(&["--policy", &format!("other={file}")])
        .fails(CONFIG, &["other", &file, "scupper:drain"]);
}

#[test]
fn a_policy_that_wants_more_than_it_is_granted_names_the_flag_to_add() {
    let fixture = Fixture::new();
    let slurm = format!("slurm={}", policies().join("slurm.wasm").display());
    let flag = "--grant slurm=node-annotations:nodeset.slinky.slurm.net/";
    fixture.plan(&["--policy", &slurm]).fails(CONFIG, &[flag]);
    let granted = fixture.plan(&[
        "--policy",
        &slurm,
        "--grant",
        "slurm=node-annotations:nodeset.slinky.slurm.net/",
    ]);
    assert_eq!(granted.code, Some(0), "{granted:#?}");
}

#[test]
fn a_wrong_configuration_of_a_policy_names_every_key() {
    let fixture = Fixture::new();
    let priority = format!("priority={}", policies().join("priority.wasm").display());
    let flags = [
        "--policy",
        &priority,
        "--policy-config",
        "priority.groups=low",
        "--policy-config",
        "priority.grups=0=5m",
    ];
    fixture
        .plan(&flags)
        .fails(CONFIG, &["priority", "groups", "grups"]);
}

#[test]
fn a_trap_in_a_policy_names_the_policys_own_function() {
    let fixture = Fixture::new();
    let flag = format!("broken={}", guests::guest("panics").display());
    let run = fixture.plan(&["--policy", &flag]);
    assert_eq!(run.code, Some(POLICY), "{run:#?}");
    assert!(
        run.stdout.contains("broken") && run.stdout.contains("look_up_the_impossible"),
        "{run:#?}"
    );
}

#[test]
fn a_policy_that_never_returns() {
    let fixture = Fixture::new();
    let flag = format!("endless={}", guests::guest("spins_in_describe").display());
    fixture
        .plan(&["--policy", &flag])
        .fails(CONFIG, &["endless", "ms"]);
    let flag = format!("endless={}", guests::guest("spins_in_plan").display());
    let run = fixture.plan(&["--policy", &flag]);
    assert_eq!(run.code, Some(POLICY), "{run:#?}");
    assert!(run.stdout.contains("endless"), "{run:#?}");
}

#[test]
fn all_wrong_flags_are_reported_at_once() {
    let fixture = Fixture::new();
    let run = fixture.plugin(&[
        "--sla",
        "soon",
        "--eviction-timeout",
        "later",
        "--grant",
        "nobody=a:b",
    ]);
    run.fails(
        CONFIG,
        &["--sla soon", "--eviction-timeout later", "--grant nobody"],
    );
}

#[test]
fn a_driver_name_that_cannot_be_part_of_a_path() {
    Fixture::new()
        .plugin(&["--driver-name", "Drain/Me"])
        .fails(CONFIG, &["Drain/Me", "DNS subdomain"]);
}

#[test]
fn an_unknown_node() {
    let fixture = Fixture::new();
    fixture
        .plugin(&["--node-name", "worker-9"])
        .fails(CLUSTER, &["worker-9"]);
    let kubeconfig = fixture.path("kubeconfig");
    scupper(
        &["plan", "--force", "worker-9", "--kubeconfig", &kubeconfig],
        LIMIT,
    )
    .fails(CLUSTER, &["worker-9"]);
}

#[test]
fn no_permission() {
    let fixture = Fixture::new();
    for (verb, resource) in [("list", "pods"), ("watch", "pods")] {
        let rule = Forbidden {
            verb: verb.into(),
            resource: resource.into(),
            ..Forbidden::default()
        };
        fixture.api.set_forbidden(rule);
    }
    fixture.plan(&[]).fails(CLUSTER, &["pods", "ClusterRole"]);
    let patience = ["--forbidden-timeout", "1s"];
    fixture.plugin(&patience).fails(CLUSTER, &["pods", "ClusterRole"]);
}

#[test]
fn a_dead_api_server() {
    let fixture = Fixture::new();
    let url = fixture.api.url();
    fixture.api.shutdown();
    fixture.plan(&[]).fails(CLUSTER, &[&url]);
}

#[test]
fn a_missing_or_invalid_kubeconfig() {
    let fixture = Fixture::new();
    let broken = fixture.file("broken", b"clusters: [");
    for file in ["/nowhere/kubeconfig", &broken] {
        scupper(&["plan", "worker-1", "--kubeconfig", file], LIMIT).fails(CLUSTER, &[file]);
    }
    scupper(&["plan", "worker-1"], LIMIT).fails(CLUSTER, &["--kubeconfig"]);
}

#[test]
fn a_kubelet_root_without_plugin_folders() {
    let fixture = Fixture::new();
    let root = fixture.path("elsewhere");
    std::fs::create_dir(&root).unwrap();
    fixture
        .plugin(&["--kubelet-root", &root])
        .fails(CONFIG, &["plugins_registry", "--kubelet-root"]);
    assert!(
        Path::new(&root).read_dir().unwrap().next().is_none(),
        "nothing half-done stays behind"
    );
}

#[test]
fn a_plugin_folder_that_cannot_be_written() {
    let fixture = Fixture::new();
    let (kubeconfig, root) = (fixture.path("kubeconfig"), fixture.path(""));
    // Root may write everywhere except on a file system that is mounted read-only, in a namespace of our own.
    let mut command = std::process::Command::new("unshare");
    let script =
        "mount -t tmpfs tmpfs \"$1/plugins\" && mount -o remount,ro \"$1/plugins\" && shift && exec \"$@\"";
    command.args([
        "--mount",
        "--map-root-user",
        "sh",
        "-c",
        script,
        "sh",
        &root,
        env!("CARGO_BIN_EXE_scupper"),
    ]);
    command.args([
        "kubelet-plugin",
        "--node-name",
        "worker-1",
        "--kubeconfig",
        &kubeconfig,
        "--kubelet-root",
        &root,
    ]);
    support::run(command, LIMIT).fails(CONFIG, &["plugins", "writable"]);
}

#[test]
fn half_an_own_pod() {
    let fixture = Fixture::new();
    let kubeconfig = fixture.path("kubeconfig");
    let mut command = std::process::Command::new("env");
    command.args([
        "POD_NAME=scupper-x",
        env!("CARGO_BIN_EXE_scupper"),
        "plan",
        "worker-1",
        "--kubeconfig",
        &kubeconfig,
    ]);
    support::run(command, LIMIT).fails(CONFIG, &["POD_UID", "downward API"]);
}
