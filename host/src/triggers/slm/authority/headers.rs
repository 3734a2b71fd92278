//! A block of HPACK headers with another `:authority`.
//!
//! The block is walked field by field and nothing is decoded. The sender counts the old, longer value in its table of
//! recent fields and the receiver the new one, so only the sender can run out of room: what it drops, it does not
//! refer to any more, and all other positions stay the same.

/// `:authority` in HPACK's fixed table of names.
const AUTHORITY: usize = 1;
/// What it becomes: nine characters, in plain text.
const LOCALHOST: &[u8] = b"\x09localhost";

/// The same block, with `localhost` for each `:authority` that is spelled out. A block that cannot be walked stays as
/// it is, for the HTTP/2 library to refuse.
pub(super) fn rewrite(block: &[u8]) -> Vec<u8> {
    walk(block).unwrap_or_else(|| block.to_vec())
}

fn walk(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut rewritten = Vec::with_capacity(rest.len());
    while let Some(first) = rest.first() {
        let (field, after) = match first {
            // A field of one of the tables.
            0x80.. => rest.split_at_checked(integer(rest, 7)?.1)?,
            // The size of the table of recent fields.
            0x20..0x40 => rest.split_at_checked(integer(rest, 5)?.1)?,
            // A field that is spelled out, to be remembered or not.
            _ => {
                let (name, mut before) = integer(rest, if *first < 0x40 { 4 } else { 6 })?;
                if name == 0 {
                    before += string(rest.get(before..)?)?;
                }
                let value = string(rest.get(before..)?)?;
                let (field, after) = rest.split_at_checked(before + value)?;
                if name == AUTHORITY {
                    rewritten.extend(field.get(..before)?);
                    (LOCALHOST, after)
                } else {
                    (field, after)
                }
            }
        };
        rewritten.extend(field);
        rest = after;
    }
    Some(rewritten)
}

/// A whole number whose first byte has so many bits for it: its value, and how many bytes it takes.
fn integer(bytes: &[u8], bits: u32) -> Option<(usize, usize)> {
    let most = (1_usize << bits) - 1;
    let mut value = usize::from(*bytes.first()?) & most;
    if value < most {
        return Some((value, 1));
    }
    for (at, byte) in bytes.iter().enumerate().skip(1) {
        let shift = u32::try_from((at - 1) * 7).ok()?;
        value = value.checked_add(usize::from(byte & 0x7f).checked_shl(shift)?)?;
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
    }
    None
}

/// How many bytes a text takes, its length included, whichever way it is written.
fn string(bytes: &[u8]) -> Option<usize> {
    let (length, head) = integer(bytes, 7)?;
    head.checked_add(length).filter(|end| *end <= bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authority_becomes_localhost_however_it_is_written() {
        // Remembered, not remembered, never to be remembered; plain text or (the high bit of the length) not.
        for (kind, length) in [(0x41, 3), (0x01, 3), (0x11, 3), (0x41, 0x83)] {
            let block = [0x83, kind, length, b'%', b'2', b'F', 0x86];
            let expected = [&[0x83, kind][..], LOCALHOST, &[0x86]].concat();
            assert_eq!(rewrite(&block), expected);
        }
        let long = [&[0x41, 0x7f, 0x49][..], &[b'%'; 200], &[0x86]].concat();
        assert_eq!(rewrite(&long), [&[0x41][..], LOCALHOST, &[0x86]].concat());
    }

    #[test]
    fn everything_else_stays_as_it_is() {
        let table_size = [0x3f, 0xe1, 0x1f];
        let named = [
            0x40, 2, b't', b'e', 8, b't', b'r', b'a', b'i', b'l', b'e', b'r', b's',
        ];
        let path = [0x44, 2, b'/', b'x'];
        let recent = [0xff, 0x00];
        let block = [&table_size[..], &named, &path, &recent].concat();
        assert_eq!(rewrite(&block), block);
        // A name by its number, where the number takes two bytes: 1 is not the first of those.
        let far = [0x7f, 0x01, 1, b'x'];
        assert_eq!(rewrite(&far), far);
    }

    #[test]
    fn a_block_that_ends_too_soon_stays_as_it_is() {
        let whole = [0x83, 0x41, 3, b'%', b'2', b'F'];
        for length in 2..whole.len() {
            assert_eq!(rewrite(&whole[..length]), whole[..length]);
        }
        assert_eq!(
            rewrite(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]).len(),
            11
        );
    }
}
