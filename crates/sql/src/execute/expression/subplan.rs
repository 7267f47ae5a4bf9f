//! Sub-plans inside expressions: scalar subqueries, EXISTS, IN, ANY, ALL, ARRAY(...).

use std::sync::Arc;

use melba_types::{Array, ArrayDim, Batch, Datum, Oid, Record, Result, bail};

use super::Expression;
use crate::execute::{BATCH_ROWS, ExecContext};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubPlanKind {
    Exists,
    /// EXISTS decided by looking up what it is correlated by: ANY that is never unknown.
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

impl SubPlan {
    pub fn eval(&self, ctx: &ExecContext, row: &[Datum]) -> Result<Datum> {
        for (parameter, arg) in &self.args {
            // Expanded where it is looked at, which may be nowhere.
            ctx.set_executor_parameter(*parameter, arg.eval_stored(ctx, row)?);
        }
        match self.kind {
            SubPlanKind::ExistsAny => {
                let found = self.quantified(ctx, row)?;
                Ok(Datum::Bool(matches!(found, Datum::Bool(true))))
            }
            SubPlanKind::Any | SubPlanKind::All => self.quantified(ctx, row),
            SubPlanKind::Record if self.test.is_some() => self.row_test(ctx, row),
            _ => ctx.subplan_value(self.index, || self.value(ctx)),
        }
    }

    fn value(&self, ctx: &ExecContext) -> Result<Datum> {
        match self.kind {
            SubPlanKind::Exists => ctx.with_subplan(self.index, |plan| {
                plan.rescan(ctx)?;
                Ok(Datum::Bool(next_rows(plan, ctx, 1)?.is_some()))
            }),
            SubPlanKind::Array => ctx.with_subplan(self.index, |plan| {
                plan.rescan(ctx)?;
                let mut elements = Vec::new();
                let mut held = ctx.resources().held();
                while let Some(batch) = next_rows(plan, ctx, BATCH_ROWS)? {
                    let batch = ctx.expand_batch(batch, &ctx.subplan_kinds(self.index))?;
                    held.grow(batch.memory_bytes() + batch.rows * size_of::<Datum>())?;
                    elements.extend((0..batch.rows).map(|i| batch.columns[0].get(i)));
                }
                array_of(elements, self.element_type, self.column_types.first() != Some(&self.element_type))
            }),
            _ => ctx.with_subplan(self.index, |plan| {
                plan.rescan(ctx)?;
                let Some(first) = next_rows(plan, ctx, 2)? else { return Ok(Datum::Null) };
                if first.rows > 1 || next_rows(plan, ctx, 1)?.is_some() {
                    bail!(CARDINALITY_VIOLATION, "more than one row returned by a subquery used as an expression");
                }
                if self.kind == SubPlanKind::Record {
                    let fields = ctx.expand_row(&first.row(0), ctx.subplan_kinds(self.index).iter().copied())?;
                    return Ok(Datum::Record(Arc::new(Record {
                        type_oid: melba_types::oids::RECORD,
                        field_types: self.column_types.clone(),
                        field_names: None,
                        fields,
                    })));
                }
                Ok(first.columns[0].get(0))
            }),
        }
    }

    /// The test over the only row; NULLs when there is none.
    fn row_test(&self, ctx: &ExecContext, row: &[Datum]) -> Result<Datum> {
        let Some(test) = &self.test else { return Ok(Datum::Null) };
        let value = ctx.subplan_value(self.index, || self.value(ctx))?;
        for i in 0..test.columns {
            let field = match &value {
                Datum::Record(record) => record.fields.get(i).cloned().unwrap_or(Datum::Null),
                _ => Datum::Null,
            };
            ctx.set_executor_parameter(test.first + i, field);
        }
        test.condition.eval_row(ctx, row)
    }

    fn quantified(&self, ctx: &ExecContext, row: &[Datum]) -> Result<Datum> {
        let Some(test) = &self.test else {
            return Err(melba_types::DbError::internal("quantified subquery without a test"));
        };
        let any = self.kind != SubPlanKind::All;
        let rows = ctx.subplan_rows(self.index)?;
        if rows.count() == 0 {
            return Ok(Datum::Bool(!any));
        }
        if let Some(probes) = &test.probes {
            let mut values = Vec::with_capacity(probes.len());
            for probe in probes {
                values.push(probe.eval_row(ctx, row)?);
            }
            if let Some(answer) = rows.contains(&values) {
                return Ok(match answer {
                    Some(found) => Datum::Bool(found),
                    None => Datum::Null,
                });
            }
        }
        let mut unknown = false;
        let mut place = 0;
        while let Some(batch) = rows.read(&mut place)? {
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
}

fn next_rows(plan: &mut dyn crate::execute::Operator, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
    loop {
        match plan.next(ctx, limit)? {
            Some(batch) if batch.rows == 0 => {}
            other => return Ok(other),
        }
    }
}

/// ARRAY(SELECT ...): arrays make an array of one more dimension.
fn array_of(elements: Vec<Datum>, element_type: Oid, of_arrays: bool) -> Result<Datum> {
    if of_arrays {
        let mut first: Option<&[ArrayDim]> = None;
        for element in &elements {
            let Datum::Array(array) = element else { bail!(NULL_VALUE_NOT_ALLOWED, "cannot accumulate null arrays") };
            if array.dims.is_empty() {
                bail!(ARRAY_SUBSCRIPT_ERROR, "cannot accumulate empty arrays");
            }
            if first.is_some_and(|dims| dims != array.dims) {
                bail!(ARRAY_SUBSCRIPT_ERROR, "cannot accumulate arrays of different dimensionality");
            }
            first = Some(&array.dims);
        }
        return super::array::build(elements, element_type, true);
    }
    let dims = if elements.is_empty() { vec![] } else { vec![ArrayDim { length: elements.len() as i32, lower_bound: 1 }] };
    Ok(Datum::Array(Arc::new(Array { element_type, dims, elements })))
}
