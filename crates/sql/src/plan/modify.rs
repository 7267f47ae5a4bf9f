//! INSERT, UPDATE, DELETE, MERGE.

use melba_types::{DbError, Result};

use super::node::PlanNode;
use super::planner::{Planner, Stage};
use crate::tree::Query;

#[derive(Debug)]
pub struct ModifyNode {}

impl ModifyNode {
    pub fn title(&self) -> &'static str {
        "Insert"
    }
    pub fn name(&self) -> &str {
        ""
    }
    pub fn input(&self) -> Option<&PlanNode> {
        None
    }
}

impl Planner<'_> {
    pub fn modify(&mut self, _query: &mut Query) -> Result<Stage> {
        Err(DbError::unsupported("changing data"))
    }
}
