//! What tells one revision of a policy from another: its component, and all that the operator says about it.

use std::path::PathBuf;

use scupper_policy::sha256;
use scupper_policy_spec::PolicySpec;

/// One revision of a policy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Revision {
    /// SHA-256 of the component, in hex.
    pub(super) digest: String,
    /// SHA-256 of what was said about it.
    pub(super) settings: String,
}

impl Revision {
    pub(super) fn of(spec: &PolicySpec, digest: &str) -> Self {
        Self {
            digest: digest.to_owned(),
            settings: settings(spec),
        }
    }
}

/// Where the component lies is no part of it: the folders of a ConfigMap volume have new names after every change.
fn settings(spec: &PolicySpec) -> String {
    let spec = PolicySpec {
        file: PathBuf::new(),
        ..spec.clone()
    };
    // Every field counts, those of the future, too; and no field holds a secret.
    sha256(format!("{spec:?}").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_counts_and_where_it_lies_does_not() {
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
