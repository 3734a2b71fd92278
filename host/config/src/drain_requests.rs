//! How DrainRequests are served.

use std::collections::BTreeMap;
use std::time::Duration;

use super::document::Node;
use super::place::FieldPath;
use super::problem::Problems;

const KEY: &str = "drain-requests";

/// How DrainRequests are served: what the file says, else NVSentinel's names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrainRequestsFile {
    /// Their API group.
    pub group: String,
    /// Its version.
    pub version: String,
    /// The plural name of the resource.
    pub plural: String,
    /// The namespaces whose requests are served.
    pub namespaces: Vec<String>,
    /// The type of the condition of a request whose pods are gone.
    pub complete: String,
    /// Of one whose drain runs.
    pub in_progress: String,
    /// Of one whose drain a policy holds.
    pub deferred: String,
    /// Of one whose drain ended without success.
    pub failed: String,
    /// Time limit of a request; `None`: none.
    pub timeout: Option<Duration>,
    /// A request evicts only the pods that it names.
    pub partial: bool,
}

impl Default for DrainRequestsFile {
    fn default() -> Self {
        Self {
            group: "nvsentinel.nvidia.com".to_owned(),
            version: "v1alpha1".to_owned(),
            plural: "drainrequests".to_owned(),
            namespaces: vec!["nvsentinel".to_owned()],
            complete: "DrainComplete".to_owned(),
            in_progress: "DrainInProgress".to_owned(),
            deferred: "DrainDeferred".to_owned(),
            failed: "DrainFailed".to_owned(),
            timeout: Some(Duration::from_secs(3600)),
            partial: false,
        }
    }
}

/// The settings under `drain-requests`.
pub(super) fn of(root: &Node, problems: &mut Problems) -> Option<DrainRequestsFile> {
    let node = root.get(KEY)?;
    let usual = DrainRequestsFile::default();
    let text = |node: Option<&Node>, key: &str, usual: String| {
        let given = node.and_then(|node| node.get(key)).and_then(Node::text);
        given.map_or(usual, str::to_owned)
    };
    let conditions = node.get("conditions");
    let read = DrainRequestsFile {
        group: text(Some(node), "group", usual.group),
        version: text(Some(node), "version", usual.version),
        plural: text(Some(node), "plural", usual.plural),
        namespaces: match node.get("namespaces") {
            Some(_) => node.texts_of("namespaces"),
            None => usual.namespaces,
        },
        complete: text(conditions, "complete", usual.complete),
        in_progress: text(conditions, "in-progress", usual.in_progress),
        deferred: text(conditions, "deferred", usual.deferred),
        failed: text(conditions, "failed", usual.failed),
        timeout: match node.get("timeout").and_then(Node::duration) {
            Some(timeout) => Some(timeout).filter(|timeout| !timeout.is_zero()),
            None => usual.timeout,
        },
        partial: node.get("partial").and_then(Node::boolean).unwrap_or_default(),
    };
    let path = FieldPath::default().key(KEY);
    if let Some(namespaces) = node.get("namespaces").filter(|_| read.namespaces.is_empty()) {
        let message = "names no namespace; leave the key out to serve those of nvsentinel";
        problems.add(namespaces.at, &path.key("namespaces"), message);
    }
    check_distinct(
        &read,
        conditions.unwrap_or(node),
        &path.key("conditions"),
        problems,
    );
    Some(read)
}

/// One condition cannot say two things.
fn check_distinct(read: &DrainRequestsFile, node: &Node, path: &FieldPath, problems: &mut Problems) {
    let mut seen = BTreeMap::new();
    for (key, kind) in [
        ("complete", &read.complete),
        ("in-progress", &read.in_progress),
        ("deferred", &read.deferred),
        ("failed", &read.failed),
    ] {
        if let Some(first) = seen.insert(kind, key) {
            let message = format!("{first} and {key} have the same type {kind}; each needs its own");
            problems.add(node.at, path, message);
        }
    }
}
