//! Removes secrets from responses: a server that echoes its input must not reveal to a policy the values that the host
//! hides from it.
//!
//! Percent-encoding is undone twice. A login page puts the URL with the secret into a parameter of another URL, so the
//! secret arrives encoded twice, and the policy could decode it twice. Further patterns cannot replace this: an encoder
//! may encode any subset of the bytes.

use std::cmp::Reverse;
use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind, BuildError, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::SecretString;

/// A shorter piece of an encoded secret would be found by chance.
const PIECE_BYTES: usize = 6;

/// How often a text may be percent-encoded: in a URL, and in a URL that another URL contains.
const LAYERS: usize = 2;

/// Finds secrets in plain form, and in the forms in which servers write them.
pub(crate) struct Redaction {
    finder: Option<AhoCorasick>,
    /// The replacement for each pattern.
    names: Vec<Vec<u8>>,
}

/// The place of a secret, and its pattern.
struct Found {
    place: Range<usize>,
    pattern: usize,
}

impl Redaction {
    /// Builds the search for these values.
    pub(crate) fn of(secrets: &[SecretString]) -> Result<Self, BuildError> {
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
            // A faster automaton would take megabytes for a token in all its forms.
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .match_kind(MatchKind::LeftmostLongest)
            .build(&patterns)?;
        Ok(Self {
            finder: Some(finder),
            names,
        })
    }

    /// The bytes with names in place of secrets; `None`: the result is longer than `limit`.
    pub(crate) fn apply(&self, bytes: Vec<u8>, limit: usize) -> Option<Vec<u8>> {
        let found = self.find(&bytes);
        if found.is_empty() {
            return Some(bytes);
        }
        let mut clean = Vec::with_capacity(bytes.len());
        let mut rest = 0;
        for Found { place, pattern } in found {
            clean.extend_from_slice(bytes.get(rest..place.start).unwrap_or_default());
            clean.extend_from_slice(self.names.get(pattern).map_or(b"", Vec::as_slice));
            if clean.len() > limit {
                return None;
            }
            rest = place.end;
        }
        clean.extend_from_slice(bytes.get(rest..).unwrap_or_default());
        Some(clean)
    }

    /// Every place, in order and without overlaps: in the plain text, and in the percent-decoded text.
    fn find(&self, bytes: &[u8]) -> Vec<Found> {
        let Some(finder) = &self.finder else {
            return Vec::new();
        };
        let mut found = find(finder, bytes);
        let mut layers: Vec<Vec<u8>> = Vec::new();
        for _ in 0..LAYERS {
            let outer = layers.last().map_or(bytes, Vec::as_slice);
            if !is_encoded(outer) {
                break;
            }
            layers.push(Unescaped::of(outer).map(|(byte, _)| byte).collect());
            let mut inner = find(finder, layers.last().map_or(b"", Vec::as_slice));
            let outside = [bytes].into_iter().chain(layers.iter().map(Vec::as_slice));
            let outside: Vec<&[u8]> = outside.take(layers.len()).collect();
            outside.iter().rev().for_each(|text| carry_over(text, &mut inner));
            found.append(&mut inner);
        }
        found.sort_by_key(|found| (found.place.start, Reverse(found.place.end)));
        // Overlapping places are removed together, so that no part of either remains.
        found.dedup_by(|next, kept| {
            let overlaps = next.place.start < kept.place.end;
            if overlaps {
                kept.place.end = kept.place.end.max(next.place.end);
            }
            overlaps
        });
        found
    }
}

fn find(finder: &AhoCorasick, text: &[u8]) -> Vec<Found> {
    let found = finder.find_iter(text).map(|found| Found {
        place: found.range(),
        pattern: found.pattern().as_usize(),
    });
    found.collect()
}

/// Maps places in the decoded text, in order, to the same places in the encoded text.
fn carry_over(text: &[u8], found: &mut [Found]) {
    let mut read = Unescaped::of(text);
    let (mut passed, mut end) = (0, 0);
    let mut place_of = |place: usize| {
        while passed < place
            && let Some((_, next)) = read.next()
        {
            passed += 1;
            end = next;
        }
        end
    };
    for Found { place, .. } in found {
        *place = place_of(place.start)..place_of(place.end);
    }
}

/// Whether any part of it is percent-encoded.
fn is_encoded(text: &[u8]) -> bool {
    let hex = |byte: &u8| byte.is_ascii_hexdigit();
    text.windows(3)
        .any(|three| matches!(three, [b'%', high, low] if hex(high) && hex(low)))
}

/// A text after percent-decoding, whichever of its bytes are encoded: each byte, and where it ends in the text. A plus
/// sign is a space, as in [`forms`].
struct Unescaped<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Unescaped<'a> {
    const fn of(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }
}

impl Iterator for Unescaped<'_> {
    type Item = (u8, usize);

    fn next(&mut self) -> Option<Self::Item> {
        let (byte, length) = match *self.text.get(self.at..)? {
            [b'%', high, low, ..] => match (digit(high), digit(low)) {
                (Some(high), Some(low)) => (high << 4 | low, 3),
                _ => (b'%', 1),
            },
            [b'+', ..] => (b' ', 1),
            [byte, ..] => (byte, 1),
            [] => return None,
        };
        self.at += length;
        Some((byte, self.at))
    }
}

fn digit(byte: u8) -> Option<u8> {
    let digit = char::from(byte).to_digit(16)?;
    u8::try_from(digit).ok()
}

/// All forms in which a response may contain a value.
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
    // A reader of a URL takes a plus sign for a space; see `Unescaped`.
    let spaced: Vec<String> = forms.iter().map(|form| form.replace('+', " ")).collect();
    forms.extend(spaced);
    forms.sort_unstable();
    forms.dedup();
    forms.into_iter().map(String::into_bytes).collect()
}

/// As in a JSON string: with the necessary escapes, with escaped slashes, and with everything but ASCII escaped.
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

/// Encoders differ in how they escape quotes.
fn html(value: &str, double: &str, single: &str) -> String {
    value
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', double)
        .replace('\'', single)
}

/// As in a URL's query; forms write spaces as plus signs.
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

/// In base64 the same text has three forms, depending on its offset: in `user:password` the password is not at the
/// beginning. Characters that depend on the neighbours are left out.
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
    // A short value that stands alone.
    forms.push(STANDARD.encode(value));
    forms
}

fn hex(value: &str) -> String {
    scupper_policy_compile::hex(value.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    fn clean(secrets: &[(&str, &str)], text: &str) -> String {
        let secrets: Vec<SecretString> = secrets
            .iter()
            .map(|(name, value)| SecretString::new(name, value))
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
            let reported = clean(&[("word", value)], &format!("<{text}>"));
            assert!(reported.contains("[secret word]"), "{text} {reported}");
            assert!(reported.len() < 22, "{text} {reported}");
        }
    }

    /// `text` with the bytes that `is_encoded` selects as percent signs and digits; each letter's place decides its
    /// case.
    fn encoded(text: &str, is_encoded: impl Fn(usize) -> bool, is_upper: impl Fn(usize) -> bool) -> String {
        let byte = |(place, byte): (usize, u8)| match (is_encoded(place), is_upper(place)) {
            (true, true) => format!("%{byte:02X}"),
            (true, false) => format!("%{byte:02x}"),
            (false, _) => char::from(byte).to_string(),
        };
        text.bytes().enumerate().map(byte).collect()
    }

    #[test]
    fn a_secret_is_found_whichever_bytes_are_percent_encoded() {
        let value = "j/K+o z%4m";
        let is_open = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
        let must: u32 = value
            .bytes()
            .enumerate()
            .filter(|(_, byte)| !is_open(*byte))
            .map(|(place, _)| 1 << place)
            .sum();
        for subset in 0..1_u32 << value.len() {
            // Characters with another meaning in a URL are always encoded.
            let picks = subset | must;
            let text = encoded(
                value,
                |place| picks >> place & 1 == 1,
                |place| subset >> (9 - place) & 1 == 1,
            );
            let reported = clean(&[("word", value)], &format!("?a=%20{text}&b=%"));
            assert_eq!(reported, "?a=%20[secret word]&b=%", "{text}");
        }
    }

    #[test]
    fn a_secret_is_found_where_every_byte_is_percent_encoded() {
        let value = "correct horse+\u{e4}";
        let all: [fn(usize) -> bool; 3] = [|_| true, |_| false, |place| place % 2 == 0];
        for is_upper in all {
            let once = encoded(value, |_| true, is_upper);
            assert_eq!(clean(&[("word", value)], &once), "[secret word]");
            let twice = encoded(&once, |place| place % 3 == 0, is_upper);
            assert_eq!(clean(&[("word", value)], &twice), "[secret word]", "{twice}");
            let piece = encoded(&STANDARD.encode(value), |_| true, is_upper);
            assert_eq!(clean(&[("word", value)], &piece), "[secret word]", "{piece}");
        }
        // Forms may write spaces either way.
        for text in ["correct+horse%2B%C3%A4", "%63orrect%20horse%2b%c3%a4"] {
            assert_eq!(clean(&[("word", value)], text), "[secret word]");
        }
    }

    #[test]
    fn overlapping_secrets_are_removed_together() {
        let secrets = [("first", "abc%64"), ("second", "cdef")];
        assert_eq!(clean(&secrets, "<abc%64ef>"), "<[secret first]>");
        // Nothing here is encoded, and nothing is removed.
        for text in ["100%", "%", "%4", "%zz", "a%2", "%%%", "50%25 + 1"] {
            assert_eq!(clean(&secrets, text), text);
        }
    }

    #[test]
    fn a_secret_is_found_inside_other_base64() {
        let value = "correct horse battery staple";
        for before in ["", "u", "us", "user:", "user2:"] {
            for after in ["", ":", "::"] {
                let text = STANDARD.encode(format!("{before}{value}{after}"));
                let reported = clean(&[("word", value)], &text);
                assert!(reported.contains("[secret word]"), "{text} {reported}");
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
    fn text_that_grows_too_long_is_dropped() {
        let redaction = Redaction::of(&[SecretString::new("a-long-name", "abcd")]).unwrap();
        assert!(redaction.apply(b"abcd".repeat(100), 1000).is_none());
        assert!(redaction.apply(b"abcd".repeat(10), 1000).is_some());
    }
}
