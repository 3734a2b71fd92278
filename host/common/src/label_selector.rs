//! Label selectors as `kubectl` takes them: `app=web,tier!=db,env in (a, b),gpu,!spot,cores>8`.
//!
//! The only parser of them in the host. It is our own: the kube client and the API's types read the
//! object form only, which has neither this notation nor `>` and `<`.

use std::str::Chars;

use scupper_engine::{Operator, Requirement, Selector};

/// The longest part of a label behind its prefix.
const LONGEST: usize = 63;
/// The longest prefix.
const LONGEST_PREFIX: usize = 253;

/// Reads a selector; `None`: it is none. One without terms selects everything.
pub fn parse(text: &str) -> Option<Selector> {
    let mut expressions = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (term, behind) = split_term(rest);
        expressions.push(requirement(term.trim())?);
        rest = match behind {
            Some("") => return None,
            Some(behind) => behind.trim_start(),
            None => "",
        };
    }
    Some(Selector {
        expressions,
        ..Selector::default()
    })
}

/// Up to the next comma that is in no parentheses, and what is behind it.
fn split_term(text: &str) -> (&str, Option<&str>) {
    let mut open = false;
    for (place, char) in text.char_indices() {
        match char {
            '(' => open = true,
            ')' => open = false,
            ',' if !open => {
                let (term, behind) = text.split_at(place);
                return (term, behind.strip_prefix(',').map(str::trim));
            }
            _ => {}
        }
    }
    (text, None)
}

fn requirement(term: &str) -> Option<Requirement> {
    if let Some(key) = term.strip_prefix('!') {
        return made(key.trim(), Operator::DoesNotExist, Vec::new());
    }
    let place = term.find(|c: char| c.is_whitespace() || "=!<>(".contains(c));
    let (key, rest) = term.split_at(place.unwrap_or(term.len()));
    let rest = rest.trim();
    if rest.is_empty() {
        return made(key, Operator::Exists, Vec::new());
    }
    for (sign, operator) in [
        ("==", Operator::In),
        ("!=", Operator::NotIn),
        ("=", Operator::In),
        (">", Operator::GreaterThan),
        ("<", Operator::LessThan),
    ] {
        if let Some(value) = rest.strip_prefix(sign) {
            return made(key, operator, vec![value.trim().to_owned()]);
        }
    }
    for (word, operator) in [("notin", Operator::NotIn), ("in", Operator::In)] {
        if let Some(set) = rest.strip_prefix(word) {
            let set = set.trim().strip_prefix('(')?.strip_suffix(')')?;
            let values = set.split(',').map(|value| value.trim().to_owned());
            return made(key, operator, values.collect());
        }
    }
    None
}

fn made(key: &str, operator: Operator, values: Vec<String>) -> Option<Requirement> {
    let numbers = matches!(operator, Operator::GreaterThan | Operator::LessThan);
    let is_fine = |value: &String| is_value(value) && (!numbers || value.parse::<i64>().is_ok());
    (is_key(key) && values.iter().all(is_fine)).then(|| Requirement {
        key: key.to_owned(),
        operator,
        values,
    })
}

fn is_key(text: &str) -> bool {
    let (prefix, name) = text
        .split_once('/')
        .map_or((None, text), |(prefix, name)| (Some(prefix), name));
    let is_part = |part: &str| {
        let dns = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        is_framed(part.chars()) && part.chars().all(dns)
    };
    let is_prefix = |prefix: &str| prefix.len() <= LONGEST_PREFIX && prefix.split('.').all(is_part);
    !name.is_empty() && is_value(name) && prefix.is_none_or(is_prefix)
}

fn is_value(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    text.is_empty() || (text.len() <= LONGEST && text.chars().all(is_plain) && is_framed(text.chars()))
}

/// It begins and ends with a letter or a digit.
fn is_framed(mut chars: Chars<'_>) -> bool {
    let plain = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let (first, last) = (chars.next(), chars.next_back());
    plain(first) && (last.is_none() || plain(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selects_as_kubectl_does() {
        let labels = [("app", "web"), ("example.com/tier", "front"), ("cores", "16")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
        for (text, selects) in [
            ("", true),
            ("app", true),
            ("!app", false),
            ("! gone", true),
            ("app=web", true),
            ("app == web , cores", true),
            ("app=web,app!=web", false),
            ("app!=db", true),
            ("gone!=db", true),
            ("gone notin (a,b)", true),
            ("app in (db, web),example.com/tier=front", true),
            ("app in (db,)", false),
            ("app notin(web)", false),
            ("app=", false),
            ("cores>8", true),
            ("cores < 16", false),
        ] {
            let selector = parse(text).unwrap_or_else(|| panic!("{text} is one"));
            assert_eq!(selector.matches(&labels), selects, "{text}");
        }
    }

    #[test]
    fn nonsense_is_none() {
        for text in [
            "=",
            "app=a=b",
            "app in",
            "app in (a",
            "app in a,b)",
            "app,",
            ",app",
            "a b",
            "app>many",
            "-x",
            "x/y/z",
            "/x",
            "App.Example.com/x",
            "app=ä",
            "app (a)",
            "app,,b",
            "x-",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
