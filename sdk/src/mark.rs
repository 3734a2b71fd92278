//! The mark of a drain in another system, such as in the reason of a drained host: it shows people, monitors and later hooks
//! whose change it is. An uncordon has another name and id than the drain, so only the mark leads it to what it must undo.
//!
//! Two clusters that share the system may have nodes of the same name. So the mark names the cluster as well: by the UID of
//! the namespace `kube-system`, or by the key `cluster` of the configuration.
//!
//! ```
//! use scupper_sdk::{mark::Mark, testing::Host};
//!
//! let host = Host::new();
//! let call = host.call(scupper_sdk::Phase::BeforeDrain, scupper_sdk::Subject::Node);
//! let mark = Mark::of_drain(&call, Some("east")).unwrap();
//! assert_eq!(mark.text(), "scupper: node=node-1 cluster=east drain=uid-of-maintenance");
//! assert!(mark.is_of_drain("scupper: node=node-1 cluster=east drain=uid-of-maintenance: a word more"));
//! assert!(mark.is_of_node("scupper: node=node-1 cluster=east drain=another"));
//! assert!(!mark.is_of_node("scupper: node=node-1 cluster=west drain=another"));
//! ```

use std::fmt;

use crate::{Call, Finding, Node, Problem, cluster, config};

/// The beginning of all marks.
const OURS: &str = "scupper: node=";
/// The most characters of a mark; Nova's limit for a reason.
const CHARACTERS: usize = 255;
/// A longer name of a node leaves no room for what identifies the drain.
const NAME: usize = 120;

/// `scupper: node=<name> cluster=<cluster> drain=<id>`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    head: String,
    whole: String,
}

impl Mark {
    /// The key `cluster` of the configuration: this cluster's name in marks, if it is set.
    pub fn cluster() -> Result<Option<String>, Problem> {
        config::name("cluster")
    }

    /// The mark of the drain of this call. Without a configured name it asks which cluster this is.
    pub fn of_drain(call: &Call, cluster: Option<&str>) -> Result<Self, UnknownCluster> {
        let head = Self::of_node(&call.node, cluster)?.head;
        Ok(Self {
            whole: format!("{head}{}", call.drain.id)
                .chars()
                .take(CHARACTERS)
                .collect(),
            head,
        })
    }

    /// The mark of any drain of the node. Its text names no drain.
    pub fn of_node(node: &Node, cluster: Option<&str>) -> Result<Self, UnknownCluster> {
        let cluster = match cluster {
            Some(name) => name.to_owned(),
            None => cluster::uid().map_err(UnknownCluster)?,
        };
        let node: String = node.name.chars().take(NAME).collect();
        let head = format!("{OURS}{node} cluster={cluster} drain=");
        Ok(Self {
            whole: head.clone(),
            head,
        })
    }

    /// The text of the mark.
    pub fn text(&self) -> &str {
        &self.whole
    }

    /// Whether a drain of this node wrote this text: this one or another one.
    pub fn is_of_node(&self, text: &str) -> bool {
        text.starts_with(&self.head)
    }

    /// Whether this drain wrote this text, with or without words behind its mark.
    pub fn is_of_drain(&self, text: &str) -> bool {
        let rest = text.strip_prefix(&self.whole);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([':', ' ']))
    }

    /// Whether a drain by Scupper wrote this text, of any node in any cluster.
    pub fn is_of_scupper(text: &str) -> bool {
        text.starts_with(OURS)
    }

    /// Whether a drain by Scupper wrote this text, but of another node or in another cluster.
    pub fn is_of_another(&self, text: &str) -> bool {
        Self::is_of_scupper(text) && !self.is_of_node(text)
    }
}

/// Why there is no mark: it is unknown which cluster this is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownCluster(pub cluster::Error);

impl UnknownCluster {
    /// The finding for it, with what to do.
    pub fn finding(&self) -> Finding {
        let fix = "give the driver the right to get the namespace kube-system (deploy/components/facts/cluster), or set \
                   `cluster`";
        Finding::error("cluster", self.to_string(), fix)
    }
}

impl fmt::Display for UnknownCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "it is unknown which cluster this is, and another one may have a node of this name: {}; allow to get the \
             namespace kube-system, or set `cluster`",
            self.0
        )
    }
}

impl std::error::Error for UnknownCluster {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Description, Hooks, Outcome, Phase, Policy, Subject, description, testing::Host};

    fn mark(node: &str, cluster: &str, drain: &str) -> Mark {
        let host = Host::new();
        host.node_named(node);
        let mut call = host.call(Phase::BeforeDrain, Subject::Node);
        drain.clone_into(&mut call.drain.id);
        Mark::of_drain(&call, Some(cluster)).unwrap()
    }

    #[test]
    fn texts_of_operators_and_of_other_nodes_clusters_and_drains_are_not_this_drains() {
        let ours = mark("node-1", "c1", "d1");
        for text in [
            "",
            "kernel update",
            "scupper: node=node-10 cluster=c1 drain=d1",
            "scupper: node=node-1 cluster=c2 drain=d1",
            "scupper: node=node-1 drain=d1",
            "x scupper: node=node-1 cluster=c1 drain=d1",
        ] {
            assert!(!ours.is_of_node(text) && !ours.is_of_drain(text), "{text}");
            assert_eq!(ours.is_of_another(text), text.starts_with("scupper"), "{text}");
        }
        let other = mark("node-1", "c1", "d12");
        assert!(ours.is_of_node(other.text()) && !ours.is_of_drain(other.text()));
        assert!(ours.is_of_drain(ours.text()) && !ours.is_of_another(ours.text()));
    }

    #[test]
    fn a_mark_with_a_very_long_node_name_still_names_the_cluster_and_the_drain() {
        let node = "n".repeat(253);
        let ours = mark(&node, "c1", "d1");
        assert!(ours.text().chars().count() <= CHARACTERS);
        assert!(ours.is_of_node(ours.text()) && ours.is_of_drain(ours.text()));
        for other in [mark(&node, "c2", "d1"), mark(&node, "c1", "d2")] {
            assert!(!ours.is_of_drain(other.text()), "{}", other.text());
        }
    }

    struct Marks;

    impl Policy for Marks {
        fn describe() -> Description {
            description!("Says its mark")
        }
    }

    impl Hooks for Marks {
        fn phases() -> Vec<Phase> {
            vec![Phase::BeforeDrain]
        }

        fn step(call: &Call) -> Outcome {
            let mark = Mark::of_node(&call.node, None);
            Outcome::failed(mark.map_or_else(|error| error.to_string(), |mark| mark.whole)).into()
        }
    }

    #[test]
    fn without_a_configured_name_the_cluster_is_asked_for_and_an_outage_is_named() {
        let host = Host::new();
        let says = |words: &str| {
            let outcome = host.step::<Marks>(Phase::BeforeDrain, Subject::Node);
            assert!(format!("{outcome:?}").contains(words), "{outcome:?}");
        };
        says("scupper: node=node-1 cluster=uid-of-cluster drain=");
        host.outage(Some("no answer"));
        says("another one may have a node of this name: no answer; allow to get the namespace");
    }
}
