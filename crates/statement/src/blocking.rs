//! Lock waits between sessions: pg_blocking_pids and similar functions.

use std::sync::Arc;

use melba_types::{Array, ArrayDim, Datum, Result, oids};

use super::context::StatementContext;

pub(super) fn call_blocking(context: &StatementContext, source: &str, args: &[Datum]) -> Result<Datum> {
    let engine = &context.session.instance.cluster.engine;
    let pid = args[0].as_i32();
    Ok(match source {
        "pg_blocking_pids" => pids(engine.blocking_pids(pid)),
        "pg_safe_snapshot_blocking_pids" => pids(engine.safe_snapshot_blocking_pids(pid)),
        // The question of isolationtester: does one of these keep `pid` waiting?
        _ => {
            let mut blocking = engine.blocking_pids(pid);
            blocking.extend(engine.safe_snapshot_blocking_pids(pid));
            let Datum::Array(interesting) = &args[1] else { return Ok(Datum::Null) };
            Datum::Bool(interesting.elements.iter().any(|e| matches!(e, Datum::Int4(pid) if blocking.contains(pid))))
        }
    })
}

fn pids(pids: Vec<i32>) -> Datum {
    let dims = match pids.len() {
        0 => Vec::new(),
        n => vec![ArrayDim { length: n as i32, lower_bound: 1 }],
    };
    let elements = pids.into_iter().map(Datum::Int4).collect();
    Datum::Array(Arc::new(Array { element_type: oids::INT4, dims, elements }))
}
