//! Rust without comments and without the insides of strings, so that rules look at code only.

/// Blanks out comments and literals; lines stay where they are.
pub(super) fn code_only(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (length, keep) = match literal(rest, code.chars().next_back()) {
            Some(length) => (length, false),
            None => (first.len_utf8(), true),
        };
        let (part, after) = rest.split_at(length);
        if keep {
            code.push_str(part);
        } else {
            code.extend(part.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        }
        rest = after;
    }
    code
}

/// How long the comment or literal is that begins here.
fn literal(text: &str, before: Option<char>) -> Option<usize> {
    let in_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    match text.as_bytes() {
        [b'/', b'/', ..] => Some(text.find('\n').unwrap_or(text.len())),
        [b'/', b'*', ..] => Some(block_comment(text)),
        [b'"', ..] => Some(quoted(text, 1, '"')),
        [b'r', b'"' | b'#', ..] if !in_word => raw(text, 1),
        [b'b', b'r', b'"' | b'#', ..] if !in_word => raw(text, 2),
        // A character literal ends after one character or an escape; a lifetime does not.
        [b'\'', b'\\', ..] => Some(quoted(text, 1, '\'')),
        [b'\'', ..] => {
            let inside = text.chars().nth(1)?;
            let close = 1 + inside.len_utf8();
            text.get(close..)?.starts_with('\'').then_some(close + 1)
        }
        _ => None,
    }
}

fn block_comment(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

fn quoted(text: &str, from: usize, close: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip_while(|(at, _)| *at < from) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == close => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// `r"..."`, `r#"..."#`; not `r#keyword`.
fn raw(text: &str, prefix: usize) -> Option<usize> {
    let hashes = text.get(prefix..)?.chars().take_while(|c| *c == '#').count();
    let inside = prefix + hashes + 1;
    text.get(prefix + hashes..)?.starts_with('"').then(|| {
        let close = format!("\"{}", "#".repeat(hashes));
        let rest = text.get(inside..).unwrap_or_default();
        rest.find(&close)
            .map_or(text.len(), |at| inside + at + close.len())
    })
}

/// Whether the line contains the whole word.
pub(super) fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let before = line.get(..at).and_then(|text| text.chars().next_back());
        let after = line.get(at + word.len()..).and_then(|text| text.chars().next());
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}
