//! PostgreSQL 18's results for statements that older versions treat otherwise, or that a psql script cannot show.

use super::tests::Harness;

fn check(answers: &[(&str, &str)]) {
    let mut h = Harness::new();
    for (query, answer) in answers {
        assert_eq!(h.query(query), *answer, "{query}");
    }
}

#[test]
fn merge_returns_the_source_before_the_target() {
    check(&[
        ("create table t (id int, a int)", "C:CREATE TABLE Z:I"),
        (
            "with m as (merge into t using (values (1, 5)) v(i, j) on id = i when not matched then insert values (i, j + 1) \
             returning *) select m::text from m",
            "T D:(1,5,1,6) C:SELECT 1 Z:I",
        ),
        (
            "with m as (merge into t using (values (1, 5)) v(i, j) on id = i when matched then delete \
             returning t.*, merge_action(), v.*) select m::text from m",
            "T D:(1,6,DELETE,1,5) C:SELECT 1 Z:I",
        ),
    ]);
}

/// A materialized view is made before it is filled.
#[test]
fn a_table_that_a_query_makes_is_not_seen_by_it() {
    let made = |name: &str| format!("select count(*) n from pg_class where relname = '{name}'");
    check(&[
        (&format!("create table a as {}", made("a")), "C:SELECT 1 Z:I"),
        (&made("b").replace(" n ", " n into b "), "C:SELECT 1 Z:I"),
        (&format!("prepare p as {}", made("c")), "C:PREPARE Z:I"),
        ("create table c as execute p", "C:SELECT 1 Z:I"),
        (&format!("create materialized view d as {}", made("d")), "C:SELECT 1 Z:I"),
        (&format!("create table e as {} with no data", made("e")), "C:CREATE TABLE AS Z:I"),
        ("select concat(a.n, b.n, c.n, d.n, (select count(*) from e)) from a, b, c, d", "T D:00010 C:SELECT 1 Z:I"),
    ]);
}

/// As in PostgreSQL 18; 15 compares column by column.
#[test]
fn all_columns_of_a_natural_join_are_compared_before_any_are_merged() {
    let of =
        |second: &str| format!("select from (select interval '0' a, true b) x natural join (select time '0:00' a, {second} b) y");
    check(&[(&of("date '2024-01-01'"), "E42883 Z:I"), (&of("true"), "E42804 Z:I")]);
}

/// PostgreSQL probes the target, too: source rows without a partner come last.
#[test]
fn merge_inserts_the_keys_of_rows_that_it_deletes() {
    check(&[
        ("create table t (id int primary key)", "C:CREATE TABLE Z:I"),
        ("insert into t values (1), (12), (13)", "C:INSERT 0 3 Z:I"),
        (
            "merge into t using (select generate_series(1, 4) i) s on id = i \
             when not matched by source then delete when not matched then insert values (i + 10)",
            "C:MERGE 5 Z:I",
        ),
        ("select array_agg(id order by id) from t", "T D:{1,12,13,14} C:SELECT 1 Z:I"),
    ]);
}

/// Not by comparing each with each, which takes minutes here.
#[test]
fn elements_are_looked_for_in_large_arrays() {
    check(&[(
        "with v as (select array_agg(i) a from generate_series(1, 100000) i) \
         select row(a @> a, a && array[0], array[0, 7] && a, a <@ array[7], a @> array[null::int])::text from v",
        "T D:(t,f,t,f,f) C:SELECT 1 Z:I",
    )]);
}

/// The table must have been created or emptied in the current subtransaction: the missing file is only reported after that check.
#[test]
fn copy_freeze_requires_a_table_of_the_same_transaction() {
    check(&[
        ("create table t (a int)", "C:CREATE TABLE Z:I"),
        ("copy t from '/nowhere' (freeze)", "E55000 Z:I"),
        ("begin; truncate t; copy t from '/nowhere' (freeze)", "C:BEGIN C:TRUNCATE TABLE E58P01 Z:E"),
        ("rollback", "C:ROLLBACK Z:I"),
        ("begin; create table u (a int); copy u from '/nowhere' (freeze)", "C:BEGIN C:CREATE TABLE E58P01 Z:E"),
        ("rollback", "C:ROLLBACK Z:I"),
        ("begin; truncate t; savepoint s; copy t from '/nowhere' (freeze)", "C:BEGIN C:TRUNCATE TABLE C:SAVEPOINT E55000 Z:E"),
        ("rollback", "C:ROLLBACK Z:I"),
        (
            "begin; savepoint s; truncate t; release s; copy t from '/nowhere' (freeze)",
            "C:BEGIN C:SAVEPOINT C:TRUNCATE TABLE C:RELEASE E58P01 Z:E",
        ),
        ("rollback", "C:ROLLBACK Z:I"),
        (
            "begin; savepoint s; truncate t; rollback to s; copy t from '/nowhere' (freeze)",
            "C:BEGIN C:SAVEPOINT C:TRUNCATE TABLE C:ROLLBACK E55000 Z:E",
        ),
        ("rollback", "C:ROLLBACK Z:I"),
        (
            "begin; declare c cursor for select 1; truncate t; copy t from '/nowhere' (freeze)",
            "C:BEGIN C:DECLARE CURSOR C:TRUNCATE TABLE E25000 Z:E",
        ),
        ("rollback", "C:ROLLBACK Z:I"),
        ("create table p (a int) partition by list (a); copy p from '/nowhere' (freeze)", "C:CREATE TABLE E0A000 Z:I"),
    ]);
}

/// With a new catalog a check is compiled again.
#[test]
fn a_domain_s_checks_follow_the_catalog() {
    check(&[
        ("create domain d int check (value > 0); select 1::d", "C:CREATE DOMAIN T D:1 C:SELECT 1 Z:I"),
        ("select 0::d", "T E23514 Z:I"),
        (
            "drop domain d; create domain d int check (value < 9); select 0::d",
            "C:DROP DOMAIN C:CREATE DOMAIN T D:0 C:SELECT 1 Z:I",
        ),
    ]);
}

/// In PostgreSQL 15 memberships have no dependencies, and 42501 has no detail.
#[test]
fn drop_owned_ends_the_memberships_that_the_role_has_granted() {
    let members =
        "select string_agg(member::regrole::text, ',' order by member) from pg_auth_members where roleid = 'r'::regrole";
    check(&[
        ("create role r; create role ann; create role bob", "C:CREATE ROLE C:CREATE ROLE C:CREATE ROLE Z:I"),
        ("grant r to ann with admin option", "C:GRANT ROLE Z:I"),
        ("set role ann", "C:SET Z:I"),
        ("grant r to bob", "C:GRANT ROLE Z:I"),
        ("drop owned by bob", "E42501 Z:I"),
        ("reassign owned by bob to ann", "E42501 Z:I"),
        ("reassign owned by current_role to bob", "E42501 Z:I"),
        ("reassign owned by ann to session_user", "E42501 Z:I"),
        ("reset role", "C:RESET Z:I"),
        (members, "T D:ann,bob C:SELECT 1 Z:I"),
        ("drop role ann", "E2BP01 Z:I"),
        ("drop owned by ann", "C:DROP OWNED Z:I"),
        (members, "T D:ann C:SELECT 1 Z:I"),
        ("drop role ann, bob, r", "C:DROP ROLE Z:I"),
    ]);
}

/// Since PostgreSQL 16 or 17 it has neither a separate owner nor privileges.
#[test]
fn a_multirange_type_belongs_to_its_range_type() {
    check(&[
        ("create role ann", "C:CREATE ROLE Z:I"),
        ("create type r as range (subtype = float8, multirange_type_name = m)", "C:CREATE TYPE Z:I"),
        ("alter type m owner to ann", "E42809 Z:I"),
        ("grant usage on type m to ann", "E0LP01 Z:I"),
        ("alter type r owner to ann", "C:ALTER TYPE Z:I"),
        (
            "select string_agg(typowner::regrole::text, ',') from pg_type where typname in ('r', '_r', 'm', '_m')",
            "T D:ann,ann,ann,ann C:SELECT 1 Z:I",
        ),
        (
            "select string_agg(classid::regclass::text, ',') from pg_shdepend where refobjid = 'ann'::regrole",
            "T D:pg_type C:SELECT 1 Z:I",
        ),
        ("drop owned by ann", "C:DROP OWNED Z:I"),
        ("select count(*) from pg_proc where proname in ('r', 'm')", "T D:0 C:SELECT 1 Z:I"),
        ("drop role ann", "C:DROP ROLE Z:I"),
    ]);
}

/// Older versions know no "Disabled".
#[test]
fn explain_writes_changes_as_programs_read_them() {
    let yaml = "- Plan: \n    Node Type: \"ModifyTable\"\n    Operation: \"Delete\"\n    Parallel Aware: false\n    Async Capable: false\n    \
                Relation Name: \"t\"\n    Alias: \"t\"\n    Disabled: false\n    Plans: \n      - Node Type: \"Seq Scan\"\n        \
                Parent Relationship: \"Outer\"\n        Parallel Aware: false\n        Async Capable: false\n        \
                Relation Name: \"t\"\n        Alias: \"t\"\n        Disabled: false\n        Filter: \"(a < 2)\"";
    let xml = "<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n  <Query>\n    <Plan>\n      \
               <Node-Type>Function Scan</Node-Type>\n      <Parallel-Aware>false</Parallel-Aware>\n      \
               <Async-Capable>false</Async-Capable>\n      <Function-Name>generate_series</Function-Name>\n      \
               <Alias>g</Alias>\n      <Disabled>false</Disabled>\n    </Plan>\n  </Query>\n</explain>";
    check(&[
        ("create table t (a int)", "C:CREATE TABLE Z:I"),
        ("explain (costs off, format yaml) delete from t where a < 2", &format!("T D:{yaml} C:EXPLAIN Z:I")),
        ("explain (costs off, format xml) select * from generate_series(1, 2) g", &format!("T D:{xml} C:EXPLAIN Z:I")),
        (
            "explain (analyze, timing off, summary off, costs off) insert into t values (1) returning a",
            "T D:Insert on t (actual rows=1.00 loops=1) D:  ->  Result (actual rows=1.00 loops=1) C:EXPLAIN Z:I",
        ),
    ]);
}

/// crypt by SHA and the mode cfb are PostgreSQL 18's; Blowfish needs OpenSSL's old provider there (its first test vector, by B. Schneier).
#[test]
fn pgcrypto_knows_sha_crypt_and_cfb() {
    let sha256 = "$5$rounds=1400$anotherlongsalts$Iq0dhoYfyGnDVwSUpmuNlZyLKva/p4Sd1frSpizk2oD";
    let sha512 =
        "$6$rounds=10000$anotherlongsalts$kI0LZgUBwk8QdXgDLWaOc3FxmC2CDajUQYZwOjVvQjsHnNLeyyLN2wZo7Zt5N9lUvr13CU.SF86JyMBn4F6aq0";
    check(&[
        ("create extension pgcrypto", "C:CREATE EXTENSION Z:I"),
        ("select crypt('a', '$5$rounds=1400$anotherlongsaltstring')", &format!("T D:{sha256} C:SELECT 1 Z:I")),
        ("select crypt('a', '$6$rounds=10000$anotherlongsaltstring$')", &format!("T D:{sha512} C:SELECT 1 Z:I")),
        ("select crypt('a', '$5$abc')", "T D:$5$abc$HHlb8QMClR55.dRTU4JXNgHGkR1U6jlbNtlfDN528y0 C:SELECT 1 Z:I"),
        ("select crypt('a', '$5$rounds=x$x')", "T E42601 Z:I"),
        ("select crypt('a', '$5$ab:c$')", "E22023 Z:I"),
        ("select crypt('a', gen_salt('sha512crypt', 1000)) like '$6$rounds=1000$________________$%'", "T D:t C:SELECT 1 Z:I"),
        ("select gen_salt('sha256crypt', 999)", "T E22023 Z:I"),
        ("select encrypt('a', 'k', 'aes-cfb')", "T D:\\xe5 C:SELECT 1 Z:I"),
        (
            "select encrypt('\\x0000000000000000', '\\x0000000000000000', 'bf-ecb/pad:none')",
            "T D:\\x4ef997456198dd78 C:SELECT 1 Z:I",
        ),
        ("select encrypt('a', 'k', 'des')", "T E0A000 Z:I"),
        ("select crypt('a', 'ab')", "T E0A000 Z:I"),
        ("select pgp_sym_encrypt('a', 'k')", "T E0A000 Z:I"),
    ]);
}

/// Messages are those of PostgreSQL 18, and so are the results of JSON functions.
#[test]
fn hstore_is_read_and_becomes_json() {
    let error = |text: &str| format!("select message || ' ' || sql_error_code from pg_input_error_info('{text}', 'hstore')");
    check(&[
        ("create extension hstore", "C:CREATE EXTENSION Z:I"),
        (&error("a=>1 é"), "T D:syntax error in hstore, near \"é\" at position 5 42601 C:SELECT 1 Z:I"),
        (&error("=>1"), "T D:syntax error in hstore, near \"=\" at position 0 42601 C:SELECT 1 Z:I"),
        (&error("a=>"), "T D:syntax error in hstore: unexpected end of string 42601 C:SELECT 1 Z:I"),
        (&error("a=>\"b"), "T D:syntax error in hstore: unexpected end of string 42601 C:SELECT 1 Z:I"),
        ("select 'a b=>1'::hstore", "E42601 Z:I"),
        ("create table t (h hstore, hs hstore[])", "C:CREATE TABLE Z:I"),
        ("insert into t values ('a=>1', array['b=>NULL']::hstore[])", "C:INSERT 0 1 Z:I"),
        ("select to_jsonb(h) from t", "T D:{\"a\": \"1\"} C:SELECT 1 Z:I"),
        ("select row_to_json(t) from t", "T D:{\"h\":{\"a\": \"1\"},\"hs\":[{\"b\": null}]} C:SELECT 1 Z:I"),
        ("select json_build_object(h, 1) from t", "T E22023 Z:I"),
        ("create view v as select h['a'] as a, h -> 'b' as b from t", "C:CREATE VIEW Z:I"),
        ("select pg_get_viewdef('v')", "T D: SELECT h['a'::text] AS a,\n    (h -> 'b'::text) AS b\n   FROM t; C:SELECT 1 Z:I"),
        ("create index on t using gin (h)", "C:CREATE INDEX Z:I"),
        ("set enable_seqscan = off", "C:SET Z:I"),
        ("select 'found' from t where h ? 'a' and h @> 'a=>1'", "T D:found C:SELECT 1 Z:I"),
        ("select 'found' from t where h ?| array['b', 'c']", "T C:SELECT 0 Z:I"),
    ]);
}

/// gen_random_uuid() and similar functions return unpredictable values after any setseed().
#[test]
fn setseed_repeats_random_but_no_uuids() {
    check(&[
        ("create table drawn (n float8, u uuid)", "C:CREATE TABLE Z:I"),
        ("select setseed(0.5)", "T D: C:SELECT 1 Z:I"),
        ("insert into drawn select random(), gen_random_uuid()", "C:INSERT 0 1 Z:I"),
        ("select setseed(0.5)", "T D: C:SELECT 1 Z:I"),
        ("insert into drawn select random(), gen_random_uuid()", "C:INSERT 0 1 Z:I"),
        ("select count(distinct n) || ' ' || count(distinct u) from drawn", "T D:1 2 C:SELECT 1 Z:I"),
    ]);
}

/// A tenth of the values: a prefix that an index searches counts once, and by the digits that the column has.
#[test]
fn a_prefix_of_digits_is_estimated_by_its_share() {
    check(&[
        (
            "create table phones as select (13000000000 + i * 100000)::text as phone from generate_series(0, 9999) i",
            "C:SELECT 10000 Z:I",
        ),
        ("create index on phones (phone)", "C:CREATE INDEX Z:I"),
        ("checkpoint", "C:CHECKPOINT Z:I"),
        (
            "explain select phone from phones where phone like '138%'",
            "T D:Index Only Scan using phones_phone_idx on phones  (cost=0.00..13.57 rows=1006 width=32) \
             D:  Index Cond: (phone ~~ '138%'::text) D:  Filter: (phone ~~ '138%'::text) C:EXPLAIN Z:I",
        ),
    ]);
}

/// Older versions run them as the committing role.
#[test]
fn a_deferred_trigger_runs_as_the_role_that_made_the_change() {
    check(&[
        (
            "create role changer; create table log (who text); grant all on log to public",
            "C:CREATE ROLE C:CREATE TABLE C:GRANT Z:I",
        ),
        ("create table t (a int); grant insert on t to changer", "C:CREATE TABLE C:GRANT Z:I"),
        (
            "create function note() returns trigger language plpgsql as \
             $$ begin insert into log values (current_user || ' ' || session_user); return null; end $$",
            "C:CREATE FUNCTION Z:I",
        ),
        (
            "create constraint trigger n after insert on t deferrable initially deferred for each row execute function note()",
            "C:CREATE TRIGGER Z:I",
        ),
        ("begin", "C:BEGIN Z:T"),
        ("set role changer", "C:SET Z:T"),
        ("insert into t values (1)", "C:INSERT 0 1 Z:T"),
        ("reset role", "C:RESET Z:T"),
        ("insert into t values (2)", "C:INSERT 0 1 Z:T"),
        ("commit", "C:COMMIT Z:I"),
        ("select * from log", "T D:changer postgres D:postgres postgres C:SELECT 2 Z:I"),
    ]);
}

/// Versions before 18.2 make them.
#[test]
fn views_do_not_outlive_the_rows_that_a_statement_has_changed() {
    check(&[
        ("create table t (a int)", "C:CREATE TABLE Z:I"),
        (
            "create function bad() returns trigger language plpgsql as \
             $$ begin create materialized view v as select * from n; return null; end $$",
            "C:CREATE FUNCTION Z:I",
        ),
        (
            "create trigger bad after insert on t referencing new table as n for each statement execute function bad()",
            "C:CREATE TRIGGER Z:I",
        ),
        ("insert into t values (1)", "E0A000 Z:I"),
    ]);
}

#[test]
fn merge_changes_the_table_under_a_view() {
    check(&[
        ("create table base (a int primary key, b text)", "C:CREATE TABLE Z:I"),
        ("insert into base values (1, 'x'), (2, 'y'), (50, 'z')", "C:INSERT 0 3 Z:I"),
        ("create view low as select b as text, a, 'low' as kind from base where a < 40 with check option", "C:CREATE VIEW Z:I"),
        (
            "with m as (merge into low t using (values (1, 'one'), (3, 'three')) v (a, b) on t.a = v.a \
             when matched then update set text = v.b when not matched then insert (a, text) values (v.a, v.b) \
             returning merge_action(), t.text, t.a, old.text) select m::text from m",
            "T D:(UPDATE,one,1,x) D:(INSERT,three,3,) C:SELECT 2 Z:I",
        ),
        // A row that the view does not show does not match.
        (
            "merge into low t using (values (50)) v (a) on t.a = v.a when not matched then insert (text, a) values ('again', v.a)",
            "E23505 Z:I",
        ),
        (
            "merge into low t using (values (44)) v (a) on t.a = v.a when not matched then insert values ('high', v.a)",
            "E44000 Z:I",
        ),
        ("merge into low t using (values (1)) v (a) on t.a = v.a when matched then update set a = 41", "E44000 Z:I"),
        ("merge into low t using (values (1)) v (a) on t.a = v.a when matched then update set kind = 'x'", "E0A000 Z:I"),
        (
            "merge into low t using (values (2)) v (a) on t.a = v.a when matched then delete \
             when not matched by source then update set text = text || '!'",
            "C:MERGE 3 Z:I",
        ),
        ("select base::text from base order by a", "T D:(1,one!) D:(3,three!) D:(50,z) C:SELECT 3 Z:I"),
        ("create view counted as select a, count(*) from base group by a", "C:CREATE VIEW Z:I"),
        ("merge into counted c using (values (1)) v (a) on c.a = v.a when matched then delete", "E55000 Z:I"),
    ]);
}

#[test]
fn merge_finds_rows_without_a_partner_in_a_join() {
    check(&[
        (
            "create table t (id int primary key, v text); insert into t values (1, 'x'), (2, 'y'), (3, 'z')",
            "C:CREATE TABLE C:INSERT 0 3 Z:I",
        ),
        ("create table a (id int); insert into a values (1), (2), (7)", "C:CREATE TABLE C:INSERT 0 3 Z:I"),
        ("create table b (id int, v text); insert into b values (1, 'b1'), (3, 'b3')", "C:CREATE TABLE C:INSERT 0 2 Z:I"),
        (
            "merge into t using a left join b on a.id = b.id on t.id = a.id when matched then update set v = b.v \
             when not matched then insert values (a.id, coalesce(b.v, 'none')) when not matched by source then delete",
            "C:MERGE 4 Z:I",
        ),
        ("select t::text from t order by id", "T D:(1,b1) D:(2,) D:(7,none) C:SELECT 3 Z:I"),
        (
            "merge into t using b right join a using (id) on t.id = a.id and b.id is not null \
             when not matched by source then update set v = 'alone'",
            "C:MERGE 2 Z:I",
        ),
        ("select t::text from t order by id", "T D:(1,b1) D:(2,alone) D:(7,alone) C:SELECT 3 Z:I"),
        ("merge into t using a full join b using (id) on t.id = a.id when not matched by source then delete", "E0A000 Z:I"),
    ]);
}

/// As PostgreSQL 18 answers.
#[test]
fn triggers_do_what_merge_says_to_a_view() {
    check(&[
        (
            "create table base (a int primary key, b text); insert into base values (1, 'x'), (2, 'y'), (3, 'z');
             create view v as select a, b, a * 2 as c from base where a < 100;
             create function instead() returns trigger language plpgsql as $$ begin
               if tg_op = 'DELETE' then delete from base where a = old.a; return old; end if;
               if new.b like 'skip%' then return null; end if;
               if tg_op = 'INSERT' then insert into base values (new.a, new.b); else update base set b = new.b where a = old.a; end if;
               new.c := -1; return new; end $$;
             create trigger instead instead of insert or update or delete on v for each row execute function instead()",
            "C:CREATE TABLE C:INSERT 0 3 C:CREATE VIEW C:CREATE FUNCTION C:CREATE TRIGGER Z:I",
        ),
        (
            "with m as (merge into v using (values (1, 'one'), (2, 'del'), (3, 'skip'), (4, 'four'), (5, 'skip')) s (x, y) on v.a = s.x
             when matched and s.y = 'del' then delete when matched then update set b = s.y || v.c
             when not matched then insert (a, b) values (s.x, s.y) returning merge_action(), v.*, old.c as d, new.c as e)
             select m::text from m order by a",
            "T D:(UPDATE,1,one2,-1,2,-1) D:(DELETE,2,y,4,4,) D:(INSERT,4,four,-1,,-1) C:SELECT 3 Z:I",
        ),
        (
            "merge into v using (values (1), (8)) s (x) on v.a = s.x when not matched by source then update set b = 'alone'
             when not matched then insert values (s.x, 'q', 5) when matched and v.c > 100 then do nothing",
            "C:MERGE 3 Z:I",
        ),
        ("select base::text from base order by a", "T D:(1,one2) D:(3,alone) D:(4,alone) D:(8,q) C:SELECT 4 Z:I"),
        ("create view over_v as select a as x, b as y from v", "C:CREATE VIEW Z:I"),
        (
            "merge into over_v using (values (1), (9)) s (x) on over_v.x = s.x when matched then delete
             when not matched then insert values (s.x, 'n')",
            "C:MERGE 2 Z:I",
        ),
        ("select string_agg(a::text, ' ' order by a) from base", "T D:3 4 8 9 C:SELECT 1 Z:I"),
        ("drop trigger instead on v", "C:DROP TRIGGER Z:I"),
        ("create trigger instead instead of insert on v for each row execute function instead()", "C:CREATE TRIGGER Z:I"),
        ("merge into v using (values (3)) s (x) on v.a = s.x when matched then delete", "C:MERGE 1 Z:I"),
        (
            "merge into v using (values (3)) s (x) on v.a = s.x when matched then delete when not matched then insert values (1)",
            "E0A000 Z:I",
        ),
    ]);
}

/// As PostgreSQL 18 answers.
#[test]
fn returning_has_the_expressions_of_a_view_for_both_rows() {
    check(&[
        (
            "create table base (a int primary key, b text); insert into base values (1, 'x'), (2, 'y');
             create view v as select a, b, 'c' as c, 'b: ' || b as d from base",
            "C:CREATE TABLE C:INSERT 0 2 C:CREATE VIEW Z:I",
        ),
        (
            "update v set b = 'z' where a = 1 returning concat_ws('|', old.c, old.d, new.d, d, old::text, new::text)",
            "T D:c|b: x|b: z|b: z|(1,x,c,\"b: x\")|(1,z,c,\"b: z\") C:UPDATE 1 Z:I",
        ),
        (
            "insert into v (a, b) values (3, 'n') returning concat_ws('|', old.c is null, old.d is null, new.d, old is null, new::text)",
            "T D:t|t|b: n|t|(3,n,c,\"b: n\") C:INSERT 0 1 Z:I",
        ),
        ("delete from v where a = 2 returning concat_ws('|', old.d, new.c is null, new::text is null, d)", "T D:b: y|t|t|b: y C:DELETE 1 Z:I"),
        (
            "with m as (merge into v using (values (1), (9)) s (x) on v.a = s.x when matched then delete
             when not matched then insert (a, b) values (s.x, 'm') returning merge_action() as w, old.d as o, new.d as n, v.d as d)
             select m::text from m order by 1",
            "T D:(DELETE,\"b: z\",,\"b: z\") D:(INSERT,,\"b: m\",\"b: m\") C:SELECT 2 Z:I",
        ),
    ]);
}

/// As PostgreSQL 18 answers.
#[test]
fn not_null_that_is_not_valid_is_so_in_children() {
    let state = "select string_agg(conrelid::regclass::text || convalidated, ' ' order by conrelid) from pg_constraint where conname = 'nn'";
    check(&[
        (
            "create table p (a int, k int) partition by list (k); create table p1 partition of p for values in (1);
             insert into p values (null, 1)",
            "C:CREATE TABLE C:CREATE TABLE C:INSERT 0 1 Z:I",
        ),
        ("alter table p add constraint nn not null a not valid", "C:ALTER TABLE Z:I"),
        (state, "T D:pfalse p1false C:SELECT 1 Z:I"),
        ("select count(*) from p1 where a is null", "T D:1 C:SELECT 1 Z:I"),
        ("insert into p values (null, 1)", "E23502 Z:I"),
        ("alter table p alter a set not null", "E23502 Z:I"),
        ("create table p2 partition of p for values in (2)", "C:CREATE TABLE Z:I"),
        ("update p set a = 1", "C:UPDATE 1 Z:I"),
        ("alter table p validate constraint nn", "C:ALTER TABLE Z:I"),
        (state, "T D:ptrue p1true p2true C:SELECT 1 Z:I"),
        ("create table c (a int); alter table c add constraint ck check (a > 0) not valid", "C:CREATE TABLE C:ALTER TABLE Z:I"),
        ("create table d () inherits (c)", "C:CREATE TABLE Z:I"),
        (
            "select string_agg(conrelid::regclass::text || convalidated, ' ' order by conrelid) from pg_constraint where conname = 'ck'",
            "T D:cfalse dtrue C:SELECT 1 Z:I",
        ),
    ]);
}

/// PostgreSQL has it since 17.
#[test]
fn a_generated_column_gets_another_expression() {
    check(&[
        (
            "create table t (a int, b int generated always as (a * 2) stored, v int generated always as (a + 1) virtual, c int)",
            "C:CREATE TABLE Z:I",
        ),
        ("create index on t (b); create unique index on t ((b + 1))", "C:CREATE INDEX C:CREATE INDEX Z:I"),
        ("insert into t values (1), (2)", "C:INSERT 0 2 Z:I"),
        ("alter table t alter b set expression as (a * 3)", "C:ALTER TABLE Z:I"),
        ("select t::text from t where b = 6", "T D:(2,6,3,) C:SELECT 1 Z:I"),
        ("alter table t alter b set expression as (c)", "C:ALTER TABLE Z:I"),
        ("alter table t alter b set expression as (a - a)", "E23505 Z:I"),
        ("alter table t alter b set expression as (b)", "E42P17 Z:I"),
        ("alter table t alter c set expression as (a)", "E55000 Z:I"),
        ("alter table t alter v set expression as (a * 10), alter b set expression as (a * 4), drop column c", "E2BP01 Z:I"),
        (
            "alter table t alter v set expression as (a * 10), alter b set expression as (a * 4); alter table t drop column c",
            "C:ALTER TABLE C:ALTER TABLE Z:I",
        ),
        ("select t::text from t order by a", "T D:(1,4,10) D:(2,8,20) C:SELECT 2 Z:I"),
        ("alter table t add check (b < 100)", "C:ALTER TABLE Z:I"),
        ("alter table t alter v set expression as (a)", "E0A000 Z:I"),
        ("alter table t alter b set expression as (a * 100)", "E23514 Z:I"),
        (
            "create table p (k int, a int, b int generated always as (a) stored) partition by list (k);
             create table p1 partition of p for values in (1); insert into p values (1, 1);
             alter table p alter b set expression as (a * 7); insert into p values (1, 2);
             alter table only p alter b set expression as (a * 9); insert into p values (1, 3)",
            "C:CREATE TABLE C:CREATE TABLE C:INSERT 0 1 C:ALTER TABLE C:INSERT 0 1 C:ALTER TABLE C:INSERT 0 1 Z:I",
        ),
        ("select b from p order by a", "T D:7 D:14 D:21 C:SELECT 3 Z:I"),
    ]);
}

/// PostgreSQL has them since 18.
#[test]
fn a_foreign_key_of_partitions_is_validated_later() {
    check(&[
        ("create table pk (a int primary key)", "C:CREATE TABLE Z:I"),
        ("create table fk (a int) partition by list (a)", "C:CREATE TABLE Z:I"),
        ("create table fk1 partition of fk for values in (1)", "C:CREATE TABLE Z:I"),
        ("insert into fk values (1)", "C:INSERT 0 1 Z:I"),
        ("alter table fk add constraint k foreign key (a) references pk", "E23503 Z:I"),
        ("alter table fk add constraint k foreign key (a) references pk not valid", "C:ALTER TABLE Z:I"),
        ("alter table fk validate constraint k", "E23503 Z:I"),
        ("insert into pk values (1)", "C:INSERT 0 1 Z:I"),
        ("alter table fk validate constraint k", "C:ALTER TABLE Z:I"),
        ("select count(*) from pg_constraint where conname = 'k' and convalidated", "T D:2 C:SELECT 1 Z:I"),
    ]);
}

/// PostgreSQL has it since 18.
#[test]
fn constraints_are_altered() {
    check(&[
        ("create table pk (a int primary key)", "C:CREATE TABLE Z:I"),
        ("create table fk (a int references pk not enforced)", "C:CREATE TABLE Z:I"),
        ("insert into fk values (1)", "C:INSERT 0 1 Z:I"),
        ("alter table fk alter constraint fk_a_fkey enforced", "E23503 Z:I"),
        ("insert into pk values (1)", "C:INSERT 0 1 Z:I"),
        ("alter table fk alter constraint fk_a_fkey enforced", "C:ALTER TABLE Z:I"),
        ("insert into fk values (2)", "E23503 Z:I"),
        ("alter table fk alter constraint fk_a_fkey not enforced", "C:ALTER TABLE Z:I"),
        ("insert into fk values (2)", "C:INSERT 0 1 Z:I"),
        ("create table parent (a int constraint there not null no inherit)", "C:CREATE TABLE Z:I"),
        ("create table child () inherits (parent)", "C:CREATE TABLE Z:I"),
        ("insert into child values (null)", "C:INSERT 0 1 Z:I"),
        ("alter table parent alter constraint there inherit", "E23502 Z:I"),
        ("delete from child", "C:DELETE 1 Z:I"),
        ("alter table parent alter constraint there inherit", "C:ALTER TABLE Z:I"),
        ("insert into child values (null)", "E23502 Z:I"),
        ("alter table child alter constraint there no inherit", "E55000 Z:I"),
        ("alter table parent alter constraint there no inherit", "C:ALTER TABLE Z:I"),
        ("insert into child values (null)", "E23502 Z:I"),
        ("alter table parent alter constraint there not enforced", "E42809 Z:I"),
    ]);
}

/// Since version 17.
#[test]
fn explain_serialize_reports_the_size_of_the_result() {
    let of = |options: &str| {
        format!("explain (analyze, timing off, summary off, costs off, buffers off, {options}) select 1234, null")
    };
    let plan = "T D:Result (actual rows=1.00 loops=1)";
    check(&[
        (&of("serialize"), &format!("{plan} D:Serialization: output=1kB  format=text C:EXPLAIN Z:I")),
        (&of("serialize binary"), &format!("{plan} D:Serialization: output=1kB  format=binary C:EXPLAIN Z:I")),
        (&of("serialize none"), &format!("{plan} C:EXPLAIN Z:I")),
        (&of("serialize on"), "E22023 Z:I"),
        ("explain (serialize) select 1", "E22023 Z:I"),
        (&of("memory"), &format!("{plan} D:Planning: D:  Memory: used=0kB  allocated=0kB C:EXPLAIN Z:I")),
        (&of("memory off"), &format!("{plan} C:EXPLAIN Z:I")),
    ]);
}

/// PostgreSQL has it since 17.
#[test]
fn partitions_number_their_rows_together() {
    check(&[
        ("create table t (p int, id int generated always as identity (start 10)) partition by list (p)", "C:CREATE TABLE Z:I"),
        ("create table t1 partition of t for values in (1)", "C:CREATE TABLE Z:I"),
        ("create table t2 (id int, p int)", "C:CREATE TABLE Z:I"),
        ("alter table t attach partition t2 for values in (2)", "E42804 Z:I"),
        ("alter table t2 alter id set not null", "C:ALTER TABLE Z:I"),
        ("alter table t attach partition t2 for values in (2)", "C:ALTER TABLE Z:I"),
        ("create table t3 partition of t for values in (3) partition by list (id)", "C:CREATE TABLE Z:I"),
        ("create table t31 partition of t3 default", "C:CREATE TABLE Z:I"),
        ("insert into t values (1), (2) returning id", "T D:10 D:11 C:INSERT 0 2 Z:I"),
        ("insert into t2 (p) values (2) returning id", "T D:12 C:INSERT 0 1 Z:I"),
        ("insert into t31 (p) values (3) returning id", "T D:13 C:INSERT 0 1 Z:I"),
        ("insert into t31 (p, id) values (3, 3)", "E428C9 Z:I"),
        ("alter table t1 alter id drop identity", "E42P16 Z:I"),
        ("alter table only t alter id set generated by default", "E42P16 Z:I"),
        ("alter table t alter id set generated by default", "C:ALTER TABLE Z:I"),
        ("insert into t31 (p, id) values (3, 3)", "C:INSERT 0 1 Z:I"),
        ("alter table t detach partition t2", "C:ALTER TABLE Z:I"),
        ("insert into t2 (p) values (2)", "E23502 Z:I"),
        ("alter table t add more bigint generated always as identity", "C:ALTER TABLE Z:I"),
        ("select count(distinct more) from t", "T D:3 C:SELECT 1 Z:I"),
        ("alter table t alter id drop identity", "C:ALTER TABLE Z:I"),
        ("insert into t31 (p) values (3)", "E23502 Z:I"),
    ]);
}

#[test]
fn texts_are_ordered_by_their_collation() {
    check(&[
        ("create table t (a text collate \"de-x-icu\" primary key, b int)", "C:CREATE TABLE Z:I"),
        ("insert into t values ('a', 1), ('B', 2), ('\u{e4}', 3)", "C:INSERT 0 3 Z:I"),
        ("select b from t where a = 'a'", "T D:1 C:SELECT 1 Z:I"),
        ("select count(*) from t where a <> 'a' and a in ('B', 'C') group by a", "T D:1 C:SELECT 1 Z:I"),
        ("select b from t order by a", "T D:1 D:3 D:2 C:SELECT 3 Z:I"),
        ("select b from t order by a collate \"C\"", "T D:2 D:1 D:3 C:SELECT 3 Z:I"),
        ("select b from t where a < 'b' order by a desc", "T D:3 D:1 C:SELECT 2 Z:I"),
        ("select b from t where (a, b) < ('\u{e4}', 3)", "T D:1 C:SELECT 1 Z:I"),
        ("select b from t where a > any (array['\u{e4}'])", "T D:2 C:SELECT 1 Z:I"),
        ("select max(a) from t", "T D:B C:SELECT 1 Z:I"),
        ("select greatest(a, 'b') from t where b = 2", "T D:B C:SELECT 1 Z:I"),
        ("select array_agg(b order by a) from t", "T D:{1,3,2} C:SELECT 1 Z:I"),
        ("select b from t order by rank() over (order by a)", "T D:1 D:3 D:2 C:SELECT 3 Z:I"),
        ("select percentile_disc(1) within group (order by a) from t", "T D:B C:SELECT 1 Z:I"),
    ]);
}

#[test]
fn keys_without_overlaps_exclude_overlapping_ranges() {
    check(&[
        ("create extension btree_gist", "C:CREATE EXTENSION Z:I"),
        ("create table one (v int4range, primary key (v without overlaps))", "E42601 Z:I"),
        ("create table none (a int, b int, primary key (a, b without overlaps))", "E42804 Z:I"),
        ("create table t (id int, v int4range, primary key (id, v without overlaps))", "C:CREATE TABLE Z:I"),
        ("insert into t values (1, '[1,5)'), (1, '[5,9)'), (2, '[1,5)')", "C:INSERT 0 3 Z:I"),
        ("insert into t values (1, '[4,6)')", "E23P01 Z:I"),
        ("insert into t values (1, 'empty')", "E23514 Z:I"),
        ("insert into t values (1, null)", "E23502 Z:I"),
        ("insert into t values (1, '[4,6)') on conflict do nothing", "C:INSERT 0 0 Z:I"),
        ("insert into t values (1, '[4,6)') on conflict (id, v) do nothing", "E42P10 Z:I"),
        ("insert into t values (1, '[4,6)') on conflict on constraint t_pkey do update set id = 2", "E42809 Z:I"),
        ("update t set v = '[3,6)' where id = 1 and v = '[1,5)'", "E23P01 Z:I"),
        (
            "select concat_ws(',', contype, conperiod, pg_get_constraintdef(oid)) from pg_constraint where conname = 't_pkey'",
            "T D:p,t,PRIMARY KEY (id, v WITHOUT OVERLAPS) C:SELECT 1 Z:I",
        ),
        (
            "select concat_ws(',', indisunique, indisprimary, indisexclusion) from pg_index where indexrelid = 't_pkey'::regclass",
            "T D:t,t,t C:SELECT 1 Z:I",
        ),
        ("create table u (like t including all)", "C:CREATE TABLE Z:I"),
        ("insert into u values (1, '[1,5)'), (1, '[2,3)')", "E23P01 Z:I"),
        ("create table r (id int, v int4range, foreign key (id, v) references t (id, v))", "E42830 Z:I"),
        ("create table r (id int, v int4range, foreign key (id, period v) references t (id, period v))", "C:CREATE TABLE Z:I"),
        ("create table w (id int, v int4range)", "C:CREATE TABLE Z:I"),
        ("insert into w values (1, '[1,5)'), (1, '[2,3)')", "C:INSERT 0 2 Z:I"),
        ("alter table w add unique (id, v without overlaps)", "E23P01 Z:I"),
        ("delete from w where v = '[2,3)'", "C:DELETE 1 Z:I"),
        ("alter table w add unique (id, v without overlaps)", "C:ALTER TABLE Z:I"),
        (
            "create table p (id int, v int4range, primary key (id, v without overlaps)) partition by list (id)",
            "C:CREATE TABLE Z:I",
        ),
        ("create table p1 partition of p for values in (1)", "C:CREATE TABLE Z:I"),
        ("insert into p values (1, '[1,5)'), (1, '[2,3)')", "E23P01 Z:I"),
        ("create table q (id int, v int4range, primary key (id, v without overlaps)) partition by list (v)", "E0A000 Z:I"),
        ("drop extension btree_gist", "E2BP01 Z:I"),
    ]);
}

/// Their stored texts name the attributes.
#[test]
fn attributes_stay_while_expressions_make_rows_of_their_type() {
    check(&[
        ("create type pair as (a int, b int)", "C:CREATE TYPE Z:I"),
        ("create function made() returns pair language sql as 'select row(1, 2)::pair'", "C:CREATE FUNCTION Z:I"),
        ("alter type pair add attribute c int", "C:ALTER TYPE Z:I"),
        ("create view by_row as select (row(1, 2, 3)::pair).b", "C:CREATE VIEW Z:I"),
        ("alter type pair drop attribute a", "E0A000 Z:I"),
        ("drop view by_row", "C:DROP VIEW Z:I"),
        ("create view by_function as select (made()).b", "C:CREATE VIEW Z:I"),
        ("alter type pair drop attribute a", "E0A000 Z:I"),
        ("drop type pair", "E2BP01 Z:I"),
        ("drop view by_function", "C:DROP VIEW Z:I"),
        ("alter type pair drop attribute a", "C:ALTER TYPE Z:I"),
    ]);
}

/// What a session returns for a statement that has waited for the locks of `one`, which commits a change meanwhile.
fn after_wait(one: &mut Harness, change: &str, statement: &'static str) -> String {
    one.query(&format!("begin; {change}"));
    let mut other = one.another();
    let waiting = std::thread::spawn(move || other.lines(statement));
    while one.lines("select count(*) from pg_locks where not granted") == "0" {
        std::thread::yield_now();
    }
    one.query("commit");
    waiting.join().expect("an answer")
}

#[test]
fn merge_handles_rows_that_a_concurrent_update_has_set_apart() {
    let merge = "merge into target t using (values (1, 's')) s(key, val) on s.key = t.key \
                 when matched then update set val = 'm' \
                 when not matched by source then update set val = t.val || '!' \
                 when not matched then insert values (s.key, s.val) returning merge_action() || ' ' || t::text";
    let apart = "UPDATE (5,a!)\nINSERT (1,s)\nUPDATE (2,b!)";
    let changed = "UPDATE (1,m)\nUPDATE (2,z!)";
    for (change, returned) in [("set key = 5 where key = 1", apart), ("set val = 'z' where key = 2", changed)] {
        let mut one = Harness::new();
        one.query("create table target (key int, val text); insert into target values (1, 'a'), (2, 'b')");
        assert_eq!(after_wait(&mut one, &format!("update target {change}"), merge), returned, "{change}");
    }
}
