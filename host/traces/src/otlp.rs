//! The OTLP messages that a drain needs, with their field numbers.

use prost::{Enumeration, Message, Oneof};

/// One request to a collector.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ExportRequest {
    #[prost(message, repeated, tag = "1")]
    pub(super) resource_spans: Vec<ResourceSpans>,
}

/// Its answer.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ExportResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) partial_success: Option<PartialSuccess>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PartialSuccess {
    #[prost(int64, tag = "1")]
    pub(super) rejected_spans: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    pub(super) resource: Option<OtlpResource>,
    #[prost(message, repeated, tag = "2")]
    pub(super) scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct OtlpResource {
    #[prost(message, repeated, tag = "1")]
    pub(super) attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    pub(super) scope: Option<OtlpScope>,
    #[prost(message, repeated, tag = "2")]
    pub(super) spans: Vec<OtlpSpan>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct OtlpScope {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) version: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct OtlpSpan {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) span_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    pub(super) parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    pub(super) name: String,
    #[prost(enumeration = "SpanKind", tag = "6")]
    pub(super) kind: i32,
    #[prost(fixed64, tag = "7")]
    pub(super) start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    pub(super) end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    pub(super) attributes: Vec<KeyValue>,
    #[prost(message, repeated, tag = "11")]
    pub(super) events: Vec<OtlpEvent>,
    #[prost(uint32, tag = "12")]
    pub(super) dropped_events_count: u32,
    #[prost(message, optional, tag = "15")]
    pub(super) status: Option<OtlpStatus>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Enumeration)]
#[repr(i32)]
pub(super) enum SpanKind {
    Unspecified = 0,
    Internal = 1,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct OtlpEvent {
    #[prost(fixed64, tag = "1")]
    pub(super) time_unix_nano: u64,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(message, repeated, tag = "3")]
    pub(super) attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct OtlpStatus {
    #[prost(string, tag = "2")]
    pub(super) message: String,
    #[prost(enumeration = "StatusCode", tag = "3")]
    pub(super) code: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Enumeration)]
#[repr(i32)]
pub(super) enum StatusCode {
    Unset = 0,
    Ok = 1,
    Error = 2,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct KeyValue {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct AnyValue {
    #[prost(oneof = "Value", tags = "1, 2, 3")]
    pub(super) value: Option<Value>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Value {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(bool, tag = "2")]
    Yes(bool),
    #[prost(int64, tag = "3")]
    Number(i64),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encoded with the crate opentelemetry-proto 0.33.
    const THEIRS: &str = "0ab7010a1b0a190a0c736572766963652e6e616d6512090a07736375707065721297010a0c0a0773637570706572\
        1201311286010a100102030405060708090a0b0c0d0e0f1012080102030405060708220802030405060708092a056576696374\
        30013900ca9a3b000000004100943577000000004a080a016112030a01624a070a0163120218074a070a0164120210015a1c09\
        002f685900000000120777616974696e671a080a016512030a016660037a0712037768791802";
    const ANSWER: &str = "0a06080512026e6f";

    fn bytes(hex: &str) -> Vec<u8> {
        let digits = hex.as_bytes().chunks(2);
        let byte = |it: &[u8]| u8::from_str_radix(std::str::from_utf8(it).unwrap(), 16).unwrap();
        digits.map(byte).collect()
    }

    fn pair(key: &str, value: Value) -> KeyValue {
        KeyValue {
            key: key.into(),
            value: Some(AnyValue { value: Some(value) }),
        }
    }

    #[test]
    fn our_messages_are_opentelemetrys_byte_by_byte() {
        let text = |text: &str| Value::Text(text.into());
        let span = OtlpSpan {
            trace_id: (1..=16).collect(),
            span_id: (1..=8).collect(),
            parent_span_id: (2..=9).collect(),
            name: "evict".into(),
            kind: SpanKind::Internal.into(),
            start_time_unix_nano: 1_000_000_000,
            end_time_unix_nano: 2_000_000_000,
            attributes: vec![
                pair("a", text("b")),
                pair("c", Value::Number(7)),
                pair("d", Value::Yes(true)),
            ],
            events: vec![OtlpEvent {
                time_unix_nano: 1_500_000_000,
                name: "waiting".into(),
                attributes: vec![pair("e", text("f"))],
            }],
            dropped_events_count: 3,
            status: Some(OtlpStatus {
                message: "why".into(),
                code: StatusCode::Error.into(),
            }),
        };
        let scope = OtlpScope {
            name: "scupper".into(),
            version: "1".into(),
        };
        let request = ExportRequest {
            resource_spans: vec![ResourceSpans {
                resource: Some(OtlpResource {
                    attributes: vec![pair("service.name", text("scupper"))],
                }),
                scope_spans: vec![ScopeSpans {
                    scope: Some(scope),
                    spans: vec![span],
                }],
            }],
        };
        assert_eq!(request.encode_to_vec(), bytes(THEIRS));
        let answer = ExportResponse::decode(&bytes(ANSWER)[..]).unwrap();
        assert_eq!(answer.partial_success.unwrap().rejected_spans, 5);
    }
}
