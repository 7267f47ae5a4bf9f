//! A server and raw sockets: what holds whatever a client does.

use std::io::Read;
use std::net::TcpStream;

use crate::running::{Peer, Running, startup};

#[test]
fn startup_is_answered() {
    let server = Running::start(&[]);
    let mut peer = server.connect();
    peer.send(&[0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]);
    let mut answer = [0];
    peer.0.read_exact(&mut answer).expect("one byte");
    assert_eq!(&answer, b"N", "TLS is not offered");
    peer.send(&startup(b"user\0postgres\0options\0-c work_mem=1MB\0"));
    peer.until(b'Z');
    assert_eq!(peer.query("show work_mem"), "TDCZ");
    for (parameters, error) in [
        (&b"user\0nobody\0"[..], "RE[FATAL 28000]"),
        (b"user\0postgres\0database\0nowhere\0", "RE[FATAL 3D000]"),
        (b"user\0postgres\0work_mem\0much\0", "RE[FATAL 22023]"),
        (b"database\0postgres\0", "E[FATAL 28000]"),
        (b"user\0\xff\0", "E[FATAL 22021]"),
    ] {
        let mut peer = server.connect();
        peer.send(&startup(parameters));
        assert_eq!(peer.until(b'Z'), error);
    }
}

#[test]
fn broken_streams_cost_their_own_connection() {
    let server = Running::start(&[]);
    let mut witness = server.log_in();
    // Who may be no client of ours at all is told nothing.
    for (garbage, answer) in
        [(&b"GET / HTTP/1.0\r\n\r\n"[..], ""), (&[0, 0, 0, 0, 0, 0], ""), (&[0, 0, 0, 9, 0, 3, 0, 0, 1], "E[FATAL 08P01]")]
    {
        let mut peer = server.connect();
        peer.send(garbage);
        assert_eq!(peer.until(b'Z'), answer);
    }
    for (garbage, answer) in [(&b"!\0\0\0\x04"[..], "E[FATAL 08P01]"), (b"Q\0\0\0\x01", ""), (b"S\x7f\0\0\0", "")] {
        let mut peer = server.log_in();
        peer.send(garbage);
        assert_eq!(peer.until(b'Z'), answer);
    }
    let mut peer = server.log_in();
    peer.send(b"Q\0\0\0\x06\xff\0");
    assert_eq!(peer.until(b'Z'), "E[ERROR 22021]Z", "a bad body leaves the connection usable");
    assert_eq!(peer.query("show work_mem"), "TDCZ");
    assert_eq!(witness.query("show work_mem"), "TDCZ");
}

#[test]
fn connections_are_counted() {
    let server = Running::start(&[("max_connections", "2")]);
    let first = server.log_in();
    let _second = server.log_in();
    let mut third = server.connect();
    third.send(&startup(b"user\0postgres\0"));
    assert_eq!(third.until(b'Z'), "E[FATAL 53300]");
    drop(first);
    // The place is free once the server has noticed.
    loop {
        let mut peer = server.connect();
        peer.send(&startup(b"user\0postgres\0"));
        if peer.until(b'Z').ends_with('Z') {
            break;
        }
    }
}

#[test]
fn stopping_tells_idle_sessions() {
    let mut server = Running::start(&[]);
    let mut idle = server.log_in();
    let mut busy = server.log_in();
    assert_eq!(busy.query("begin"), "CZ");
    server.stop();
    for peer in [&mut idle, &mut busy] {
        assert_eq!(peer.until(b'Z'), "E[FATAL 57P01]");
    }
    assert!(TcpStream::connect(server.address).is_err(), "nobody listens any more");
}

/// A Query message.
fn ask(peer: &mut Peer, text: &str) {
    let mut message = vec![b'Q'];
    message.extend_from_slice(&(text.len() as u32 + 5).to_be_bytes());
    message.extend_from_slice(text.as_bytes());
    message.push(0);
    peer.send(&message);
}

/// More of them than threads that poll.
fn many() -> usize {
    2 * std::thread::available_parallelism().map_or(1, |n| n.get()) + 1
}

#[test]
fn statements_that_wait_do_not_hold_up_others() {
    let server = Running::start(&[]);
    let mut holder = server.log_in();
    assert_eq!(holder.query("create table t (id int primary key, n int); insert into t values (1, 0)"), "CCZ");
    assert_eq!(holder.query("begin; update t set n = n + 1"), "CCZ");
    let mut waiting: Vec<_> = (0..many()).map(|_| server.log_in()).collect();
    for peer in &mut waiting {
        ask(peer, "update t set n = n + 1");
    }
    for _ in 0..3 {
        assert_eq!(server.log_in().query("select n from t"), "TDCZ");
    }
    assert_eq!(holder.query("commit"), "CZ");
    for peer in &mut waiting {
        assert_eq!(peer.until(b'Z'), "CZ");
    }
    assert_eq!(holder.query(&format!("select 1 / (n - {}) from t", many())), "TDCZ", "each came once");
}

#[test]
fn statements_that_compute_do_not_hold_up_others() {
    let server = Running::start(&[]);
    let mut other = server.log_in();
    let mut busy: Vec<_> = (0..many()).map(|_| server.log_in()).collect();
    for peer in &mut busy {
        ask(peer, "select count(*) from generate_series(1, 1000000000000)");
    }
    for _ in 0..3 {
        assert_eq!(other.query("select 1"), "TDCZ");
        assert_eq!(server.log_in().query("select 1"), "TDCZ");
    }
    // Only those that compute: sessions that have just logged out may be listed, and be gone before they are cancelled.
    let computing = "from pg_stat_activity where query like '%1000000000000%' and state = 'active' and pid <> pg_backend_pid()";
    let all_do = format!("select 1 / (count(*) - {}) {computing}", busy.len());
    while other.query(&all_do) == "TDCZ" {
        std::thread::yield_now();
    }
    assert_eq!(other.query(&format!("select count(pg_cancel_backend(pid)) {computing}")), "TDCZ");
    for peer in &mut busy {
        let answer = peer.until(b'Z');
        assert!(answer.ends_with("E[ERROR 57014]Z"), "{answer}");
    }
}

#[test]
fn pipelined_transactions_are_answered_in_order() {
    let server = Running::start(&[]);
    let mut peer = server.log_in();
    assert_eq!(peer.query("create table t (n int)"), "CZ");
    for n in 0..100 {
        ask(&mut peer, &format!("insert into t values ({n})"));
        ask(&mut peer, &format!("select 1 / (count(*) - {n}) from t"));
    }
    for _ in 0..100 {
        assert_eq!(peer.until(b'Z'), "CZ");
        assert_eq!(peer.until(b'Z'), "TDCZ");
    }
}

/// The values of a row, from DataRow's body.
fn values(row: &[u8]) -> Vec<Vec<u8>> {
    let mut rest = &row[2..];
    let mut values = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let (value, after) = after.split_at(u32::from_be_bytes(*length) as usize);
        values.push(value.to_vec());
        rest = after;
    }
    values
}

#[test]
fn long_messages_come_and_go_whole() {
    let server = Running::start(&[]);
    let mut peer = server.log_in();
    let value: String = (0..1_000_000).map(|n| format!("{n:06}")).collect();
    assert_eq!(peer.query("create table t (id int, v text); alter table t alter v set storage external"), "CCZ");
    // Long and short messages in one stream.
    ask(&mut peer, &format!("insert into t values (1, '{value}')"));
    ask(&mut peer, &format!("insert into t values (2, '{}'), (3, 'short')", &value[..300_000]));
    ask(&mut peer, "select 1");
    assert_eq!([peer.until(b'Z'), peer.until(b'Z'), peer.until(b'Z')], ["CZ", "CZ", "TDCZ"]);
    ask(&mut peer, "select id, v, 'and', left(v, 100000), v from t order by id");
    let rows: Vec<Vec<Vec<u8>>> = std::iter::from_fn(|| peer.body().filter(|(tag, _)| *tag != b'Z'))
        .filter(|(tag, _)| *tag == b'D')
        .map(|(_, row)| values(&row))
        .collect();
    let expected = [("1", &value[..]), ("2", &value[..300_000]), ("3", "short")];
    let expected = expected.map(|(id, v)| [id, v, "and", &v[..v.len().min(100_000)], v].map(|v| v.as_bytes().to_vec()).to_vec());
    assert!(rows == expected, "each value as it was sent");
}
