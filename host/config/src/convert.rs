//! Converts a document to policy specifications. Values of the wrong shape were reported by the check and are skipped
//! here; this module checks the fields that depend on each other, so that both kinds of problems are reported at once.
//!
//! It does not use serde. A `Deserialize` stops at the first wrong value and drops the places, but here wrong values are
//! skipped, and the fields that depend on each other are reported with their places. A deserializer for the document
//! would be longer than the few accessors at the end of this file, and paths, quantities and limits would still be
//! converted by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use scupper_common::text::{nearest, one_line};
use scupper_policy_spec::{
    Capability, FailurePolicy, Grant, HttpGrant, HttpGrantError, Limits, Networks, OnFailure, PolicyMode,
    PolicySpec, SecretGrant, SecretSource, SpecSource, read_http_origin,
};

use super::document::{Entry, Node, Value};
use super::limits::{LimitField, slots};
use super::place::FieldPath;
use super::problem::Problems;
use super::{scalar, units};

/// Bytes of a wrong name that are shown.
const NAME_BYTES: usize = 60;

/// Creates the policies. `folder`: the base of relative paths.
pub(super) fn policies(root: &Node, folder: &Path, problems: &mut Problems) -> Vec<PolicySpec> {
    let path = FieldPath::default().key("policies");
    let Some(policies) = root.get("policies") else {
        return Vec::new();
    };
    let mut names = BTreeMap::new();
    let mut specs = Vec::new();
    for (index, node) in policies.items().iter().enumerate() {
        let path = path.item(index);
        if let Some(name) = node.get("name")
            && let Some(text) = name.text()
            && let Some(first) = names.insert(text, index)
        {
            let message = format!("policies[{first}] has this name already; names are unique");
            problems.add(name.at, &path.key("name"), message);
        }
        let mut policy = Policy { folder, problems };
        specs.push(policy.spec(node, &path));
    }
    check_modes(policies, &path, problems);
    specs
}

/// Only a shadow stands for another policy, and that is an active one.
fn check_modes(policies: &Node, path: &FieldPath, problems: &mut Problems) {
    let active = || {
        let active = policies.items().iter().filter(|node| !is_shadow(node));
        active.filter_map(|node| node.get("name")?.text())
    };
    for (index, node) in policies.items().iter().enumerate() {
        let Some((given, replaced)) = node
            .get("instead-of")
            .and_then(|given| Some((given, given.text()?)))
        else {
            continue;
        };
        let message = if !is_shadow(node) {
            "instead-of needs mode: shadow; add it, or remove instead-of".to_owned()
        } else if active().any(|name| name == replaced) {
            continue;
        } else {
            let hint = match nearest(replaced, active()) {
                Some(name) => format!("did you mean {name}?"),
                None => "remove instead-of to try the policy as an addition to the chain".to_owned(),
            };
            format!(
                "there is no active policy `{}`; {hint}",
                one_line(replaced, NAME_BYTES)
            )
        };
        problems.add(given.at, &path.item(index).key("instead-of"), message);
    }
}

fn is_shadow(node: &Node) -> bool {
    node.get("mode").and_then(Node::text) == Some("shadow")
}

fn mode(node: &Node) -> PolicyMode {
    match is_shadow(node) {
        true => PolicyMode::Shadow {
            instead_of: node.get("instead-of").and_then(Node::text).map(str::to_owned),
        },
        false => PolicyMode::Active,
    }
}

struct Policy<'a> {
    folder: &'a Path,
    problems: &'a mut Problems,
}

impl Policy<'_> {
    fn spec(&mut self, node: &Node, path: &FieldPath) -> PolicySpec {
        let grants = node.get("grants");
        let grant = |key: &str| grants.and_then(|grants| grants.get(key));
        let http: Vec<HttpGrant> = grant("http")
            .map(|http| self.http(http, &path.key("grants").key("http")))
            .unwrap_or_default();
        let secrets = grant("secrets").map(|secrets| {
            let path = path.key("grants").key("secrets");
            self.secrets(secrets, &path, &http)
        });
        PolicySpec {
            name: node.text_of("name"),
            file: node.get("module").map(|file| self.path(file)).unwrap_or_default(),
            sha256: node
                .get("sha256")
                .and_then(Node::text)
                .map(str::to_ascii_lowercase),
            grants: grants.map(listed_grants).unwrap_or_default(),
            secrets: secrets.unwrap_or_default(),
            http,
            wasi: grant("wasi").and_then(Node::boolean).unwrap_or_default(),
            config: node.get("config").map(config).unwrap_or_default(),
            limits: limits(node.get("limits")),
            on_failure: on_failure(node.get("on-failure")),
            node_selector: node.get("node-selector").map(labels).unwrap_or_default(),
            mode: mode(node),
            spec_source: SpecSource::File,
        }
    }

    fn path(&self, node: &Node) -> PathBuf {
        self.folder.join(node.text().unwrap_or_default())
    }

    fn http(&mut self, list: &Node, path: &FieldPath) -> Vec<HttpGrant> {
        let mut grants = Vec::new();
        for (index, node) in list.items().iter().enumerate() {
            let ca = node.get("ca");
            let grant = HttpGrant {
                origin: node.get("origin").map(origin).unwrap_or_default(),
                methods: node.texts_of("methods"),
                paths: node.texts_of("paths"),
                networks: networks(&node.texts_of("networks")),
                ca: ca.map(|ca| self.path(ca)),
            };
            // Errors in a single field have been reported with that field.
            if let Some(ca) = ca
                && let Err(error @ HttpGrantError::CaWithoutTls) = grant.check()
            {
                self.problems
                    .add(ca.at, &path.item(index).key("ca"), error.to_string());
            }
            grants.push(grant);
        }
        grants
    }

    fn secrets(&mut self, list: &Node, path: &FieldPath, http: &[HttpGrant]) -> Vec<SecretGrant> {
        let mut names = BTreeSet::new();
        let mut secrets = Vec::new();
        for (index, node) in list.items().iter().enumerate() {
            let path = path.item(index);
            if let Some(name) = node.get("name")
                && let Some(text) = name.text()
                && !names.insert(text)
            {
                self.problems.add(
                    name.at,
                    &path.key("name"),
                    "another secret of this policy has this name",
                );
            }
            let origins = node.get("origins");
            for (index, item) in origins.map(Node::items).unwrap_or_default().iter().enumerate() {
                self.granted(item, &path.key("origins").item(index), http);
            }
            if let Some(from) = node
                .get("captured-from")
                .and_then(|captured| captured.get("origin"))
            {
                self.granted(from, &path.key("captured-from").key("origin"), http);
            }
            let Some(source) = self.source(node) else {
                continue;
            };
            secrets.push(SecretGrant {
                name: node.text_of("name"),
                source,
                origins: origins
                    .map(Node::items)
                    .unwrap_or_default()
                    .iter()
                    .map(origin)
                    .collect(),
            });
        }
        secrets
    }

    fn source(&self, node: &Node) -> Option<SecretSource> {
        if let Some(file) = node.get("file") {
            return Some(SecretSource::File(self.path(file)));
        }
        if let Some(secret) = node.get("secret") {
            return Some(SecretSource::Kubernetes {
                namespace: secret.text_of("namespace"),
                name: secret.text_of("name"),
                key: secret.text_of("key"),
            });
        }
        let captured = node.get("captured-from")?;
        Some(SecretSource::Captured {
            origin: captured.get("origin").map(origin).unwrap_or_default(),
            header: captured.text_of("header"),
        })
    }

    /// A secret for an origin without granted requests is a mistake.
    fn granted(&mut self, node: &Node, path: &FieldPath, http: &[HttpGrant]) {
        let Some(Ok(origin)) = node.text().map(read_http_origin) else {
            return;
        };
        if http.iter().all(|grant| grant.origin != origin) {
            let message = format!("no request may go to {origin}: also grant it under http");
            self.problems.add(node.at, path, message);
        }
    }
}

fn listed_grants(grants: &Node) -> Vec<Grant> {
    let kinds = [
        Capability::NodeAnnotations,
        Capability::PodAnnotations,
        Capability::Events,
        Capability::Facts,
    ];
    let of = |capability: Capability| {
        let targets = grants.texts_of(capability.as_str()).into_iter();
        targets.map(move |target| Grant { capability, target })
    };
    kinds.into_iter().flat_map(of).collect()
}

fn origin(node: &Node) -> String {
    let text = node.text().unwrap_or_default();
    read_http_origin(text).unwrap_or_else(|_| text.to_owned())
}

fn networks(words: &[String]) -> Networks {
    let has = |word: &str| words.iter().any(|given| given == word);
    Networks {
        loopback: has("loopback"),
        private: has("private"),
    }
}

/// Scalars as they are written; lists and maps as JSON.
fn config(node: &Node) -> BTreeMap<String, String> {
    let text = |node: &Node| match &node.value {
        Value::Scalar { text, .. } => text.clone(),
        _ => node.to_json().to_string(),
    };
    let entries = node.entries().iter();
    entries
        .map(|entry| (entry.key.clone(), text(&entry.value)))
        .collect()
}

fn limits(node: Option<&Node>) -> Limits {
    let mut limits = Limits::default();
    for (name, slot) in slots(&mut limits) {
        let Some(given) = node.and_then(|node| node.get(name)) else {
            continue;
        };
        let number = given.count();
        match slot {
            LimitField::Count(count) => {
                *count = number.and_then(|number| number.try_into().ok()).unwrap_or(*count)
            }
            LimitField::Rate(rate) => {
                *rate = number.and_then(|number| number.try_into().ok()).unwrap_or(*rate)
            }
            LimitField::Duration(span) => *span = given.duration().unwrap_or(*span),
        }
    }
    limits
}

fn on_failure(node: Option<&Node>) -> OnFailure {
    let failure_policy = |key: &str| match node.and_then(|node| node.get(key)).and_then(Node::text) {
        Some("refuse") => Some(FailurePolicy::Refuse),
        Some("ignore") => Some(FailurePolicy::Ignore),
        Some("hold") => Some(FailurePolicy::Hold),
        _ => None,
    };
    OnFailure::new(failure_policy("planner"), failure_policy("hooks"))
}

fn labels(node: &Node) -> BTreeMap<String, String> {
    let label = |entry: &Entry| Some((entry.key.clone(), entry.value.text()?.to_owned()));
    node.entries().iter().filter_map(label).collect()
}

impl Node {
    /// No deeper than a document may be.
    pub(super) fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Scalar { text, plain: true } => scalar::to_json(text),
            Value::Scalar { text, plain: false } => text.as_str().into(),
            Value::List(items) => items.iter().map(Self::to_json).collect(),
            Value::Map(entries) => entries
                .iter()
                .map(|entry| (entry.key.clone(), entry.value.to_json()))
                .collect(),
            Value::Broken => serde_json::Value::Null,
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        let entry = self.entries().iter().find(|entry| entry.key == key)?;
        Some(&entry.value)
    }

    pub(super) fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Map(entries) => entries,
            _ => &[],
        }
    }

    pub(super) fn items(&self) -> &[Self] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    fn text_of(&self, key: &str) -> String {
        self.get(key).and_then(Self::text).unwrap_or_default().to_owned()
    }

    pub(super) fn texts(&self) -> Vec<String> {
        let items = self.items().iter();
        items.filter_map(Self::text).map(str::to_owned).collect()
    }

    pub(super) fn texts_of(&self, key: &str) -> Vec<String> {
        self.get(key).map(Self::texts).unwrap_or_default()
    }

    pub(super) fn whole(&self) -> Option<i64> {
        scalar::whole(self.text()?)
    }

    /// A number that may have a unit.
    fn count(&self) -> Option<u64> {
        let whole = self.whole().and_then(|number| number.try_into().ok());
        whole.or_else(|| units::quantity(self.text()?))
    }

    pub(super) fn boolean(&self) -> Option<bool> {
        Some(self.text()?.eq_ignore_ascii_case("true"))
    }

    pub(super) fn duration(&self) -> Option<Duration> {
        units::duration(self.text()?)
    }
}
