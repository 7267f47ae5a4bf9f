//! A server in this process and raw sockets to it.
// Each test file uses a part of it.
#![allow(dead_code)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use melba_engine::{Engine, EngineOptions, RecoveryProgress};
use melba_server::{Server, ServerHandle};
use melba_settings::Settings;
use melba_statement::context::Instance;
use melba_transaction::cluster::Cluster;
use melba_vfs::{OsClock, OsDirectory, OsRandom};

pub struct Running {
    pub address: SocketAddr,
    pub handle: ServerHandle,
    pub data: PathBuf,
    engine: Arc<Engine>,
    thread: Option<JoinHandle<std::io::Result<()>>>,
    /// Removed with the server; `None` for one over somebody else's folder.
    folder: Option<tempfile::TempDir>,
}

impl Running {
    pub fn start(settings: &[(&str, &str)]) -> Running {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let mut running = Running::over(folder.path(), settings);
        running.folder = Some(folder);
        running
    }

    /// A server over a folder that stays.
    pub fn over(data: &Path, settings: &[(&str, &str)]) -> Running {
        Running::with_options(data, settings, EngineOptions { fsync: false, ..EngineOptions::default() })
    }

    pub fn with_options(data: &Path, settings: &[(&str, &str)], options: EngineOptions) -> Running {
        // Only tests of it want a file for each server.
        let settings = [("unix_socket_directories", "")].iter().chain(settings);
        let settings: Vec<(String, String)> = settings.map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let clock = Arc::new(OsClock::new());
        let directory = Arc::new(OsDirectory::open(data).expect("the directory opens"));
        let engine =
            Engine::open_in_server(options, directory, clock.clone(), melba_server::scheduler(), &RecoveryProgress::default())
                .expect("an empty engine opens");
        let cluster = Cluster::open(engine, clock, Arc::new(OsRandom)).expect("the catalog opens");
        let engine = cluster.engine.clone();
        let instance = Arc::new(Instance::new(Settings::server(&settings).expect("settings"), cluster));
        instance.backends.start_watchdog().expect("a thread");
        let server = Server::bind("127.0.0.1:0", instance).expect("a free port");
        let (address, handle) = (server.local_addr(), server.handle());
        let thread = Some(std::thread::spawn(move || server.run()));
        Running { address, handle, data: data.to_owned(), engine, thread, folder: None }
    }

    /// Everything is in segments afterwards.
    pub fn shut_down(mut self) {
        self.stop();
        self.engine.shutdown().expect("a clean stop");
    }

    pub fn stop(&mut self) {
        self.handle.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("no panic").expect("a clean stop");
        }
    }

    pub fn connect(&self) -> Peer {
        Peer(TcpStream::connect(self.address).expect("the server listens"))
    }

    /// Connects up to ReadyForQuery.
    pub fn log_in(&self) -> Peer {
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

/// A client that speaks message by message.
pub struct Peer<S = TcpStream>(pub S);

impl<S: Read + Write> Peer<S> {
    pub fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).expect("the server reads");
    }

    /// One message: its type and its body; `None` at the end of the stream.
    pub fn body(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut header = [0; 5];
        self.0.read_exact(&mut header).ok()?;
        let length = u32::from_be_bytes(header[1..].try_into().expect("four bytes")) as usize;
        let mut body = vec![0; length - 4];
        self.0.read_exact(&mut body).expect("a whole message");
        Some((header[0], body))
    }

    /// One message: its type, and for an error the severity and SQLSTATE; `None` at the end of the stream.
    pub fn message(&mut self) -> Option<(u8, String)> {
        let (tag, body) = self.body()?;
        let field = |code: u8| {
            let found = body.split(|b| *b == 0).find(|f| f.first() == Some(&code));
            String::from_utf8_lossy(found.map_or(&b""[..], |f| &f[1..])).into_owned()
        };
        let text = if tag == b'E' { format!("{} {}", field(b'S'), field(b'C')) } else { String::new() };
        Some((tag, text))
    }

    /// The types of the messages up to one of type `last` or the end; errors in brackets.
    pub fn until(&mut self, last: u8) -> String {
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

    pub fn query(&mut self, text: &str) -> String {
        self.send(&query(text));
        self.until(b'Z')
    }
}

/// A Query message.
pub fn query(text: &str) -> Vec<u8> {
    let mut message = vec![b'Q'];
    message.extend_from_slice(&(text.len() as u32 + 5).to_be_bytes());
    message.extend_from_slice(text.as_bytes());
    message.push(0);
    message
}

pub fn startup(parameters: &[u8]) -> Vec<u8> {
    let mut packet = (parameters.len() as u32 + 9).to_be_bytes().to_vec();
    packet.extend_from_slice(&0x0003_0000u32.to_be_bytes());
    packet.extend_from_slice(parameters);
    packet.push(0);
    packet
}
