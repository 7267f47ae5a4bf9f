//! How many rows are computed together where the values may be long.
//!
//! A function of a row's two kilobytes may return a hundred megabytes, and a batch has thousands of rows. So expressions that
//! make values of varying length are computed for few rows first, and for more as long as the results stay small.

use melba_types::{Batch, Column, Datum, Kind, Result, limits};

use super::batch::Vector;
use super::{Call, Expression, Node};
use crate::Evaluation;
use melba_types::BATCH_ROWS;

/// The aim for the bytes of one piece's values.
const PIECE_BYTES: usize = 4 << 20;
const GROWTH: usize = 8;

/// The size of the next piece.
#[derive(Clone, Copy, Debug)]
pub struct Pieces {
    rows: usize,
}

impl Default for Pieces {
    fn default() -> Pieces {
        Pieces { rows: 1 }
    }
}

impl Pieces {
    /// Rows of the next piece, of those that are left.
    pub fn next(&self, left: usize) -> usize {
        self.rows.min(left)
    }

    /// Takes in the bytes that the rows of a piece became.
    pub fn note_output(&mut self, rows: usize, bytes: usize) {
        let each = (bytes / rows.max(1)).max(1);
        self.rows = (PIECE_BYTES / each).clamp(1, (self.rows * GROWTH).min(BATCH_ROWS));
    }
}

/// Stops rows that are computed one at a time when they have become large.
#[derive(Default)]
pub struct Weight(usize);

impl Weight {
    pub fn add(&mut self, values: &[Datum]) {
        self.0 += values.iter().map(Datum::heap_bytes).sum::<usize>();
    }

    pub fn add_bytes(&mut self, bytes: usize) {
        self.0 += bytes;
    }

    pub fn is_much(&self) -> bool {
        self.0 >= PIECE_BYTES
    }
}

impl Expression {
    /// Whether it makes values that may be long, rather than pass its inputs on.
    pub fn makes_values(&self) -> bool {
        let is_long = matches!(self.kind, Kind::Text | Kind::Bytes | Kind::Array | Kind::Record | Kind::Range | Kind::Multirange);
        is_long
            && match &self.node {
                Node::Column(_) | Node::Const(_) | Node::Parameter(_) | Node::Executor(_) | Node::Local(_) => false,
                Node::Relabel(arg) => arg.makes_values(),
                Node::Case(_) | Node::Coalesce(_) => {
                    let mut found = false;
                    self.for_each_child(&mut |child| found = found || child.makes_values());
                    found
                }
                _ => true,
            }
    }

    /// `eval_call` where an operand may be long: a piece of the batch at a time.
    pub(super) fn eval_pieces<'a>(&self, call: &Call, ctx: &Evaluation, batch: &Batch) -> Result<Vector<'a>> {
        let mut needed = Vec::new();
        self.columns(&mut needed);
        let mut out = Column::with_capacity(self.kind, batch.rows);
        let mut pieces = Pieces::default();
        while out.len() < batch.rows {
            let at = out.len();
            let rows = pieces.next(batch.rows - at);
            let part = batch.slice(at..at + rows, Some(&needed));
            let args = call.args.iter().map(|arg| arg.eval_vector(ctx, &part)).collect::<Result<Vec<_>>>()?;
            let bytes = args.iter().map(Vector::owned_bytes).sum();
            let made = self.eval_on_args(call, ctx, &part, args)?.into_column(self.kind, rows)?;
            // A column that grows takes twice as much for a while.
            limits::check_memory(out.memory_bytes() + made.memory_bytes())?;
            out.append(&made);
            pieces.note_output(rows, bytes);
        }
        Ok(Vector::Owned(out))
    }
}
