//! Traces of statements: spans, and the thread that sends them to a collector of OpenTelemetry by OTLP over HTTP.
//!
//! Invariants:
//! 1. A session never waits: it puts a finished span into a queue of bounded length and size, or loses it when that is full.
//! 2. A collector that does not answer costs one thread's time. The server log says so at most once a minute, with the number of lost spans.
//! 3. A server without a collector has no `Tracer`, and no thread.

#![allow(clippy::disallowed_methods, reason = "the edge: time on the wire is the system's")]

mod exporter;
mod otlp;
mod parent;

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};

pub use exporter::{Collector, Exporter};
pub use otlp::Resource;
pub use parent::Parent;

/// What happened, from its beginning to its end.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceSpan {
    pub trace: [u8; 16],
    pub id: [u8; 8],
    pub parent: Option<[u8; 8]>,
    pub name: Cow<'static, str>,
    pub kind: Kind,
    /// Microseconds since 1970.
    pub began: u64,
    pub ended: u64,
    pub attributes: Vec<(&'static str, Attribute)>,
    /// The message of the error by which it ended.
    pub error: Option<String>,
}

impl TraceSpan {
    /// What it takes of memory.
    fn bytes(&self) -> usize {
        let text = |(_, attribute): &(&str, Attribute)| match attribute {
            Attribute::Text(text) => text.len(),
            Attribute::Number(_) => 0,
        };
        let attributes: usize = self.attributes.iter().map(text).sum();
        let own = size_of::<TraceSpan>() + self.attributes.capacity() * size_of::<(&str, Attribute)>();
        own + self.name.len() + attributes + self.error.as_ref().map_or(0, String::len)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Internal,
    /// The work that a client has asked for.
    Server,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Attribute {
    Text(Arc<str>),
    Number(i64),
}

/// Bytes of spans that are not sent yet.
const WAITING_BYTES_MAX: usize = 8 << 20;

/// Where sessions leave their spans.
#[derive(Debug)]
pub struct Tracer {
    queue: SyncSender<Sent>,
    /// Bytes of the spans that are not sent yet.
    waiting: Arc<AtomicUsize>,
    lost: Arc<AtomicU64>,
}

/// To the exporter.
#[derive(Debug)]
pub(crate) enum Sent {
    Span(TraceSpan),
    /// The server stops: no spans follow.
    End,
}

impl Tracer {
    /// Has a span sent.
    pub fn finish(&self, span: TraceSpan) {
        let bytes = span.bytes();
        let has_room = self.waiting.fetch_add(bytes, Ordering::Relaxed) + bytes <= WAITING_BYTES_MAX;
        let is_queued = has_room
            && match self.queue.try_send(Sent::Span(span)) {
                Ok(()) => true,
                Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
            };
        if !is_queued {
            self.waiting.fetch_sub(bytes, Ordering::Relaxed);
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}
