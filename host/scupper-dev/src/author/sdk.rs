//! The SDK as a self-contained crate, so that users who only have the programs can build a new policy.

use std::collections::BTreeMap;

/// The files of `sdk/` and `wit/`, with their names beside a policy.
const FILES: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/sdk_files.rs"));

/// The workspace's manifest, from which the SDK's manifest inherits.
const WORKSPACE: &str = include_str!("../../../../Cargo.toml");

/// Its folder in a policy's crate.
pub(super) const FOLDER: &str = "sdk";

/// Each file with its text.
pub(super) fn files() -> impl Iterator<Item = (String, String)> {
    FILES.iter().map(|(name, text)| {
        let text = match *name {
            "scupper-sdk/Cargo.toml" => standalone(text, WORKSPACE),
            _ => (*text).to_owned(),
        };
        (format!("{FOLDER}/{name}"), text)
    })
}

/// The manifest with all inherited values inlined, without lints and tests.
fn standalone(manifest: &str, workspace: &str) -> String {
    let inherited: BTreeMap<&str, &str> = ["[workspace.package]", "[workspace.dependencies]"]
        .into_iter()
        .flat_map(|table| entries(workspace, table))
        .collect();
    let mut lines = Vec::new();
    let mut is_left_out = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            is_left_out = ["[lints]", "[dev-dependencies]"].contains(&line);
        }
        if is_left_out {
            continue;
        }
        lines.push(match inheriting(line) {
            Some((key, more)) => match inherited.get(key) {
                Some(value) => format!("{key} = {}", with(value, more)),
                None => line.to_owned(),
            },
            None => line.to_owned(),
        });
    }
    lines.join("\n").trim_end().to_owned() + "\n"
}

/// `key = value` lines of a table.
fn entries<'a>(manifest: &'a str, table: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let lines = manifest.lines().skip_while(move |line| *line != table).skip(1);
    lines
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split_once(" = "))
}

/// The key of an inheriting line, and its additions: `serde = { workspace = true, optional = true }`.
fn inheriting(line: &str) -> Option<(&str, &str)> {
    if let Some(key) = line.strip_suffix(".workspace = true") {
        return Some((key, ""));
    }
    let (key, value) = line.split_once(" = { workspace = true")?;
    Some((key, value.strip_suffix(" }")?))
}

/// A version, or a table, with additions.
fn with(value: &str, more: &str) -> String {
    match value.strip_suffix(" }") {
        _ if more.is_empty() => value.to_owned(),
        Some(table) => format!("{table}{more} }}"),
        None => format!("{{ version = {value}{more} }}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_inlines_inherited_values() {
        let workspace = "[workspace.package]\nversion = \"1.2.3\"\n\n[workspace.dependencies]\nplain = \"1\"\n\
                         rich = { version = \"2\", features = [\"a\"] }\n\n[profile.dev]\nversion = \"no\"\n";
        let manifest = "[package]\nname = \"x\"\nversion.workspace = true\n\n[lints]\nworkspace = true\n\n\
                        [dependencies]\nplain = { workspace = true, optional = true }\nrich.workspace = true\n\
                        [features]\nall = [\"dep:plain\"]\n\n[dev-dependencies]\nother.workspace = true\n";
        assert_eq!(
            standalone(manifest, workspace),
            "[package]\nname = \"x\"\nversion = \"1.2.3\"\n\n[dependencies]\n\
             plain = { version = \"1\", optional = true }\nrich = { version = \"2\", features = [\"a\"] }\n\
             [features]\nall = [\"dep:plain\"]\n"
        );
    }

    #[test]
    fn the_copied_sdk_inherits_nothing() {
        let files: BTreeMap<String, String> = files().collect();
        let manifest = files.get("sdk/scupper-sdk/Cargo.toml").unwrap();
        assert!(!manifest.contains("workspace"), "{manifest}");
        assert!(files.contains_key("sdk/wit/worlds.wit"), "{:?}", files.keys());
        assert!(
            files.contains_key("sdk/scupper-sdk/src/testing/mod.rs"),
            "{:?}",
            files.keys()
        );
    }
}
