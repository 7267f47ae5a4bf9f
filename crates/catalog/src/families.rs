//! Numbers for the set of partitions of a table, so that data computed from their bounds need not be computed anew for each snapshot.
//!
//! Invariant: two snapshots that have one number for a table have the same partitions of it, with the same bounds and the same key.

use melba_types::Oid;

use std::sync::Arc;

use crate::derived::Derived;
use crate::objects::Relation;
use crate::radix::RadixMap;

/// How many states before the present one are known.
const RECENT_MAX: usize = 16;

/// The partitions of a table in a snapshot.
#[derive(Clone, Debug, Default)]
pub struct PartitionFamily {
    number: u64,
    /// The states before, the newest last, and the partition that changed then.
    recent: Vec<(u64, Oid)>,
}

impl PartitionFamily {
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Earlier states, the newest first, each with the partitions that were added, removed or changed since, some more than once.
    pub fn before(&self) -> impl Iterator<Item = (u64, impl Iterator<Item = Oid>)> {
        let since = |at: usize| (self.recent[at].0, self.recent[at..].iter().map(|(_, partition)| *partition));
        (0..self.recent.len()).rev().map(since)
    }
}

/// By partitioned table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Families(RadixMap<PartitionFamily>);

impl Families {
    pub(crate) fn of(&self, table: Oid) -> Option<&PartitionFamily> {
        self.0.get(table.0)
    }

    /// A table has partitions that other snapshots do not show.
    pub(crate) fn distinguish(&mut self, table: Oid, derived: &Derived) {
        if self.0.get(table.0).is_some() {
            self.0.insert(table.0, PartitionFamily { number: derived.number(), recent: Vec::new() });
        }
    }

    /// A relation was added (`before` is none), changed, or removed (`after` is none).
    pub(crate) fn change(&mut self, before: Option<&Relation>, after: Option<&Relation>, derived: &Derived) {
        let Some(relation) = after.or(before) else { return };
        let key = |r: Option<&Relation>| r.and_then(|r| r.partition_key.as_ref()).map(Arc::as_ptr);
        if key(before) != key(after) {
            match after.filter(|r| r.is_partitioned()) {
                Some(_) => self.0.insert(relation.oid.0, PartitionFamily { number: derived.number(), recent: Vec::new() }),
                None => self.0.remove(relation.oid.0),
            }
        }
        let parts = [before, after].map(|r| r.filter(|r| r.partition_bound.is_some()));
        if let [Some(a), Some(b)] = parts
            && is_same_part(a, b)
        {
            return;
        }
        let [old, new] = parts.map(|r| r.map_or(&[][..], |r| &r.parents));
        for parent in new.iter().chain(old.iter().filter(|p| !new.contains(p))) {
            if self.0.get(parent.0).is_some() {
                let family = self.0.entry(parent.0, PartitionFamily::default);
                if family.recent.len() == RECENT_MAX {
                    family.recent.remove(0);
                }
                family.recent.push((family.number, relation.oid));
                family.number = derived.number();
            }
        }
    }
}

fn is_same_part(a: &Relation, b: &Relation) -> bool {
    let bound = |r: &Relation| r.partition_bound.as_ref().map(Arc::as_ptr);
    let state = |r: &Relation| (r.is_partitioned(), r.detach_pending);
    a.parents == b.parents && bound(a) == bound(b) && state(a) == state(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::*;
    use crate::snapshot::{Catalog, ObjectChange};
    use crate::{PartitionKey, PartitionStrategy, PartitionValues, classes};

    const TABLE: Oid = Oid(20000);

    fn put(relation: &Relation) -> ObjectChange {
        ObjectChange::Put(Object::Relation(Arc::new(relation.clone())))
    }

    fn table(c: &Catalog, oid: u32) -> Relation {
        let template = c.relation(classes::PG_CLASS).expect("pg_class");
        Relation { oid: Oid(oid), name: format!("t{oid}").into(), indexes: vec![], ..(**template).clone() }
    }

    fn partition(c: &Catalog, oid: u32, value: i32) -> Relation {
        let values = PartitionValues::List(vec![melba_types::Datum::Int4(value)]);
        let partition_bound = Some(Arc::new(PartitionBound { values, text: "".into() }));
        Relation { parents: vec![TABLE], partition_bound, ..table(c, oid) }
    }

    #[test]
    fn only_partition_changes_make_a_new_family_state() {
        let c = Catalog::default();
        let key = Arc::new(PartitionKey { strategy: PartitionStrategy::List, columns: vec![] });
        let parent = Relation { kind: RelationKind::PartitionedTable, partition_key: Some(key), ..table(&c, TABLE.0) };
        let number = |c: &Catalog| c.family(TABLE).expect("partitioned").number();
        let (first, second) = (partition(&c, 20001, 1), partition(&c, 20002, 2));
        let c = c.with(&[put(&parent)]);
        let one = c.with(&[put(&first)]);
        let both = one.with(&[put(&second)]);
        assert!(number(&one) != number(&c) && number(&both) != number(&one));
        let renamed = Relation { name: "x".into(), ..second.clone() };
        let same = both.with(&[put(&renamed), put(&table(&c, 20003)), put(&parent)]);
        assert_eq!(number(&same), number(&both));
        let before: Vec<(u64, Vec<Oid>)> = same.family(TABLE).expect("it").before().map(|(n, all)| (n, all.collect())).collect();
        assert_eq!(before, [(number(&one), vec![Oid(20002)]), (number(&c), vec![Oid(20001), Oid(20002)])]);
        let gone = ObjectAddress { class: classes::PG_CLASS, object: Oid(20001), sub: 0 };
        assert_ne!(number(&both.with(&[ObjectChange::Remove(gone)])), number(&both));
        let detached = Relation { parents: vec![], partition_bound: None, ..first };
        assert_ne!(number(&both.with(&[put(&detached)])), number(&both));
        // Two states with the same beginning are different.
        assert_ne!(number(&c.with(&[put(&second)])), number(&c.with(&[put(&second)])));
        let gone = ObjectAddress { class: classes::PG_CLASS, object: TABLE, sub: 0 };
        assert!(c.with(&[ObjectChange::Remove(gone)]).family(TABLE).is_none());
    }
}
