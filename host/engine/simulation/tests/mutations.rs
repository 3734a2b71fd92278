//! The engine is broken on purpose, once or more for each invariant, and the simulation finds it.
//!
//! The sources are copied to a folder of their own outside of the repository, one row of the table is applied at a
//! time, and the copy's `simulate` must find a violation of the row's invariant. A row whose text is not found
//! exactly once says so: mend the row, not the engine.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of a test"
)]

#[path = "../../../tests/support/skip.rs"]
mod skip;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;
use std::thread;

/// One way to break the engine.
struct Mutation {
    /// The invariant that it breaks.
    invariant: u8,
    /// What the broken engine does.
    breaks: &'static str,
    /// Below `host/engine/src`.
    file: &'static str,
    find: &'static str,
    replace: &'static str,
}

/// So many worlds must suffice to notice.
const WORLDS: &str = "20000";
/// So many copies are built and run side by side.
const WORKERS: usize = 2;

const MUTATIONS: &[Mutation] = &[
    Mutation {
        invariant: 1,
        breaks: "deletes where the plan evicts, past every budget",
        file: "drain/evict.rs",
        find: "let deletes = self.verdict_on(uid) == Some(Verdict::Delete);",
        replace: "let deletes = true;",
    },
    Mutation {
        invariant: 6,
        breaks: "believes late news of a pod that was told to be gone",
        file: "drain/world.rs",
        find: "if !self.buried.contains_key(&pod.id.uid) {",
        replace: "if true {",
    },
    Mutation {
        invariant: 1,
        breaks: "evicts a pod whose end was to be awaited",
        file: "drain/evict.rs",
        find: "target.verdict == Verdict::AwaitCompletion && !pod.is_finished();",
        replace: "false;",
    },
    Mutation {
        invariant: 1,
        breaks: "asks again for a pod that the API server does not know",
        file: "drain/answers.rs",
        find: "EvictAnswer::NotFound => self.watch(uid, Why::NotFound, LAG),",
        replace: "EvictAnswer::NotFound => {\n                self.refused(uid, Reason::UidDisproved, Again::After(Backoff::THROTTLE));\n            }",
    },
    Mutation {
        invariant: 2,
        breaks: "evicts the driver's own pod before others",
        file: "drain/waves.rs",
        find: "!self.is_own_pod(uid) || self.is_last(uid)",
        replace: "true",
    },
    Mutation {
        invariant: 2,
        breaks: "evicts DaemonSet pods of its own accord",
        file: "filter.rs",
        find: "if filters.ignore_daemonsets {",
        replace: "if filters.ignore_daemonsets {\n        Filter::Pass(None)\n    } else if false {",
    },
    Mutation {
        invariant: 1,
        breaks: "leaves pods behind as soon as they are ending",
        file: "filter.rs",
        find: "(now.since(deletion.at).as_secs() > timeout).then(|| {",
        replace: "Some(()).map(|()| {",
    },
    Mutation {
        invariant: 3,
        breaks: "says drained without a fresh list",
        file: "drain/verify.rs",
        find: "if !self.verified {",
        replace: "if false {",
    },
    Mutation {
        invariant: 4,
        breaks: "evicts while the driver stops",
        file: "drain/evict.rs",
        find: "self.outcome.is_none() && !self.paused &&",
        replace: "self.outcome.is_none() &&",
    },
    Mutation {
        invariant: 4,
        breaks: "evicts while the node is uncordoned",
        file: "drain/evict.rs",
        find: "!self.paused && self.world.is_cordoned()",
        replace: "!self.paused",
    },
    Mutation {
        invariant: 5,
        breaks: "takes every cordon for its own",
        file: "drain/cordon.rs",
        find: "let ours = mark.is_some_and(|mark| mark.own_cordon);",
        replace: "let ours = true;",
    },
    Mutation {
        invariant: 5,
        breaks: "goes on with another node of the same name",
        file: "drain/sight.rs",
        find: "*self.uid.get_or_insert_with(|| node.uid.clone()) != node.uid",
        replace: "*self.uid.insert(node.uid.clone()) != node.uid",
    },
    Mutation {
        invariant: 5,
        breaks: "takes a drain up on another node of the same name",
        file: "drain/memory.rs",
        find: "self.world.sight.expect(checkpoint.node);",
        replace: "",
    },
    Mutation {
        invariant: 6,
        breaks: "runs past its deadline",
        file: "drain/ending.rs",
        find: "self.now >= deadline)",
        replace: "self.now > deadline + Duration::from_secs(3600))",
    },
    Mutation {
        invariant: 6,
        breaks: "has no reason for pods that stay",
        file: "drain/waiting.rs",
        find: ".map(|pod| (pod.id.clone(), self.reason(pod)))",
        replace: ".map(|pod| (pod.id.clone(), self.reason(pod)))\n            .filter(|(_, reason)| *reason != Reason::Kept)",
    },
    Mutation {
        invariant: 7,
        breaks: "lets a hook say when it wants to be called again, without bounds",
        file: "drain/steps.rs",
        find: "again_after: again_after.clamp(SOONEST, LATEST),",
        replace: "again_after: Duration::from_millis(again_after.as_millis().max(SOONEST.as_millis())),",
    },
    Mutation {
        invariant: 7,
        breaks: "asks a planner that failed again at once",
        file: "drain/planning.rs",
        find: "let wait = retry_after.map(|wait| wait.clamp(SOONEST_RETRY, LATEST));",
        replace: "let wait = retry_after.map(|_| SOONEST_RETRY.min(LATEST));",
    },
    Mutation {
        invariant: 7,
        breaks: "does not wait for the hooks before an eviction",
        file: "drain/evict.rs",
        find: "if !self.gate(HookPhase::BeforeEvict, &subject).is_open() {",
        replace: "if false {",
    },
    Mutation {
        invariant: 8,
        breaks: "forgets in a crash which hooks were through",
        file: "drain/memory.rs",
        find: "in checkpoint.done {",
        replace: "in core::iter::empty::<(String, crate::HookPhase, crate::Subject)>() {",
    },
    Mutation {
        invariant: 8,
        breaks: "forgets in a crash that it was cancelled",
        file: "checkpoint.rs",
        find: "(Phase::RollingBack, Some(reason)) =>",
        replace: "(Phase::Planning, Some(reason)) =>",
    },
    Mutation {
        invariant: 8,
        breaks: "does not save that it was cancelled",
        file: "drain/memory.rs",
        find: "cancelled: self.cancelled_by(phase),",
        replace: "cancelled: None,",
    },
];

#[test]
fn every_mutation_is_found_and_the_engine_as_it_is_passes() {
    if skip::left_out("simulation") {
        return;
    }
    let next = Mutex::new(0..=MUTATIONS.len());
    let failures = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for number in 0..WORKERS {
            let (next, failures) = (&next, &failures);
            scope.spawn(move || {
                let copy = Copy::new(number);
                loop {
                    let Some(turn) = next.lock().unwrap().next() else {
                        return;
                    };
                    // The first turn is the engine as it is.
                    let found = match turn.checked_sub(1).and_then(|place| MUTATIONS.get(place)) {
                        None => copy.is_sound(),
                        Some(mutation) => copy.is_found(mutation),
                    };
                    if let Err(failure) = found {
                        failures.lock().unwrap().push(failure);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn every_invariant_has_a_mutation() {
    for invariant in 1..=8 {
        assert!(
            MUTATIONS.iter().any(|mutation| mutation.invariant == invariant),
            "none breaks {invariant}"
        );
    }
}

/// A workspace of copied sources, removed in the end.
struct Copy {
    root: PathBuf,
}

impl Copy {
    fn new(number: usize) -> Self {
        let root = std::env::temp_dir().join(format!("scupper-mutations-{}-{number}", std::process::id()));
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        fs::create_dir_all(&root).unwrap();
        copy_sources(&here.join("../src"), &root.join("engine/src"));
        copy_sources(&here.join("src"), &root.join("simulation/src"));
        fs::write(root.join("Cargo.toml"), WORKSPACE).unwrap();
        fs::write(root.join("engine/Cargo.toml"), manifest("scupper-engine", "")).unwrap();
        let depends = "[dependencies]\nscupper-engine = { path = \"../engine\" }\n\n\
                       [[bin]]\nname = \"simulate\"\npath = \"src/bin/simulate.rs\"\n";
        fs::write(
            root.join("simulation/Cargo.toml"),
            manifest("scupper-engine-simulation", depends),
        )
        .unwrap();
        Self { root }
    }

    fn is_sound(&self) -> Result<(), String> {
        self.build()
            .map_err(|error| format!("the engine as it is does not build on its own: {error}"))?;
        let output = self.simulate(&["--seeds", "3000"]);
        if output.status.success() {
            Ok(())
        } else {
            Err(format!("the engine as it is: {}", said(&output)))
        }
    }

    fn is_found(&self, mutation: &Mutation) -> Result<(), String> {
        let Mutation {
            invariant,
            breaks,
            file,
            find,
            replace,
        } = mutation;
        let path = self.root.join("engine/src").join(file);
        let row = format!("mutation of invariant {invariant} ({breaks}) in host/engine/src/{file}");
        let sound = fs::read_to_string(&path).map_err(|error| format!("{row}: {error}; mend the row"))?;
        let times = sound.matches(find).count();
        if times != 1 {
            return Err(format!(
                "{row}: its text occurs {times} times, not once; mend the row: {find}"
            ));
        }
        fs::write(&path, sound.replace(find, replace)).unwrap();
        let built = self
            .build()
            .map_err(|error| format!("{row} does not build; mend the row: {error}"));
        let found = built.and_then(|()| {
            let output = self.simulate(&["--seeds", WORLDS, "--until", &invariant.to_string()]);
            let words = String::from_utf8_lossy(&output.stdout).into_owned();
            let noticed = words.contains(&format!(" invariant {invariant}: "));
            if noticed {
                Ok(())
            } else {
                Err(format!(
                    "{row} was not found in {WORLDS} worlds: {}",
                    said(&output)
                ))
            }
        });
        fs::write(&path, sound).unwrap();
        found
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
            Err(said(&output))
        }
    }

    fn simulate(&self, arguments: &[&str]) -> Output {
        let program = self
            .root
            .join("target/debug")
            .join(format!("simulate{}", std::env::consts::EXE_SUFFIX));
        Command::new(program)
            .args(arguments)
            .args(["--threads", "1"])
            .output()
            .expect("simulate runs")
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.root).unwrap_or_default();
    }
}

/// Quick to build, and quick enough to run.
const WORKSPACE: &str = "\
[workspace]
resolver = \"3\"
members = [\"engine\", \"simulation\"]

[profile.dev]
opt-level = 1
debug = false
incremental = true
";

fn manifest(name: &str, rest: &str) -> String {
    format!("[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n{rest}")
}

fn copy_sources(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_sources(&path, &target);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            fs::copy(&path, &target).unwrap();
        } else {
            panic!("{} is no source file", path.display());
        }
    }
}

fn said(output: &Output) -> String {
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
