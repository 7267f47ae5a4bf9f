//! Runs sub-plans inside expressions: scalar subqueries, EXISTS, IN, ANY, ALL, ARRAY(...).

use std::sync::Arc;

use melba_expression::{Evaluation, SubPlan, SubPlanKind, SubPlans, array_of};
use melba_types::{BATCH_ROWS, Batch, Datum, Record, Result, bail};

use super::{ExecContext, ExecutionState, Operator};

impl SubPlans for ExecutionState {
    fn eval(&self, evaluation: &Evaluation, plan: &SubPlan, row: &[Datum]) -> Result<Datum> {
        eval(plan, &ExecContext::over(evaluation, self), row)
    }
}

/// The value for one input row.
fn eval(plan: &SubPlan, ctx: &ExecContext, row: &[Datum]) -> Result<Datum> {
    for (parameter, arg) in &plan.args {
        // Expanded where it is read, which may be nowhere.
        ctx.set_executor_parameter(*parameter, arg.eval_stored(ctx, row)?);
    }
    match plan.kind {
        SubPlanKind::ExistsAny => {
            let found = quantified(plan, ctx, row)?;
            Ok(Datum::Bool(matches!(found, Datum::Bool(true))))
        }
        SubPlanKind::Any | SubPlanKind::All => quantified(plan, ctx, row),
        SubPlanKind::Record if plan.test.is_some() => row_test(plan, ctx, row),
        _ => ctx.subplan_value(plan.index, || value(plan, ctx)),
    }
}

fn value(plan: &SubPlan, ctx: &ExecContext) -> Result<Datum> {
    match plan.kind {
        SubPlanKind::Exists => ctx.with_subplan(plan.index, |operator| {
            operator.rescan(ctx)?;
            Ok(Datum::Bool(next_rows(operator, ctx, 1)?.is_some()))
        }),
        SubPlanKind::Array => ctx.with_subplan(plan.index, |operator| {
            operator.rescan(ctx)?;
            let mut elements = Vec::new();
            let mut held = ctx.resources().held();
            while let Some(batch) = next_rows(operator, ctx, BATCH_ROWS)? {
                let batch = ctx.expand_batch(batch, &ctx.subplan_kinds(plan.index))?;
                held.grow(batch.memory_bytes() + batch.rows * size_of::<Datum>())?;
                elements.extend((0..batch.rows).map(|i| batch.columns[0].get(i)));
            }
            array_of(elements, plan.element_type, plan.column_types.first() != Some(&plan.element_type))
        }),
        _ => ctx.with_subplan(plan.index, |operator| {
            operator.rescan(ctx)?;
            let Some(first) = next_rows(operator, ctx, 2)? else { return Ok(Datum::Null) };
            if first.rows > 1 || next_rows(operator, ctx, 1)?.is_some() {
                bail!(CARDINALITY_VIOLATION, "more than one row returned by a subquery used as an expression");
            }
            if plan.kind == SubPlanKind::Record {
                let fields = ctx.expand_row(&first.row(0), ctx.subplan_kinds(plan.index).iter().copied())?;
                return Ok(Datum::Record(Arc::new(Record {
                    type_oid: melba_types::oids::RECORD,
                    field_types: plan.column_types.clone(),
                    field_names: None,
                    fields,
                })));
            }
            Ok(first.columns[0].get(0))
        }),
    }
}

/// The test over the only row; NULLs when there is none.
fn row_test(plan: &SubPlan, ctx: &ExecContext, row: &[Datum]) -> Result<Datum> {
    let Some(test) = &plan.test else { return Ok(Datum::Null) };
    let value = ctx.subplan_value(plan.index, || value(plan, ctx))?;
    for i in 0..test.columns {
        let field = match &value {
            Datum::Record(record) => record.fields.get(i).cloned().unwrap_or(Datum::Null),
            _ => Datum::Null,
        };
        ctx.set_executor_parameter(test.first + i, field);
    }
    test.condition.eval_row(ctx, row)
}

fn quantified(plan: &SubPlan, ctx: &ExecContext, row: &[Datum]) -> Result<Datum> {
    let Some(test) = &plan.test else {
        return Err(melba_types::DbError::internal("quantified subquery without a test"));
    };
    let any = plan.kind != SubPlanKind::All;
    let rows = ctx.subplan_rows(plan.index)?;
    if rows.count() == 0 {
        return Ok(Datum::Bool(!any));
    }
    if let Some(probes) = &test.probes {
        let mut values = Vec::with_capacity(probes.len());
        for probe in probes {
            values.push(probe.eval_row(ctx, row)?);
        }
        if let Some(answer) = rows.contains(ctx, &values)? {
            return Ok(match answer {
                Some(found) => Datum::Bool(found),
                None => Datum::Null,
            });
        }
    }
    let mut unknown = false;
    let mut place = 0;
    while let Some(batch) = rows.read(&mut place)? {
        ctx.check_interrupt()?;
        for i in 0..batch.rows {
            for column in 0..test.columns {
                ctx.set_executor_parameter(test.first + column, batch.columns[column].get(i));
            }
            match test.condition.eval_row(ctx, row)? {
                Datum::Bool(v) if v == any => return Ok(Datum::Bool(any)),
                Datum::Bool(_) => {}
                _ => unknown = true,
            }
        }
    }
    Ok(if unknown { Datum::Null } else { Datum::Bool(!any) })
}

fn next_rows(operator: &mut dyn Operator, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
    loop {
        match operator.next(ctx, limit)? {
            Some(batch) if batch.rows == 0 => {}
            other => return Ok(other),
        }
    }
}
