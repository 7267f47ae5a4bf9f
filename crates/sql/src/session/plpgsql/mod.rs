//! Functions, procedures and DO blocks LANGUAGE plpgsql: their statements run over a frame of variables.
//!
//! Invariants:
//! 1. A piece of SQL is analyzed when it is first reached, and again when the catalog or the shape of a record that it reads has
//!    changed since (`expression`).
//! 2. What is one expression is evaluated without a plan, over the frame's variables as its input row.
//! 3. A trigger function is kept for each trigger: its NEW and OLD are rows of the trigger's table.
//! 4. An error carries one line of context for each function that it leaves (`Frame::located`).

mod cursor;
mod diagnostics;
mod exception;
mod expression;
mod frame;
mod loops;
mod program;
mod raise;
mod result;
mod sql;
mod state;
mod statement;
mod trigger;
mod utility;
mod value;

pub(super) use frame::{Control, TransactionControl};
pub(super) use program::validate;
pub(super) use result::{call_again, call_rows, call_trigger, call_value, run_do};
pub(super) use state::end_statement;
