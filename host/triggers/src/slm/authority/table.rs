//! HPACK's tables: the static one, and the dynamic one of recently sent fields. It must not know how fields are
//! encoded.

use std::collections::VecDeque;
use std::sync::Arc;

/// Maximum size of the sender's table: the standard's default, because we announce no other.
pub(super) const LARGEST: usize = 4096;
/// Overhead of each field, in addition to its name and value.
const EACH: usize = 32;
/// `:authority`, by its number and spelled out.
const AUTHORITY: usize = 1;

/// The names of the fixed table; the first one has the number 1 (RFC 7541, appendix A).
#[rustfmt::skip]
const KNOWN: [&str; 61] = [
    ":authority", ":method", ":method", ":path", ":path", ":scheme", ":scheme", ":status", ":status", ":status", ":status",
    ":status", ":status", ":status", "accept-charset", "accept-encoding", "accept-language", "accept-ranges", "accept",
    "access-control-allow-origin", "age", "allow", "authorization", "cache-control", "content-disposition",
    "content-encoding", "content-language", "content-length", "content-location", "content-range", "content-type", "cookie",
    "date", "etag", "expect", "expires", "from", "host", "if-match", "if-modified-since", "if-none-match", "if-range",
    "if-unmodified-since", "last-modified", "link", "location", "max-forwards", "proxy-authenticate", "proxy-authorization",
    "range", "referer", "refresh", "retry-after", "server", "set-cookie", "strict-transport-security", "transfer-encoding",
    "user-agent", "vary", "via", "www-authenticate",
];

/// A field's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Name {
    /// By its number in the fixed table.
    Known(usize),
    Spelled(Arc<[u8]>),
}

impl Name {
    pub(super) fn spelled(text: Vec<u8>) -> Self {
        if text == KNOWN.first().copied().unwrap_or_default().as_bytes() {
            Self::Known(AUTHORITY)
        } else {
            Self::Spelled(text.into())
        }
    }

    pub(super) fn is_authority(&self) -> bool {
        *self == Self::Known(AUTHORITY)
    }

    fn len(&self) -> usize {
        match self {
            Self::Known(number) => KNOWN.get(number - 1).map_or(0, |name| name.len()),
            Self::Spelled(text) => text.len(),
        }
    }
}

/// A field as sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) name: Name,
    pub(super) value: Arc<[u8]>,
}

impl Field {
    fn size(&self) -> usize {
        self.name.len() + self.value.len() + EACH
    }
}

/// The table entry behind an index in a block of headers.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Entry<'a> {
    /// It is in the fixed table.
    Known(usize),
    Recent(&'a Field),
}

/// The recently sent fields, newest first, as the sender has them.
#[derive(Debug)]
pub(super) struct Table {
    fields: VecDeque<Field>,
    size: usize,
    limit: usize,
}

impl Default for Table {
    fn default() -> Self {
        Self {
            fields: VecDeque::new(),
            size: 0,
            limit: LARGEST,
        }
    }
}

impl Table {
    /// Returns the entry at this index, or `None` if there is none.
    pub(super) fn get(&self, number: usize) -> Option<Entry<'_>> {
        match number.checked_sub(KNOWN.len() + 1) {
            Some(recent) => self.fields.get(recent).map(Entry::Recent),
            None => (number > 0).then_some(Entry::Known(number)),
        }
    }

    pub(super) fn remember(&mut self, field: Field) {
        self.size += field.size();
        self.fields.push_front(field);
        self.forget();
    }

    /// Applies the table size that the sender announces. Returns `None` if it exceeds the maximum.
    pub(super) fn resize(&mut self, limit: usize) -> Option<()> {
        self.limit = (limit <= LARGEST).then_some(limit)?;
        self.forget();
        Some(())
    }

    /// Drops the oldest fields until the rest fits. A field larger than the table empties it and is dropped itself.
    fn forget(&mut self) {
        while self.size > self.limit {
            let Some(oldest) = self.fields.pop_back() else {
                break;
            };
            self.size -= oldest.size();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(value: &str) -> Field {
        Field {
            name: Name::spelled(b"name".to_vec()),
            value: value.as_bytes().into(),
        }
    }

    #[test]
    fn numbers_lead_to_the_fixed_table_and_then_to_the_latest() {
        let mut table = Table::default();
        assert_eq!(table.get(0), None);
        assert_eq!(table.get(61), Some(Entry::Known(61)));
        assert_eq!(table.get(62), None);
        table.remember(field("a"));
        table.remember(field("b"));
        assert_eq!(table.get(62), Some(Entry::Recent(&field("b"))));
        assert_eq!(table.get(63), Some(Entry::Recent(&field("a"))));
        assert_eq!(table.get(64), None);
        assert_eq!(KNOWN[60], "www-authenticate");
    }

    #[test]
    fn the_oldest_make_place() {
        let mut table = Table::default();
        table.resize(2 * (4 + 1 + EACH)).unwrap();
        for value in ["a", "b", "c"] {
            table.remember(field(value));
        }
        assert_eq!(table.get(63), Some(Entry::Recent(&field("b"))));
        assert_eq!(table.get(64), None);
        table.resize(4 + 1 + EACH).unwrap();
        assert_eq!(table.get(62), Some(Entry::Recent(&field("c"))));
        assert_eq!(table.get(63), None);
        // Too large by one byte.
        table.remember(field("dd"));
        assert_eq!((table.get(62), table.size), (None, 0));
        assert_eq!(table.resize(LARGEST + 1), None);
    }
}
