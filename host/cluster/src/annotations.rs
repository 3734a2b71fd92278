//! Reports why a node's annotations are full: the largest ones, and what to delete.

use super::Cluster;
use super::node::DRAIN_ANNOTATION;
use super::transport::{Fault, escaped};
use super::wire::{MetaOnly, Texts};

/// Maximum total size of an object's annotations, as the API server counts it.
const ALL_BYTES: usize = 256 * 1024;

/// Maximum number of annotations to name.
const NAMED: usize = 3;

impl Fault {
    /// True for a 422 to a write after which the annotations would exceed the API server's limit.
    pub(super) fn is_of_full_annotations(&self) -> bool {
        matches!(self, Self::Refused(422, status)
            if status.message.contains("metadata.annotations") && status.message.contains("Too long"))
    }
}

impl Cluster {
    /// Explains why a drain's checkpoint of this many bytes does not fit, and what to do.
    pub(super) async fn full_annotations(&self, node: &str, checkpoint: usize) -> String {
        let path = format!("/api/v1/nodes/{}", escaped(node));
        let annotations = match self.get::<MetaOnly>(&path).await {
            Ok(found) => found.metadata.annotations,
            // The message then names no annotations.
            Err(_unread) => Texts::new(),
        };
        full_annotations_text(node, checkpoint, annotations)
    }
}

fn full_annotations_text(node: &str, checkpoint: usize, mut annotations: Texts) -> String {
    annotations.remove(DRAIN_ANNOTATION);
    let size = |(key, value): (&String, &String)| key.len().saturating_add(value.len());
    let all: usize = annotations.iter().map(size).sum();
    let mut largest: Vec<(usize, &String)> = annotations.iter().map(|pair| (size(pair), pair.0)).collect();
    largest.sort_unstable_by(|one, other| other.cmp(one));
    largest.truncate(NAMED);
    let named: Vec<String> = largest
        .iter()
        .map(|(bytes, key)| format!("{key} ({bytes} bytes)"))
        .collect();
    let start = format!(
        "the checkpoint of this drain ({checkpoint} bytes) does not fit: all annotations of node {node} together may have \
         {ALL_BYTES} bytes"
    );
    match largest.first() {
        None => format!("{start}; delete those that are not needed, or the drain cannot go on"),
        Some((_, key)) => format!(
            "{start}, and others have {all}, most of all {}; delete what is not needed, for instance `kubectl annotate \
             node {node} {key}-`",
            named.join(", ")
        ),
    }
}
