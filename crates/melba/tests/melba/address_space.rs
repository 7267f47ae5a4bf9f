//! A server that gets no more memory from the system ends the statement that asks, not itself.

use crate::serving::Serving;
use postgres::Client;

/// Stacks of sessions and of threads with sessions, and what the allocator sets aside, are a part of it.
const ADDRESS_SPACE: &str = "-v 3407872";
/// `memory` is more than the system gives, so that the server's own limits say nothing.
const OPTIONS: [&str; 8] =
    ["-c", "unix_socket_directories=", "-c", "memory=64GB", "-c", "shared_buffers=64MB", "-c", "work_mem=20GB"];

fn connect(server: &Serving) -> Client {
    server.connect("postgres", None).expect("connects")
}

#[test]
fn memory_that_the_system_refuses_ends_the_statement() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let server = Serving::start_limited(folder.path(), ADDRESS_SPACE, &OPTIONS);
    let mut other = connect(&server);
    other.batch_execute("create table t (id int primary key); insert into t select generate_series(1, 1000)").expect("a table");
    for sql in [
        "select length(repeat('x', 1000000000) || repeat('y', 70000000))",
        "select length(repeat('x', 700000000) || repeat('y', 300000000) || repeat('y', 300000000))",
        "select length(string_agg(repeat('x', 1000000), ',')) from generate_series(1, 1070) i",
        "select length(replace(repeat('ab', 200000000), 'b', 'yy'))",
        "select array_length(array_agg(repeat('x', 100000) || i), 1) from generate_series(1, 40000) i",
    ] {
        let state = match connect(&server).simple_query(sql) {
            Ok(_) => String::new(),
            Err(e) => e.code().unwrap_or_else(|| panic!("the connection was lost: {sql}: {e}")).code().to_owned(),
        };
        assert!(["53200", "54000", "XX000"].contains(&&*state), "{sql}: {state:?}");
        let count: i64 = other.query_one("select count(*) from t", &[]).expect("the server lives").get(0);
        assert_eq!(count, 1000, "after {sql}");
    }
    other.execute("insert into t select generate_series(1001, 2000)", &[]).expect("and writes");
}
