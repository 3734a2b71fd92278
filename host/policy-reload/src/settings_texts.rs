//! The configurations that had the settings of the active and the previous revisions: a revision that returns in a later
//! process returns with its own settings, not with those of the current configuration.

use std::collections::BTreeSet;

use super::scan::ConfigText;

/// Each text with the settings found in it, as [`super::revision::Revision`] names them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SettingsTexts(pub(super) Vec<(ConfigText, BTreeSet<String>)>);

impl SettingsTexts {
    /// This text has these settings.
    pub(super) fn note(&mut self, text: &ConfigText, settings: BTreeSet<String>) {
        self.retain(|known| !settings.contains(known));
        self.0.push((text.clone(), settings));
    }

    /// Forgets the other settings.
    pub(super) fn retain(&mut self, is_used: impl Fn(&String) -> bool) {
        for (_, settings) in &mut self.0 {
            settings.retain(&is_used);
        }
        self.0.retain(|(_, settings)| !settings.is_empty());
    }

    /// A text with these settings.
    pub(super) fn of(&self, settings: &str) -> Option<&ConfigText> {
        let found = self.0.iter().find(|(_, known)| known.contains(settings));
        found.map(|(text, _)| text)
    }
}
