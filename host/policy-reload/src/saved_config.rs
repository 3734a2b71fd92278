//! Good configurations in the store: each its unchanged text, named by its digest, and its path, so that relative paths
//! in it keep their meaning. They contain no secrets, only their sources.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::Mode;
use scupper_policy::sha256;
use serde::{Deserialize, Serialize};

use super::scan::ConfigText;
use super::store::{INDEX, Store, StoreError};

const ENDING: &str = ".yaml";
/// More than a valid configuration has.
const TEXT_BYTES: u64 = 2 << 20;

/// Its entry in the index.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(super) struct WireText {
    file: String,
    digest: String,
}

/// Whether a driver has left a good configuration in this state directory. Blocks.
pub fn has_saved_configuration(state: &Path) -> bool {
    // Read only: a missing directory is not created.
    state.join(INDEX).is_file() && Store::open(state).is_ok_and(|store| store.saved().config_text.is_some())
}

impl Store {
    /// Saves it. `None`: its path is not valid UTF-8. Blocks.
    pub(super) fn keep_text(&self, config_text: &ConfigText) -> Result<Option<WireText>, StoreError> {
        let Some(file) = config_text.file.to_str() else {
            return Ok(None);
        };
        let wire = WireText {
            file: file.to_owned(),
            digest: sha256(config_text.text.as_bytes()),
        };
        let name = name(&wire.digest);
        if self.text(&wire).is_none() {
            self.dir
                .write(&name, config_text.text.as_bytes(), Mode::RUSR)
                .map_err(self.failed("write", &name))?;
        }
        Ok(Some(wire))
    }

    /// The saved configuration, if it exists and is unchanged. Blocks.
    pub(super) fn text(&self, wire: &WireText) -> Option<ConfigText> {
        let bytes = self.dir.read(&name(&wire.digest), TEXT_BYTES).ok()??;
        if sha256(&bytes) != wire.digest {
            let path = self.dir.path().display();
            tracing::warn!(target: "scupper::policy", "the configuration that was kept in {path} was changed: it is not used");
            return None;
        }
        Some(ConfigText {
            file: PathBuf::from(&wire.file),
            text: Arc::from(String::from_utf8(bytes).ok()?),
        })
    }

    /// Deletes files that the index no longer names. Blocks.
    pub(super) fn sweep_texts<'a>(
        &self,
        named: impl Iterator<Item = &'a WireText>,
    ) -> Result<(), StoreError> {
        let named: BTreeSet<String> = named.map(|wire| name(&wire.digest)).collect();
        let kept = self.dir.list(ENDING).map_err(self.failed("list", "the files"))?;
        for (name, _) in kept.iter().filter(|(name, _)| !named.contains(name)) {
            self.dir.delete(name).map_err(self.failed("delete", name))?;
        }
        Ok(())
    }
}

/// A digest from the index must not be a path.
fn name(digest: &str) -> String {
    let hex: String = digest.chars().filter(char::is_ascii_hexdigit).collect();
    format!("{hex}{ENDING}")
}
