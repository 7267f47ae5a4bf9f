//! Accepting connections, and stopping.

use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use melba_sql::session::STACK_BYTES;
use melba_sql::session::backends::Wake;
use melba_sql::session::context::Instance;

use crate::connection::Connection;
use crate::startup;
use crate::turns::{Served, Turns};

/// A bound listener.
pub struct Server {
    listener: TcpListener,
    shared: Arc<Shared>,
}

struct Shared {
    instance: Arc<Instance>,
    address: SocketAddr,
    stopping: AtomicBool,
    turns: Arc<Turns>,
    /// Threads that start a session.
    threads: AtomicUsize,
    next_pid: AtomicI32,
}

/// Stops a running server from another thread.
#[derive(Clone)]
pub struct ServerHandle(Arc<Shared>);

impl Server {
    pub fn bind(address: &str, instance: Arc<Instance>) -> std::io::Result<Server> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let turns = Turns::start(&instance.backends)?;
        let shared = Shared {
            instance,
            address,
            stopping: AtomicBool::new(false),
            turns,
            threads: AtomicUsize::new(0),
            next_pid: AtomicI32::new(std::process::id() as i32),
        };
        Ok(Server { listener, shared: Arc::new(shared) })
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.shared.address
    }

    pub fn handle(&self) -> ServerHandle {
        ServerHandle(self.shared.clone())
    }

    /// Accepts connections until the handle stops the server, then waits for the sessions to end.
    pub fn run(self) -> std::io::Result<()> {
        while !self.shared.stopping.load(Ordering::SeqCst) {
            match self.listener.accept() {
                Ok((stream, peer)) => self.accept(stream, peer),
                // Out of descriptors, or a client that left at once: the listener itself is well.
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        }
        drop(self.listener);
        self.shared.instance.backends.shut_down();
        let patience = Instant::now() + Duration::from_secs(10);
        while self.shared.clients() > 0 && Instant::now() < patience {
            // Sessions that were just starting have not seen the first call.
            self.shared.instance.backends.shut_down();
            std::thread::sleep(Duration::from_millis(5));
        }
        self.shared.turns.stop();
        Ok(())
    }

    fn accept(&self, stream: TcpStream, peer: SocketAddr) {
        let shared = self.shared.clone();
        let max = shared.instance.settings().get("max_connections").as_integer().max(1) as usize;
        // Connections that do not authenticate may take up as many threads again, not more.
        if shared.stopping.load(Ordering::SeqCst) || shared.clients() > 2 * max + 16 {
            return;
        }
        shared.threads.fetch_add(1, Ordering::SeqCst);
        let pid = shared.next_pid.fetch_add(1, Ordering::Relaxed) & i32::MAX;
        let in_thread = shared.clone();
        let thread = std::thread::Builder::new().name(format!("session {pid}")).stack_size(STACK_BYTES);
        let spawned = thread.spawn(move || {
            match catch_unwind(AssertUnwindSafe(|| in_thread.start(stream, peer, pid))) {
                Ok(Some(served)) => in_thread.turns.add(served),
                _ => in_thread.instance.backends.remove(pid),
            }
            in_thread.threads.fetch_sub(1, Ordering::SeqCst);
        });
        if spawned.is_err() {
            shared.threads.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Shared {
    /// Clients that are served or start to be.
    fn clients(&self) -> usize {
        self.threads.load(Ordering::SeqCst) + self.turns.connections()
    }

    /// Starts a session, waiting for the client as long as that takes.
    fn start(&self, stream: TcpStream, peer: SocketAddr, pid: i32) -> Option<Box<Served>> {
        let waker = stream.try_clone().ok()?;
        stream.set_nodelay(true).ok()?;
        let mut connection = Connection::new(stream);
        match startup::start(&mut connection, &self.instance, peer, pid, Box::new(SocketWake(waker))) {
            Ok(Some(session)) => {
                connection.set_read_timeout(None);
                Some(Box::new(Served { connection, session, pid, preference: Default::default() }))
            }
            Ok(None) => None,
            Err(error) => {
                connection.fail(error);
                None
            }
        }
    }
}

/// Ends the blocking read of a session.
#[derive(Debug)]
struct SocketWake(TcpStream);

impl Wake for SocketWake {
    fn wake(&self) {
        // An error means that the connection is closed already.
        let _ = self.0.shutdown(Shutdown::Read);
    }
}

impl ServerHandle {
    /// Stops accepting and ends every session with 57P01.
    pub fn stop(&self) {
        if !self.0.stopping.swap(true, Ordering::SeqCst) {
            // A connection of our own ends the blocking accept.
            let mut address = self.0.address;
            if address.ip().is_unspecified() {
                address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
            }
            let _ = TcpStream::connect_timeout(&address, Duration::from_secs(1));
        }
    }
}
