//! Values are ordered and grouped by functions of users; what needs keys in such an order is refused.

use melba_engine::EngineOptions;

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
fn keys_that_only_functions_order_are_refused() {
    let mut h = harness();
    h.query("create type er as range (subtype = e)");
    for statement in [
        "create unique index on es (v)",
        "create unique index on es ((array[v]))",
        "create table keyed (v e primary key)",
        "create table excluded (v e, exclude using btree (v with =%))",
        "create table parted (v e) partition by range (v)",
        "select r from (select er('c', 'a') r) r",
        "select array_sort(array['a', 'b']::e[])",
        "insert into es values ('a', 1) on conflict (v) do nothing",
    ] {
        let answer = h.query(statement);
        assert!(answer.contains("E0A000") || answer.contains("E42P10"), "{statement}: {answer}");
    }
}

#[test]
fn functions_of_users_order_values() {
    let mut h = harness();
    for (query, expected) in [
        ("select string_agg(v::text || n, ' ' order by v, n) from es", "c3 b2 a1 a4"),
        ("select string_agg(n::text, '' order by v using <%, n desc) from es", "3241"),
        ("select string_agg(n::text, '' order by n) from (select n from es order by v limit 2) s", "23"),
        ("select string_agg(v::text, '') from (select distinct v from es order by v) s", "cba"),
        ("select string_agg(v::text || n, ' ') from (select v, count(*) n from es group by v order by v) s", "c1 b1 a2"),
        ("select count(*) from (select v from es union select v from es) s", "3"),
        ("select count(*) from (select v from es except select v from es where n = 1) s", "2"),
        ("select count(distinct v) from es", "3"),
        ("select string_agg(r::text, '' order by n) from (select n, rank() over (order by v) r from es) s", "3213"),
        ("select count(*) from es a join es b on a.v =% b.v", "6"),
        (
            "select string_agg(concat_ws('=', a.n, b.x), ' ' order by a.n, b.x) from es a
             full join (values ('a'::e, 10), ('b', 20), (null, 30)) b (v, x) on a.v =% b.v",
            "1=10 2=20 3 4=10 30",
        ),
        (
            "select string_agg(concat_ws('=', a.n, b.x), ' ' order by a.n, b.x) from es a
             full join (values ('a'::e, 10), ('b', 20)) b (v, x) on row(array[a.v]) = row(array[b.v]) and a.n < 4",
            "1=10 2=20 3 4",
        ),
        ("select string_agg(n::text, '' order by array[v], n) from es", "3214"),
        ("select string_agg(n::text, '' order by row(v, n)) from es", "3214"),
        ("select string_agg(n::text, '' order by es) from es", "3214"),
        ("select count(*) from (select row(v) r from es) a join (select row(v) r from es) b using (r)", "6"),
    ] {
        assert_eq!(h.lines(query), expected, "{query}");
    }
}

/// Rows without a named type have keys until a type's default class orders by a function.
#[test]
fn classes_that_are_no_default_leave_rows_their_keys() {
    let mut h = harness();
    h.query("create table plain (i int, t text); insert into plain select i, 't' || i from generate_series(1, 300) i");
    let joined = "select count(*) from (select row(i, t) r from plain) a join (select row(i, t) r from plain) b on a.r = b.r";
    let plan = format!("explain (costs off) {joined}");
    assert!(!h.lines(&plan).contains("Hash"), "{}", h.lines(&plan));
    assert_eq!(h.lines(joined), "300");
    h.query(
        "drop operator class e_ops using btree;
         create operator class e_ops for type e using btree as operator 1 <%, operator 3 =%, function 1 e_cmp(e, e)",
    );
    assert!(h.lines(&plan).contains("Hash"), "{}", h.lines(&plan));
    assert_eq!(h.lines(joined), "300");
}

/// An index of a class whose order no key has is there for statements and dumps, and finds nothing.
#[test]
fn indexes_in_the_order_of_functions_have_no_entries() {
    let mut h = harness();
    assert_eq!(
        h.query("create index es_v on es (v); create index es_n on es ((array[v]), n)"),
        "C:CREATE INDEX C:CREATE INDEX Z:I"
    );
    assert_eq!(
        h.query("insert into es values ('b', 5); update es set v = 'c' where n = 5; delete from es where n = 1"),
        "C:INSERT 0 1 C:UPDATE 1 C:DELETE 1 Z:I"
    );
    assert_eq!(h.lines("select string_agg(n::text, '' order by v, n) from es"), "3524");
    assert_eq!(h.lines("select count(*) from es where v =% 'c'"), "2");
    let shown = h.lines(
        "select string_agg(pg_get_indexdef(indexrelid), '; ' order by indexrelid) from pg_index where indrelid = 'es'::regclass",
    );
    assert_eq!(
        shown,
        "CREATE INDEX es_v ON public.es USING btree (v); CREATE INDEX es_n ON public.es USING btree ((ARRAY[v]), n)"
    );
    h.query("truncate es; insert into es values ('a', 1); reindex table es; alter table es alter n type text");
    let mut h = Harness::over(h.kill(), EngineOptions::default(), &[]);
    assert_eq!(h.lines("select n from es where v =% 'a' order by v"), "1");
    assert_eq!(h.query("drop index es_v; drop table es"), "C:DROP INDEX C:DROP TABLE Z:I");
}

/// The order is wrong then, but the rows are all there.
#[test]
fn functions_that_contradict_themselves_order_somehow() {
    let mut h = Harness::new();
    let made = h.query(
        "create function odd_cmp(int4, int4) returns int4 language plpgsql as 'begin return ($1 * 7 + $2 * 13) % 5 - 2; end';
         create operator <? (leftarg = int4, rightarg = int4, function = int4lt);
         create operator =? (leftarg = int4, rightarg = int4, function = int4eq);
         create operator class odd for type int4 using btree as operator 1 <?, operator 3 =?, function 1 odd_cmp(int4, int4)",
    );
    assert!(made.ends_with("C:CREATE OPERATOR CLASS Z:I"), "{made}");
    assert_eq!(
        h.lines("select concat_ws(', ', count(*), sum(i)) from (select i from generate_series(1, 3000) i order by i using <?) s"),
        "3000, 4501500"
    );
}

#[test]
fn errors_end_an_order_by_a_function() {
    let mut h = Harness::new();
    h.query(
        "create function slow_cmp(int4, int4) returns int4 language plpgsql as
           'begin if $1 = 0 then raise division_by_zero; end if; perform pg_sleep(0.05); return $1 - $2; end';
         create operator <? (leftarg = int4, rightarg = int4, function = int4lt);
         create operator =? (leftarg = int4, rightarg = int4, function = int4eq);
         create operator class slow for type int4 using btree as operator 1 <?, operator 3 =?, function 1 slow_cmp(int4, int4)",
    );
    assert_eq!(h.query("select i from generate_series(3, 0, -1) i order by i using <?"), "T E22012 Z:I");
    assert_eq!(h.lines("select string_agg(i::text, '' order by i using <?) from generate_series(2, 1, -1) i"), "12");
}

/// The names of types differ, their rows do not.
#[test]
fn an_equality_by_hash_groups() {
    let mut h = Harness::new();
    let made = h.query(
        "create type holder as (w text);
         create type word;
         create function word_in(cstring) returns word language internal immutable strict as 'textin';
         create function word_out(word) returns cstring language internal immutable strict as 'textout';
         create type word (input = word_in, output = word_out, like = text);
         create function word_eq(word, word) returns bool language sql immutable as 'select lower($1::text) = lower($2::text)';
         create function word_hash(word) returns int4 language sql immutable as 'select length($1::text)';
         create cast (word as text) without function;
         create operator = (leftarg = word, rightarg = word, function = word_eq, commutator = =, hashes);
         create operator class word_ops default for type word using hash as operator 1 =, function 1 word_hash(word);
         create table words (w word, n int);
         insert into words values ('Ab', 1), ('aB', 2), ('cd', 3), ('x', 4), ('CD', 5), (null, 6)",
    );
    assert!(made.ends_with("C:INSERT 0 6 Z:I"), "{made}");
    for (query, expected) in [
        ("select count(*) from (select distinct w from words) s", "4"),
        ("select string_agg(n::text, ' ' order by n) from (select min(n) n from words group by w) s", "1 3 4 6"),
        ("select count(*) from (select w from words intersect select 'AB'::word) s", "1"),
        ("select count(*) from words a join words b on a.w = b.w", "9"),
        ("select count(*) from words a full join words b on a.w = b.w", "11"),
    ] {
        assert_eq!(h.lines(query), expected, "{query}");
    }
    assert_eq!(h.query("select w from words order by w"), "E42883 Z:I");
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
        ] {
            let answer = h.query(&refused);
            assert!(answer.starts_with("E0A000"), "{refused}: {answer}");
        }
    }
    h.query("create operator class v_default default for type varchar using btree as operator 1 <~, operator 3 =~=, function 1 varchar_cmp(varchar, varchar)");
    assert_eq!(h.lines("select count(*) from (select distinct v from of_varchar) s"), "2");
    assert_eq!(h.lines("select count(*) from (select distinct v from of_text) s"), "3");
}

const OF_PG_TEMP: &str = "create operator family pg_temp.f using btree;
    create operator class pg_temp.c for type int4 using btree as operator 1 <, function 1 btint4cmp(int4, int4);
    create operator class permanent for type int4 using btree family pg_temp.f as function 1 btint4cmp(int4, int4);
    create operator pg_temp.=%% (leftarg = int4, rightarg = int4, function = int4eq);
    create collation pg_temp.k from \"C\";
    create text search configuration pg_temp.t (copy = simple)";

const LEFT: &str =
    "select (select count(*) from pg_opfamily where oid >= 16384) + (select count(*) from pg_opclass where oid >= 16384)
    + (select count(*) from pg_operator where oid >= 16384) + (select count(*) from pg_collation where oid >= 16384)
    + (select count(*) from pg_ts_config where oid >= 16384)";

#[test]
fn objects_of_the_temporary_schema_go_with_it() {
    let mut h = Harness::new();
    let made = h.query(OF_PG_TEMP);
    assert!(made.ends_with("C:CREATE TEXT SEARCH CONFIGURATION Z:I"), "{made}");
    assert_ne!(h.lines(LEFT), "0");
    for kind in [
        "operator family pg_temp.f using btree",
        "operator pg_temp.=%% (int4, int4)",
        "collation pg_temp.k",
        "text search configuration pg_temp.t",
    ] {
        assert_eq!(h.query(&format!("alter {kind} set schema public")), "E0A000 Z:I", "{kind}");
    }
    assert_eq!(h.query("discard temp"), "C:DISCARD TEMP Z:I");
    assert_eq!(h.lines(LEFT), "0");
    h.query(OF_PG_TEMP);
    h.query("create table t (a int)");
    let mut h = Harness::over(h.kill(), EngineOptions::default(), &[]);
    assert_eq!(h.lines("select count(*) from pg_class where relname = 't'"), "1");
    assert_eq!(h.lines(LEFT), "0");
}

/// What a session answers to a statement that waits for another's transaction, which commits.
fn after(one: &mut Harness, first: &str, second: &'static str) -> String {
    let begun = one.query(&format!("begin; {first}"));
    assert!(begun.ends_with("Z:T"), "{begun}");
    let mut other = one.another();
    let waiting = std::thread::spawn(move || other.query(second));
    while one.lines("select count(*) from pg_locks where not granted") == "0" {
        assert!(!waiting.is_finished(), "it does not wait: {second}");
        std::thread::yield_now();
    }
    one.query("commit");
    waiting.join().expect("an answer")
}

#[test]
fn two_sessions_cannot_give_one_name_to_two_objects() {
    let mut h = Harness::new();
    for statement in [
        "create operator family f using btree",
        "create operator class c for type int4 using btree as operator 1 <",
        "create operator =%% (leftarg = int4, rightarg = int4, function = int4eq)",
        "create collation k from \"C\"",
        "create text search configuration t (copy = simple)",
        "create text search dictionary d (template = simple)",
        "create cast (money as int8) without function",
        "create extension citext",
    ] {
        assert_eq!(after(&mut h, statement, statement), "E23505 Z:I", "{statement}");
    }
}

#[test]
fn members_that_two_sessions_add_are_all_kept() {
    let mut h = Harness::new();
    h.query("create operator family f using btree; create operator family g using btree");
    let second = "alter operator family f using btree add operator 1 < (int4, int8)";
    let answer = after(&mut h, "alter operator family f using btree add operator 1 < (int4, int2)", second);
    assert_eq!(answer, "C:ALTER OPERATOR FAMILY Z:I");
    assert_eq!(h.lines("select count(*) from pg_amop where amopfamily >= 16384"), "2");
    let class = "create operator class c for type int4 using btree family g as operator 1 <";
    assert_eq!(after(&mut h, class, "drop operator family g using btree"), "C:DROP OPERATOR FAMILY Z:I");
    assert_eq!(h.lines("select count(*) from pg_opclass where oid >= 16384"), "0");
    let third = "alter operator family f using btree add operator 1 < (int8, int4)";
    assert_eq!(after(&mut h, "drop operator family f using btree", third), "E42704 Z:I");
}

#[test]
fn an_extension_s_default_class_and_a_user_s_exclude_each_other() {
    let mut h = Harness::new();
    let class = "create operator class mine default for type int4 using gist as operator 3 =";
    h.query(class);
    assert_eq!(h.query("create extension btree_gist"), "E42710 Z:I");
    h.query("drop operator class mine using gist; create extension btree_gist");
    assert_eq!(h.query("create table ex (a int4, exclude using gist (a with =))"), "C:CREATE TABLE Z:I");
    assert_eq!(h.query(class), "E42710 Z:I");
}

#[test]
fn only_what_postgresql_counts_is_counted() {
    let mut h = Harness::new();
    h.query("create table p (a int) partition by range (a); create table p1 partition of p default");
    h.query("analyze p");
    h.query("vacuum full p1");
    let counts = "select string_agg(concat_ws(' ', relname, vacuum_count, analyze_count), ', ' order by relname)
        from pg_stat_user_tables";
    assert_eq!(h.lines(counts), "p 0 1, p1 0 1");
    h.query("vacuum p");
    h.query("select pg_stat_reset_single_table_counters('p'::regclass)");
    assert_eq!(h.lines(counts), "p 0 0, p1 1 1");
    assert_eq!(h.lines("select count(*) from pg_stat_get_progress_info('cluster')"), "0");
    assert!(h.query("select * from pg_stat_get_progress_info('NOPE')").contains("E22023"));
}
