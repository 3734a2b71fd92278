//! The version is that of `Cargo.toml`, in every place that names it.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::fs;
use std::path::Path;
use std::process::Command;

use xtask::tidy::{self, Source};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The text of a file of this repository.
fn text(file: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join(file)).unwrap()
}

/// The rest of the line that begins so, without quotes.
#[track_caller]
fn value(file: &str, begin: &str) -> String {
    let text = text(file);
    let mut rests = text.lines().filter_map(|line| line.trim().strip_prefix(begin));
    let rest = rests
        .next()
        .unwrap_or_else(|| panic!("{file}: no line `{begin}`"));
    rest.trim().trim_matches('"').to_owned()
}

#[test]
fn the_chart_and_the_manifests_have_the_version_of_the_program() {
    let chart = "deploy/helm/scupper/Chart.yaml";
    for (file, begin) in [(chart, "version:"), (chart, "appVersion:")] {
        assert_eq!(
            value(file, begin),
            VERSION,
            "{file}: {begin} is not that of Cargo.toml"
        );
    }
    let images = value(
        "deploy/base/kustomization.yaml",
        "- {name: scupper, newName: localhost/scupper,",
    );
    assert_eq!(
        images,
        format!("newTag: \"{VERSION}\"}}"),
        "deploy/base/kustomization.yaml: newTag"
    );
    let guide = text("deploy/README.md");
    for named in [
        format!("localhost/scupper:{VERSION}`"),
        format!("newTag: \"{VERSION}\""),
    ] {
        assert!(guide.contains(&named), "deploy/README.md does not say {named}");
    }
}

/// Names of files and of the image, as `scupper-1.2.3-docs` and `scupper:1.2.3`.
#[test]
fn the_pages_name_files_and_images_of_the_version_of_the_program() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut named = 0;
    for Source { path: page, text, .. } in tidy::read(&root).unwrap() {
        if !page.ends_with(".md") {
            continue;
        }
        for (at, name) in text.match_indices("scupper") {
            let rest = &text[at + name.len()..];
            let Some(version) = rest.strip_prefix(['-', ':', '_']) else {
                continue;
            };
            let end = version.find(|it: char| !it.is_ascii_digit() && it != '.');
            let version = version[..end.unwrap_or(version.len())].trim_end_matches('.');
            if version.matches('.').count() == 2 {
                assert_eq!(version, VERSION, "{page}: scupper{}", &rest[..rest.len().min(20)]);
                named += 1;
            }
        }
    }
    assert!(named > 5, "{named}");
}

/// The newest version of the changelog: a released one, or the one that it says it is for.
#[test]
fn the_changelog_begins_with_the_version_of_the_program() {
    let changelog = text("CHANGELOG.md");
    let newest = changelog.split("\n## [").nth(1).unwrap();
    let released = newest.starts_with(&format!("{VERSION}] - 20"));
    let planned =
        newest.starts_with("Unreleased]") && newest.contains(&format!("what {VERSION} will contain"));
    assert!(
        released || planned,
        "CHANGELOG.md: the first section is neither `[{VERSION}] - DATE` nor `[Unreleased]`, which says \"This is what {VERSION} \
         will contain.\""
    );
}

#[test]
fn all_crates_have_one_version() {
    let asked = Command::new(env!("CARGO"))
        .args(["metadata", "--locked", "--no-deps", "--format-version", "1"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&asked.stdout).unwrap();
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        assert_eq!(
            package["version"], VERSION,
            "{name}: write `version.workspace = true` into its Cargo.toml"
        );
    }
}

/// What is built takes the version from `Cargo.toml`, so no script can name another.
#[test]
fn the_scripts_name_no_version() {
    for file in [
        "Makefile",
        "deploy/image",
        "deploy/release",
        "deploy/Containerfile",
        "deploy/rootfs",
    ] {
        assert!(!text(file).contains(VERSION), "{file} names {VERSION}");
    }
}
