//! The crate of a new policy: it builds and its tests pass as created.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use scupper_policy_spec::{POLICY_NAME_RULE, check_policy_name};
use thiserror::Error;

use super::sdk;

/// The kind of a new policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It plans.
    #[default]
    Planner,
    /// It acts around the drain.
    Hooks,
    /// Both.
    Both,
}

/// Why the policy's crate could not be created.
#[derive(Debug, Error)]
pub(crate) enum NewError {
    /// Cargo or the driver would reject the name.
    #[error(
        "`{0}` cannot be the name of a new policy: it must be {POLICY_NAME_RULE}, begin with a letter and not end with '-'"
    )]
    Name(String),
    /// The target exists already.
    #[error("{} exists already and is not overwritten; choose another name or another --dir", .0.display())]
    Exists(PathBuf),
    /// A file cannot be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
}

/// Creates the crate in `dir/name` and returns its files.
pub(crate) fn new(name: &str, kind: Kind, dir: &Path) -> Result<Vec<PathBuf>, NewError> {
    if !is_name(name) {
        return Err(NewError::Name(name.to_owned()));
    }
    let folder = dir.join(name);
    if folder.exists() {
        return Err(NewError::Exists(folder));
    }
    let planner = include_str!("template/planner.yaml");
    let hooks = include_str!("template/hooks.yaml");
    let (code, scenarios) = match kind {
        Kind::Planner => (include_str!("template/planner.rs"), &[("last", planner)][..]),
        Kind::Hooks => (include_str!("template/hooks.rs"), &[("busy", hooks)][..]),
        Kind::Both => (
            include_str!("template/both.rs"),
            &[("last", planner), ("busy", hooks)][..],
        ),
    };
    let mut files = vec![
        (
            PathBuf::from("Cargo.toml"),
            include_str!("template/manifest.toml").to_owned(),
        ),
        (
            PathBuf::from("README.md"),
            include_str!("template/README.md").to_owned(),
        ),
        (PathBuf::from(".gitignore"), "/target\n".to_owned()),
        (PathBuf::from("src/lib.rs"), code.to_owned()),
    ];
    for (scenario, text) in scenarios {
        files.push((format!("scenarios/{scenario}.yaml").into(), (*text).to_owned()));
    }
    let named = |text: &str| {
        text.replace("new-policy", name)
            .replace("NewPolicy", &camel_case(name))
    };
    let own = files
        .into_iter()
        .map(|(file, text)| (folder.join(file), named(&text)));
    let of_sdk = sdk::files().map(|(file, text)| (folder.join(file), text));
    let mut written: Vec<_> = own.collect();
    let written_all = written
        .iter()
        .cloned()
        .chain(of_sdk)
        .try_for_each(|(path, text)| write(&path, &text));
    if let Err(error) = written_all {
        // An incomplete crate would only block the next attempt.
        std::fs::remove_dir_all(&folder).unwrap_or_default();
        return Err(error);
    }
    written.push((folder.join(sdk::FOLDER), String::new()));
    Ok(written.into_iter().map(|(path, _)| path).collect())
}

fn write(path: &Path, text: &str) -> Result<(), NewError> {
    let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    folder
        .and_then(|()| std::fs::File::create_new(path)?.write_all(text.as_bytes()))
        .map_err(|source| NewError::Write {
            path: path.to_owned(),
            source,
        })
}

fn is_name(name: &str) -> bool {
    check_policy_name(name).is_ok()
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && !name.ends_with('-')
}

/// `keep-labelled` is `KeepLabelled` as a type.
fn camel_case(name: &str) -> String {
    let capital = |part: &str| {
        let mut letters = part.chars();
        let first = letters.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    };
    name.split('-').map(capital).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_files_are_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        new("mine", Kind::Both, dir.path()).unwrap();
        let error = new("mine", Kind::Both, dir.path()).unwrap_err();
        assert!(error.to_string().contains("exists already"), "{error}");
    }

    #[test]
    fn names_fit_cargo_the_driver_and_rust() {
        for bad in ["", "Mine", "1st", "a_b", "-a", "a-", "a/b", &"x".repeat(41)] {
            assert!(!is_name(bad), "{bad}");
        }
        assert_eq!(camel_case("keep-labelled-2"), "KeepLabelled2");
    }
}
