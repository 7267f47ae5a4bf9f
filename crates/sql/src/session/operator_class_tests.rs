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
