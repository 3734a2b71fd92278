//! The identity of a policy's revision: its component and all of the operator's settings for it.

use std::path::PathBuf;

use scupper_policy::sha256;
use scupper_policy_spec::PolicySpec;

/// One revision of a policy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Revision {
    /// SHA-256 of the component, in hex.
    pub(super) digest: String,
    /// SHA-256 of its settings.
    pub(super) settings: String,
}

impl Revision {
    pub(super) fn of(spec: &PolicySpec, digest: &str) -> Self {
        Self {
            digest: digest.to_owned(),
            settings: settings_digest(spec),
        }
    }
}

/// The SHA-256 of a policy's settings, in hex, as recordings name it. The component's path does not count: the folders of a
/// ConfigMap volume get new names with every change.
pub fn settings_digest(spec: &PolicySpec) -> String {
    let spec = PolicySpec {
        file: PathBuf::new(),
        ..spec.clone()
    };
    // Every field counts, including future ones; no field holds a secret.
    sha256(format!("{spec:?}").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_depends_on_the_settings_and_not_on_the_path() {
        let spec = PolicySpec {
            name: "p".to_owned(),
            file: "/a/p.wasm".into(),
            ..PolicySpec::default()
        };
        let moved = PolicySpec {
            file: "/b/p.wasm".into(),
            ..spec.clone()
        };
        let mut configured = spec.clone();
        configured.config.insert("key".to_owned(), "value".to_owned());
        assert_eq!(Revision::of(&spec, "d"), Revision::of(&moved, "d"));
        assert_ne!(Revision::of(&spec, "d"), Revision::of(&configured, "d"));
        assert_ne!(Revision::of(&spec, "d"), Revision::of(&spec, "e"));
    }
}
