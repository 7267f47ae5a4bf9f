//! Reading: whole statements, and cursors that continue while everything else happens.

use std::collections::BTreeMap;
use std::ops::Bound;

use melba_engine::{ReadView, RelationLockMode, TableScan, ViewPin};
use melba_types::{RowId, TreeId};

use crate::check::serializable::Read;
use crate::check::state;
use crate::client::{Attempt, Open};
use crate::ensure;
use crate::failure::Outcome;
use crate::model::TableNumber;
use crate::row::{Row, Value, missing, value};
use crate::world::World;

/// A scan in progress: it shows its view's state when it was opened.
pub struct Cursor {
    scan: TableScan,
    tree: TreeId,
    view: ReadView,
    _pin: ViewPin,
    projection: Vec<usize>,
    expected: BTreeMap<RowId, Row>,
    found: BTreeMap<RowId, Vec<Value>>,
}

impl World {
    pub fn read(&mut self, open: &mut Open, number: TableNumber) -> Outcome<Attempt> {
        let Some(shape) = self.lock_table(open, number, RelationLockMode::AccessShare)? else { return Ok(Attempt::Blocked) };
        let view = open.view(self)?;
        let expected = self.model.rows(number, view.csn, &open.changes);
        let choice = self.random.below(10);
        if choice < 6 {
            open.note(Read::Rows(number));
            state::check_rows(&open.txn, view, &shape, &expected, &self.random)?;
        }
        if choice > 2 {
            for (tree, key, whole_from) in &shape.indexes {
                if *whole_from <= view.csn {
                    let bounds = state::bounds(*key, &self.random);
                    open.note(Read::Keys(number, *key, bounds.clone()));
                    state::check_entries(&open.txn, view, (*tree, *key), &expected, &bounds, self.random.chance(30))?;
                }
            }
        }
        let points = state::check_points(&open.txn, view, &shape, &expected, &self.random)?;
        points.rows.into_iter().for_each(|id| open.note(Read::Row(number, id)));
        for (index, key) in points.keys {
            open.note(Read::Keys(number, index, (Bound::Included(key.clone()), Bound::Included(key))));
        }
        if choice.is_multiple_of(3) {
            state::check_frames(&open.txn, view, &shape, &expected)?;
        }
        Ok(Attempt::Done)
    }

    pub fn open_cursor(&mut self, open: &mut Open, number: TableNumber) -> Outcome<Attempt> {
        let Some(shape) = self.lock_table(open, number, RelationLockMode::AccessShare)? else { return Ok(Attempt::Blocked) };
        let view = open.view(self)?;
        open.note(Read::Rows(number));
        let pin = open.txn.pin_view(view);
        let projection: Vec<usize> = (0..shape.columns).collect();
        let scan = open.txn.scan(view, shape.tree, &projection, &missing(shape.columns), &[], None)?;
        let expected = self.model.rows(number, view.csn, &open.changes);
        let found = BTreeMap::new();
        open.cursor = Some(Cursor { scan, tree: shape.tree, view, _pin: pin, projection, expected, found });
        Ok(Attempt::Done)
    }

    /// Fetches a batch, and at the end looks whether it was all.
    pub fn step_cursor(&mut self, open: &mut Open) -> Outcome<()> {
        let Some(cursor) = &mut open.cursor else { return Ok(()) };
        match cursor.scan.next()? {
            Some(batch) => {
                for (i, id) in batch.row_ids.iter().enumerate() {
                    let row = batch.columns.iter().map(|c| value(&c.get(i))).collect();
                    ensure!(cursor.found.insert(*id, row).is_none(), "a cursor gave row {id} twice");
                }
            }
            None => {
                state::compare(cursor.tree, cursor.view, &cursor.projection, &cursor.found, &cursor.expected)?;
                open.cursor = None;
            }
        }
        Ok(())
    }
}
