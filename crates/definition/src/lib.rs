//! What statements that define objects share.
//!
//! Utility statements find, lock and check the objects that they name by a `Lookup`. Those that define objects are functions over a
//! `Ddl`, a `Lookup` with what only definitions need. What either asks of the session is a trait: `LookupSession`, `DdlSession`.

pub mod context;
pub mod describe;
pub mod expression;
pub mod kept_setting;
pub mod lookup;
pub mod naming;
pub mod progress;
pub mod special_schema;
pub mod store_writers;
pub mod words;
