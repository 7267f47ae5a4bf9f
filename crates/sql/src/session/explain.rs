//! EXPLAIN.

use std::sync::Arc;
use std::time::Instant;

use melba_types::{DbError, Result, bail, err, oids};
use pg_query::NodeEnum;
use pg_query::protobuf as pb;

use super::context::StatementContext;
use super::pipeline;
use super::portal::{Outcome, ResultColumn, StoredRows, Tag};
use crate::execute::{BATCH_ROWS, Execution};
use crate::plan::explain::{ExplainOptions, explain, explain_json};
use crate::transaction::Tx;

/// What EXPLAIN's parentheses say.
pub(super) struct Options {
    options: ExplainOptions,
    summary: bool,
    json: bool,
}

/// The one column of EXPLAIN's result.
pub(super) fn columns(statement: &pb::ExplainStmt) -> Result<Arc<[ResultColumn]>> {
    let ty = if options(statement)?.json { oids::JSON } else { oids::TEXT };
    let column =
        ResultColumn { name: "QUERY PLAN".into(), ty, typmod: -1, table: melba_types::Oid::INVALID, attribute: 0, size: -1 };
    Ok(Arc::from([column]))
}

/// Options as written; a bare name is true.
fn options(statement: &pb::ExplainStmt) -> Result<Options> {
    let mut out = Options { options: ExplainOptions { costs: true, analyze: false, timing: true }, summary: false, json: false };
    let mut summary = None;
    for node in &statement.options {
        let Some(NodeEnum::DefElem(option)) = &node.node else { continue };
        match option.defname.as_str() {
            "costs" => out.options.costs = boolean(option)?,
            "analyze" => out.options.analyze = boolean(option)?,
            "timing" => out.options.timing = boolean(option)?,
            "summary" => summary = Some(boolean(option)?),
            // They add lines that this executor has nothing to say on, or that hold for any plan.
            "verbose" | "buffers" | "settings" | "wal" | "memory" | "generic_plan" => drop(boolean(option)?),
            "serialize" => {}
            "format" => match text(option).as_deref() {
                Some("text") => {}
                Some("json") => out.json = true,
                Some("xml" | "yaml") => return Err(DbError::unsupported("this format of EXPLAIN")),
                other => bail!(
                    INVALID_PARAMETER_VALUE,
                    "unrecognized value for EXPLAIN option \"format\": \"{}\"",
                    other.unwrap_or("")
                ),
            },
            other => {
                return Err(err!(SYNTAX_ERROR, "unrecognized EXPLAIN option \"{other}\"").at(option.location));
            }
        }
    }
    out.summary = summary.unwrap_or(out.options.analyze);
    Ok(out)
}

fn text(option: &pb::DefElem) -> Option<String> {
    match option.arg.as_deref().and_then(|a| a.node.as_ref()) {
        Some(NodeEnum::String(s)) => Some(s.sval.to_lowercase()),
        Some(NodeEnum::Integer(i)) => Some(i.ival.to_string()),
        Some(NodeEnum::Boolean(b)) => Some(b.boolval.to_string()),
        _ => None,
    }
}

fn boolean(option: &pb::DefElem) -> Result<bool> {
    if option.arg.is_none() {
        return Ok(true);
    }
    match text(option).as_deref() {
        Some("true" | "on" | "1") => Ok(true),
        Some("false" | "off" | "0") => Ok(false),
        _ => bail!(SYNTAX_ERROR, "{} requires a Boolean value", option.defname),
    }
}

/// Plans (and with ANALYZE runs) the statement and returns the lines.
pub(super) fn run(context: &StatementContext, tx: &Arc<Tx>, statement: &pb::ExplainStmt) -> Result<Outcome> {
    let options = options(statement)?;
    let mut node = statement.query.as_deref().and_then(|q| q.node.as_ref());
    if let Some(NodeEnum::CreateTableAsStmt(create)) = node {
        node = create.query.as_deref().and_then(|q| q.node.as_ref());
    }
    let Some(node) = node.filter(|n| pipeline::is_query(n)) else {
        return Err(DbError::unsupported("EXPLAIN of this statement"));
    };
    let context = StatementContext { catalog: tx.catalog(), ..context.clone() };
    let planning = Instant::now();
    let plan = pipeline::plan_to_explain(&context, node)?;
    let planned_in = planning.elapsed();
    pipeline::lock_relations(tx, &plan)?;
    let mut timings = Vec::new();
    let executing = Instant::now();
    if options.options.analyze {
        let mut ctx = pipeline::exec_context(&context, tx);
        ctx.instrument();
        let mut execution = Execution::new(plan.clone(), ctx)?;
        while execution.next_batch(BATCH_ROWS)?.is_some() {}
        timings = execution.ctx.timings();
    }
    let executed_in = executing.elapsed();
    let lines = if options.json {
        vec![explain_json(&plan, options.options, &timings)]
    } else {
        let mut lines = explain(&plan, options.options, &timings);
        if options.summary {
            lines.push(format!("Planning Time: {:.3} ms", planned_in.as_secs_f64() * 1000.0));
            if options.options.analyze {
                lines.push(format!("Execution Time: {:.3} ms", executed_in.as_secs_f64() * 1000.0));
            }
        }
        lines
    };
    let batch = pipeline::text_rows(vec![lines]);
    let source = Box::new(StoredRows(vec![batch].into_iter()));
    Ok(Outcome::Rows { columns: columns(statement)?, source, tag: Tag::Fixed("EXPLAIN".to_owned()), formats: Vec::new() })
}
