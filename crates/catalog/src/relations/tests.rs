//! Every system relation returns rows of its columns, and finds them by its lookup columns.

use melba_types::oids;

use super::*;
use crate::ObjectChange;
use crate::classes::PG_CATALOG;

fn scan(catalog: &Catalog, name: &str, filters: &[EqFilter]) -> Batch {
    let relation = catalog.relation_by_name(PG_CATALOG, name).expect(name);
    let request = Request { filters, columns: &places(relation), ..Request::default() };
    rows(relation, catalog, &NoLiveInfo, &request).expect(name)
}

fn places(relation: &Relation) -> Vec<usize> {
    (0..relation.columns.len()).collect()
}

fn equals(column: usize, value: Datum) -> Vec<EqFilter> {
    vec![EqFilter { column, value }]
}

#[test]
fn every_system_relation_has_rows_of_its_columns() {
    let catalog = Catalog::default();
    assert!(GENERATORS.is_sorted_by_key(|g| g.0));
    assert!(LOOKUPS.is_sorted_by_key(|g| g.0));
    for relation in catalog.relations().filter(|r| matches!(r.storage, Storage::System(_))) {
        let request = Request { columns: &places(relation), ..Request::default() };
        let batch = rows(relation, &catalog, &NoLiveInfo, &request).expect(&relation.name);
        assert_eq!(batch.columns.len(), relation.columns.len(), "{}", relation.name);
        for (vector, column) in batch.columns.iter().zip(relation.columns.iter()) {
            for row in 0..batch.rows {
                let value = vector.get(row);
                assert!(!value.is_null() || !column.not_null, "{}.{}", relation.name, column.name);
                assert!(value.kind().is_none_or(|k| k == column.kind), "{}.{}", relation.name, column.name);
            }
        }
    }
}

/// A scan with a filter returns the matching rows of a scan without it.
#[test]
fn filters_find_the_rows_of_a_full_scan() {
    let catalog = Catalog::default();
    for (name, column, value) in [
        ("pg_class", 0, Datum::Oid(1259)),
        ("pg_class", 1, Datum::text("pg_proc")),
        ("pg_class", 2, Datum::Oid(11)),
        ("pg_attribute", 0, Datum::Oid(1259)),
        ("pg_type", 1, Datum::text("int4")),
        ("pg_type", 0, Datum::Oid(23)),
        ("pg_proc", 1, Datum::text("substring")),
        ("pg_constraint", 8, Datum::Oid(1259)),
        ("pg_constraint", 9, Datum::Oid(13342)),
        ("pg_constraint", 10, Datum::Oid(2690)),
        ("pg_description", 0, Datum::Oid(2200)),
        ("pg_index", 1, Datum::Oid(1259)),
        ("pg_init_privs", 0, Datum::Oid(1260)),
        ("pg_opclass", 5, Datum::Oid(1976)),
        ("pg_namespace", 1, Datum::text("public")),
        ("pg_aggregate", 0, Datum::Oid(2100)),
    ] {
        let all = scan(&catalog, name, &[]);
        let matching: Vec<u32> =
            (0..all.rows as u32).filter(|row| equal(&all.columns[column].get(*row as usize), &value)).collect();
        let found = scan(&catalog, name, &equals(column, value));
        assert!(found.rows > 0, "{name} by column {column}");
        let text = |batch: &Batch| (0..batch.rows).map(|row| format!("{:?}", batch.row(row))).collect::<Vec<_>>();
        assert_eq!(text(&found), text(&all.take(&matching)), "{name} by column {column}");
    }
}

/// Columns are returned in the requested order, and those with a filter need not be among them.
#[test]
fn a_scan_gives_the_columns_that_are_asked_for() {
    let catalog = Catalog::default();
    for name in ["pg_class", "pg_opclass"] {
        let relation = catalog.relation_by_name(PG_CATALOG, name).expect(name);
        let whole = scan(&catalog, name, &[]);
        let filters = equals(0, whole.columns[0].get(7));
        let request = Request { filters: &filters, columns: &[2, 1], ..Request::default() };
        let found = rows(relation, &catalog, &NoLiveInfo, &request).expect(name);
        let shown = |batch: &Batch, row: usize, columns: [usize; 2]| columns.map(|c| format!("{:?}", batch.columns[c].get(row)));
        assert_eq!((found.rows, found.columns.len()), (1, 2), "{name}");
        assert_eq!(shown(&found, 0, [0, 1]), shown(&whole, 7, [2, 1]), "{name}");
        assert_eq!(rows(relation, &catalog, &NoLiveInfo, &Request::default()).expect(name).rows, whole.rows, "{name}");
    }
}

/// Rows are given by their places in the scan without that choice, and by the values of a column.
#[test]
fn a_scan_gives_the_rows_that_are_asked_for() {
    let catalog = Catalog::default();
    let shown = |batch: &Batch| (0..batch.rows).map(|row| format!("{:?}", batch.row(row))).collect::<Vec<_>>();
    for name in ["pg_attribute", "pg_opclass"] {
        let relation = catalog.relation_by_name(PG_CATALOG, name).expect(name);
        let whole = scan(&catalog, name, &[]);
        let mut kept = Bitmap::filled(whole.rows, false);
        [1, 5, whole.rows - 1].into_iter().for_each(|row| kept.set(row, true));
        let request = Request { rows: Some(&kept), columns: &places(relation), ..Request::default() };
        let found = rows(relation, &catalog, &NoLiveInfo, &request).expect(name);
        assert_eq!(shown(&found), shown(&whole.take(&[1, 5, whole.rows as u32 - 1])), "{name}");
    }
    let relation = catalog.relation_by_name(PG_CATALOG, "pg_attribute").expect("pg_attribute");
    let of = |oid| shown(&scan(&catalog, "pg_attribute", &equals(0, Datum::Oid(oid))));
    let values = [1259, 1255, 1].map(Datum::Oid);
    let request = Request { any_of: Some((0, &values)), columns: &places(relation), ..Request::default() };
    let found = rows(relation, &catalog, &NoLiveInfo, &request).expect("rows");
    assert_eq!(shown(&found), [of(1259), of(1255)].concat());
}

#[test]
fn system_rows_equal_those_of_postgresql() {
    let catalog = Catalog::default();
    let class = scan(&catalog, "pg_class", &equals(0, Datum::Oid(1259))).row(0);
    assert_eq!(class[1].as_str(), "pg_class");
    assert_eq!(class[18].as_i16(), 34);
    let int4 = scan(&catalog, "pg_type", &equals(0, Datum::Oid(23))).row(0);
    assert_eq!(int4[15].as_oid(), 42);
    let public = scan(&catalog, "pg_namespace", &equals(1, Datum::text("public"))).row(0);
    let acl = public[3].as_array();
    assert_eq!((acl.element_type, acl.elements[1].as_str()), (oids::ACLITEM, "=U/pg_database_owner"));
    // psql 15's queries to PostgreSQL 15 and later.
    let database = catalog.relation(crate::classes::PG_DATABASE).expect("pg_database");
    assert_eq!(database.columns.last().map(|c| &*c.name), Some("daticulocale"));
    let columns = scan(&catalog, "pg_attribute", &equals(0, Datum::Oid(1259)));
    assert_eq!(columns.rows, 34 + 6);
}

/// A table of the user's, in public.
fn table(number: u32) -> ObjectChange {
    let mut relation = Relation::clone(Catalog::default().relation_by_name(PG_CATALOG, "pg_depend").expect("pg_depend"));
    relation.oid = Oid(20_000 + number);
    relation.name = format!("t{number}").into();
    relation.namespace = crate::classes::PUBLIC;
    ObjectChange::Put(Object::Relation(relation.into()))
}

/// Columns kept for one snapshot are never returned for another.
#[test]
fn cached_columns_belong_to_their_snapshot() {
    let mut catalog = Catalog::default();
    for tables in 0..20 {
        for _ in 0..2 {
            let all = scan(&catalog, "pg_class", &[]);
            assert_eq!(all.rows, catalog.relation_count());
            let of_public = scan(&catalog, "pg_class", &equals(2, Datum::Oid(crate::classes::PUBLIC.0)));
            assert_eq!(of_public.rows, tables as usize);
        }
        catalog = catalog.with(&[table(tables)]);
    }
    assert!(catalog.derived().bytes() > 0);
    let before = catalog.derived().bytes();
    scan(&catalog, "pg_class", &[]);
    let with_one_more = catalog.derived().bytes();
    assert!(before < with_one_more);
    scan(&catalog.clone(), "pg_class", &[]);
    assert_eq!(catalog.derived().bytes(), with_one_more);
}

/// Kept columns equal those computed for a single request, with filters and chosen rows too.
#[test]
fn cached_columns_hold_the_computed_values() {
    let catalog = Catalog::default();
    for (name, generator) in GENERATORS {
        let relation = catalog.relation_by_name(PG_CATALOG, name).expect(name);
        let places = places(relation);
        let whole = scan(&catalog, name, &[]);
        let values: Vec<EqFilter> = (0..places.len())
            .filter(|column| can_filter(relation.columns[*column].kind) && whole.rows > 0)
            .map(|column| EqFilter { column, value: whole.columns[column].get(whole.rows / 2) })
            .filter(|filter| !filter.value.is_null())
            .collect();
        for filters in values.iter().map(std::slice::from_ref).chain([&[][..]]) {
            let mut every_third = Bitmap::filled(whole.rows, false);
            (0..whole.rows).step_by(3).for_each(|row| every_third.set(row, true));
            for chosen in [None, Some(&every_third)] {
                let request = Request { filters, any_of: None, rows: chosen, columns: &places };
                let mut computed = RelationRows::new(relation, &request);
                let source = GeneratorInput { catalog: &catalog, live: &NoLiveInfo, filters };
                generator(&source, &mut computed);
                let given = rows(relation, &catalog, &NoLiveInfo, &request).expect(name);
                let computed = Batch::new(computed.columns, computed.rows);
                assert_eq!(given.rows, computed.rows, "{name} {filters:?}");
                for row in 0..given.rows {
                    assert_eq!(format!("{:?}", given.row(row)), format!("{:?}", computed.row(row)), "{name} {filters:?}");
                }
            }
        }
    }
}
