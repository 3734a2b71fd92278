//! The blockers of one node as a few lines: hooks and held pods first; pods whose turn has not come are only counted.

use std::borrow::Cow;
use std::collections::BTreeMap;

use scupper_engine::{PodRef, Reason, Time, and_more};

use super::node_progress::{NodeSnapshot, WaitsFor};
use crate::drain_status::reason_text;
use crate::messages::{count, needs_no_report, one_line};
use crate::status::same_reason_key;
use scupper_screen::{cut, cut_name, padded, width};

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

/// The name of the blocker, a reason of the closed list, and the facts. Pods of which the same is to be said have one line.
struct BlockerLine {
    who: String,
    word: &'static str,
    facts: String,
    /// What pods have in common that share a line; `None`: it is not about a pod.
    group: Option<Group>,
    /// How many it is about.
    number: usize,
    /// How long the one that takes longest takes: the later it ends, or the longer it has been overdue, the more.
    weight: i128,
}

#[derive(PartialEq, Eq)]
struct Group {
    /// The workload, as far as the name tells, or the budget.
    of: String,
    /// The budget holds them, so the line is its own.
    is_budget: bool,
    /// The reason, and what there is to it but numbers and times.
    said: (&'static str, String),
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
        let mut lines: Vec<BlockerLine> = Vec::new();
        for line in worth.into_iter().map(|wait| BlockerLine::of(wait, node, now)) {
            match lines.iter_mut().find(|known| known.is_like(&line)) {
                Some(known) => known.add(line),
                None => lines.push(line),
            }
        }
        Self {
            worth: lines,
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
                let all = self.worth.iter().map(|line| line.number).sum::<usize>();
                let more = and_more(all + self.others.len() - first.number);
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
        let hidden = self.worth.iter().skip(shown).map(|line| (line.word, line.number));
        for (word, number) in hidden.chain(self.others.iter().map(|word| (*word, 1))) {
            *words.entry(word).or_default() += number;
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
    fn of(wait: &WaitsFor, node: &NodeSnapshot, now: Time) -> Self {
        let (who, word, facts, group) = match wait {
            WaitsFor::Hook(hook, of) => (
                format!("hook {}", one_line(&hook.policy)),
                "HookRunning",
                hook.short_text(of, now),
                None,
            ),
            WaitsFor::Volumes(volumes) => ("volumes".to_owned(), "VolumesAttached", volumes.text(now), None),
            WaitsFor::Pod(pod, reason) => {
                let (text, group) = (one_line(&reason_text(reason, now)), Group::of(pod, reason));
                let (who, facts) = match reason {
                    Reason::BudgetExhausted { budget, .. } if group.is_budget => {
                        let known = format!("budget {} blocks it: ", one_line(budget));
                        let opens = node.closed.get(&(pod.namespace.clone(), budget.clone()));
                        let opens =
                            opens.map_or(String::new(), |change| format!("{} opens it; ", one_line(change)));
                        let budget = one_line(&format!("{}/{budget}", pod.namespace));
                        // What to do comes first: a narrow terminal cuts the rest.
                        (format!("budget {budget}"), opens + &text.replacen(&known, "", 1))
                    }
                    _ => (one_line(&pod.to_string()), text),
                };
                (who, reason.name(), facts, Some(group))
            }
        };
        let weight = match wait {
            WaitsFor::Pod(_, Reason::Terminating { until }) => i128::from(until.as_millis()),
            WaitsFor::Pod(_, Reason::TerminatingPastGrace { since, .. }) => -i128::from(since.as_millis()),
            _ => 0,
        };
        Self {
            who,
            word,
            facts,
            group,
            number: 1,
            weight,
        }
    }

    fn is_like(&self, other: &Self) -> bool {
        self.group.is_some() && self.group == other.group
    }

    /// One more of the same; what is said is true of the one that takes longest.
    fn add(&mut self, other: Self) {
        self.number += 1;
        if other.weight > self.weight {
            (self.facts, self.weight) = (other.facts, other.weight);
        }
    }

    fn is_budget(&self) -> bool {
        self.group.as_ref().is_some_and(|group| group.is_budget)
    }

    /// The reason, or how many pods a budget holds.
    fn reason(&self) -> Cow<'static, str> {
        match self.is_budget() {
            true => Cow::Owned(format!("blocks {}", count(self.number, "pod"))),
            false => Cow::Borrowed(self.word),
        }
    }

    /// Its name as it fits, with the number of the others.
    fn name(&self, columns: usize) -> String {
        let others = if self.is_budget() { 0 } else { self.number - 1 };
        let more = and_more(others);
        let name = cut_name(&self.who, columns.saturating_sub(width(&more)).max(NAME));
        cut(&format!("{name}{more}"), columns).into_owned()
    }

    fn text(&self, below: Columns) -> String {
        let who = self.name(below.who);
        let (who, word) = (padded(&who, below.who), padded(&self.reason(), below.word));
        let line = format!("  {who}  {word}");
        if width(&line) + FACTS > below.columns {
            return cut(line.trim_end(), below.columns).into_owned();
        }
        cut(format!("{line}  {}", self.facts).trim_end(), below.columns).into_owned()
    }
}

impl Group {
    fn of(pod: &PodRef, reason: &Reason) -> Self {
        let is_budget = matches!(reason, Reason::BudgetExhausted { budget, .. } if !budget.is_empty());
        let workload = match pod.name.rsplit_once('-') {
            _ if is_budget => "",
            Some((workload, _)) => workload,
            None => &*pod.name,
        };
        let (word, what) = same_reason_key(reason);
        Self {
            of: format!("{}/{workload}", pod.namespace),
            is_budget,
            said: (word, what.to_owned()),
        }
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
        let who = lines.clone().map(|line| width(&line.name(usize::MAX)));
        let who = who.max().unwrap_or(0);
        let word = lines.map(|line| line.reason().len()).max().unwrap_or(0);
        let room = columns.saturating_sub(word + 4).max(NAME);
        let who = who.min(room);
        Self { who, word, columns }
    }
}
