//! The listener: accepts connections, authenticates them, and serves their sessions in turns. The only crate with sockets.
//!
//! Invariants:
//! 1. A client can harm only its own connection.
//! 2. A session's state is not touched before its client is authenticated.
//! 3. Clients that are not authenticated cannot keep others out (`newcomers`), and must complete authentication within
//!    authentication_timeout.
//!
//! Why threads that take turns rather than an async runtime: see "Decisions" in ARCHITECTURE.md.

#![allow(clippy::disallowed_methods, reason = "the edge: sockets, their timeouts, files of configuration")]

mod access;
mod authentication;
mod client_session;
mod cold;
mod connection;
mod early;
mod hba;
mod iceberg;
mod listener;
mod metrics;
mod newcomers;
mod poller;
mod processors;
mod publisher;
mod questions;
mod scheduler;
mod sender;
mod sending;
mod startup;
mod stream;
mod tcp;
mod tcp_options;
mod tls;
mod turns;
mod unix_socket;

pub use access::Access;
pub use cold::ColdMover;
pub use early::BoundListeners;
pub use hba::is_own_account;
pub use listener::{Server, ServerHandle};
pub use melba_protocol::scram::Verifier;
pub use metrics::{Metrics, Work};
pub use publisher::Publisher;
pub use scheduler::scheduler;
