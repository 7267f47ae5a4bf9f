//! DETACH PARTITION CONCURRENTLY between its transactions: what remains after an error and after a crash, and for whom it waits.

use std::sync::Arc;

use melba_engine::EngineOptions;

use super::tests::Harness;

const SETUP: &str = "
    create table p (a int primary key) partition by list (a);
    create table p1 partition of p for values in (1);
    create table p2 partition of p for values in (2);
    insert into p values (1), (2);
";

fn harness() -> Harness {
    over(Arc::new(tempfile::tempdir().expect("a temporary directory")))
}

fn over(data: Arc<tempfile::TempDir>) -> Harness {
    Harness::over(data, EngineOptions::default(), &[("max_prepared_transactions".to_owned(), "1".to_owned())])
}

fn check(h: &mut Harness, answers: &[(&str, &str)]) {
    for (query, answer) in answers {
        assert_eq!(h.query(query), *answer, "{query}");
    }
}

/// A partition whose detach is pending: another session keeps the second transaction waiting, until `lock_timeout` ends it.
fn pending() -> Harness {
    let mut h = harness();
    assert!(!h.query(SETUP).contains(" E"));
    let mut reader = h.another();
    check(&mut reader, &[("begin", "C:BEGIN Z:T"), ("select count(*) from p", "T D:2 C:SELECT 1 Z:T")]);
    check(
        &mut h,
        &[
            ("set lock_timeout = '20ms'", "C:SET Z:I"),
            ("alter table p detach partition p2 concurrently", "E55P03 Z:I"),
            ("select inhrelid::regclass from pg_inherits where inhdetachpending", "T D:p2 C:SELECT 1 Z:I"),
        ],
    );
    check(&mut reader, &[("commit", "C:COMMIT Z:I")]);
    h
}

const HELD: [(&str, &str); 5] = [
    ("select count(*) from p", "T D:1 C:SELECT 1 Z:I"),
    ("insert into p values (2)", "E23514 Z:I"),
    ("select count(*) from p2", "T D:1 C:SELECT 1 Z:I"),
    ("alter table p detach partition p1 concurrently", "E55000 Z:I"),
    ("alter table p2 add b int", "E55000 Z:I"),
];

#[test]
fn a_pending_detach_survives_a_crash() {
    let mut h = pending();
    check(&mut h, &HELD);
    let mut h = over(h.kill());
    check(&mut h, &HELD);
    check(
        &mut h,
        &[
            // No snapshot is older than the server.
            ("begin isolation level repeatable read", "C:BEGIN Z:T"),
            ("select count(*) from p", "T D:1 C:SELECT 1 Z:T"),
            ("commit", "C:COMMIT Z:I"),
            ("alter table p detach partition p2 finalize", "C:ALTER TABLE Z:I"),
            ("alter table p attach partition p2 for values in (2)", "C:ALTER TABLE Z:I"),
            ("select count(*) from p", "T D:2 C:SELECT 1 Z:I"),
        ],
    );
}

#[test]
fn a_transaction_s_catalog_with_the_partition_is_not_that_of_the_next() {
    let mut h = harness();
    assert!(!h.query(SETUP).contains(" E"));
    let mut old = h.another();
    check(
        &mut old,
        &[
            ("prepare q as select count(*) from p", "C:PREPARE Z:I"),
            ("begin isolation level repeatable read", "C:BEGIN Z:T"),
            ("select count(*) from p", "T D:2 C:SELECT 1 Z:T"),
        ],
    );
    check(
        &mut h,
        &[("set lock_timeout = '20ms'", "C:SET Z:I"), ("alter table p detach partition p2 concurrently", "E55P03 Z:I")],
    );
    check(
        &mut old,
        &[
            ("execute q", "T D:2 C:SELECT 1 Z:T"),
            ("delete from p where a = 2", "C:DELETE 1 Z:T"),
            ("insert into p values (2)", "C:INSERT 0 1 Z:T"),
            ("create table also (a int)", "C:CREATE TABLE Z:T"),
            ("execute q", "T D:2 C:SELECT 1 Z:T"),
            ("commit", "C:COMMIT Z:I"),
            ("execute q", "T D:1 C:SELECT 1 Z:I"),
            ("select count(*) from p", "T D:1 C:SELECT 1 Z:I"),
            ("select inhrelid::regclass from pg_inherits where inhdetachpending", "T D:p2 C:SELECT 1 Z:I"),
        ],
    );
}

#[test]
fn a_prepared_transaction_is_waited_for() {
    let mut h = harness();
    assert!(!h.query(SETUP).contains(" E"));
    check(
        &mut h,
        &[
            ("begin", "C:BEGIN Z:T"),
            ("delete from p where a = 1", "C:DELETE 1 Z:T"),
            ("prepare transaction 'one'", "C:PREPARE TRANSACTION Z:I"),
            ("set lock_timeout = '20ms'", "C:SET Z:I"),
            ("alter table p detach partition p2 concurrently", "E55P03 Z:I"),
            ("commit prepared 'one'", "C:COMMIT PREPARED Z:I"),
            ("alter table p detach partition p2 finalize", "C:ALTER TABLE Z:I"),
            ("alter table p detach partition p1 concurrently", "C:ALTER TABLE Z:I"),
        ],
    );
}
