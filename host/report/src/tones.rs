//! Which word of a line has a colour: what blocks, what went wrong, what is done, what to type. The lines of
//! drains, plans and states go through this one table, so that a colour means the same everywhere.

use std::ops::Range;

use scupper_screen::Tone::{self, Blocks, Done, Next, Wrong};

use crate::drain_status::HOOK_RUNS;
use crate::status::UNDONE;

/// Words at the beginning of a line.
const FIRST: [(&str, Tone); 11] = [
    ("next:", Next),
    ("do:", Next),
    ("to stop it:", Next),
    ("attention:", Blocks),
    ("not ready:", Blocks),
    ("likely", Blocks),
    ("certain", Wrong),
    ("may not leave", Wrong),
    ("not allowed", Blocks),
    ("undo", Wrong),
    ("wrong", Wrong),
];

/// Topics of a line that begins with a time.
const TOPICS: [(&str, Tone); 8] = [
    ("waits", Blocks),
    ("queued", Blocks),
    ("retry", Blocks),
    ("likely", Blocks),
    ("certain", Wrong),
    ("held", Wrong),
    ("force", Wrong),
    ("undo", Wrong),
];

/// How a drain ends.
const ENDS: [(&str, Tone); 8] = [
    ("Drained", Done),
    ("Uncordoned", Done),
    ("Cancelled", Blocks),
    ("Blocked", Wrong),
    ("PolicyFailed", Wrong),
    ("DeadlineExceeded", Wrong),
    ("Lost", Wrong),
    ("Failed", Wrong),
];

/// Words behind a name: why a pod stays, and where a node stands.
const SECOND: [(&str, Tone); 23] = [
    ("PlannerFailed", Wrong),
    ("HookRunning", Blocks),
    ("VolumesAttached", Blocks),
    ("Surging", Blocks),
    ("BudgetExhausted", Blocks),
    ("BudgetNotObserved", Blocks),
    ("MoreThanOneBudget", Wrong),
    ("Throttled", Blocks),
    ("EvictionRefused", Wrong),
    ("NamespaceTerminating", Blocks),
    ("Forbidden", Wrong),
    ("Unreachable", Wrong),
    ("TerminatingPastGrace", Wrong),
    ("AwaitingCompletion", Blocks),
    ("NodeUncordoned", Wrong),
    ("KeepsComingBack", Wrong),
    ("ArrivedDuringDrain", Wrong),
    ("DriverStopping", Blocks),
    ("Refused", Wrong),
    ("abandoned", Wrong),
    ("failed", Wrong),
    ("waiting", Blocks),
    ("drained", Done),
];

/// Words of a sentence.
const ANYWHERE: [(&str, Tone); 7] = [
    ("would be refused", Wrong),
    ("would end at once", Wrong),
    ("could not end", Wrong),
    (UNDONE, Wrong),
    ("to undo", Wrong),
    ("it may be abandoned", Wrong),
    ("NotReady", Wrong),
];

/// The word of a line that has a colour, and which.
pub fn tone_of(line: &str) -> Option<(Range<usize>, Tone)> {
    // The lines of several nodes begin with a name.
    let time = [0, 1].into_iter().find(|&place| {
        let word = word(line, place).and_then(|word| line.get(word));
        word.is_some_and(is_time)
    });
    if let Some(time) = time {
        let topic = word(line, time + 1)?;
        return match line.get(topic.clone())? {
            "end" => at_start(line, topic.end, &ENDS),
            "hook" => waiting_hook(line, topic),
            _ => at_start(line, topic.start, &TOPICS),
        };
    }
    let hook = word(line, 0).filter(|word| line.get(word.clone()) == Some("hook"));
    at_start(line, 0, &FIRST)
        .or_else(|| blocking_budget(line))
        .or_else(|| waiting_hook(line, hook?))
        .or_else(|| at_start(line, column(line)?, &SECOND))
        .or_else(|| anywhere(line))
}

/// `budget shop/cart blocks 4 pods: …`, `budget shop/cart  blocks 4 pods  …`
fn blocking_budget(line: &str) -> Option<(Range<usize>, Tone)> {
    let rest = line.trim_start().strip_prefix("budget ")?;
    let (_, after) = rest.split_once(" blocks ")?;
    let end = line.len() - after.len() - 1;
    Some((end - "blocks".len()..end, Blocks))
}

/// `hook     slurm before-drain, running for 12s: …`: the topic of one that holds the drain up.
fn waiting_hook(line: &str, topic: Range<usize>) -> Option<(Range<usize>, Tone)> {
    let text = line.get(topic.end..)?;
    let (head, _progress) = text.split_once(": ").unwrap_or((text, ""));
    head.contains(HOOK_RUNS).then_some((topic, Blocks))
}

/// A word of the table behind the spaces from this place on.
fn at_start(line: &str, from: usize, table: &[(&str, Tone)]) -> Option<(Range<usize>, Tone)> {
    let text = line.get(from..)?.trim_start();
    let (word, tone) = table.iter().find(|(word, _)| {
        let rest = text.strip_prefix(word);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', ':', ',']) || word.ends_with(':'))
    })?;
    let start = line.len() - text.len();
    Some((start..start + word.len(), *tone))
}

fn anywhere(line: &str) -> Option<(Range<usize>, Tone)> {
    ANYWHERE.iter().find_map(|(word, tone)| {
        let start = line.find(word)?;
        Some((start..start + word.len(), *tone))
    })
}

/// Where the second column begins.
fn column(line: &str) -> Option<usize> {
    let text = line.trim_start();
    Some(line.len() - text.len() + text.find("  ")?)
}

/// Where a word of the line is.
fn word(line: &str, number: usize) -> Option<Range<usize>> {
    let mut end = 0;
    let mut words = line.split_whitespace().map(|word| {
        let start = end
            + line
                .get(end..)
                .and_then(|rest| rest.find(word))
                .unwrap_or_default();
        end = start + word.len();
        start..end
    });
    words.nth(number)
}

/// `1.5s`, at the beginning of what a drain prints.
fn is_time(word: &str) -> bool {
    let number = word.strip_suffix('s').and_then(|word| word.split_once('.'));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    number.is_some_and(|(whole, part)| is_number(whole) && is_number(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_that_counts_has_the_colour() {
        let cases = [
            ("     11.5s  waits    shop/web-1: x", Some(("waits", Blocks))),
            (
                "      1.5s  end      Drained in 3s: every pod to evict is gone",
                Some(("Drained", Done)),
            ),
            (
                "      1.5s  end      DeadlineExceeded in 3s: x",
                Some(("DeadlineExceeded", Wrong)),
            ),
            ("      1.5s  gone     shop/web-1 after 2s, 0 to go", None),
            ("      1.5s  evict    shop/next: failed", None),
            (
                "worker-1        1.5s  held     the node was uncordoned",
                Some(("held", Wrong)),
            ),
            ("worker-1        1.5s", None),
            (
                "    next: kubectl -n shop describe pdb cart    # why",
                Some(("next:", Next)),
            ),
            (
                "  may not leave  shop/bare  cannot",
                Some(("may not leave", Wrong)),
            ),
            (
                "    budget shop/cart blocks 4 pods: it needs 4 healthy pods and has 4",
                Some(("blocks", Blocks)),
            ),
            (
                "  budget shop/cart  blocks 4 pods  it needs 4 healthy pods and has 4",
                Some(("blocks", Blocks)),
            ),
            (
                "    shop/web-1 and 3 more  BudgetExhausted  for 44s",
                Some(("BudgetExhausted", Blocks)),
            ),
            (
                "    shop/web-1  BudgetExhausted       for 44s",
                Some(("BudgetExhausted", Blocks)),
            ),
            (
                "node-1  drained  3m20s  drain d: 3 pods gone",
                Some(("drained", Done)),
            ),
            (
                "A drain of node a would be refused; nothing was changed.",
                Some(("would be refused", Wrong)),
            ),
            (
                "node worker-1: cordoned by Scupper, NotReady for 5m00s",
                Some(("NotReady", Wrong)),
            ),
            (
                "      1.5s  hook     slurm before-drain, running for 5s: 2 jobs run",
                Some(("hook", Blocks)),
            ),
            (
                "      1.5s  hook     slurm finished before-drain after 1m02s",
                None,
            ),
            (
                "  hook       slurm had not finished before-drain when the drain ended, after 56s: 1 job, running",
                None,
            ),
            (
                "  hook slurm  HookRunning  before-drain for 12s: 1 job, running",
                Some(("HookRunning", Blocks)),
            ),
            ("certainly not", None),
            ("", None),
        ];
        for (line, expected) in cases {
            let found = tone_of(line).map(|(place, tone)| (&line[place], tone));
            assert_eq!(found, expected, "{line}");
        }
    }
}
