//! The server's numbers over HTTP: `/metrics` in Prometheus' text format, `/health`, `/ready`; and the catalog of published tables, `/iceberg`.
//!
//! 1. The port is separate, off by default (metrics_listen), and gives no access to SQL: only the queries of `families` run.
//!    `/iceberg` reads what is published.
//! 2. A client's request is bounded in size and time (`http`), and so is the number of clients at once: none keeps others out for
//!    longer than `http::PATIENCE`.
//! 3. Beyond loopback, `/metrics` and `/iceberg` need a token (metrics_token_file). `/health` and `/ready` report nothing that would need one.

mod exposition;
mod families;
mod process;

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use melba_http::{self as http, Request, Response};
use melba_sql::session::STACK_BYTES;
use melba_statement::context::Instance;
use melba_types::{Result, err};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use exposition::Exposition;

/// Clients that are served at a time; more are disconnected.
const CLIENTS_MAX: usize = 16;
/// The largest size of a token's file.
const TOKEN_BYTES_MAX: u64 = 4096;

/// Counts of the engine's background work since the start.
#[derive(Debug, Default)]
pub struct Work {
    pub flushes: AtomicU64,
    pub flushed_bytes: AtomicU64,
    pub merges: AtomicU64,
    pub merged_bytes_read: AtomicU64,
    pub merged_bytes_written: AtomicU64,
    pub failures: AtomicU64,
}

/// The listener for numbers.
pub struct Metrics {
    shared: Arc<MetricsState>,
    address: SocketAddr,
}

struct MetricsState {
    /// Once there is one: until then the server is not ready.
    instance: OnceLock<Arc<Instance>>,
    is_stopping: AtomicBool,
    /// SHA-256 of the token that clients must send.
    token: Option<[u8; 32]>,
    work: Arc<Work>,
    clients: AtomicUsize,
    /// One gathers at a time.
    gathering: Mutex<()>,
}

impl Metrics {
    /// Listens on HOST:PORT, and answers that the server is not ready. `token_file`: of the token for `/metrics`; may be empty.
    ///
    /// # Errors
    /// 22023 for an address beyond loopback without a token. The address cannot be listened on, the file not read.
    pub fn listen(address: &str, token_file: &str, work: Arc<Work>) -> Result<Metrics> {
        let failed = |e: std::io::Error| err!(IO_ERROR, "could not listen on {address} for metrics: {e}");
        let token = if token_file.is_empty() { None } else { Some(read_token(token_file)?) };
        let listener = TcpListener::bind(address).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        if token.is_none() && !address.ip().is_loopback() {
            return Err(err!(INVALID_PARAMETER_VALUE, "metrics on {address} need a token")
                .hint("Set \"metrics_token_file\", or listen on 127.0.0.1."));
        }
        let shared = Arc::new(MetricsState {
            instance: OnceLock::new(),
            is_stopping: AtomicBool::new(false),
            token,
            work,
            clients: AtomicUsize::new(0),
            gathering: Mutex::new(()),
        });
        let thread = std::thread::Builder::new().name("metrics".into());
        let of_thread = shared.clone();
        thread.spawn(move || accept(&listener, &of_thread)).map_err(failed)?;
        Ok(Metrics { shared, address })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The server is ready.
    pub fn set_ready(&self, instance: Arc<Instance>) {
        let _ = self.shared.instance.set(instance);
    }

    /// The server is about to stop.
    pub fn set_stopping(&self) {
        self.shared.is_stopping.store(true, Ordering::SeqCst);
    }
}

/// The hash of a file's text, without white space around it.
fn read_token(path: &str) -> Result<[u8; 32]> {
    let failed = |why: String| err!(CONFIG_FILE_ERROR, "could not read \"{path}\" (metrics_token_file): {why}");
    let size = std::fs::metadata(path).map_err(|e| failed(e.to_string()))?.len();
    if size > TOKEN_BYTES_MAX {
        return Err(failed(format!("it has more than {TOKEN_BYTES_MAX} bytes")));
    }
    let text = std::fs::read_to_string(path).map_err(|e| failed(e.to_string()))?;
    match text.trim() {
        "" => Err(failed("it is empty".to_owned())),
        token => Ok(Sha256::digest(token.as_bytes()).into()),
    }
}

fn accept(listener: &TcpListener, shared: &Arc<MetricsState>) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            // Out of descriptors, say: not again at once.
            std::thread::sleep(http::PATIENCE / 10);
            continue;
        };
        if shared.clients.fetch_add(1, Ordering::SeqCst) >= CLIENTS_MAX {
            shared.clients.fetch_sub(1, Ordering::SeqCst);
            continue;
        }
        let of_thread = ServedClient(shared.clone());
        // Queries run as in a session.
        let thread = std::thread::Builder::new().name("metrics".into()).stack_size(STACK_BYTES);
        // Without a thread the client is dropped, and no longer counted.
        let _ = thread.spawn(move || of_thread.serve(stream));
    }
}

/// One that is counted as long as it is served.
struct ServedClient(Arc<MetricsState>);

impl Drop for ServedClient {
    fn drop(&mut self) {
        self.0.clients.fetch_sub(1, Ordering::SeqCst);
    }
}

impl ServedClient {
    fn serve(&self, stream: TcpStream) {
        let response = match http::read(&stream) {
            Ok(request) => request.refused_body().unwrap_or_else(|| self.0.answer(&request)),
            Err(Some(response)) => response,
            // The client sent nothing, or disconnected.
            Err(None) => return,
        };
        http::write(&stream, &response);
    }
}

impl MetricsState {
    fn answer(&self, request: &Request) -> Response {
        if !matches!(request.method.as_str(), "GET" | "HEAD") {
            return Response::text(405, "only GET and HEAD are known here\n").with_header("Allow", "GET, HEAD");
        }
        let response = match request.path.as_str() {
            "/health" => self.health(),
            "/ready" => self.ready(),
            "/metrics" if !self.is_allowed(request) => {
                Response::text(401, "a token is needed\n").with_header("WWW-Authenticate", "Bearer realm=\"melba\"")
            }
            "/metrics" => self.metrics(),
            path if path.starts_with("/iceberg/") => match self.instance.get() {
                _ if !self.is_allowed(request) => Response::text(401, "a token is needed\n"),
                Some(instance) => crate::iceberg::answer(instance, request),
                None => Response::text(503, "starting\n"),
            },
            _ => Response::text(404, "there are /metrics, /health, /ready and /iceberg/v1\n"),
        };
        if request.method == "HEAD" { response.without_body() } else { response }
    }

    /// Tokens are compared by their hashes: the time it takes reveals nothing of the token.
    fn is_allowed(&self, request: &Request) -> bool {
        let Some(token) = &self.token else { return true };
        let given = request.header("authorization").and_then(|text| {
            let (scheme, given) = text.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| given.trim())
        });
        given.is_some_and(|given| Sha256::digest(given.as_bytes()).as_slice() == token)
    }

    /// The process serves, whether it is ready or not.
    fn health(&self) -> Response {
        match self.instance.get().and_then(|instance| instance.cluster.engine.failure()) {
            None => Response::text(200, "healthy\n"),
            Some(_) => Response::text(503, "the engine has stopped; the server log says why\n"),
        }
    }

    fn ready(&self) -> Response {
        let Some(instance) = self.instance.get() else { return Response::text(503, "starting\n") };
        match instance.cluster.engine.failure() {
            _ if self.is_stopping.load(Ordering::SeqCst) => Response::text(503, "stopping\n"),
            Some(_) => Response::text(503, "the engine has stopped; the server log says why\n"),
            None => Response::text(200, "ready\n"),
        }
    }

    fn metrics(&self) -> Response {
        let _one = self.gathering.lock();
        let mut out = Exposition::default();
        let problem = match self.instance.get() {
            Some(instance) => families::gather(instance, &mut out).err(),
            None => None,
        };
        if let Some(problem) = &problem
            && let Some(instance) = self.instance.get()
        {
            let message = format!("metrics could not be gathered: {}", problem.message());
            instance.log().server(melba_serverlog::Level::Warning, message);
        }
        let is_up = self.instance.get().is_some() && problem.is_none();
        out.gauge("pg_up", "Whether the server answers.", f64::from(u8::from(is_up)));
        out.gauge("pg_exporter_last_scrape_error", "Whether a number could not be had.", f64::from(u8::from(problem.is_some())));
        self.work(&mut out);
        process::gather(&mut out);
        // Prometheus' text format.
        Response::new(200, "text/plain; version=0.0.4; charset=utf-8", out.text().into_bytes())
    }

    fn work(&self, out: &mut Exposition) {
        let Work { flushes, flushed_bytes, merges, merged_bytes_read, merged_bytes_written, failures } = &*self.work;
        for (name, help, count) in [
            ("melba_flushes_total", "Times that the row store became segments.", flushes),
            ("melba_flushed_bytes_total", "Bytes of segments written by flushes.", flushed_bytes),
            ("melba_merges_total", "Times that segments were rewritten.", merges),
            ("melba_merged_bytes_read_total", "Bytes of segments that merges have read.", merged_bytes_read),
            ("melba_merged_bytes_written_total", "Bytes of segments that merges have written.", merged_bytes_written),
            ("melba_background_failures_total", "Steps in the background that failed and were tried again.", failures),
        ] {
            out.counter(name, help, count.load(Ordering::Relaxed) as f64);
        }
    }
}

#[cfg(test)]
mod tests;
