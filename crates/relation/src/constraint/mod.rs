//! Constraints of tables.

pub mod add;
pub mod add_to_table;
pub mod alter;
pub mod children;
pub mod column;
pub mod exclusion;
pub mod row;
pub mod validate;
