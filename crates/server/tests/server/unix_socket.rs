//! Clients that come by a Unix-domain socket: the same as others, but that they have no address.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use crate::running::{Peer, Running, startup};
use postgres::error::SqlState;
use postgres::{Client, Config, NoTls};

struct Local {
    server: Running,
    folder: tempfile::TempDir,
}

impl Local {
    fn start() -> Local {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let server = Running::start(&[("unix_socket_directories", &folder.path().display().to_string())]);
        Local { server, folder }
    }

    fn config(&self) -> Config {
        let mut config = Config::new();
        config.host_path(self.folder.path()).port(self.server.address.port()).user("postgres").dbname("postgres");
        config
    }

    fn connect(&self) -> Client {
        self.config().connect(NoTls).expect("connects")
    }

    /// By TCP.
    fn connect_far(&self) -> Client {
        let mut config = Config::new();
        config.host("127.0.0.1").port(self.server.address.port()).user("postgres").dbname("postgres");
        config.connect(NoTls).expect("connects")
    }

    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).expect("a folder");
        let mut names: Vec<String> = entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

const ENDS: &str = "select host(inet_client_addr()), inet_client_port(), host(inet_server_addr()), inet_server_port(),
    host(client_addr), client_port, client_hostname from pg_stat_activity where pid = pg_backend_pid()";

#[test]
fn clients_of_a_socket_have_no_address() {
    let local = Local::start();
    let row = local.connect().query_one(ENDS, &[]).expect("a row");
    for column in [0, 2, 4, 6] {
        assert_eq!(row.get::<_, Option<&str>>(column), None, "column {column}");
    }
    assert_eq!([1, 3, 5].map(|c| row.get::<_, Option<i32>>(c)), [None, None, Some(-1)]);
    let row = local.connect_far().query_one(ENDS, &[]).expect("a row");
    for column in [0, 2, 4] {
        assert_eq!(row.get::<_, Option<&str>>(column), Some("127.0.0.1"), "column {column}");
    }
    let client_port = row.get::<_, Option<i32>>(1);
    assert!(client_port.is_some_and(|p| p > 0) && client_port == row.get(5));
    assert_eq!(row.get::<_, i32>(3), i32::from(local.server.address.port()));
}

#[test]
fn settings_say_where_it_listens() {
    let local = Local::start();
    let mut client = local.connect();
    let mut show = |name: &str| client.query_one(&format!("show {name}"), &[]).expect("a row").get::<_, String>(0);
    assert_eq!(show("unix_socket_directories"), local.folder.path().display().to_string());
    assert_eq!((show("unix_socket_permissions"), show("unix_socket_group")), ("0777".to_owned(), String::new()));
    assert_eq!((show("port"), show("listen_addresses")), (local.server.address.port().to_string(), "127.0.0.1".to_owned()));
    let select = "select setting, boot_val, vartype, context from pg_settings where name = 'unix_socket_permissions'";
    let row = client.query_one(select, &[]).expect("a row");
    assert_eq!([0, 1, 2, 3].map(|c| row.get::<_, &str>(c)), ["0777", "511", "integer", "postmaster"]);
}

#[test]
fn copies_and_large_values_pass() {
    let local = Local::start();
    let mut client = local.connect();
    client.batch_execute("create table t (id int, v text)").expect("makes a table");
    let mut writer = client.copy_in("copy t from stdin").expect("copies");
    let lines: String = (0..200_000).map(|n| format!("{n}\tvalue of {n}\n")).collect();
    writer.write_all(lines.as_bytes()).expect("sends");
    assert_eq!(writer.finish().expect("ends"), 200_000);
    let mut back = String::new();
    client.copy_out("copy t to stdout").expect("copies").read_to_string(&mut back).expect("receives");
    assert!(back == lines, "what came back is what was sent");
    let long: String = client.query_one("select string_agg(v, ' ' order by id) from t", &[]).expect("a row").get(0);
    assert!(long.starts_with("value of 0 value of 1 ") && long.ends_with("value of 199999"));
    assert_eq!(client.query_one("select length($1::text)", &[&long]).expect("a row").get::<_, i32>(0), long.len() as i32);
}

fn sleep_code(client: &mut Client) -> Option<SqlState> {
    client.batch_execute("select pg_sleep(600)").expect_err("is ended").code().cloned()
}

#[test]
fn statements_can_be_ended() {
    let local = Local::start();
    let mut client = local.connect();
    let mut other = local.connect();
    let pid: i32 = client.query_one("select pg_backend_pid()", &[]).expect("a row").get(0);
    let wait_until_active = |other: &mut Client| {
        let active = "select from pg_stat_activity where pid = $1 and state = 'active' and query like '%pg_sleep%'";
        while other.query(active, &[&pid]).expect("rows").is_empty() {
            std::thread::yield_now();
        }
    };
    let cancel = client.cancel_token();
    std::thread::scope(|scope| {
        let sleeping = scope.spawn(|| sleep_code(&mut client));
        wait_until_active(&mut other);
        cancel.cancel_query(NoTls).expect("the request is taken");
        assert_eq!(sleeping.join().expect("no panic"), Some(SqlState::QUERY_CANCELED));
    });
    client.batch_execute("set statement_timeout = 1").expect("sets");
    assert_eq!(sleep_code(&mut client), Some(SqlState::QUERY_CANCELED));
}

/// Reads what the server sends as it is: libraries may tell of the closed connection instead of the error before it.
fn log_in_raw(local: &Local) -> Peer {
    let path = local.folder.path().join(format!(".s.PGSQL.{}", local.server.address.port()));
    let socket = UnixStream::connect(path).expect("the server listens");
    // All that is done with it is reading and writing, which is the same for both kinds.
    let mut peer = Peer(TcpStream::from(OwnedFd::from(socket)));
    peer.send(&startup(b"user\0postgres\0"));
    assert!(peer.until(b'Z').ends_with('Z'));
    peer
}

#[test]
fn sessions_can_be_terminated() {
    let local = Local::start();
    let (mut idle, mut busy) = (log_in_raw(&local), log_in_raw(&local));
    let mut other = local.connect();
    busy.send(b"Q\0\0\0\x19select pg_sleep(600)\0");
    let active = "select from pg_stat_activity where state = 'active' and pid <> pg_backend_pid()";
    while other.query(active, &[]).expect("rows").is_empty() {
        std::thread::yield_now();
    }
    let end = "select count(pg_terminate_backend(pid)) from pg_stat_activity where pid <> pg_backend_pid()";
    assert_eq!(other.query_one(end, &[]).expect("a row").get::<_, i64>(0), 2);
    for peer in [&mut idle, &mut busy] {
        let answer = peer.until(b'Z');
        assert!(answer.ends_with("E[FATAL 57P01]"), "{answer}");
    }
}

#[test]
fn the_files_go_when_the_server_stops() {
    let mut local = Local::start();
    let port = local.server.address.port();
    assert_eq!(local.files(), [format!(".s.PGSQL.{port}"), format!(".s.PGSQL.{port}.lock")]);
    let lock = std::fs::read_to_string(local.folder.path().join(format!(".s.PGSQL.{port}.lock"))).expect("a lock file");
    let lines: Vec<&str> = lock.lines().collect();
    let (pid, folder) = (std::process::id().to_string(), local.folder.path().display().to_string());
    assert_eq!((lines.len(), lines[0], lines[3], lines[4]), (5, &*pid, &*port.to_string(), &*folder));
    let mut idle = local.connect();
    local.server.stop();
    assert!(local.files().is_empty());
    assert!(idle.batch_execute("select 1").is_err());
    assert!(local.config().connect(NoTls).is_err());
}
