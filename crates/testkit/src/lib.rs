//! Tools for tests against a running server.

#![allow(clippy::disallowed_methods, reason = "it tests a server from outside, by real time")]

pub mod differential;
pub mod history;
pub mod powercut;
pub mod predicates;
pub mod sqllogictest;
