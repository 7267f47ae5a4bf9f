//! Checks that SERIALIZABLE transactions could have run one after the other.
//!
//! The reads of each are kept until its engine ends. Dependencies follow from the model's versions (Adya, "Weak Consistency",
//! 1999): of a row or of the entries of a range, a reader comes after the writer of the version it saw and before the first that
//! replaced it. Transactions of other levels are not ordered: the engine does not watch them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use melba_types::{Csn, RowId};

use super::Check;
use super::state::is_inside;
use crate::ensure;
use crate::model::{Model, TableNumber};
use crate::row::{IndexKey, Row};

/// Bounds of an index's keys.
pub type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// A transaction's request to the engine.
#[derive(Clone, Debug)]
pub enum Read {
    /// All rows.
    Rows(TableNumber),
    /// A row that the snapshot shows.
    Row(TableNumber, RowId),
    /// Which rows have keys within bounds.
    Keys(TableNumber, IndexKey, Bounds),
}

/// A transaction that has committed.
#[derive(Debug)]
struct Ended {
    snapshot: Csn,
    /// Its commit, if it has changes.
    csn: Option<Csn>,
    reads: Vec<Read>,
}

/// Those of one life of the engine.
#[derive(Default)]
pub struct History(Vec<Ended>);

impl History {
    pub fn add(&mut self, snapshot: Csn, csn: Option<Csn>, reads: Vec<Read>) {
        self.0.push(Ended { snapshot, csn, reads });
    }
}

/// The order of transactions.
#[derive(Default)]
struct Edges(BTreeSet<(usize, usize)>);

type Versions = [(Csn, Option<Row>)];

/// Judges a life of the engine, whose commits the model still has.
pub fn check(model: &Model, history: &History) -> Check {
    let mut writers = BTreeMap::new();
    for (t, csn) in history.0.iter().enumerate().filter_map(|(t, x)| Some((t, x.csn?))) {
        ensure!(writers.insert(csn, t).is_none(), "two transactions are commit {csn}");
    }
    let mut edges = Edges::default();
    for versions in model.tables.values().flat_map(|table| table.rows.values()) {
        for pair in versions.windows(2) {
            edges.add(writers.get(&pair[0].0), writers.get(&pair[1].0));
        }
    }
    for (t, ended) in history.0.iter().enumerate() {
        for read in &ended.reads {
            let mut look = |versions: &Versions, of: &dyn Fn(&Option<Row>) -> Option<Vec<u8>>| {
                edges.add_read(t, ended.snapshot, versions, &writers, of);
            };
            let rows = |number: &TableNumber| model.tables.get(number).into_iter().flat_map(|t| &t.rows);
            match read {
                Read::Rows(number) => rows(number).for_each(|(_, versions)| look(versions, &whole)),
                Read::Row(number, id) => {
                    rows(number).filter(|(of, _)| *of == id).for_each(|(_, versions)| look(versions, &whole))
                }
                Read::Keys(number, index, bounds) => {
                    let key = |row: &Option<Row>| row.as_ref().map(|row| row.key(*index)).filter(|key| is_inside(key, bounds));
                    rows(number).for_each(|(_, versions)| look(versions, &key));
                }
            }
        }
    }
    let cycle = edges.in_cycles(history.0.len());
    let describe = |t: &usize| format!("{:?}", history.0[*t]);
    ensure!(
        cycle.is_empty(),
        "no order explains SERIALIZABLE transactions: {}",
        cycle.iter().map(describe).collect::<Vec<_>>().join(", ")
    );
    Ok(())
}

/// All that a row holds.
fn whole(row: &Option<Row>) -> Option<Vec<u8>> {
    row.as_ref().map(|row| format!("{row:?}").into_bytes())
}

impl Edges {
    fn add(&mut self, from: Option<&usize>, to: Option<&usize>) {
        if let (Some(from), Some(to)) = (from, to)
            && from != to
        {
            self.0.insert((*from, *to));
        }
    }

    /// A reader of a row, of which it reads the part that `of` returns.
    fn add_read(
        &mut self,
        reader: usize,
        snapshot: Csn,
        versions: &Versions,
        writers: &BTreeMap<Csn, usize>,
        of: &dyn Fn(&Option<Row>) -> Option<Vec<u8>>,
    ) {
        let said: Vec<Option<Vec<u8>>> = versions.iter().map(|(_, row)| of(row)).collect();
        let before = |at: usize| at.checked_sub(1).and_then(|at| said[at].as_ref());
        let next = versions.partition_point(|(csn, _)| *csn <= snapshot);
        if let Some(made) = (0..next).rev().find(|at| said[*at].as_ref() != before(*at)) {
            self.add(writers.get(&versions[made].0), Some(&reader));
        }
        // A transaction of another level that replaced the version by an equal one is the first to replace it all the same.
        let replaces = |at: &usize| said[*at].as_ref() != before(next) || !writers.contains_key(&versions[*at].0);
        if let Some(changed) = (next..versions.len()).find(replaces) {
            self.add(Some(&reader), writers.get(&versions[changed].0));
        }
    }

    /// The transactions that lie on cycles, or between two.
    fn in_cycles(mut self, count: usize) -> Vec<usize> {
        let mut left: Vec<usize> = (0..count).collect();
        loop {
            let before = left.len();
            let (from, to): (BTreeSet<usize>, BTreeSet<usize>) = self.0.iter().copied().unzip();
            left.retain(|t| from.contains(t) && to.contains(t));
            let kept: BTreeSet<usize> = left.iter().copied().collect();
            self.0.retain(|(from, to)| kept.contains(from) && kept.contains(to));
            if left.len() == before {
                return left;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use melba_engine::Persistence;
    use melba_types::TreeId;

    use super::*;
    use crate::model::{Changes, SchemaChange};
    use crate::row::Value;

    fn row(number: i64) -> Option<Row> {
        Some(Row(vec![Value::Number(number), Value::Null]))
    }

    /// A table, and commits from 2 on, each of one row.
    fn model(commits: &[(u64, Option<Row>)]) -> Model {
        let mut model = Model::default();
        let create = SchemaChange::CreateTable(0, TreeId(1), Persistence::Logged, Vec::new());
        model.commit(Csn(1), Changes { schema: vec![create], ..Changes::default() }, true);
        for (i, (id, row)) in commits.iter().enumerate() {
            let rows = BTreeMap::from([((0, RowId(*id)), row.clone())]);
            model.commit(Csn(2 + i as u64), Changes { rows, ..Changes::default() }, true);
        }
        model
    }

    /// Fekete, O'Neil, O'Neil 2004, with a range that is empty at first.
    #[test]
    fn a_report_between_two_commits_is_a_cycle() {
        let model = model(&[(1, row(10)), (1, row(11)), (2, row(20))]);
        let range = Read::Keys(0, IndexKey::Number, (Bound::Included(crate::row::number_key(20)), Bound::Unbounded));
        let mut history = History::default();
        history.add(Csn(2), Some(Csn(4)), vec![Read::Row(0, RowId(1))]);
        history.add(Csn(2), Some(Csn(3)), vec![]);
        assert!(check(&model, &history).is_ok());
        history.add(Csn(3), None, vec![Read::Row(0, RowId(1)), range]);
        assert!(check(&model, &history).is_err());
    }

    #[test]
    fn two_transactions_are_not_one_commit() {
        let mut history = History::default();
        history.add(Csn(1), Some(Csn(2)), vec![]);
        history.add(Csn(1), Some(Csn(2)), vec![]);
        assert!(check(&model(&[(1, row(1))]), &history).is_err());
    }

    #[test]
    fn two_who_read_all_and_add_are_a_cycle() {
        let model = model(&[(1, row(1)), (2, row(2))]);
        let mut history = History::default();
        history.add(Csn(1), Some(Csn(2)), vec![Read::Rows(0)]);
        history.add(Csn(2), Some(Csn(3)), vec![Read::Rows(0)]);
        assert!(check(&model, &history).is_ok(), "one after the other");
        let mut history = History::default();
        history.add(Csn(1), Some(Csn(2)), vec![Read::Rows(0)]);
        history.add(Csn(1), Some(Csn(3)), vec![Read::Rows(0)]);
        assert!(check(&model, &history).is_err());
    }

    /// Read Committed replaces a row by an equal one between the reader's snapshot and the second transaction.
    #[test]
    fn an_equal_row_of_another_level_ends_what_a_reader_precedes() {
        let model = model(&[(1, row(1)), (1, row(1)), (2, row(7)), (1, row(5))]);
        let mut history = History::default();
        history.add(Csn(2), Some(Csn(4)), vec![Read::Rows(0)]);
        history.add(Csn(3), Some(Csn(5)), vec![Read::Rows(0)]);
        assert!(check(&model, &history).is_ok());
        history.add(Csn(2), Some(Csn(3)), vec![]);
        assert!(check(&model, &history).is_err(), "as if SERIALIZABLE had replaced it");
    }
}
