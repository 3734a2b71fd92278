//! `scupper config`, and `--config`, as a user types them.

use crate::programs::programs;
use std::path::{Path, PathBuf};

use scupper_simulator::api::{ApiServer, Options, objects};

use crate::HEAD;
use crate::guests::guest;
use crate::limit::LIMIT;
use crate::support::{Run, policies, scupper};

const USAGE: i32 = 2;
const CONFIG: i32 = 3;
const DRAIN_FAILED: i32 = 5;
const POLICY: i32 = 7;

/// A folder with a configuration file.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new(rest: &str) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        std::fs::write(folder.file(), format!("{HEAD}{rest}")).unwrap();
        folder
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("scupper.yaml")
    }

    /// `scupper config check` of the file, with these flags.
    fn check(&self, flags: &[&str]) -> Run {
        let file = self.file();
        let mut args = vec!["config", "check", file.to_str().unwrap()];
        args.extend(flags);
        scupper(&args, LIMIT)
    }
}

fn path(file: &Path) -> &str {
    file.to_str().unwrap()
}

#[test]
fn the_published_schema_is_the_one_that_is_printed() {
    let published = include_str!("../../../../deploy/scupper.schema.json");
    let printed = scupper(&["config", "schema"], LIMIT);
    assert_eq!(printed.code, Some(0), "{printed:#?}");
    assert!(
        printed.stdout == published,
        "deploy/scupper.schema.json is old: `scupper config schema` prints the one that is right"
    );
}

/// All problems are reported in one run.
#[test]
fn a_wrong_field_does_not_hide_what_is_wrong_with_the_policies() {
    let folder = Folder::new(
        "drain:\n  slow: true\npolicies:\n  - {name: absent, module: absent.wasm, limit: 1}\n  - {name: unread, module: 7}\n",
    );
    let people = folder.check(&["--policies"]);
    assert_eq!(people.code, Some(3), "{people:#?}");
    for words in [
        "drain.slow",
        "policies[0].limit",
        "policies[1].module",
        "policy `absent`",
    ] {
        assert!(people.stderr.contains(words), "{words}: {people:#?}");
    }
    // Of what cannot be read nothing is said twice.
    assert!(!people.stderr.contains("`unread`"), "{people:#?}");
    let programs = folder.check(&["--policies", "-o", "json"]);
    let json: serde_json::Value = serde_json::from_str(&programs.stdout).unwrap();
    assert_eq!(json["problems"].as_array().map(Vec::len), Some(3), "{json:#}");
    assert_eq!(json["loaded"][0]["name"], "absent", "{json:#}");
}

#[test]
fn an_invalid_policy_name_gets_the_same_message_everywhere() {
    let (long, fits) = ("a".repeat(41), "a".repeat(40));
    let rule = "must be 1 to 40 lower-case letters, digits and '-'";
    let reserved =
        "the name `kubectl` is reserved for the driver's own first draft of a plan; choose another";
    for (name, words) in [(long.as_str(), rule), ("Slurm", rule), ("kubectl", reserved)] {
        let folder = Folder::new(&format!("policies:\n- {{name: {name}, module: a.wasm}}\n"));
        folder.check(&[]).fails(CONFIG, &[words]);
        let flag = format!("{name}=a.wasm");
        scupper(&["plan", "node-1", "--policy", &flag], LIMIT).fails(CONFIG, &[&flag, words]);
    }
    for name in [long.as_str(), "Slurm"] {
        programs();
        scupper(&["policy", "new", name], LIMIT).fails(CONFIG, &[name, rule]);
    }
    let folder = Folder::new(&format!("policies:\n- {{name: {fits}, module: a.wasm}}\n"));
    assert_eq!(folder.check(&[]).code, Some(0));
}

/// A driver would not load it.
#[test]
fn a_planner_that_cannot_plan_for_a_node_without_pods_is_reported() {
    let module = guest("revision_4");
    let folder = Folder::new(&format!(
        "policies:\n- {{name: a, module: \"{}\"}}\n",
        path(&module)
    ));
    folder
        .check(&["--policies"])
        .fails(CONFIG, &["policy `a`", "failed in make-plan"]);
}

#[test]
fn a_right_file_is_called_right() {
    let folder = Folder::new("policies:\n- {name: a, module: a.wasm}\n- {name: b, module: b.wasm}\n");
    let run = folder.check(&[]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert!(
        run.stdout.ends_with(
            "scupper.yaml is right: 2 policies, a, b (to load them and check their settings: --policies)\n"
        ),
        "{run:#?}"
    );
    let run = folder.check(&["--output", "json"]);
    let reported: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(reported["policies"], serde_json::json!(["a", "b"]));
    assert_eq!(reported["problems"], serde_json::json!([]));
}

#[test]
fn every_problem_is_reported_with_its_place() {
    let folder =
        Folder::new("policies:\n- name: a\n  modul: a.wasm\n  grants: {htp: []}\ndrain: {sla: soon}\n");
    let run = folder.check(&[]);
    let file = folder.file();
    let reported = |rest: &str| format!("error: {}:{rest}", file.display());
    let expected = [
        reported("4:3: policies[0]: `module` is missing"),
        reported("5:3: policies[0].modul: no such key; did you mean module?"),
        reported("6:12: policies[0].grants.htp: no such key; did you mean http?"),
        reported("7:14: drain.sla: must be a duration"),
    ];
    assert_eq!(run.code, Some(CONFIG), "{run:#?}");
    let lines: Vec<_> = run.stderr.lines().collect();
    assert_eq!(lines.len(), expected.len(), "{run:#?}");
    for (line, begins) in lines.iter().zip(&expected) {
        assert!(line.starts_with(begins), "{line} does not begin with {begins}");
    }
    let run = folder.check(&["--output", "json"]);
    assert_eq!(run.code, Some(CONFIG), "{run:#?}");
    let reported: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(reported["problems"][1]["line"], 5);
    assert_eq!(reported["problems"][1]["field"], "policies[0].modul");
    // A driver with such a file reports the same.
    let run = scupper(&["plan", "worker-1", "--config", path(&file)], LIMIT);
    run.fails(
        CONFIG,
        &expected
            .each_ref()
            .map(|line| line.strip_prefix("error: ").unwrap()),
    );
}

#[test]
fn a_missing_file() {
    for args in [
        &["config", "check", "/nowhere/scupper.yaml"][..],
        &["plan", "n", "--config", "/nowhere/scupper.yaml"],
    ] {
        scupper(args, LIMIT).fails(CONFIG, &["/nowhere/scupper.yaml", "No such file"]);
    }
}

#[test]
fn the_file_and_the_flags_of_policies_exclude_each_other() {
    let folder = Folder::new("policies: []\n");
    let file = folder.file();
    for flags in [
        ["--policy", "a=a.wasm"],
        ["--grant", "a=events:node"],
        ["--policy-config", "a.b=c"],
    ] {
        let mut args = vec!["plan", "worker-1", "--config", path(&file)];
        args.extend(flags);
        let run = scupper(&args, LIMIT);
        assert_eq!(run.code, Some(USAGE), "{run:#?}");
        assert!(
            run.stderr.contains("--config <FILE>") && run.stderr.contains(flags[0]),
            "{run:#?}"
        );
    }
}

#[test]
fn every_policy_that_fails_to_load_is_reported_with_what_to_add() {
    let folder = Folder::new(&format!(
        "policies:
- {{name: good, module: {good}, config: {{mode: fast}}}}
- {{name: silent, module: {good}, config: {{mod: fast}}}}
- {{name: greedy, module: {greedy}, grants: {{node-annotations: [other.example.com/]}}}}
- {{name: pinned, module: {good}, sha256: {zeros:?}}}
- {{name: absent, module: absent.wasm}}
",
        good = guest("configured").display(),
        greedy = guest("annotates").display(),
        zeros = "0".repeat(64),
    ));
    assert_eq!(folder.check(&[]).code, Some(0));
    let run = folder.check(&["--policies"]);
    run.fails(
        CONFIG,
        &[
            "policy `silent` from",
            "mode is missing",
            "policy `greedy` from",
            "add under its `grants`: node-annotations: [drain.example.com/]; pod-annotations: [drain.example.com/pod-]",
            "policy `pinned` from",
            "`sha256` allows only 0000000000000000000000000000000000000000000000000000000000000000",
            "policy `absent` from",
            path(&folder.0.path().join("absent.wasm")),
        ],
    );
    assert_eq!(
        run.stderr
            .lines()
            .filter(|line| line.starts_with("error: "))
            .count(),
        4
    );
    let lines = "  - name: greedy   # add to what is there
    grants:
      node-annotations: [drain.example.com/]
      pod-annotations: [drain.example.com/pod-]
";
    assert!(run.stdout.contains(lines), "{run:#?}");
    assert!(
        run.stdout.contains("  good loads: configured 1.2.3, sha256 "),
        "{run:#?}"
    );
}

#[test]
fn adding_the_suggested_grants_makes_it_load_and_a_correct_digest_is_accepted() {
    let greedy = guest("annotates");
    let digest = scupper_digest(&greedy);
    let folder = Folder::new(&format!(
        "policies:
  - name: greedy
    module: {}
    sha256: {digest:?}
    grants:
      node-annotations: [drain.example.com/]
      pod-annotations: [drain.example.com/pod-]
",
        greedy.display()
    ));
    let run = folder.check(&["--policies"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert!(run.stdout.contains(&digest), "{run:#?}");
}

/// The digest that `sha256sum` prints.
fn scupper_digest(file: &Path) -> String {
    let output = std::process::Command::new("sha256sum")
        .arg(file)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_whitespace().next().unwrap().to_owned()
}

/// A cluster of one node with an unmanaged pod and one that asks to be kept.
struct Cluster {
    api: ApiServer,
    dir: tempfile::TempDir,
    _runtime: tokio::runtime::Runtime,
}

impl Cluster {
    fn new() -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let api = runtime.block_on(async { ApiServer::start(Options::default()).await.unwrap() });
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("kubeconfig"), api.kubeconfig()).unwrap();
        for pod in [
            objects::pod("shop", "aaa-first", "worker-1"),
            objects::pod("shop", "bare", "worker-1"),
            objects::pod("shop", "kept", "worker-1").label("example.com/keep", ""),
        ] {
            api.store().apply(pod.into()).unwrap();
        }
        let cluster = Self {
            api,
            dir,
            _runtime: runtime,
        };
        cluster.label("other");
        cluster
    }

    fn label(&self, value: &str) {
        let node = objects::node("worker-1").label("scupper.dev/pool", value);
        self.api.store().apply(node.into()).unwrap();
    }

    fn plan(&self, folder: &Folder, flags: &[&str]) -> Run {
        let (kubeconfig, file) = (self.dir.path().join("kubeconfig"), folder.file());
        let mut args = vec![
            "plan",
            "worker-1",
            "--kubeconfig",
            path(&kubeconfig),
            "--config",
            path(&file),
        ];
        args.extend(flags);
        scupper(&args, LIMIT)
    }
}

#[test]
fn a_chain_of_planners_names_the_planner_of_each_decision() {
    let cluster = Cluster::new();
    let folder = Folder::new(&format!(
        "policies:
- {{name: first, module: {}}}
- {{name: second, module: {}}}
drain: {{force: true}}
",
        guest("waves").display(),
        policies().join("keep-labelled.wasm").display(),
    ));
    let run = cluster.plan(&folder, &[]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    let line = |pod: &str| {
        let found = run.stdout.lines().find(|line| line.contains(pod));
        found.unwrap_or_else(|| panic!("nothing of {pod}: {run:#?}"))
    };
    assert!(line("shop/aaa-first").ends_with("[first]"), "{run:#?}");
    assert!(line("shop/bare").ends_with("[kubectl]"), "{run:#?}");
    assert!(
        line("shop/kept").ends_with("it has the label example.com/keep [second]"),
        "{run:#?}"
    );
    // The second planner had the first's plan as its draft: the waves are the first's.
    let waves: Vec<_> = run
        .stdout
        .lines()
        .filter(|line| line.starts_with("wave "))
        .collect();
    let firsts = |line: &&str| line.contains("1 at a time") && line.ends_with(" [first]");
    assert!(!waves.is_empty() && waves.iter().all(firsts), "{run:#?}");
    let run = cluster.plan(&folder, &["--output", "json"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    let reported: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let signed = |what: &str| {
        let signed = reported["plan"][what].as_array().unwrap().iter();
        signed
            .map(|one| one["policy"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let mut deciders = signed("decisions");
    deciders.sort();
    assert_eq!(deciders, ["first", "kubectl", "second"]);
    assert_eq!(signed("waves"), vec!["first"; waves.len()]);
}

#[test]
fn a_blocked_drain_names_the_blocking_pods() {
    let cluster = Cluster::new();
    let folder = Folder::new("policies: []\n");
    let run = cluster.plan(&folder, &[]);
    assert_eq!(run.code, Some(DRAIN_FAILED), "{run:#?}");
    assert!(
        run.stdout.contains("(use --force to override) [kubectl]"),
        "{run:#?}"
    );
    let run = cluster.plan(&folder, &["--output", "json"]);
    let reported: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let blockers = reported["blockers"].as_array().unwrap();
    assert!(
        !blockers.is_empty() && blockers.iter().all(|one| one["policy"] == "kubectl"),
        "{reported:#}"
    );
}

#[test]
fn a_flag_overrides_the_files_drain_settings() {
    let cluster = Cluster::new();
    let folder = Folder::new("policies: []\ndrain: {force: true}\n");
    let run = cluster.plan(&folder, &[]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    let run = cluster.plan(&folder, &["--force=false"]);
    assert_eq!(run.code, Some(DRAIN_FAILED), "{run:#?}");
    let folder = Folder::new("policies: []\n");
    assert_eq!(cluster.plan(&folder, &[]).code, Some(DRAIN_FAILED));
    assert_eq!(cluster.plan(&folder, &["--force"]).code, Some(0));
}

#[test]
fn a_policy_for_other_nodes_is_not_called_until_the_node_has_the_label() {
    let cluster = Cluster::new();
    let folder = Folder::new(&format!(
        "policies:
- {{name: never, module: {}, node-selector: {{scupper.dev/pool: closed}}}}
drain: {{force: true}}
",
        guest("refuse").display(),
    ));
    let run = cluster.plan(&folder, &[]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    cluster.label("closed");
    let run = cluster.plan(&folder, &[]);
    assert_eq!(run.code, Some(POLICY), "{run:#?}");
    assert!(run.stdout.contains("never"), "{run:#?}");
}
