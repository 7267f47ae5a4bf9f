//! The samples that an engine keeps.

use std::collections::HashMap;
use std::sync::Arc;

use melba_threads::Mutex;
use melba_types::TreeId;

use super::drawing::{Drawing, SampledPlaces};
use super::{SampleAge, SampledColumn};

/// Of an entry without its column.
const ENTRY_BYTES: usize = 128;
/// Changes of a table's rows that leave a sample good enough for plans, whatever the table's size.
const CHANGES_MIN: u64 = 64;

/// The samples of an engine.
pub(crate) struct Samples {
    limit: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    places: HashMap<TreeId, KeptPlaces>,
    columns: HashMap<(TreeId, usize), KeptColumn>,
    bytes: usize,
    /// Counts requests.
    now: u64,
}

/// The rows of a table's sample. They are kept as long as a column of theirs is.
struct KeptPlaces {
    places: Arc<SampledPlaces>,
    columns: usize,
}

/// A drawn column.
struct KeptColumn {
    of: Arc<SampledPlaces>,
    column: Option<Arc<SampledColumn>>,
    bytes: usize,
    used: u64,
}

impl Samples {
    pub fn new(limit: usize) -> Samples {
        Samples { limit, state: Mutex::default() }
    }

    pub fn bytes(&self) -> usize {
        self.state.lock().bytes
    }

    pub fn limit(&self) -> usize {
        self.limit
    }

    /// How many rows a sample of a table has, and some of its columns, in the order of `columns`.
    pub fn columns(
        &self,
        tree: TreeId,
        drawing: &Drawing,
        columns: &[usize],
        age: SampleAge,
    ) -> (usize, Vec<Option<Arc<SampledColumn>>>) {
        let known = self.state.lock().places.get(&tree).map(|kept| Arc::clone(&kept.places));
        let changes_max = match age {
            SampleAge::ForPlans => (drawing.rows() as u64 / 8).max(CHANGES_MIN),
            SampleAge::Current => 0,
        };
        let places = known.filter(|places| drawing.is_like(places, changes_max)).unwrap_or_else(|| Arc::new(drawing.places()));
        let column = |column: usize| {
            self.kept(tree, column, &places).unwrap_or_else(|| {
                let drawn = drawing.draw(column, &places).map(Arc::new);
                self.keep(tree, column, &places, drawn.clone());
                drawn
            })
        };
        (places.rows(), columns.iter().map(|c| column(*c)).collect())
    }

    fn kept(&self, tree: TreeId, column: usize, places: &Arc<SampledPlaces>) -> Option<Option<Arc<SampledColumn>>> {
        let mut state = self.state.lock();
        state.now += 1;
        let now = state.now;
        let kept = state.columns.get_mut(&(tree, column)).filter(|kept| Arc::ptr_eq(&kept.of, places))?;
        kept.used = now;
        Some(kept.column.clone())
    }

    fn keep(&self, tree: TreeId, column: usize, places: &Arc<SampledPlaces>, drawn: Option<Arc<SampledColumn>>) {
        let bytes = ENTRY_BYTES + drawn.as_ref().map_or(0, |c| c.memory_bytes());
        let state = &mut *self.state.lock();
        state.forget(tree, column);
        match state.places.get_mut(&tree) {
            Some(kept) if Arc::ptr_eq(&kept.places, places) => kept.columns += 1,
            _ => {
                // Columns of other rows are of no use beside these.
                let others: Vec<usize> = state.columns.keys().filter(|(of, _)| *of == tree).map(|(_, column)| *column).collect();
                others.into_iter().for_each(|column| state.forget(tree, column));
                state.bytes += ENTRY_BYTES + places.memory_bytes();
                state.places.insert(tree, KeptPlaces { places: Arc::clone(places), columns: 1 });
            }
        }
        state.bytes += bytes;
        state.columns.insert((tree, column), KeptColumn { of: Arc::clone(places), column: drawn, bytes, used: state.now });
        while state.bytes > self.limit && state.columns.len() > 1 {
            let Some(oldest) = state.columns.iter().min_by_key(|(_, kept)| kept.used).map(|(key, _)| *key) else { break };
            state.forget(oldest.0, oldest.1);
        }
    }
}

impl State {
    /// Drops a column, and the table's rows with the last one.
    fn forget(&mut self, tree: TreeId, column: usize) {
        let Some(dropped) = self.columns.remove(&(tree, column)) else { return };
        self.bytes -= dropped.bytes;
        let Some(kept) = self.places.get_mut(&tree) else { return };
        kept.columns -= 1;
        if kept.columns == 0 {
            self.bytes -= ENTRY_BYTES + kept.places.memory_bytes();
            self.places.remove(&tree);
        }
    }
}

#[cfg(test)]
mod tests {
    use melba_types::{Column, Datum, Kind};

    use super::*;

    fn drawn() -> Option<Arc<SampledColumn>> {
        let mut values = Column::with_capacity(Kind::Int8, 0);
        (0..100).for_each(|i| values.push(Datum::Int8(i)));
        Some(Arc::new(SampledColumn { values, nulls: 0, repeated: Vec::new(), in_memory: Vec::new() }))
    }

    #[test]
    fn the_columns_used_least_of_late_are_dropped() {
        let samples = Samples::new(3000);
        let places = Arc::new(SampledPlaces::default());
        for column in 0..3 {
            samples.keep(TreeId(1), column, &places, drawn());
            assert!(samples.kept(TreeId(1), 0, &places).is_some(), "used before every other");
        }
        assert!(samples.kept(TreeId(1), 1, &places).is_none() && samples.kept(TreeId(1), 2, &places).is_some());
        assert!(samples.bytes() <= 3000);
    }

    #[test]
    fn columns_of_other_rows_are_dropped() {
        let samples = Samples::new(usize::MAX);
        let (before, after) = (Arc::new(SampledPlaces::default()), Arc::new(SampledPlaces::default()));
        samples.keep(TreeId(1), 0, &before, drawn());
        samples.keep(TreeId(1), 1, &before, drawn());
        let bytes = samples.bytes();
        samples.keep(TreeId(1), 1, &after, drawn());
        assert!(samples.kept(TreeId(1), 0, &after).is_none() && samples.kept(TreeId(1), 1, &before).is_none());
        assert!(samples.kept(TreeId(1), 1, &after).is_some());
        samples.keep(TreeId(1), 0, &after, drawn());
        assert_eq!(samples.bytes(), bytes);
    }
}
