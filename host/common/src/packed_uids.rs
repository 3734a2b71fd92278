//! Packs UIDs: sixteen bytes each if they are UUIDs in the API server's form.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

/// Where a UUID's text has its dashes.
const DASHES: [usize; 4] = [8, 13, 18, 23];

/// Packs the UUIDs into one text, sorted; returns the other UIDs unchanged, sorted.
pub fn pack(mut uids: Vec<&str>) -> (String, Vec<String>) {
    uids.sort_unstable();
    let mut bytes = Vec::with_capacity(uids.len() * 16);
    let mut others = Vec::new();
    for uid in uids {
        match to_bytes(uid) {
            Some(uuid) => bytes.extend_from_slice(&uuid),
            None => others.push(uid.to_owned()),
        }
    }
    (STANDARD_NO_PAD.encode(bytes), others)
}

/// Unpacks the result of [`pack`]; `None` if the text is broken.
pub fn unpack(text: &str) -> Option<Vec<String>> {
    let bytes = STANDARD_NO_PAD.decode(text).ok()?;
    let (uuids, rest) = bytes.as_chunks::<16>();
    rest.is_empty().then(|| uuids.iter().map(to_text).collect())
}

fn to_bytes(uid: &str) -> Option<[u8; 16]> {
    if uid.len() != 36
        || DASHES
            .into_iter()
            .any(|place| uid.as_bytes().get(place) != Some(&b'-'))
    {
        return None;
    }
    let mut digits = uid
        .bytes()
        .enumerate()
        .filter(|(place, _)| !DASHES.contains(place))
        .map(|(_, byte)| digit(byte));
    let mut uuid = [0; 16];
    for byte in &mut uuid {
        *byte = (digits.next()?? << 4) | digits.next()??;
    }
    Some(uuid)
}

/// The value of a hexadecimal digit. Lower case only: unpacking must restore the exact text.
const fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

fn to_text(uuid: &[u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (place, byte) in uuid.iter().enumerate() {
        if matches!(place, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        for half in [byte >> 4, byte & 15] {
            text.push(char::from_digit(u32::from(half), 16).unwrap_or('0'));
        }
    }
    text
}
