//! Functions that answer from a value's stored form: without reading it, or reading only a part.

use melba_fmgr::CallInfo;
use melba_fmgr::varlena::{COMPRESSED_HEADER_BYTES, HEADER_BYTES, SHORT_BYTES_MAX, data_bytes};
use melba_toast::{External, Method, Stored};
use melba_types::{Datum, Result, oids};

use super::{Call, Case, Expression, MinMax, Node, SubPlanKind};
use crate::{Evaluation, expand};

/// The functions of a stored form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredFunction {
    /// length() of text.
    Characters,
    /// octet_length(), and length() of bytea.
    Bytes,
    /// substr(value, from [, count]).
    Slice,
    /// left(text, count).
    Left,
    ColumnSize,
    ColumnCompression,
    ChunkId,
}

impl StoredFunction {
    /// By pg_proc.prosrc, when the operand may come in stored form.
    pub fn of(source: &str, args: &[Expression]) -> Option<StoredFunction> {
        if !args.first()?.keeps_stored() {
            return None;
        }
        Some(match source {
            "textlen" => StoredFunction::Characters,
            "textoctetlen" | "byteaoctetlen" => StoredFunction::Bytes,
            "text_substr" | "text_substr_no_len" | "bytea_substr" | "bytea_substr_no_len" => StoredFunction::Slice,
            "text_left" => StoredFunction::Left,
            "pg_column_size" => StoredFunction::ColumnSize,
            "pg_column_compression" => StoredFunction::ColumnCompression,
            "pg_column_toast_chunk_id" => StoredFunction::ChunkId,
            _ => return None,
        })
    }
}

impl StoredFunction {
    /// Whether the answer for a column's plain value is not the function's own.
    pub fn needs_column(self) -> bool {
        self == StoredFunction::ColumnSize
    }
}

impl Expression {
    /// A column of this row or, as a parameter, of an outer one; possibly as another type of the same physical form.
    pub fn is_column(&self) -> bool {
        match &self.node {
            Node::Column(_) | Node::Executor(_) => true,
            Node::Relabel(arg) => arg.kind == self.kind && arg.is_column(),
            _ => false,
        }
    }

    /// Whether the value may be that of a column, unchanged: `eval_stored` then returns its stored form.
    fn keeps_stored(&self) -> bool {
        self.is_column()
            || self.is_choice()
            || matches!(&self.node, Node::Relabel(arg) if arg.kind == self.kind && arg.keeps_stored())
    }

    /// Whether it returns one of several values unchanged.
    pub(super) fn is_choice(&self) -> bool {
        match &self.node {
            Node::Case(_) | Node::Coalesce(_) | Node::NullIf(_) | Node::MinMax(_) => true,
            Node::SubPlan(subplan) => subplan.kind == SubPlanKind::Scalar,
            _ => false,
        }
    }

    /// The value for one input row; a column's in stored form, where it was not expanded.
    pub fn eval_stored(&self, ctx: &Evaluation, row: &[Datum]) -> Result<Datum> {
        match &self.node {
            Node::Column(i) => Ok(row[*i].clone()),
            Node::Executor(i) => Ok(ctx.executor_parameter(*i)),
            Node::Relabel(arg) if arg.kind == self.kind => arg.eval_stored(ctx, row),
            Node::Coalesce(args) => {
                for arg in args {
                    let value = arg.eval_stored(ctx, row)?;
                    if !value.is_null() {
                        return Ok(value);
                    }
                }
                Ok(Datum::Null)
            }
            Node::Case(case) => case.chosen(ctx, row)?.eval_stored(ctx, row),
            Node::NullIf(call) => {
                let (a, b) = (call.args[0].eval_stored(ctx, row)?, call.args[1].eval_row(ctx, row)?);
                if a.is_null() || b.is_null() {
                    return Ok(a);
                }
                let equal = call.compare(ctx, ctx.expand(a.clone(), call.args[0].kind)?, b)?;
                Ok(if equal == Some(true) { Datum::Null } else { a })
            }
            Node::MinMax(m) => m.eval_stored(ctx, row),
            Node::SubPlan(subplan) => ctx.subplans.eval(ctx, subplan, row),
            _ => self.eval_row(ctx, row),
        }
    }
}

impl Case {
    /// The result whose condition holds.
    fn chosen(&self, ctx: &Evaluation, row: &[Datum]) -> Result<&Expression> {
        let arg = self.arg.as_ref().map(|arg| arg.eval_row(ctx, row)).transpose()?;
        for (when, then) in &self.whens {
            let holds = match &arg {
                None => when.holds(ctx, row)?,
                Some(value) => ctx.with_local(value.clone(), || when.holds(ctx, row))?,
            };
            if holds {
                return Ok(then);
            }
        }
        Ok(&self.default)
    }
}

impl MinMax {
    /// The greatest or the least of some values.
    pub(super) fn value(&self, info: &CallInfo<'_>, values: &[Datum]) -> Result<Datum> {
        let mut best = Datum::Null;
        for value in values.iter().filter(|value| !value.is_null()) {
            let (less, greater) = if self.greatest { (&best, value) } else { (value, &best) };
            if best.is_null() || matches!(self.less.invoke(info, &[less.clone(), greater.clone()])?, Datum::Bool(true)) {
                best = value.clone();
            }
        }
        Ok(best)
    }

    fn eval_stored(&self, ctx: &Evaluation, row: &[Datum]) -> Result<Datum> {
        let (mut best, mut best_value) = (Datum::Null, Datum::Null);
        for arg in &self.less.args {
            let stored = arg.eval_stored(ctx, row)?;
            if stored.is_null() {
                continue;
            }
            let value = ctx.expand(stored.clone(), arg.kind)?;
            let better = match (best.is_null(), self.greatest) {
                (true, _) => true,
                (false, true) => self.less.compare(ctx, best_value.clone(), value.clone())? == Some(true),
                (false, false) => self.less.compare(ctx, value.clone(), best_value.clone())? == Some(true),
            };
            if better {
                (best, best_value) = (stored, value);
            }
        }
        Ok(best)
    }
}

impl Call {
    /// Whether it is a function of a stored form that may come from elsewhere than the input's columns.
    pub(super) fn is_of_other_stored(&self) -> bool {
        let mut is_elsewhere = |e: &Expression| matches!(e.node, Node::Executor(_) | Node::SubPlan(_));
        self.stored.is_some() && self.args.first().is_some_and(|first| first.any(&mut is_elsewhere))
    }

    /// Evaluates a call that has a `StoredFunction`.
    pub(super) fn eval_of_stored(&self, function: StoredFunction, ctx: &Evaluation, row: &[Datum]) -> Result<Datum> {
        let first = self.args[0].eval_stored(ctx, row)?;
        let rest = self.args[1..].iter().map(|a| a.eval_row(ctx, row)).collect::<Result<Vec<_>>>()?;
        self.invoke_on_stored(function, ctx, first, &rest)
    }

    fn invoke_on_stored(&self, function: StoredFunction, ctx: &Evaluation, first: Datum, rest: &[Datum]) -> Result<Datum> {
        let Datum::Stored(bytes) = &first else {
            if function == StoredFunction::ColumnSize && !first.is_null() && self.args[0].is_column() {
                return Ok(Datum::Int4(self.size_in_row(ctx, &first) as i32));
            }
            return self.invoke_all(ctx, first, rest);
        };
        if rest.iter().any(Datum::is_null) {
            return Ok(Datum::Null);
        }
        let stored = expand::parse(bytes)?;
        match (function, &stored, rest) {
            (StoredFunction::Characters, ..) => Ok(Datum::Int4(stored.characters() as i32)),
            (StoredFunction::Bytes, ..) => Ok(Datum::Int4(stored.raw_bytes() as i32)),
            (StoredFunction::ColumnSize, ..) => Ok(Datum::Int4(stored_size(&stored) as i32)),
            // By lz4 until a merge has made it dense.
            (StoredFunction::ColumnCompression, Stored::External(external), _) if external.method == Some(Method::Dense) => {
                Ok(Datum::text(if ctx.is_dense(external)? { Method::Dense.name() } else { Method::Lz4.name() }))
            }
            (StoredFunction::ColumnCompression, Stored::Inline(inline), _) if inline.method == Method::Dense => {
                Ok(Datum::text(Method::Lz4.name()))
            }
            (StoredFunction::ColumnCompression, ..) => Ok(stored.method().map_or(Datum::Null, |m| Datum::text(m.name()))),
            (StoredFunction::ChunkId, Stored::External(external), _) => Ok(Datum::Oid(external.first.0 as u32)),
            (StoredFunction::ChunkId, ..) => Ok(Datum::Null),
            (StoredFunction::Slice, Stored::External(external), [Datum::Int4(from), count @ ..]) => {
                let count = match count {
                    [Datum::Int4(count)] => Some(i64::from(*count)),
                    _ => None,
                };
                self.slice(ctx, external, i64::from(*from), count)
            }
            (StoredFunction::Left, Stored::External(external), [Datum::Int4(count)]) if *count >= 0 => {
                self.slice(ctx, external, 1, Some(i64::from(*count)))
            }
            _ => {
                let value = ctx.expand(first.clone(), self.args[0].kind)?;
                self.invoke_all(ctx, value, rest)
            }
        }
    }

    fn invoke_all(&self, ctx: &Evaluation, first: Datum, rest: &[Datum]) -> Result<Datum> {
        let mut args = Vec::with_capacity(1 + rest.len());
        args.push(first);
        args.extend_from_slice(rest);
        self.invoke(&self.info(ctx), &args)
    }

    /// A column's value that is neither compressed nor out of line: short ones have a short header.
    fn size_in_row(&self, ctx: &Evaluation, value: &Datum) -> usize {
        match melba_fmgr::lookup::type_length(&*ctx.session, self.arg_types[0]) {
            -1 => match data_bytes(value) {
                short if short < SHORT_BYTES_MAX => short + 1,
                long => long + HEADER_BYTES,
            },
            -2 => data_bytes(value) + 1,
            fixed => fixed as usize,
        }
    }

    /// Characters (bytes of bytea) from the `from`-th on, counted from 1; `None`: to the end.
    fn slice(&self, ctx: &Evaluation, external: &External, from: i64, count: Option<i64>) -> Result<Datum> {
        let is_text = self.return_type != oids::BYTEA;
        if count.is_some_and(|c| c < 0) {
            // The function itself reports the error.
            let empty = if is_text { Datum::text("") } else { Datum::bytes(Vec::new()) };
            return self.invoke_all(ctx, empty, &[Datum::Int4(1), Datum::Int4(-1)]);
        }
        let start = (from - 1).max(0) as usize;
        let end = count.map_or(usize::MAX, |c| (from - 1 + c).max(0) as usize).max(start);
        if !is_text {
            return Ok(Datum::bytes(ctx.expand_range(external, start..end)?));
        }
        let bytes = if external.characters == 0 {
            ctx.expand_range(external, start..end)?
        } else {
            characters(ctx, external, start, end)?
        };
        Ok(Datum::text(String::from_utf8(bytes).map_err(|_| melba_types::err!(DATA_CORRUPTED, "a stored text is not UTF-8"))?))
    }
}

/// The result of pg_column_size for a stored form.
fn stored_size(stored: &Stored<'_>) -> usize {
    match stored {
        Stored::Inline(inline) => inline.stream.len() + COMPRESSED_HEADER_BYTES,
        // Compressed values keep their raw length with their bytes.
        Stored::External(e) => e.stored_bytes as usize + if e.method.is_some() { HEADER_BYTES } else { 0 },
    }
}

fn is_character_start(byte: u8) -> bool {
    byte as i8 >= -0x40
}

/// Characters `start..end` of a text that has longer ones than ASCII's.
fn characters(ctx: &Evaluation, external: &External, start: usize, end: usize) -> Result<Vec<u8>> {
    let end = end.min(external.characters as usize);
    if start >= end {
        return Ok(Vec::new());
    }
    let (first, before) = ctx.find_character(external, start)?;
    let (last, _) = ctx.find_character(external, end - 1)?;
    let mut bytes = Vec::new();
    ctx.expand_frames(external, first as u64..last as u64 + 1, &mut bytes)?;
    // Of a character that began in the frame before, the rest is skipped.
    let nth = |bytes: &[u8], n: usize| {
        let mut starts = bytes.iter().enumerate().filter(|(_, b)| is_character_start(**b)).map(|(i, _)| i);
        starts.nth(n)
    };
    let from = nth(&bytes, start - before).unwrap_or(bytes.len());
    bytes.drain(..from);
    match nth(&bytes, end - start) {
        Some(to) => bytes.truncate(to),
        // The last character may end in the next frame.
        None if last as u64 + 1 < external.frames() => {
            let mut next = Vec::new();
            ctx.expand_frames(external, last as u64 + 1..last as u64 + 2, &mut next)?;
            bytes.extend(next.into_iter().take_while(|b| !is_character_start(*b)));
        }
        None => {}
    }
    Ok(bytes)
}
