//! Samples of rows that are in the row store, in segments, and in both.

use std::sync::Arc;

use melba_types::row::RowLayout;
use melba_types::{Datum, Kind, RowId, TreeId};

use super::basic::memory_engine;
use crate::*;

const KINDS: [Kind; 2] = [Kind::Int4, Kind::Text];

struct World {
    engine: Arc<Engine>,
    tree: TreeId,
}

impl World {
    fn new() -> World {
        let engine = memory_engine();
        let t = engine.begin(Isolation::ReadCommitted).expect("begins");
        let tree = t.create_table_tree(&KINDS, Persistence::Logged).expect("creates");
        t.commit(Durability::Sync).expect("commits");
        World { engine, tree }
    }

    fn change<T>(&self, what: impl FnOnce(&Arc<Transaction>) -> T) -> T {
        let t = self.engine.begin(Isolation::ReadCommitted).expect("begins");
        let result = what(&t);
        t.commit(Durability::Sync).expect("commits");
        result
    }

    fn insert(&self, numbers: std::ops::Range<i32>) -> Vec<RowId> {
        self.change(|t| numbers.map(|n| t.insert(self.tree, &row(n)).expect("inserts")).collect())
    }

    fn update(&self, id: RowId, number: i32) {
        self.change(|t| t.update(self.tree, id, &row(number)).expect("updates"));
    }

    fn sample(&self, age: SampleAge) -> TableSample {
        self.engine.tree_sample(self.tree, &[0, 1], age).expect("has rows")
    }

    fn numbers(&self, age: SampleAge) -> Vec<i32> {
        let sample = self.sample(age);
        let columns: Vec<&SampledColumn> = sample.columns.iter().map(|c| &**c.as_ref().expect("is sampled")).collect();
        let numbers: Vec<i32> = (0..sample.rows).map(|i| columns[0].values.get(i).as_i32()).collect();
        for (i, number) in numbers.iter().enumerate() {
            assert_eq!(columns[1].values.get(i).as_str(), format!("row {number}"), "all columns have the same rows");
        }
        numbers
    }
}

fn row(number: i32) -> Vec<u8> {
    RowLayout::new(KINDS.to_vec()).encode_row(&[Datum::Int4(number), Datum::text(format!("row {number}"))])
}

#[test]
fn a_small_table_is_sampled_as_it_is_wherever_its_rows_are() {
    let world = World::new();
    assert!(world.engine.tree_sample(world.tree, &[0], SampleAge::Current).is_none(), "no rows");
    let ids = world.insert(0..20);
    assert_eq!(world.numbers(SampleAge::Current), (0..20).collect::<Vec<_>>());
    for flush in [false, true, false, true] {
        world.update(ids[3], 100);
        world.change(|t| t.delete(world.tree, ids[7]).expect("deletes"));
        let mut numbers = world.numbers(SampleAge::Current);
        numbers.sort_unstable();
        let expected: Vec<i32> = (0..20).filter(|n| ![3, 7].contains(n)).chain([100]).collect();
        assert_eq!(numbers, expected);
        assert!(world.sample(SampleAge::Current).is_complete);
        // Changed again, so that versions lie above each other.
        world.update(ids[3], 3);
        world.change(|t| t.update(world.tree, ids[7], &row(7)).expect("updates"));
        assert_eq!(world.numbers(SampleAge::Current).len(), 20);
        if flush {
            world.engine.checkpoint().expect("flushes");
            assert_eq!(world.numbers(SampleAge::Current).len(), 20);
        }
    }
}

#[test]
fn rows_of_the_row_store_are_drawn_from_everywhere() {
    let world = World::new();
    world.insert(0..20_000);
    let numbers = world.numbers(SampleAge::ForPlans);
    assert_eq!(numbers.len(), 1024);
    let below = numbers.iter().filter(|n| **n < 5_000).count();
    assert!((200..312).contains(&below), "{below} in the first quarter");
    let estimate = world.engine.tree_column_estimate(world.tree, 0).expect("is known");
    assert!((19_000.0..21_000.0).contains(&estimate.rows) && (19_000.0..21_000.0).contains(&estimate.distinct));
    let share = estimate.share_below(Point::Number(5_000.0)).expect("has bounds");
    assert!((share - 0.25).abs() < 0.02, "{share}");
}

#[test]
fn a_sample_for_plans_stays_until_many_rows_have_changed() {
    let world = World::new();
    let ids = world.insert(0..2_000);
    let before = world.numbers(SampleAge::ForPlans);
    let changed = ids[usize::try_from(before[0]).expect("a place")];
    world.update(changed, 5_000);
    assert_eq!(world.numbers(SampleAge::ForPlans), before);
    assert_eq!(world.numbers(SampleAge::Current)[0], 5_000);
    world.insert(2_000..3_000);
    assert!(world.numbers(SampleAge::ForPlans).iter().any(|n| (2_000..3_000).contains(n)));
}

#[test]
fn rows_of_the_row_store_hide_those_in_segments() {
    let world = World::new();
    let ids = world.insert(0..5_000);
    world.engine.checkpoint().expect("flushes");
    world.change(|t| ids.iter().for_each(|id| t.update(world.tree, *id, &row(9)).expect("updates")));
    assert!(world.numbers(SampleAge::Current).iter().all(|n| *n == 9));
}

#[test]
fn rows_older_than_a_column_leave_it_out() {
    let world = World::new();
    world.insert(0..10);
    world.change(|t| t.extend_table_tree(world.tree, &[Kind::Int8]).expect("extends"));
    let sample = world.engine.tree_sample(world.tree, &[0, 2], SampleAge::Current).expect("has rows");
    assert!(sample.columns[0].is_some() && sample.columns[1].is_none());
}
