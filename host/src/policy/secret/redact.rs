//! Takes secrets out of what comes back: a server that echoes what it was sent must not tell a policy what the host
//! hid from it.

use aho_corasick::{AhoCorasick, AhoCorasickKind, BuildError, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Hidden;

/// A shorter piece of an encoded secret would be found by chance.
const PIECE_BYTES: usize = 6;

/// Finds secrets as they are, and as servers write them.
pub(in crate::policy) struct Redaction {
    finder: Option<AhoCorasick>,
    /// What stands for each pattern.
    names: Vec<Vec<u8>>,
}

impl Redaction {
    /// Of these values.
    pub(in crate::policy) fn of(secrets: &[Hidden]) -> Result<Self, BuildError> {
        let mut patterns = Vec::new();
        let mut names = Vec::new();
        for secret in secrets {
            for form in forms(secret.reveal()) {
                patterns.push(form);
                names.push(format!("[secret {}]", secret.name()).into_bytes());
            }
        }
        if patterns.is_empty() {
            return Ok(Self { finder: None, names });
        }
        let finder = AhoCorasick::builder()
            // A faster one would take megabytes for a token in all its forms.
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .match_kind(MatchKind::LeftmostLongest)
            .build(&patterns)?;
        Ok(Self {
            finder: Some(finder),
            names,
        })
    }

    /// The bytes with names in the place of secrets; `None`: they became longer than `limit`.
    pub(in crate::policy) fn apply(&self, bytes: Vec<u8>, limit: usize) -> Option<Vec<u8>> {
        let Some(finder) = self.finder.as_ref().filter(|finder| finder.is_match(&bytes)) else {
            return Some(bytes);
        };
        let mut clean = Vec::with_capacity(bytes.len());
        let mut fits = true;
        finder.replace_all_with_bytes(&bytes, &mut clean, |found, _, clean| {
            if let Some(name) = self.names.get(found.pattern().as_usize()) {
                clean.extend_from_slice(name);
            }
            fits = clean.len() <= limit;
            fits
        });
        fits.then_some(clean)
    }
}

/// Every way in which a value may stand in a response.
fn forms(value: &str) -> Vec<Vec<u8>> {
    let mut forms: Vec<String> = vec![value.to_owned()];
    forms.extend(json(value));
    for (double, single) in [("&quot;", "&#39;"), ("&#34;", "&#39;"), ("&quot;", "&#x27;")] {
        forms.push(html(value, double, single));
    }
    for plus in [false, true] {
        forms.push(percent(value, plus, "%X"));
        forms.push(percent(value, plus, "%x"));
    }
    forms.extend(base64(value));
    forms.push(hex(value));
    forms.push(hex(value).to_ascii_uppercase());
    forms.sort_unstable();
    forms.dedup();
    forms.into_iter().map(String::into_bytes).collect()
}

/// As a JSON string has it: with what must be escaped, with slashes escaped, and with everything but ASCII escaped.
fn json(value: &str) -> Vec<String> {
    let quoted = serde_json::to_string(value).unwrap_or_default();
    let inner = quoted
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .unwrap_or(value);
    let ascii: String = inner.chars().map(unicode_escaped).collect();
    // Go and others also write these as code points.
    let go = inner
        .replace('&', "\\u0026")
        .replace('<', "\\u003c")
        .replace('>', "\\u003e");
    let slashes = inner.replace('/', "\\/");
    let ascii_slashes = ascii.replace('/', "\\/");
    vec![inner.to_owned(), ascii, go, slashes, ascii_slashes]
}

fn unicode_escaped(char: char) -> String {
    if char.is_ascii() {
        return char.to_string();
    }
    let mut units = [0; 2];
    char.encode_utf16(&mut units)
        .iter()
        .map(|unit| format!("\\u{unit:04x}"))
        .collect()
}

/// Everybody escapes quotes otherwise.
fn html(value: &str, double: &str, single: &str) -> String {
    value
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', double)
        .replace('\'', single)
}

/// As a URL's query has it; a form writes spaces as plus signs.
fn percent(value: &str, plus: bool, digits: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b' ' if plus => text.push('+'),
            b'-' | b'.' | b'_' | b'~' => text.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => text.push(char::from(byte)),
            _ if digits == "%x" => text.push_str(&format!("%{byte:02x}")),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// In base64 the same text has three forms, by where it begins: `user:password` is one text there. What depends on the
/// neighbours is left out.
fn base64(value: &str) -> Vec<String> {
    let mut forms = Vec::new();
    for before in 0..3 {
        let mut bytes = vec![0; before];
        bytes.extend_from_slice(value.as_bytes());
        let whole = STANDARD.encode(&bytes);
        let (from, to) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
        let Some(piece) = whole.get(from..to).filter(|piece| piece.len() >= PIECE_BYTES) else {
            continue;
        };
        forms.push(piece.replace('+', "-").replace('/', "_"));
        forms.push(piece.to_owned());
    }
    // A short one that stands alone.
    forms.push(STANDARD.encode(value));
    forms
}

fn hex(value: &str) -> String {
    crate::policy::digest::hex(value.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    fn clean(secrets: &[(&str, &str)], text: &str) -> String {
        let secrets: Vec<Hidden> = secrets
            .iter()
            .map(|(name, value)| Hidden::new(name, value))
            .collect();
        let redaction = Redaction::of(&secrets).unwrap();
        String::from_utf8(redaction.apply(text.as_bytes().to_vec(), 1 << 20).unwrap()).unwrap()
    }

    #[test]
    fn a_secret_is_found_in_every_form() {
        let value = "p\"ä/ß+ <w>&'x\\y";
        let encoded = [
            value.to_owned(),
            serde_json::to_string(value).unwrap(),
            "p\\\"\\u00e4/\\u00df+ <w>&'x\\\\y".to_owned(),
            "p\\\"ä\\/ß+ <w>&'x\\\\y".to_owned(),
            "p\\\"ä/ß+ \\u003cw\\u003e\\u0026'x\\\\y".to_owned(),
            "p&quot;ä/ß+ &lt;w&gt;&amp;&#39;x\\y".to_owned(),
            "p%22%C3%A4%2F%C3%9F%2B%20%3Cw%3E%26%27x%5Cy".to_owned(),
            "p%22%c3%a4%2f%c3%9f%2b+%3cw%3e%26%27x%5cy".to_owned(),
            STANDARD.encode(value),
            URL_SAFE_NO_PAD.encode(value),
            hex(value),
            hex(value).to_uppercase(),
        ];
        for text in encoded {
            let told = clean(&[("word", value)], &format!("<{text}>"));
            assert!(told.contains("[secret word]"), "{text} {told}");
            assert!(told.len() < 22, "{text} {told}");
        }
    }

    #[test]
    fn a_secret_is_found_inside_other_base64() {
        let value = "correct horse battery staple";
        for before in ["", "u", "us", "user:", "user2:"] {
            for after in ["", ":", "::"] {
                let text = STANDARD.encode(format!("{before}{value}{after}"));
                let told = clean(&[("word", value)], &text);
                assert!(told.contains("[secret word]"), "{text} {told}");
            }
        }
    }

    #[test]
    fn the_longest_wins_and_others_stay() {
        let secrets = [("short", "abcd"), ("long", "abcdefgh")];
        assert_eq!(
            clean(&secrets, "abcdefgh abcd ab"),
            "[secret long] [secret short] ab"
        );
        assert_eq!(clean(&[], "abcd"), "abcd");
        assert_eq!(clean(&secrets, "nothing"), "nothing");
    }

    #[test]
    fn what_grows_too_long_is_given_up() {
        let redaction = Redaction::of(&[Hidden::new("a-long-name", "abcd")]).unwrap();
        assert!(redaction.apply(b"abcd".repeat(100), 1000).is_none());
        assert!(redaction.apply(b"abcd".repeat(10), 1000).is_some());
    }
}
