//! The blockers of one node as a few lines: hooks and held pods first; pods whose turn has not come are only counted.

use std::collections::BTreeMap;

use scupper_engine::{Reason, Time, and_more};

use super::node_progress::{NodeSnapshot, WaitsFor};
use crate::drain_status::reason_text;
use crate::messages::{count, needs_no_report, one_line};
use scupper_screen::{cut, padded, width};

/// Minimum width of a name, in columns.
const NAME: usize = 8;
/// Minimum width of the facts, in columns.
const FACTS: usize = 10;

/// The blockers of one node.
pub(super) struct Blockers<'a> {
    /// Blockers with a line of their own, the most important first.
    worth: Vec<BlockerLine>,
    /// The reasons of pods whose turn has not come.
    others: Vec<&'a str>,
}

/// The name of the blocker, a reason of the closed list, and the facts.
struct BlockerLine {
    who: String,
    word: &'static str,
    facts: String,
}

impl<'a> Blockers<'a> {
    pub(super) fn of(node: &'a NodeSnapshot, now: Time) -> Self {
        let mut waits_for: Vec<&WaitsFor> = node.waits_for.iter().collect();
        waits_for.sort_by_key(|wait| rank(wait));
        let (worth, others): (Vec<_>, Vec<_>) = waits_for.into_iter().partition(|wait| rank(wait) < TURN);
        let others = others.into_iter().filter_map(|wait| match wait {
            WaitsFor::Hook(..) | WaitsFor::Volumes(_) => None,
            WaitsFor::Pod(_, reason) => Some(reason.name()),
        });
        Self {
            worth: worth.into_iter().map(|wait| BlockerLine::of(wait, now)).collect(),
            others: others.collect(),
        }
    }

    /// The number of rows that all lines would fill.
    pub(super) fn rows(&self) -> usize {
        self.worth.len() + usize::from(!self.others.is_empty())
    }

    pub(super) fn lines(&self, rows: usize, columns: usize) -> Vec<String> {
        if rows >= self.rows() {
            let sum = (!self.others.is_empty()).then(|| self.sum(self.worth.len()));
            return self.shown(self.worth.len(), columns).chain(sum).collect();
        }
        match (rows, self.worth.first()) {
            (0, _) => Vec::new(),
            // With only one row, the most important blocker is worth more than the count.
            (1, Some(first)) => {
                let more = and_more(self.worth.len() + self.others.len() - 1);
                let columns = columns.saturating_sub(width(&more));
                let line = first.text(Columns::of(std::iter::once(first), columns));
                vec![format!("{line}{more}")]
            }
            _ => self
                .shown(rows - 1, columns)
                .chain([self.sum(rows - 1)])
                .collect(),
        }
    }

    fn shown(&self, number: usize, columns: usize) -> impl Iterator<Item = String> {
        let shown = self.worth.iter().take(number);
        let below = Columns::of(shown.clone(), columns);
        shown.map(move |line| line.text(below))
    }

    /// A summary of the blockers that are not shown, by reason.
    fn sum(&self, shown: usize) -> String {
        let mut words: BTreeMap<&str, usize> = BTreeMap::new();
        let hidden = self.worth.iter().skip(shown).map(|line| line.word);
        for word in hidden.chain(self.others.iter().copied()) {
            *words.entry(word).or_default() += 1;
        }
        let all: usize = words.values().sum();
        let mut words: Vec<_> = words.into_iter().collect();
        words.sort_by_key(|(word, number)| (std::cmp::Reverse(*number), *word));
        let words: Vec<_> = match words.as_slice() {
            [(word, _)] => vec![(*word).to_owned()],
            words => words
                .iter()
                .map(|(word, number)| format!("{number} {word}"))
                .collect(),
        };
        let head = if shown > 0 {
            format!("and {all} more")
        } else {
            count(all, "pod")
        };
        format!("  {head}: {}", words.join(", "))
    }
}

/// From this rank on, a pod merely waits for its turn.
const TURN: u8 = 4;

/// Ranks blockers; those that may need action come first.
const fn rank(wait: &WaitsFor) -> u8 {
    match wait {
        WaitsFor::Hook(..) | WaitsFor::Volumes(_) => 0,
        WaitsFor::Pod(_, reason) if !needs_no_report(reason) => 1,
        WaitsFor::Pod(_, Reason::NodeUncordoned | Reason::PlannerFailed { .. }) => 1,
        WaitsFor::Pod(_, Reason::Terminating { .. }) => 2,
        WaitsFor::Pod(_, Reason::EvictionRequested) => 3,
        WaitsFor::Pod(..) => TURN,
    }
}

impl BlockerLine {
    fn of(wait: &WaitsFor, now: Time) -> Self {
        match wait {
            WaitsFor::Hook(hook, of) => Self {
                who: format!("hook {}", one_line(&hook.policy)),
                word: "HookRunning",
                facts: hook.short_text(of, now),
            },
            WaitsFor::Volumes(volumes) => Self {
                who: "volumes".to_owned(),
                word: "VolumesAttached",
                facts: volumes.text(now),
            },
            WaitsFor::Pod(pod, reason) => Self {
                who: one_line(&pod.to_string()),
                word: reason.name(),
                facts: one_line(&reason_text(reason, now)),
            },
        }
    }

    fn text(&self, below: Columns) -> String {
        let who = cut(&self.who, below.who);
        let (who, word) = (padded(&who, below.who), padded(self.word, below.word));
        let line = format!("  {who}  {word}");
        if width(&line) + FACTS > below.columns {
            return cut(line.trim_end(), below.columns).into_owned();
        }
        cut(format!("{line}  {}", self.facts).trim_end(), below.columns).into_owned()
    }
}

/// The column widths of the lines.
#[derive(Clone, Copy)]
struct Columns {
    who: usize,
    word: usize,
    columns: usize,
}

impl Columns {
    /// Computes the widths; reasons stay visible even if names must be cut.
    fn of<'a>(lines: impl Iterator<Item = &'a BlockerLine> + Clone, columns: usize) -> Self {
        let who = lines.clone().map(|line| width(&line.who)).max().unwrap_or(0);
        let word = lines.map(|line| line.word.len()).max().unwrap_or(0);
        let room = columns.saturating_sub(word + 4).max(NAME);
        let who = who.min(room);
        Self { who, word, columns }
    }
}
