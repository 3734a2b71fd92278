//! Foreign text: from guests, the API server, other processes. It becomes one line of bounded length, without
//! characters that move a terminal's cursor, change the direction of writing or are invisible.

use std::borrow::Cow;
use std::fmt::Write;

use icu_properties::props::{DefaultIgnorableCodePoint, ExtendedPictographic, GeneralCategory};
use icu_properties::{CodePointMapData, CodePointSetData};

/// Replaces truncated text.
const ELLIPSIS: char = '…';

/// The text on one line, its control characters escaped, in at most `bytes` bytes.
pub fn one_line(text: &str, bytes: usize) -> String {
    if text.len() <= bytes && is_plain(text) {
        return text.to_owned();
    }
    let mut line = String::with_capacity(text.len().min(bytes));
    for (char, is_unseen) in told_apart(text) {
        let before = line.len();
        push(&mut line, char, is_unseen);
        if line.len() > bytes {
            line.truncate(before);
            return cut(line, bytes);
        }
    }
    line
}

/// The text on one line, without copying it when it is one already.
pub fn into_line(text: String, bytes: usize) -> String {
    if text.len() <= bytes && is_plain(&text) {
        return text;
    }
    one_line(&text, bytes)
}

/// The whole text on one line: spaces for control characters, and other invisible characters escaped.
pub fn spaced_line(text: &str) -> String {
    if is_plain(text) {
        return text.to_owned();
    }
    let mut line = String::with_capacity(text.len());
    for (char, is_unseen) in told_apart(text) {
        if char.is_control() {
            line.push(' ');
        } else {
            push(&mut line, char, is_unseen);
        }
    }
    line
}

/// The same text with all invisible characters escaped except control characters, which stay: for output with our own
/// lines and colours.
pub fn without_unseen(text: &str) -> Cow<'_, str> {
    let is_hidden = |(char, is_unseen): (char, bool)| is_unseen && !char.is_control();
    if !told_apart(text).any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut seen = String::with_capacity(text.len());
    for (char, is_unseen) in told_apart(text) {
        push(&mut seen, char, is_unseen && !char.is_control());
    }
    Cow::Owned(seen)
}

/// Whether it is a single line without characters to escape.
pub fn is_plain(text: &str) -> bool {
    text.is_ascii() && !text.bytes().any(|byte| byte.is_ascii_control())
        || !told_apart(text).any(|(_, is_unseen)| is_unseen)
}

fn push(line: &mut String, char: char, is_unseen: bool) {
    if is_unseen {
        // Writing to a string cannot fail.
        let _written = write!(line, "{}", char.escape_default()).is_ok();
    } else {
        line.push(char);
    }
}

/// Each character, and whether it is invisible.
fn told_apart(text: &str) -> impl Iterator<Item = (char, bool)> + '_ {
    let mut before = None;
    text.chars().map(move |char| {
        let is_unseen = is_unseen(char) && !is_in_place(char, before);
        before = Some(char);
        (char, is_unseen)
    })
}

/// Control characters, line ends, and, by their Unicode properties, characters that only format their surroundings or
/// that are never displayed: direction marks, joiners, variation selectors, tags, fillers.
fn is_unseen(char: char) -> bool {
    if char.is_ascii() {
        return char.is_control();
    }
    let category = CodePointMapData::<GeneralCategory>::new().get(char);
    matches!(
        category,
        GeneralCategory::Control
            | GeneralCategory::Format
            | GeneralCategory::LineSeparator
            | GeneralCategory::ParagraphSeparator
    ) || CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(char)
}

/// Variation selectors for text or emoji style are allowed after a pictograph.
fn is_in_place(char: char, before: Option<char>) -> bool {
    let pictographs = CodePointSetData::new::<ExtendedPictographic>();
    matches!(char, '\u{fe0e}' | '\u{fe0f}') && before.is_some_and(|before| pictographs.contains(before))
}

fn cut(mut line: String, bytes: usize) -> String {
    while line.len() + ELLIPSIS.len_utf8() > bytes && line.pop().is_some() {}
    if line.len() + ELLIPSIS.len_utf8() <= bytes {
        line.push(ELLIPSIS);
    }
    line
}

/// The most similar of these words, as a suggestion for a mistyped one: the first of several that are equally similar.
pub fn nearest<'a>(given: &str, words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    all_nearest(given, words).into_iter().next()
}

/// All words that are equally similar, and more than any other, in the given order.
pub fn all_nearest<'a>(given: &str, words: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    // A comparison takes time in proportion to the product of the lengths.
    if given.len() > 64 {
        return Vec::new();
    }
    let plain = |text: &str| text.replace(['-', '_', ' '], "").to_ascii_lowercase();
    let given = plain(given);
    let mut least = usize::MAX;
    let mut found = Vec::new();
    for word in words {
        let distance = strsim::damerau_levenshtein(&given, &plain(word));
        if distance > word.len().div_ceil(4) || distance > least {
            continue;
        }
        if distance < least {
            least = distance;
            found.clear();
        }
        found.push(word);
    }
    found
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
    fn escapes_characters_that_move_the_cursor() {
        assert_eq!(one_line("a\nb\u{1b}[2J\u{202e}", 64), r"a\nb\u{1b}[2J\u{202e}");
    }

    /// The characters that the original report named, and more with the same properties.
    fn unseen() -> impl Iterator<Item = char> {
        let ranges = [
            '\u{200b}'..='\u{200f}',
            '\u{61c}'..='\u{61c}',
            '\u{2028}'..='\u{202e}',
            '\u{2060}'..='\u{2069}',
            '\u{feff}'..='\u{feff}',
            '\u{e0000}'..='\u{e007f}',
            '\u{fe00}'..='\u{fe0f}',
            '\u{e0100}'..='\u{e01ef}',
            '\u{ad}'..='\u{ad}',
            '\u{34f}'..='\u{34f}',
            '\u{115f}'..='\u{1160}',
            '\u{180b}'..='\u{180f}',
            '\u{3164}'..='\u{3164}',
            '\u{ffa0}'..='\u{ffa0}',
            '\u{fff9}'..='\u{fffb}',
            '\u{1d173}'..='\u{1d17a}',
        ];
        ranges.into_iter().flatten()
    }

    #[test]
    fn every_invisible_character_is_escaped() {
        for char in unseen() {
            let (text, escaped) = (format!("a{char}b"), format!("a{}b", char.escape_default()));
            assert_eq!(one_line(&text, 64), escaped);
            assert_eq!(into_line(text.clone(), 64), escaped);
            assert_eq!(spaced_line(&text), escaped);
            assert_eq!(without_unseen(&text), escaped);
        }
    }

    #[test]
    fn natural_language_text_is_kept() {
        for text in [
            "größer, 日本語, עברית, ไทย, हिन्दी",
            "⚠\u{fe0f} drained ✔\u{fe0e} ©",
            "e\u{301}",
        ] {
            assert_eq!(one_line(text, 128), text);
            assert_eq!(spaced_line(text), text);
            assert_eq!(without_unseen(text), text);
        }
        assert_eq!(one_line("web-1\u{fe0f}", 64), r"web-1\u{fe0f}", "no pictograph");
    }

    #[test]
    fn our_own_lines_and_colours_stay() {
        assert_eq!(
            without_unseen("\u{1b}[32mdone\u{1b}[0m\n\ta\u{200b}\n"),
            "\u{1b}[32mdone\u{1b}[0m\n\ta\\u{200b}\n"
        );
        assert_eq!(spaced_line("a\n\u{1b}[2J\u{202e}"), r"a  [2J\u{202e}");
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
