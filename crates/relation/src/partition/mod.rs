//! Partitions of tables: bounds, and what they share with their parent.

pub mod bound;
pub mod foreign_key;
pub mod identity;
pub mod index;
pub mod referenced;
