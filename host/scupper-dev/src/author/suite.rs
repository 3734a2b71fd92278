//! Finds scenarios and their policies: a crate's scenarios are in its folder `scenarios`.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use scupper_builder::{BuildError, PROFILE, Workspace};
use serde::Deserialize;
use serde_json::{Map, Value};
use thiserror::Error;

/// The folder of a crate's scenarios.
const FOLDER: &str = "scenarios";

/// A scenario and its policy.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// The scenario's file.
    pub file: PathBuf,
    /// The policy's name; empty if the scenario names all of its policies.
    pub policy: String,
    /// Its component.
    pub module: PathBuf,
}

/// Why the scenarios cannot be found, or their policies cannot be built.
#[derive(Debug, Error)]
pub(crate) enum SuiteError {
    /// A folder or a file cannot be read.
    #[error("cannot look for scenarios in {}", path.display())]
    Look {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// There is no scenario.
    #[error("there are no scenarios in {}; a scenario is a file NAME.yaml", .0.display())]
    Empty(PathBuf),
    /// The scenario does not belong to a crate.
    #[error("{} is not in a crate; name its policy with --policy FILE.wasm", .0.display())]
    NoCrate(PathBuf),
    /// The crate cannot be built.
    #[error("cannot build the policy in {}", folder.display())]
    Build {
        /// The crate.
        folder: PathBuf,
        /// The cause.
        #[source]
        source: BuildError,
    },
}

/// Finds the scenarios of crates, of folders and of single files. Builds the crates, unless a component is given.
/// Blocks.
pub(crate) fn cases(paths: &[PathBuf], module: Option<&Path>) -> Result<Vec<Case>, SuiteError> {
    let mut built: BTreeMap<PathBuf, (String, PathBuf)> = BTreeMap::new();
    let mut cases = Vec::new();
    // Names in a scenario are relative to its folder; those on the command line are not.
    let absolute = |module: &Path| {
        std::path::absolute(module).map_err(|source| SuiteError::Look {
            path: module.to_owned(),
            source,
        })
    };
    let module = module.map(absolute).transpose()?;
    for path in paths {
        for file in files(path)? {
            let (policy, module) = match &module {
                Some(module) => (name_of(module), module.clone()),
                None if names_all_modules(&file) => (String::new(), PathBuf::new()),
                None => {
                    let folder = crate_of(&file).ok_or_else(|| SuiteError::NoCrate(file.clone()))?;
                    match built.get(&folder) {
                        Some(known) => known.clone(),
                        None => {
                            let made = build(&folder).map_err(|source| SuiteError::Build {
                                folder: folder.clone(),
                                source,
                            })?;
                            built.insert(folder, made.clone());
                            made
                        }
                    }
                }
            };
            cases.push(Case { file, policy, module });
        }
    }
    Ok(cases)
}

/// A name for a policy that has only a file name.
pub(super) fn name_of(module: &Path) -> String {
    let stem = module.file_stem().unwrap_or_default().to_string_lossy();
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let name: String = stem
        .to_lowercase()
        .chars()
        .map(|c| if fits(c) { c } else { '-' })
        .take(40)
        .collect();
    if name.is_empty() {
        "policy".to_owned()
    } else {
        name
    }
}

fn files(path: &Path) -> Result<Vec<PathBuf>, SuiteError> {
    // `scenarios/a.yaml` reads better than `./scenarios/a.yaml`.
    let path = path.strip_prefix(".").unwrap_or(path);
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let folder = if path.join("Cargo.toml").is_file() {
        path.join(FOLDER)
    } else {
        path.to_owned()
    };
    let look = |source| SuiteError::Look {
        path: folder.clone(),
        source,
    };
    let mut found = Vec::new();
    let listed = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        &folder
    };
    for entry in std::fs::read_dir(listed).map_err(look)? {
        let file = folder.join(entry.map_err(look)?.file_name());
        if file.extension().is_some_and(|end| end == "yaml" || end == "yml") {
            found.push(file);
        }
    }
    if found.is_empty() {
        return Err(SuiteError::Empty(folder));
    }
    found.sort();
    Ok(found)
}

/// The scenario brings all of its policies, as one of `scupper plan --save-scenario` does. One that cannot be read is
/// reported when it is run.
fn names_all_modules(file: &Path) -> bool {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Chain {
        policy: Map<String, Value>,
        policies: Vec<Map<String, Value>>,
    }
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let chain: Chain = serde_saphyr::from_str(&text).unwrap_or_default();
    let all = match &chain.policies[..] {
        [] => std::slice::from_ref(&chain.policy),
        chain => chain,
    };
    all.iter().all(|policy| policy.contains_key("module"))
}

fn crate_of(file: &Path) -> Option<PathBuf> {
    let file = file.canonicalize().ok()?;
    file.ancestors()
        .skip(1)
        .find(|folder| folder.join("Cargo.toml").is_file())
        .map(Path::to_path_buf)
}

fn build(folder: &Path) -> Result<(String, PathBuf), BuildError> {
    let workspace = Workspace::of(folder)?;
    let package = workspace.package_in(folder)?;
    scupper_builder::compile(&workspace, &[package], PROFILE)?;
    let built = workspace.component(package, PROFILE, &workspace.components())?;
    Ok((name_of(&built.file), built.file))
}
