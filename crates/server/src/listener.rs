//! Accepts connections, and stops.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use melba_serverlog::{Entry, SessionClient, Source, Verbosity};
use melba_settings::value::Value;
use melba_sql::session::STACK_BYTES;
use melba_statement::backends::{Addresses, Wake};
use melba_statement::context::Instance;
use melba_statement::workers::WORKER_PIDS;
use melba_types::{DbError, Oid, Result, err, limits};

use crate::access::Access;
use crate::authentication::Refused;
use crate::client_session::{ClientSession, Machine};
use crate::connection::Connection;
use crate::early::BoundListeners;
use crate::hba::Network;
use crate::hba::system::System;
use crate::newcomers::Newcomers;
use crate::poller::Poller;
use crate::startup::{self, Start};
use crate::stream::{Listener, Stream};
use crate::tcp_options::{TcpOptions, keep_alive};
use crate::turns::Turns;

/// Bound listeners.
pub struct Server {
    bound: BoundListeners,
    shared: Arc<Shared>,
}

struct Shared {
    instance: Arc<Instance>,
    access: Arc<Access>,
    /// Watches the listeners; woken to stop.
    poller: Poller,
    stopping: AtomicBool,
    turns: Arc<Turns<Machine>>,
    /// Threads that start a session.
    threads: AtomicUsize,
    newcomers: Newcomers,
    next_pid: AtomicI32,
}

/// Stops a running server from another thread.
#[derive(Clone)]
pub struct ServerHandle(Arc<Shared>);

impl Server {
    /// Listens on the address and, with its port, in unix_socket_directories.
    pub fn bind(address: &str, instance: Arc<Instance>) -> Result<Server> {
        let access = Access::load(&instance.settings(), false, &Arc::default())?;
        let bound = BoundListeners::new(Some(address), &instance.settings(), instance.started)?;
        Server::new(bound, instance, access)
    }

    /// Serves clients of listeners that are bound already.
    ///
    /// # Errors
    /// Fails if no client could connect, or if the system has no more threads or descriptors.
    pub fn new(bound: BoundListeners, instance: Arc<Instance>, access: Access) -> Result<Server> {
        access.check(&instance.cluster.catalog(Oid::INVALID))?;
        let hosts: Vec<String> =
            bound.listeners.iter().filter_map(Listener::address).map(|address| address.ip().to_string()).collect();
        let (host, port) = (hosts.join(", "), bound.address.port());
        let file =
            |path: &Option<PathBuf>| Value::Text(path.as_ref().map_or_else(String::new, |p| p.display().to_string()).into());
        if bound.is_named {
            instance.set_internal(&[("listen_addresses", Value::Text(host.into()))]);
        }
        instance.set_internal(&[
            ("port", Value::Integer(port.into())),
            ("hba_file", file(&access.hosts.hba_file)),
            ("ident_file", file(&access.hosts.ident_file)),
            ("ssl_library", Value::Text("Rustls".into())),
        ]);
        let access = Arc::new(access);
        instance.set_gate(access.clone());
        let failed = |e: std::io::Error| err!(IO_ERROR, "could not listen on {}: {e}", bound.address);
        let poller = Poller::new().map_err(failed)?;
        for (listener, id) in bound.listeners.iter().zip(1..) {
            poller.add(listener.as_raw_fd(), id).map_err(failed)?;
        }
        let groups = std::thread::available_parallelism().map_or(1, |n| n.get());
        let shared = Shared {
            turns: Turns::start(Machine::new(groups), groups).map_err(failed)?,
            instance,
            access,
            poller,
            stopping: AtomicBool::new(false),
            threads: AtomicUsize::new(0),
            newcomers: Newcomers::default(),
            // The server itself has the first number.
            next_pid: AtomicI32::new(std::process::id() as i32 + 1 + WORKER_PIDS),
        };
        Ok(Server { bound, shared: Arc::new(shared) })
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.bound.address
    }

    /// A directory in which there is a socket.
    pub fn socket_directory(&self) -> Option<&Path> {
        self.bound.socket_directory()
    }

    /// Where it could not listen.
    pub fn warnings(&self) -> &[DbError] {
        &self.bound.warnings
    }

    pub fn handle(&self) -> ServerHandle {
        ServerHandle(self.shared.clone())
    }

    /// Accepts connections until the handle stops the server, then waits for the sessions to end.
    pub fn run(self) -> std::io::Result<()> {
        let mut news = Vec::new();
        while !self.shared.stopping.load(Ordering::SeqCst) {
            self.shared.poller.wait(true, self.bound.listeners.len(), &mut news);
            for one in news.drain(..) {
                self.accept_all(&self.bound.listeners[one.id as usize - 1]);
            }
        }
        drop(self.bound);
        let patience = Instant::now() + Duration::from_secs(10);
        while self.shared.clients() > 0 && Instant::now() < patience {
            // Again, for sessions that were just starting.
            self.shared.instance.backends.shut_down();
            self.shared.newcomers.end_all();
            std::thread::sleep(Duration::from_millis(5));
        }
        self.shared.turns.stop();
        Ok(())
    }

    /// Accepts all waiting connections: the poller reports them once.
    fn accept_all(&self, listener: &Listener) {
        while !self.shared.stopping.load(Ordering::SeqCst) {
            match listener.accept() {
                Ok(stream) => self.shared.accept(stream),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                // Out of descriptors, or a client that left at once: the listener itself is well.
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }
}

impl Shared {
    fn accept(self: &Arc<Self>, stream: Stream) {
        let shared = self.clone();
        let max = shared.instance.settings().get("max_connections").as_integer().max(1) as usize;
        // Those that were sent away still have their threads, for a moment.
        if shared.stopping.load(Ordering::SeqCst) || shared.threads.load(Ordering::SeqCst) > 2 * newcomers_max(max) {
            return;
        }
        let pid = shared.next_pid.fetch_add(1, Ordering::Relaxed) & i32::MAX;
        let stream = Arc::new(stream);
        if !shared.newcomers.admit(pid, &stream, newcomers_max(max)) {
            return;
        }
        shared.threads.fetch_add(1, Ordering::SeqCst);
        let (in_thread, client) = (shared.clone(), stream.clone());
        let thread = std::thread::Builder::new().name(format!("session {pid}")).stack_size(STACK_BYTES);
        let spawned = thread.spawn(move || {
            limits::start_session_thread();
            let started = catch_unwind(AssertUnwindSafe(|| in_thread.start(stream, pid)));
            in_thread.newcomers.remove(pid);
            match started {
                Ok(Some(session)) => in_thread.turns.add(session),
                _ => in_thread.instance.backends.remove(pid, in_thread.instance.cluster.clock.now_micros()),
            }
            in_thread.threads.fetch_sub(1, Ordering::SeqCst);
        });
        if let Err(e) = spawned {
            shared.newcomers.remove(pid);
            shared.threads.fetch_sub(1, Ordering::SeqCst);
            // A few bytes to a new socket: no wait.
            Connection::new(client).fail(err!(OUT_OF_MEMORY, "could not start a thread for the connection: {e}"));
        }
    }

    /// A new connection, as the log knows it.
    fn source(&self, addresses: Option<Addresses>, pid: i32) -> Source {
        let client = match addresses {
            Some(Addresses { client, server }) => {
                let shown = |ip: IpAddr| ip.to_canonical().to_string();
                SessionClient::new(self.host(client.ip()), Some(client.port()), shown(server.ip()))
            }
            None => SessionClient::new("[local]".to_owned(), None, "[local]".to_owned()),
        };
        Source::session(pid, self.instance.cluster.clock.now_micros(), client)
    }

    /// The client's name, if log_hostname wants it and the system knows it.
    fn host(&self, address: IpAddr) -> String {
        let name =
            self.instance.settings().get("log_hostname").as_bool().then(|| System.name_of(address.to_canonical())).flatten();
        name.unwrap_or_else(|| address.to_canonical().to_string())
    }

    /// Clients that are served or start to be.
    fn clients(&self) -> usize {
        self.threads.load(Ordering::SeqCst) + self.turns.connections()
    }

    /// Starts a session, waiting for the client as long as that takes.
    fn start(&self, stream: Arc<Stream>, pid: i32) -> Option<ClientSession> {
        let addresses = stream.addresses().ok()?;
        stream.send_at_once().ok()?;
        keep_alive(&stream).ok()?;
        let source = Arc::new(self.source(addresses, pid));
        let start = Start {
            source: Arc::clone(&source),
            instance: &self.instance,
            access: &self.access,
            newcomers: &self.newcomers,
            addresses,
            pid,
            wake: Box::new(SocketWake(Arc::clone(&stream))),
            socket: Arc::new(TcpOptions::of(&stream)),
        };
        let mut connection = Connection::new(stream);
        match startup::start(&mut connection, start) {
            Ok(Some(session)) => ClientSession::new(connection, session, pid, &self.instance.backends).ok(),
            // A cancel request's client waits for the end of the connection, which TLS has a message for.
            Ok(None) => {
                connection.say_end();
                None
            }
            Err(Refused { error, log_detail }) => {
                let mut entry = Entry::of(&error);
                entry.detail = log_detail.map(Into::into).or(entry.detail);
                self.instance.log().emit(&source, Verbosity::Default, &entry);
                connection.fail(error);
                None
            }
        }
    }
}

/// How many connections may be authenticating: as many as sessions, and as many again.
fn newcomers_max(max_connections: usize) -> usize {
    2 * max_connections + 16
}

/// Ends the blocking read of a session.
#[derive(Debug)]
struct SocketWake(Arc<Stream>);

impl Wake for SocketWake {
    fn wake(&self) {
        // An error means that the connection is closed already.
        let _ = self.0.shut_reading();
    }
}

impl ServerHandle {
    /// Stops accepting and ends every session with 57P01.
    pub fn stop(&self) {
        self.0.stopping.store(true, Ordering::SeqCst);
        self.0.poller.wake();
    }
}
