//! Several threads collect an aggregate: they are started where there are processors for them, and end with the statement.

use crate::serving::Serving;
use postgres::{Client, SimpleQueryMessage};

fn connect(server: &Serving) -> Client {
    let mut client = server.connect("postgres", None).expect("connects");
    client.batch_execute("set min_parallel_table_scan_size = 0").expect("a setting");
    client
}

/// The lines that a query gives.
fn lines(client: &mut Client, sql: &str) -> Vec<String> {
    let messages = client.simple_query(sql).expect(sql);
    let line = |message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(|line| line.trim().to_owned()),
        _ => None,
    };
    messages.into_iter().filter_map(line).collect()
}

fn count(client: &mut Client) -> i64 {
    client.query_one("select count(*) from t", &[]).expect("the server lives").get(0)
}

#[test]
fn members_of_a_team_start_and_end_with_the_statement() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let server = Serving::start(folder.path(), &["-c", "unix_socket_directories="]);
    let mut client = connect(&server);
    client
        .batch_execute("create table t as select i as id, i % 5 as k from generate_series(1, 200000) i; checkpoint")
        .expect("a table");
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let explain = "explain (analyze, costs off, timing off) select k, count(*) from t where id > 7 group by k";
    let plan = lines(&mut client, explain);
    let launched = format!("Workers Launched: {}", (processors - 1).min(2));
    assert!(plan.contains(&launched), "{plan:?}");
    client.batch_execute("set max_parallel_workers = 0").expect("a setting");
    let plan = lines(&mut client, explain);
    assert!(plan.contains(&"Workers Launched: 0".to_owned()), "{plan:?}");
    client.batch_execute("reset max_parallel_workers; set max_parallel_workers_per_gather = 0").expect("a setting");
    assert!(!lines(&mut client, explain).iter().any(|line| line.contains("Parallel")));

    // A timeout, an error and the end of a client end all members: afterwards they are there for others.
    client.batch_execute("reset max_parallel_workers_per_gather; set statement_timeout = '300ms'").expect("a setting");
    let slow = "select sum(length(repeat(md5(id::text), 10000))) from t";
    let state = |result: Result<_, postgres::Error>| result.err().and_then(|e| e.code().map(|code| code.code().to_owned()));
    assert_eq!(state(client.simple_query(slow)).as_deref(), Some("57014"));
    client.batch_execute("set statement_timeout = 0").expect("a setting");
    assert_eq!(state(client.simple_query("select sum(1 / (id - 150000)) from t")).as_deref(), Some("22012"));
    assert_eq!(count(&mut client), 200_000);
    let clients: Vec<Client> = (0..4).map(|_| connect(&server)).collect();
    let threads: Vec<_> =
        clients.into_iter().map(|mut c| std::thread::spawn(move || (0..20).all(|_| count(&mut c) == 200_000))).collect();
    assert!(threads.into_iter().all(|thread| thread.join().expect("answers")));
    let plan = lines(&mut client, explain);
    assert!(plan.contains(&launched), "{plan:?}");
}
