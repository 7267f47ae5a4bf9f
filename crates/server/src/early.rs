//! Listening before there is anything to serve: clients that come while the log is replayed are told so, instead of being
//! refused the connection.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use melba_sql::session::settings::Settings;
use melba_types::{DbError, Result, err};

use crate::connection::Connection;
use crate::startup;
use crate::stream::{Listener, Stream};
use crate::unix_socket::{self, Owner};

/// Of the Unix epoch's beginning to that of PostgreSQL's.
const SECONDS_TO_2000: i64 = 946_684_800;
/// Listeners are looked at this often.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// A client that says nothing is left alone after this long.
const PATIENCE: Duration = Duration::from_secs(10);
/// Clients that are told at a time; more are disconnected without a word.
const CLIENTS_MAX: usize = 64;

/// Bound listeners, of which a `Server` is made.
pub struct Bound {
    pub(crate) listeners: Vec<Listener>,
    pub(crate) address: SocketAddr,
    pub(crate) warnings: Vec<DbError>,
}

impl Bound {
    /// Listens on the address and, with its port, in unix_socket_directories. `started`: microseconds since 2000.
    pub fn new(address: &str, settings: &Settings, started: i64) -> Result<Bound> {
        let failed = |e: std::io::Error| err!(IO_ERROR, "could not listen on {address}: {e}");
        let tcp = TcpListener::bind(address).map_err(failed)?;
        let address = tcp.local_addr().map_err(failed)?;
        let started = started.div_euclid(1_000_000) + SECONDS_TO_2000;
        let owner = Owner { data_directory: settings.get("data_directory").as_text(), started, port: address.port() };
        let (sockets, warnings) = unix_socket::listen(settings, &owner)?;
        let mut listeners = vec![Listener::tcp(tcp).map_err(failed)?];
        listeners.extend(sockets.into_iter().map(Listener::Unix));
        Ok(Bound { listeners, address, warnings })
    }

    /// Where clients find it.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
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
            // Without the thread clients wait until there is somebody to accept them.
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
    match startup::read_request(&mut connection, None, |_, _| {}) {
        Ok(Some(_)) => connection.fail(error),
        Ok(None) => {}
        Err(error) => connection.fail(error),
    }
}
