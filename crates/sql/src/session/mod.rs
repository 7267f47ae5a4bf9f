//! One connection's state, between the server and the stages of SQL.

/// Stack that a thread running sessions must have: the deepest tree the grammar lets through must fit, decoded and analyzed.
pub const STACK_BYTES: usize = 128 << 20;

pub mod setting_check;
pub mod setting_table;
pub mod setting_value;
pub mod settings;
