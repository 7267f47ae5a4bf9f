//! Sub-plans as expressions know them: the plan, its arguments and the use of its rows. `SubPlans` runs them.

use std::sync::Arc;

use melba_types::Oid;

use super::Expression;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubPlanKind {
    Exists,
    /// EXISTS decided by a lookup of the correlated values: ANY that is never unknown.
    ExistsAny,
    Any,
    All,
    /// The first row's first column; more rows are an error.
    Scalar,
    /// The only row as a record.
    Record,
    Array,
}

#[derive(Clone, Debug)]
pub struct SubPlan {
    /// Index into `Plan::subplans`.
    pub index: usize,
    pub kind: SubPlanKind,
    /// Executor parameters to set from this row before running.
    pub args: Vec<(usize, Expression)>,
    /// ANY, ALL: the comparison.
    pub test: Option<SubPlanTest>,
    /// Types of the sub-plan's columns.
    pub column_types: Arc<[Oid]>,
    /// ARRAY: of the result.
    pub element_type: Oid,
    /// It calls nothing volatile: to run it again for the same row changes nothing.
    pub is_repeatable: bool,
    /// It is a value that depends on nothing around it: it is computed once.
    pub is_fixed: bool,
}

#[derive(Clone, Debug)]
pub struct SubPlanTest {
    /// Reads the sub-plan's columns as executor parameters `first..first + columns`.
    pub condition: Expression,
    pub first: usize,
    pub columns: usize,
    /// When the condition is a conjunction of equalities that hashing decides: the operands of this row's side.
    pub probes: Option<Vec<Expression>>,
}
