//! melba_flushes and melba_merges: what background work has done.

use std::time::{Duration, Instant};

use super::serving::Serving;

/// The background's time for a merge that is due.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn flushes_and_merges_are_shown() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let server = Serving::start(data.path(), &[]);
    let mut client = server.connect("postgres", None).expect("it connects");
    for statement in [
        "create table t (id int primary key, v text)",
        "insert into t select n, n from generate_series(1, 1000) n",
        "checkpoint",
        "update t set v = v || 'x'",
        "checkpoint",
    ] {
        client.batch_execute(statement).expect("it runs");
    }
    let flushes = client
        .query(
            "select trees >= 2 and segments >= 2 and bytes > 1000 and duration >= 0 and started_at between now() - '1 h'::interval and now()
             from melba_flushes where segments > 0 order by started_at",
            &[],
        )
        .expect("rows");
    assert!(flushes.len() >= 2 && flushes[0].get(0), "{flushes:?}");
    let sums =
        "select num_done >= 2 and num_done = num_requested and buffers_written >= 2 and write_time > 0 from pg_stat_checkpointer";
    assert!(client.query_one(sums, &[]).expect("a row").get::<_, bool>(0));
    let start = Instant::now();
    let merges = loop {
        let merges = client
            .query(
                "select schemaname::text || '.' || relname || ' ' || place, relid = 't'::regclass, segments_before, segments_after,
                        bytes_before > bytes_after and bytes_after > 0
                 from melba_merges where relname = 't' order by started_at desc limit 1",
                &[],
            )
            .expect("rows");
        if !merges.is_empty() || start.elapsed() > PATIENCE {
            break merges;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let [last] = &merges[..] else { panic!("{merges:?}") };
    assert_eq!((last.get(0), last.get(1)), ("public.t row", true));
    assert!(last.get::<_, i64>(2) >= 2 && last.get::<_, i64>(3) >= 1 && last.get(4), "{last:?}");
    client.batch_execute("create role reader").expect("it runs");
    let refused = client.batch_execute("set role reader; select * from melba_merges").expect_err("no rights");
    assert_eq!(refused.code(), Some(&postgres::error::SqlState::INSUFFICIENT_PRIVILEGE));
}
