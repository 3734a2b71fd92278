//! What one node waits for as a few lines: hooks and pods that are held first, pods whose turn has not come counted.

use std::collections::BTreeMap;

use scupper_engine::{Duration, Reason, Time};

use super::course::{Hold, Standing};
use super::text::{cut, padded, width};
use crate::status::reason_words;
use crate::view::HookView;
use crate::words::{count, is_ordinary, one_line};

/// Fewer columns than this are left to no name.
const NAME: usize = 8;
/// In fewer columns than this no fact can be told.
const FACTS: usize = 10;

/// What a node waits for.
pub(super) struct Waits<'a> {
    /// Worth a line each, in the order of how much they matter.
    worth: Vec<Line>,
    /// Pods whose turn has not come, each by its reason.
    others: Vec<&'a str>,
}

/// What it is, in a word of the closed list, and the facts.
struct Line {
    who: String,
    word: &'static str,
    facts: String,
}

impl<'a> Waits<'a> {
    pub(super) fn of(node: &'a Standing, now: Time) -> Self {
        let mut holds: Vec<&Hold> = node.holds.iter().collect();
        holds.sort_by_key(|hold| rank(hold));
        let (worth, others): (Vec<_>, Vec<_>) = holds.into_iter().partition(|hold| rank(hold) < TURN);
        let others = others.into_iter().filter_map(|hold| match hold {
            Hold::Hook(..) => None,
            Hold::Pod(_, reason) => Some(reason.name()),
        });
        Self {
            worth: worth.into_iter().map(|hold| Line::of(hold, now)).collect(),
            others: others.collect(),
        }
    }

    /// As many as it would fill.
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
            // Rather the one that matters most than how many there are.
            (1, Some(first)) => {
                let more = format!(" and {} more", self.worth.len() + self.others.len() - 1);
                let columns = columns.saturating_sub(width(&more));
                let line = first.text(Below::of(std::iter::once(first), columns));
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
        let below = Below::of(shown.clone(), columns);
        shown.map(move |line| line.text(below))
    }

    /// What is not shown, by its words.
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

/// From here on it is only a pod's turn that has not come.
const TURN: u8 = 4;

/// What somebody may have to do something about comes first.
const fn rank(hold: &Hold) -> u8 {
    match hold {
        Hold::Hook(..) => 0,
        Hold::Pod(_, reason) if !is_ordinary(reason) => 1,
        Hold::Pod(_, Reason::NodeUncordoned | Reason::PlannerFailed { .. }) => 1,
        Hold::Pod(_, Reason::Terminating { .. }) => 2,
        Hold::Pod(_, Reason::EvictionRequested) => 3,
        Hold::Pod(..) => TURN,
    }
}

impl Line {
    fn of(hold: &Hold, now: Time) -> Self {
        match hold {
            Hold::Hook(hook, of) => Self {
                who: format!("hook {}", one_line(&hook.policy)),
                word: "HookRunning",
                facts: hook_words(hook, of, now),
            },
            Hold::Pod(pod, reason) => Self {
                who: one_line(&pod.to_string()),
                word: reason.name(),
                facts: one_line(&reason_words(reason, now)),
            },
        }
    }

    fn text(&self, below: Below) -> String {
        let who = cut(&self.who, below.who);
        let (who, word) = (padded(&who, below.who), padded(self.word, below.word));
        let line = format!("  {who}  {word}");
        if width(&line) + FACTS > below.columns {
            return cut(line.trim_end(), below.columns).into_owned();
        }
        cut(format!("{line}  {}", self.facts).trim_end(), below.columns).into_owned()
    }
}

/// How lines stand below one another.
#[derive(Clone, Copy)]
struct Below {
    who: usize,
    word: usize,
    columns: usize,
}

impl Below {
    /// The words are there even where the names must be cut.
    fn of<'a>(lines: impl Iterator<Item = &'a Line> + Clone, columns: usize) -> Self {
        let who = lines.clone().map(|line| width(&line.who)).max().unwrap_or(0);
        let word = lines.map(|line| line.word.len()).max().unwrap_or(0);
        let room = columns.saturating_sub(word + 4).max(NAME);
        let who = who.min(room);
        Self { who, word, columns }
    }
}

fn hook_words(hook: &HookView, of: &str, now: Time) -> String {
    let since = Duration::from_secs(now.since(hook.since).as_secs());
    let mut words = format!("{}{of} for {since}", hook.phase);
    if !hook.progress.is_empty() {
        words.push_str(&format!(": {}", one_line(&hook.progress)));
    }
    for on in &hook.waiting_for {
        let what = format!("; {}: {}", one_line(&on.what), one_line(&on.detail));
        words.push_str(what.trim_end_matches(": "));
    }
    words
}
