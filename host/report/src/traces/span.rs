//! A span from its beginning to its end, in the words of OTLP.

use std::hash::{BuildHasher as _, RandomState};

use scupper_engine::Time;

use super::otlp::{AnyValue, KeyValue, OtlpEvent, OtlpSpan, OtlpStatus, SpanKind, StatusCode, Value};
use crate::messages::one_line;

/// Somebody else's words are cut to that.
const WORDS: usize = 500;

/// What may be said of one span while it lasts; more is counted.
const EVENTS: usize = 64;

const NANOS_A_MILLI: u64 = 1_000_000;

/// Tells a span from every other one of its trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SpanId(u64);

impl SpanId {
    /// Another process that goes on with the trace finds the same one from the same parts.
    pub(super) fn of(trace: u128, parts: &[&str]) -> Self {
        const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
        let hashed = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        let hash = trace.to_be_bytes().into_iter().fold(OFFSET, hashed);
        // A byte that no text has stands between two parts.
        let parts = parts.iter().flat_map(|part| part.bytes().chain([0xff]));
        Self(parts.fold(hash, hashed).max(1))
    }

    /// Nobody asks for it again.
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

/// How what a span stands for went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SpanResult {
    /// Nothing is to be said of it.
    Unset,
    Ok,
    /// With why.
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

    /// Says something of it.
    pub(super) fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.say(key, value);
        self
    }

    pub(super) fn say(&mut self, key: &str, value: impl Into<Value>) {
        self.attributes.push(attribute(key, value.into()));
    }

    /// Something happened meanwhile.
    pub(super) fn tell(&mut self, now: Time, name: &str, said: Vec<(&str, Value)>) {
        if self.events.len() >= EVENTS {
            self.dropped_events += 1;
            return;
        }
        self.events.push(OtlpEvent {
            time_unix_nano: nanos(now),
            name: name.to_owned(),
            attributes: said.into_iter().map(|(key, it)| attribute(key, it)).collect(),
        });
    }

    /// It is over.
    pub(super) fn end(self, trace: u128, now: Time, went: SpanResult) -> OtlpSpan {
        let status = match went {
            SpanResult::Unset => None,
            SpanResult::Ok => Some((StatusCode::Ok, String::new())),
            SpanResult::Error(why) => Some((StatusCode::Error, words(&why))),
        };
        OtlpSpan {
            trace_id: trace.to_be_bytes().to_vec(),
            span_id: self.id.to_vec(),
            parent_span_id: self.parent.map(SpanId::to_vec).unwrap_or_default(),
            name: self.name,
            kind: SpanKind::Internal.into(),
            start_time_unix_nano: nanos(self.started),
            // A clock that was set back must not make it end before it began.
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
        Self::Text(words(text))
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

/// On one line, and not longer than somebody reads.
pub(super) fn words(text: &str) -> String {
    let mut words = one_line(text);
    if let Some((end, _)) = words.char_indices().nth(WORDS) {
        words.truncate(end);
        words.push('…');
    }
    words
}

const fn nanos(time: Time) -> u64 {
    time.as_millis().saturating_mul(NANOS_A_MILLI)
}
