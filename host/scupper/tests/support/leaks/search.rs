//! Secrets, in every form in which a program could have written them.

use std::collections::BTreeMap;

use aho_corasick::AhoCorasick;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// This many bytes identify a secret: truncated texts must not hide it from the search.
const PIECE: usize = 12;
/// The same number of bytes in base64.
const ENCODED: usize = PIECE / 3 * 4;

/// The secrets that must not be found.
#[derive(Clone, Default)]
pub(crate) struct Secrets {
    /// Each form, and the name of its secret.
    forms: BTreeMap<String, String>,
}

impl Secrets {
    /// One more.
    pub(crate) fn add(&mut self, name: &str, value: &str) {
        assert!(value.len() >= 2 * PIECE, "{name} is too short to be searched for");
        for form in forms(value) {
            self.forms.insert(form, name.to_owned());
        }
    }

    /// Searches all of it, and fails with the first that is found.
    pub(crate) fn search(&self, all: &[(String, Vec<u8>)]) {
        let finder = AhoCorasick::new(self.forms.keys()).unwrap();
        for form in self.forms.keys() {
            let text = format!("{{\"x\": \"a{form}b\"}}");
            assert!(finder.is_match(&text), "the search does not find {form}");
        }
        for (place, bytes) in all {
            let Some(found) = finder.find(bytes) else {
                continue;
            };
            let name = self.forms.values().nth(found.pattern().as_usize()).unwrap();
            let (from, to) = (
                found.start().saturating_sub(80),
                (found.end() + 20).min(bytes.len()),
            );
            let around = String::from_utf8_lossy(&bytes[from..to]);
            panic!("{place} shows {name}: …{around}…");
        }
    }
}

pub(super) fn contains(bytes: &[u8], wanted: &str) -> bool {
    AhoCorasick::new([wanted]).unwrap().is_match(bytes)
}

/// Its beginning and its end, in each form.
fn forms(value: &str) -> Vec<String> {
    let mut forms = Vec::new();
    for piece in [&value[..PIECE], &value[value.len() - PIECE..]] {
        forms.push(piece.to_owned());
        forms.push(piece.replace('/', "\\/"));
        // As serde writes a `Vec<u8>` in JSON.
        forms.push(
            piece
                .bytes()
                .map(|byte| byte.to_string())
                .collect::<Vec<_>>()
                .join(","),
        );
        for before in ["", "%", "\\u00"] {
            forms.push(hex(piece, before));
            forms.push(hex(piece, before).to_uppercase().replace("\\U", "\\u"));
        }
    }
    // With any number of bytes before it, as in `user:password` or in a state that is kept in an annotation.
    for before in 0..3 {
        let mut bytes = vec![b'x'; before];
        bytes.extend_from_slice(value.as_bytes());
        for encoded in [STANDARD_NO_PAD.encode(&bytes), URL_SAFE_NO_PAD.encode(&bytes)] {
            // The edges depend on the neighbouring bytes.
            let (first, last) = ((before * 8).div_ceil(6), encoded.len() - 2);
            forms.push(encoded[first..first + ENCODED].to_owned());
            forms.push(encoded[last - ENCODED..last].to_owned());
        }
    }
    forms
}

fn hex(piece: &str, before: &str) -> String {
    piece.bytes().map(|byte| format!("{before}{byte:02x}")).collect()
}
