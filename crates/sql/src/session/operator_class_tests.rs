//! What needs an order that only a function of users has is refused; operators of such classes are functions like others.

use super::tests::Harness;

fn harness() -> Harness {
    let mut h = Harness::new();
    let made = h.query(
        "create type e as enum ('a', 'b', 'c');
         create function e_lt(e, e) returns bool language sql immutable as 'select $1::text > $2::text';
         create function e_eq(e, e) returns bool language sql immutable as 'select $1::text = $2::text';
         create function e_cmp(e, e) returns int language sql immutable as 'select bttextcmp($2::text, $1::text)';
         create operator <% (leftarg = e, rightarg = e, function = e_lt);
         create operator =% (leftarg = e, rightarg = e, function = e_eq, commutator = =%, hashes, merges);
         create operator class e_ops default for type e using btree as operator 1 <%, operator 3 =%, function 1 e_cmp(e, e);
         create table es (v e, n int);
         insert into es values ('a', 1), ('b', 2), ('c', 3), ('a', 4)",
    );
    assert!(made.ends_with("C:INSERT 0 4 Z:I"), "{made}");
    h
}

#[test]
fn orders_by_functions_of_users_are_refused() {
    let mut h = harness();
    h.query("create type er as range (subtype = e)");
    for statement in [
        "select v from es order by v",
        "select distinct v from es",
        "select v from es group by v",
        "select v from es union select v from es",
        "select count(distinct v) from es",
        "select array_agg(v order by v) from es",
        "select row_number() over (partition by v) from es",
        "select array[v] from es order by 1",
        "select es from es order by es",
        "create index on es (v)",
        "create index on es ((array[v]))",
        "create table keyed (v e primary key)",
        "create table parted (v e) partition by range (v)",
        "select r from (select er('c', 'a') r) r",
    ] {
        let answer = h.query(statement);
        assert!(answer.contains("E0A000"), "{statement}: {answer}");
    }
    let answer = h.query("select v from es order by v using <%");
    assert!(answer.starts_with("E0A000"), "{answer}");
}

#[test]
fn operators_of_classes_by_functions_are_called() {
    let mut h = harness();
    assert_eq!(h.lines("select string_agg(n::text, ',' order by n) from es where v <% 'b'"), "3");
    assert_eq!(h.lines("select count(*) from es a join es b on a.v =% b.v"), "6");
    assert_eq!(h.lines("select count(*) from es where v =% any (array['a', 'c']::e[])"), "3");
}

#[test]
fn functions_that_cannot_support_a_class_are_refused() {
    let mut h = Harness::new();
    h.query("create operator family f using btree; create operator family f using hash");
    for function in [
        "1 abs(int4)",
        "1 (int4, int2) hashint4extended(int4, int8)",
        "2 abs(int4)",
        "3 abs(int4)",
        "4 btint4cmp(int4, int4)",
        "4 (int4, int2) btequalimage(oid)",
        "5 (int4, int2) btint4sortsupport(internal)",
        "5 (int4) btint42cmp(int4, int2)",
        "5 btint4sortsupport(internal)",
        "9 btint42cmp(int4, int2)",
    ] {
        let answer = h.query(&format!("alter operator family f using btree add function {function}"));
        assert!(answer.starts_with("E42P17"), "{function}: {answer}");
    }
}

/// Keys of text are not those of char(n), which ignore blanks at the end.
#[test]
fn built_in_functions_of_a_type_with_other_keys_give_no_order() {
    let mut h = Harness::new();
    for ty in ["text", "varchar"] {
        let made = h.query(&format!(
            "create function {ty}_eq({ty}, {ty}) returns bool language internal immutable strict as 'bpchareq';
             create function {ty}_lt({ty}, {ty}) returns bool language internal immutable strict as 'bpcharlt';
             create function {ty}_cmp({ty}, {ty}) returns int language internal immutable strict as 'bpcharcmp';
             create operator =~= (leftarg = {ty}, rightarg = {ty}, function = {ty}_eq, commutator = =~=, hashes, merges);
             create operator <~ (leftarg = {ty}, rightarg = {ty}, function = {ty}_lt);
             create operator class {ty}_padded for type {ty} using btree as operator 1 <~, operator 3 =~=, function 1 {ty}_cmp({ty}, {ty});
             create table of_{ty} (v {ty});
             insert into of_{ty} values ('a'), ('a '), ('b')"
        ));
        assert!(made.ends_with("C:INSERT 0 3 Z:I"), "{made}");
        assert_eq!(h.lines(&format!("select count(*) from of_{ty} a join of_{ty} b on a.v =~= b.v")), "5", "{ty}");
        for refused in [
            format!("create unique index on of_{ty} (v {ty}_padded)"),
            format!("create table parted_{ty} (v {ty}) partition by list (v {ty}_padded)"),
            format!("select v from of_{ty} order by v using <~"),
        ] {
            let answer = h.query(&refused);
            assert!(answer.starts_with("E0A000"), "{refused}: {answer}");
        }
    }
    let answer = h.query(
        "create operator class v_default default for type varchar using btree as operator 1 <~, operator 3 =~=, function 1 varchar_cmp(varchar, varchar);
         select distinct v from of_varchar",
    );
    assert!(answer.contains("E0A000"), "{answer}");
}
