//! What policies must still undo on a node that goes back to service: for the end of a drain, its Event and condition, and for
//! the status of a node that takes pods.

use scupper_engine::{Node, Outcome, Request, Summary, ToUndo, Trigger};

use super::messages::one_line;
use scupper_checkpoint::LeasedDrain;

/// Why, if the policy has not said it.
const UNCORDONED: &str = "the node was uncordoned without Scupper";
const NO_MARK: &str = "the Node was deleted or made anew, or the process that drained it was killed";

/// What policies must still undo on a node that no process drains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftToUndo {
    /// Each with the reason.
    pub policies: ToUndo,
    /// No end of a drain has reported it.
    pub is_news: bool,
    /// What to type.
    pub command: String,
}

impl LeftToUndo {
    /// By the node's mark; where it has none, by the drain that its Lease names, whose process is gone. While the node is
    /// cordoned, only what should have been undone by now.
    pub fn of(node: &Node, leased: Option<&LeasedDrain>) -> Self {
        match (&node.checkpoint, leased) {
            (Some(mark), _) if mark.is_under_way() => Self::default(),
            (Some(mark), _) => {
                let mut to_undo = mark.to_undo.clone();
                to_undo.retain(|_, words| !node.unschedulable || !words.is_empty());
                Self::new(to_undo, &mark.trigger, &node.name, UNCORDONED)
            }
            (None, Some(drain)) => Self::without_mark(&node.name, drain),
            (None, None) => Self::default(),
        }
    }

    /// By the drain that the Lease names, of a node that has no mark or does not exist.
    pub fn without_mark(node: &str, drain: &LeasedDrain) -> Self {
        Self::new(drain.left_to_undo(), &drain.trigger, node, NO_MARK)
    }

    /// `why`: if the policy has not said it.
    fn new(mut policies: ToUndo, trigger: &str, node: &str, why: &str) -> Self {
        let mut is_news = false;
        for words in policies.values_mut().filter(|words| words.is_empty()) {
            is_news = true;
            why.clone_into(words);
        }
        Self {
            policies,
            is_news,
            command: undo_command(trigger, node),
        }
    }

    /// A sentence for each policy.
    pub fn texts(&self) -> impl Iterator<Item = String> {
        self.policies.iter().map(|(policy, words)| text(policy, words))
    }

    /// One text, with the command.
    pub fn note(&self) -> String {
        let texts: Vec<_> = self.texts().collect();
        format!("{}; to undo it: {}", texts.join("; "), self.command)
    }
}

/// The sentences about what the end of a drain or an uncordon leaves, and the command. The outcome may give a policy's words
/// already.
pub(super) fn not_undone_texts(outcome: &Outcome, summary: &Summary) -> Vec<String> {
    let end = outcome.to_string();
    let policies = summary.to_undo.iter();
    let texts = policies.map(|(policy, words)| text(policy, if end.contains(words) { "" } else { words }));
    texts.collect()
}

/// The same as the rest of a sentence; empty: nothing is left.
pub(super) fn not_undone_note(request: &Request, outcome: &Outcome, summary: &Summary) -> String {
    let texts = not_undone_texts(outcome, summary);
    if texts.is_empty() {
        return String::new();
    }
    let command = undo_command(&request.trigger, &request.node);
    format!("; {}; to undo it: {command}", texts.join("; "))
}

/// The command that lets policies undo their part. A driver has its own configuration, and may be there now as well.
pub(super) fn undo_command(trigger: &str, node: &str) -> String {
    let config = match Trigger::of(trigger) {
        Trigger::Command => " --local --config scupper.yaml",
        Trigger::Cordon | Trigger::LifecycleEvent | Trigger::DrainRequest => "",
    };
    format!("scupper uncordon {node}{config}")
}

/// The flags of a command's drain that decide which pods may leave, each behind a space. Those of a driver's drain are its
/// configuration.
pub(super) fn typed_flags(request: &Request) -> String {
    let filters = &request.settings.filters;
    let flags = [
        (filters.force, " --force"),
        (filters.ignore_daemonsets, " --ignore-daemonsets"),
        (filters.delete_emptydir_data, " --delete-emptydir-data"),
        (filters.disable_eviction, " --disable-eviction"),
    ];
    let is_typed = Trigger::of(&request.trigger) == Trigger::Command;
    let given = flags.into_iter().filter(|(is_set, _)| is_typed && *is_set);
    given.map(|(_, flag)| flag).collect()
}

fn text(policy: &str, words: &str) -> String {
    let words = match words {
        "" => String::new(),
        words => format!(": {words}"),
    };
    one_line(&format!(
        "policy {policy} must still undo its part of the drain{words}"
    ))
}

#[cfg(test)]
mod tests {
    use scupper_engine::{Intent, Phase, Uid};

    use super::*;
    use crate::fixture;

    fn record(words: &str) -> ToUndo {
        [("slurm".to_owned(), words.to_owned())].into()
    }

    /// A node with the mark of a drain that has left this.
    fn node(phase: Phase, unschedulable: bool, words: &str) -> Node {
        let mut mark = fixture::mark("command", phase);
        mark.to_undo = record(words);
        Node {
            unschedulable,
            ..fixture::node(mark)
        }
    }

    fn drain(words: &str) -> LeasedDrain {
        LeasedDrain {
            to_undo: record(words),
            ..LeasedDrain::of(&fixture::request())
        }
    }

    #[test]
    fn a_node_that_takes_pods_names_what_is_left_and_a_cordoned_one_only_what_has_failed() {
        let left = |phase, unschedulable, words| LeftToUndo::of(&node(phase, unschedulable, words), None);
        let open = left(Phase::Finished, false, "");
        assert_eq!(open.policies, record(UNCORDONED));
        assert!(open.is_news);
        assert_eq!(
            open.command,
            "scupper uncordon worker-1 --local --config scupper.yaml"
        );
        assert_eq!(left(Phase::Finished, true, "").policies, ToUndo::new());
        for unschedulable in [true, false] {
            let failed = left(Phase::Finished, unschedulable, "it is down");
            assert_eq!(failed.policies, record("it is down"));
            assert!(!failed.is_news, "the end of the drain has reported it");
        }
        assert_eq!(left(Phase::Evicting, false, "it is down"), LeftToUndo::default());
    }

    #[test]
    fn the_lease_counts_where_the_node_has_no_mark() {
        let marked = node(Phase::Finished, false, "it is down");
        let leased = drain("");
        assert_eq!(
            LeftToUndo::of(&marked, Some(&leased)).policies,
            record("it is down")
        );
        let anew = Node {
            checkpoint: None,
            uid: Uid::new("another"),
            ..marked
        };
        for unschedulable in [true, false] {
            let anew = Node {
                unschedulable,
                ..anew.clone()
            };
            let left = LeftToUndo::of(&anew, Some(&leased));
            assert_eq!(left.policies, record(NO_MARK));
            assert!(left.is_news);
        }
        assert_eq!(LeftToUndo::of(&anew, None), LeftToUndo::default());
        // A killed process may have called any of its policies; an uncordon calls none that it does not undo.
        let mut request = fixture::request();
        request.policies = vec![scupper_engine::PolicyInfo {
            name: "slurm".to_owned(),
            phases: vec![scupper_engine::HookPhase::AfterUncordon],
            ..scupper_engine::PolicyInfo::default()
        }];
        assert_eq!(LeasedDrain::of(&request).left_to_undo(), record(""));
        request.intent = Intent::Uncordon;
        assert_eq!(LeasedDrain::of(&request).left_to_undo(), ToUndo::new());
    }

    #[test]
    fn the_end_gives_a_policys_words_once() {
        let summary = Summary {
            to_undo: record("it is down"),
            ..Summary::default()
        };
        let note = |outcome| not_undone_note(&fixture::request(), &outcome, &summary);
        let reason = "no".to_owned();
        assert_eq!(
            note(Outcome::Cancelled { reason }),
            "; policy slurm must still undo its part of the drain: it is down; to undo it: scupper uncordon worker-1"
        );
        let (policy, message) = ("slurm".to_owned(), "after-uncordon hook: it is down".to_owned());
        assert_eq!(
            note(Outcome::PolicyFailed { policy, message }),
            "; policy slurm must still undo its part of the drain; to undo it: scupper uncordon worker-1"
        );
        let clean = Summary::default();
        let reason = String::new();
        assert_eq!(
            not_undone_note(&fixture::request(), &Outcome::Cancelled { reason }, &clean),
            ""
        );
    }
}
