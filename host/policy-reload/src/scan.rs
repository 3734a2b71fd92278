//! One consistent scan of the operator's input: the configuration and the modules.
//!
//! A ConfigMap volume is swapped by renaming one symbolic link; a reader that opens one file before the swap and
//! another after it has read two configurations. So every path is resolved before its file is read, and again after all
//! files have been read: if any of them has moved, the scan discards its result.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io};

use scupper_policy::{SourceError, WasmFile};
use scupper_policy_spec::PolicySpec;

use super::revision::Revision;

/// Inconsistent scans before the reloader waits for the next event.
const TRIES: usize = 5;

/// The operator's source of configuration and modules.
#[derive(Clone)]
pub struct PolicySource {
    /// The files that `read` reads.
    pub files: Vec<PathBuf>,
    /// The configuration to load, or the error.
    pub read: ReadDesired,
    /// Parses a saved configuration.
    pub parse_saved: ParseSaved,
}

/// The operator's configuration.
#[derive(Clone, Debug, Default)]
pub struct DesiredPolicies {
    /// The policies, in chain order.
    pub policies: Vec<PolicySpec>,
    /// The text of the configuration, saved for a start with a broken file; `None`: it cannot change.
    pub config_text: Option<ConfigText>,
}

/// A configuration file as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigText {
    /// Its place, the base of relative paths in it.
    pub file: PathBuf,
    /// Its text.
    pub text: Arc<str>,
}

impl From<Vec<PolicySpec>> for DesiredPolicies {
    fn from(policies: Vec<PolicySpec>) -> Self {
        Self {
            policies,
            config_text: None,
        }
    }
}

impl PolicySource {
    /// A fixed list of policies; only their modules change.
    pub fn fixed(policies: Vec<PolicySpec>) -> Self {
        Self::of(Vec::new(), move || Ok(policies.clone()))
    }

    /// Policies that are read again at every scan, from a text that is not saved.
    pub fn of(
        files: Vec<PathBuf>,
        read: impl Fn() -> Result<Vec<PolicySpec>, String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            files,
            read: Arc::new(move || read().map(DesiredPolicies::from)),
            parse_saved: Arc::new(|_| Err("nothing of it was kept".to_owned())),
        }
    }

    /// The saved configuration instead of the broken one; changes of the file are still noticed.
    pub(super) fn instead(&self, wanted: DesiredPolicies) -> Self {
        Self {
            read: Arc::new(move || Ok(wanted.clone())),
            ..self.clone()
        }
    }
}

impl fmt::Debug for PolicySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicySource")
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

/// Reads the configuration. It may block.
pub type ReadDesired = Arc<dyn Fn() -> Result<DesiredPolicies, String> + Send + Sync>;

/// Parses a saved configuration.
pub type ParseSaved = Arc<dyn Fn(&ConfigText) -> Result<DesiredPolicies, String> + Send + Sync>;

/// The findings of a scan.
pub(super) struct Scan {
    /// The error in the configuration; the policies are then those of the last valid one.
    pub(super) refused: Option<String>,
    /// The configuration's text, if it can be used.
    pub(super) config_text: Option<ConfigText>,
    /// The policies, in chain order.
    pub(super) found: Vec<Found>,
    /// The directories whose changes may change the findings.
    pub(super) places: BTreeSet<PathBuf>,
}

impl Scan {
    /// Nothing of it can be used.
    pub(super) fn panicked() -> Self {
        let reason = "reading the configuration or a policy's file panicked, which is a bug in Scupper: please report what \
                      the driver wrote to its standard error";
        Self {
            refused: Some(reason.to_owned()),
            config_text: None,
            found: Vec::new(),
            places: BTreeSet::new(),
        }
    }
}

/// The files changed during the scan: what it found may not belong together, and is not used.
pub(super) struct Torn {
    /// One of them.
    pub(super) file: PathBuf,
    /// The directories whose changes may change the findings.
    pub(super) places: BTreeSet<PathBuf>,
}

/// One policy.
pub(super) struct Found {
    pub(super) spec: PolicySpec,
    pub(super) module: Result<Module, SourceError>,
}

/// A module's file.
pub(super) struct Module {
    pub(super) digest: String,
    /// Its bytes, if they are new.
    pub(super) wasm: Option<WasmFile>,
}

/// The revisions that need not be read again, by the policy's name.
#[derive(Default)]
pub(super) struct KnownRevisions {
    /// Revisions that would not be tried.
    pub(super) revisions: BTreeSet<(String, Revision)>,
    /// Digests of components that are loaded.
    pub(super) digests: BTreeSet<(String, String)>,
}

impl KnownRevisions {
    fn has(&self, spec: &PolicySpec, digest: &str) -> bool {
        self.digests.contains(&(spec.name.clone(), digest.to_owned()))
            || self
                .revisions
                .contains(&(spec.name.clone(), Revision::of(spec, digest)))
    }
}

/// Scans everything. Blocks.
pub(super) fn scan(from: &PolicySource, last: &[PolicySpec], known: &KnownRevisions) -> Result<Scan, Torn> {
    let mut found = scan_once(from, last, known);
    for _ in 1..TRIES {
        if found.is_ok() {
            break;
        }
        found = scan_once(from, last, known);
    }
    found
}

fn scan_once(from: &PolicySource, last: &[PolicySpec], known: &KnownRevisions) -> Result<Scan, Torn> {
    let mut paths = BTreeMap::new();
    for file in &from.files {
        note(&mut paths, file);
    }
    let (wanted, refused) = match (from.read)().and_then(each_once) {
        Ok(wanted) => (wanted, None),
        Err(reason) => (DesiredPolicies::from(last.to_vec()), Some(reason)),
    };
    let DesiredPolicies {
        policies: specs,
        config_text,
    } = wanted;
    let mut found = Vec::with_capacity(specs.len());
    let mut torn = None;
    for spec in specs {
        note(&mut paths, &spec.file);
        match module(&spec, known) {
            Ok(Some(module)) => found.push(Found {
                spec,
                module: Ok(module),
            }),
            Ok(None) => torn = Some(spec.file),
            Err(error) => found.push(Found {
                spec,
                module: Err(error),
            }),
        }
    }
    let moved = || paths.iter().find(|(path, real)| resolve(path) != **real);
    let torn = torn.or_else(|| Some(moved()?.0.clone()));
    let places = paths.keys().flat_map(|path| places(path)).collect();
    if let Some(file) = torn {
        return Err(Torn { file, places });
    }
    Ok(Scan {
        refused,
        config_text,
        found,
        places,
    })
}

/// Plans, checkpoints and metrics contain the names.
fn each_once(wanted: DesiredPolicies) -> Result<DesiredPolicies, String> {
    let mut names = BTreeSet::new();
    match wanted.policies.iter().find(|spec| !names.insert(&spec.name)) {
        Some(spec) => Err(format!(
            "there are two policies `{}`: names are unique",
            spec.name
        )),
        None => Ok(wanted),
    }
}

/// `None`: it changed while it was read.
fn module(spec: &PolicySpec, known: &KnownRevisions) -> Result<Option<Module>, SourceError> {
    let digest = WasmFile::digest_of(&spec.file)?;
    if known.has(spec, &digest) {
        return Ok(Some(Module { digest, wasm: None }));
    }
    let wasm = WasmFile::read(&spec.file)?;
    if wasm.digest() != digest {
        return Ok(None);
    }
    Ok(Some(Module {
        digest,
        wasm: Some(wasm),
    }))
}

fn note(paths: &mut BTreeMap<PathBuf, Option<PathBuf>>, path: &Path) {
    if !paths.contains_key(path) {
        paths.insert(path.to_owned(), resolve(path));
    }
}

/// The target of a path; `None`: there is none at the moment.
fn resolve(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok()
}

/// The directories that decide where a path leads: that of the file, those of all symbolic links on the way, and for a
/// missing one the nearest that exists.
fn places(path: &Path) -> BTreeSet<PathBuf> {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut places = BTreeSet::new();
    for step in absolute.ancestors() {
        if is_link(step)
            && let Some(parent) = step.parent()
        {
            places.insert(parent.to_owned());
            if let Ok(target) = std::fs::read_link(step)
                && let Some(beside) = parent.join(target).parent()
            {
                places.extend(nearest(beside));
            }
        }
    }
    places.extend(absolute.parent().and_then(nearest));
    places.extend(resolve(path).and_then(|real| real.parent().map(Path::to_owned)));
    places
}

fn is_link(path: &Path) -> bool {
    let metadata: io::Result<_> = path.symlink_metadata();
    metadata.is_ok_and(|metadata| metadata.is_symlink())
}

fn nearest(path: &Path) -> Option<PathBuf> {
    path.ancestors().find(|step| step.is_dir()).map(Path::to_owned)
}
