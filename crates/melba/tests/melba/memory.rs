//! melba_memory: its parts are where the memory is, and their sum is the process's.

use super::serving::Serving;

const PARTS: [&str; 7] = ["process", "row store", "block cache", "memory tables", "samples", "queries", "other"];

/// Bytes in use, and the limit, of each part.
fn parts(client: &mut postgres::Client) -> Vec<(i64, Option<i64>)> {
    let rows = client.query("select name, used_bytes, limit_bytes from melba_memory", &[]).expect("rows");
    assert_eq!(rows.iter().map(|row| row.get::<_, &str>(0)).collect::<Vec<_>>(), PARTS);
    rows.iter().map(|row| (row.get(1), row.get(2))).collect()
}

#[test]
fn memory_is_shown_where_it_is() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let server = Serving::start(data.path(), &["-c", "memory=256MB"]);
    let mut client = server.connect("postgres", None).expect("it connects");
    let before = parts(&mut client);
    assert_eq!(before.iter().map(|part| part.1.is_some()).collect::<Vec<_>>(), [true, true, true, true, true, true, false]);
    assert_eq!(before[5].1, Some(96 << 20), "three eighths are for queries");
    client
        .batch_execute(
            "create table kept (v text) using memory;
             insert into kept select repeat(md5(n::text), 10) from generate_series(1, 20000) n;
             create table t (v text)",
        )
        .expect("it runs");
    // One by one: many rows of a statement are written to segments at once.
    for n in 0..20 {
        let insert = format!("insert into t select repeat(md5(n::text), 10) from generate_series({n}, {n} + 299) n");
        client.batch_execute(&insert).expect("it runs");
    }
    let filled = parts(&mut client);
    let grown = |part: usize| filled[part].0 - before[part].0;
    assert!(grown(1) > 1 << 20 && grown(3) > 6 << 20 && grown(0) > 7 << 20, "{before:?} {filled:?}");
    let all: i64 = filled[1..].iter().map(|part| part.0).sum();
    assert_eq!(filled[0].0, all);
    for (used, limit) in &filled {
        assert!(limit.is_none_or(|limit| (0..=limit).contains(used)), "{filled:?}");
    }
    client.batch_execute("create role reader").expect("it runs");
    let refused = client.batch_execute("set role reader; select * from melba_memory").expect_err("no rights");
    assert_eq!(refused.code(), Some(&postgres::error::SqlState::INSUFFICIENT_PRIVILEGE));
}
