//! A server and raw sockets: what holds whatever a client does.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;

use melba_engine::{Engine, EngineOptions};
use melba_server::{Server, ServerHandle};
use melba_sql::cluster::Cluster;
use melba_sql::session::context::Instance;
use melba_sql::session::settings::Settings;
use melba_vfs::{OsClock, OsDirectory, OsRandom};

struct Running {
    address: SocketAddr,
    handle: ServerHandle,
    thread: Option<JoinHandle<std::io::Result<()>>>,
    _data: tempfile::TempDir,
}

impl Running {
    fn start(settings: &[(&str, &str)]) -> Running {
        let settings: Vec<(String, String)> = settings.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let data = tempfile::tempdir().expect("a temporary directory");
        let clock = Arc::new(OsClock::new());
        let directory = Arc::new(OsDirectory::open(data.path()).expect("the directory opens"));
        let options = EngineOptions { fsync: false, ..EngineOptions::default() };
        let engine = Engine::open(options, directory, clock.clone()).expect("an empty engine opens");
        let cluster = Cluster::open(engine, clock, Arc::new(OsRandom)).expect("the catalog opens");
        let instance = Arc::new(Instance::new(Settings::server(&settings).expect("settings"), cluster));
        let server = Server::bind("127.0.0.1:0", instance).expect("a free port");
        let (address, handle) = (server.local_addr(), server.handle());
        let thread = Some(std::thread::spawn(move || server.run()));
        Running { address, handle, thread, _data: data }
    }

    fn stop(&mut self) {
        self.handle.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("no panic").expect("a clean stop");
        }
    }

    fn connect(&self) -> Peer {
        Peer(TcpStream::connect(self.address).expect("the server listens"))
    }

    /// Connects up to ReadyForQuery.
    fn log_in(&self) -> Peer {
        let mut peer = self.connect();
        peer.send(&startup(b"user\0postgres\0"));
        let answer = peer.until(b'Z');
        assert!(answer.starts_with("R") && answer.ends_with("Z"), "{answer}");
        peer
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

struct Peer(TcpStream);

impl Peer {
    fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).expect("the server reads");
    }

    /// One message: its type, and for an error the severity and SQLSTATE; `None` at the end of the stream.
    fn message(&mut self) -> Option<(u8, String)> {
        let mut header = [0; 5];
        self.0.read_exact(&mut header).ok()?;
        let length = u32::from_be_bytes(header[1..].try_into().expect("four bytes")) as usize;
        let mut body = vec![0; length - 4];
        self.0.read_exact(&mut body).expect("a whole message");
        let field = |code: u8| {
            let found = body.split(|b| *b == 0).find(|f| f.first() == Some(&code));
            String::from_utf8_lossy(found.map_or(&b""[..], |f| &f[1..])).into_owned()
        };
        let text = if header[0] == b'E' { format!("{} {}", field(b'S'), field(b'C')) } else { String::new() };
        Some((header[0], text))
    }

    /// The types of the messages up to one of type `last` or the end; errors in brackets.
    fn until(&mut self, last: u8) -> String {
        let mut out = String::new();
        while let Some((tag, text)) = self.message() {
            out.push(tag as char);
            if tag == b'E' {
                out.push_str(&format!("[{text}]"));
            }
            if tag == last {
                break;
            }
        }
        out
    }

    fn query(&mut self, text: &str) -> String {
        let mut message = vec![b'Q'];
        message.extend_from_slice(&(text.len() as u32 + 5).to_be_bytes());
        message.extend_from_slice(text.as_bytes());
        message.push(0);
        self.send(&message);
        self.until(b'Z')
    }
}

fn startup(parameters: &[u8]) -> Vec<u8> {
    let mut packet = (parameters.len() as u32 + 9).to_be_bytes().to_vec();
    packet.extend_from_slice(&0x0003_0000u32.to_be_bytes());
    packet.extend_from_slice(parameters);
    packet.push(0);
    packet
}

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
