//! Files that no target reaches. Cargo compiles what a target, a `mod` or a `#[path]` names, and says nothing of the rest.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{Finding, Source};

/// A file that is compiled. Where it owns its folder, its modules are beside it, otherwise in a folder of its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Reached {
    path: String,
    owns_folder: bool,
}

/// Every Rust file must be named by a target of its package, or by a file that is.
pub(super) fn no_orphans(sources: &[Source]) -> Vec<Finding> {
    let rust = sources.iter().filter(|source| source.is_rust());
    let files: BTreeMap<&str, &Source> = rust.map(|source| (source.path.as_str(), source)).collect();
    let mut open: Vec<Reached> = sources
        .iter()
        .flat_map(|source| targets(source, &files))
        .collect();
    let mut reached = BTreeSet::new();
    while let Some(next) = open.pop() {
        if let Some(source) = files.get(next.path.as_str())
            && !reached.contains(&next)
        {
            open.extend(named_by(source, next.owns_folder));
            reached.insert(next);
        }
    }
    let reached: BTreeSet<&str> = reached.iter().map(|file| file.path.as_str()).collect();
    let orphans = files.iter().filter(|(path, _)| !reached.contains(*path));
    let message = "no target, `mod` or `#[path]` names this file, so it is never compiled; remove it";
    orphans
        .map(|(_, source)| source.finding("no-orphans", 1, message))
        .collect()
}

/// The files that Cargo compiles for a package, by name or because its manifest says so.
fn targets(manifest: &Source, files: &BTreeMap<&str, &Source>) -> Vec<Reached> {
    let folder = match manifest.path.strip_suffix("Cargo.toml") {
        Some(folder) if folder.is_empty() || folder.ends_with('/') => folder,
        _ => return Vec::new(),
    };
    if !manifest.text.lines().any(|line| line.trim() == "[package]") {
        return Vec::new();
    }
    let inside = files.keys().filter_map(|path| path.strip_prefix(folder));
    let by_name = inside.filter(|path| is_target(path));
    let lines = manifest
        .text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("path = \""));
    let by_path = lines.filter_map(|rest| rest.split('"').next());
    by_name
        .chain(by_path)
        .map(|path| owning(joined(folder, path)))
        .collect()
}

fn is_target(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    matches!(
        parts[..],
        ["build.rs"]
            | ["src", "lib.rs" | "main.rs"]
            | ["src", "bin", _]
            | ["src", "bin", _, "main.rs"]
            | ["tests" | "benches" | "examples", _]
            | ["tests" | "benches" | "examples", _, "main.rs"]
    )
}

/// The files that a compiled file names: its modules, and what it includes.
fn named_by(source: &Source, owns_folder: bool) -> Vec<Reached> {
    let folder = source.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let own = source.path.strip_suffix(".rs").unwrap_or(&source.path);
    let modules = if owns_folder { folder } else { own };
    let mut named = included(&source.text)
        .map(|path| owning(joined(folder, path)))
        .collect::<Vec<_>>();
    let mut attribute = None;
    for (text, code) in source.text.lines().zip(source.code.lines()) {
        if code.trim_start().starts_with("#[path") {
            attribute = text.split('"').nth(1);
        } else if let Some(name) = module(code) {
            match attribute.take() {
                Some(path) => named.push(owning(joined(folder, path))),
                None => {
                    named.push(owning(joined(modules, &format!("{name}/mod.rs"))));
                    named.push(Reached {
                        path: joined(modules, &format!("{name}.rs")),
                        owns_folder: false,
                    });
                }
            }
        }
    }
    named
}

/// The name of the module whose file this line asks for.
fn module(line: &str) -> Option<&str> {
    let (before, name) = line.trim().strip_suffix(';')?.rsplit_once("mod ")?;
    (before.is_empty() || before.starts_with("pub")).then(|| name.trim().trim_start_matches("r#"))
}

/// The Rust files that are included as code or as text.
fn included(text: &str) -> impl Iterator<Item = &str> {
    let calls = ["include!(\"", "include_str!(\""];
    let paths = calls.into_iter().flat_map(|call| text.split(call).skip(1));
    paths
        .filter_map(|rest| rest.split('"').next())
        .filter(|path| path.ends_with(".rs"))
}

const fn owning(path: String) -> Reached {
    Reached {
        path,
        owns_folder: true,
    }
}

/// A path below a folder, without `..`.
fn joined(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}
