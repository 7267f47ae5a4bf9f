//! Finds the partition of a row of a partitioned table.

use std::sync::{Arc, OnceLock};

use hashbrown::HashMap;
use melba_catalog::{PartitionKey, Relation};
use melba_fmgr::io;
use melba_types::{Batch, Datum, DbError, Oid, Result, err};

use super::error;
use super::part_source::PartSource;
use super::partition::{PartitionMap, key_values};
use super::target::{TableTarget, TargetBuilder};
use melba_expression::Evaluation;
use melba_expression::repeat;

/// The routing from a partitioned table to its leaves; shared by the executions of a plan.
#[derive(Debug)]
pub struct Routing {
    /// The root first.
    pub(super) tables: Vec<RoutedTable>,
    pub(super) leaves: Vec<Leaf>,
    /// By OID.
    places: HashMap<Oid, Place>,
    /// A partition has triggers.
    pub has_triggers: bool,
}

/// A partitioned table of the hierarchy.
#[derive(Debug)]
pub(super) struct RoutedTable {
    pub(super) relation: Arc<Relation>,
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
pub(super) struct Leaf {
    pub(super) relation: Arc<Relation>,
    pub(super) columns: ColumnMap,
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

    /// The column above that is a column below.
    pub fn above(&self, below: usize) -> Option<usize> {
        match &self.places {
            None => Some(below),
            Some(places) => places.get(below).copied().flatten(),
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

    pub(super) fn batch_down(&self, batch: Batch, below: &Relation) -> Batch {
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
        let mut routing = Routing { tables: vec![], leaves: vec![], places: HashMap::new(), has_triggers: false };
        for oid in catalog.descendants(root.oid) {
            let Some(relation) = catalog.relation(oid) else { continue };
            let place = if relation.is_partitioned() {
                let map = PartitionMap::new(catalog, relation)?;
                let key = builder.partition_key(relation, root)?;
                routing.tables.push(RoutedTable { relation: relation.clone(), map, key });
                Place::Table(routing.tables.len() - 1)
            } else {
                let columns = ColumnMap::new(root, relation);
                routing.has_triggers |= !relation.triggers.is_empty();
                routing.leaves.push(Leaf { relation: relation.clone(), columns, target: OnceLock::new() });
                Place::Leaf(routing.leaves.len() - 1)
            };
            routing.places.insert(oid, place);
        }
        Ok(routing)
    }

    /// The leaf that a row of the root belongs to.
    pub(super) fn route(&self, ctx: &Evaluation, row: &[Datum]) -> Result<usize> {
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

    pub(super) fn target(&self, ctx: &Evaluation, leaf: usize) -> Result<Arc<TableTarget>> {
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
