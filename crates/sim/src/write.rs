//! Writing rows the way the SQL layer does: locks first, then the newest state, then row and index entries.

use std::collections::BTreeSet;
use std::sync::Arc;

use melba_engine::{
    EngineError, IndexBuilder, IndexLoad, Latest, LockTag, RelationLockMode, RowLockMode, RowLockResult, Transaction, Wait,
};
use melba_types::{RowId, TreeId};

use crate::client::{Attempt, Open};
use crate::ensure;
use crate::failure::{Outcome, violated};
use crate::model::{Changes, Shape, TableNumber};
use crate::row::{IndexKey, Row, batch, frame};
use crate::world::{NUMBERS, World};

/// A row that was locked, in its present state.
struct Locked {
    id: RowId,
    row: Row,
}

/// How a load's rows get into an index.
enum Entering {
    Load(IndexLoad),
    Builder(IndexBuilder),
    OneByOne,
}

impl World {
    /// Locks a table and returns its shape; `None` when another session holds a lock, or it was dropped.
    pub fn lock_table(&mut self, open: &Open, number: TableNumber, mode: RelationLockMode) -> Outcome<Option<Shape>> {
        let tag = LockTag::Relation { database: 1, relation: number };
        if !open.txn.lock_relation(tag, mode, Wait::NoWait)? {
            return Ok(None);
        }
        Ok(self.model.shape(number, &open.changes, self.engine().visible_csn()))
    }

    pub fn insert(&mut self, open: &mut Open, number: TableNumber, row: &Row) -> Outcome<Attempt> {
        let Some(shape) = self.lock_table(open, number, RelationLockMode::RowExclusive)? else { return Ok(Attempt::Blocked) };
        open.view(self)?;
        let mut row = fitted(row, &shape);
        let numbers = shape.indexes.iter().find(|(_, key, _)| *key == IndexKey::Number);
        if let Some((tree, ..)) = numbers
            && self.is_taken(open, number, *tree, &row, None)?
        {
            return Ok(Attempt::Done);
        }
        self.put_frames(open, &shape, &mut row)?;
        let layout = open.txn.table_layout(shape.tree)?;
        let id = open.txn.insert(shape.tree, &row.encode(&layout))?;
        self.check_fresh(number, id)?;
        for (tree, key, _) in &shape.indexes {
            open.txn.index(*tree).insert(&row.key(*key), id)?;
        }
        open.changes.rows.insert((number, id), Some(row));
        Ok(Attempt::Done)
    }

    /// Writes the frames of a row whose text is to be in some.
    fn put_frames(&mut self, open: &Open, shape: &Shape, row: &mut Row) -> Outcome<()> {
        if !row.wants_frames() {
            return Ok(());
        }
        let (tree, count) = (shape.tree.toast(), 1 + self.random.below(3) as u64);
        // Many bytes are written directly to a segment; the writer announces that they are many.
        let bytes = if self.random.chance(30) { 1 << 30 } else { 0 };
        let first = open.txn.frames(tree).reserve(count, bytes)?;
        for id in (first.0..first.0 + count).map(RowId) {
            let frame = frame(tree, id);
            // The beginning of a dense column's frame comes in one piece.
            let least = frame.len().min(8);
            let (head, tail) = frame.split_at(least + self.random.below(frame.len() - least + 1));
            open.txn.frames(tree).put(id, &[head, tail])?;
        }
        row.set_frames(&(first..RowId(first.0 + count)));
        Ok(())
    }

    /// Locks a number and checks whether a row other than `except` has it; the result is verified.
    fn is_taken(&mut self, open: &Open, number: TableNumber, tree: TreeId, row: &Row, except: Option<RowId>) -> Outcome<bool> {
        let key = row.key(IndexKey::Number);
        let found = open.txn.index(tree).claim_key(&key, except)?;
        let rows = self.model.rows(number, self.engine().applied_csn(), &open.changes);
        let wanted = rows.iter().find(|(id, r)| r.number() == row.number() && Some(**id) != except).map(|(id, _)| *id);
        ensure!(found == wanted, "index {tree}: the newest row with {} is {found:?}, not {wanted:?}", row.number());
        Ok(found.is_some())
    }

    /// A row id is assigned once.
    fn check_fresh(&self, number: TableNumber, id: RowId) -> Result<(), String> {
        let known = self.model.tables.get(&number).is_some_and(|t| t.rows.contains_key(&id));
        ensure!(!known, "row id {id} came again");
        Ok(())
    }

    /// Locks the n-th row of those that the statement sees, and reads it again.
    fn lock_row(
        &mut self,
        open: &mut Open,
        number: TableNumber,
        nth: usize,
        shape: &Shape,
        mode: RowLockMode,
    ) -> Outcome<Option<Result<Locked, Attempt>>> {
        let view = open.view(self)?;
        let rows = self.model.rows(number, view.csn, &open.changes);
        let Some(id) = (!rows.is_empty()).then(|| rows.keys().nth(nth % rows.len()).copied()).flatten() else { return Ok(None) };
        if open.txn.lock_row(shape.tree, id, mode, Wait::NoWait)? == RowLockResult::WouldBlock {
            return Ok(Some(Err(Attempt::Blocked)));
        }
        let latest = open.txn.get_latest(shape.tree, id)?;
        self.check_latest(open, number, id, &latest)?;
        if latest.own_command.is_none() && latest.csn > view.csn && open.repeatable {
            return Err(EngineError::SerializationFailure.into());
        }
        let newest = match open.changes.rows.get(&(number, id)) {
            Some(own) => own.clone(),
            None => self.model.newest(number, id, self.engine().applied_csn()).1,
        };
        Ok(newest.map(|row| Ok(Locked { id, row })))
    }

    fn check_latest(&self, open: &Open, number: TableNumber, id: RowId, latest: &Latest) -> Outcome<()> {
        let (csn, newest) = self.model.newest(number, id, self.engine().applied_csn());
        // For a row that is deleted for all, the engine may have forgotten the deleting commit.
        let forgotten = newest.is_none() && latest.csn.0 == 0;
        let own = open.changes.rows.get(&(number, id));
        ensure!(latest.csn == csn || forgotten, "row {id} was last changed by {csn}, the engine says {}", latest.csn);
        let there = own.map_or(newest.is_some(), Option::is_some);
        ensure!(latest.row.is_some() == there, "row {id} is there: {there}, the engine says {}", latest.row.is_some());
        ensure!(
            latest.own_command.is_some() == own.is_some(),
            "row {id} is our own: {}, says the engine",
            latest.own_command.is_some()
        );
        Ok(())
    }

    pub fn update(&mut self, open: &mut Open, number: TableNumber, nth: usize, new: &Row) -> Outcome<Attempt> {
        let Some(shape) = self.lock_table(open, number, RelationLockMode::RowExclusive)? else { return Ok(Attempt::Blocked) };
        let mode = if self.random.chance(50) { RowLockMode::ForUpdate } else { RowLockMode::ForNoKeyUpdate };
        let locked = match self.lock_row(open, number, nth, &shape, mode)? {
            None => return Ok(Attempt::Done),
            Some(Err(attempt)) => return Ok(attempt),
            Some(Ok(locked)) => locked,
        };
        let mut row = fitted(new, &shape);
        if self.random.chance(40) {
            // Columns with indexes stay as they are.
            row.0[..2].clone_from_slice(&locked.row.0[..2]);
        }
        let numbers = shape.indexes.iter().find(|(_, key, _)| *key == IndexKey::Number);
        if let Some((tree, ..)) = numbers
            && row.number() != locked.row.number()
            && self.is_taken(open, number, *tree, &row, Some(locked.id))?
        {
            return Ok(Attempt::Done);
        }
        self.put_frames(open, &shape, &mut row)?;
        if let Some(old) = locked.row.frames().filter(|old| row.frames().as_ref() != Some(old)) {
            open.txn.frames(shape.tree.toast()).delete(old)?;
        }
        let layout = open.txn.table_layout(shape.tree)?;
        open.txn.update(shape.tree, locked.id, &row.encode(&layout))?;
        for (tree, key, _) in &shape.indexes {
            let (old, new) = (locked.row.key(*key), row.key(*key));
            if old != new {
                open.txn.index(*tree).delete(&old, locked.id)?;
                open.txn.index(*tree).insert(&new, locked.id)?;
            }
        }
        open.changes.rows.insert((number, locked.id), Some(row));
        Ok(Attempt::Done)
    }

    pub fn delete(&mut self, open: &mut Open, number: TableNumber, nth: usize) -> Outcome<Attempt> {
        let Some(shape) = self.lock_table(open, number, RelationLockMode::RowExclusive)? else { return Ok(Attempt::Blocked) };
        let locked = match self.lock_row(open, number, nth, &shape, RowLockMode::ForUpdate)? {
            None => return Ok(Attempt::Done),
            Some(Err(attempt)) => return Ok(attempt),
            Some(Ok(locked)) => locked,
        };
        open.txn.delete(shape.tree, locked.id)?;
        if let Some(frames) = locked.row.frames() {
            open.txn.frames(shape.tree.toast()).delete(frames)?;
        }
        for (tree, key, _) in &shape.indexes {
            open.txn.index(*tree).delete(&locked.row.key(*key), locked.id)?;
        }
        open.changes.rows.insert((number, locked.id), None);
        Ok(Attempt::Done)
    }

    pub fn lock_only(&mut self, open: &mut Open, number: TableNumber, nth: usize) -> Outcome<Attempt> {
        let Some(shape) = self.lock_table(open, number, RelationLockMode::RowShare)? else { return Ok(Attempt::Blocked) };
        let modes = [RowLockMode::ForKeyShare, RowLockMode::ForShare, RowLockMode::ForNoKeyUpdate, RowLockMode::ForUpdate];
        let mode = modes[self.random.below(4)];
        match self.lock_row(open, number, nth, &shape, mode)? {
            Some(Err(attempt)) => Ok(attempt),
            _ => Ok(Attempt::Done),
        }
    }

    /// COPY and similar statements: rows in batches, index entries by a load, a builder or one by one. A statement: a failure
    /// leaves nothing.
    pub fn load(&mut self, open: &mut Open, number: TableNumber, rows: &[Row]) -> Outcome<Attempt> {
        let Some(shape) = self.lock_table(open, number, RelationLockMode::RowExclusive)? else { return Ok(Attempt::Blocked) };
        let (savepoint, changes) = (open.txn.savepoint(), open.changes.clone());
        open.view(self)?;
        let mut rows: Vec<Row> = rows.iter().map(|r| fitted(r, &shape)).collect();
        rows.iter_mut().try_for_each(|row| self.put_frames(open, &shape, row))?;
        // Numbers that may be taken are for a load of the whole statement to find.
        let fresh = rows.iter().all(|row| row.number() >= NUMBERS);
        let mut ways = Vec::new();
        for (tree, key, _) in &shape.indexes {
            ways.push(match (*key, self.random.below(10)) {
                (IndexKey::Number, way) if !fresh || way < 6 => Entering::Load(IndexLoad::begin(&open.txn, *tree, true)?),
                (IndexKey::Text, 0..4) => Entering::Load(IndexLoad::begin(&open.txn, *tree, false)?),
                (_, 6..9) => Entering::Builder(IndexBuilder::begin(&open.txn, *tree, false)?),
                _ => Entering::OneByOne,
            });
        }
        let ids = self.load_rows(open, number, &shape, &rows, &mut ways)?;
        let result = self.finish_load(open, number, &changes, &rows, &ids, ways);
        let undo = !matches!(result, Ok(true));
        if undo {
            open.txn.rollback_to(savepoint);
            open.changes = changes;
        }
        open.txn.release(savepoint);
        result.map(|_| Attempt::Done)
    }

    /// Writes rows in batches, and enters them into the indexes; their ids.
    fn load_rows(
        &mut self,
        open: &mut Open,
        number: TableNumber,
        shape: &Shape,
        rows: &[Row],
        ways: &mut [Entering],
    ) -> Outcome<Vec<RowId>> {
        let mut all = Vec::new();
        for part in rows.chunks(1 + self.random.below(20)) {
            let ids = open.txn.bulk(shape.tree).insert(&batch(part, shape.columns))?;
            for (row, id) in part.iter().zip((ids.start.0..ids.end.0).map(RowId)) {
                self.check_fresh(number, id)?;
                all.push(id);
                for ((tree, key, _), way) in shape.indexes.iter().zip(&mut *ways) {
                    match way {
                        Entering::Load(load) => load.add(&row.key(*key), id, false)?,
                        Entering::Builder(builder) => builder.add(&row.key(*key), id, false)?,
                        Entering::OneByOne => open.txn.index(*tree).insert(&row.key(*key), id)?,
                    }
                }
                open.changes.rows.insert((number, id), Some(row.clone()));
            }
        }
        Ok(all)
    }

    /// Ends the loads; false when a number exists already, which must be the one that the first such row reports.
    fn finish_load(
        &mut self,
        open: &Open,
        number: TableNumber,
        before: &Changes,
        rows: &[Row],
        ids: &[RowId],
        ways: Vec<Entering>,
    ) -> Outcome<bool> {
        for way in ways {
            let duplicate = match way {
                Entering::Load(load) => load.finish()?,
                Entering::Builder(builder) => builder.finish()?,
                Entering::OneByOne => None,
            };
            let known = self.model.rows(number, self.engine().applied_csn(), before);
            let mut taken: BTreeSet<i64> = known.values().map(Row::number).collect();
            let first = rows.iter().position(|row| !taken.insert(row.number()));
            match (duplicate, first) {
                (None, _) => {}
                (Some(found), Some(first)) => {
                    ensure!(found.rows.1 == ids[first], "row {} is the first that is taken, not {}", ids[first], found.rows.1);
                    self.stats.refused_loads += 1;
                    return Ok(false);
                }
                (Some(found), None) => return violated(format!("row {} of a load is taken by nobody", found.rows.1)),
            }
        }
        let mut numbers = BTreeSet::new();
        let known = self.model.rows(number, self.engine().applied_csn(), &open.changes);
        let twice = known.values().find(|row| !numbers.insert(row.number()));
        ensure!(twice.is_none(), "a load has let number {:?} be there twice", twice.map(Row::number));
        self.stats.loads += 1;
        Ok(true)
    }

    /// Fills a new index with the existing rows.
    pub fn fill_index(
        &mut self,
        txn: &Arc<Transaction>,
        table: TreeId,
        index: TreeId,
        key: IndexKey,
        columns: usize,
    ) -> Outcome<()> {
        let (view, _pin) = txn.latest_view();
        let projection: Vec<usize> = (0..columns).collect();
        let mut scan = txn.scan(view, table, &projection, &crate::row::missing(columns), &[], None)?;
        let mut builder = if self.random.chance(60) { Some(IndexBuilder::begin(txn, index, false)?) } else { None };
        while let Some(batch) = scan.next()? {
            for (i, id) in batch.row_ids.iter().enumerate() {
                let row = Row(batch.columns.iter().map(|c| crate::row::value(&c.get(i))).collect());
                match &mut builder {
                    Some(builder) => builder.add(&row.key(key), *id, false)?,
                    None => txn.index(index).insert(&row.key(key), *id)?,
                }
            }
        }
        if let Some(builder) = builder {
            builder.finish()?;
        }
        Ok(())
    }
}

/// A row with all columns that a table has now.
fn fitted(row: &Row, shape: &Shape) -> Row {
    Row((0..shape.columns).map(|c| row.get(c)).collect())
}
