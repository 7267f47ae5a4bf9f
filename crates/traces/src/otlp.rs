//! OpenTelemetry's messages of traces in protobuf (opentelemetry/proto/collector/trace/v1), with the fields that are used here.

use prost::Message;

use crate::{Attribute, Kind, TraceSpan};

/// The server, as its spans tell of it.
pub struct Resource {
    pub service: String,
    pub version: String,
}

#[derive(Clone, PartialEq, Message)]
struct ExportTraceServiceRequest {
    #[prost(message, repeated, tag = "1")]
    resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    resource: Option<ResourceMessage>,
    #[prost(message, repeated, tag = "2")]
    scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceMessage {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    scope: Option<InstrumentationScope>,
    #[prost(message, repeated, tag = "2")]
    spans: Vec<SpanMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct InstrumentationScope {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
}

#[derive(Clone, PartialEq, Message)]
struct SpanMessage {
    #[prost(bytes = "vec", tag = "1")]
    trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    span_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    name: String,
    #[prost(int32, tag = "6")]
    kind: i32,
    #[prost(fixed64, tag = "7")]
    start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    attributes: Vec<KeyValue>,
    #[prost(message, optional, tag = "15")]
    status: Option<Status>,
}

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(string, tag = "2")]
    message: String,
    #[prost(int32, tag = "3")]
    code: i32,
}

#[derive(Clone, PartialEq, Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(oneof = "Value", tags = "1, 3")]
    value: Option<Value>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Value {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(int64, tag = "3")]
    Number(i64),
}

const SPAN_KIND_INTERNAL: i32 = 1;
const SPAN_KIND_SERVER: i32 = 2;
const STATUS_CODE_ERROR: i32 = 2;

/// The body of a request.
pub(crate) fn encode(resource: &Resource, spans: &[TraceSpan]) -> Vec<u8> {
    let text = |key: &str, value: &str| KeyValue::new(key, Value::Text(value.to_owned()));
    let attributes = vec![
        text("service.name", &resource.service),
        text("service.version", &resource.version),
        KeyValue::new("process.pid", Value::Number(std::process::id().into())),
    ];
    let scope = InstrumentationScope { name: "melba".to_owned(), version: resource.version.clone() };
    let scope_spans = ScopeSpans { scope: Some(scope), spans: spans.iter().map(SpanMessage::of).collect() };
    let resource = Some(ResourceMessage { attributes });
    let spans = ResourceSpans { resource, scope_spans: vec![scope_spans] };
    ExportTraceServiceRequest { resource_spans: vec![spans] }.encode_to_vec()
}

impl SpanMessage {
    fn of(span: &TraceSpan) -> SpanMessage {
        let attributes = span.attributes.iter().map(|(key, value)| match value {
            Attribute::Text(text) => KeyValue::new(key, Value::Text(text.as_ref().to_owned())),
            Attribute::Number(number) => KeyValue::new(key, Value::Number(*number)),
        });
        SpanMessage {
            trace_id: span.trace.to_vec(),
            span_id: span.id.to_vec(),
            parent_span_id: span.parent.map(Vec::from).unwrap_or_default(),
            name: span.name.clone().into_owned(),
            kind: match span.kind {
                Kind::Internal => SPAN_KIND_INTERNAL,
                Kind::Server => SPAN_KIND_SERVER,
            },
            start_time_unix_nano: span.began.saturating_mul(1000),
            end_time_unix_nano: span.ended.saturating_mul(1000),
            attributes: attributes.collect(),
            status: span.error.clone().map(|message| Status { message, code: STATUS_CODE_ERROR }),
        }
    }
}

impl KeyValue {
    fn new(key: &str, value: Value) -> KeyValue {
        KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_encoded_by_the_field_numbers_of_opentelemetry() {
        let span = TraceSpan {
            trace: [7; 16],
            id: [8; 8],
            parent: None,
            name: "SELECT".into(),
            kind: Kind::Server,
            began: 1,
            ended: 3,
            attributes: vec![("a", Attribute::Number(5))],
            error: Some("no".to_owned()),
        };
        let resource = Resource { service: "s".to_owned(), version: "1".to_owned() };
        let bytes = encode(&resource, &[span]);
        let span = [
            b"\x0a\x10".as_slice(),
            &[7; 16],
            b"\x12\x08",
            &[8; 8],
            b"\x2a\x06SELECT\x30\x02",
            b"\x39\xe8\x03\0\0\0\0\0\0\x41\xb8\x0b\0\0\0\0\0\0",
            b"\x4a\x07\x0a\x01a\x12\x02\x18\x05",
            b"\x7a\x06\x12\x02no\x18\x02",
        ]
        .concat();
        assert_eq!(bytes[bytes.len() - span.len()..], span);
        // ResourceSpans, then the resource.
        assert_eq!((bytes[0], bytes.windows(12).any(|w| w == b"service.name")), (0x0a, true));
    }
}
