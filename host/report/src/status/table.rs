//! Fits the state of nodes to the terminal: the terminal never wraps a line, and if there is too much, the stuck pods
//! are shown and the rest is counted.

use scupper_engine::Time;

use super::budgets::groups;
use super::lines::{head_lines, name_width, pod_lines, tail_lines};
use super::{NodeStatus, needs_no_report};
use crate::pod_list::PodList;
use scupper_screen::{Size, fold, share};

/// Formats all nodes, with as many lines of each as fit.
pub fn status_table<'a>(
    nodes: impl IntoIterator<Item = &'a NodeStatus>,
    room: Size,
    now: Time,
    list: PodList,
) -> Vec<String> {
    let parts = nodes
        .into_iter()
        .map(|status| NodeRows::of(status, room.columns, now, list));
    let parts: Vec<NodeRows> = parts.collect();
    let wanted: Vec<usize> = parts.iter().map(NodeRows::rows).collect();
    let all: usize = wanted.iter().sum();
    if all <= room.rows {
        return parts.iter().flat_map(NodeRows::whole).cloned().collect();
    }
    // Each node gets at least one line, or is counted.
    let fit = if parts.len() > room.rows {
        room.rows.saturating_sub(1)
    } else {
        parts.len()
    };
    let unseen = parts.len() - fit;
    let rows = room.rows - usize::from(unseen > 0);
    let rows = share(rows, wanted.get(..fit).unwrap_or_default());
    let mut lines: Vec<String> = parts
        .iter()
        .zip(rows)
        .flat_map(|(part, rows)| part.within(rows, room.columns))
        .collect();
    if unseen > 0 {
        lines.extend(
            fold(&format!("and {unseen} more nodes"), room.columns)
                .into_iter()
                .take(1),
        );
    }
    lines
}

/// The rows of one node.
struct NodeRows {
    head: Vec<String>,
    pods: Vec<PodRows>,
    tail: Vec<String>,
}

/// The rows about some pods, or those about their budget.
struct PodRows {
    lines: Vec<String>,
    /// How many pods the lines are the only ones about.
    pods: usize,
    /// They are held by more than their turn and their own termination.
    is_stuck: bool,
}

impl NodeRows {
    fn of(status: &NodeStatus, columns: usize, now: Time, list: PodList) -> Self {
        let folded = |lines: Vec<String>| -> Vec<String> {
            lines.iter().flat_map(|line| fold(line, columns)).collect()
        };
        let held = status.remaining_pods(now);
        let unlisted = status.unlisted(&held, list);
        let groups = groups(status, &held, list);
        let width = name_width(&groups);
        let mut pods = Vec::new();
        for group in &groups {
            let head = folded(group.head_lines(status, now));
            pods.extend((!head.is_empty()).then_some(PodRows {
                lines: head,
                pods: 0,
                is_stuck: true,
            }));
            pods.extend(group.rows.iter().map(|row| {
                let reason = row.held.reason.as_ref();
                PodRows {
                    lines: folded(pod_lines(group, row, width, status, now)),
                    pods: row.pods,
                    is_stuck: reason.is_some_and(|reason| !needs_no_report(reason)),
                }
            }));
        }
        Self {
            head: folded(head_lines(status, now, unlisted)),
            pods,
            tail: folded(tail_lines(status, now, unlisted)),
        }
    }

    fn whole(&self) -> impl Iterator<Item = &String> {
        let pods = self.pods.iter().flat_map(|pod| &pod.lines);
        self.head.iter().chain(pods).chain(&self.tail)
    }

    fn rows(&self) -> usize {
        self.whole().count()
    }

    /// The head, and as many pods as fit, stuck ones first.
    fn within(&self, rows: usize, columns: usize) -> Vec<String> {
        if rows >= self.rows() {
            return self.whole().cloned().collect();
        }
        let mut lines: Vec<String> = self.head.iter().take(rows).cloned().collect();
        let stuck = self.pods.iter().filter(|pod| pod.is_stuck);
        let others = self.pods.iter().filter(|pod| !pod.is_stuck);
        let mut shown = 0;
        for pod in stuck.chain(others) {
            // One row is needed for the number of further pods.
            if lines.len() + pod.lines.len() + 1 > rows {
                break;
            }
            lines.extend(pod.lines.iter().cloned());
            shown += pod.pods;
        }
        let all = self.pods.iter().map(|it| it.pods).sum::<usize>();
        if lines.len() < rows && shown < all {
            let more = format!("    and {} more", all - shown);
            lines.extend(fold(&more, columns).into_iter().take(1));
        }
        lines
    }
}
