//! A view shows exactly the model's state at its CSN; every index that is whole for the view agrees with its table.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use melba_engine::{ReadView, Transaction};
use melba_types::{RowId, TreeId};
use melba_vfs::SeededRandom;

use super::serializable::Bounds;
use crate::failure::Outcome;
use crate::model::Shape;
use crate::row::{IndexKey, Row, Value, frame, missing, number_key, text_key, value};
use crate::world::NUMBERS;
use crate::{ensure, failure};

/// Scans a whole table, in some way that the random numbers choose.
pub fn check_rows(
    txn: &Arc<Transaction>,
    view: ReadView,
    shape: &Shape,
    expected: &BTreeMap<RowId, Row>,
    random: &SeededRandom,
) -> Outcome<()> {
    let mut projection: Vec<usize> = (0..shape.columns).filter(|_| random.chance(80)).collect();
    if random.chance(30) {
        projection.reverse();
    }
    let missing = missing(shape.columns);
    let mut found: BTreeMap<RowId, Vec<Value>> = BTreeMap::new();
    for morsel in txn.morsels(shape.tree, 1 + random.below(3))? {
        let mut scan = txn.scan(view, shape.tree, &projection, &missing, &[], Some(morsel))?;
        while let Some(batch) = scan.next()? {
            for (i, id) in batch.row_ids.iter().enumerate() {
                let row = batch.columns.iter().map(|c| value(&c.get(i))).collect();
                ensure!(found.insert(*id, row).is_none(), "a scan of tree {} at {} gave row {id} twice", shape.tree, view.csn);
            }
        }
    }
    compare(shape.tree, view, &projection, &found, expected)
}

/// Two rows of committed transactions have no number in common.
pub fn check_numbers(shape: &Shape, expected: &BTreeMap<RowId, Row>) -> Outcome<()> {
    let mut numbers = BTreeSet::new();
    let twice = expected.values().map(Row::number).find(|number| !numbers.insert(*number));
    ensure!(twice.is_none(), "two rows of tree {} have number {twice:?}", shape.tree);
    Ok(())
}

/// Compares rows by the requested columns.
pub fn compare(
    tree: TreeId,
    view: ReadView,
    projection: &[usize],
    found: &BTreeMap<RowId, Vec<Value>>,
    expected: &BTreeMap<RowId, Row>,
) -> Outcome<()> {
    for (id, row) in expected {
        let wanted: Vec<Value> = projection.iter().map(|c| row.get(*c)).collect();
        let Some(values) = found.get(id) else {
            return failure::violated(format!("tree {tree} at {} lacks row {id}: {wanted:?}", view.csn));
        };
        ensure!(*values == wanted, "tree {tree} at {} has row {id} as {values:?}, not {wanted:?}", view.csn);
    }
    let extra = found.keys().find(|id| !expected.contains_key(id));
    ensure!(extra.is_none(), "tree {tree} at {} has row {extra:?} that must not be seen", view.csn);
    Ok(())
}

/// Reads the frames that rows name, and searches for others: frames of deleted rows must not exist.
pub fn check_frames(txn: &Arc<Transaction>, view: ReadView, shape: &Shape, expected: &BTreeMap<RowId, Row>) -> Outcome<()> {
    let tree = shape.tree.toast();
    let mut wanted = BTreeSet::new();
    for frames in expected.values().filter_map(Row::frames) {
        wanted.extend((frames.start.0..frames.end.0).map(RowId));
    }
    for id in &wanted {
        let same = txn.frames(tree).with(view, *id, |bytes| {
            let mut written = Vec::new();
            melba_toast::frame::copy_as_written(bytes, &mut written);
            written == frame(tree, *id)
        })?;
        ensure!(same, "toast tree {tree} at {}: frame {id} is not what was written", view.csn);
    }
    let mut found = BTreeSet::new();
    let mut scan = txn.scan(view, tree, &[], &[], &[], None)?;
    while let Some(batch) = scan.next()? {
        found.extend(batch.row_ids);
    }
    ensure!(found == wanted, "toast tree {tree} at {} has frames {found:?}, and rows name {wanted:?}", view.csn);
    Ok(())
}

/// Scans an index from end to end.
pub fn check_whole_index(
    txn: &Arc<Transaction>,
    view: ReadView,
    index: (TreeId, IndexKey),
    expected: &BTreeMap<RowId, Row>,
) -> Outcome<()> {
    check_entries(txn, view, index, expected, &(Bound::Unbounded, Bound::Unbounded), false)
}

/// Bounds for an index scan, often of all of it.
pub fn bounds(index: IndexKey, random: &SeededRandom) -> Bounds {
    let bound = || -> Bound<Vec<u8>> {
        let at = match index {
            IndexKey::Number => number_key(random.below(NUMBERS as usize) as i64),
            IndexKey::Text => text_key(&format!("{:02}", random.below(40))),
        };
        [Bound::Unbounded, Bound::Unbounded, Bound::Included(at.clone()), Bound::Excluded(at)][random.below(4)].clone()
    };
    (bound(), bound())
}

/// Whether a key is within bounds, as the engine understands them.
pub fn is_inside(key: &[u8], (lower, upper): &Bounds) -> bool {
    let above = match lower {
        Bound::Unbounded => true,
        Bound::Included(l) => key >= l.as_slice(),
        Bound::Excluded(l) => key > l.as_slice() && !key.starts_with(l),
    };
    let below = match upper {
        Bound::Unbounded => true,
        Bound::Included(u) => key <= u.as_slice() || key.starts_with(u),
        Bound::Excluded(u) => key < u.as_slice(),
    };
    above && below
}

/// Scans a part of an index, in either direction.
pub fn check_entries(
    txn: &Arc<Transaction>,
    view: ReadView,
    (tree, key): (TreeId, IndexKey),
    expected: &BTreeMap<RowId, Row>,
    bounds: &Bounds,
    reverse: bool,
) -> Outcome<()> {
    let (lower, upper) = bounds;
    let mut wanted: Vec<(Vec<u8>, RowId)> = expected.iter().map(|(id, row)| (row.key(key), *id)).collect();
    wanted.retain(|(k, _)| is_inside(k, bounds));
    wanted.sort();
    if reverse {
        wanted.reverse();
    }
    let mut scan = txn.index(tree).scan(view, as_slice(lower), as_slice(upper), reverse)?;
    let mut found = Vec::new();
    while let Some((k, id)) = scan.next()? {
        found.push((k.to_vec(), id));
    }
    if found != wanted {
        let lacking = wanted.iter().find(|e| !found.contains(e));
        let extra = found.iter().find(|e| !wanted.contains(e));
        let what = format!("lacks {lacking:?}, has {extra:?} too much, {} entries for {}", found.len(), wanted.len());
        return failure::violated(format!("index {tree} at {} {what} (from {lower:?} to {upper:?})", view.csn));
    }
    Ok(())
}

fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    match bound {
        Bound::Unbounded => Bound::Unbounded,
        Bound::Included(k) => Bound::Included(k.as_slice()),
        Bound::Excluded(k) => Bound::Excluded(k.as_slice()),
    }
}

/// The lookups: ids of rows that the view shows, and keys, of a row or not. Ids that the view does not show are left out: only a
/// scan or an index could have named them (docs/design/isolation.md).
pub struct Points {
    pub rows: Vec<RowId>,
    pub keys: Vec<(IndexKey, Vec<u8>)>,
}

/// Looks some rows up by id and by key; returns which.
pub fn check_points(
    txn: &Arc<Transaction>,
    view: ReadView,
    shape: &Shape,
    expected: &BTreeMap<RowId, Row>,
    random: &SeededRandom,
) -> Outcome<Points> {
    let last = expected.keys().next_back().map_or(1, |id| id.0 as usize);
    let ids: Vec<RowId> = (0..4).map(|_| RowId(random.below(last + 3) as u64)).collect();
    let projection: Vec<usize> = (0..shape.columns).collect();
    let (kept, columns) = txn.fetch(view, shape.tree, &ids, &projection, &missing(shape.columns))?;
    let wanted: Vec<u32> = (0..4).filter(|i| expected.contains_key(&ids[*i as usize])).collect();
    ensure!(kept == wanted, "tree {} at {}: fetching {ids:?} gave {kept:?}, not {wanted:?}", shape.tree, view.csn);
    let layout = txn.table_layout(shape.tree)?;
    for (i, at) in kept.iter().enumerate() {
        let id = ids[*at as usize];
        let values: Vec<Value> = columns.iter().map(|c| value(&c.get(i))).collect();
        let row = &expected[&id];
        let wanted: Vec<Value> = projection.iter().map(|c| row.get(*c)).collect();
        ensure!(values == wanted, "tree {} at {}: row {id} is {values:?}, not {wanted:?}", shape.tree, view.csn);
        let got = txn.get(view, shape.tree, id)?.and_then(|bytes| Row::decode(&layout, &bytes));
        let same = got.as_ref().is_some_and(|got| projection.iter().all(|c| got.get(*c) == row.get(*c)));
        ensure!(same, "tree {} at {}: row {id} is {got:?}, not {row:?}", shape.tree, view.csn);
    }
    let mut keys = Vec::new();
    for (tree, key, whole_from) in &shape.indexes {
        if *whole_from > view.csn {
            continue;
        }
        let number = random.below(NUMBERS as usize) as i64;
        let key_bytes = match (expected.values().nth(random.below(expected.len() + 1)), key) {
            (Some(row), _) => row.key(*key),
            (None, IndexKey::Number) => number_key(number),
            (None, IndexKey::Text) => text_key("none"),
        };
        let mut scan = txn.index(*tree).lookup(view, &key_bytes)?;
        let mut found = Vec::new();
        while let Some((_, id)) = scan.next()? {
            found.push(id);
        }
        let wanted: Vec<RowId> = expected.iter().filter(|(_, row)| row.key(*key) == key_bytes).map(|(id, _)| *id).collect();
        ensure!(found == wanted, "index {tree} at {}: looking {key_bytes:?} up gave {found:?}, not {wanted:?}", view.csn);
        // Of a key that is unique it is the row.
        let one = txn.index(*tree).find(view, &key_bytes)?;
        let fits = one.map_or(wanted.is_empty(), |one| wanted.contains(&one));
        ensure!(fits, "index {tree} at {}: {key_bytes:?} was found to be of {one:?}, not of one of {wanted:?}", view.csn);
        keys.push((*key, key_bytes));
    }
    Ok(Points { rows: kept.iter().map(|at| ids[*at as usize]).collect(), keys })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use melba_engine::{Durability, Engine, EngineOptions, Isolation, Persistence};
    use melba_vfs::{ManualClock, MemoryDirectory};

    use super::*;
    use crate::row::{FIRST_COLUMNS, kinds};

    #[test]
    fn an_unassigned_row_id_is_no_read() {
        let engine = Engine::open(EngineOptions::default(), MemoryDirectory::new(), Arc::<ManualClock>::default());
        let engine = engine.expect("opens");
        let txn = engine.begin(Isolation::Serializable).expect("begins");
        let tree = txn.create_table_tree(&kinds(FIRST_COLUMNS), Persistence::Logged).expect("creates");
        let row = Row(vec![Value::Null; FIRST_COLUMNS]);
        let layout = txn.table_layout(tree).expect("a layout");
        let id = txn.insert(tree, &row.encode(&layout)).expect("inserts");
        let shape = Shape { tree, persistence: Persistence::Logged, columns: FIRST_COLUMNS, indexes: Vec::new() };
        let (expected, random) = (BTreeMap::from([(id, row)]), SeededRandom::new(1));
        let view = txn.statement_view();
        let mut found = BTreeSet::new();
        for _ in 0..20 {
            let points = check_points(&txn, view, &shape, &expected, &random).unwrap_or_else(|_| panic!("one row is there"));
            found.extend(points.rows);
        }
        assert_eq!(found, BTreeSet::from([id]));
        txn.commit(Durability::Async).expect("commits");
    }
}
