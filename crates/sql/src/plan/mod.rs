//! Planning: from an analyzed query to a tree of operators.

use std::sync::Arc;

use crate::execute::key::KeyPart;

/// An immutable plan, shared by its executions.
#[derive(Debug, Default)]
pub struct Plan {
    pub subplans: Vec<SubPlanNode>,
}

/// A plan that expressions run.
#[derive(Debug)]
pub struct SubPlanNode {
    pub node: PlanNode,
    /// Executor parameters it depends on.
    pub parameters: Vec<usize>,
    /// IN by hash: how the columns are compared; empty when it is not.
    pub probe_keys: Arc<[KeyPart]>,
}

#[derive(Debug)]
pub struct PlanNode {}
