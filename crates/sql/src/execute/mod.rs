//! Execution of plans: operators that are pulled, a batch at a time.
//!
//! Invariants:
//! 1. A plan is immutable and shared; operators and `ExecContext` hold all state of one execution.
//! 2. An operator returns at most as many rows as it is asked for and evaluates targets on no more; so LIMIT and portals
//!    with row limits see the side effects that PostgreSQL shows.
//! 3. Operators are `Send`; the context goes with them from thread to thread but is never shared by two.

pub mod context;
pub mod expression;
pub mod key;
mod runtime;

use melba_types::{Batch, DbError, Result};

pub use context::ExecContext;
pub use expression::Expression;

use crate::plan::PlanNode;

/// Rows asked for when nothing limits them.
pub const BATCH_ROWS: usize = 2048;

/// A running plan node.
pub trait Operator: Send {
    /// The next rows: at least one and at most `limit`, `None` when there are no more. A batch of no rows means "ask again".
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>>;
    /// Starts over, with the parameters as they are now. Also called before the first `next` of a sub-plan.
    fn rescan(&mut self, ctx: &ExecContext) -> Result<()>;
}

/// The operator for a plan node.
pub(crate) fn build(_node: &PlanNode, _ctx: &ExecContext) -> Result<Box<dyn Operator>> {
    Err(DbError::unsupported("this plan"))
}
