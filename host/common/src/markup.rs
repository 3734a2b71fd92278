//! Foreign text in documents: it stays text, whatever is in it.

use crate::text::one_line;

/// The text on one line of Markdown, also in the cell of a table.
pub fn markdown(text: &str, bytes: usize) -> String {
    let text = one_line(text, bytes);
    let mut safe = String::with_capacity(text.len());
    for char in text.chars() {
        if matches!(
            char,
            '\\' | '|' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '@' | '!' | '&'
        ) {
            safe.push('\\');
        }
        safe.push(char);
    }
    safe
}

/// The text on one line of HTML, also in an attribute.
pub fn html(text: &str, bytes: usize) -> String {
    let text = one_line(text, bytes);
    let mut safe = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            char => safe.push(char),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "</td></title><script>alert('x')</script>&lt;\u{202e}\" onload=\"x\n| a | **b** `c` [d](e) # @all ![f](g)";

    #[test]
    fn hostile_text_stays_text_in_markdown() {
        let safe = markdown(HOSTILE, 1000);
        let mut escaped = false;
        for char in safe.chars() {
            assert!(
                escaped
                    || !matches!(
                        char,
                        '|' | '`' | '*' | '[' | ']' | '<' | '>' | '#' | '@' | '!' | '&'
                    ),
                "{char} in {safe}"
            );
            assert!(!char.is_control() && char != '\u{202e}', "{safe}");
            escaped = char == '\\' && !escaped;
        }
    }

    #[test]
    fn hostile_text_stays_text_in_html() {
        let safe = html(HOSTILE, 1000);
        assert!(!safe.contains(['<', '>', '"', '\'', '\n', '\u{202e}']), "{safe}");
        assert!(
            safe.starts_with("&lt;/td&gt;&lt;/title&gt;&lt;script&gt;alert(&#39;x&#39;)"),
            "{safe}"
        );
        assert!(safe.contains("&amp;lt;"), "{safe}");
    }
}
