//! Rows on their way to the partitions of a table.

use std::sync::{Arc, OnceLock};

use hashbrown::HashMap;
use melba_catalog::{PartitionKey, Relation};
use melba_engine::{Held, Transaction};
use melba_fmgr::io;
use melba_types::{Batch, Datum, DbError, Oid, Result, RowId, err};

use super::batch::RowError;
use super::error;
use super::partition::{PartitionMap, key_values};
use super::target::{PartSource, TableTarget, TargetBuilder};
use super::writer::{Above, TableWriter};
use melba_expression::Evaluation;
use melba_expression::repeat;

/// What leads from a partitioned table to its leaves; shared by the executions of a plan.
#[derive(Debug)]
pub struct Routing {
    /// The root first.
    tables: Vec<RoutedTable>,
    leaves: Vec<Leaf>,
    /// By OID.
    places: HashMap<Oid, Place>,
}

/// A partitioned table of the hierarchy.
#[derive(Debug)]
struct RoutedTable {
    relation: Arc<Relation>,
    map: Arc<PartitionMap>,
    /// Over the root's columns.
    key: Vec<PartSource>,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Table(usize),
    Leaf(usize),
}

/// A partition that has rows.
#[derive(Debug)]
struct Leaf {
    relation: Arc<Relation>,
    columns: ColumnMap,
    target: OnceLock<Arc<TableTarget>>,
}

/// Where the columns of a table below are in the rows of the one above.
#[derive(Clone, Debug)]
pub struct ColumnMap {
    /// By column below; `None`: the columns are the same.
    places: Option<Vec<Option<usize>>>,
    above: usize,
}

impl ColumnMap {
    /// Of one and the same table.
    pub fn same() -> ColumnMap {
        ColumnMap { places: None, above: 0 }
    }

    /// By name, as inheritance has it.
    pub fn new(above: &Relation, below: &Relation) -> ColumnMap {
        let place = |c: &melba_catalog::Column| match c.dropped {
            true => None,
            false => above.columns.iter().position(|a| !a.dropped && a.name == c.name),
        };
        let places: Vec<Option<usize>> = below.columns.iter().map(place).collect();
        let dropped = |at: usize| above.columns.get(at).is_some_and(|c| c.dropped);
        let is_same = above.columns.len() == below.columns.len()
            && places.iter().enumerate().all(|(at, p)| *p == Some(at) || (p.is_none() && dropped(at)));
        ColumnMap { places: (!is_same).then_some(places), above: above.columns.len() }
    }

    /// The column below that is a column above.
    pub fn below(&self, above: usize) -> Option<usize> {
        match &self.places {
            None => Some(above),
            Some(places) => places.iter().position(|p| *p == Some(above)),
        }
    }

    /// A row from above as one below.
    pub fn down(&self, row: Vec<Datum>) -> Vec<Datum> {
        match &self.places {
            None => row,
            Some(places) => places.iter().map(|p| p.map_or(Datum::Null, |at| row[at].clone())).collect(),
        }
    }

    /// A row from below as one above.
    pub fn up(&self, row: Vec<Datum>) -> Vec<Datum> {
        let Some(places) = &self.places else { return row };
        let mut out = vec![Datum::Null; self.above];
        for (value, place) in row.into_iter().zip(places) {
            if let Some(at) = place {
                out[*at] = value;
            }
        }
        out
    }

    fn batch_down(&self, batch: Batch, below: &Relation) -> Batch {
        let Some(places) = &self.places else { return batch };
        let column = |(place, described): (&Option<usize>, &melba_catalog::Column)| match place {
            Some(at) => batch.columns[*at].clone(),
            None => repeat(&Datum::Null, described.kind, batch.rows),
        };
        Batch { columns: places.iter().zip(below.columns.iter()).map(column).collect(), rows: batch.rows }
    }
}

impl Routing {
    pub(super) fn new(builder: &TargetBuilder<'_>, root: &Arc<Relation>) -> Result<Routing> {
        let catalog = builder.catalog;
        let mut routing = Routing { tables: vec![], leaves: vec![], places: HashMap::new() };
        for oid in catalog.descendants(root.oid) {
            let Some(relation) = catalog.relation(oid) else { continue };
            let place = if relation.is_partitioned() {
                let map = PartitionMap::new(catalog, relation)?;
                let key = builder.partition_key(relation, root)?;
                routing.tables.push(RoutedTable { relation: relation.clone(), map, key });
                Place::Table(routing.tables.len() - 1)
            } else {
                let columns = ColumnMap::new(root, relation);
                routing.leaves.push(Leaf { relation: relation.clone(), columns, target: OnceLock::new() });
                Place::Leaf(routing.leaves.len() - 1)
            };
            routing.places.insert(oid, place);
        }
        Ok(routing)
    }

    /// The leaf that a row of the root belongs to.
    fn route(&self, ctx: &Evaluation, row: &[Datum]) -> Result<usize> {
        let mut at = 0;
        loop {
            let table = &self.tables[at];
            let values = key_values(ctx, &table.key, &table.map, row)?;
            let found = table.map.find(&*ctx.session, &values)?;
            match found.and_then(|oid| self.places.get(&oid)) {
                Some(Place::Leaf(leaf)) => return Ok(*leaf),
                Some(Place::Table(next)) => at = *next,
                None => return Err(no_partition(ctx, &table.relation, &table.map, &values)),
            }
        }
    }

    fn target(&self, ctx: &Evaluation, leaf: usize) -> Result<Arc<TableTarget>> {
        let leaf = &self.leaves[leaf];
        if let Some(target) = leaf.target.get() {
            return Ok(target.clone());
        }
        let builder = TargetBuilder { catalog: ctx.catalog(), session: &*ctx.session };
        let target = Arc::new(builder.table(leaf.relation.oid)?);
        Ok(leaf.target.get_or_init(|| target).clone())
    }
}

/// 23514.
fn no_partition(ctx: &Evaluation, table: &Relation, map: &PartitionMap, values: &[Datum]) -> DbError {
    let key: &PartitionKey = map.key();
    let shown = |(value, ty): (&Datum, Oid)| {
        let mut out = Vec::new();
        match value.is_null() || io::text_out(&*ctx.session, ty, value, &mut out).is_err() {
            true => "null".to_owned(),
            false => String::from_utf8_lossy(&out).into_owned(),
        }
    };
    let name = |c: &melba_catalog::PartitionColumn| match &c.expression {
        Some(text) => {
            let shown = ctx.session.shown_expression(text, table.oid, false);
            shown.unwrap_or_else(|_| text.to_string())
        }
        None => melba_catalog::quote_ident(&table.columns[c.column as usize - 1].name).into_owned(),
    };
    let names: Vec<String> = key.columns.iter().map(name).collect();
    let values: Vec<String> = values.iter().zip(key.columns.iter().map(|c| c.ty)).map(shown).collect();
    let schema = ctx.catalog().namespace(table.namespace).map_or("", |n| &n.name);
    let seen = |c: &melba_catalog::PartitionColumn| {
        c.expression.is_none() && error::sees(&*ctx.session, table, &table.columns[c.column as usize - 1])
    };
    let error = err!(CHECK_VIOLATION, "no partition of relation \"{}\" found for row", table.name);
    let error = match error::sees_all(&*ctx.session, table) || key.columns.iter().all(seen) {
        true => {
            error.detail(format!("Partition key of the failing row contains ({}) = ({}).", names.join(", "), values.join(", ")))
        }
        false => error,
    };
    error.schema(schema).table(&*table.name)
}

/// One statement's writers of the partitions that it has met.
pub(super) struct Router {
    pub routing: Arc<Routing>,
    txn: Arc<Transaction>,
    /// As `TableTarget::written`, of the root.
    written: Vec<i16>,
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
    pub fn new(routing: Arc<Routing>, txn: Arc<Transaction>, written: Vec<i16>) -> Router {
        let leaves = routing.leaves.len();
        let writers = (0..leaves).map(|_| None).collect();
        Router { routing, txn, written, writers, numbers: vec![vec![]; leaves], held: None, count: 0 }
    }

    fn writer(&mut self, ctx: &Evaluation, leaf: usize) -> Result<&mut TableWriter> {
        if self.writers[leaf].is_none() {
            let mut writer = TableWriter::new(self.routing.target(ctx, leaf)?, self.txn.clone());
            let root = self.routing.tables[0].relation.clone();
            writer.routed = true;
            let columns = self.routing.leaves[leaf].columns.clone();
            writer.above = Some(Above { relation: root, columns, written: self.written.clone() });
            self.writers[leaf] = Some(writer);
        }
        self.writers[leaf].as_mut().ok_or_else(|| DbError::internal("a partition without its writer"))
    }

    pub fn insert(&mut self, ctx: &Evaluation, row: Vec<Datum>) -> Result<Routed> {
        let routing = self.routing.clone();
        let at = routing.route(ctx, &row)?;
        let leaf = &routing.leaves[at];
        let mut row = leaf.columns.down(row);
        let writer = self.writer(ctx, at)?;
        let id = writer.insert(ctx, &mut row)?;
        let target = writer.target.clone();
        target.compute_virtuals(ctx, &mut row)?;
        Ok(Routed { row: leaf.columns.up(row), id, table: leaf.relation.oid })
    }

    /// The writer of the partition that a row goes to, and its columns.
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

    /// What the leaves have left to check.
    pub fn take_events(&mut self) -> Vec<super::Events> {
        self.writers.iter_mut().flatten().map(|w| std::mem::take(&mut w.events)).collect()
    }
}
