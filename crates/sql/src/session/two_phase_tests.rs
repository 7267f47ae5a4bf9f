//! Two-phase commit: the locks of a prepared transaction, and that it is the same after the server was killed.

use std::sync::Arc;

use melba_engine::{Durability, EngineOptions, Isolation};
use melba_types::row::RowLayout;
use melba_types::{Datum, Kind, TreeId};

use super::tests::Harness;

fn over(data: Arc<tempfile::TempDir>) -> Harness {
    Harness::over(data, EngineOptions::default(), &[("max_prepared_transactions".to_owned(), "4".to_owned())])
}

fn harness() -> Harness {
    over(Arc::new(tempfile::tempdir().expect("a temporary directory")))
}

fn check(h: &mut Harness, answers: &[(&str, &str)]) {
    for (query, answer) in answers {
        assert_eq!(h.query(query), *answer, "{query}");
    }
}

const SETUP: &str = "
    set lock_timeout = '50ms';
    create table p (a int primary key, b text);
    create table c (a int references p);
    insert into p values (1, 'one'), (2, 'two');
";

const HELD: [(&str, &str); 7] = [
    ("select b from p order by a", "T D:one D:two C:SELECT 2 Z:I"),
    ("select gid from pg_prepared_xacts order by 1", "T D:made D:rows C:SELECT 2 Z:I"),
    ("insert into p values (3, 'x')", "E55P03 Z:I"),
    ("update p set b = 'x' where a = 2", "E55P03 Z:I"),
    // A row refers to it.
    ("delete from p where a = 1", "E55P03 Z:I"),
    ("drop table p", "E55P03 Z:I"),
    // Its name is taken.
    ("create table made (a int)", "E55P03 Z:I"),
];

fn prepare(h: &mut Harness) {
    assert!(!h.query(SETUP).contains(" E"));
    check(
        h,
        &[
            ("begin", "C:BEGIN Z:T"),
            ("insert into p values (3, 'three')", "C:INSERT 0 1 Z:T"),
            ("update p set b = 'zwei' where a = 2", "C:UPDATE 1 Z:T"),
            ("insert into c values (1)", "C:INSERT 0 1 Z:T"),
            ("prepare transaction 'rows'", "C:PREPARE TRANSACTION Z:I"),
            ("begin", "C:BEGIN Z:T"),
            ("create table made (a int primary key, b serial)", "C:CREATE TABLE Z:T"),
            ("insert into made values (1), (2)", "C:INSERT 0 2 Z:T"),
            ("create function one() returns int language sql return 1", "C:CREATE FUNCTION Z:T"),
            ("prepare transaction 'made'", "C:PREPARE TRANSACTION Z:I"),
        ],
    );
}

fn end(h: &mut Harness) {
    check(
        h,
        &[
            ("create table later (a int primary key)", "C:CREATE TABLE Z:I"),
            ("insert into later values (1)", "C:INSERT 0 1 Z:I"),
            ("commit prepared 'rows'", "C:COMMIT PREPARED Z:I"),
            ("select b from p order by a", "T D:one D:zwei D:three C:SELECT 3 Z:I"),
            ("select a from c", "T D:1 C:SELECT 1 Z:I"),
            ("delete from p where a = 1", "E23503 Z:I"),
            ("insert into p values (3, 'x')", "E23505 Z:I"),
            ("commit prepared 'rows'", "E42704 Z:I"),
            ("commit prepared 'made'", "C:COMMIT PREPARED Z:I"),
            ("insert into made values (2)", "E23505 Z:I"),
            ("insert into made values (3)", "C:INSERT 0 1 Z:I"),
            ("select a * 10 + one() from made order by a", "T D:11 D:21 D:31 C:SELECT 3 Z:I"),
            ("select a from later", "T D:1 C:SELECT 1 Z:I"),
            ("select count(*) from pg_prepared_xacts", "T D:0 C:SELECT 1 Z:I"),
        ],
    );
}

#[test]
fn a_prepared_transaction_keeps_its_locks_until_it_is_committed() {
    let mut h = harness();
    prepare(&mut h);
    check(&mut h, &HELD);
    // The session that has prepared it may have ended.
    let mut other = h.another();
    other.query("set lock_timeout = '50ms'");
    drop(h);
    check(&mut other, &HELD);
    end(&mut other);
}

#[test]
fn a_prepared_transaction_survives_the_server() {
    let mut h = harness();
    prepare(&mut h);
    let mut h = over(h.kill());
    h.query("set lock_timeout = '50ms'");
    check(&mut h, &HELD);
    let mut h = over(h.kill());
    end(&mut h);
    let mut h = over(h.kill());
    check(
        &mut h,
        &[
            ("select b from p order by a", "T D:one D:zwei D:three C:SELECT 3 Z:I"),
            ("select count(*) from made", "T D:3 C:SELECT 1 Z:I"),
            ("select count(*) from pg_prepared_xacts", "T D:0 C:SELECT 1 Z:I"),
        ],
    );
}

#[test]
fn a_rolled_back_prepared_transaction_leaves_nothing() {
    let mut h = harness();
    prepare(&mut h);
    let mut h = over(h.kill());
    h.query("set lock_timeout = '50ms'");
    check(
        &mut h,
        &[
            ("rollback prepared 'made'", "C:ROLLBACK PREPARED Z:I"),
            ("create table made (a int)", "C:CREATE TABLE Z:I"),
            ("rollback prepared 'rows'", "C:ROLLBACK PREPARED Z:I"),
            ("insert into p values (3, 'drei')", "C:INSERT 0 1 Z:I"),
            ("delete from p where a = 1", "C:DELETE 1 Z:I"),
            ("drop table p, c, made", "C:DROP TABLE Z:I"),
        ],
    );
    let mut h = over(h.kill());
    check(&mut h, &[("select count(*) from pg_prepared_xacts", "T D:0 C:SELECT 1 Z:I")]);
}

#[test]
fn a_transaction_that_cannot_be_prepared_is_rolled_back() {
    let mut h = harness();
    h.query("create table t (a int)");
    for (statement, state) in [
        ("create temp table own (a int)", "E0A000"),
        ("listen something", "E0A000"),
        ("select pg_export_snapshot()", "E0A000"),
        ("declare x cursor with hold for select 1", "E0A000"),
        ("set transaction isolation level serializable; insert into t values (1)", "E0A000"),
    ] {
        h.query("begin");
        assert!(!h.query(statement).contains(" E"), "{statement}");
        assert_eq!(h.query("prepare transaction 'x'"), format!("{state} Z:I"), "{statement}");
    }
    check(
        &mut h,
        &[
            ("select count(*) from t", "T D:0 C:SELECT 1 Z:I"),
            ("select count(*) from pg_prepared_xacts", "T D:0 C:SELECT 1 Z:I"),
            ("select count(*) from pg_locks where pid is null", "T D:0 C:SELECT 1 Z:I"),
        ],
    );
}

/// Others must see the values that it has claimed, and these are not among its bytes.
#[test]
fn a_transaction_that_has_claimed_values_is_not_prepared() {
    check(
        &mut harness(),
        &[
            ("create table t (r int4range, exclude using gist (r with &&))", "C:CREATE TABLE Z:I"),
            ("begin", "C:BEGIN Z:T"),
            ("insert into t values ('[1,2)')", "C:INSERT 0 1 Z:T"),
            ("prepare transaction 'claims'", "E0A000 Z:I"),
            ("begin", "C:BEGIN Z:T"),
            ("savepoint s", "C:SAVEPOINT Z:T"),
            ("insert into t values ('[1,2)')", "C:INSERT 0 1 Z:T"),
            ("rollback to s", "C:ROLLBACK Z:T"),
            ("prepare transaction 'none'", "C:PREPARE TRANSACTION Z:I"),
            ("rollback prepared 'none'", "C:ROLLBACK PREPARED Z:I"),
        ],
    );
}

/// The server starts, whatever prepared transactions have in common that is no value of a unique key.
#[test]
fn prepared_transactions_with_equal_values_in_indexes_survive_the_server() {
    let mut h = harness();
    h.query("create table t (a int, u int unique, g text[]); create index on t (a); create index on t using gin (g)");
    h.query("insert into t values (11, null, '{}'), (12, null, '{}')");
    for (n, name) in [(1, "x"), (2, "y")] {
        h.query("begin");
        assert_eq!(h.query("insert into t values (1, null, '{common}')"), "C:INSERT 0 1 Z:T");
        assert_eq!(h.query(&format!("update t set u = 5 * {n} where a = 10 + {n}")), "C:UPDATE 1 Z:T");
        assert_eq!(h.query(&format!("prepare transaction '{name}'")), "C:PREPARE TRANSACTION Z:I");
    }
    let mut h = over(h.kill());
    h.query("set lock_timeout = '50ms'");
    check(
        &mut h,
        &[
            ("select gid from pg_prepared_xacts order by 1", "T D:x D:y C:SELECT 2 Z:I"),
            ("insert into t values (1, 5)", "E55P03 Z:I"),
            ("insert into t values (1, 6)", "C:INSERT 0 1 Z:I"),
            ("insert into t values (1, null)", "C:INSERT 0 1 Z:I"),
            ("commit prepared 'x'", "C:COMMIT PREPARED Z:I"),
            ("commit prepared 'y'", "C:COMMIT PREPARED Z:I"),
            ("select count(*) from t where a = 1", "T D:4 C:SELECT 1 Z:I"),
            ("select count(*) from t where g @> '{common}'", "T D:2 C:SELECT 1 Z:I"),
        ],
    );
}

fn prepare_unlogged() -> Harness {
    let mut h = harness();
    h.query("create unlogged table ul (id int primary key, v int); create table lg (id int primary key)");
    h.query("insert into ul values (1, 1), (3, 3), (4, 4)");
    h.query("begin");
    h.query("insert into ul values (2, 2)");
    h.query("update ul set v = 100 where id = 3");
    h.query("delete from ul where id = 4");
    h.query("create unlogged table made (a int)");
    h.query("insert into made values (1)");
    h.query("insert into lg values (1)");
    assert_eq!(h.query("prepare transaction 'u'"), "C:PREPARE TRANSACTION Z:I");
    h
}

#[test]
fn a_clean_restart_keeps_what_was_prepared_in_unlogged_tables() {
    let h = prepare_unlogged();
    let mut h = over(h.stop());
    h.query("set lock_timeout = '50ms'");
    check(
        &mut h,
        &[
            ("insert into ul values (2, 22)", "E55P03 Z:I"),
            ("commit prepared 'u'", "C:COMMIT PREPARED Z:I"),
            ("select id * 1000 + v from ul order by 1", "T D:1001 D:2002 D:3100 C:SELECT 3 Z:I"),
            ("select a from made", "T D:1 C:SELECT 1 Z:I"),
            ("select id from lg", "T D:1 C:SELECT 1 Z:I"),
        ],
    );
}

/// A crash has emptied the tables: a clean restart later must not bring half of the rows back.
#[test]
fn a_crash_takes_what_was_prepared_in_unlogged_tables() {
    let h = prepare_unlogged();
    let mut h = over(h.kill());
    assert_eq!(h.query("insert into ul values (7, 7)"), "C:INSERT 0 1 Z:I");
    let mut h = over(h.stop());
    check(
        &mut h,
        &[
            ("commit prepared 'u'", "C:COMMIT PREPARED Z:I"),
            ("select id * 1000 + v from ul order by 1", "T D:7007 C:SELECT 1 Z:I"),
            ("select a from made", "T C:SELECT 0 Z:I"),
            ("select id from lg", "T D:1 C:SELECT 1 Z:I"),
        ],
    );
}

#[test]
fn a_prepared_transaction_that_cannot_be_restored_can_be_rolled_back() {
    let mut h = harness();
    prepare(&mut h);
    let engine = h.engine();
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    // Rows of prepared transactions are the last ones of the first tree.
    let mut scan = t.scan(t.statement_view(), TreeId(1), &[0], &[Datum::Null], &[], None).expect("opens");
    let mut last = None;
    while let Some(batch) = scan.next().expect("scans") {
        let marked = (0..batch.row_ids.len()).filter(|i| batch.columns[0].get(*i).as_bytes().starts_with(&[255; 4]));
        last = marked.map(|i| (batch.row_ids[i], batch.columns[0].get(i))).next_back().or(last);
    }
    drop(scan);
    let (id, key) = last.expect("there is one");
    let row = RowLayout::new(vec![Kind::Bytes, Kind::Bytes]).encode_row(&[key, Datum::bytes(&b"damaged"[..])]);
    t.update(TreeId(1), id, &row).expect("updates");
    t.commit(Durability::Sync).expect("commits");
    drop((t, engine));
    let mut h = over(h.kill());
    check(
        &mut h,
        &[
            ("select gid from pg_prepared_xacts order by 1", "T D:made D:rows C:SELECT 2 Z:I"),
            ("commit prepared 'made'", "EXX001 Z:I"),
            ("commit prepared 'made'", "EXX001 Z:I"),
            ("rollback prepared 'made'", "C:ROLLBACK PREPARED Z:I"),
            ("commit prepared 'rows'", "C:COMMIT PREPARED Z:I"),
            ("create table made (a int)", "C:CREATE TABLE Z:I"),
        ],
    );
    let mut h = over(h.kill());
    check(&mut h, &[("select count(*) from pg_prepared_xacts", "T D:0 C:SELECT 1 Z:I")]);
}
