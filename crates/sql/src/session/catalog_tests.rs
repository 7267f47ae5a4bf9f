//! The system relations of a database that has objects of every kind: a scan with conditions finds the same rows as a full scan.

use melba_catalog::relations::{self, EqFilter, Request, can_filter, rows_per_value};
use melba_catalog::{Catalog, Relation, Storage};
use melba_types::{Batch, Datum, Oid};

use super::tests::Harness;

/// Objects of every kind that Melba has, in a separate schema and in public.
const OBJECTS: &str = "create schema s; create role r; grant usage on schema s to r;
    create table t (id serial primary key, x text default 'a' check (x <> ''), y int not null unique, z int generated always as (1) stored);
    create index t_x on t (lower(x)) where y > 0; create index t_y on t (y) include (x);
    create table s.child (c int references t, d int references t (y)) inherits (t);
    create table s.parts (k int, v text, primary key (k)) partition by range (k);
    create table s.part1 partition of s.parts for values from (0) to (10);
    create table s.rest partition of s.parts default;
    create view v as select * from t; create materialized view s.mv as select count(*) from v;
    create sequence s.q; create table s.ident (i int generated always as identity);
    create type s.color as enum ('red', 'green'); create type s.pair as (a int, b s.color);
    create domain s.positive as int not null check (value > 0); create table s.typed (p s.positive, q s.pair[], c s.color);
    create function s.f(a int, b text default 'x') returns int language sql as 'select 1';
    create function f() returns int language sql return 2; create procedure s.p() language sql as '';
    create function s.moving(c s.color) returns text language sql return c::text;
    create unlogged table s.unlogged (a int); create temp table temporary (a int primary key);
    comment on table t is 'table'; comment on column t.x is 'column'; comment on schema s is 'schema';
    comment on role r is 'role'; comment on index t_x is 'index';
    alter default privileges in schema s grant select on tables to r; alter role r set work_mem = '1MB';
    grant select (x), update on t to r";

fn scan(catalog: &Catalog, relation: &Relation, live: &dyn relations::LiveInfo, filters: &[EqFilter]) -> Vec<Vec<Datum>> {
    let all: Vec<usize> = (0..relation.columns.len()).collect();
    let request = Request { filters, columns: &all, ..Request::default() };
    let batch: Batch = relations::rows(relation, catalog, live, &request).expect(&relation.name);
    (0..batch.rows).map(|i| batch.row(i)).collect()
}

/// Whether two values are equal as `=` has it: not when one is NULL.
fn same(a: &Datum, b: &Datum) -> bool {
    !a.is_null() && format!("{a:?}") == format!("{b:?}")
}

fn sorted(rows: impl Iterator<Item = Vec<Datum>>) -> Vec<String> {
    let mut lines: Vec<String> = rows.map(|r| format!("{r:?}")).collect();
    lines.sort();
    lines
}

fn check(catalog: &Catalog, relation: &Relation, live: &dyn relations::LiveInfo, all: &[Vec<Datum>], filters: &[EqFilter]) {
    let matching = all.iter().filter(|row| filters.iter().all(|f| same(&row[f.column], &f.value))).cloned();
    let found = scan(catalog, relation, live, filters);
    assert_eq!(sorted(found.into_iter()), sorted(matching), "{} where {filters:?}", relation.name);
}

/// Distinct values of a column, those of users' objects among them, and one that it does not have.
fn values_to_try(all: &[Vec<Datum>], column: usize, count: usize) -> Vec<Datum> {
    let mut values: Vec<Datum> = Vec::new();
    for row in all.iter().rev().chain(all.iter().take(3)) {
        if values.len() < count && !values.iter().any(|v| same(v, &row[column])) {
            values.push(row[column].clone());
        }
    }
    values.extend(values.first().map(|v| match v {
        Datum::Oid(_) => Datum::Oid(4_000_000),
        Datum::Text(_) => Datum::text("there is none of this name"),
        other => other.clone(),
    }));
    values
}

#[test]
fn conditions_on_system_relations_lose_and_add_no_rows() {
    let mut h = Harness::new();
    for statement in OBJECTS.split(';') {
        let answer = h.query(statement);
        assert!(answer.starts_with("C:"), "{statement}: {answer}");
    }
    let (catalog, live) = h.catalog_and_live_info();
    let mut looked_at = 0;
    for relation in catalog.relations().filter(|r| matches!(r.storage, Storage::System(_))) {
        let all = scan(&catalog, relation, &*live, &[]);
        let columns = relation.columns.iter().enumerate().filter(|(_, c)| can_filter(c.kind));
        for (column, _) in columns {
            let count = if rows_per_value(relation, column, &catalog).is_some() { 20 } else { 1 };
            for value in values_to_try(&all, column, count) {
                check(&catalog, relation, &*live, &all, &[EqFilter { column, value }]);
                looked_at += 1;
            }
        }
        // Two conditions at once, each of which could be looked up by.
        let keys: Vec<usize> = (0..relation.columns.len()).filter(|c| rows_per_value(relation, *c, &catalog).is_some()).collect();
        for row in all.iter().rev().take(10) {
            for (at, first) in keys.iter().enumerate() {
                for second in &keys[at + 1..] {
                    let filters = [*first, *second].map(|column| EqFilter { column, value: row[column].clone() });
                    check(&catalog, relation, &*live, &all, &filters);
                }
            }
        }
    }
    assert!(looked_at > 500, "only {looked_at} conditions");
    // The first bug found: a schema's indexes.
    let class = catalog.relation(melba_catalog::classes::PG_CLASS).expect("pg_class");
    let in_public = scan(&catalog, class, &*live, &[EqFilter { column: 2, value: Datum::Oid(2200) }]);
    assert!(in_public.iter().any(|row| same(&row[1], &Datum::text("t_x"))));
    assert!(catalog.relations_in(Oid(2200)).any(|r| &*r.name == "t_pkey"));
}
