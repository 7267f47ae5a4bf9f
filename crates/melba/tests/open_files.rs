//! A server that may have few files open serves many tables.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use postgres::{Client, NoTls};

const TABLES: usize = 300;

/// A server under a limit of open files; killed when dropped.
struct Limited {
    child: Child,
    port: u16,
}

impl Limited {
    fn start(data: &Path, open_files: usize) -> Limited {
        let script = format!(
            "ulimit -n {open_files}; exec \"$0\" serve --data \"$1\" --listen 127.0.0.1:0 -c fsync=off -c unix_socket_directories="
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

impl Limited {
    /// Stops as a service manager would: everything is in segments afterwards.
    fn stop(mut self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs").success());
        assert!(self.child.wait().expect("ends").success());
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        // The server may be gone already; either way nothing is left of it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
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
    let server = Limited::start(data.path(), 160);
    let mut client = server.connect();
    for i in 0..TABLES {
        client
            .batch_execute(&format!("create table t{i} (k bigint primary key); insert into t{i} values ({i})"))
            .expect("makes a table");
    }
    drop(client);
    server.stop();
    let segments = || std::fs::read_dir(data.path().join("segments")).expect("segments").count();
    assert!(segments() > 2 * TABLES, "{} segments", segments());

    let server = Limited::start(data.path(), 160);
    // As many clients as are let in, each of whom reads all tables.
    let mut clients: Vec<Client> = std::iter::repeat_with(|| server.connect()).take(4).collect();
    clients.iter_mut().for_each(|client| assert_eq!(total(client), expected));
    // Every table gets more segments, and files are removed while others are open.
    for i in 1..TABLES {
        let sql = format!("insert into t{i} values (-1); drop table if exists t{}", if i % 2 == 0 { i - 1 } else { TABLES });
        clients[i % 4].batch_execute(&sql).expect("writes and drops");
    }
    drop(clients);
    server.stop();

    let server = Limited::start(data.path(), 160);
    let mut client = server.connect();
    for i in (2..TABLES).step_by(2) {
        let row = client.query_one(&format!("select count(*), max(k) from t{i}"), &[]).expect("reads");
        assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (2, i as i64));
    }
    server.stop();
}
