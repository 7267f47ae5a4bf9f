//! Bounds that are added and removed.

use melba_catalog::{PartitionColumn, classes};
use melba_fmgr::testing::FixedSession;
use melba_types::oids;

use super::*;

fn key(session: &FixedSession, strategy: PartitionStrategy) -> Arc<PartitionKey> {
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
    Arc::new(PartitionKey { strategy, columns: vec![column] })
}

fn range(from: i32, to: i32) -> PartitionValues {
    let bound = |v| vec![RangeDatum::Value(Datum::Int4(v))];
    PartitionValues::Range(bound(from), bound(to))
}

fn bound(values: &PartitionValues) -> Arc<PartitionBound> {
    Arc::new(PartitionBound { values: values.clone(), text: "".into() })
}

#[test]
fn a_map_that_partitions_left_is_that_of_the_others() {
    let session = FixedSession::default();
    let list = |values: &[i32]| PartitionValues::List(values.iter().map(|v| Datum::Int4(*v)).collect());
    let hash = |modulus, remainder| PartitionValues::Hash { modulus, remainder };
    let default = PartitionValues::Default;
    for (strategy, all) in [
        (PartitionStrategy::Range, vec![range(0, 5), range(5, 9), range(20, 30), default.clone()]),
        (PartitionStrategy::List, vec![list(&[1, 2]), list(&[3]), list(&[4, 7, 9]), default]),
        (PartitionStrategy::Hash, vec![hash(4, 0), hash(4, 1), hash(8, 2), hash(8, 6)]),
    ] {
        let key = key(&session, strategy);
        let numbered: Vec<(Oid, PartitionValues)> = (1..).map(Oid).zip(all).collect();
        let whole = PartitionMap::of(&session.catalog, &key, &numbered).expect("a map");
        for leaves in &numbered {
            let others: Vec<_> = numbered.iter().filter(|p| p.0 != leaves.0).cloned().collect();
            let of_others = PartitionMap::of(&session.catalog, &key, &others).expect("a map");
            let mut map = whole.clone();
            map.remove(leaves.0);
            map.remove(leaves.0);
            assert_eq!(map.in_order(), of_others.in_order());
            assert_eq!(
                (map.default, &map.moduli, map.memory_bytes),
                (of_others.default, &of_others.moduli, of_others.memory_bytes)
            );
            map.add(leaves.0, &bound(&leaves.1));
            assert_eq!(map.in_order(), whole.in_order());
            for value in 0..40 {
                let find = |map: &PartitionMap| map.find(&session, &[Datum::Int4(value)]).expect("a hash");
                assert_eq!(find(&map), find(&whole));
            }
        }
        assert_eq!(whole.in_order().len(), numbered.len());
    }
}

#[test]
fn ranges_that_overlap_are_found() {
    let session = FixedSession::default();
    let key = key(&session, PartitionStrategy::Range);
    let ranges = [range(0, 5), range(5, 9), range(20, 30)];
    let numbered: Vec<(Oid, PartitionValues)> = (1..).map(Oid).zip(ranges).collect();
    let map = PartitionMap::of(&session.catalog, &key, &numbered).expect("a map");
    for from in -2..33 {
        for to in from + 1..33 {
            let (low, high) = (map.prefix_key(&[Datum::Int4(from)]), map.prefix_key(&[Datum::Int4(to)]));
            let found: Vec<Oid> = map.ranges_between(&low, &high).map(|r| r.partition).collect();
            let expected = [(1, 0, 5), (2, 5, 9), (3, 20, 30)].into_iter().filter(|(_, a, b)| from < *b && *a < to);
            assert_eq!(found, expected.map(|(oid, ..)| Oid(oid)).collect::<Vec<_>>(), "{from} {to}");
        }
    }
}

#[test]
fn hash_partitions_that_overlap_are_found() {
    let session = FixedSession::default();
    let key = key(&session, PartitionStrategy::Hash);
    let hashes = [(4, 1), (8, 3), (8, 6), (32, 0)];
    let of = |(modulus, remainder)| PartitionValues::Hash { modulus, remainder };
    let numbered: Vec<(Oid, PartitionValues)> = (1..).map(Oid).zip(hashes.map(of)).collect();
    let map = PartitionMap::of(&session.catalog, &key, &numbered).expect("a map");
    for modulus in [1, 2, 4, 8, 16, 32, 64] {
        for remainder in 0..modulus {
            let overlaps = |(m, r): &(i32, i32)| r % modulus.min(*m) == remainder % modulus.min(*m);
            let found = map.overlapping_hash(modulus, remainder);
            assert_eq!(found.is_some(), hashes.iter().any(overlaps), "{modulus} {remainder}");
            assert!(found.is_none_or(|oid| overlaps(&hashes[oid.0 as usize - 1])), "{modulus} {remainder}");
        }
    }
    let neighbours = |m, r| {
        let (before, after) = map.hash_neighbours(m, r);
        (before.map(|h| h.partition.0), after.map(|h| h.partition.0))
    };
    assert_eq!(
        [neighbours(2, 0), neighbours(8, 3), neighbours(8, 5), neighbours(64, 0)],
        [(None, Some(1)), (Some(2), Some(3)), (Some(2), Some(3)), (Some(4), None)]
    );
}
