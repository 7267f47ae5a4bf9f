//! Partitions between the two transactions of DETACH PARTITION CONCURRENTLY.
//!
//! The first transaction marks a partition (`Relation::detach_pending`). From then on it is no child of its parent any more, so that
//! neither queries nor definitions reach it through the parent. It keeps its parent and its bound until the detach is complete.

use melba_types::Oid;

use crate::snapshot::Catalog;

/// A table's partition whose detach is pending.
pub fn detaching_partition(catalog: &Catalog, table: Oid) -> Option<Oid> {
    catalog.inheritance.detaching.of(table).next()
}

/// All partitions whose detach is pending.
pub fn detaching_partitions(catalog: &Catalog) -> impl Iterator<Item = Oid> {
    catalog.inheritance.detaching.all()
}

/// The same snapshot with partitions as children of their tables although their detach is pending.
pub fn with_attached(catalog: &Catalog, partitions: &[Oid]) -> Catalog {
    let mut next = catalog.with(&[]);
    for partition in partitions.iter().filter_map(|partition| catalog.relation(*partition)) {
        for parent in &partition.parents {
            next.inheritance.children.add(*parent, partition.oid);
            next.families.distinguish(*parent, &next.derived);
        }
    }
    next
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::classes;
    use crate::objects::{Object, PartitionBound, PartitionValues, Relation};
    use crate::snapshot::ObjectChange;

    const PARENT: Oid = Oid(20000);

    fn with(catalog: &Catalog, oid: u32, detach_pending: bool) -> Catalog {
        let bound = PartitionBound { values: PartitionValues::List(vec![]), text: "".into() };
        let relation = Relation {
            parents: vec![PARENT],
            partition_bound: Some(Arc::new(bound)),
            detach_pending,
            ..Relation::new(Oid(oid), format!("t{oid}"), classes::PUBLIC, Oid(10))
        };
        catalog.with(&[ObjectChange::Put(Object::Relation(Arc::new(relation)))])
    }

    #[test]
    fn a_partition_whose_detach_is_pending_is_no_child() {
        let both = with(&with(&Catalog::default(), 20001, false), 20002, false);
        assert_eq!((both.children(PARENT), detaching_partition(&both, PARENT)), (vec![Oid(20001), Oid(20002)], None));
        let one = with(&both, 20002, true);
        assert_eq!(one.descendants(PARENT), [PARENT, Oid(20001)]);
        assert_eq!(detaching_partitions(&one).collect::<Vec<_>>(), [Oid(20002)]);
        let before = with_attached(&one, &[Oid(20002)]);
        assert_eq!((before.child_count(PARENT), detaching_partition(&before, PARENT)), (2, Some(Oid(20002))));
        // A change of the partition in between does not attach it.
        assert_eq!(with(&before, 20002, true).children(PARENT), [Oid(20001)]);
        assert_eq!(detaching_partition(&with(&one, 20002, false), PARENT), None);
    }
}
