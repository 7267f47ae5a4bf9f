//! The expected content of the database: every table's versions by commit, kept in the simplest way.
//!
//! A commit enters the model when the engine has given it a CSN. Whether it counts is decided by a CSN alone: a view at `csn`
//! sees all commits up to it, and a recovery that ends at `csn` has kept exactly those.

use std::collections::{BTreeMap, BTreeSet};

use melba_engine::{Persistence, SequenceId};
use melba_types::{Csn, RowId, TreeId};

use crate::row::{FIRST_COLUMNS, IndexKey, Row};

/// A table of the model; not the engine's tree, whose number may come again after a crash.
pub type TableNumber = u32;

/// When an object was created and dropped. A CSN that is not visible yet has not happened for others.
#[derive(Clone, Copy, Debug)]
pub struct Life {
    pub created: Csn,
    pub dropped: Option<Csn>,
}

impl Life {
    fn from(created: Csn) -> Life {
        Life { created, dropped: None }
    }

    pub fn is_at(&self, csn: Csn) -> bool {
        self.created <= csn && self.dropped.is_none_or(|d| d > csn)
    }

    /// Forgets everything after a CSN; false when nothing is left.
    fn cut(&mut self, csn: Csn) -> bool {
        self.dropped = self.dropped.filter(|d| *d <= csn);
        self.created <= csn
    }
}

#[derive(Clone, Debug)]
pub struct IndexModel {
    pub tree: TreeId,
    pub key: IndexKey,
    pub life: Life,
}

#[derive(Clone, Debug)]
pub struct TableModel {
    pub tree: TreeId,
    pub persistence: Persistence,
    pub life: Life,
    /// When each column beyond the first ones was added.
    pub added: Vec<Csn>,
    pub indexes: Vec<IndexModel>,
    /// Versions, oldest first; `None`: deleted.
    pub rows: BTreeMap<RowId, Vec<(Csn, Option<Row>)>>,
}

#[derive(Clone, Debug)]
pub struct SequenceModel {
    pub persistence: Persistence,
    pub life: Life,
    /// The last value returned in this life of the engine.
    pub given: Option<i64>,
    /// No value up to here may ever come again.
    pub floor: i64,
}

/// A table as one transaction sees it.
#[derive(Clone, Debug)]
pub struct Shape {
    pub tree: TreeId,
    pub persistence: Persistence,
    pub columns: usize,
    /// With the commit from whose view on the index is whole.
    pub indexes: Vec<(TreeId, IndexKey, Csn)>,
}

#[derive(Clone, Debug)]
pub enum SchemaChange {
    CreateTable(TableNumber, TreeId, Persistence, Vec<(TreeId, IndexKey)>),
    DropTable(TableNumber),
    CreateIndex(TableNumber, TreeId, IndexKey),
    DropIndex(TableNumber, TreeId),
    AddColumn(TableNumber),
    CreateSequence(SequenceId, Persistence),
    DropSequence(SequenceId),
}

/// A transaction's changes.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    pub rows: BTreeMap<(TableNumber, RowId), Option<Row>>,
    pub schema: Vec<SchemaChange>,
}

#[derive(Default)]
pub struct Model {
    pub tables: BTreeMap<TableNumber, TableModel>,
    pub sequences: BTreeMap<SequenceId, SequenceModel>,
    pub next_table: TableNumber,
    /// The newest assigned CSN.
    pub assigned: Csn,
    /// The commits with logged changes, and which of them are synchronous.
    logged: BTreeSet<Csn>,
    synchronous: BTreeSet<Csn>,
    /// A recovery must keep every commit up to here.
    pub durable: Csn,
    /// A new view must see every commit up to here.
    pub acknowledged: Csn,
}

impl Model {
    /// Whether these changes are logged.
    fn is_logged(&self, changes: &Changes) -> bool {
        let of = |number: &TableNumber| {
            let own = changes.schema.iter().find_map(|c| match c {
                SchemaChange::CreateTable(n, _, persistence, _) if n == number => Some(*persistence),
                _ => None,
            });
            own.or_else(|| self.tables.get(number).map(|t| t.persistence))
        };
        let schema = |change: &SchemaChange| match change {
            SchemaChange::CreateTable(n, ..)
            | SchemaChange::DropTable(n)
            | SchemaChange::CreateIndex(n, ..)
            | SchemaChange::DropIndex(n, _)
            | SchemaChange::AddColumn(n) => of(n) != Some(Persistence::Temporary),
            SchemaChange::CreateSequence(..) | SchemaChange::DropSequence(_) => true,
        };
        changes.schema.iter().any(schema) || changes.rows.keys().any(|(number, _)| of(number) == Some(Persistence::Logged))
    }

    /// A commit that has its CSN now.
    pub fn commit(&mut self, csn: Csn, changes: Changes, synchronous: bool) {
        self.assigned = self.assigned.max(csn);
        if self.is_logged(&changes) {
            self.logged.insert(csn);
            if synchronous {
                self.synchronous.insert(csn);
            }
        }
        for change in changes.schema {
            self.change(csn, change);
        }
        for ((number, id), row) in changes.rows {
            if let Some(table) = self.tables.get_mut(&number) {
                table.rows.entry(id).or_default().push((csn, row));
            }
        }
    }

    fn change(&mut self, csn: Csn, change: SchemaChange) {
        let life = Life::from(csn);
        match change {
            SchemaChange::CreateTable(number, tree, persistence, indexes) => {
                let indexes = indexes.into_iter().map(|(tree, key)| IndexModel { tree, key, life }).collect();
                let table = TableModel { tree, persistence, life, added: Vec::new(), indexes, rows: BTreeMap::new() };
                self.tables.insert(number, table);
            }
            SchemaChange::DropTable(number) => {
                if let Some(table) = self.tables.get_mut(&number) {
                    table.life.dropped = Some(csn);
                }
            }
            SchemaChange::CreateIndex(number, tree, key) => {
                self.tables.entry(number).and_modify(|t| t.indexes.push(IndexModel { tree, key, life }));
            }
            SchemaChange::DropIndex(number, tree) => {
                let indexes = self.tables.get_mut(&number).into_iter().flat_map(|t| &mut t.indexes);
                indexes.filter(|i| i.tree == tree).for_each(|i| i.life.dropped = Some(csn));
            }
            SchemaChange::AddColumn(number) => {
                self.tables.entry(number).and_modify(|t| t.added.push(csn));
            }
            SchemaChange::CreateSequence(id, persistence) => {
                self.sequences.insert(id, SequenceModel { persistence, life, given: None, floor: 0 });
            }
            SchemaChange::DropSequence(id) => {
                self.sequences.entry(id).and_modify(|s| s.life.dropped = Some(csn));
            }
        }
    }

    /// The engine has reported a commit to a client.
    pub fn acknowledge(&mut self, csn: Csn) {
        self.acknowledged = self.acknowledged.max(csn);
        self.must_keep_seen(csn);
    }

    /// A session has seen the state at a CSN: its synchronous commits are durable.
    pub fn must_keep_seen(&mut self, csn: Csn) {
        self.durable = self.durable.max(self.synchronous.range(..=csn).next_back().copied().unwrap_or_default());
    }

    /// The whole log was made durable.
    pub fn must_keep_all(&mut self) {
        self.durable = self.durable.max(self.logged.last().copied().unwrap_or_default());
    }

    /// A table as a transaction with these changes sees it, when others' changes up to `published` have happened.
    pub fn shape(&self, number: TableNumber, changes: &Changes, published: Csn) -> Option<Shape> {
        let mut shape = self.tables.get(&number).filter(|t| t.life.is_at(published)).map(|t| Shape {
            tree: t.tree,
            persistence: t.persistence,
            columns: FIRST_COLUMNS + t.added.iter().filter(|c| **c <= published).count(),
            indexes: t.indexes.iter().filter(|i| i.life.is_at(published)).map(|i| (i.tree, i.key, i.life.created)).collect(),
        });
        for change in &changes.schema {
            match (change, &mut shape) {
                (SchemaChange::CreateTable(n, tree, persistence, indexes), _) if *n == number => {
                    let indexes = indexes.iter().map(|(tree, key)| (*tree, *key, Csn(0))).collect();
                    shape = Some(Shape { tree: *tree, persistence: *persistence, columns: FIRST_COLUMNS, indexes });
                }
                (SchemaChange::DropTable(n), _) if *n == number => shape = None,
                // An own index has the rows of its creation, which is complete for later statements of its transaction.
                (SchemaChange::CreateIndex(n, tree, key), Some(s)) if *n == number => s.indexes.push((*tree, *key, published)),
                (SchemaChange::DropIndex(n, tree), Some(s)) if *n == number => s.indexes.retain(|i| i.0 != *tree),
                (SchemaChange::AddColumn(n), Some(s)) if *n == number => s.columns += 1,
                _ => {}
            }
        }
        shape
    }

    /// The tables that such a transaction sees.
    pub fn numbers(&self, changes: &Changes, published: Csn) -> Vec<TableNumber> {
        let own = changes.schema.iter().filter_map(|c| match c {
            SchemaChange::CreateTable(number, ..) => Some(*number),
            _ => None,
        });
        let mut all: Vec<TableNumber> = self.tables.keys().copied().chain(own).collect();
        all.retain(|n| self.shape(*n, changes, published).is_some());
        all
    }

    /// The rows that a view at `csn` sees, with a transaction's own changes.
    pub fn rows(&self, number: TableNumber, csn: Csn, changes: &Changes) -> BTreeMap<RowId, Row> {
        let mut rows = BTreeMap::new();
        for (id, versions) in self.tables.get(&number).into_iter().flat_map(|t| &t.rows) {
            if let Some((_, Some(row))) = versions.iter().rev().find(|(c, _)| *c <= csn) {
                rows.insert(*id, row.clone());
            }
        }
        for ((_, id), row) in changes.rows.range((number, RowId(0))..=(number, RowId(u64::MAX))) {
            match row {
                Some(row) => drop(rows.insert(*id, row.clone())),
                None => drop(rows.remove(id)),
            }
        }
        rows
    }

    /// A row's newest state up to `csn`, and the commit that made it; 0 when there is none.
    pub fn newest(&self, number: TableNumber, id: RowId, csn: Csn) -> (Csn, Option<Row>) {
        let versions = self.tables.get(&number).and_then(|t| t.rows.get(&id));
        let newest = versions.and_then(|v| v.iter().rev().find(|(c, _)| *c <= csn));
        newest.cloned().unwrap_or((Csn(0), None))
    }

    /// A restart that has kept all commits up to `csn`, and no others.
    pub fn restart(&mut self, csn: Csn, clean: bool) {
        self.tables.retain(|_, table| {
            table.added.retain(|c| *c <= csn);
            table.indexes.retain_mut(|i| i.life.cut(csn));
            let emptied = match table.persistence {
                Persistence::Logged => false,
                Persistence::Unlogged => !clean,
                Persistence::Memory | Persistence::Temporary => true,
            };
            if emptied {
                table.rows.clear();
            }
            table.rows.retain(|_, versions| {
                versions.retain(|(c, _)| *c <= csn);
                !versions.is_empty()
            });
            table.life.cut(csn) && table.persistence != Persistence::Temporary
        });
        self.sequences.retain(|_, sequence| {
            sequence.given = sequence.given.filter(|_| clean);
            if sequence.persistence == Persistence::Unlogged && !clean {
                sequence.floor = 0;
            }
            sequence.life.cut(csn)
        });
        self.logged.retain(|c| *c <= csn);
        self.synchronous.retain(|c| *c <= csn);
        (self.assigned, self.acknowledged) = (csn, csn);
        // Recovery reads nothing that could be lost again: everything it found was durable, or is by now.
        self.must_keep_all();
    }
}
