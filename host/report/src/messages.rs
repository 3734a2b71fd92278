//! Short texts that several reporters share, and the reasons that need no report.

use std::collections::BTreeMap;

use scupper_engine::{Outcome, Plan, Pod, Reason, Summary, Time, Uid, VolumesLeft, named};

use scupper_common::text::spaced_line;

/// Number of pods that arrived and stay that are named in a short text.
const NAMED: usize = 3;

/// `1 pod`, `2 pods`.
pub fn count(n: usize, one: &str) -> String {
    if n == 1 {
        format!("1 {one}")
    } else {
        format!("{n} {one}s")
    }
}

/// The pods that will be evicted and may come back although the node is cordoned; `None` if there are none.
pub fn may_come_back(plan: &Plan, pods: &BTreeMap<Uid, String>) -> Option<String> {
    let leaving = plan.leaving().filter_map(|decision| pods.get(&decision.pod));
    let names: Vec<&str> = leaving.map(String::as_str).collect();
    if names.is_empty() {
        return None;
    }
    Some(format!(
        "attention: {} may come back, as {} the cordon; see --returning-pod-evictions",
        named(&names, NAMED),
        if names.len() == 1 {
            "it tolerates"
        } else {
            "they tolerate"
        }
    ))
}

/// The names of the pods that a controller may recreate on the cordoned node.
pub fn returning<'a>(pods: impl IntoIterator<Item = &'a Pod>) -> impl Iterator<Item = (Uid, String)> {
    let returns = |pod: &&Pod| pod.controller.is_some() && pod.cordon_toleration.is_some();
    let pods = pods.into_iter().filter(returns);
    pods.map(|pod| (pod.id.uid.clone(), one_line(&pod.id.to_string())))
}

/// How many pods left, and how: `8 pods evicted`, `3 pods evicted, 2 deleted`.
pub(crate) fn gone_text(summary: &Summary) -> String {
    let evicted = summary.totals.gone.saturating_sub(summary.totals.deleted) as usize;
    match (evicted, summary.totals.deleted as usize) {
        (_, 0) => format!("{} evicted", count(evicted, "pod")),
        (0, deleted) => format!("{} deleted", count(deleted, "pod")),
        (_, deleted) => format!("{} evicted, {deleted} deleted", count(evicted, "pod")),
    }
}

/// The end of a line about requests: `; 2 deletion requests`, if there were any.
pub(crate) fn deletions_text(summary: &Summary) -> String {
    match summary.totals.deletions as usize {
        0 => String::new(),
        deletions => format!("; {}", count(deletions, "deletion request")),
    }
}

/// The pods that came to the cordoned node during a drain and stay there, and why.
pub(crate) fn stayed_text(summary: &Summary) -> String {
    let named = summary.stayed.iter().take(NAMED);
    let named: Vec<_> = named.map(|(pod, reason)| format!("{pod}: {reason}")).collect();
    let more = match summary.stayed.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("; and {}", count(more, "more pod")),
    };
    format!(
        "{} came during the drain and {} on the node: {}{more}",
        count(summary.stayed.len(), "pod"),
        if summary.stayed.len() == 1 {
            "stays"
        } else {
            "stay"
        },
        one_line(&named.join("; "))
    )
}

/// What was still attached when the drain stopped waiting; `None`: nothing, or the outcome names it.
pub(crate) fn volumes_left_text(outcome: &Outcome, summary: &Summary) -> Option<String> {
    let left = summary.volumes_left.as_ref();
    let left = left.filter(|_| !matches!(outcome, Outcome::Failed { .. }));
    left.map(|left| one_line(&left.to_string()))
}

/// How the wait for volumes ended.
pub(crate) fn volumes_settled_text(left: Option<&VolumesLeft>) -> String {
    match left {
        None => "all are detached".to_owned(),
        Some(left) => format!("no longer waited for: {}", one_line(&left.to_string())),
    }
}

/// A line of a drain that began at `began`: the time since then, a topic and a text.
pub(crate) fn timed_line(began: Time, now: Time, topic: &str, text: &str) -> String {
    let gone = now.since(began).as_millis();
    format!("{:>7}.{}s  {topic:<8} {text}", gone / 1000, gone / 100 % 10)
}

/// The text about a cordon that another client lifted.
pub(crate) const UNCORDONED: &str =
    "the node was uncordoned outside Scupper: evictions are paused until it is cordoned again";

/// The text about a node that is not ready.
pub(crate) fn not_ready_text(words: &str) -> String {
    format!("{words}: its pods may not terminate")
}

/// Puts a text from outside on one line without invisible characters, so that it cannot imitate our own lines.
pub(crate) fn one_line(text: &str) -> String {
    spaced_line(text)
}

/// Every pod goes through these reasons; other lines report them.
pub(crate) const fn needs_no_report(reason: &Reason) -> bool {
    matches!(
        reason,
        Reason::NotPlanned
            | Reason::PlannerFailed { .. }
            | Reason::Kept
            | Reason::WaveNotStarted { .. }
            | Reason::HookRunning { .. }
            | Reason::ParallelLimit
            | Reason::EvictionRequested
            | Reason::NodeUncordoned
            | Reason::Terminating { .. }
    )
}

/// Whose cordon a drain leaves at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CordonLeft {
    /// None: the node takes pods.
    None,
    /// Scupper's.
    Ours,
    /// One that was there before.
    Others,
}

/// What the end of a drain leaves of the node.
#[derive(Clone, Copy, Debug)]
pub struct NodeLeft<'a> {
    /// The node.
    pub node: &'a str,
    /// The drain has succeeded.
    pub is_done: bool,
    /// The cordon.
    pub cordon: CordonLeft,
    /// Policies whose hooks have been called, and whose part is undone by the uncordon.
    pub kept_by: &'a [String],
    /// The flags of the drain that are known, each behind a space.
    pub flags: &'a str,
    /// The command that gives the node back.
    pub back: &'a str,
}

impl NodeLeft<'_> {
    /// A sentence, with what to type next.
    pub fn text(&self) -> String {
        let Self {
            node, flags, back, ..
        } = self;
        let others = if flags.is_empty() { "" } else { "other " };
        let kept = kept_text(self.kept_by);
        match (self.is_done, self.cordon) {
            (_, CordonLeft::None) => "the node takes pods".to_owned(),
            (_, CordonLeft::Others) => {
                format!("the node stays cordoned, as it was before{kept}; to give it back: {back} --force")
            }
            (true, CordonLeft::Ours) => {
                format!("the node stays cordoned{kept}; to give it back: {back}")
            }
            (false, CordonLeft::Ours) => {
                format!(
                    "the node stays cordoned{kept}; to drain it again: scupper drain {node}{flags} (add your {others}flags); to \
                     give it back: {back}"
                )
            }
        }
    }
}

/// `, and what policy slurm may have done stays`; empty: none has been called. Nobody knows here whether a call has changed anything.
fn kept_text(policies: &[String]) -> String {
    match policies {
        [] => String::new(),
        [one] => format!(", and what policy {one} may have done stays"),
        [all @ .., last] => format!(
            ", and what policies {} and {last} may have done stays",
            all.join(", ")
        ),
    }
}

/// How a drain has ended: `Drained in 3s: every pod to evict is gone`. `took`: empty if it is not known. A text that begins
/// with the name of the end, as that of a cancelled drain does, loses it.
pub fn end_text(name: &str, took: &str, why: &str) -> String {
    let said = format!("{}: ", name.to_lowercase());
    let why = why.strip_prefix(&said).unwrap_or(why);
    match took {
        "" => format!("{name}: {why}"),
        took => format!("{name} in {took}: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_in_the_plural_from_two_on() {
        assert_eq!(count(1, "pod"), "1 pod");
        assert_eq!(count(0, "pod"), "0 pods");
        assert_eq!(count(12, "wave"), "12 waves");
    }

    #[test]
    fn an_end_is_named_once() {
        assert_eq!(
            end_text("Cancelled", "2s", "cancelled: the event was deleted"),
            "Cancelled in 2s: the event was deleted"
        );
        assert_eq!(end_text("Lost", "", "lost: it is gone"), "Lost: it is gone");
        assert_eq!(end_text("Drained", "3s", "all gone"), "Drained in 3s: all gone");
    }

    #[test]
    fn the_end_names_whoever_keeps_the_node_out_of_service() {
        let left_with = |flags, is_done, cordon, kept_by: &[&str]| {
            let kept_by: Vec<_> = kept_by.iter().map(|&it| it.to_owned()).collect();
            let left = NodeLeft {
                node: "n",
                is_done,
                cordon,
                kept_by: &kept_by,
                flags,
                back: "scupper uncordon n",
            };
            left.text()
        };
        let left = |is_done, cordon, kept_by| left_with("", is_done, cordon, kept_by);
        assert_eq!(
            left_with(" --force", false, CordonLeft::Ours, &[]),
            "the node stays cordoned; to drain it again: scupper drain n --force (add your other flags); to give it back: \
             scupper uncordon n"
        );
        assert_eq!(
            left(true, CordonLeft::Ours, &[]),
            "the node stays cordoned; to give it back: scupper uncordon n"
        );
        assert_eq!(
            left(true, CordonLeft::Ours, &["slurm"]),
            "the node stays cordoned, and what policy slurm may have done stays; to give it back: scupper uncordon n"
        );
        assert_eq!(
            left(false, CordonLeft::Ours, &["a", "b", "c"]),
            "the node stays cordoned, and what policies a, b and c may have done stays; to drain it again: scupper drain n \
             (add your flags); to give it back: scupper uncordon n"
        );
        assert_eq!(
            left(true, CordonLeft::Others, &["nova"]),
            "the node stays cordoned, as it was before, and what policy nova may have done stays; to give it back: \
             scupper uncordon n --force"
        );
        assert_eq!(left(false, CordonLeft::None, &["nova"]), "the node takes pods");
    }

    #[test]
    fn foreign_text_stays_on_its_line() {
        assert_eq!(one_line("a\nb\x1b[2Jc"), "a b [2Jc");
        assert_eq!(one_line("web\u{200b}-1\u{e0041}"), r"web\u{200b}-1\u{e0041}");
    }
}
