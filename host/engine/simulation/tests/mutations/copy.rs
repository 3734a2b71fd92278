//! A copy of the engine and its simulation outside the repository, in a workspace of its own.
//!
//! The copy is kept between runs: while neither the sources nor the table change, there is nothing to build.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::breaking::{self, SWITCHES, Sources};
use crate::table::Mutation;

/// The copy, with every row applied. No other process may change it meanwhile.
pub(crate) struct Copy {
    root: PathBuf,
    _locked: File,
}

impl Copy {
    /// Copies and builds, or names the row to fix.
    pub(crate) fn new(rows: &[Mutation]) -> Result<Self, String> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut engine = breaking::with_all(rows, read_sources(&here.join("../src")))?;
        engine.insert(String::from("mutation.rs"), String::from(SWITCHES));
        if let Some(lib) = engine.get_mut("lib.rs") {
            lib.push_str("\nmod mutation;\n");
        }
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mutations");
        fs::create_dir_all(&root).unwrap();
        let locked = File::create(root.join("lock")).unwrap();
        locked.lock().unwrap();
        for (path, text) in engine {
            write(&root.join("engine/src").join(path), &text);
        }
        for (path, text) in read_sources(&here.join("src")) {
            write(&root.join("simulation/src").join(path), &text);
        }
        write(&root.join("Cargo.toml"), WORKSPACE);
        write(&root.join("engine/Cargo.toml"), &manifest("scupper-engine", ""));
        let simulation = manifest("scupper-engine-simulation", DEPENDS);
        write(&root.join("simulation/Cargo.toml"), &simulation);
        let copy = Self {
            root,
            _locked: locked,
        };
        copy.build()?;
        Ok(copy)
    }

    fn build(&self) -> Result<(), String> {
        let output = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--offline", "--bin", "simulate"])
            .current_dir(&self.root)
            .env("CARGO_TARGET_DIR", self.root.join("target"))
            .env_remove("CARGO_BUILD_BUILD_DIR")
            .env_remove("RUSTFLAGS")
            .output()
            .expect("cargo runs");
        if output.status.success() {
            Ok(())
        } else {
            Err(format!(
                "with the mutations in it the engine does not build; is(…) says the row to mend: {}",
                output_end(&output)
            ))
        }
    }

    /// Runs worlds with this row switched on, or with none.
    pub(crate) fn simulate(&self, row: Option<usize>, arguments: &[&str]) -> Output {
        let program = self
            .root
            .join("target/debug")
            .join(format!("simulate{}", std::env::consts::EXE_SUFFIX));
        Command::new(program)
            .args(arguments)
            .args(["--threads", "1"])
            .env_remove("BROKEN")
            .envs(row.map(|number| ("BROKEN", number.to_string())))
            .output()
            .expect("simulate runs")
    }
}

/// Built once, and run for each row.
const WORKSPACE: &str = "\
[workspace]
resolver = \"3\"
members = [\"engine\", \"simulation\"]

[profile.dev]
opt-level = 1
debug = false
incremental = false
";

const DEPENDS: &str = "\
[dependencies]
scupper-engine = { path = \"../engine\" }

[[bin]]
name = \"simulate\"
path = \"src/bin/simulate.rs\"
";

fn manifest(name: &str, rest: &str) -> String {
    format!("[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n{rest}")
}

/// Writes only changed files: a written file is compiled again.
fn write(path: &Path, text: &str) {
    if fs::read_to_string(path).is_ok_and(|known| known == text) {
        return;
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).unwrap();
    }
    fs::write(path, text).unwrap();
}

fn read_sources(folder: &Path) -> Sources {
    let mut sources = Sources::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            let below = read_sources(&path).into_iter();
            sources.extend(below.map(|(file, text)| (format!("{name}/{file}"), text)));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.insert(name, fs::read_to_string(&path).unwrap());
        } else {
            panic!("{} is no source file", path.display());
        }
    }
    sources
}

/// The end of a program's output.
pub(crate) fn output_end(output: &Output) -> String {
    let end = |bytes: &[u8]| {
        let words = String::from_utf8_lossy(bytes).into_owned();
        let lines: Vec<&str> = words.lines().collect();
        let skipped = lines.len().saturating_sub(25);
        lines.into_iter().skip(skipped).collect::<Vec<_>>().join("\n")
    };
    format!(
        "{}\n{}{}",
        output.status,
        end(&output.stdout),
        end(&output.stderr)
    )
}
