//! Text from guests is somebody else's: one line of bounded length, with nothing in it that moves a terminal's cursor.

use std::fmt::Write;

/// Stands for what was cut off.
const ELLIPSIS: char = '…';

/// The text on one line, its control characters escaped, in at most `bytes` bytes.
pub(crate) fn one_line(text: &str, bytes: usize) -> String {
    if text.len() <= bytes && !text.chars().any(needs_escape) {
        return text.to_owned();
    }
    let mut line = String::with_capacity(text.len().min(bytes));
    for char in text.chars() {
        let before = line.len();
        push(&mut line, char);
        if line.len() > bytes {
            line.truncate(before);
            return cut(line, bytes);
        }
    }
    line
}

/// The text on one line, without copying it when it is one already.
pub(super) fn into_line(text: String, bytes: usize) -> String {
    if text.len() <= bytes && !text.chars().any(needs_escape) {
        return text;
    }
    one_line(&text, bytes)
}

fn push(line: &mut String, char: char) {
    if needs_escape(char) {
        // Writing to a string cannot fail.
        let _written = write!(line, "{}", char.escape_default()).is_ok();
    } else {
        line.push(char);
    }
}

fn cut(mut line: String, bytes: usize) -> String {
    while line.len() + ELLIPSIS.len_utf8() > bytes && line.pop().is_some() {}
    if line.len() + ELLIPSIS.len_utf8() <= bytes {
        line.push(ELLIPSIS);
    }
    line
}

/// Control characters, and the ones that end a line or turn the direction of writing.
fn needs_escape(char: char) -> bool {
    char.is_control() || matches!(char, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stays_as_it_is() {
        assert_eq!(one_line("größer", 16), "größer");
        assert_eq!(into_line("größer".to_owned(), 16), "größer");
    }

    #[test]
    fn escapes_what_moves_the_cursor() {
        assert_eq!(one_line("a\nb\u{1b}[2J\u{202e}", 64), r"a\nb\u{1b}[2J\u{202e}");
    }

    #[test]
    fn is_never_longer_than_asked() {
        let texts = [
            "",
            "abc",
            "größer als du denkst",
            "\n\n\n\n\n",
            "\u{1b}\u{1b}",
            "…………",
        ];
        for text in texts {
            for bytes in 0..24 {
                assert!(one_line(text, bytes).len() <= bytes, "{text:?} in {bytes}");
            }
        }
        assert_eq!(one_line("abcdefgh", 6), "abc…");
    }
}
