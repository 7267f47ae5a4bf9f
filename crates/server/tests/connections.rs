//! A server and raw sockets: what holds whatever a client does.

mod running;

use std::io::Read;
use std::net::TcpStream;

use running::{Running, startup};

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
        (&b"user\0nobody\0"[..], "E[FATAL 28000]"),
        (b"user\0postgres\0database\0nowhere\0", "E[FATAL 3D000]"),
        (b"user\0postgres\0work_mem\0much\0", "E[FATAL 22023]"),
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
    for garbage in [&b"GET / HTTP/1.0\r\n\r\n"[..], &[0, 0, 0, 0, 0, 0], &[0, 0, 0, 9, 0, 3, 0, 0, 1]] {
        let mut peer = server.connect();
        peer.send(garbage);
        assert_eq!(peer.until(b'Z'), "E[FATAL 08P01]");
    }
    for garbage in [&b"!\0\0\0\x04"[..], b"Q\0\0\0\x01", b"S\x7f\0\0\0"] {
        let mut peer = server.log_in();
        peer.send(garbage);
        assert_eq!(peer.until(b'Z'), "E[FATAL 08P01]");
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
