//! A server that may have few files open serves many tables.

use crate::serving::Serving;
use postgres::Client;

const TABLES: usize = 300;

fn start(data: &std::path::Path) -> Serving {
    Serving::start_limited(data, "-n 160", &["-c", "unix_socket_directories="])
}

fn connect(server: &Serving) -> Client {
    server.connect("postgres", None).expect("connects")
}

fn total(client: &mut Client) -> i64 {
    (0..TABLES)
        .map(|i| client.query_one(&format!("select k from t{i} where k = {i}"), &[]).expect("reads").get::<_, i64>(0))
        .sum()
}

#[test]
fn more_tables_than_open_files() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let expected = (0..TABLES as i64).sum::<i64>();
    let server = start(data.path());
    let mut client = connect(&server);
    for i in 0..TABLES {
        client
            .batch_execute(&format!("create table t{i} (k bigint primary key); insert into t{i} values ({i})"))
            .expect("makes a table");
    }
    drop(client);
    server.stop();
    let segments = || std::fs::read_dir(data.path().join("segments")).expect("segments").count();
    assert!(segments() > 2 * TABLES, "{} segments", segments());

    let server = start(data.path());
    // As many clients as are let in, each of whom reads all tables.
    let mut clients: Vec<Client> = std::iter::repeat_with(|| connect(&server)).take(4).collect();
    clients.iter_mut().for_each(|client| assert_eq!(total(client), expected));
    // Every table gets more segments, and files are removed while others are open.
    for i in 1..TABLES {
        let sql = format!("insert into t{i} values (-1); drop table if exists t{}", if i % 2 == 0 { i - 1 } else { TABLES });
        clients[i % 4].batch_execute(&sql).expect("writes and drops");
    }
    drop(clients);
    server.stop();

    let server = start(data.path());
    let mut client = connect(&server);
    for i in (2..TABLES).step_by(2) {
        let row = client.query_one(&format!("select count(*), max(k) from t{i}"), &[]).expect("reads");
        assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (2, i as i64));
    }
    server.stop();
}
