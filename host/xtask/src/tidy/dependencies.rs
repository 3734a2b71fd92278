//! Unused dependencies, by the names in the code: each one costs build time, checks of licences and advisories, and size.

use super::{
    code::has_word,
    source::{Finding, Source},
};

const RULE: &str = "used-dependencies";

/// A table of a manifest.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Table {
    /// `[dependencies]`: must be used outside tests.
    Usual,
    /// `[dev-dependencies]` and `[build-dependencies]`: may be used anywhere.
    Other,
}

/// Every dependency of a package must be named in its code; one that only tests name belongs to `[dev-dependencies]`.
pub(super) fn used_dependencies(sources: &[Source]) -> Vec<Finding> {
    let manifests: Vec<_> = sources.iter().filter_map(folder).collect();
    let mut found = Vec::new();
    for (manifest, folder) in &manifests {
        let inner = manifests.iter().map(|(_, other)| *other);
        let inner: Vec<_> = inner
            .filter(|other| other.len() > folder.len() && other.starts_with(folder))
            .collect();
        let own: Vec<_> = sources
            .iter()
            .filter(|source| source.is_rust() && source.path.starts_with(folder))
            .filter(|source| !inner.iter().any(|other| source.path.starts_with(other)))
            .collect();
        let named = |name: &str, table: Table| {
            let word = name.replace('-', "_");
            let counts = |source: &&&Source| table == Table::Other || !is_for_tests(source, folder);
            let mut counted = own.iter().filter(counts);
            counted.any(|source| has_word(&source.code, &word))
        };
        for (line, table, name) in dependencies(&manifest.text) {
            if named(name, table) {
                continue;
            }
            let message = if named(name, Table::Other) {
                format!("only tests use `{name}`; it belongs to [dev-dependencies]")
            } else {
                format!("nothing uses `{name}`; remove it")
            };
            found.push(manifest.finding(RULE, line, message));
        }
    }
    found
}

/// The folder of a package's manifest.
fn folder(source: &Source) -> Option<(&Source, &str)> {
    let folder = source.path.strip_suffix("Cargo.toml")?;
    let is_package = source.text.lines().any(|line| line.trim() == "[package]");
    (is_package && (folder.is_empty() || folder.ends_with('/'))).then_some((source, folder))
}

/// A package may itself be inside a folder of tests, as the guests are.
fn is_for_tests(source: &Source, folder: &str) -> bool {
    let inside = source.path.strip_prefix(folder).unwrap_or(&source.path);
    inside.ends_with("/tests.rs") || ["tests/", "benches/"].iter().any(|part| inside.starts_with(part))
}

/// Line, table and name of each dependency of a manifest.
fn dependencies(manifest: &str) -> Vec<(usize, Table, &str)> {
    let mut found = Vec::new();
    let mut table = None;
    for (at, line) in manifest.lines().enumerate() {
        let line = line.trim();
        if let Some(header) = line.strip_prefix('[') {
            let header = header.trim_end_matches(']');
            table = table_of(header);
            // `[dependencies.name]` is a dependency itself.
            if let (None, Some((outer, name))) = (table, header.rsplit_once('.'))
                && let Some(table) = table_of(outer)
            {
                found.push((at + 1, table, name));
            }
        } else if let (Some(table), Some((key, _))) = (table, line.split_once('='))
            && !line.starts_with('#')
        {
            let name = key.trim().split('.').next().unwrap_or_default();
            found.push((at + 1, table, name));
        }
    }
    found
}

fn table_of(header: &str) -> Option<Table> {
    match header.rsplit('.').next()? {
        _ if header.starts_with("workspace") => None,
        "dependencies" => Some(Table::Usual),
        "dev-dependencies" | "build-dependencies" => Some(Table::Other),
        _ => None,
    }
}
