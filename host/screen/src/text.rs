//! Fits lines to the terminal: cuts and folds them, and divides the rows. A line that the terminal wraps by itself
//! cannot be erased.

use std::borrow::Cow;

use console::{measure_text_width, truncate_str};

/// Replaces the part that was cut off. Every terminal can show it.
const CUT: &str = "...";
/// Below this width lines are not folded, because nothing would be readable.
const NARROW: usize = 24;
/// What stands before a command to type, and between a command and what is said of it.
const COMMANDS: [&str; 3] = ["next: ", "do: ", "$ "];
const COMMENT: &str = "    # ";
/// What a second command begins with, which may be what a comment ends with.
const SECOND: [&str; 2] = [": kubectl ", ": scupper "];
/// Number of cells of a progress bar.
const CELLS: usize = 20;

/// The available space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Number of lines.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
}

/// The number of columns of a text.
pub fn width(text: &str) -> usize {
    measure_text_width(text)
}

/// Cuts a text to this many columns.
pub fn cut(text: &str, columns: usize) -> Cow<'_, str> {
    let tail = if columns > CUT.len() { CUT } else { "" };
    truncate_str(text, columns, tail)
}

/// Cuts a name in its middle, because names agree at their beginning and differ at their end.
pub fn cut_name(name: &str, columns: usize) -> Cow<'_, str> {
    let Some(room) = columns
        .checked_sub(CUT.len())
        .filter(|room| *room >= 2 && width(name) > columns)
    else {
        return cut(name, columns);
    };
    let begins = truncate_str(name, room - room / 2, "");
    let mut end = name.len();
    for (at, letter) in name.char_indices().rev() {
        if width(name.get(at..).unwrap_or_default()) > room / 2 {
            break;
        }
        // A mark that joins the letter before it is not torn from it.
        if measure_text_width(letter.encode_utf8(&mut [0; 4])) > 0 {
            end = at;
        }
    }
    Cow::Owned(format!("{begins}{CUT}{}", name.get(end..).unwrap_or_default()))
}

/// Pads a text with spaces to this many columns.
pub fn padded(text: &str, columns: usize) -> String {
    let missing = columns.saturating_sub(width(text));
    format!("{text}{}", " ".repeat(missing))
}

/// Folds a text into as many lines as needed; all but the first are indented a little more.
pub fn fold(line: &str, columns: usize) -> Vec<String> {
    let own = line.chars().take_while(|c| *c == ' ').count();
    if columns < NARROW {
        return vec![cut(line, columns).into_owned()];
    }
    let parts = match command_place(line).filter(|_| width(line) > columns) {
        Some(place) => commented(line, columns, place, columns),
        None => vec![line.to_owned()],
    };
    let parts = parts.iter().flat_map(|part| fold_to(part, columns, own + 4));
    parts.collect()
}

/// The same for a line of columns, such as a time, a topic and a text: the text goes on below its beginning. A command to
/// copy stays as it is, and so does everything where there is no room.
pub(super) fn fold_text(line: &str, columns: usize) -> Vec<String> {
    if columns < NARROW || width(line) <= columns {
        return vec![line.to_owned()];
    }
    if let Some(place) = command_place(line) {
        return commented(line, columns, place, usize::MAX);
    }
    let (mut at, mut spaces, mut begins) = (0, 0, None);
    for letter in line.chars().take(columns / 2) {
        at += 1;
        match letter {
            ' ' => spaces += 1,
            _ if spaces >= 2 => (begins, spaces) = (Some(at - 1), 0),
            _ => spaces = 0,
        }
    }
    begins.map_or_else(|| fold(line, columns), |begins| fold_to(line, columns, begins))
}

/// Where the command to type begins in a line that has one.
fn command_place(line: &str) -> Option<usize> {
    let text = line.trim_start();
    let word = COMMANDS.iter().find(|word| text.starts_with(**word))?;
    Some(line.len() - text.len() + word.len())
}

/// A command too wide for the screen: what is said of it stands below it. Each of these lines is a comment, so that all can be
/// copied. `widest`: how wide a second command at its end may be.
fn commented(line: &str, columns: usize, place: usize, widest: usize) -> Vec<String> {
    let Some((command, comment)) = line.split_once(COMMENT) else {
        return vec![line.to_owned()];
    };
    let sign = format!("{}# ", " ".repeat(place.min(columns / 4)));
    let second = SECOND.iter().find_map(|begins| comment.find(*begins));
    let (comment, second) = comment.split_at(second.map_or(comment.len(), |colon| colon + 1));
    let mut comment = fold_to(comment, columns.saturating_sub(sign.len()), 0);
    if !second.is_empty() {
        comment.extend(fold_to(second.trim_start(), widest.saturating_sub(sign.len()), 0));
    }
    let comment = comment.iter().map(|line| format!("{sign}{line}"));
    std::iter::once(command.to_owned()).chain(comment).collect()
}

fn fold_to(line: &str, columns: usize, indent: usize) -> Vec<String> {
    if width(line) <= columns {
        return vec![line.to_owned()];
    }
    let indent = " ".repeat(indent.min(columns / 2));
    let mut lines = Vec::new();
    let mut last = String::new();
    for word in line.split_inclusive(' ') {
        let is_full = width(&last) + width(word.trim_end()) > columns;
        if is_full && !last.trim().is_empty() {
            lines.push(last.trim_end().to_owned());
            last.clone_from(&indent);
        }
        last.push_str(word);
        // A single word may be wider than the screen.
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

/// Splits a text into the part that fits into this many columns, and the rest.
fn split(text: &str, columns: usize) -> (String, String) {
    let head = truncate_str(text, columns, "").into_owned();
    let rest = text.get(head.len()..).unwrap_or_default().to_owned();
    (head, rest)
}

/// `[#####---------------]`
pub fn bar(done: usize, of: usize) -> String {
    let full = (done * CELLS).checked_div(of).unwrap_or(CELLS).min(CELLS);
    format!("[{}{}]", "#".repeat(full), "-".repeat(CELLS - full))
}

/// Divides rows fairly: each item gets at most what it wants, and no item gets more than another one that lacks rows.
pub fn share(rows: usize, wanted: &[usize]) -> Vec<usize> {
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
    fn truncated_text_never_exceeds_its_width() {
        for text in [
            "worker-1 is drained",
            "日本語のノード名です",
            "e\u{301}e\u{301}e\u{301}e\u{301}",
            "",
        ] {
            for columns in 0..30 {
                let short = cut(text, columns);
                assert!(width(&short) <= columns, "{short:?} in {columns}");
                let short = cut_name(text, columns);
                assert!(width(&short) <= columns, "{short:?} in {columns}");
            }
        }
        assert_eq!(cut("worker-1 is drained", 11), "worker-1...");
        assert_eq!(cut("worker-1", 8), "worker-1");
        assert_eq!(cut_name("shop/web-74c86df8dc-lbjdr", 17), "shop/we...c-lbjdr");
        assert_eq!(cut_name("worker-1", 8), "worker-1");
    }

    #[test]
    fn folded_text_loses_nothing_and_never_exceeds_its_width() {
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
    fn the_text_of_a_line_goes_on_below_its_beginning() {
        let line = "      1.5s  waits    shop/web-1: disruption budget web does not allow it";
        assert_eq!(
            fold_text(line, 50),
            [
                "      1.5s  waits    shop/web-1: disruption budget",
                "                     web does not allow it",
            ]
        );
        assert_eq!(
            fold_text("policy slurm must still undo its part of it", 30),
            ["policy slurm must still undo", "    its part of it"]
        );
        let command = "      next: kubectl -n shop describe pdb keep-web";
        assert_eq!(fold_text(command, 30), [command]);
        let typed = "$ kubectl -n shop describe pdb keep-web";
        assert_eq!(fold_text(typed, 30), [typed]);
        let explained = format!("{command}    # it allows an eviction once another pod is ready elsewhere");
        assert_eq!(fold_text(&explained, 120), [explained.as_str()]);
        assert_eq!(
            fold_text(&explained, 50),
            [
                command,
                "            # it allows an eviction once another",
                "            # pod is ready elsewhere",
            ]
        );
        assert_eq!(
            fold(&explained, 50),
            [
                command,
                "            # it allows an eviction once another",
                "            # pod is ready elsewhere",
            ]
        );
        assert_eq!(
            fold(&explained, 44),
            [
                "      next: kubectl -n shop describe pdb",
                "          keep-web",
                "           # it allows an eviction once",
                "           # another pod is ready elsewhere",
            ]
        );
        let two = format!(
            "{command}    # its owner must do it; if that is gone: kubectl -n shop patch pod web --type=merge"
        );
        assert_eq!(
            fold_text(&two, 50),
            [
                command,
                "            # its owner must do it; if that is",
                "            # gone:",
                "            # kubectl -n shop patch pod web --type=merge",
            ]
        );
        let folded = fold(&two, 50);
        assert_eq!(folded.len(), 5, "{folded:?}");
        assert!(
            folded
                .iter()
                .skip(1)
                .all(|line| line.trim_start().starts_with("# ")),
            "{folded:?}"
        );
        let pod = "    shop/web  BudgetExhausted  budget web does not allow it";
        assert_eq!(
            fold_text(pod, 48),
            [
                "    shop/web  BudgetExhausted  budget web does",
                "              not allow it",
            ]
        );
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
