//! Listens before the server is ready: clients that connect while the log is replayed get an error that says so, instead of a
//! refused connection.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use melba_settings::Settings;
use melba_types::{DbError, Result, err};

use crate::connection::Connection;
use crate::startup;
use crate::stream::{Listener, Stream};
use crate::tcp::{self, Tcp};
use crate::unix_socket::{self, Owner};

/// Of the Unix epoch's beginning to that of PostgreSQL's.
const SECONDS_TO_2000: i64 = 946_684_800;
/// Interval at which listeners are polled.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// A client that says nothing is left alone after this long.
const PATIENCE: Duration = Duration::from_secs(10);
/// Clients that are answered at a time; more are disconnected without a message.
const CLIENTS_MAX: usize = 64;

/// Bound listeners, of which a `Server` is made.
pub struct BoundListeners {
    pub(crate) listeners: Vec<Listener>,
    pub(crate) address: SocketAddr,
    pub(crate) warnings: Vec<DbError>,
    /// The address was given, and listen_addresses does not say it.
    pub(crate) is_named: bool,
}

impl BoundListeners {
    /// Listens on the address, HOST:PORT, or where listen_addresses and port say, and with that port in unix_socket_directories.
    /// `started`: microseconds since 2000.
    ///
    /// # Errors
    /// The address, or all of listen_addresses, cannot be listened on.
    pub fn new(address: Option<&str>, settings: &Settings, started: i64) -> Result<BoundListeners> {
        let is_named = address.is_some();
        let Tcp { listeners: tcp, address, mut warnings } = match address {
            Some(address) => tcp::listen_on(address)?,
            None => tcp::listen(settings)?,
        };
        let started = started.div_euclid(1_000_000) + SECONDS_TO_2000;
        let owner = Owner { data_directory: settings.get("data_directory").as_text(), started, port: address.port() };
        let (sockets, of_sockets) = unix_socket::listen(settings, &owner)?;
        warnings.extend(of_sockets);
        let mut listeners = tcp;
        listeners.extend(sockets.into_iter().map(Listener::Unix));
        if listeners.is_empty() {
            return Err(err!(INVALID_PARAMETER_VALUE, "there is nothing to listen on")
                .hint("Set \"listen_addresses\" or \"unix_socket_directories\"."));
        }
        Ok(BoundListeners { listeners, address, warnings, is_named })
    }

    /// Where clients find it.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// The addresses it listens on, as logged.
    pub fn descriptions(&self) -> Vec<String> {
        let tcp = self.listeners.iter().filter_map(Listener::address).map(|address| {
            let version = if address.is_ipv4() { "IPv4" } else { "IPv6" };
            format!("{version} address \"{}\", port {}", address.ip(), address.port())
        });
        let directories = self.listeners.iter().filter_map(Listener::directory);
        let unix = directories.map(|d| format!("Unix socket \"{}/.s.PGSQL.{}\"", d.display(), self.address.port()));
        tcp.chain(unix).collect()
    }

    /// A directory in which there is a socket.
    pub(crate) fn socket_directory(&self) -> Option<&Path> {
        self.listeners.iter().find_map(Listener::directory)
    }

    /// Tells clients that come while `body` runs that the server is starting up, and how far it is.
    pub fn refuse_while<T>(&self, detail: impl Fn() -> Option<String> + Sync, body: impl FnOnce() -> T) -> T {
        let over = AtomicBool::new(false);
        let clients = Arc::new(AtomicUsize::new(0));
        std::thread::scope(|scope| {
            let refuser = std::thread::Builder::new().name("starting up".into()).spawn_scoped(scope, || {
                while !over.load(Ordering::SeqCst) {
                    self.listeners.iter().for_each(|listener| refuse_all(listener, &clients, &detail));
                    std::thread::park_timeout(LOOK_EVERY);
                }
            });
            let result = body();
            over.store(true, Ordering::SeqCst);
            // Without the thread, clients wait until they are accepted.
            if let Ok(refuser) = &refuser {
                refuser.thread().unpark();
            }
            result
        })
    }
}

fn refuse_all(listener: &Listener, clients: &Arc<AtomicUsize>, detail: &impl Fn() -> Option<String>) {
    while let Ok(stream) = listener.accept() {
        if clients.load(Ordering::SeqCst) >= CLIENTS_MAX {
            continue;
        }
        clients.fetch_add(1, Ordering::SeqCst);
        let error = err!(CANNOT_CONNECT_NOW, "the database system is starting up");
        let error = detail().into_iter().fold(error, DbError::detail);
        let count = Arc::clone(clients);
        let spawned = std::thread::Builder::new().name("early client".into()).spawn(move || {
            refuse(stream, error);
            count.fetch_sub(1, Ordering::SeqCst);
        });
        if spawned.is_err() {
            clients.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Waits for the client's startup packet, as it waits for its answer.
fn refuse(stream: Stream, error: DbError) {
    if stream.send_at_once().is_err() {
        return;
    }
    let mut connection = Connection::new(Arc::new(stream));
    if connection.set_timeout(Some(PATIENCE)).is_err() {
        return;
    }
    match startup::read_request(&mut connection, None, |_, _| {}, &|_| {}) {
        Ok(Some(_)) => connection.fail(error),
        Ok(None) => {}
        Err(error) => connection.fail(error),
    }
}
