//! A server that gets no more memory from the system ends the statement that asks, not itself.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use postgres::{Client, NoTls};

/// Stacks of sessions, and what the allocator sets aside, are a part of it.
const ADDRESS_SPACE_KILOBYTES: usize = 3 << 20;

/// A server under a limit of address space; killed when dropped.
struct Limited {
    child: Child,
    port: u16,
}

impl Limited {
    /// `memory` is more than the system gives, so that the server's own limits say nothing.
    fn start(data: &Path) -> Limited {
        let script = format!(
            "ulimit -v {ADDRESS_SPACE_KILOBYTES}; exec \"$0\" serve --data \"$1\" --listen 127.0.0.1:0 \
             -c fsync=off -c unix_socket_directories= -c memory=64GB -c shared_buffers=64MB -c work_mem=20GB"
        );
        let mut child = Command::new("sh")
            .args(["-c", &script, env!("CARGO_BIN_EXE_melba")])
            .arg(data)
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut ready = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut ready).expect("a line");
        let mut words = ready.split_whitespace().skip_while(|w| *w != "-p").skip(1);
        let port = words.next().and_then(|p| p.parse().ok());
        Limited { child, port: port.unwrap_or_else(|| panic!("the server says {ready:?}")) }
    }

    fn connect(&self) -> Client {
        let config = format!("host=127.0.0.1 port={} user=postgres dbname=postgres", self.port);
        Client::connect(&config, NoTls).expect("connects")
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        // The server may be gone already; either way nothing is left of it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn memory_that_the_system_refuses_ends_the_statement() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let server = Limited::start(folder.path());
    let mut other = server.connect();
    other.batch_execute("create table t (id int primary key); insert into t select generate_series(1, 1000)").expect("a table");
    for sql in [
        "select length(repeat('x', 1000000000) || repeat('y', 70000000))",
        "select length(repeat('x', 700000000) || repeat('y', 300000000) || repeat('y', 300000000))",
        "select length(string_agg(repeat('x', 1000000), ',')) from generate_series(1, 1070) i",
        "select length(replace(repeat('ab', 200000000), 'b', 'yy'))",
        "select array_length(array_agg(repeat('x', 100000) || i), 1) from generate_series(1, 40000) i",
    ] {
        let state = match server.connect().simple_query(sql) {
            Ok(_) => String::new(),
            Err(e) => e.code().unwrap_or_else(|| panic!("the connection was lost: {sql}: {e}")).code().to_owned(),
        };
        assert!(["53200", "54000", "XX000"].contains(&&*state), "{sql}: {state:?}");
        let count: i64 = other.query_one("select count(*) from t", &[]).expect("the server lives").get(0);
        assert_eq!(count, 1000, "after {sql}");
    }
    other.execute("insert into t select generate_series(1001, 2000)", &[]).expect("and writes");
}
