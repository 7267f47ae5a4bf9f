//! Tables that are published as Iceberg in the background, while rows change and the server is killed.

use std::path::Path;
use std::time::{Duration, Instant};

use postgres::Client;
use serde_json::Value;

use super::serving::Serving;

/// The background's time for a snapshot.
const PATIENCE: Duration = Duration::from_secs(60);

/// The metadata of a published table.
fn metadata(table: &Path) -> Value {
    let hint = std::fs::read_to_string(table.join("metadata/version-hint.text")).expect("a hint");
    let text = std::fs::read(table.join(format!("metadata/v{hint}.metadata.json"))).expect("metadata");
    serde_json::from_slice(&text).expect("JSON")
}

/// The rows of the last snapshot, by its summary, and its CSN.
fn summary(table: &Path) -> (i64, i64) {
    let metadata = metadata(table);
    let snapshots = metadata["snapshots"].as_array().expect("snapshots");
    let last = snapshots.iter().find(|s| s["snapshot-id"] == metadata["current-snapshot-id"]).expect("the last snapshot");
    let number = |name: &str| last["summary"][name].as_str().expect("a text").parse::<i64>().expect("a number");
    (number("melba.rows"), number("melba.csn"))
}

fn count(client: &mut Client) -> i64 {
    client.query_one("select count(*) from t", &[]).expect("rows").get(0)
}

#[test]
fn snapshots_are_written_in_the_background_and_survive_a_kill() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let lake = tempfile::tempdir().expect("a temporary directory");
    let table = lake.path().join("public/t");
    let mut server = Some(Serving::start(data.path(), &[]));
    let mut client = server.as_ref().expect("it runs").connect("postgres", None).expect("it connects");
    let create = format!(
        "create table t (id int primary key, v int); insert into t select i, 0 from generate_series(1, 1000) i;
         create publication lake for table t with (format = 'iceberg', location = 'file://{}', snapshot_interval = '50ms')",
        lake.path().display()
    );
    client.batch_execute(&create).expect("it runs");
    let mut before = 0;
    for round in 0..4 {
        let start = Instant::now();
        let mut step = 0;
        // Until it has published what changes meanwhile.
        while start.elapsed() < Duration::from_millis(300)
            || !table.join("metadata/version-hint.text").exists()
            || summary(&table).1 <= before
        {
            assert!(start.elapsed() < PATIENCE, "nothing is published");
            let (id, gone) = (2000 + round * 1000 + step, 1 + (round * 100 + step) % 900);
            let change = format!(
                "insert into t values ({id}, 1); update t set v = v + 1 where id % 97 = {}; delete from t where id = {gone}",
                step % 97
            );
            client.batch_execute(&change).expect("it runs");
            step += 1;
        }
        if let Some(server) = server.take() {
            server.signal("-KILL");
        }
        before = summary(&table).1;
        let started = server.insert(Serving::start(data.path(), &[]));
        client = started.connect("postgres", None).expect("it connects");
        let published: i64 = client.query_one("select melba_publish('lake')", &[]).expect("it publishes").get(0);
        assert!(published >= before, "commits that were published are durable");
        assert_eq!(summary(&table).0, count(&mut client));
    }
    let files = |name: &str| std::fs::read_dir(table.join(name)).expect("a folder").count();
    assert!(files("data") > 0 && files("metadata") > 0);
    let shown = "select count(*) from pg_stat_activity where backend_type = 'publisher' and pid = any (array(select pg_stat_get_backend_idset()))";
    assert_eq!(client.query_one(shown, &[]).expect("rows").get::<_, i64>(0), 1);
}

#[test]
fn mistakes_are_told_and_lose_nothing() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let lake = tempfile::tempdir().expect("a temporary directory");
    let server = Serving::start(data.path(), &[]);
    let mut client = server.connect("postgres", None).expect("it connects");
    let refused = |client: &mut Client, sql: &str| {
        let error = client.batch_execute(sql).expect_err(sql);
        error.as_db_error().map(|e| format!("{} {}", e.code().code(), e.message())).unwrap_or_default()
    };
    let with = |options: &str| format!("create publication lake for table t with ({options})");
    client.batch_execute("create table t (id int); insert into t values (1)").expect("it runs");
    for (options, error) in [
        ("format = 'delta', location = 'file:///x'", "22023 unrecognized value for publication option \"format\": \"delta\""),
        ("format = 'iceberg'", "22023 a publication with format \"iceberg\" needs a location"),
        ("format = 'iceberg', location = '/x'", "22023 location \"/x\" is no URL"),
        ("location = 'file:///x'", "22023 a publication without a format has no location, snapshot_interval and keep"),
        (
            "format = 'iceberg', location = 'file:///x', keep = '1 week'",
            "22023 invalid value for publication option \"keep\": \"1 week\"",
        ),
    ] {
        assert_eq!(refused(&mut client, &with(options)), error);
    }
    std::fs::write(lake.path().join("notes.txt"), "a user's").expect("it is written");
    let options = format!("format = 'iceberg', location = 'file://{}', snapshot_interval = '0'", lake.path().display());
    client.batch_execute(&with(&options)).expect("it runs");
    let publish = "select melba_publish('lake')";
    assert!(refused(&mut client, publish).ends_with("has files that are not of a publication"));
    let error: String = client.query_one("select error from melba_publications", &[]).expect("a row").get(0);
    assert!(error.ends_with("has files that are not of a publication"), "{error}");
    std::fs::remove_file(lake.path().join("notes.txt")).expect("it is there");
    assert!(refused(&mut client, "begin; insert into t values (2); select melba_publish('lake')").starts_with("25001"));
    client.batch_execute("rollback").expect("it runs");
    client.batch_execute(publish).expect("it publishes");
    assert!(client.query_one("select error is null and csn > 0 from melba_publications", &[]).expect("a row").get::<_, bool>(0));
    let another = with(&options).replace("publication lake", "publication other");
    client.batch_execute(&another).expect("it runs");
    assert!(refused(&mut client, "select melba_publish('other')").ends_with("has the tables of another publication"));
    client.batch_execute("create role reader; set role reader").expect("it runs");
    assert_eq!(refused(&mut client, publish), "42501 must be owner of publication lake");
    client
        .batch_execute("reset role; drop table t; create table t (id text); alter publication lake add table t")
        .expect("it runs");
    client.batch_execute(publish).expect("it publishes");
    assert_eq!(summary(&lake.path().join("public/t")).0, 1, "the table that was dropped stays");
}
