//! Traces of statements: spans, and the thread that sends them to a collector of OpenTelemetry by OTLP over HTTP.
//!
//! Invariants:
//! 1. A session never waits: it puts a finished span into a queue of bounded length, or loses it when that is full.
//! 2. A collector that does not answer costs one thread's time. The server log says so at most once a minute, with the number of lost spans.
//! 3. A server without a collector has no `Tracer`, and no thread.

#![allow(clippy::disallowed_methods, reason = "the edge: time on the wire is the system's")]

mod exporter;
mod otlp;
mod parent;

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
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

/// Where sessions leave their spans.
#[derive(Debug)]
pub struct Tracer {
    queue: SyncSender<Sent>,
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
        match self.queue.try_send(Sent::Span(span)) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}
