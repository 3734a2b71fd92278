//! The walkthrough in `sdk/README.md`: runs each of its commands, and compares the output with the text.

use crate::programs::programs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use scupper_simulator::api::{ApiServer, Options, objects};

use crate::limit::LIMIT;
use crate::program::{repository, run, scratch};

/// Characters of a line of the page: what is wider is folded there.
const WIDTH: usize = 118;

/// A block of the readme with an effect.
#[derive(Debug)]
enum Block {
    /// A file to write.
    File { name: String, text: String },
    /// A file of the repository to copy.
    Copy { from: String, to: String },
    /// Commands and their output.
    Console(Vec<(String, String)>),
}

fn blocks(readme: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut named: Option<String> = None;
    let mut lines = readme.lines();
    while let Some(line) = lines.next() {
        let comment = |what: &str| {
            let rest = line.strip_prefix("<!-- ")?.strip_suffix(" -->")?;
            Some(rest.strip_prefix(what)?.trim().to_owned())
        };
        if let Some(name) = comment("file:") {
            named = Some(name);
        } else if let Some((from, to)) = comment("copy:").as_deref().and_then(|both| both.split_once(' ')) {
            let (from, to) = (from.to_owned(), to.to_owned());
            blocks.push(Block::Copy { from, to });
        } else if let Some(language) = line.strip_prefix("```") {
            let text: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            match named.take() {
                Some(name) => blocks.push(Block::File {
                    name,
                    text: text.join("\n") + "\n",
                }),
                None if language == "console" => blocks.push(Block::Console(commands(&text))),
                None => {}
            }
        }
    }
    blocks
}

fn commands(lines: &[&str]) -> Vec<(String, String)> {
    let mut commands: Vec<(String, String)> = Vec::new();
    for line in lines {
        match line.strip_prefix("$ ") {
            Some(command) => commands.push((command.to_owned(), String::new())),
            None => {
                let (_, output) = commands.last_mut().unwrap();
                output.push_str(line);
                output.push('\n');
            }
        }
    }
    commands
}

/// Whether a line matches the readme's, where `…` stands for anything.
fn is_as_written(written: &str, line: &str) -> bool {
    let mut rest = line;
    let parts: Vec<&str> = written.split('…').collect();
    let last = parts.len() - 1;
    parts.iter().enumerate().all(|(at, part)| {
        let found = if at == last && at > 0 {
            rest.ends_with(part).then_some(rest.len())
        } else if at == 0 {
            rest.starts_with(part).then_some(part.len())
        } else {
            rest.find(part).map(|found| found + part.len())
        };
        rest = found.and_then(|found| rest.get(found..)).unwrap_or_default();
        found.is_some() && (last > 0 || rest.is_empty())
    })
}

/// The current folder, and the processes in the background.
struct Walk {
    here: PathBuf,
    cluster: Cluster,
    running: Vec<Child>,
}

/// A cluster for the driver: a simulated one.
struct Cluster {
    dir: tempfile::TempDir,
    _api: ApiServer,
    _runtime: tokio::runtime::Runtime,
}

impl Cluster {
    fn new() -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let api = runtime.block_on(ApiServer::start(Options::default())).unwrap();
        api.store().apply(objects::node("worker-1").into()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("kubeconfig"), api.kubeconfig()).unwrap();
        for folder in ["plugins", "plugins_registry"] {
            std::fs::create_dir(dir.path().join(folder)).unwrap();
        }
        Self {
            dir,
            _api: api,
            _runtime: runtime,
        }
    }
}

impl Drop for Walk {
    fn drop(&mut self) {
        for child in &mut self.running {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

impl Walk {
    fn command(&mut self, line: &str, written: &str) {
        if let Some(folder) = line.strip_prefix("cd ") {
            self.here = self.here.join(folder);
            // Its dependencies are compiled once, and not for each run of this test.
            let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("walk-target");
            std::os::unix::fs::symlink(target, self.here.join("target")).unwrap();
            return;
        }
        if let Some(line) = line.strip_suffix(" &") {
            // On a node the kubelet's folder has a fixed path.
            let root = self.cluster.dir.path().display();
            let mut command = self.shell(&format!("exec {line} --kubelet-root {root}"));
            let log = std::fs::File::create(self.cluster.dir.path().join("log")).unwrap();
            let child = command.stdout(Stdio::null()).stderr(log).spawn().unwrap();
            self.running.push(child);
            return;
        }
        let begin = Instant::now();
        let ran = loop {
            let ran = run(&self.here, self.shell(line));
            if are_as_written(written, &ran.stdout) {
                return;
            }
            // The driver needs a moment to start, and to see a change.
            if !line.starts_with("scupper policy list") || begin.elapsed() > LIMIT {
                break ran;
            }
            std::thread::sleep(Duration::from_millis(100));
        };
        let log = std::fs::read_to_string(self.cluster.dir.path().join("log")).unwrap_or_default();
        panic!(
            "`{line}` printed:\n{}\nand the readme has:\n{written}\n{ran:#?}\n{log}",
            ran.stdout
        );
    }

    fn shell(&self, line: &str) -> Command {
        let scupper = programs();
        let path = std::env::var("PATH").unwrap();
        let mut command = Command::new("sh");
        command
            .args(["-c", line])
            .current_dir(&self.here)
            .env("PATH", format!("{}:{path}", scupper.display()))
            .env("CARGO_NET_OFFLINE", "true")
            .env("CARGO_TARGET_DIR", self.here.join("target"))
            .env_remove("CARGO_BUILD_BUILD_DIR")
            .env("KUBECONFIG", self.cluster.dir.path().join("kubeconfig"))
            .env("SCUPPER_STATE_DIR", self.cluster.dir.path().join("state"));
        command
    }
}

#[test]
fn the_walkthrough_in_the_sdks_readme_works_as_written() {
    let root = repository();
    let readme = std::fs::read_to_string(root.join("sdk/README.md")).unwrap();
    let mut walk = Walk {
        here: scratch("walk"),
        cluster: Cluster::new(),
        running: Vec::new(),
    };
    scratch("walk-target/policies");
    let mut ran = 0;
    for block in blocks(&readme) {
        match block {
            Block::File { name, text } => write(&walk.here.join(name), &text),
            Block::Copy { from, to } => {
                std::fs::copy(root.join(from), walk.here.join(to)).unwrap();
            }
            Block::Console(commands) => {
                for (line, written) in commands {
                    walk.command(&line, &written);
                    ran += 1;
                }
            }
        }
    }
    assert!(ran >= 15, "only {ran} commands were found in the readme");
}

/// The tutorial writes it into a new crate, so its text is there a second time.
#[test]
fn the_policy_that_asks_a_server_is_the_same_in_the_readme_and_in_the_examples() {
    let readme = std::fs::read_to_string(repository().join("sdk/README.md")).unwrap();
    let example = repository().join("examples/policies/ask-before-drain");
    let read = |name: &str| std::fs::read_to_string(example.join(name)).unwrap();
    let code = read("src/lib.rs");
    let (policy, _its_tests) = code.split_once("\n#[cfg(test)]").unwrap();
    for (name, text) in [
        ("src/lib.rs", policy),
        ("scenarios/waits.yaml", &read("scenarios/waits.yaml")),
        ("scenarios/token", &read("scenarios/token")),
    ] {
        let mut same = blocks(&readme).into_iter().filter(|block| match block {
            Block::File {
                name: its_name,
                text: its_text,
            } => its_name == name && its_text == text,
            _ => false,
        });
        assert!(same.next().is_some(), "sdk/README.md has another {name}");
    }
}

/// Each line, or if it is wider than the page, its words in several lines.
fn are_as_written(written: &str, printed: &str) -> bool {
    let mut written = written.lines();
    let mut is_written = |line: &str| {
        let mut text = written.next()?.to_owned();
        while line.len() > WIDTH && !is_as_written(&text, line) {
            text = format!("{text} {}", written.next()?.trim_start());
        }
        is_as_written(&text, line).then_some(())
    };
    printed.lines().all(|line| is_written(line).is_some()) && written.next().is_none()
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[test]
fn an_ellipsis_stands_for_anything_and_nothing_else_does() {
    assert!(is_as_written("a", "a") && !is_as_written("a", "ab") && !is_as_written("ab", "a"));
    assert!(is_as_written("…/x.wasm", "/srv/y/x.wasm") && !is_as_written("…/x.wasm", "/srv/x.wasm.new"));
    assert!(is_as_written("  … bytes, sha256:…", "  123 bytes, sha256:abc"));
    assert!(!is_as_written("  … bytes, sha256:…", "  123 sha256:abc"));
}
