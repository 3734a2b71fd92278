//! The last good revisions on disk, so that a restarted driver finds a policy even when its file is missing or broken.
//!
//! `last-good.json` lists the good revisions; `DIGEST.wasm` are their components, and `DIGEST.yaml` are the
//! configurations with which they were good. A component also stays that is loaded and waits for the rest of its
//! configuration: once that is there it becomes active without being read again. Each file is checked against its name
//! before use. The directory is private to the driver, and each file is written atomically.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use scupper_engine::Time;
use scupper_policy::{PrivateDir, PrivateDirError, WasmFile};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::policy_revisions::Quarantine;
use super::revision::Revision;
use super::saved_config::WireText;
use super::scan::ConfigText;
use super::settings_texts::SettingsTexts;

pub(super) const INDEX: &str = "last-good.json";
const ENDING: &str = ".wasm";
/// About a hundred policies.
const INDEX_BYTES: u64 = 1 << 20;

/// The directory.
pub(super) struct Store {
    pub(super) dir: PrivateDir,
}

/// Why the last good revisions cannot be saved.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The directory cannot be used.
    #[error("cannot use the state directory")]
    Directory(#[source] PrivateDirError),
    /// A file in it cannot be read or written.
    #[error("cannot {what} {name} in the state directory {}", path.display())]
    File {
        /// The operation.
        what: &'static str,
        /// The file.
        name: String,
        /// The directory.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
}

/// The saved state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Saved {
    pub(super) policies: Index,
    /// The last completely good configuration.
    pub(super) config_text: Option<ConfigText>,
    /// The configurations with the revisions' settings.
    pub(super) texts: SettingsTexts,
    /// Other components whose files are kept.
    pub(super) ready: BTreeSet<String>,
}

/// The good revisions, by the policy's name.
pub(super) type Index = BTreeMap<String, SavedPolicy>;

/// The saved state of one policy.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(super) struct SavedPolicy {
    pub(super) good: Wire,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) previous: Option<Wire>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    quarantined: Vec<WireQuarantine>,
}

/// A revision.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(super) struct Wire {
    pub(super) digest: String,
    pub(super) settings: String,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
struct WireQuarantine {
    digest: String,
    settings: String,
    until_millis: Option<u64>,
    times: u32,
}

#[derive(Deserialize, Serialize)]
struct File {
    version: u32,
    policies: Index,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    configuration: Option<WireText>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    texts: Vec<WireSettings>,
}

/// A configuration, and the settings in it that a revision has.
#[derive(Deserialize, Serialize)]
struct WireSettings {
    text: WireText,
    settings: BTreeSet<String>,
}

/// The version of the index's format.
const VERSION: u32 = 1;

impl SavedPolicy {
    pub(super) fn new<'a>(
        good: &Revision,
        previous: Option<&Revision>,
        quarantined: impl Iterator<Item = &'a Quarantine>,
    ) -> Self {
        let away = |quarantine: &Quarantine| WireQuarantine {
            digest: quarantine.revision.digest.clone(),
            settings: quarantine.revision.settings.clone(),
            until_millis: quarantine.until.map(Time::as_millis),
            times: quarantine.times,
        };
        Self {
            good: Wire::of(good),
            previous: previous.map(Wire::of),
            quarantined: quarantined.map(away).collect(),
        }
    }

    /// The revisions whose components are kept, the newest first.
    pub(super) fn revisions(&self) -> impl Iterator<Item = &Wire> {
        [Some(&self.good), self.previous.as_ref()].into_iter().flatten()
    }

    pub(super) fn quarantined(&self) -> Vec<Quarantine> {
        let away = |wire: &WireQuarantine| Quarantine {
            revision: Revision {
                digest: wire.digest.clone(),
                settings: wire.settings.clone(),
            },
            until: wire.until_millis.map(Time::from_millis),
            times: wire.times,
            reason: "the revision that is wanted was rolled back before the driver was restarted".to_owned(),
        };
        self.quarantined.iter().map(away).collect()
    }
}

impl Wire {
    fn of(revision: &Revision) -> Self {
        Self {
            digest: revision.digest.clone(),
            settings: revision.settings.clone(),
        }
    }
}

impl Store {
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let dir = PrivateDir::open_with_parents(path).map_err(StoreError::Directory)?;
        Ok(Self { dir })
    }

    /// The saved state. An unreadable index does not prevent the start. Blocks.
    pub(super) fn saved(&self) -> Saved {
        let read = self.dir.read(INDEX, INDEX_BYTES);
        let file = match read {
            Ok(Some(bytes)) => serde_json::from_slice::<File>(&bytes).map_err(|error| error.to_string()),
            Ok(None) => return Saved::default(),
            Err(error) => Err(error.to_string()),
        };
        match file {
            Ok(file) if file.version == VERSION => Saved {
                policies: file.policies,
                config_text: file.configuration.and_then(|wire| self.text(&wire)),
                texts: SettingsTexts(
                    file.texts
                        .into_iter()
                        .filter_map(|wire| self.settings(wire))
                        .collect(),
                ),
                ready: BTreeSet::new(),
            },
            Ok(_) => Saved::default(),
            Err(error) => {
                let path = self.dir.path().display();
                tracing::warn!(target: "scupper::policy", "{path}/{INDEX} is not read, no last good policy is known: {error}");
                Saved::default()
            }
        }
    }

    /// Saves the good revisions, and deletes files that are no longer referenced. Components that could not be saved when
    /// they were loaded are read again from the policies' files. Blocks.
    pub(super) fn write(&self, saved: Saved, files: &[PathBuf]) -> Result<(), StoreError> {
        let Saved {
            policies: index,
            config_text,
            texts,
            ready,
        } = saved;
        let configuration = config_text
            .map(|config_text| self.keep_text(&config_text))
            .transpose()?
            .flatten();
        let texts = self.keep_settings(texts)?;
        let named: BTreeSet<String> = index
            .values()
            .flat_map(SavedPolicy::revisions)
            .map(|revision| &revision.digest)
            .chain(&ready)
            .map(|digest| file_name(digest))
            .collect();
        let file = File {
            version: VERSION,
            policies: index,
            configuration,
            texts,
        };
        let bytes = serde_json::to_vec_pretty(&file).unwrap_or_default();
        self.dir
            .write(INDEX, bytes.as_slice(), Mode::RUSR | Mode::WUSR)
            .map_err(self.failed("write", INDEX))?;
        let kept = self.dir.list(ENDING).map_err(self.failed("list", "the files"))?;
        for (name, _) in kept.iter().filter(|(name, _)| !named.contains(name)) {
            self.dir.delete(name).map_err(self.failed("delete", name))?;
        }
        let texts = file.texts.iter().map(|wire| &wire.text);
        self.sweep_texts(texts.chain(&file.configuration))?;
        self.keep_missing(named, files)
    }

    /// Saves the components that are not there, as far as the policies' files still are these.
    fn keep_missing(&self, mut named: BTreeSet<String>, files: &[PathBuf]) -> Result<(), StoreError> {
        named.retain(|name| !matches!(self.dir.file(name, WasmFile::MAX_BYTES), Ok(Some(_))));
        if named.is_empty() {
            return Ok(());
        }
        for file in files {
            if let Ok(wasm) = WasmFile::read(file)
                && named.contains(&file_name(wasm.digest()))
            {
                self.keep(&wasm)?;
            }
        }
        Ok(())
    }

    fn keep_settings(&self, texts: SettingsTexts) -> Result<Vec<WireSettings>, StoreError> {
        let mut kept = Vec::new();
        for (text, settings) in texts.0 {
            let text = self.keep_text(&text)?;
            kept.extend(text.map(|text| WireSettings { text, settings }));
        }
        Ok(kept)
    }

    fn settings(&self, wire: WireSettings) -> Option<(ConfigText, BTreeSet<String>)> {
        Some((self.text(&wire.text)?, wire.settings))
    }

    /// Saves a component. Blocks.
    pub(super) fn keep(&self, wasm: &WasmFile) -> Result<(), StoreError> {
        let name = file_name(wasm.digest());
        self.dir
            .write(&name, wasm.reader(), Mode::RUSR)
            .map_err(self.failed("write", &name))?;
        let files = self.dir.list(ENDING).map_err(self.failed("list", "the files"))?;
        let newest = files.iter().map(|(_, stat)| stat.st_mtime).max();
        self.dir
            .sweep(newest.unwrap_or_default())
            .map_err(self.failed("delete", "stale files"))
    }

    /// A component, if it exists and is unchanged. Blocks.
    pub(super) fn wasm(&self, digest: &str) -> Option<WasmFile> {
        let name = file_name(digest);
        let file = self.dir.file(&name, WasmFile::MAX_BYTES).ok()??;
        let wasm = WasmFile::read_exactly(file, digest);
        if wasm.is_some() {
            return wasm;
        }
        let path = self.dir.path().display();
        tracing::warn!(target: "scupper::policy", "{path}/{name} was changed: deleted");
        // A file that cannot be deleted is also refused the next time.
        let _gone = self.dir.delete(&name).is_ok();
        None
    }

    pub(super) fn failed(&self, what: &'static str, name: &str) -> impl Fn(io::Error) -> StoreError {
        let (name, path) = (name.to_owned(), self.dir.path().to_owned());
        move |source| StoreError::File {
            what,
            name: name.clone(),
            path: path.clone(),
            source,
        }
    }
}

/// A digest from the index must not be a path.
fn file_name(digest: &str) -> String {
    let hex: String = digest.chars().filter(char::is_ascii_hexdigit).collect();
    format!("{hex}{ENDING}")
}
