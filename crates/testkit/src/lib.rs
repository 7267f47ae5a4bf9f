//! Tools for tests against a running server.

pub mod history;
