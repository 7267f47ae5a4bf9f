//! Forms one row.

use std::borrow::Cow;

use melba_engine::Transaction;
use melba_fmgr::varlena::{COMPRESSED_HEADER_BYTES, HEADER_BYTES, data_bytes};
use melba_toast::ahead::{Encoding, encode_all};
use melba_toast::{External, Inline, Method, Stored, frame, is_incompressible, stored};
use melba_types::row::RowLayout;
use melba_types::{Batch, Column, ColumnData, Datum, DbError, Kind, Result, RowId, TreeId, codec, err};

use super::size::{self, Part, TUPLE_BYTES_MAX, TUPLE_TARGET_MAIN};
use super::{Strategy, ToastColumn, ToastTarget};
use melba_expression::Evaluation;
use melba_expression::expand::parse;

/// PostgreSQL's limit of a value, which counts its header.
const VALUE_BYTES_MAX: usize = 0x3FFF_FFFF - HEADER_BYTES;
/// Values up to this length are compressed as a whole; longer ones are going out of line and are compressed frame by frame.
const WHOLE_BYTES_MAX: usize = frame::FRAME_BYTES;
/// No value this short is moved out of line: it would become longer.
const EXTERNAL_BYTES_MIN: usize = size::POINTER_BYTES.next_multiple_of(8);

/// A row whose values take at most this is short enough, with any header and bitmap.
const SURELY_SHORT: usize = TUPLE_BYTES_MAX - 232;

/// Columns whose values are stored in another form than they are given in.
type FormedRow = Vec<(usize, Datum)>;

/// Forms rows for one statement; buffers and values of settings are kept from row to row.
#[derive(Default)]
pub struct RowFormer {
    default_method: Option<Method>,
    dense_is_noted: bool,
    parts: Vec<Part>,
    buffer: Vec<u8>,
}

/// The possible treatments of a value.
struct ToastCandidate<'a> {
    column: usize,
    value: FormedValue<'a>,
    /// Passes that compress leave it alone.
    tried: bool,
    /// The method found nothing to gain.
    refused: bool,
}

enum FormedValue<'a> {
    /// In storage format.
    Plain(Cow<'a, [u8]>),
    /// An inline form, given so or made.
    Inline(Cow<'a, [u8]>),
    /// Frames of another table, to be copied, or of this one to be left.
    External(External),
}

impl RowFormer {
    /// Encodes a row in stored form. `old` is its version before: replaced values are removed from the toast tree.
    pub fn encode(
        &mut self,
        ctx: &Evaluation,
        target: &ToastTarget,
        layout: &RowLayout,
        row: &[Datum],
        old: Option<&[Datum]>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let formed = self.form(ctx, target, row, old)?;
        out.clear();
        if formed.is_empty() {
            layout.encode(row.iter(), out);
            return Ok(());
        }
        let mut stored: Vec<&Datum> = row.iter().collect();
        formed.iter().for_each(|(column, form)| stored[*column] = form);
        layout.encode(stored.into_iter(), out);
        Ok(())
    }

    /// The forms that a new row's values get, and whether any stays unchanged: (column, form). `old` is the row's version before,
    /// whose replaced values are removed.
    fn form(&mut self, ctx: &Evaluation, target: &ToastTarget, row: &[Datum], old: Option<&[Datum]>) -> Result<FormedRow> {
        let mut formed = FormedRow::new();
        if !target.any {
            return Ok(formed);
        }
        self.note_dense_columns(ctx, target)?;
        let has_stored = row.iter().any(|v| matches!(v, Datum::Stored(_)));
        if has_stored || row.iter().map(bytes_at_most).sum::<usize>() > SURELY_SHORT {
            self.parts.clear();
            for (value, shape) in row.iter().zip(&target.shapes) {
                self.parts.push(part_of(value, shape.length)?);
            }
            let bytes = size::header_bytes(&self.parts) + size::data_bytes(&target.shapes, &self.parts);
            if has_stored || bytes > TUPLE_BYTES_MAX {
                self.toast(ctx, target, row, old, &mut formed)?;
            }
        }
        if let Some(old) = old {
            forget_replaced(ctx.transaction(), target, old, row)?;
        }
        Ok(formed)
    }

    /// The batch as it is stored, when that differs. The error names the row.
    pub fn form_batch(
        &mut self,
        ctx: &Evaluation,
        target: &ToastTarget,
        batch: &Batch,
    ) -> Result<Option<Batch>, (usize, DbError)> {
        if target.any {
            self.note_dense_columns(ctx, target).map_err(|e| (0, e))?;
        }
        let short = |i: usize| batch.columns.iter().map(|c| bytes_of(c, i)).sum::<usize>() <= SURELY_SHORT;
        if !target.any || (!batch.is_stored() && (0..batch.rows).all(short)) {
            return Ok(None);
        }
        let mut forms: Vec<Vec<(usize, Datum)>> = vec![Vec::new(); batch.columns.len()];
        for i in (0..batch.rows).filter(|i| batch.is_stored() || !short(*i)) {
            for (column, form) in self.form(ctx, target, &batch.row(i), None).map_err(|e| (i, e))? {
                forms[column].push((i, form));
            }
        }
        if forms.iter().all(Vec::is_empty) {
            return Ok(None);
        }
        let columns = batch.columns.iter().zip(forms).map(|(column, forms)| with_forms(column, forms)).collect();
        Ok(Some(Batch::new(columns, batch.rows)))
    }

    fn toast(
        &mut self,
        ctx: &Evaluation,
        target: &ToastTarget,
        row: &[Datum],
        old: Option<&[Datum]>,
        formed: &mut FormedRow,
    ) -> Result<()> {
        let mut candidates = Vec::new();
        for (column, value) in row.iter().enumerate() {
            if let Some(value) = self.candidate(ctx, target, column, value, old, formed)? {
                candidates.push(ToastCandidate { column, value, tried: false, refused: false });
            }
        }
        let target_bytes = target.tuple_target.saturating_sub(size::header_bytes(&self.parts));
        while self.is_above(target, target_bytes)
            && let Some(at) = self.longest(target, &candidates, true, false)
        {
            self.shrink(ctx, target, &mut candidates[at], target_bytes, formed)?;
        }
        while self.is_above(target, target_bytes)
            && let Some(at) = self.longest(target, &candidates, false, false)
        {
            self.move_out(ctx, target, &mut candidates[at], formed)?;
        }
        while self.is_above(target, target_bytes)
            && let Some(at) = self.longest(target, &candidates, true, true)
        {
            self.compress(ctx, target, &mut candidates[at], formed);
        }
        let main_bytes = TUPLE_TARGET_MAIN.saturating_sub(size::header_bytes(&self.parts));
        while self.is_above(target, main_bytes)
            && let Some(at) = self.longest(target, &candidates, false, true)
        {
            self.move_out(ctx, target, &mut candidates[at], formed)?;
        }
        // Frames of other tables' values that would fit into the row: their owner may remove them, so they are copied at any length.
        for candidate in &mut candidates {
            if matches!(candidate.value, FormedValue::External(_)) && self.parts[candidate.column] != Part::Pointer {
                self.move_out(ctx, target, candidate, formed)?;
            }
        }
        Ok(())
    }

    fn is_above(&self, target: &ToastTarget, bytes: usize) -> bool {
        size::data_bytes(&target.shapes, &self.parts) > bytes
    }

    /// The possible treatments of a value: none for one that is fixed or short, or that an update does not change.
    fn candidate<'a>(
        &mut self,
        ctx: &Evaluation,
        target: &ToastTarget,
        column: usize,
        value: &'a Datum,
        old: Option<&[Datum]>,
        formed: &mut FormedRow,
    ) -> Result<Option<FormedValue<'a>>> {
        let definition = &target.columns[column];
        let Datum::Stored(bytes) = value else {
            let long = matches!(self.parts[column], Part::Plain(bytes) if bytes > EXTERNAL_BYTES_MIN);
            return Ok((long && definition.strategy != Strategy::Plain).then(|| FormedValue::Plain(storage_format(value))));
        };
        Ok(match parse(bytes)? {
            Stored::Inline(_) => Some(FormedValue::Inline(Cow::Borrowed(bytes))),
            Stored::External(external) => {
                let kept = external.tree == target.tree && old.is_some_and(|old| is_same(&old[column], bytes));
                if kept {
                    self.parts[column] = Part::Pointer;
                    return Ok(None);
                }
                match self.fetch(ctx, definition, bytes, &external)? {
                    Some(FormedValue::Plain(raw)) if definition.strategy == Strategy::Plain => {
                        let value = codec::decode(definition.kind, &raw);
                        formed.push((column, value.ok_or_else(|| err!(DATA_CORRUPTED, "a stored value is malformed"))?));
                        self.parts[column] = Part::Plain(raw.len() + HEADER_BYTES);
                        None
                    }
                    Some(value) => {
                        match &value {
                            FormedValue::Plain(raw) => {
                                self.parts[column] = Part::Plain(raw.len() + HEADER_BYTES);
                                let plain = codec::decode(definition.kind, raw);
                                formed.push((column, plain.ok_or_else(|| err!(DATA_CORRUPTED, "a stored value is malformed"))?));
                            }
                            FormedValue::Inline(form) => {
                                self.parts[column] = part_of(&Datum::Stored(form[..].into()), -1)?;
                                formed.push((column, Datum::Stored(form[..].into())));
                            }
                            FormedValue::External(e) => {
                                self.parts[column] = Part::Compressed(e.stored_bytes as usize + HEADER_BYTES)
                            }
                        }
                        Some(value)
                    }
                    None => None,
                }
            }
        })
    }

    /// A value of another table's frames, as it may lie in a row: short ones are read, long ones are left to be copied.
    fn fetch<'a>(
        &mut self,
        ctx: &Evaluation,
        definition: &ToastColumn,
        bytes: &[u8],
        external: &External,
    ) -> Result<Option<FormedValue<'a>>> {
        if definition.strategy == Strategy::Plain || (external.method.is_none() && external.frames() <= 1) {
            let mut raw = Vec::new();
            ctx.expand_into(bytes, &mut raw)?;
            return Ok(Some(FormedValue::Plain(Cow::Owned(raw))));
        }
        if let (Some(method), 0..=1) = (external.method, external.frames()) {
            let mut form = Vec::new();
            Inline::begin(method, external.raw_bytes, external.characters, &mut form);
            let append = |bytes: &[u8]| frame::stream_as_written(bytes, &mut form);
            ctx.transaction().frames(external.tree).with(ctx.view(), external.first, append)?;
            return Ok(Some(FormedValue::Inline(Cow::Owned(form))));
        }
        Ok(Some(FormedValue::External(*external)))
    }

    /// The longest value that a pass may work on.
    fn longest(
        &self,
        target: &ToastTarget,
        candidates: &[ToastCandidate<'_>],
        for_compression: bool,
        main: bool,
    ) -> Option<usize> {
        let mut best = None;
        let mut best_bytes = EXTERNAL_BYTES_MIN;
        for (at, candidate) in candidates.iter().enumerate() {
            let strategy = target.columns[candidate.column].strategy;
            let wanted =
                if main { strategy == Strategy::Main } else { matches!(strategy, Strategy::Extended | Strategy::External) };
            let (bytes, compressed) = match self.parts[candidate.column] {
                Part::Plain(bytes) => (bytes, false),
                Part::Compressed(bytes) => (bytes, true),
                _ => continue,
            };
            if !wanted || bytes <= best_bytes || (for_compression && (compressed || candidate.tried)) {
                continue;
            }
            best = Some(at);
            best_bytes = bytes;
        }
        best
    }

    /// The first pass: compresses an EXTENDED value, and moves a value out at once that is too long alone.
    fn shrink(
        &mut self,
        ctx: &Evaluation,
        target: &ToastTarget,
        candidate: &mut ToastCandidate<'_>,
        target_bytes: usize,
        formed: &mut FormedRow,
    ) -> Result<()> {
        if target.columns[candidate.column].strategy == Strategy::Extended {
            self.compress(ctx, target, candidate, formed);
        }
        candidate.tried = true;
        let bytes = match self.parts[candidate.column] {
            Part::Plain(bytes) | Part::Compressed(bytes) => bytes,
            _ => 0,
        };
        // A value that is to become dense must be among similar ones: among the frames.
        let is_dense = matches!(&candidate.value, FormedValue::Inline(form) if form.first() == Some(&(Method::Dense as u8)));
        if bytes > target_bytes || is_dense {
            self.move_out(ctx, target, candidate, formed)?;
        }
        Ok(())
    }

    /// Tells the engine which columns are dense, once a statement.
    fn note_dense_columns(&mut self, ctx: &Evaluation, target: &ToastTarget) -> Result<()> {
        if !std::mem::replace(&mut self.dense_is_noted, true) {
            let mut is_dense = |column: &ToastColumn| {
                let compressed = matches!(column.strategy, Strategy::Extended | Strategy::Main) && !column.dropped;
                compressed && self.method(ctx, column) == Method::Dense
            };
            let columns = target.columns.iter().take(u64::BITS as usize).map(&mut is_dense);
            let bits = columns.enumerate().fold(0, |bits, (at, dense)| bits | u64::from(dense) << at);
            ctx.transaction().note_dense_columns(target.tree.without_toast(), bits)?;
        }
        Ok(())
    }

    fn method(&mut self, ctx: &Evaluation, column: &ToastColumn) -> Method {
        column.method.unwrap_or_else(|| {
            *self.default_method.get_or_insert_with(|| {
                ctx.session.setting("default_toast_compression").and_then(|m| Method::from_name(&m)).unwrap_or(Method::Pglz)
            })
        })
    }

    fn compress(&mut self, ctx: &Evaluation, target: &ToastTarget, candidate: &mut ToastCandidate<'_>, formed: &mut FormedRow) {
        let column = &target.columns[candidate.column];
        let method = self.method(ctx, column);
        candidate.tried = true;
        let FormedValue::Plain(raw) = &candidate.value else { return };
        if raw.len() > WHOLE_BYTES_MAX {
            return;
        }
        candidate.refused = true;
        if is_incompressible(raw) {
            return;
        }
        self.buffer.clear();
        Inline::begin(method, raw.len() as u32, characters(column.kind, raw), &mut self.buffer);
        let header = self.buffer.len();
        if !melba_toast::compress(method, column.level, raw, &mut self.buffer) {
            return;
        }
        let bytes = self.buffer.len() - header + COMPRESSED_HEADER_BYTES;
        // PostgreSQL wants more than two bytes for its padding.
        if bytes + 2 >= raw.len() {
            return;
        }
        candidate.refused = false;
        self.parts[candidate.column] = Part::Compressed(bytes);
        put(formed, candidate.column, Datum::Stored(self.buffer.as_slice().into()));
        candidate.value = FormedValue::Inline(Cow::Owned(self.buffer.clone()));
    }

    /// Moves a value out of line, and leaves a pointer.
    fn move_out(
        &mut self,
        ctx: &Evaluation,
        target: &ToastTarget,
        candidate: &mut ToastCandidate<'_>,
        formed: &mut FormedRow,
    ) -> Result<()> {
        let column = &target.columns[candidate.column];
        let txn = ctx.transaction();
        let external = match &candidate.value {
            FormedValue::Plain(raw) => {
                let method = match column.strategy {
                    Strategy::Extended | Strategy::Main if !candidate.refused => Some(self.method(ctx, column)),
                    _ => None,
                };
                self.write_frames(ctx, target, column, raw, method)?
            }
            FormedValue::Inline(form) => match parse(form)? {
                Stored::Inline(inline) => {
                    let rows = 1 + u64::from(inline.characters != 0);
                    let first = txn.frames(target.tree).reserve(rows, inline.stream.len())?;
                    self.buffer.clear();
                    frame::begin(inline.method, inline.raw_bytes as usize, &mut self.buffer);
                    txn.frames(target.tree).put(first, &[&self.buffer, inline.stream])?;
                    if inline.characters != 0 {
                        txn.frames(target.tree).put(RowId(first.0 + 1), &[&inline.characters.to_le_bytes()])?;
                    }
                    External {
                        method: Some(inline.method),
                        tree: target.tree,
                        first,
                        raw_bytes: inline.raw_bytes,
                        stored_bytes: inline.stream.len() as u32,
                        characters: inline.characters,
                    }
                }
                Stored::External(external) => external,
            },
            FormedValue::External(other) => {
                let first = txn.frames(target.tree).reserve(other.rows(), other.stored_bytes as usize)?;
                for i in 0..other.rows() {
                    ctx.check_interrupt()?;
                    self.buffer.clear();
                    let copy = |row: &[u8]| frame::copy_as_written(row, &mut self.buffer);
                    txn.frames(other.tree).with(ctx.view(), RowId(other.first.0 + i), copy)?;
                    txn.frames(target.tree).put(RowId(first.0 + i), &[&self.buffer])?;
                }
                External { tree: target.tree, first, ..*other }
            }
        };
        self.parts[candidate.column] = Part::Pointer;
        put(formed, candidate.column, Datum::Stored(external.encode()[..].into()));
        Ok(())
    }

    /// Cuts a value into frames.
    fn write_frames(
        &mut self,
        ctx: &Evaluation,
        target: &ToastTarget,
        column: &ToastColumn,
        raw: &[u8],
        method: Option<Method>,
    ) -> Result<External> {
        self.buffer.clear();
        // Characters that are bytes need no counting.
        let characters = if is_counted(column.kind, raw) { stored::Characters::encode(raw, &mut self.buffer) } else { 0 };
        let mut external = External {
            method: method.filter(|_| !is_incompressible(raw)),
            tree: target.tree,
            first: RowId(0),
            raw_bytes: raw.len() as u32,
            stored_bytes: 0,
            characters,
        };
        if external.method == Some(Method::Pglz) && !pglz_pays(raw) {
            external.method = None;
        }
        // Compression saves half, most often.
        let bytes = if external.method.is_some() { raw.len() / 2 } else { raw.len() };
        external.first = ctx.transaction().frames(target.tree).reserve(external.rows(), bytes)?;
        let mut id = external.first;
        let encoding = Encoding { method: external.method, level: column.level };
        let (threads, scheduler) = (ctx.transaction().threads(), ctx.transaction().scheduler());
        encode_all(
            encoding,
            raw,
            threads,
            || scheduler.before_thread(),
            |parts| -> Result<()> {
                ctx.check_interrupt()?;
                external.stored_bytes += frame::stream_bytes(parts) as u32;
                ctx.transaction().frames(target.tree).put(id, parts)?;
                id.0 += 1;
                Ok(())
            },
        )?;
        if characters != 0 {
            ctx.transaction().frames(target.tree).put(id, &[&self.buffer])?;
        }
        Ok(external)
    }
}

/// Whether pglz saves its quarter of a long value, by some of its frames.
fn pglz_pays(raw: &[u8]) -> bool {
    const SAMPLES: usize = 4;
    const SAMPLE_BYTES: usize = 32 << 10;
    let step = raw.len() / SAMPLES;
    let (mut from, mut to) = (0, 0);
    let mut buffer = Vec::new();
    for i in 0..SAMPLES {
        let piece = &raw[i * step..(i * step + SAMPLE_BYTES).min(raw.len())];
        buffer.clear();
        from += piece.len();
        to += if melba_toast::pglz::compress_always(piece, &mut buffer) { buffer.len() } else { piece.len() };
    }
    to * 4 < from * 3
}

/// Bytes that a value takes in a row, at most.
#[inline]
fn bytes_at_most(value: &Datum) -> usize {
    match value {
        Datum::Text(v) => v.len() + 8,
        Datum::Bytes(v) | Datum::Stored(v) => v.len() + 8,
        Datum::Numeric(v) if v.small_parts().is_some() => 32,
        Datum::Numeric(_) | Datum::Array(_) | Datum::Record(_) | Datum::Range(_) | Datum::Multirange(_) => data_bytes(value) + 12,
        _ => 24,
    }
}

fn bytes_of(column: &Column, i: usize) -> usize {
    match &column.data {
        ColumnData::Text(v) | ColumnData::Bytes(v) => v.get(i).len() + 8,
        ColumnData::Datum(v) | ColumnData::Stored(v) => bytes_at_most(&v[i]),
        _ => 16,
    }
}

/// A column with some values in another form; `forms` are in the order of the rows.
fn with_forms(column: &Column, forms: Vec<(usize, Datum)>) -> Column {
    if forms.is_empty() {
        return column.clone();
    }
    let mut forms = forms.into_iter().peekable();
    let value = |i: usize| forms.next_if(|(row, _)| *row == i).map_or_else(|| column.get(i), |(_, form)| form);
    Column { data: ColumnData::Stored((0..column.len()).map(value).collect()), validity: column.validity.clone() }
}

fn put(formed: &mut FormedRow, column: usize, value: Datum) {
    match formed.iter_mut().find(|(c, _)| *c == column) {
        Some(found) => found.1 = value,
        None => formed.push((column, value)),
    }
}

/// For a stored form: 0 unless characters are not bytes.
fn characters(kind: Kind, raw: &[u8]) -> u32 {
    if is_counted(kind, raw) { stored::count(raw) } else { 0 }
}

fn is_counted(kind: Kind, raw: &[u8]) -> bool {
    kind == Kind::Text && !raw.is_ascii()
}

fn storage_format(value: &Datum) -> Cow<'_, [u8]> {
    match value {
        Datum::Text(v) => Cow::Borrowed(v.as_bytes()),
        Datum::Bytes(v) => Cow::Borrowed(v),
        other => {
            let mut out = Vec::new();
            codec::encode(other, &mut out);
            Cow::Owned(out)
        }
    }
}

/// # Errors
/// 54000 for a value beyond 1 GB.
fn part_of(value: &Datum, length: i16) -> Result<Part> {
    Ok(match value {
        Datum::Null => Part::Null,
        Datum::Stored(bytes) => match parse(bytes)? {
            Stored::Inline(inline) => Part::Compressed(inline.stream.len() + COMPRESSED_HEADER_BYTES),
            Stored::External(_) => Part::Pointer,
        },
        _ if length >= 0 => Part::Fixed,
        value => {
            let bytes = data_bytes(value);
            if bytes > VALUE_BYTES_MAX {
                return Err(too_long(bytes));
            }
            Part::Plain(bytes + HEADER_BYTES)
        }
    })
}

fn too_long(bytes: usize) -> DbError {
    err!(PROGRAM_LIMIT_EXCEEDED, "value of {bytes} bytes exceeds the maximum length ({VALUE_BYTES_MAX} bytes)")
}

fn is_same(old: &Datum, bytes: &[u8]) -> bool {
    matches!(old, Datum::Stored(old) if **old == *bytes)
}

/// Removes the frames of a deleted row.
pub fn forget(txn: &Transaction, target: &ToastTarget, row: &[Datum]) -> Result<()> {
    forget_replaced(txn, target, row, &[])
}

/// Removes the frames of an old row's values that the new one does not keep.
fn forget_replaced(txn: &Transaction, target: &ToastTarget, old: &[Datum], new: &[Datum]) -> Result<()> {
    for (column, value) in old.iter().enumerate() {
        let kept = matches!((new.get(column), value), (Some(new), Datum::Stored(bytes)) if is_same(new, bytes));
        // A dropped column's frames were deleted with it.
        if !kept && !target.columns[column].dropped {
            forget_value(txn, target.tree, value)?;
        }
    }
    Ok(())
}

/// Removes the frames of a value from a table's toast tree, if it has them there.
pub fn forget_value(txn: &Transaction, toast_tree: TreeId, value: &Datum) -> Result<()> {
    if let Datum::Stored(bytes) = value
        && let Stored::External(external) = parse(bytes)?
        && external.tree == toast_tree
    {
        txn.frames(toast_tree).delete(external.first..RowId(external.first.0 + external.rows()))?;
    }
    Ok(())
}
