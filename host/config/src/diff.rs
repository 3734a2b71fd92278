//! A unified diff, as `patch` and people read it, of a text of which lines go or change.

use std::fmt::Write as _;

/// Lines without a change that are shown around each change.
const CONTEXT: usize = 3;

/// The diff of a file. `new`: for each line of `old`, what it becomes; `None`: it goes.
pub(super) fn unified(file: &str, old: &str, new: &[Option<String>]) -> String {
    let old: Vec<&str> = old.split('\n').collect();
    // The last line ends the file and is none of it.
    let ends = old.last().is_some_and(|last| last.is_empty());
    let count = old.len() - usize::from(ends);
    let pairs: Vec<_> = old.into_iter().zip(new).take(count).collect();
    let is_changed = |(before, after): &(&str, &Option<String>)| after.as_deref() != Some(before);
    let changed = pairs.iter().enumerate().filter(|(_, pair)| is_changed(pair));
    let mut hunks: Vec<(usize, usize)> = Vec::new();
    for (line, _) in changed {
        let (from, to) = (line.saturating_sub(CONTEXT), (line + CONTEXT + 1).min(count));
        match hunks.last_mut() {
            Some(last) if from <= last.1 => last.1 = to,
            _ => hunks.push((from, to)),
        }
    }
    let mut text = format!("--- {file}\n+++ {file}\n");
    let mut gone = 0;
    for (from, to) in hunks {
        let lines = pairs.get(from..to).unwrap_or_default();
        let after = lines.iter().filter(|(_, after)| after.is_some()).count();
        // Writing to a text does not fail.
        let (first, count, new_first) = (from + 1, to - from, from + 1 - gone);
        let _written = writeln!(text, "@@ -{first},{count} +{new_first},{after} @@");
        gone += lines.len() - after;
        hunk(&mut text, lines, !ends && to == count);
    }
    text
}

/// `is_last`: no line break ends the last line.
fn hunk(text: &mut String, lines: &[(&str, &Option<String>)], is_last: bool) {
    let mut added = Vec::new();
    for (number, (before, after)) in lines.iter().enumerate() {
        let note = match is_last && number + 1 == lines.len() {
            true => "\n\\ No newline at end of file",
            false => "",
        };
        if after.as_deref() == Some(*before) {
            added.drain(..).for_each(|line: String| text.push_str(&line));
            text.push_str(&format!(" {before}{note}\n"));
            continue;
        }
        text.push_str(&format!("-{before}{note}\n"));
        added.extend(after.as_ref().map(|after| format!("+{after}{note}\n")));
    }
    added.drain(..).for_each(|line| text.push_str(&line));
}
