//! The last good configuration in the store: its unchanged text, named by its digest, and its path, so that relative
//! paths in it keep their meaning. It contains no secrets, only where they come from.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::Mode;
use scupper_policy::sha256;
use serde::{Deserialize, Serialize};

use super::scan::ConfigText;
use super::store::{INDEX, Store, StoreError};

const ENDING: &str = ".yaml";
/// More than a configuration may have.
const TEXT_BYTES: u64 = 2 << 20;

/// What the index says of it.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(super) struct WireText {
    file: String,
    digest: String,
}

/// Whether a driver that had this state directory has left a configuration there that was good. Blocks.
pub fn has_saved_configuration(state: &Path) -> bool {
    // Only looked at: a directory that is not there is not made.
    state.join(INDEX).is_file() && Store::open(state).is_ok_and(|store| store.saved().config_text.is_some())
}

impl Store {
    /// Keeps it. `None`: its path cannot be written down. Blocks.
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

    /// What was kept, if it is there and is still what it was. Blocks.
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

    /// Deletes what the index does not name any more. Blocks.
    pub(super) fn sweep_texts(&self, named: Option<&WireText>) -> Result<(), StoreError> {
        let named = named.map(|wire| name(&wire.digest));
        let kept = self.dir.list(ENDING).map_err(self.failed("list", "the files"))?;
        for (name, _) in kept.iter().filter(|(name, _)| Some(name) != named.as_ref()) {
            self.dir.delete(name).map_err(self.failed("delete", name))?;
        }
        Ok(())
    }
}

/// A digest out of the index is no path.
fn name(digest: &str) -> String {
    let hex: String = digest.chars().filter(char::is_ascii_hexdigit).collect();
    format!("{hex}{ENDING}")
}
