//! The index lists of tables. The catalog maintains them, whichever change adds a table or an index: two transactions may create
//! indexes on one table at the same time without knowing of each other's.
//!
//! Invariant: a user's existing table lists exactly its existing indexes, in OID order. The list of a stored table does not
//! matter, if the table is loaded before its indexes.

use std::sync::Arc;

use crate::objects::Relation;
use crate::snapshot::Catalog;

/// A relation as it is stored: a table with the indexes it has.
pub(crate) fn with_its_indexes(catalog: &Catalog, relation: &Arc<Relation>) -> Arc<Relation> {
    let before = catalog.relation(relation.oid).map_or(&[][..], |r| &r.indexes);
    let mut all: Vec<_> = relation.indexes.iter().chain(before).copied().filter(|i| catalog.relation(*i).is_some()).collect();
    all.sort_unstable();
    all.dedup();
    match all == relation.indexes {
        true => relation.clone(),
        false => Arc::new(Relation { indexes: all, ..(**relation).clone() }),
    }
}

/// The table of an index that has come, as it then is; `None` when its list need not change.
pub(crate) fn table_with(catalog: &Catalog, index: &Relation) -> Option<Arc<Relation>> {
    let table = catalog.relation(index.index.as_ref()?.table)?;
    let place = table.indexes.binary_search(&index.oid).err()?;
    let mut table = (**table).clone();
    table.indexes.insert(place, index.oid);
    Some(Arc::new(table))
}

/// The table of a dropped index, as it then is.
pub(crate) fn table_without(catalog: &Catalog, index: &Relation) -> Option<Arc<Relation>> {
    let table = catalog.relation(index.index.as_ref()?.table)?;
    let place = table.indexes.binary_search(&index.oid).ok()?;
    let mut table = (**table).clone();
    table.indexes.remove(place);
    Some(Arc::new(table))
}

#[cfg(test)]
mod tests {
    use melba_types::Oid;

    use super::*;
    use crate::objects::{Object, ObjectAddress, Storage};
    use crate::snapshot::ObjectChange;
    use crate::{ClusterCatalog, classes};

    const TABLE: Oid = Oid(20000);

    /// A table and indexes of it, like built-in ones.
    fn table_and_index(c: &Catalog, index: u32) -> (Relation, Relation) {
        let table = c.relation(classes::PG_CLASS).expect("pg_class");
        let template = c.relations().find(|r| r.index.is_some()).expect("an index");
        let info = template.index.as_ref().expect("an index").as_ref().clone();
        let table = Relation {
            oid: TABLE,
            name: "t".into(),
            indexes: vec![],
            constraints: vec![],
            storage: Storage::None,
            ..(**table).clone()
        };
        let info = crate::IndexInfo { table: TABLE, constraint: Oid::INVALID, ..info };
        let name = format!("i{index}").into();
        (table, Relation { oid: Oid(index), name, index: Some(Arc::new(info)), ..(**template).clone() })
    }

    fn put(relation: &Relation) -> ObjectChange {
        ObjectChange::Put(Object::Relation(Arc::new(relation.clone())))
    }

    #[test]
    fn indexes_made_side_by_side_are_all_listed() {
        let c = Catalog::default();
        let (table, first) = table_and_index(&c, 20002);
        let (_, second) = table_and_index(&c, 20001);
        let c = c.with(&[put(&table)]);
        // Each index was created with a table that lacked the other.
        let stale = Relation { indexes: vec![Oid(20002)], ..table.clone() };
        let c = c.with(&[put(&first), put(&stale)]).with(&[put(&second)]);
        let listed = |c: &Catalog| c.relation(TABLE).expect("the table").indexes.clone();
        assert_eq!(listed(&c), [Oid(20001), Oid(20002)]);
        let c = c.with(&[put(&table)]);
        assert_eq!(listed(&c), [Oid(20001), Oid(20002)]);
        let gone = ObjectAddress { class: classes::PG_CLASS, object: Oid(20002), sub: 0 };
        assert_eq!(listed(&c.with(&[ObjectChange::Remove(gone)])), [Oid(20001)]);
    }

    #[test]
    fn lists_are_whole_after_loading_in_any_order() {
        let (table, index) = table_and_index(&Catalog::default(), 20001);
        for changes in [[put(&index), put(&table)], [put(&table), put(&index)]] {
            let changes = changes.into_iter().map(|c| (classes::POSTGRES_DATABASE, c));
            let cluster = ClusterCatalog::load(changes);
            let catalog = cluster.database(classes::POSTGRES_DATABASE).expect("the database");
            assert_eq!(catalog.relation(TABLE).expect("the table").indexes, [Oid(20001)]);
        }
    }
}
