//! PostgreSQL's frontend/backend protocol, version 3, as a pure codec: bytes in, messages out, and back. No I/O.
//!
//! Invariants:
//! 1. Decoding borrows: a decoded message points into the read buffer and allocates nothing, unless the client's encoding is not
//!    UTF8.
//! 2. Decoding never panics. A malformed message is an error with SQLSTATE 08P01, text that is not UTF-8 one with 22021. Errors
//!    of framing (`frame`, `startup`) have severity FATAL, because the stream cannot be followed any further; errors inside a
//!    message body leave the stream in step and cost that message only.
//! 3. Encoding appends to one reused buffer (`Output`); a row costs no allocation.
//!
//! The message formats are those of the chapter "Message Formats" of PostgreSQL 18's manual.

pub mod backend;
pub mod body;
pub mod frame;
pub mod frontend;
pub mod password;
mod recode;
pub mod scram;
pub mod startup;

pub use backend::{Format, Output, TransactionStatus};
pub use frame::{MessageFrame, next_frame};
pub use frontend::{Bind, Frontend, FunctionCall, Target};
pub use startup::{ProtocolVersion, Startup, StartupMessage, next_startup};

#[cfg(test)]
mod tests;
