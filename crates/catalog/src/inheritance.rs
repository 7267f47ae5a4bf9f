//! Which tables and indexes inherit from which, and which are partitions of which.

use std::collections::HashSet;

use melba_types::Oid;

use crate::depend::Links;
use crate::objects::{PartitionValues, Relation, RelationKind};

/// By parent. A table that much depends on has few children.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inheritance {
    pub children: Links,
    /// The partition whose detach is pending (`detaching`).
    pub detaching: Links,
}

impl Inheritance {
    pub fn add(&mut self, relation: &Relation) {
        let links = if relation.detach_pending { &mut self.detaching } else { &mut self.children };
        relation.parents.iter().for_each(|parent| links.add(*parent, relation.oid));
    }

    pub fn remove(&mut self, relation: &Relation) {
        for parent in &relation.parents {
            self.children.remove(*parent, relation.oid);
            self.detaching.remove(*parent, relation.oid);
        }
    }

    /// A relation and all below it, each before those below it.
    pub fn descendants(&self, relation: Oid) -> Vec<Oid> {
        let mut all = vec![relation];
        let mut known = HashSet::from([relation]);
        let mut at = 0;
        while at < all.len() {
            let parent = all[at];
            all.extend(self.children.of(parent).filter(|child| known.insert(*child)));
            at += 1;
        }
        all
    }
}

impl Relation {
    /// A part of a partitioned table.
    pub fn is_partition(&self) -> bool {
        self.partition_bound.is_some()
    }

    pub fn is_partitioned(&self) -> bool {
        self.kind == RelationKind::PartitionedTable
    }

    /// The partition for the values that no other one has.
    pub fn is_default_partition(&self) -> bool {
        self.partition_bound.as_ref().is_some_and(|b| matches!(b.values, PartitionValues::Default))
    }
}
