//! The port: accepts browsers, a thread each, bounded in number.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use melba_client::target::Target;
use melba_http as http;

use crate::assets::guarded;
use crate::gate::Names;
use crate::sessions::Sessions;

/// Requests that are served at a time; more are disconnected.
const CLIENTS_MAX: usize = 64;
const SWEEP_EVERY: Duration = Duration::from_secs(5);

/// Whether the other end of a connection belongs to the account of this process.
pub type IsOwnAccount = Box<dyn Fn(&TcpStream) -> bool + Send + Sync>;

pub struct Console {
    pub(crate) target: Target,
    pub(crate) names: Names,
    pub(crate) is_own_account: IsOwnAccount,
    pub(crate) sessions: Sessions,
    /// Its name has the port, because browsers send a cookie to all ports of a host.
    pub(crate) cookie: String,
    /// The folder with reports, if it shows any.
    pub(crate) reports: Option<PathBuf>,
    clients: AtomicUsize,
}

/// A port that is open, before anything is served on it.
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
    names: Names,
    reports: Option<PathBuf>,
}

impl Bound {
    /// `origins`: of proxies in front of it, `https://HOST`.
    ///
    /// # Errors
    /// The address cannot be listened on, or is beyond loopback: passwords would be sent in clear.
    pub fn new(listen: &str, origins: &[String]) -> Result<Bound, String> {
        let failed = |e: std::io::Error| format!("could not listen on {listen} for the console: {e}");
        let listener = TcpListener::bind(listen).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        if !address.ip().is_loopback() {
            return Err(format!(
                "the console listens on this machine only, and {address} is open to others: its passwords would be sent in clear. \
                 Listen on 127.0.0.1, and reach it by a tunnel, or by a proxy with TLS (`melba console --origin`)"
            ));
        }
        Ok(Bound { listener, address, names: Names::new(address, origins)?, reports: None })
    }

    /// It shows the reports in this folder.
    #[must_use]
    pub fn with_reports(self, reports: Option<PathBuf>) -> Bound {
        Bound { reports, ..self }
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Serves for as long as the process lives. `target`: the server; who logs in gives role and password.
    pub fn serve(self, target: Target, is_own_account: IsOwnAccount) -> Result<(), String> {
        let console = Arc::new(Console {
            target: Target { password: None, ..target },
            names: self.names,
            is_own_account,
            sessions: Sessions::default(),
            cookie: format!("melba_console_{}", self.address.port()),
            reports: self.reports,
            clients: AtomicUsize::new(0),
        });
        let sweeping = Arc::clone(&console);
        let sweep = move || {
            loop {
                std::thread::sleep(SWEEP_EVERY);
                sweeping.sessions.sweep(Instant::now());
            }
        };
        spawn(sweep)?;
        console.accept(&self.listener);
        Ok(())
    }
}

fn spawn(run: impl FnOnce() + Send + 'static) -> Result<(), String> {
    let thread = std::thread::Builder::new().name("console".into());
    thread.spawn(run).map(drop).map_err(|e| format!("could not start a thread: {e}"))
}

impl Console {
    fn accept(self: &Arc<Console>, listener: &TcpListener) {
        for stream in listener.incoming() {
            let Ok(stream) = stream else {
                // Out of descriptors, say: not again at once.
                std::thread::sleep(http::PATIENCE / 10);
                continue;
            };
            if self.clients.fetch_add(1, Ordering::SeqCst) >= CLIENTS_MAX {
                self.clients.fetch_sub(1, Ordering::SeqCst);
                continue;
            }
            let client = Client(Arc::clone(self));
            // Without a thread the client is dropped, and no longer counted.
            let _ = spawn(move || client.serve(&stream));
        }
    }
}

/// One that is counted as long as it is served.
struct Client(Arc<Console>);

impl Drop for Client {
    fn drop(&mut self) {
        self.0.clients.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Client {
    fn serve(&self, stream: &TcpStream) {
        // Answers are small, and a browser waits for them.
        let _ = stream.set_nodelay(true);
        let response = match http::read(stream) {
            Ok(mut request) => match self.0.answer(&mut request, stream) {
                Some(response) => response,
                None => return,
            },
            Err(Some(response)) => response,
            // The client sent nothing, or disconnected.
            Err(None) => return,
        };
        http::write(stream, &guarded(response));
    }
}
