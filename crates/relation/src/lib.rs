//! Definitions of relations and of what belongs to them: constraints, indexes and the operator classes that order them, partitions,
//! sequences, views, triggers, rules, policies and extended statistics; the removal of objects with their dependents.
//!
//! Statements are functions over a `melba_definition::context::Ddl`. `stored_text` prints texts of the catalog again when an object that they
//! mention gets another name.

pub mod constraint;
pub mod dependents;
mod family_lock;
pub mod index;
pub mod operator_class;
pub mod partition;
pub mod policy;
mod remove;
pub mod rule;
pub mod sequence;
pub mod statistics;
pub mod stored_text;
pub mod table;
mod transition;
pub mod trigger;
pub mod view;
