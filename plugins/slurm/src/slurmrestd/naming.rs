//! The node's name in Slurm.

use scupper_sdk::{Node, Pod};

/// The source of the Slurm node's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Naming {
    /// The Kubernetes node's name.
    #[default]
    Name,
    /// Its part before the first dot.
    ShortName,
    /// The value of a label of the node.
    Label(String),
    /// The value of an annotation of the node.
    Annotation(String),
    /// Each Slurm pod is a Slurm node, with Slinky's name for it.
    Pods,
}

impl Naming {
    /// Reads `name`, `short-name`, `label:KEY`, `annotation:KEY` or `pods`.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let key = |prefix: &str| {
            text.strip_prefix(prefix)
                .map(str::trim)
                .filter(|key| !key.is_empty())
        };
        match text {
            "name" => Some(Self::Name),
            "short-name" => Some(Self::ShortName),
            "pods" => Some(Self::Pods),
            _ => key("label:")
                .map(|key| Self::Label(key.to_owned()))
                .or_else(|| key("annotation:").map(|key| Self::Annotation(key.to_owned()))),
        }
    }

    /// The names of the Slurm nodes. `Err`: what is missing.
    pub(crate) fn names(
        &self,
        table: &[(String, String)],
        node: &Node,
        workers: &[&Pod],
    ) -> Result<Vec<String>, String> {
        if let Some((_, name)) = table.iter().find(|(known, _)| *known == node.name) {
            return Ok(vec![name.clone()]);
        }
        let one = |name: Option<&str>, what: String| match name.map(str::trim) {
            Some(name) if !name.is_empty() => Ok(vec![name.to_owned()]),
            _ => Err(what),
        };
        match self {
            Self::Name => one(Some(&node.name), String::new()),
            Self::ShortName => one(node.name.split('.').next(), String::new()),
            Self::Label(key) => one(node.label(key), format!("the node has no label {key}")),
            Self::Annotation(key) => one(node.annotation(key), format!("the node has no annotation {key}")),
            Self::Pods => {
                let mut names: Vec<String> = workers.iter().map(|pod| of_pod(node, pod)).collect();
                names.sort();
                names.dedup();
                Ok(names)
            }
        }
    }
}

/// The name that slurm-operator uses.
pub(crate) fn of_pod(node: &Node, pod: &Pod) -> String {
    let name = if !pod.hostname.is_empty() {
        &pod.hostname
    } else if pod.host_network {
        &node.name
    } else {
        &pod.name
    };
    name.clone()
}
