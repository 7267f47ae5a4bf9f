//! INSERT, UPDATE, DELETE, MERGE.

use std::sync::Arc;

use melba_types::{DbError, Result};

use super::{ExecContext, Operator};
use crate::plan::modify::ModifyNode;

pub(crate) fn build(_node: Arc<ModifyNode>, _ctx: &ExecContext) -> Result<Box<dyn Operator>> {
    Err(DbError::unsupported("changing data"))
}
