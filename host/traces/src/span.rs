//! A span from its start to its end, in terms of OTLP.

use std::hash::{BuildHasher as _, RandomState};

use scupper_common::text::spaced_line;
use scupper_engine::Time;

use super::otlp::{AnyValue, KeyValue, OtlpEvent, OtlpSpan, OtlpStatus, SpanKind, StatusCode, Value};

/// Maximum length of a text from outside.
const WORDS: usize = 500;

/// Maximum number of events in one span; further events are counted.
const EVENTS: usize = 64;

const NANOS_A_MILLI: u64 = 1_000_000;

/// Identifies a span within its trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SpanId(u64);

impl SpanId {
    /// Derives an id. Another process that continues the trace derives the same id from the same parts.
    pub(super) fn of(trace: u128, parts: &[&str]) -> Self {
        const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
        let hashed = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        let hash = trace.to_be_bytes().into_iter().fold(OFFSET, hashed);
        // The separator is a byte that occurs in no text.
        let parts = parts.iter().flat_map(|part| part.bytes().chain([0xff]));
        Self(parts.fold(hash, hashed).max(1))
    }

    /// A random id, for a span that no other process needs to find.
    pub(super) fn random() -> Self {
        Self(RandomState::new().hash_one(0_u8).max(1))
    }

    fn to_vec(self) -> Vec<u8> {
        self.0.to_be_bytes().to_vec()
    }
}

/// A span that has not ended.
#[derive(Clone, Debug)]
pub(super) struct OpenSpan {
    pub(super) id: SpanId,
    parent: Option<SpanId>,
    name: String,
    started: Time,
    attributes: Vec<KeyValue>,
    events: Vec<OtlpEvent>,
    dropped_events: u32,
}

/// The result of a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SpanResult {
    /// Neither success nor an error.
    Unset,
    Ok,
    /// An error, with its cause.
    Error(String),
}

impl OpenSpan {
    pub(super) fn begin(id: SpanId, parent: Option<SpanId>, name: impl Into<String>, started: Time) -> Self {
        Self {
            id,
            parent,
            name: name.into(),
            started,
            attributes: Vec::new(),
            events: Vec::new(),
            dropped_events: 0,
        }
    }

    pub(super) const fn started(&self) -> Time {
        self.started
    }

    /// Adds an attribute.
    pub(super) fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.set_attribute(key, value);
        self
    }

    pub(super) fn set_attribute(&mut self, key: &str, value: impl Into<Value>) {
        self.attributes.push(attribute(key, value.into()));
    }

    /// Adds an event.
    pub(super) fn add_event(&mut self, now: Time, name: &str, attributes: Vec<(&str, Value)>) {
        if self.events.len() >= EVENTS {
            self.dropped_events += 1;
            return;
        }
        self.events.push(OtlpEvent {
            time_unix_nano: nanos(now),
            name: name.to_owned(),
            attributes: attributes
                .into_iter()
                .map(|(key, it)| attribute(key, it))
                .collect(),
        });
    }

    /// Ends the span.
    pub(super) fn end(self, trace: u128, now: Time, went: SpanResult) -> OtlpSpan {
        let status = match went {
            SpanResult::Unset => None,
            SpanResult::Ok => Some((StatusCode::Ok, String::new())),
            SpanResult::Error(why) => Some((StatusCode::Error, short_line(&why))),
        };
        OtlpSpan {
            trace_id: trace.to_be_bytes().to_vec(),
            span_id: self.id.to_vec(),
            parent_span_id: self.parent.map(SpanId::to_vec).unwrap_or_default(),
            name: self.name,
            kind: SpanKind::Internal.into(),
            start_time_unix_nano: nanos(self.started),
            // The clock may have been set back; the end must not precede the start.
            end_time_unix_nano: nanos(now.max(self.started)),
            attributes: self.attributes,
            events: self.events,
            dropped_events_count: self.dropped_events,
            status: status.map(|(code, message)| OtlpStatus {
                message,
                code: code.into(),
            }),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(short_line(text))
    }
}

impl From<&String> for Value {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl From<bool> for Value {
    fn from(yes: bool) -> Self {
        Self::Yes(yes)
    }
}

pub(super) fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
    }
}

/// A text on one line, cut to a readable length.
pub(super) fn short_line(text: &str) -> String {
    let mut words = spaced_line(text);
    if let Some((end, _)) = words.char_indices().nth(WORDS) {
        words.truncate(end);
        words.push('…');
    }
    words
}

const fn nanos(time: Time) -> u64 {
    time.as_millis().saturating_mul(NANOS_A_MILLI)
}
