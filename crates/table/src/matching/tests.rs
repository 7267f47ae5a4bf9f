//! No row that satisfies the tests is in a partition that is pruned.

use std::sync::Arc;

use melba_catalog::{PartitionColumn, PartitionKey, PartitionValues, RangeDatum, classes};
use melba_fmgr::testing::FixedSession;
use melba_types::{Array, oids};

use super::*;

const VALUES: [Option<i32>; 7] = [None, Some(0), Some(1), Some(2), Some(3), Some(4), Some(5)];

fn map(session: &FixedSession, strategy: PartitionStrategy, columns: usize, partitions: Vec<PartitionValues>) -> PartitionMap {
    let method = if strategy == PartitionStrategy::Hash { classes::HASH } else { classes::BTREE };
    let opclass = session.catalog.default_operator_class(method, oids::INT4).expect("int4_ops").oid;
    let column = PartitionColumn {
        column: 1,
        expression: None,
        ty: oids::INT4,
        typmod: -1,
        collation: Oid(0),
        natural_collation: Oid(0),
        opclass,
    };
    let key = Arc::new(PartitionKey { strategy, columns: vec![column; columns] });
    let partitions: Vec<_> = partitions.into_iter().enumerate().map(|(i, p)| (Oid(i as u32 + 1), p)).collect();
    PartitionMap::of(&session.catalog, &key, &partitions).expect("a map")
}

fn datum(v: Option<i32>) -> Datum {
    v.map_or(Datum::Null, Datum::Int4)
}

fn bound(values: &[Option<i32>]) -> Vec<RangeDatum> {
    values.iter().map(|v| v.map_or(RangeDatum::MaxValue, |v| RangeDatum::Value(Datum::Int4(v)))).collect()
}

fn maps(session: &FixedSession) -> Vec<PartitionMap> {
    let range = |from: &[Option<i32>], to: &[Option<i32>]| PartitionValues::Range(bound(from), bound(to));
    let list = |values: &[Option<i32>]| PartitionValues::List(values.iter().copied().map(datum).collect());
    let hash = |remainder| PartitionValues::Hash { modulus: 3, remainder };
    use PartitionStrategy::*;
    vec![
        map(session, List, 1, vec![list(&[Some(1), Some(4)]), list(&[None, Some(2)]), list(&[Some(3)])]),
        map(session, List, 1, vec![list(&[Some(1)]), list(&[Some(2), Some(5)]), PartitionValues::Default]),
        map(session, Range, 1, vec![range(&[Some(0)], &[Some(2)]), range(&[Some(3)], &[None]), PartitionValues::Default]),
        map(session, Range, 1, vec![range(&[Some(2)], &[Some(4)]), range(&[Some(0)], &[Some(2)])]),
        map(
            session,
            Range,
            2,
            vec![
                range(&[Some(0), Some(2)], &[Some(1), Some(1)]),
                range(&[Some(1), Some(1)], &[Some(1), None]),
                range(&[Some(3), Some(0)], &[Some(5), Some(0)]),
                PartitionValues::Default,
            ],
        ),
        map(session, Hash, 2, vec![hash(0), hash(1), hash(2)]),
    ]
}

/// Whether a value passes a test with another.
type Says = fn(i32, i32) -> bool;

/// Tests of one column, and the answer for a value.
fn kinds() -> Vec<(TestKind, Says)> {
    vec![
        (TestKind::Equal, |a, b| a == b),
        (TestKind::Less { inclusive: false }, |a, b| a < b),
        (TestKind::Less { inclusive: true }, |a, b| a <= b),
        (TestKind::Greater { inclusive: false }, |a, b| a > b),
        (TestKind::Greater { inclusive: true }, |a, b| a >= b),
        (TestKind::AnyOf, |a, b| a == b || a == b + 1),
        (TestKind::IsNull, |_, _| false),
        (TestKind::NotNull, |_, _| true),
    ]
}

fn test(column: usize, kind: TestKind, v: i32) -> Tests<Datum> {
    let value = match kind {
        TestKind::AnyOf => {
            let elements = vec![Datum::Int4(v), Datum::Int4(v + 1)];
            Some(Datum::Array(Arc::new(Array { element_type: oids::INT4, dims: vec![], elements })))
        }
        TestKind::IsNull | TestKind::NotNull => None,
        _ => Some(Datum::Int4(v)),
    };
    Tests::One(KeyTest { column, kind, value })
}

fn satisfies(row: &[Option<i32>], column: usize, kind: TestKind, says: Says, v: i32) -> bool {
    match row[column] {
        None => kind == TestKind::IsNull,
        Some(own) => says(own, v),
    }
}

#[test]
fn nothing_that_matches_is_left_out() {
    let session = melba_builtins::test_session();
    for map in maps(&session) {
        let width = map.key().columns.len();
        for (first, says_first) in kinds() {
            for (second, says_second) in kinds() {
                for (v, w) in (0..5).flat_map(|v| (0..5).map(move |w| (v, w))) {
                    let other = width - 1;
                    let parts = || vec![test(0, first, v), test(other, second, w)];
                    let all = matching(&session, &map, &Tests::All(parts())).expect("partitions");
                    let any = matching(&session, &map, &Tests::Any(parts())).expect("partitions");
                    for row in VALUES.iter().flat_map(|a| VALUES.iter().map(|b| [*a, *b])) {
                        let row = &row[..width];
                        let values: Vec<Datum> = row.iter().copied().map(datum).collect();
                        let Some(partition) = map.find(&session, &values).expect("hash") else { continue };
                        let a = satisfies(row, 0, first, says_first, v);
                        let b = satisfies(row, other, second, says_second, w);
                        let told = format!("{row:?} for {first:?} {v} and {second:?} {w} in {map:?}");
                        assert!(!(a && b) || all.contains(&partition), "all: {told}");
                        assert!(!(a || b) || any.contains(&partition), "any: {told}");
                    }
                }
            }
        }
    }
}

#[test]
fn equality_leaves_one() {
    let session = melba_builtins::test_session();
    for map in maps(&session).iter().filter(|m| m.key().columns.len() == 1) {
        let found = matching(&session, map, &test(0, TestKind::Equal, 1)).expect("partitions");
        assert_eq!(found.len(), 1, "{map:?}");
    }
}
