//! Tables: their definitions, columns, rows and parents.

pub mod alter_column;
pub mod alter_kind;
pub mod alter_persistence;
pub mod attach;
pub mod builder;
pub mod children;
pub mod cold_store;
pub mod column;
pub mod column_uses;
pub mod create;
pub mod detach;
pub mod inherit;
pub mod like;
pub mod on_commit;
pub mod persistence;
pub mod relation;
pub mod retype;
pub mod rewrite;
pub mod rows;
pub mod storage_parameters;
pub mod truncate;
pub mod typed;
