//! The listener: accepts connections, authenticates them, and serves their sessions in turns. The only crate with sockets.
//!
//! Invariants:
//! 1. Whatever a client sends costs at most its own connection.
//! 2. Nothing of a session is touched before its client is authenticated.
//!
//! Why threads that take turns rather than an async runtime: see "Decisions" in ARCHITECTURE.md.

mod client_session;
mod connection;
mod early;
mod listener;
mod poller;
mod processors;
mod sender;
mod sending;
mod startup;
mod stream;
mod tcp_options;
mod turns;
mod unix_socket;

pub use early::Bound;
pub use listener::{Server, ServerHandle};
pub use melba_protocol::scram::Verifier;
