//! Aggregates.
