//! The example policies in Python and JavaScript: built as their readmes say, then tested with the program.

use crate::programs::programs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

use crate::program::{policy, repository, run, scratch};
use crate::scenarios::component;
use crate::skip;

#[test]
fn a_policy_in_python_plans_a_drain() {
    plans_a_drain(&Example {
        name: "keep-labelled-python",
        tools: "python/bin",
        component: "keep-labelled.wasm",
        sources: &["policy.py", "requirements.txt"],
    });
}

/// Behind a policy that holds pods.
const CHAIN: &str = r#"
about: A pod that an earlier policy holds stays in its wave
policies:
  - {name: namespace-modes, module: "MODES", config: {rules: batch AllowCompletion 1h}}
  - {name: by-priority}
pods:
  - {name: batch/train, priority: -10}
  - {name: shop/db, priority: 1000}
  - shop/cart
plan:
  waves:
    - {name: all priority 0, pods: [shop/cart], timeout: 30m}
    - {name: all priority 1000, pods: [shop/db], timeout: 30m}
    - {name: namespaces-after-1h, pods: [batch/train]}
steps:
  - pass: 10m
  - expect: {gone: [shop/cart, shop/db], here: [batch/train]}
ends: {outcome: Drained, within: 61m}
"#;

#[test]
fn a_policy_in_javascript_plans_a_drain_and_frees_no_pod_that_an_earlier_one_holds() {
    let example = Example {
        name: "by-priority-javascript",
        tools: "javascript/node_modules",
        component: "by-priority.wasm",
        sources: &["policy.js", "package-lock.json"],
    };
    let Some(folder) = plans_a_drain(&example) else {
        return;
    };
    let chain = CHAIN.replace("MODES", &component("plugins/namespace-modes"));
    std::fs::write(folder.join("chain.yaml"), chain).unwrap();
    let reported = policy(&folder, &["test", "chain.yaml", "--policy", example.component]);
    assert!(
        reported.stdout.ends_with("1 scenario: 1 ok, 0 failed\n"),
        "{reported:#?}"
    );
}

/// `deploy/FIRST-HOUR.md` writes a policy into a copy of the example in Python, and a scenario for it.
#[test]
fn the_policy_of_the_first_hour_passes_its_scenario() {
    if is_left_out() {
        return;
    }
    let example = Example {
        name: "databases-last",
        tools: "python/bin",
        component: "databases-last.wasm",
        sources: &["policy.py", "requirements.txt"],
    };
    let page = std::fs::read_to_string(repository().join("deploy/FIRST-HOUR.md")).unwrap();
    let block = |begin: &str| {
        let (_, rest) = page.split_once(begin).unwrap();
        rest.split("```").next().unwrap()
    };
    let root = scratch(example.name);
    copy(&repository().join("wit"), &root.join("wit"));
    let folder = root.join("examples/policies").join(example.name);
    copy(
        &repository().join("examples/policies/keep-labelled-python"),
        &folder,
    );
    std::fs::remove_file(folder.join("scenarios/marked.yaml")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    write(
        "scenarios/last.yaml",
        &format!("about: {}", block("```yaml\nabout: ")),
    );
    let copied = std::fs::read_to_string(folder.join("policy.py")).unwrap();
    let (head, _) = copied.split_once("class Planner(").unwrap();
    let head = head.replace("keep-labelled-python", example.name);
    write("policy.py", &(head + block("```python\n")));

    let commands = block("$ ../venv/bin/componentize-py ");
    let (compile, rest) = commands.split_once("\nComponent built successfully").unwrap();
    let compile = compile.replace("\\\n    ", "").replace(
        concat!("../scupper-", env!("CARGO_PKG_VERSION"), "-docs/wit"),
        "../../../wit",
    );
    let component = build(&example, &root, &folder, &format!("componentize-py {compile}"));
    std::fs::copy(component, folder.join(example.component)).unwrap();
    let (_, rest) = rest.rsplit_once("\n$ scupper ").unwrap();
    let (test, printed) = rest.split_once('\n').unwrap();
    assert_eq!(
        run(&folder, shell(&example, &format!("scupper {test}"))).good(),
        printed
    );
}

struct Example {
    name: &'static str,
    /// The place of its compiler, under `$SCUPPER_CACHE/tools/languages`.
    tools: &'static str,
    component: &'static str,
    /// The component's sources, without the WIT.
    sources: &'static [&'static str],
}

#[expect(clippy::print_stderr, reason = "says what is left out")]
fn is_left_out() -> bool {
    let is_left_out = skip::left_out("languages");
    if is_left_out {
        eprintln!("left out, as SCUPPER_SKIP says: languages");
    }
    is_left_out
}

/// Runs the readme's commands in a copy of the example: the compiler's (or takes its earlier component of the same
/// sources), and the scenarios, which state the whole plan. Loads it only once: a load takes a dozen seconds of CPU
/// time. Returns the folder with the component; `None`: it is left out.
fn plans_a_drain(example: &Example) -> Option<PathBuf> {
    if is_left_out() {
        return None;
    }
    let root = scratch(example.name);
    copy(&repository().join("wit"), &root.join("wit"));
    let folder = Path::new("examples/policies").join(example.name);
    copy(&repository().join(&folder), &root.join(&folder));
    let folder = root.join(folder);
    let readme = std::fs::read_to_string(folder.join("README.md")).unwrap();
    let commands = readme.lines().filter_map(|line| line.strip_prefix("$ "));
    // The first one installs the compiler, as `host/testbeds/tools languages` does.
    let [_, compile, test]: [&str; 3] = commands.collect::<Vec<_>>().try_into().unwrap();
    let sdk = std::fs::read_to_string(repository().join("sdk/README.md")).unwrap();
    assert!(sdk.contains(compile), "sdk/README.md does not have `{compile}`");
    let component = build(example, &root, &folder, compile);
    std::fs::copy(component, folder.join(example.component)).unwrap();

    let (_, tested) = readme.split_once(&format!("$ {test}\n")).unwrap();
    let (tested, _) = tested.split_once("```").unwrap();
    assert_eq!(run(&folder, shell(example, test)).good(), tested);
    Some(folder)
}

/// The component, from `$SCUPPER_CACHE` if it holds one of the same command, sources, WIT and compiler.
fn build(example: &Example, root: &Path, folder: &Path, compile: &str) -> PathBuf {
    let mut digest = Sha256::new();
    let mut sources: Vec<PathBuf> = example.sources.iter().map(|name| folder.join(name)).collect();
    sources.extend(files(&root.join("wit")));
    for text in [compile.as_bytes().to_vec()]
        .into_iter()
        .chain(sources.iter().map(|file| std::fs::read(file).unwrap()))
    {
        digest.update(text.len().to_le_bytes());
        digest.update(&text);
    }
    let digest: String = digest
        .finalize()
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let built = cache().join("languages");
    let kept = built.join(format!("{}-{digest}.wasm", example.name));
    if !kept.exists() {
        let tools = tools(example);
        assert!(
            tools.exists(),
            "{} is missing: host/testbeds/tools languages (SCUPPER_SKIP=languages leaves this test out)",
            tools.display()
        );
        if tools.ends_with("node_modules") {
            std::os::unix::fs::symlink(tools, folder.join("node_modules")).unwrap();
        }
        run(folder, shell(example, compile)).good();
        std::fs::create_dir_all(&built).unwrap();
        // Another run may build the same at the same time: each moves a complete file into place.
        let whole = tempfile::NamedTempFile::new_in(&built).unwrap();
        std::fs::copy(folder.join(example.component), &whole).unwrap();
        whole.persist(&kept).unwrap();
    }
    kept
}

/// A command of the readme, with the program and the compiler in the path.
fn shell(example: &Example, command: &str) -> Command {
    let program = programs();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = [program.to_owned(), tools(example)]
        .into_iter()
        .chain(std::env::split_paths(&path));
    let mut shell = Command::new("sh");
    shell
        .args(["-c", command])
        .env("PATH", std::env::join_paths(path).unwrap());
    shell
}

fn tools(example: &Example) -> PathBuf {
    cache().join("tools/languages").join(example.tools)
}

fn cache() -> PathBuf {
    std::env::var_os("SCUPPER_CACHE")
        .unwrap_or_else(|| "/var/cache/scupper".into())
        .into()
}

/// All files in a folder and those below it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// A folder without a user's installations and build results.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap();
        if path.is_file() {
            std::fs::copy(&path, to.join(name)).unwrap();
        } else if name != "node_modules" {
            copy(&path, &to.join(name));
        }
    }
}
