//! Tells the program which commit its sources are from, also where cargo alone builds it.
//!
//! `SCUPPER_COMMIT` says it if git cannot, for example for sources from an archive. A change of the program's own sources
//! asks git again; a new commit does so only for profiles that inherit `release`: cargo would otherwise build all tests of
//! this crate again after each commit. What a debug build says stays true: its sources are those of that commit.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Crates of the host that are not part of the program, as `host/xtask/tests/crates.rs` checks.
const OTHERS: [&str; 4] = ["builder", "scupper-dev", "simulator", "xtask"];

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let sources = sources(&root);
    println!("cargo::rerun-if-env-changed=SCUPPER_COMMIT");
    for path in &sources {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        for path in places_of_the_commit(&root) {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    let named = std::env::var("SCUPPER_COMMIT").ok();
    let commit = named.filter(|name| !name.is_empty());
    let commit = commit.or_else(|| commit_of(&root, &sources)).unwrap_or_default();
    println!("cargo::rustc-env=SCUPPER_COMMIT={commit}");
}

/// The commit of these sources, with `-dirty` if they differ from it.
fn commit_of(root: &Path, sources: &[PathBuf]) -> Option<String> {
    // Elsewhere than at the top, the repository is one into which these sources were unpacked.
    if !git(root, &["rev-parse", "--show-prefix"])?.is_empty() {
        return None;
    }
    let commit = git(root, &["rev-parse", "HEAD"])?;
    let sources = sources.iter().filter_map(|path| path.to_str());
    let asked: Vec<&str> = ["status", "--porcelain", "--"]
        .into_iter()
        .chain(sources)
        .collect();
    let is_same = git(root, &asked)?.is_empty();
    Some(if is_same {
        commit
    } else {
        format!("{commit}-dirty")
    })
}

/// Files that git writes when the commit changes, in whatever way this clone or worktree keeps it. Cargo takes a missing
/// file for a changed one.
fn places_of_the_commit(root: &Path) -> Vec<PathBuf> {
    let branch = git(root, &["rev-parse", "--symbolic-full-name", "HEAD"]).unwrap_or_default();
    let places = ["HEAD", "logs/HEAD", "packed-refs", &branch].into_iter();
    places
        .filter_map(|place| git(root, &["rev-parse", "--git-path", place]))
        .map(|path| root.join(path))
        .filter(|path| path.is_file())
        .collect()
}

/// What the program is built from.
fn sources(root: &Path) -> Vec<PathBuf> {
    let crates = std::fs::read_dir(root.join("host"))
        .into_iter()
        .flatten()
        .flatten();
    let ours = crates.filter(|entry| !OTHERS.iter().any(|other| entry.file_name() == *other));
    let folders =
        ours.flat_map(|entry| ["src", "Cargo.toml", "build.rs"].map(|part| entry.path().join(part)));
    let shared = ["wit", "Cargo.toml", "Cargo.lock"].map(|part| root.join(part));
    let mut found: Vec<PathBuf> = folders.chain(shared).filter(|path| path.exists()).collect();
    found.sort();
    found
}

/// What git answers, in this folder and not where a hook of git points to; `None` if it cannot.
fn git(root: &Path, words: &[&str]) -> Option<String> {
    let mut git = Command::new("git");
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        git.env_remove(variable);
    }
    let answer = git.arg("-C").arg(root).args(words).output().ok()?;
    let text = String::from_utf8(answer.stdout).ok()?;
    answer.status.success().then(|| text.trim().to_owned())
}
