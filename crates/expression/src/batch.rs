//! Evaluation on a batch: vector kernels where registered, a loop of the row evaluator elsewhere.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::Range;

use melba_fmgr::{Operand, io, lookup};
use melba_types::key_words::KeyWords;
use melba_types::{Batch, Bitmap, Column, ColumnData, Datum, Kind, Result, limits};

use super::stored::StoredFunction;
use super::{Call, CallTarget, Expression, Node, Subscript, SubscriptScheme, array, condition, scalar_array};
use crate::Evaluation;
use crate::key::KeyPart;

/// The values of an expression over a batch.
pub enum Vector<'a> {
    Borrowed(&'a Column),
    Owned(Column),
    /// The same for every row.
    Scalar(Datum),
}

impl<'a> Vector<'a> {
    pub fn get(&self, i: usize) -> Datum {
        match self {
            Vector::Borrowed(c) => c.get(i),
            Vector::Owned(c) => c.get(i),
            Vector::Scalar(d) => d.clone(),
        }
    }

    pub fn is_null(&self, i: usize) -> bool {
        match self {
            Vector::Borrowed(c) => c.is_null(i),
            Vector::Owned(c) => c.is_null(i),
            Vector::Scalar(d) => d.is_null(),
        }
    }

    /// Appends the key of row `i`.
    pub fn encode_key(&self, part: &KeyPart, i: usize, out: &mut Vec<u8>) {
        match self {
            Vector::Borrowed(c) => part.encode_at(c, i, out),
            Vector::Owned(c) => part.encode_at(c, i, out),
            Vector::Scalar(d) => part.encode(d, out),
        }
    }

    /// Appends the keys of all rows to words.
    pub fn append_words(&self, part: &KeyPart, words: &mut KeyWords) {
        match self {
            Vector::Borrowed(c) => part.append_column(c, words),
            Vector::Owned(c) => part.append_column(c, words),
            Vector::Scalar(d) => part.append_value(d, words),
        }
    }

    /// Memory of the values that were computed.
    pub fn owned_bytes(&self) -> usize {
        match self {
            Vector::Borrowed(_) => 0,
            Vector::Owned(c) => c.memory_bytes(),
            Vector::Scalar(d) => d.heap_bytes(),
        }
    }

    pub(super) fn operand(&self) -> Operand<'_> {
        match self {
            Vector::Borrowed(c) => Operand::Column(c),
            Vector::Owned(c) => Operand::Column(c),
            Vector::Scalar(d) => Operand::Scalar(d),
        }
    }

    /// As a column, which is not copied.
    ///
    /// # Errors
    /// Those of `into_column`.
    pub fn into_cow(self, kind: Kind, rows: usize) -> Result<Cow<'a, Column>> {
        Ok(match self {
            Vector::Borrowed(c) => Cow::Borrowed(c),
            other => Cow::Owned(other.into_column(kind, rows)?),
        })
    }

    /// As a separate column.
    ///
    /// # Errors
    /// 53200 when memory is short: a long value is repeated for each row.
    pub fn into_column(self, kind: Kind, rows: usize) -> Result<Column> {
        Ok(match self {
            Vector::Borrowed(c) => c.clone(),
            Vector::Owned(c) => c,
            Vector::Scalar(d) => {
                // A column that grows takes twice as much for a while.
                limits::check_memory(d.heap_bytes().saturating_mul(2 * rows))?;
                repeat(&d, kind, rows)
            }
        })
    }

    /// The rows, of `rows`, for which a condition is true.
    fn true_rows(&self, rows: usize) -> Vec<u32> {
        let column = match self {
            Vector::Borrowed(c) => *c,
            Vector::Owned(c) => c,
            Vector::Scalar(_) => return if self.truth(0) == Some(true) { (0..rows as u32).collect() } else { Vec::new() },
        };
        let ColumnData::Bool(values) = &column.data else {
            return (0..rows as u32).filter(|&i| self.truth(i as usize) == Some(true)).collect();
        };
        // Every row is written, but the place advances only behind those that count: there is no branch to predict.
        let (mut out, mut at) = (vec![0; rows], 0);
        match &column.validity {
            None => {
                for (i, value) in values[..rows].iter().enumerate() {
                    out[at] = i as u32;
                    at += usize::from(*value);
                }
            }
            Some(validity) => {
                for (i, value) in values[..rows].iter().enumerate() {
                    out[at] = i as u32;
                    at += usize::from(*value & validity.get(i));
                }
            }
        }
        out.truncate(at);
        out
    }

    /// The truth of row `i` of a condition.
    #[inline]
    fn truth(&self, i: usize) -> Option<bool> {
        let column = match self {
            Vector::Borrowed(c) => *c,
            Vector::Owned(c) => c,
            Vector::Scalar(d) => {
                return match d {
                    Datum::Bool(v) => Some(*v),
                    _ => None,
                };
            }
        };
        if column.is_null(i) {
            return None;
        }
        match &column.data {
            ColumnData::Bool(v) => Some(v[i]),
            _ => None,
        }
    }
}

/// A column of `rows` equal values.
pub fn repeat(value: &Datum, kind: Kind, rows: usize) -> Column {
    let mut column = Column::with_capacity(kind, rows);
    for _ in 0..rows {
        column.push(value.clone());
    }
    column
}

impl Expression {
    /// The values for every row of the batch, as a separate column.
    pub fn eval_batch(&self, ctx: &Evaluation, batch: &Batch) -> Result<Column> {
        self.eval_vector(ctx, batch)?.into_column(self.kind, batch.rows)
    }

    /// The values for every row of the batch, without copying existing columns.
    pub fn eval_vector<'a>(&self, ctx: &Evaluation, batch: &'a Batch) -> Result<Vector<'a>> {
        if batch.rows == 0 {
            return Ok(Vector::Owned(Column::with_capacity(self.kind, 0)));
        }
        match &self.node {
            Node::Column(i) if batch.columns[*i].is_stored() => {
                Ok(Vector::Owned(ctx.expand_column(&batch.columns[*i], self.kind)?))
            }
            Node::Column(i) => Ok(Vector::Borrowed(&batch.columns[*i])),
            Node::Const(value) => Ok(Vector::Scalar(value.clone())),
            Node::Parameter(_) | Node::Executor(_) | Node::Local(_) => Ok(Vector::Scalar(self.eval_row(ctx, &[])?)),
            _ if batch.rows == 1 => self.eval_loop(ctx, batch),
            // A row at a time, the values are expanded one after the other.
            Node::Call(_) if batch.is_stored() && self.reads_stored(batch) => self.eval_loop(ctx, batch),
            // Chosen values, and those of outer rows, are read in stored form.
            Node::Call(call) if call.is_of_other_stored() => self.eval_loop(ctx, batch),
            Node::Call(call) => self.eval_call(call, ctx, batch),
            Node::And(args) => logic(args, false, ctx, batch),
            Node::Or(args) => logic(args, true, ctx, batch),
            Node::Not(arg) => {
                let arg = arg.eval_vector(ctx, batch)?;
                Ok(booleans(batch.rows, |i| arg.truth(i).map(|v| !v)))
            }
            Node::NullTest { arg, is_null, row } => {
                let value = arg.eval_stored_vector(ctx, batch)?;
                if *row {
                    return Ok(booleans(batch.rows, |i| Some(condition::null_test(&value.get(i), *is_null, true).as_bool())));
                }
                Ok(booleans(batch.rows, |i| Some(value.is_null(i) == *is_null)))
            }
            Node::BooleanTest { arg, test } => {
                let value = arg.eval_vector(ctx, batch)?;
                Ok(booleans(batch.rows, |i| Some(condition::boolean_test(&value.get(i), *test).as_bool())))
            }
            Node::Relabel(arg) if arg.kind == self.kind => arg.eval_vector(ctx, batch),
            Node::ScalarArray(s) => match scalar_array::eval_batch(s, ctx, batch)? {
                Some(values) => Ok(values),
                None => self.eval_loop(ctx, batch),
            },
            Node::Subscript(subscript) if !self.reads_stored(batch) => match self.eval_elements(subscript, ctx, batch)? {
                Some(values) => Ok(values),
                None => self.eval_loop(ctx, batch),
            },
            Node::Routine(routine) => match routine.pure(ctx)? {
                Some(function) => {
                    let function = RefCell::new(function);
                    self.eval_each(ctx, batch, |_, ctx, row| routine.eval_pure(&mut **function.borrow_mut(), ctx, row))
                }
                None => self.eval_loop(ctx, batch),
            },
            Node::Domain { arg } if !self.reads_stored(batch) => self.eval_domain(arg, ctx, batch),
            _ if self.is_choice() => match self.eval_stored_vector(ctx, batch)? {
                Vector::Owned(column) if column.is_stored() => Ok(Vector::Owned(ctx.expand_column(&column, self.kind)?)),
                values => Ok(values),
            },
            _ => self.eval_loop(ctx, batch),
        }
    }

    /// The values for every row of the batch; a column's in stored form, where they were not expanded yet.
    pub fn eval_stored_vector<'a>(&self, ctx: &Evaluation, batch: &'a Batch) -> Result<Vector<'a>> {
        match &self.node {
            _ if batch.rows == 0 => self.eval_vector(ctx, batch),
            Node::Column(i) => Ok(Vector::Borrowed(&batch.columns[*i])),
            Node::Relabel(arg) if arg.kind == self.kind => arg.eval_stored_vector(ctx, batch),
            Node::Case(case) if case.arg.is_none() && batch.rows > 1 => {
                self.eval_branches(ctx, batch, &case.whens, Some(&case.default))
            }
            Node::Coalesce(args) if batch.rows > 1 => self.eval_coalesce(ctx, batch, args),
            _ if self.is_choice() => self.eval_each(ctx, batch, Expression::eval_stored),
            _ => self.eval_vector(ctx, batch),
        }
    }

    fn reads_stored(&self, batch: &Batch) -> bool {
        let mut needed = Vec::new();
        self.columns(&mut needed);
        needed.iter().any(|c| batch.columns[*c].is_stored())
    }

    /// One element of each row's array; `None` where rows are evaluated one by one: the subscript is evaluated for NULL arrays,
    /// too, so it must be one that cannot fail.
    fn eval_elements<'a>(&self, s: &Subscript, ctx: &Evaluation, batch: &Batch) -> Result<Option<Vector<'a>>> {
        let [Some(at)] = &s.upper[..] else { return Ok(None) };
        let cannot_fail = matches!(at.node, Node::Column(_) | Node::Const(_) | Node::Parameter(_) | Node::Executor(_));
        if s.slice || s.scheme != SubscriptScheme::Array || s.assign.is_some() || !cannot_fail {
            return Ok(None);
        }
        let (arrays, at) = (s.container.eval_vector(ctx, batch)?, at.eval_vector(ctx, batch)?);
        let Operand::Column(Column { data: ColumnData::Datum(arrays), .. }) = arrays.operand() else { return Ok(None) };
        let mut out = Column::with_capacity(self.kind, batch.rows);
        for (row, array) in arrays[..batch.rows].iter().enumerate() {
            out.push(match (array, at.get(row)) {
                (Datum::Array(array), Datum::Int4(at)) => array::element(array, &[Some(at)]),
                _ => Datum::Null,
            });
        }
        Ok(Some(Vector::Owned(out)))
    }

    /// The values of `arg`, checked by the domain that is this expression's type.
    fn eval_domain<'a>(&self, arg: &Expression, ctx: &Evaluation, batch: &'a Batch) -> Result<Vector<'a>> {
        let values = arg.eval_vector(ctx, batch)?;
        if let Vector::Scalar(value) = values {
            return Ok(Vector::Scalar(io::check_domain(&*ctx.session, self.ty, value)?));
        }
        if !lookup::domain_is_checked(&*ctx.session, self.ty) {
            return Ok(values);
        }
        let mut checked = Batch { columns: vec![values.into_column(self.kind, batch.rows)?], rows: batch.rows };
        ctx.session.check_domain(self.ty, &checked)?;
        Ok(Vector::Owned(checked.columns.swap_remove(0)))
    }

    /// One row at a time.
    fn eval_loop<'a>(&self, ctx: &Evaluation, batch: &Batch) -> Result<Vector<'a>> {
        self.eval_each(ctx, batch, Expression::eval_row)
    }

    fn eval_each<'a>(
        &self,
        ctx: &Evaluation,
        batch: &Batch,
        eval: impl Fn(&Expression, &Evaluation, &[Datum]) -> Result<Datum>,
    ) -> Result<Vector<'a>> {
        let mut needed = Vec::new();
        self.columns(&mut needed);
        let mut row = vec![Datum::Null; batch.columns.len()];
        let mut out = Column::with_capacity(self.kind, batch.rows);
        for i in 0..batch.rows {
            for &column in &needed {
                row[column] = batch.columns[column].get(i);
            }
            out.push(eval(self, ctx, &row)?);
        }
        Ok(Vector::Owned(out))
    }

    fn eval_call<'a>(&self, call: &Call, ctx: &Evaluation, batch: &'a Batch) -> Result<Vector<'a>> {
        if call.args.iter().any(Expression::makes_values) {
            return self.eval_pieces(call, ctx, batch);
        }
        let args = call.args.iter().map(|arg| arg.eval_vector(ctx, batch)).collect::<Result<Vec<_>>>()?;
        self.eval_on_args(call, ctx, batch, args)
    }

    /// The call for every row of the batch, from which its operands were evaluated.
    pub(super) fn eval_on_args<'a>(
        &self,
        call: &Call,
        ctx: &Evaluation,
        batch: &Batch,
        args: Vec<Vector<'_>>,
    ) -> Result<Vector<'a>> {
        let info = call.info(ctx);
        if call.strict && args.iter().any(|a| matches!(a, Vector::Scalar(Datum::Null))) {
            return Ok(Vector::Scalar(Datum::Null));
        }
        if !call.volatile && args.iter().all(|a| matches!(a, Vector::Scalar(_))) {
            let values: Vec<Datum> = args.iter().map(|a| a.get(0)).collect();
            return Ok(Vector::Scalar(call.invoke(&info, &values)?));
        }
        // Sizes of columns differ from those of computed values, and no kernel knows.
        if call.stored.is_some_and(StoredFunction::needs_column) {
            return self.eval_loop(ctx, batch);
        }
        if let Some(kernel) = call.vector {
            let operands: Vec<Operand<'_>> = args.iter().map(Vector::operand).collect();
            return Ok(Vector::Owned(kernel(&info, &operands, batch.rows)?));
        }
        let mut out = Column::with_capacity(self.kind, batch.rows);
        let mut values = Vec::with_capacity(args.len());
        for i in 0..batch.rows {
            if i & 1023 == 1023 {
                ctx.check_interrupt()?;
            }
            values.clear();
            values.extend(args.iter().map(|a| a.get(i)));
            out.push(call.invoke(&info, &values)?);
        }
        Ok(Vector::Owned(out))
    }

    /// CASE: each result is evaluated on the rows whose first true condition it follows.
    fn eval_branches<'a>(
        &self,
        ctx: &Evaluation,
        batch: &'a Batch,
        whens: &[(Expression, Expression)],
        default: Option<&Expression>,
    ) -> Result<Vector<'a>> {
        let mut merge = Merge::new(batch.rows);
        let mut left: Vec<u32> = (0..batch.rows as u32).collect();
        for (when, then) in whens {
            if left.is_empty() {
                break;
            }
            let holds = when.eval_on(ctx, batch, &left)?;
            let (mut yes, mut no) = (Vec::new(), Vec::new());
            for (at, &row) in left.iter().enumerate() {
                if holds.truth(at) == Some(true) { yes.push(row) } else { no.push(row) }
            }
            merge.add(then.eval_on(ctx, batch, &yes)?, &yes);
            left = no;
        }
        if let Some(default) = default {
            merge.add(default.eval_on(ctx, batch, &left)?, &left);
        }
        Ok(Vector::Owned(merge.finish(self.kind)))
    }

    fn eval_coalesce<'a>(&self, ctx: &Evaluation, batch: &'a Batch, args: &[Expression]) -> Result<Vector<'a>> {
        let mut merge = Merge::new(batch.rows);
        let mut left: Vec<u32> = (0..batch.rows as u32).collect();
        for arg in args {
            if left.is_empty() {
                break;
            }
            let values = arg.eval_on(ctx, batch, &left)?;
            let still: Vec<u32> = left.iter().enumerate().filter(|(at, _)| values.is_null(*at)).map(|(_, &row)| row).collect();
            merge.add(values, &left);
            left = still;
        }
        Ok(Vector::Owned(merge.finish(self.kind)))
    }

    /// The values for some rows of the batch, as rows store them. No row, no evaluation.
    fn eval_on<'a>(&self, ctx: &Evaluation, batch: &'a Batch, rows: &[u32]) -> Result<Vector<'a>> {
        if rows.len() == batch.rows {
            return self.eval_stored_vector(ctx, batch);
        }
        let mut needed = Vec::new();
        self.columns(&mut needed);
        let mut part = Batch { columns: Vec::with_capacity(batch.columns.len()), rows: rows.len() };
        for (i, column) in batch.columns.iter().enumerate() {
            // Columns that are not read stay empty.
            part.columns.push(if needed.contains(&i) { column.take(rows) } else { Column::new(ColumnData::Bool(Vec::new())) });
        }
        Ok(match self.eval_stored_vector(ctx, &part)? {
            Vector::Borrowed(column) => Vector::Owned(column.clone()),
            Vector::Owned(column) => Vector::Owned(column),
            Vector::Scalar(value) => Vector::Scalar(value),
        })
    }
}

/// The rows of the batch for which every condition is true; `None`: all of them.
pub fn filter(conditions: &[Expression], ctx: &Evaluation, batch: &Batch) -> Result<Option<Vec<u32>>> {
    if batch.rows > 1 && in_row_order(conditions) {
        return filter_rows(conditions, ctx, batch, 0..batch.rows, usize::MAX).map(|(kept, _)| Some(kept));
    }
    let mut kept: Option<Vec<u32>> = None;
    for condition in conditions {
        let rows = kept.as_ref().map_or(batch.rows, Vec::len);
        if rows == 0 {
            break;
        }
        let values = match &kept {
            None => condition.eval_vector(ctx, batch)?,
            Some(kept) => condition.eval_on(ctx, batch, kept)?,
        };
        let mut next = values.true_rows(rows);
        if next.len() == rows {
            continue;
        }
        if let Some(kept) = &kept {
            next.iter_mut().for_each(|row| *row = kept[*row as usize]);
        }
        kept = Some(next);
    }
    Ok(kept)
}

/// Whether all expressions of a row must be evaluated before those of the next row: of two calls with side effects, each may
/// depend on the other's.
pub fn in_row_order(expressions: &[Expression]) -> bool {
    let mut calls = 0;
    let mut is_second = |e: &Expression| {
        calls += usize::from(is_effect(e));
        calls > 1
    };
    expressions.iter().any(|e| e.any(&mut is_second))
}

/// Whether a call among expressions may have side effects beyond its own values: a sequence's, a lock, those of a user's function.
pub fn has_effects<'e>(mut expressions: impl Iterator<Item = &'e Expression>) -> bool {
    let mut is_outside = |e: &Expression| match &e.node {
        // Those that need no more than their operands, such as random().
        Node::Call(call) if matches!(call.target, CallTarget::Scalar(_)) => false,
        _ => is_effect(e),
    };
    expressions.any(|e| e.any(&mut is_outside))
}

fn is_effect(e: &Expression) -> bool {
    match &e.node {
        // Functions of time and of new UUIDs are parallel safe: nothing depends on their order.
        Node::Call(call) | Node::Distinct(call) | Node::NullIf(call) => call.volatile && !call.parallel_safe,
        Node::Routine(routine) => routine.volatile,
        Node::NextValue { .. } => true,
        _ => false,
    }
}

/// The first `limit` rows of a range for which all conditions hold, and the row behind the last one that they were evaluated for.
pub fn filter_rows(
    conditions: &[Expression],
    ctx: &Evaluation,
    batch: &Batch,
    range: Range<usize>,
    limit: usize,
) -> Result<(Vec<u32>, usize)> {
    let mut read = Vec::new();
    conditions.iter().for_each(|c| c.columns(&mut read));
    // Columns that are not read may be empty (`eval_on`).
    let value = |at: usize, column: &Column, i: usize| if read.contains(&at) { column.get(i) } else { Datum::Null };
    let mut kept = Vec::new();
    for i in range.clone() {
        if kept.len() == limit {
            return Ok((kept, i));
        }
        ctx.check_interrupt()?;
        let row: Vec<Datum> = batch.columns.iter().enumerate().map(|(at, c)| value(at, c, i)).collect();
        let mut passes = true;
        for condition in conditions {
            passes = condition.holds(ctx, &row)?;
            if !passes {
                break;
            }
        }
        if passes {
            kept.push(i as u32);
        }
    }
    Ok((kept, range.end))
}

pub(super) fn booleans<'a>(rows: usize, mut value: impl FnMut(usize) -> Option<bool>) -> Vector<'a> {
    let mut data = Vec::with_capacity(rows);
    let mut validity: Option<Bitmap> = None;
    for i in 0..rows {
        let v = value(i);
        data.push(v == Some(true));
        if v.is_none() {
            validity.get_or_insert_with(|| Bitmap::filled(rows, true)).set(i, false);
        }
    }
    Vector::Owned(Column { data: ColumnData::Bool(data), validity })
}

/// AND (`decides` = false) and OR (`decides` = true): an operand is evaluated on the rows not decided before it.
fn logic<'a>(args: &[Expression], decides: bool, ctx: &Evaluation, batch: &'a Batch) -> Result<Vector<'a>> {
    let mut result = vec![Some(!decides); batch.rows];
    let mut left: Vec<u32> = (0..batch.rows as u32).collect();
    for arg in args {
        if left.is_empty() {
            break;
        }
        let values = arg.eval_on(ctx, batch, &left)?;
        let mut next = Vec::with_capacity(left.len());
        for (at, &row) in left.iter().enumerate() {
            match values.truth(at) {
                Some(v) if v == decides => result[row as usize] = Some(decides),
                Some(_) => next.push(row),
                None => {
                    result[row as usize] = None;
                    next.push(row);
                }
            }
        }
        left = next;
    }
    Ok(booleans(batch.rows, |i| result[i]))
}

/// Results for disjoint (or overriding) sets of rows, put together in row order.
struct Merge<'a> {
    parts: Vec<Vector<'a>>,
    /// For each row: part and place in it.
    from: Vec<(u32, u32)>,
}

const NOWHERE: u32 = u32::MAX;

impl<'a> Merge<'a> {
    fn new(rows: usize) -> Merge<'a> {
        Merge { parts: Vec::new(), from: vec![(NOWHERE, 0); rows] }
    }

    fn add(&mut self, values: Vector<'a>, rows: &[u32]) {
        let part = self.parts.len() as u32;
        for (at, &row) in rows.iter().enumerate() {
            self.from[row as usize] = (part, at as u32);
        }
        self.parts.push(values);
    }

    fn finish(self, kind: Kind) -> Column {
        if self.from.iter().all(|(part, _)| *part != NOWHERE) {
            // A constant is one row, which all that have it take.
            let constant = |part: &Vector<'_>| if let Vector::Scalar(value) = part { Some(repeat(value, kind, 1)) } else { None };
            let constants: Vec<Option<Column>> = self.parts.iter().map(constant).collect();
            let mut columns: Vec<&Column> = Vec::with_capacity(self.parts.len());
            for (part, constant) in self.parts.iter().zip(&constants) {
                columns.extend(match part {
                    Vector::Borrowed(column) => Some(*column),
                    Vector::Owned(column) => Some(column),
                    Vector::Scalar(_) => constant.as_ref(),
                });
            }
            let pick = |&(part, at): &(u32, u32)| (part, if constants[part as usize].is_some() { 0 } else { at });
            return Column::gather(&columns, &self.from.iter().map(pick).collect::<Vec<_>>());
        }
        let mut out = Column::with_capacity(kind, self.from.len());
        for (part, at) in self.from {
            out.push(if part == NOWHERE { Datum::Null } else { self.parts[part as usize].get(at as usize) });
        }
        out
    }
}
