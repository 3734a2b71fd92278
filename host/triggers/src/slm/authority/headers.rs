//! Reads blocks of HPACK headers and rewrites them with another `:authority`.
//!
//! The output never refers to earlier fields, so the receiver's table stays empty and cannot differ from the sender's,
//! however the sender encodes its fields and however long they are.

use super::table::{Entry, Field, Name, Table};
use super::text::{put_number, put_text, take_number, take_text};

/// The replacement for every `:authority`.
const LOCALHOST: &[u8] = b"localhost";
/// The first bits of an indexed field, a literal field that is remembered, a change of the table's size, a literal
/// field that is never remembered, and a literal field that is not remembered.
const NUMBERED: u8 = 0x80;
const REMEMBERED: u8 = 0x40;
const SIZE: u8 = 0x20;
const NEVER: u8 = 0x10;
const NOT: u8 = 0;
/// Maximum size of the output: our HTTP/2 library accepts 16 KiB and refuses a larger request. A few bytes can stand
/// for many.
const MOST: usize = 32 * 1024;

/// A block that breaks the rules. Everything after it is unreadable.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// Field number 0, which is a decoding error in every library.
pub(super) const REFUSED: [u8; 1] = [NUMBERED];

/// Reads the blocks of one connection, in their order.
#[derive(Debug, Default)]
pub(super) struct Rewriter {
    table: Table,
}

impl Rewriter {
    /// Rewrites the block with `localhost` for each `:authority`.
    pub(super) fn rewrite(&mut self, mut block: &[u8]) -> Result<Vec<u8>, Malformed> {
        let mut written = Vec::with_capacity(block.len());
        let mut sizes_may_change = true;
        while let Some(&first) = block.first() {
            if first & (NUMBERED | REMEMBERED | SIZE) == SIZE {
                let limit = take_number(&mut block, 5).filter(|_| sizes_may_change);
                limit
                    .and_then(|limit| self.table.resize(limit))
                    .ok_or(Malformed)?;
                continue;
            }
            sizes_may_change = false;
            let field = self.read(first, &mut block).ok_or(Malformed)?;
            if written.len() <= MOST {
                field.write(&mut written);
            }
        }
        Ok(written)
    }

    fn read(&mut self, first: u8, block: &mut &[u8]) -> Option<Written> {
        if first & NUMBERED != 0 {
            return Some(match self.table.get(take_number(block, 7)?)? {
                Entry::Known(number) => Written::Numbered(number),
                Entry::Recent(field) => Written::SpelledOut(NOT, field.clone()),
            });
        }
        let is_remembered = first & REMEMBERED != 0;
        let name = match take_number(block, if is_remembered { 6 } else { 4 })? {
            0 => Name::spelled(take_text(block)?),
            number => match self.table.get(number)? {
                Entry::Known(number) => Name::Known(number),
                Entry::Recent(field) => field.name.clone(),
            },
        };
        let value = take_text(block)?.into();
        let field = Field { name, value };
        if is_remembered {
            self.table.remember(field.clone());
            return Some(Written::SpelledOut(NOT, field));
        }
        Some(Written::SpelledOut(first & NEVER, field))
    }
}

/// A field of the output.
enum Written {
    /// A field of the static table.
    Numbered(usize),
    /// A literal field, after `NEVER` or `NOT`.
    SpelledOut(u8, Field),
}

impl Written {
    fn write(self, into: &mut Vec<u8>) {
        let (kind, name, value) = match self {
            Self::Numbered(number) if !Name::Known(number).is_authority() => {
                return put_number(into, NUMBERED, 7, number);
            }
            Self::Numbered(number) => (NOT, Name::Known(number), [].into()),
            Self::SpelledOut(kind, Field { name, value }) => (kind, name, value),
        };
        match &name {
            Name::Known(number) => put_number(into, kind, 4, *number),
            Name::Spelled(text) => {
                put_number(into, kind, 4, 0);
                put_text(into, text);
            }
        }
        put_text(into, if name.is_authority() { LOCALHOST } else { &value });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A literal field that needs no table.
    fn field(name: &str, value: &str) -> Vec<u8> {
        let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
        [vec![0], text(name), text(value)].concat()
    }

    fn authority() -> Vec<u8> {
        [&[0x01, 9][..], LOCALHOST].concat()
    }

    /// `:authority` in Huffman's code.
    const CODED: &[u8] = b"\x88\xb8\x3b\x53\x39\xec\x32\x7d\x7f";

    #[test]
    fn an_authority_becomes_localhost_however_it_is_written() {
        let name_by_number: [&[u8]; 3] = [&[0x41], &[0x01], &[0x11]];
        let spelled: Vec<Vec<u8>> = [0x40, 0x00, 0x10]
            .iter()
            .flat_map(|kind| {
                [
                    [&[*kind, 10][..], b":authority"].concat(),
                    [&[*kind][..], CODED].concat(),
                ]
            })
            .collect();
        let names = name_by_number
            .into_iter()
            .chain(spelled.iter().map(Vec::as_slice));
        for name in names {
            for value in [
                &b"\x03%2F"[..],
                b"\x00",
                b"\x83\x54\x58\x7f",
                &[&[0x7f, 0x49][..], &[b'%'; 200]].concat(),
            ] {
                let block = [&[0x83][..], name, value, &[0x86]].concat();
                let kind = name[0] & 0x10;
                let expected = [&[0x83][..], &[kind | 1, 9], LOCALHOST, &[0x86]].concat();
                let rewritten = Rewriter::default().rewrite(&block);
                assert_eq!(rewritten.as_deref(), Ok(expected.as_slice()), "{block:x?}");
            }
        }
        // The fixed table's own entry: an empty one.
        assert_eq!(Rewriter::default().rewrite(&[0x81]), Ok(authority()));
    }

    #[test]
    fn indexed_headers_are_spelled_out_later() {
        let mut rewriter = Rewriter::default();
        let first = [
            &[0x83, 0x40, 10][..],
            b":authority\x03%2F",
            &[0x40, 2],
            b"te\x08trailers",
            &[0x44, 2],
            b"/x",
        ]
        .concat();
        let path = [&[0x04, 2][..], b"/x"].concat();
        let expected = [&[0x83][..], &authority(), &field("te", "trailers"), &path].concat();
        assert_eq!(rewriter.rewrite(&first), Ok(expected));
        // By number; and a name by the number of a remembered field, with another value.
        let expected = [
            authority(),
            field("te", "trailers"),
            path,
            authority(),
            field("te", "x"),
        ]
        .concat();
        let block = [
            &[0xc0, 0xbf, 0xbe][..],
            &[0x7f, 0x01, 3],
            b"%2E",
            &[0x0f, 0x31, 1],
            b"x",
        ]
        .concat();
        assert_eq!(rewriter.rewrite(&block), Ok(expected));
    }

    /// The sender counts the bytes sent: an authority of one byte takes 43 of its table, and `localhost` would take 51.
    #[test]
    fn the_senders_table_is_kept_by_the_senders_lengths() {
        let mut rewriter = Rewriter::default();
        let room = [0x3f, u8::try_from(43 + 37 - 31).unwrap()];
        let block = [&room[..], &[0x40, 3], b"abc\x02de", &[0x41, 1], b"a", &[0xbf]].concat();
        let expected = [field("abc", "de"), authority(), field("abc", "de")].concat();
        assert_eq!(rewriter.rewrite(&block), Ok(expected));
        // One more, and the first is forgotten.
        assert!(rewriter.rewrite(&[&[0x40, 1][..], b"f\x01g"].concat()).is_ok());
        assert_eq!(rewriter.rewrite(&[0xc0]), Err(Malformed));
    }

    #[test]
    fn the_examples_of_the_standard_are_read() {
        // RFC 7541, C.4: three requests on one connection, in Huffman's code.
        let mut rewriter = Rewriter::default();
        let requests: [(&[u8], Vec<Vec<u8>>); 3] = [
            (
                b"\x82\x86\x84\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff",
                vec![vec![0x82, 0x86, 0x84], authority()],
            ),
            (
                b"\x82\x86\x84\xbe\x58\x86\xa8\xeb\x10\x64\x9c\xbf",
                vec![
                    vec![0x82, 0x86, 0x84],
                    authority(),
                    [&[0x0f, 9, 8][..], b"no-cache"].concat(),
                ],
            ),
            (
                b"\x82\x87\x85\xbf\x40\x88\x25\xa8\x49\xe9\x5b\xa9\x7d\x7f\x89\x25\xa8\x49\xe9\x5b\xb8\xe8\xb4\xbf",
                vec![
                    vec![0x82, 0x87, 0x85],
                    authority(),
                    field("custom-key", "custom-value"),
                ],
            ),
        ];
        for (block, expected) in requests {
            assert_eq!(rewriter.rewrite(block), Ok(expected.concat()), "{block:x?}");
        }
    }

    #[test]
    fn a_block_that_breaks_the_rules_is_refused() {
        let whole = [&[0x83, 0x40, 10][..], b":authority\x03%2F"].concat();
        for length in 2..whole.len() {
            assert_eq!(Rewriter::default().rewrite(&whole[..length]), Err(Malformed));
        }
        for block in [
            &REFUSED[..],
            &[0xbe],
            &[0x7e, 1, b'x'],
            // A table larger than we announced, and one that changes behind a field.
            &[0x3f, 0xe2, 0x1f],
            &[0x83, 0x20],
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        ] {
            assert_eq!(Rewriter::default().rewrite(block), Err(Malformed), "{block:x?}");
        }
        assert!(Rewriter::default().rewrite(&[0x3f, 0xe1, 0x1f]).is_ok());
    }

    #[test]
    fn a_few_bytes_do_not_become_many() {
        let long = [&[0x40, 1][..], b"a", &[0x7f, 0x81, 0x1e], &[b'x'; 4000]].concat();
        let block = [&long[..], &[0xbe; 10_000]].concat();
        let written = Rewriter::default().rewrite(&block).unwrap();
        assert!(
            (16 * 1024..64 * 1024).contains(&written.len()),
            "{}",
            written.len()
        );
    }
}
