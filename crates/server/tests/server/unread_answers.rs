//! Clients that do not read, do not speak or have gone: their sessions can be ended, and take nothing with them.

use std::io::Read;
use std::net::Shutdown;
use std::time::{Duration, Instant};

use crate::running::{Peer, Running, startup};

/// More than the sockets of a connection take.
const LARGE: &str = "select repeat('x', 1000) from generate_series(1, 100000)";

fn ask(peer: &mut Peer, text: &str) {
    let mut message = vec![b'Q'];
    message.extend_from_slice(&(text.len() as u32 + 5).to_be_bytes());
    message.extend_from_slice(text.as_bytes());
    message.push(0);
    peer.send(&message);
}

/// The only value of a query's answer.
fn value(peer: &mut Peer, text: &str) -> String {
    ask(peer, text);
    let mut value = None;
    loop {
        match peer.body() {
            Some((b'D', row)) => value = Some(String::from_utf8_lossy(&row[6..]).into_owned()),
            Some((b'Z', _)) => return value.expect("a row"),
            Some(_) => {}
            None => panic!("{text}: the connection has ended"),
        }
    }
}

/// Waits for a query's answer to be that value.
fn await_value(peer: &mut Peer, text: &str, expected: &str) {
    let began = Instant::now();
    while value(peer, text) != expected {
        assert!(began.elapsed() < Duration::from_secs(20), "{text} is not {expected}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn await_end(peer: &mut Peer, pid: &str) {
    await_value(peer, &format!("select count(*) from pg_stat_activity where pid = {pid}"), "0");
}

/// A session that sends a large answer which its client does not read, in a transaction that has changed the table t.
fn deaf(server: &Running, settings: &str) -> (Peer, String) {
    let mut peer = server.log_in();
    let pid = value(&mut peer, "select pg_backend_pid()");
    peer.query(&format!("{settings}; begin; update t set n = n + 1"));
    ask(&mut peer, LARGE);
    (peer, pid)
}

fn with_table() -> (Running, Peer) {
    let server = Running::start(&[]);
    let mut other = server.log_in();
    assert_eq!(other.query("create table t (n int); insert into t values (0)"), "CCZ");
    (server, other)
}

#[test]
fn a_session_whose_client_does_not_read_can_be_terminated() {
    let (server, mut other) = with_table();
    let sessions: Vec<_> = (0..4).map(|_| server.log_in()).collect();
    let (_peer, pid) = deaf(&server, "set work_mem = '4MB'");
    // Idle ones are not in its way.
    drop(sessions);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(value(&mut other, &format!("select pg_terminate_backend({pid})")), "t");
    await_end(&mut other, &pid);
    assert_eq!(other.query("update t set n = n + 1"), "CZ", "its locks are gone");
    assert_eq!(value(&mut other, "select n from t"), "1", "its transaction was rolled back");
}

#[test]
fn a_statement_timeout_waits_for_the_client_to_read() {
    let (server, mut other) = with_table();
    let (mut peer, pid) = deaf(&server, "set statement_timeout = '500ms'");
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(value(&mut other, &format!("select count(*) from pg_stat_activity where pid = {pid}")), "1");
    let answer = peer.until(b'Z');
    assert!(answer.starts_with("TD") && answer.ends_with("DE[ERROR 57014]Z"), "as PostgreSQL: {}", answer.replace('D', ""));
}

/// Notices that fill the socket while a function runs.
const TELLING: &str = "do $$ begin loop raise notice '%', repeat('x', 10000); end loop; end $$";

#[test]
fn notices_that_are_not_read_keep_nobody_else_waiting() {
    let (server, mut other) = with_table();
    let deaf: Vec<_> = (0..8)
        .map(|_| {
            let mut peer = server.log_in();
            let pid = value(&mut peer, "select pg_backend_pid()");
            assert_eq!(peer.query("begin; lock table t in access share mode"), "CCZ");
            ask(&mut peer, TELLING);
            (peer, pid)
        })
        .collect();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(other.query("update t set n = n + 1"), "CZ");
    assert_eq!(server.log_in().query("select n from t"), "TDCZ");
    for (_, pid) in &deaf {
        assert_eq!(value(&mut other, &format!("select pg_terminate_backend({pid})")), "t");
        await_end(&mut other, pid);
    }
    assert_eq!(other.query("drop table t"), "CZ", "their locks are gone");
}

#[test]
fn a_function_ends_when_its_notices_find_no_client() {
    let (server, mut other) = with_table();
    let mut peer = server.log_in();
    let pid = value(&mut peer, "select pg_backend_pid()");
    ask(&mut peer, TELLING);
    drop(peer);
    await_end(&mut other, &pid);
}

/// Answers that are not read, between statements.
fn unread(peer: &mut Peer) {
    // The client may find the connection closed while it still asks.
    let mut questions = Vec::new();
    for _ in 0..400 {
        let text = "select repeat('x', 60000)";
        questions.push(b'Q');
        questions.extend_from_slice(&(text.len() as u32 + 5).to_be_bytes());
        questions.extend_from_slice(text.as_bytes());
        questions.push(0);
    }
    peer.send(&questions);
}

#[test]
fn idle_timeouts_end_sessions_whose_clients_do_not_read() {
    let (server, mut other) = with_table();
    let mut idle = server.log_in();
    let idle_pid = value(&mut idle, "select pg_backend_pid()");
    assert_eq!(idle.query("set idle_session_timeout = '500ms'"), "CZ");
    unread(&mut idle);
    let mut in_block = server.log_in();
    let block_pid = value(&mut in_block, "select pg_backend_pid()");
    assert_eq!(in_block.query("set idle_in_transaction_session_timeout = '500ms'; begin; update t set n = n + 1"), "CCCZ");
    unread(&mut in_block);
    await_end(&mut other, &idle_pid);
    await_end(&mut other, &block_pid);
    assert_eq!(other.query("update t set n = n + 1"), "CZ", "its locks are gone");
}

#[test]
fn a_stop_waits_neither_for_clients_that_do_not_read_nor_for_silent_ones() {
    let (mut server, other) = with_table();
    let (_deaf, _) = deaf(&server, "set work_mem = '4MB'");
    let mut full = server.log_in();
    unread(&mut full);
    let _silent = server.connect();
    drop(other);
    std::thread::sleep(Duration::from_millis(300));
    let began = Instant::now();
    server.stop();
    assert!(began.elapsed() < Duration::from_secs(4), "it took {:?}", began.elapsed());
}

#[test]
fn clients_that_leave_before_they_start_are_not_answered() {
    let server = Running::start(&[]);
    for first in [&b"X\0\0\0\x04"[..], b"", b"GET / HTTP/1.0\r\n\r\n", &[0, 0, 0, 0, 0, 0], &[0, 0, 0, 8, 0, 3]] {
        let mut peer = server.connect();
        peer.send(first);
        peer.0.shutdown(Shutdown::Write).expect("the socket is open");
        let mut answer = Vec::new();
        // Bytes that the server has not read make it reset the connection.
        let _ = peer.0.read_to_end(&mut answer);
        assert_eq!(answer, b"", "to {first:?}");
    }
    let mut peer = server.connect();
    peer.send(&startup(b"user\0postgres\0"));
    assert!(peer.until(b'Z').ends_with('Z'));
}

#[test]
fn keepalive_settings_are_those_of_the_socket() {
    let server = Running::start(&[("tcp_keepalives_interval", "33")]);
    let mut peer = server.log_in();
    let of_system = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).expect("the system tells");
        text.trim().to_owned()
    };
    assert_eq!(value(&mut peer, "show tcp_keepalives_idle"), of_system("tcp_keepalive_time"));
    assert_eq!(value(&mut peer, "show tcp_keepalives_count"), of_system("tcp_keepalive_probes"));
    assert_eq!(value(&mut peer, "show tcp_keepalives_interval"), "33", "as configured");
    assert_eq!(value(&mut peer, "show tcp_user_timeout"), "0");
    assert_eq!(peer.query("set tcp_keepalives_idle = 77; set tcp_user_timeout = '3s'"), "CCZ");
    assert_eq!(value(&mut peer, "select setting from pg_settings where name = 'tcp_keepalives_idle'"), "77");
    assert_eq!(value(&mut peer, "show tcp_user_timeout"), "3000");
    assert_eq!(peer.query("begin; set local tcp_keepalives_idle = 88"), "CCZ");
    assert_eq!(value(&mut peer, "show tcp_keepalives_idle"), "88");
    assert_eq!(peer.query("rollback"), "CZ");
    assert_eq!(value(&mut peer, "show tcp_keepalives_idle"), "77");
    assert_eq!(peer.query("set tcp_keepalives_idle = 40000"), "CZ");
    assert_eq!(value(&mut peer, "show tcp_keepalives_idle"), "77", "more than the system takes");
    assert_eq!(peer.query("reset tcp_keepalives_idle"), "CZ");
    assert_eq!(value(&mut peer, "show tcp_keepalives_idle"), of_system("tcp_keepalive_time"));
    let ports = (server.address.port(), peer.0.local_addr().expect("an address").port());
    // The one for the last answer comes first, until the client's system has confirmed it.
    let began = Instant::now();
    while timer(ports.0, ports.1) != "02" {
        assert!(began.elapsed() < Duration::from_secs(10), "the kernel's timer for probes runs");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The kind of timer that runs for the server's end of a connection, as the kernel's list of sockets has it.
fn timer(server: u16, client: u16) -> String {
    let list = std::fs::read_to_string("/proc/net/tcp").expect("the kernel's list of sockets");
    let (server, client) = (format!(":{server:04X}"), format!(":{client:04X}"));
    let fields = list.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut found = fields.filter(|f| f[1].ends_with(&server) && f[2].ends_with(&client));
    found.next().and_then(|f| f[5].split(':').next().map(str::to_owned)).expect("the connection")
}

#[test]
fn a_statement_ends_when_its_client_has_gone_if_that_is_looked_for() {
    let (server, mut other) = with_table();
    let mut start = |settings: &str| {
        let mut peer = server.log_in();
        let pid = value(&mut peer, "select pg_backend_pid()");
        assert_eq!(peer.query(settings), "CZ");
        ask(&mut peer, "select pg_sleep(3)");
        await_value(&mut other, &format!("select state from pg_stat_activity where pid = {pid}"), "active");
        pid
    };
    let began = Instant::now();
    let unchecked = start("set client_connection_check_interval = 0");
    let checked = start("set client_connection_check_interval = '100ms'");
    await_end(&mut other, &checked);
    if began.elapsed() < Duration::from_secs(2) {
        assert_eq!(value(&mut other, &format!("select count(*) from pg_stat_activity where pid = {unchecked}")), "1");
    }
    assert!(began.elapsed() < Duration::from_secs(3), "the statement was not waited for");
    await_end(&mut other, &unchecked);
}

#[test]
fn a_listener_that_does_not_read_costs_a_bounded_queue() {
    let server = Running::start(&[("max_notify_queue_pages", "64")]);
    let (mut listener, mut other) = (server.log_in(), server.log_in());
    assert_eq!(listener.query("listen news"), "CZ");
    let stays_full = |_| {
        let mut is_full = |n| other.query(&format!("select pg_notify('news', repeat('x', 7900) || {n})")).contains('E');
        assert!((0..20_000).any(&mut is_full));
        // What the listener's socket took meanwhile makes room.
        value(&mut other, "select pg_notification_queue_usage() > 0.9") == "t"
    };
    assert!((0..100).any(stays_full));
    drop(listener);
    await_value(&mut other, "select pg_notification_queue_usage()", "0");
    assert_eq!(other.query("notify news"), "CZ");
}
