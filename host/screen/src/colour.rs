//! Colour for one word of a line, which says the same without it.

use std::borrow::Cow;
use std::ops::Range;

use console::Style;

/// What a word is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Something waits for it.
    Blocks,
    /// It went wrong.
    Wrong,
    /// It is done.
    Done,
    /// It is to be typed next.
    Next,
}

/// Finds the word of a line that has a colour.
pub type Painter = fn(&str) -> Option<(Range<usize>, Tone)>;

/// Whether standard output gets colours; until this is called it is as the terminal and the environment say.
pub fn colour_output(is_on: bool) {
    console::set_colors_enabled(is_on);
}

/// The line with its colour.
pub(super) fn painted(line: &str, painter: Painter) -> Cow<'_, str> {
    let found = painter(line).and_then(|(word, tone)| {
        let before = line.get(..word.start)?;
        let after = line.get(word.end..)?;
        let word = style(tone).apply_to(line.get(word)?);
        Some(format!("{before}{word}{after}"))
    });
    found.map_or(Cow::Borrowed(line), Cow::Owned)
}

fn style(tone: Tone) -> Style {
    let style = Style::new().force_styling(true);
    match tone {
        Tone::Blocks => style.yellow(),
        Tone::Wrong => style.red().bold(),
        Tone::Done => style.green(),
        Tone::Next => style.bold(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_word_has_a_colour() {
        let painter: Painter = |line| Some((line.find("late")?..line.len(), Tone::Blocks));
        assert_eq!(painted("is late", painter), "is \u{1b}[33mlate\u{1b}[0m");
        assert_eq!(painted("in time", painter), "in time");
        // A place that is not in the line is no reason to lose it.
        assert_eq!(painted("ä", |_| Some((1..9, Tone::Wrong))), "ä");
    }
}
