//! Parses a URL into kind, namespace, name and subresource.

use std::sync::Arc;

use super::kinds::Kind;
use super::table::Key;

/// The target of a path.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) kind: Arc<Kind>,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
}

impl Target {
    /// `None` for a path without a served resource.
    pub(crate) fn parse(path: &str, kinds: &[Arc<Kind>]) -> Option<Self> {
        let mut parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (group, version) = match parts.as_slice() {
            ["api", version, ..] => ("", *version),
            ["apis", group, version, ..] => (*group, *version),
            _ => return None,
        };
        parts.drain(..if group.is_empty() { 2 } else { 3 });
        let (namespace, rest): (Option<&str>, &[&str]) = match parts.as_slice() {
            ["namespaces", _] | ["namespaces", _, "status" | "finalize"] | ["namespaces"] => {
                (None, parts.as_slice())
            }
            ["namespaces", namespace, rest @ ..] => (Some(namespace), rest),
            rest => (None, rest),
        };
        let (plural, name, subresource) = match rest {
            [plural] => (plural, None, None),
            [plural, name] => (plural, Some(*name), None),
            [plural, name, subresource] => (plural, Some(*name), Some(*subresource)),
            _ => return None,
        };
        let kind = kinds
            .iter()
            .find(|it| it.group == group && it.version == version && it.plural == *plural)?;
        if (!kind.namespaced && namespace.is_some())
            || (kind.namespaced && namespace.is_none() && name.is_some())
        {
            return None;
        }
        Some(Self {
            kind: Arc::clone(kind),
            namespace: namespace.map(str::to_owned),
            name: name.map(str::to_owned),
            subresource: subresource.map(str::to_owned),
        })
    }

    /// The key of the named object.
    pub(crate) fn key(&self) -> Key {
        Key::new(
            &self.kind,
            self.namespace.as_deref().unwrap_or_default(),
            self.name.as_deref().unwrap_or_default(),
        )
    }
}

/// The parameters of a query.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(pub(crate) Vec<(String, String)>);

impl Query {
    /// The value of a parameter; empty where it is absent.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.0
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
            .unwrap_or_default()
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.text(name).parse().ok()
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        matches!(self.text(name), "true" | "1")
    }

    pub(crate) fn dry_run(&self) -> bool {
        self.text("dryRun") == "All"
    }
}
