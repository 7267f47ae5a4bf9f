//! Writes rows to the partitions that they belong to.

use std::sync::Arc;

use melba_engine::{Held, Transaction};
use melba_types::{Batch, Datum, DbError, Oid, Result, RowId};

use super::batch::RowError;
use super::events::Events;
use super::routing::{ColumnMap, Routing};
use super::row_check::RowChecks;
use super::target::TableTarget;
use super::transition::Transitions;
use super::writer::{Above, TableWriter};
use melba_expression::Evaluation;
use melba_tree::RowCheckKind;

/// One statement's writers of the partitions used so far.
pub(super) struct Router {
    pub routing: Arc<Routing>,
    txn: Arc<Transaction>,
    /// As `TableTarget::written`, of the root.
    written: Vec<i16>,
    /// As `TableTarget::updated`.
    updated: Vec<i16>,
    /// The stores for rows that triggers of the root read.
    pub transitions: Option<Arc<Transitions>>,
    /// As `TableWriter`'s.
    pub row_checks: Arc<RowChecks>,
    pub new_rows: RowCheckKind,
    writers: Vec<Option<TableWriter>>,
    /// Numbers, among the rows of the statement, of the rows that each leaf was given in batches.
    numbers: Vec<Vec<u64>>,
    /// The account of them.
    held: Option<Held>,
    /// Rows that came in batches.
    pub count: u64,
}

/// A row that has been inserted, as the root's columns.
pub struct Routed {
    pub row: Vec<Datum>,
    pub id: RowId,
    pub table: Oid,
}

impl Router {
    pub fn new(routing: Arc<Routing>, txn: Arc<Transaction>, target: &TableTarget) -> Router {
        let leaves = routing.leaves.len();
        let (written, updated) = (target.written.clone(), target.updated.clone());
        let writers = (0..leaves).map(|_| None).collect();
        Router {
            routing,
            txn,
            written,
            updated,
            transitions: None,
            row_checks: Arc::default(),
            new_rows: RowCheckKind::Insert,
            writers,
            numbers: vec![vec![]; leaves],
            held: None,
            count: 0,
        }
    }

    fn writer(&mut self, ctx: &Evaluation, leaf: usize) -> Result<&mut TableWriter> {
        if self.writers[leaf].is_none() {
            let mut writer = TableWriter::new(self.routing.target(ctx, leaf)?, self.txn.clone());
            let root = self.routing.tables[0].relation.clone();
            writer.routed = true;
            writer.row_checks = self.row_checks.clone();
            writer.transitions = self.transitions.clone();
            let columns = self.routing.leaves[leaf].columns.clone();
            let below = |above: &i16| columns.below(*above as usize - 1).map(|at| at as i16 + 1);
            writer.updated = self.updated.iter().filter_map(below).collect();
            writer.above = Some(Above { relation: root, columns, written: self.written.clone() });
            self.writers[leaf] = Some(writer);
        }
        let new_rows = self.new_rows;
        let writer = self.writers[leaf].as_mut().ok_or_else(|| DbError::internal("a partition without its writer"))?;
        writer.new_rows = new_rows;
        Ok(writer)
    }

    /// Events for triggers are added to `events`: those of all partitions are in the order of the rows.
    pub fn insert(&mut self, ctx: &Evaluation, row: Vec<Datum>, events: &mut Events) -> Result<Option<Routed>> {
        let routing = self.routing.clone();
        let at = routing.route(ctx, &row)?;
        let leaf = &routing.leaves[at];
        let mut row = leaf.columns.down(row);
        let writer = self.writer(ctx, at)?;
        let Some(id) = writer.insert(ctx, &mut row)? else { return Ok(None) };
        let target = writer.target.clone();
        if target.triggers.is_some() {
            events.append(ctx, std::mem::take(&mut writer.events))?;
        }
        Ok(Some(Routed { row: leaf.columns.up(row), id, table: leaf.relation.oid }))
    }

    /// The writer of the partition that a row belongs to, and its columns.
    pub fn site(&mut self, ctx: &Evaluation, row: &[Datum]) -> Result<(&mut TableWriter, ColumnMap)> {
        let routing = self.routing.clone();
        let leaf = routing.route(ctx, row)?;
        Ok((self.writer(ctx, leaf)?, routing.leaves[leaf].columns.clone()))
    }

    pub fn has_rows(&self) -> bool {
        self.writers.iter().flatten().any(TableWriter::has_rows)
    }

    pub fn insert_batch(&mut self, ctx: &Evaluation, batch: Batch) -> Result<(), RowError> {
        let routing = self.routing.clone();
        let first = self.count;
        let mut by_leaf: Vec<(usize, Vec<u32>)> = Vec::new();
        let mut failed = None;
        for i in 0..batch.rows {
            let leaf = match routing.route(ctx, &batch.row(i)) {
                Ok(leaf) => leaf,
                Err(e) => {
                    failed = Some((first + i as u64, e));
                    break;
                }
            };
            match by_leaf.iter_mut().find(|(l, _)| *l == leaf) {
                Some((_, rows)) => rows.push(i as u32),
                None => by_leaf.push((leaf, vec![i as u32])),
            }
        }
        self.count += batch.rows as u64;
        let held = self.held.get_or_insert_with(|| ctx.resources().held());
        held.set(self.count as usize * size_of::<u64>()).map_err(|e| (first, e.into()))?;
        for (at, rows) in by_leaf {
            self.numbers[at].extend(rows.iter().map(|i| first + u64::from(*i)));
            let leaf = &routing.leaves[at];
            let part = leaf.columns.batch_down(batch.take(&rows), &leaf.relation);
            let writer = self.writer(ctx, at).map_err(|e| (first, e))?;
            let result = writer.insert_batch(ctx, part);
            result.map_err(|e| self.at_root(at, e))?;
        }
        failed.map_or(Ok(()), Err)
    }

    /// An error with the number that its row has among all.
    fn at_root(&self, leaf: usize, (number, error): RowError) -> RowError {
        let known = usize::try_from(number).ok().and_then(|n| self.numbers[leaf].get(n));
        (known.copied().unwrap_or(number), error)
    }

    /// The first error that a leaf has left to say, if one has.
    pub fn finish(&mut self, ctx: &Evaluation) -> Result<(), RowError> {
        let mut first: Option<RowError> = None;
        for leaf in 0..self.writers.len() {
            let Some(writer) = &mut self.writers[leaf] else { continue };
            if let Err(error) = writer.finish(ctx) {
                let error = self.at_root(leaf, error);
                if first.as_ref().is_none_or(|f| error.0 < f.0) {
                    first = Some(error);
                }
            }
        }
        first.map_or(Ok(()), Err)
    }

    /// Events that a partition has left for triggers.
    pub fn take_triggered(&mut self, partition: Oid) -> Option<Events> {
        let mut writers = self.writers.iter_mut().flatten();
        let writer = writers.find(|w| w.target.relation.oid == partition && w.target.triggers.is_some())?;
        Some(std::mem::take(&mut writer.events))
    }

    /// The checks that are pending for the leaves.
    pub fn take_events(&mut self) -> Vec<Events> {
        self.writers.iter_mut().flatten().map(|w| std::mem::take(&mut w.events)).collect()
    }
}
