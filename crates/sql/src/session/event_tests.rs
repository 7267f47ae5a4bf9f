//! Events of many rows: their memory, and what savepoints restore.

use melba_engine::EngineOptions;

use super::tests::Harness;

const SETUP: &str = "
    set work_mem = '64kB';
    create table p (id int primary key, filler text);
    insert into p select i, repeat('x', 100) from generate_series(1, 5000) i;
    create table c (id int, p int references p deferrable initially deferred);
    create index on c (p);
    insert into c select i, i from generate_series(1, 5000) i;
";

fn harness() -> Harness {
    let mut h = Harness::with_options(EngineOptions { query_bytes: 8 << 20, ..EngineOptions::default() });
    let said = h.query(SETUP);
    assert!(!said.contains(" E") && said.ends_with("Z:I"), "{said}");
    h
}

/// Bytes written to temporary files.
fn spilled(h: &Harness) -> u64 {
    h.engine().temp_counters().1
}

#[test]
fn rows_that_follow_each_other_are_one_event() {
    let mut h = harness();
    let before = spilled(&h);
    let load = "insert into c select i, i % 5000 + 1 from generate_series(1, 15000) i";
    for text in [load, "update c set p = p % 5000 + 1", "update c set p = case when p > 1 then p - 1 else 5000 end"] {
        let said = h.query(&format!("begin; {text}"));
        assert!(said.ends_with("Z:T"), "{said}");
        assert!(h.query("commit").ends_with("C:COMMIT Z:I"), "{text}");
        assert_eq!(spilled(&h), before, "{text}");
    }
    assert_eq!(h.engine().query_memory().reserved(), 0);
}

#[test]
fn rows_here_and_there_spill_and_are_checked_as_they_are_at_the_end() {
    let mut h = harness();
    let before = spilled(&h);
    h.query("begin; update c set p = 20000 + id where id % 2 = 0");
    assert!(spilled(&h) > before, "2500 events are more than 64 kB");
    assert!(h.engine().query_memory().reserved() <= 8 << 20);
    assert_eq!(
        h.query("update c set p = id where id % 2 = 0 and id <> 3770; savepoint a; delete from c where id = 3770"),
        "C:UPDATE 2499 C:SAVEPOINT C:DELETE 1 Z:T"
    );
    assert_eq!(h.query("commit"), "C:COMMIT Z:I");
    h.query("begin; update c set p = 20000 + id where id % 2 = 0");
    h.query("update c set p = id where id % 2 = 0 and id <> 4880");
    assert_eq!(h.query("commit"), "E23503 Z:I");
    assert_eq!(h.engine().query_memory().reserved(), 0);
}

#[test]
fn a_savepoint_leaves_the_events_before_it() {
    // Enough before the savepoint that it lies within the spilled events, or beyond.
    for before in [10, 2048, 2500] {
        let mut h = harness();
        h.query("alter table c drop constraint c_p_fkey, add foreign key (p) references p on update no action deferrable initially deferred");
        h.query(&format!("begin; delete from p where id <= {before}; savepoint a; delete from p; rollback to a"));
        assert_eq!(h.query(&format!("delete from c where p <= {before}; commit")), format!("C:DELETE {before} C:COMMIT Z:I"));
        h.query(&format!("begin; delete from p where id <= {before} + 2100; savepoint a; delete from p; rollback to a"));
        h.query(&format!("savepoint b; delete from c where p < {before} + 2100"));
        assert_eq!(h.query("commit"), "E23503 Z:I", "of {before}");
        assert_eq!(h.engine().query_memory().reserved(), 0);
    }
}

#[test]
fn deferred_checks_are_repeated_after_a_rollback_to_a_savepoint() {
    let mut h = harness();
    h.query("begin; update c set p = 20000 + id where id % 2 = 0; savepoint a");
    h.query("insert into p select i from generate_series(20001, 30000) i");
    assert_eq!(h.query("set constraints all immediate"), "C:SET CONSTRAINTS Z:T");
    assert_eq!(
        h.query("savepoint b; set constraints all deferred; rollback to b"),
        "C:SAVEPOINT C:SET CONSTRAINTS C:ROLLBACK Z:T"
    );
    assert_eq!(h.query("update c set p = 0 where id = 1"), "E23503 Z:E");
    assert_eq!(h.query("rollback to a; commit"), "C:ROLLBACK E23503 Z:I");
    assert_eq!(h.query("select count(*) from c where p > 5000"), "T D:0 C:SELECT 1 Z:I");
}
