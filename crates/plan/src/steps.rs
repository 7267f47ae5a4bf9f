//! The plan of a statement that rules have rewritten: the plans of the commands that run instead.

use std::sync::Arc;

use melba_engine::RelationLockMode;
use melba_types::Oid;

use super::node::{Estimate, Op, Plan, PlanCommand, PlanNode, PlanSteps, ResultNode};

/// The plan of the whole statement, whose command is `command`. Its own node is never run. `rewritten`: the relations whose rules
/// have rewritten it, which must keep these while it runs.
pub fn plan_of_steps(steps: PlanSteps, command: PlanCommand, rewritten: &[Oid]) -> Plan {
    let steps = Arc::new(steps);
    let any = |is: fn(&Plan) -> bool| steps.plans().any(|plan| is(plan));
    let locks = rewritten.iter().map(|oid| (*oid, RelationLockMode::RowExclusive));
    let op = Op::Result(Arc::new(ResultNode { input: None, conditions: vec![] }));
    Plan {
        root: PlanNode {
            id: 0,
            op,
            kinds: Arc::from([]),
            estimate: Estimate::default(),
            details: vec![],
            scanned: None,
            outputs: None,
        },
        columns: steps.counted_plan().map(|plan| plan.columns.clone()).unwrap_or_default(),
        subplans: vec![],
        ctes: vec![],
        work_tables: 0,
        join_filters: 0,
        top_filters: 0,
        nodes: 1,
        relations: locks.chain(steps.plans().flat_map(|plan| plan.relations.iter().copied())).collect(),
        command,
        scans_tables: any(|plan| plan.scans_tables),
        constant_error: steps.plans().find_map(|plan| plan.constant_error.clone()),
        prunes_by_parameters: any(|plan| plan.prunes_by_parameters),
        steps: Some(steps.clone()),
    }
}
