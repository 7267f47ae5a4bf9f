//! Results that are being read: the rows for Execute, FETCH and the simple protocol.

use std::sync::Arc;

use melba_protocol::Format;
use melba_spill::{Resources, Store};
use melba_types::{Batch, DbError, Result, SqlState};

use super::outcome::{ResultColumn, RowSource, Tag};
use super::positioned::Position;
use super::prepared::{BoundName, Prepared};

/// How far back a portal can be read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rewind {
    /// Forward only: rows are dropped once they are read.
    Never,
    /// As long as the rows read stay small.
    WhileSmall,
    Always,
}

/// A result with a position in it. Position 0 is before the first row, `n` is on the n-th, and one more is after the last.
pub struct PortalRows {
    source: Option<Box<dyn RowSource>>,
    /// The batch read last, and batches read ahead.
    batches: Vec<Batch>,
    /// All rows so far, of a cursor that may come back to them or outlive its source.
    kept: Option<Box<Store>>,
    /// Number of the row before the first one of each batch.
    starts: Vec<u64>,
    /// Rows of `batches`, counting those dropped before them.
    loaded: u64,
    position: u64,
    rewind: Rewind,
}

/// The batch that a row was found in.
pub enum Found<'a> {
    /// The batch read last.
    Read(&'a Batch),
    /// A part of the kept rows.
    Kept(Arc<Batch>),
}

impl std::ops::Deref for Found<'_> {
    type Target = Batch;

    fn deref(&self) -> &Batch {
        match self {
            Found::Read(batch) => batch,
            Found::Kept(batch) => batch,
        }
    }
}

/// Rows requested at once.
const BATCH_ROWS_MAX: u64 = 2048;

/// Rows kept by a cursor that was not declared SCROLL; beyond them it can only move forward.
const SMALL_ROWS_MAX: u64 = 100_000;

impl PortalRows {
    pub fn new(source: Box<dyn RowSource>, rewind: Rewind) -> PortalRows {
        PortalRows { source: Some(source), batches: Vec::new(), kept: None, starts: Vec::new(), loaded: 0, position: 0, rewind }
    }

    /// Keeps all rows, in files when they are many. Before the first one is read.
    pub fn keeping(mut self, resources: &Arc<Resources>) -> PortalRows {
        self.kept = Some(Box::new(Store::new(resources)));
        self
    }

    pub fn position(&self) -> u64 {
        self.position
    }

    /// The row a positioned UPDATE or DELETE refers to.
    pub fn current(&mut self) -> Result<Option<(Found<'_>, usize)>> {
        self.locate(self.position)
    }

    fn locate(&mut self, row: u64) -> Result<Option<(Found<'_>, usize)>> {
        if let Some(at) = self.starts.partition_point(|start| *start < row).checked_sub(1) {
            let (batch, offset) = (&self.batches[at], (row - self.starts[at] - 1) as usize);
            return Ok((offset < batch.rows).then_some((Found::Read(batch), offset)));
        }
        let (Some(kept), Some(mut place)) = (&mut self.kept, row.checked_sub(1)) else { return Ok(None) };
        let chunk = kept.chunk_of(&mut place)?;
        Ok(chunk.map(|chunk| (Found::Kept(chunk), (row - 1 - place) as usize)))
    }

    /// Reads until row `row` is loaded, and up to `wanted` if that costs no further batch; false when the result is shorter.
    fn load(&mut self, row: u64, wanted: u64) -> Result<bool> {
        while self.loaded < row {
            let Some(source) = &mut self.source else { return Ok(false) };
            let limit = wanted.saturating_sub(self.loaded).clamp(1, BATCH_ROWS_MAX) as usize;
            let Some(batch) = source.next(limit)? else {
                self.source = None;
                return Ok(false);
            };
            if batch.rows == 0 {
                continue;
            }
            match self.rewind {
                Rewind::WhileSmall if self.loaded > SMALL_ROWS_MAX => self.rewind = Rewind::Never,
                _ => {}
            }
            match &mut self.kept {
                Some(kept) => {
                    kept.push(batch.clone())?;
                    self.batches.clear();
                    self.starts.clear();
                }
                None if self.rewind == Rewind::Never => self.forget_read(),
                None => {}
            }
            self.starts.push(self.loaded);
            self.loaded += batch.rows as u64;
            self.batches.push(batch);
        }
        Ok(true)
    }

    /// Drops batches that lie wholly before the position.
    fn forget_read(&mut self) {
        let keep = self.starts.iter().zip(&self.batches).position(|(s, b)| s + b.rows as u64 >= self.position.max(1));
        let drop = keep.unwrap_or(self.batches.len());
        self.batches.drain(..drop);
        self.starts.drain(..drop);
    }

    /// Reads everything that is left.
    fn load_all(&mut self) -> Result<()> {
        self.load(u64::MAX, u64::MAX).map(drop)
    }

    /// Keeps everything that is left, so that nothing of the transaction is needed any more.
    pub fn hold(&mut self, resources: &Arc<Resources>) -> Result<()> {
        if self.source.is_some() && self.kept.is_none() {
            let mut kept = Box::new(Store::new(resources));
            // Dropped rows are no longer counted.
            let dropped = self.starts.first().copied().unwrap_or(self.loaded);
            (self.position, self.loaded) = (self.position.saturating_sub(dropped), self.loaded - dropped);
            self.starts.clear();
            self.batches.drain(..).try_for_each(|batch| kept.push(batch))?;
            self.kept = Some(kept);
        }
        self.load_all()
    }

    /// The next rows, at most `limit`; `None` at the end.
    pub fn next_batch(&mut self, limit: u64) -> Result<Option<Batch>> {
        if !self.read(limit)? {
            return Ok(None);
        }
        let mut rows = None;
        self.take_read(limit, |batch, range| {
            rows = Some(batch.slice(range, None));
            Ok(())
        })?;
        Ok(rows)
    }

    /// Reads forward: calls `take` with runs of rows until `count` were taken or the result ends. True when rows may be left.
    pub fn forward(
        &mut self,
        count: u64,
        mut take: impl FnMut(&Batch, std::ops::Range<usize>) -> Result<()>,
    ) -> Result<(u64, bool)> {
        let mut taken = 0;
        while taken < count {
            if !self.read(count - taken)? {
                return Ok((taken, false));
            }
            taken += self.take_read(count - taken, &mut take)?;
        }
        Ok((taken, true))
    }

    /// Sees to it that the next row is there, and reads up to `wanted` if that costs no further batch; false at the end, to which the
    /// position goes.
    pub fn read(&mut self, wanted: u64) -> Result<bool> {
        let found = self.load(self.position + 1, self.position.saturating_add(wanted))?;
        if !found {
            self.position = self.loaded + 1;
        }
        Ok(found)
    }

    /// Calls `take` with the rows that were read, at most `limit`; how many those were.
    pub fn take_read(&mut self, limit: u64, take: impl FnOnce(&Batch, std::ops::Range<usize>) -> Result<()>) -> Result<u64> {
        let found = self.locate(self.position + 1)?.ok_or_else(|| DbError::internal("the rows read are gone"))?;
        let run = ((found.0.rows - found.1) as u64).min(limit);
        take(&found.0, found.1..found.1 + run as usize)?;
        self.position += run;
        Ok(run)
    }

    /// Reads backward, one row at a time.
    pub fn backward(&mut self, count: u64, mut take: impl FnMut(&Batch, std::ops::Range<usize>) -> Result<()>) -> Result<u64> {
        let mut taken = 0;
        while taken < count && self.position > 0 {
            self.position -= 1;
            if self.position == 0 {
                break;
            }
            let (batch, offset) = self.locate(self.position)?.ok_or_else(forward_only)?;
            take(&batch, offset..offset + 1)?;
            taken += 1;
        }
        Ok(taken)
    }

    /// Goes to row `row` (0: before the first); true when there is such a row. Negative rows count from the end.
    pub fn absolute(&mut self, row: i64) -> Result<bool> {
        if row < 0 {
            // From the end it is a step back, also to the last row.
            self.check_backward()?;
        }
        let target = if row >= 0 {
            row as u64
        } else {
            self.load_all()?;
            (self.loaded + 1).saturating_sub(row.unsigned_abs())
        };
        if target < self.position {
            self.check_backward()?;
            if target > 0 && self.locate(target)?.is_none() {
                return Err(forward_only());
            }
            self.position = target;
            return Ok(target > 0);
        }
        let found = target == 0 || self.load(target, target)?;
        self.position = if found { target } else { self.loaded + 1 };
        Ok(found && target > 0)
    }

    /// An error unless rows before the position may be read.
    pub fn check_backward(&self) -> Result<()> {
        if self.rewind == Rewind::Never { Err(forward_only()) } else { Ok(()) }
    }
}

pub fn forward_only() -> DbError {
    DbError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, "cursor can only scan forward")
        .hint("Declare it with SCROLL option to enable backward scan.")
}

/// A named result: made by Bind or DECLARE.
pub struct Portal {
    pub columns: Option<Arc<[ResultColumn]>>,
    pub formats: Vec<Format>,
    pub state: PortalState,
    /// Survives the transaction (DECLARE ... WITH HOLD).
    pub hold: bool,
    /// Synthesized by DECLARE, for pg_cursors.
    pub declared: Option<Declared>,
    /// For the log.
    pub bound: Option<Arc<BoundName>>,
    /// Its transaction has committed, and its rows need nothing of it.
    pub held: bool,
    /// Where its rows come from, for WHERE CURRENT OF.
    pub positions: Arc<[Position]>,
    /// A loop of a function reads it: it stays as long as the loop.
    pub pinned: bool,
    /// How many were made before it.
    pub number: u64,
    /// The statement under which its execution was counted, which may continue.
    pub counted: Option<Arc<Prepared>>,
}

impl Portal {
    /// Makes it outlive its transaction.
    ///
    /// # Errors
    /// 2D000 for a loop over a query that changes rows: it can only continue in the same transaction.
    pub fn hold(&mut self, resources: &Arc<Resources>) -> Result<()> {
        match &mut self.state {
            PortalState::Open(rows, tag) if *tag == Tag::Counted("SELECT") || !self.pinned => rows.hold(resources)?,
            PortalState::Open(..) => {
                let message = "cannot perform transaction commands inside a cursor loop that is not read-only";
                return Err(DbError::new(SqlState::INVALID_TRANSACTION_TERMINATION, message));
            }
            _ => {}
        }
        self.held = true;
        Ok(())
    }
}

/// Its row of pg_cursors.
#[derive(Clone, Debug)]
pub struct Declared {
    pub statement: String,
    pub scroll: bool,
    pub binary: bool,
    pub created: i64,
}

/// A named portal as pg_cursors shows it.
#[derive(Clone, Debug)]
pub struct Listed {
    pub name: String,
    pub statement: String,
    pub hold: bool,
    pub binary: bool,
    pub scroll: bool,
    pub created: i64,
}

impl Listed {
    pub fn of(name: &str, portal: &Portal) -> Option<Listed> {
        if name.is_empty() {
            return None;
        }
        let name = name.to_owned();
        match (&portal.declared, &portal.state) {
            (Some(d), _) => Some(Listed {
                name,
                statement: d.statement.clone(),
                hold: portal.hold,
                binary: d.binary,
                scroll: d.scroll,
                created: d.created,
            }),
            (None, PortalState::Ready(bound)) => {
                let prepared = &bound.prepared;
                let statement = prepared.source().to_string();
                Some(Listed { name, statement, hold: false, binary: false, scroll: false, created: prepared.prepared_at })
            }
            _ => None,
        }
    }
}

pub enum PortalState {
    /// Bound and not run yet.
    Ready(super::prepared::BoundStatement),
    /// Part of the result was read.
    Open(PortalRows, Tag),
    /// Ran to its end; running it again is an error unless it had rows.
    Finished { had_rows: bool, tag: Tag },
    /// Its statement failed.
    Failed,
}

#[cfg(test)]
mod tests {
    use melba_types::{Column, ColumnData};

    use super::*;
    use crate::outcome::StoredRows;

    fn rows(rewind: Rewind) -> PortalRows {
        let batch = |values: &[i32]| Batch::new(vec![Column::new(ColumnData::Int4(values.to_vec()))], values.len());
        PortalRows::new(Box::new(StoredRows(vec![batch(&[1, 2]), batch(&[]), batch(&[3])].into_iter())), rewind)
    }

    fn values(out: &mut Vec<i32>) -> impl FnMut(&Batch, std::ops::Range<usize>) -> Result<()> + '_ {
        |batch, range| {
            out.extend(range.map(|i| batch.columns[0].get(i).as_i32()));
            Ok(())
        }
    }

    #[test]
    fn positions_follow_the_reader() {
        let mut r = rows(Rewind::Always);
        let mut seen = Vec::new();
        assert_eq!(r.forward(2, values(&mut seen)).unwrap(), (2, true));
        assert_eq!(r.forward(9, values(&mut seen)).unwrap(), (1, false));
        assert_eq!(r.backward(2, values(&mut seen)).unwrap(), 2);
        assert_eq!(seen, [1, 2, 3, 3, 2]);
        assert!(r.absolute(-1).unwrap() && r.current().unwrap().is_some_and(|(b, i)| b.columns[0].get(i).as_i32() == 3));
        assert!(!r.absolute(7).unwrap());
        assert_eq!(r.position(), 4);
        assert!(!r.absolute(0).unwrap());
        assert_eq!(r.forward(1, values(&mut Vec::new())).unwrap(), (1, true));
    }

    #[test]
    fn kept_rows_can_be_read_again() {
        let (directory, clock) = (melba_vfs::MemoryDirectory::new(), Arc::new(melba_vfs::OsClock::new()));
        let engine = melba_engine::Engine::open(Default::default(), directory, clock).expect("an empty directory opens");
        let session = engine.session().expect("a free slot");
        let resources = Arc::new(Resources::new(&melba_fmgr::testing::FixedSession::default(), &session));
        let batch = |v: i32| Batch::new(vec![Column::new(ColumnData::Int4(vec![v, v + 1]))], 2);
        let batches: Vec<Batch> = (0..5000).map(|i| batch(2 * i)).collect();
        let mut r = PortalRows::new(Box::new(StoredRows(batches.into_iter())), Rewind::Always).keeping(&resources);
        let mut seen = Vec::new();
        assert_eq!(r.forward(9_999, values(&mut seen)).unwrap(), (9_999, true));
        for row in [1, 2048, 2049, 7000, 9_999, 10_000] {
            assert!(r.absolute(row).unwrap());
            let (b, i) = r.current().unwrap().unwrap();
            assert_eq!(i64::from(b.columns[0].get(i).as_i32()), row - 1);
        }
        assert_eq!(seen, (0..9_999).collect::<Vec<i32>>());
        assert!(r.batches.len() <= 2);
    }

    #[test]
    fn forward_only_results_drop_rows_that_were_read() {
        let batch = |v: i32| Batch::new(vec![Column::new(ColumnData::Int4(vec![v]))], 1);
        let batches: Vec<Batch> = (1..=9).map(batch).collect();
        let mut r = PortalRows::new(Box::new(StoredRows(batches.into_iter())), Rewind::Never);
        let mut seen = Vec::new();
        while r.forward(1, values(&mut seen)).unwrap().1 {
            assert!(r.batches.len() <= 2);
        }
        assert_eq!(seen.len(), 9);
        assert_eq!(r.absolute(1).unwrap_err().sqlstate(), SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE);
    }
}
