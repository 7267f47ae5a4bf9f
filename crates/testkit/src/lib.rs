//! Tools for tests against a running server.

pub mod differential;
pub mod history;
pub mod powercut;
pub mod predicates;
pub mod sqllogictest;
