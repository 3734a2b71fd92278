//! Lines that fit: cut, folded, and the rows of a screen shared out. A line that a terminal would wrap by itself could
//! not be taken back.

use std::borrow::Cow;

use console::{measure_text_width, truncate_str};

/// What stands in the place of what was cut off. Every terminal can show it.
const CUT: &str = "...";
/// Narrower than this nothing can be read, and nothing is folded.
const NARROW: usize = 24;
/// Cells of a bar.
const CELLS: usize = 20;

/// The room there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Lines.
    pub rows: usize,
    /// Columns of each.
    pub columns: usize,
}

/// Columns that it takes.
pub(super) fn width(text: &str) -> usize {
    measure_text_width(text)
}

/// At most so many columns of it.
pub(super) fn cut(text: &str, columns: usize) -> Cow<'_, str> {
    let tail = if columns > CUT.len() { CUT } else { "" };
    truncate_str(text, columns, tail)
}

/// Filled up with spaces to so many columns.
pub(super) fn padded(text: &str, columns: usize) -> String {
    let missing = columns.saturating_sub(width(text));
    format!("{text}{}", " ".repeat(missing))
}

/// The whole text in as many lines as it takes, each below the first indented a little more.
pub(crate) fn fold(line: &str, columns: usize) -> Vec<String> {
    if width(line) <= columns {
        return vec![line.to_owned()];
    }
    if columns < NARROW {
        return vec![cut(line, columns).into_owned()];
    }
    let own = line.chars().take_while(|c| *c == ' ').count();
    let indent = " ".repeat((own + 4).min(columns / 2));
    let mut lines = Vec::new();
    let mut last = String::new();
    for word in line.split_inclusive(' ') {
        let is_full = width(&last) + width(word.trim_end()) > columns;
        if is_full && !last.trim().is_empty() {
            lines.push(last.trim_end().to_owned());
            last.clone_from(&indent);
        }
        last.push_str(word);
        // One word may be wider than the screen.
        while width(last.trim_end()) > columns {
            let (head, rest) = split(&last, columns);
            lines.push(head);
            last = format!("{indent}{rest}");
        }
    }
    if !last.trim().is_empty() {
        lines.push(last.trim_end().to_owned());
    }
    lines
}

/// As much as fits into so many columns, and the rest.
fn split(text: &str, columns: usize) -> (String, String) {
    let head = truncate_str(text, columns, "").into_owned();
    let rest = text.get(head.len()..).unwrap_or_default().to_owned();
    (head, rest)
}

/// `[#####---------------]`
pub(super) fn bar(done: usize, of: usize) -> String {
    let full = (done * CELLS).checked_div(of).unwrap_or(CELLS).min(CELLS);
    format!("[{}{}]", "#".repeat(full), "-".repeat(CELLS - full))
}

/// Rows for each of those that want so many: nobody gets more than they want, nor more than another who goes without.
pub(crate) fn share(rows: usize, wanted: &[usize]) -> Vec<usize> {
    let mut given = vec![0; wanted.len()];
    let mut left = rows.min(wanted.iter().sum());
    while left > 0 {
        for (given, wanted) in given.iter_mut().zip(wanted) {
            if left > 0 && *given < *wanted {
                *given += 1;
                left -= 1;
            }
        }
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_never_takes_more_than_it_may() {
        for text in [
            "worker-1 is drained",
            "日本語のノード名です",
            "e\u{301}e\u{301}e\u{301}e\u{301}",
            "",
        ] {
            for columns in 0..30 {
                let short = cut(text, columns);
                assert!(width(&short) <= columns, "{short:?} in {columns}");
            }
        }
        assert_eq!(cut("worker-1 is drained", 11), "worker-1...");
        assert_eq!(cut("worker-1", 8), "worker-1");
    }

    #[test]
    fn what_is_folded_loses_nothing_and_never_takes_more_than_it_may() {
        let line =
            "    shop/web-74c86df8dc-lbjdr  BudgetExhausted       disruption budget web does not allow it";
        assert_eq!(
            fold(line, 40),
            [
                "    shop/web-74c86df8dc-lbjdr",
                "        BudgetExhausted       disruption",
                "        budget web does not allow it",
            ]
        );
        let long = format!("  word {} word", "x".repeat(200));
        let wide = format!("  {}", "日本".repeat(40));
        for text in [line, &long, &wide] {
            for columns in NARROW..120 {
                let lines = fold(text, columns);
                assert!(
                    lines.iter().all(|line| width(line) <= columns),
                    "{columns}: {lines:#?}"
                );
                let all = |text: &str| text.replace(' ', "");
                assert_eq!(all(&lines.concat()), all(text), "{columns}");
            }
        }
        assert_eq!(fold(line, 10).len(), 1);
    }

    #[test]
    fn rows_are_shared_out_evenly() {
        for (rows, wanted, given) in [
            (10, &[2, 3][..], &[2, 3][..]),
            (4, &[2, 3], &[2, 2]),
            (4, &[9, 1, 9], &[2, 1, 1]),
            (0, &[2, 3], &[0, 0]),
            (5, &[], &[]),
        ] {
            assert_eq!(share(rows, wanted), given, "{rows} for {wanted:?}");
        }
    }

    #[test]
    fn a_bar_is_full_only_when_all_is_done() {
        assert_eq!(bar(0, 3), "[--------------------]");
        assert_eq!(bar(199, 200), "[###################-]");
        assert_eq!(bar(3, 3), "[####################]");
        assert_eq!(bar(0, 0), "[####################]");
    }
}
