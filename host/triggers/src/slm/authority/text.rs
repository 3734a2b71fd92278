//! The integers and strings of HPACK (RFC 7541, section 5). It must not know what they are parts of.

use std::sync::LazyLock;

/// Maximum length of an integer in bytes, as in our HTTP/2 library; every sensible value fits.
const LONGEST: usize = 5;
/// The bit of a string's length that marks Huffman code.
const CODED: u8 = 0x80;
/// The symbol after the 256 bytes: the end of a string. It is never sent whole.
const END: u16 = 256;
/// Maximum number of padding bits of a string.
const MOST_FILLED: u32 = 7;

/// The length of each byte's code in bits, and that of the end. The codes follow from the lengths: codes of one length
/// are consecutive numbers, in the order of their bytes, and shorter ones come first (RFC 7541, appendix B).
#[rustfmt::skip]
const BITS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

/// All codes of one length.
#[derive(Debug, Default)]
struct Codes {
    first: u32,
    /// The symbols of these codes, in order.
    symbols: Vec<u16>,
}

/// The codes by their length; none has length 0.
static CODES: LazyLock<Vec<Codes>> = LazyLock::new(|| {
    let mut first = 0_u32;
    let longest = BITS.iter().copied().max().unwrap_or_default();
    (0..=longest)
        .map(|bits| {
            let of_this = |&(symbol, length): &(u16, &u8)| (*length == bits).then_some(symbol);
            let codes = Codes {
                first,
                symbols: (0..).zip(&BITS).filter_map(|pair| of_this(&pair)).collect(),
            };
            first = (first + u32::try_from(codes.symbols.len()).unwrap_or_default()) << 1;
            codes
        })
        .collect()
});

/// Takes an integer off the front; its first byte has this many bits for it. Returns `None` if it is truncated or too
/// long.
pub(super) fn take_number(bytes: &mut &[u8], bits: u32) -> Option<usize> {
    let most = (1_usize << bits) - 1;
    let mut value = usize::from(take_byte(bytes)?) & most;
    if value < most {
        return Some(value);
    }
    for at in 0..LONGEST - 1 {
        let byte = take_byte(bytes)?;
        value += usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Takes a string off the front. Returns `None` if it is truncated or its code is invalid.
pub(super) fn take_text(bytes: &mut &[u8]) -> Option<Vec<u8>> {
    let is_coded = bytes.first()? & CODED != 0;
    let length = take_number(bytes, 7)?;
    let (text, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    if is_coded {
        decode(text)
    } else {
        Some(text.to_vec())
    }
}

/// Appends an integer; `kind` is the bits before it.
pub(super) fn put_number(into: &mut Vec<u8>, kind: u8, bits: u32, value: usize) {
    let most = (1_usize << bits) - 1;
    let low = |value: usize| u8::try_from(value & 0xff).unwrap_or_default();
    if value < most {
        into.push(kind | low(value));
        return;
    }
    into.push(kind | low(most));
    let mut rest = value - most;
    while rest >= 0x80 {
        into.push(0x80 | low(rest & 0x7f));
        rest >>= 7;
    }
    into.push(low(rest));
}

/// Appends a string without Huffman code.
pub(super) fn put_text(into: &mut Vec<u8>, text: &[u8]) {
    put_number(into, 0, 7, text.len());
    into.extend(text);
}

/// Decodes Huffman code. Returns `None` for an invalid code, an end symbol in the middle, or too much padding.
fn decode(coded: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::with_capacity(coded.len() * 8 / 5);
    let (mut code, mut bits) = (0_u32, 0_u32);
    for bit in coded
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |at| (byte >> at) & 1))
    {
        code = (code << 1) | u32::from(bit);
        bits += 1;
        let codes = CODES.get(usize::try_from(bits).ok()?)?;
        let symbol = code
            .checked_sub(codes.first)
            .and_then(|at| codes.symbols.get(usize::try_from(at).ok()?));
        if let Some(symbol) = symbol.filter(|symbol| **symbol != END) {
            text.push(u8::try_from(*symbol).ok()?);
            (code, bits) = (0, 0);
        }
    }
    // The padding is the beginning of the end symbol's code: ones.
    (bits <= MOST_FILLED && code + 1 == 1 << bits).then_some(text)
}

fn take_byte(bytes: &mut &[u8]) -> Option<u8> {
    let (first, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(*first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_standard() {
        // RFC 7541, C.1.
        for (value, bits, bytes) in [(10, 5, &[10][..]), (1337, 5, &[0x1f, 0x9a, 0x0a]), (42, 8, &[42])] {
            let mut written = Vec::new();
            put_number(&mut written, 0, bits, value);
            assert_eq!(written, bytes);
            let mut rest = bytes;
            assert_eq!((take_number(&mut rest, bits), rest), (Some(value), &[][..]));
        }
        assert_eq!(take_number(&mut &[0x1f, 0x80][..], 5), None, "it ends too soon");
        assert_eq!(
            take_number(&mut &[0x1f, 0x80, 0x80, 0x80, 0x80, 0][..], 5),
            None,
            "too long"
        );
    }

    #[test]
    fn codes_are_those_of_the_standard() {
        // RFC 7541, C.4 and C.6; the last has the longest codes.
        let cases: [(&[u8], &[u8]); 4] = [
            (b"\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff", b"www.example.com"),
            (b"\x86\xa8\xeb\x10\x64\x9c\xbf", b"no-cache"),
            (
                b"\x96\xd0\x7a\xbe\x94\x10\x54\xd4\x44\xa8\x20\x05\x95\x04\x0b\x81\x66\xe0\x82\xa6\x2d\x1b\xff",
                b"Mon, 21 Oct 2013 20:13:21 GMT",
            ),
            (b"\x84\xff\xff\xff\xf3", b"\n"),
        ];
        for (coded, text) in cases {
            let mut rest = coded;
            assert_eq!(take_text(&mut rest).as_deref(), Some(text), "{coded:x?}");
            assert!(rest.is_empty());
        }
    }

    #[test]
    fn invalid_codes_are_refused() {
        for coded in [
            &b"\x81\xff"[..],
            b"\x81\x00",
            b"\x82\x1f\xff",
            b"\x84\xff\xff\xff\xff",
            b"\x85\xff\xff\xff\xff\xff",
        ] {
            assert_eq!(take_text(&mut &coded[..]), None, "{coded:x?}");
        }
        assert_eq!(take_text(&mut &b"\x03ab"[..]), None, "it ends too soon");
    }
}
