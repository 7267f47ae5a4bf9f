//! The thread that sends spans to the collector, many at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use tokio::runtime::Runtime;

use crate::otlp::{Resource, encode};
use crate::{Sent, TraceSpan, Tracer};

/// Spans that wait to be sent.
const QUEUED_MAX: usize = 2048;
/// Spans of a request.
const BATCH_MAX: usize = 512;
/// How long a span waits for others.
const DELAY: Duration = Duration::from_secs(1);
/// How long the collector may take for a request.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a server that stops waits for the last spans.
const END_PATIENCE: Duration = Duration::from_secs(2);
/// How often the log is told that spans are lost.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);

/// Where spans are sent.
pub struct Collector {
    /// `http://host:4318`, or with a path.
    pub endpoint: String,
    /// `Name: value`, a line each: tokens of services.
    pub headers: String,
}

/// The thread, and its end of the queue.
pub struct Exporter {
    queue: SyncSender<Sent>,
    thread: JoinHandle<()>,
}

struct Work {
    runtime: Runtime,
    client: reqwest::Client,
    url: reqwest::Url,
    headers: HeaderMap,
    resource: Resource,
    waiting: Arc<AtomicUsize>,
    lost: Arc<AtomicU64>,
    warn: Box<dyn Fn(String) + Send>,
    warned: Option<Instant>,
}

impl Exporter {
    /// `warn`: to the server log.
    ///
    /// # Errors
    /// In words: the endpoint is no URL of HTTP, a header is none, or there is no thread.
    pub fn start(
        collector: &Collector,
        resource: Resource,
        warn: Box<dyn Fn(String) + Send>,
    ) -> Result<(Exporter, Arc<Tracer>), String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).timeout(PATIENCE);
        let client = client.build().map_err(|e| e.to_string())?;
        let (queue, received) = sync_channel(QUEUED_MAX);
        let (waiting, lost) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicU64::new(0)));
        let tracer = Tracer { queue: queue.clone(), waiting: Arc::clone(&waiting), lost: Arc::clone(&lost) };
        let (url, headers) = (traces_url(&collector.endpoint)?, headers(&collector.headers)?);
        let mut work = Work { runtime, client, url, headers, resource, waiting, lost, warn, warned: None };
        let thread = std::thread::Builder::new().name("traces".into());
        let thread = thread.spawn(move || work.run(&received)).map_err(|e| format!("could not start a thread: {e}"))?;
        Ok((Exporter { queue, thread }, Arc::new(tracer)))
    }

    /// Sends what is there still, as far as the collector takes it soon.
    pub fn stop(self) {
        let until = Instant::now() + END_PATIENCE;
        while self.queue.try_send(Sent::End).is_err() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        while !self.thread.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// `/v1/traces` below the endpoint, unless it is that already.
fn traces_url(endpoint: &str) -> Result<reqwest::Url, String> {
    const PATH: &str = "/v1/traces";
    let invalid = |why: &str| format!("\"{endpoint}\" is no endpoint for traces: {why}");
    let mut url = reqwest::Url::parse(endpoint).map_err(|e| invalid(&e.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(invalid("it is no URL of http or https"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("an endpoint for traces has no user and no password: they are headers".to_owned());
    }
    let path = url.path().trim_end_matches('/');
    if !path.ends_with(PATH) {
        let path = format!("{path}{PATH}");
        url.set_path(&path);
    }
    Ok(url)
}

fn headers(lines: &str) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
    for (at, line) in lines.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        // The value is a secret.
        let invalid = || format!("line {} is no header: it is to be \"Name: value\"", at + 1);
        let (name, value) = line.split_once(':').ok_or_else(invalid)?;
        let name = HeaderName::try_from(name.trim()).map_err(|_| invalid())?;
        let mut value = HeaderValue::try_from(value.trim()).map_err(|_| invalid())?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

impl Work {
    fn run(&mut self, received: &Receiver<Sent>) {
        let mut goes_on = true;
        while goes_on {
            let mut spans = Vec::new();
            goes_on = gather(received, &mut spans);
            if !spans.is_empty()
                && let Err(why) = self.send(&spans)
            {
                self.lost.fetch_add(spans.len() as u64, Ordering::Relaxed);
                self.warn(&why);
            } else if self.lost.load(Ordering::Relaxed) > 0 {
                self.warn("it takes them too slowly");
            }
            self.waiting.fetch_sub(spans.iter().map(TraceSpan::bytes).sum(), Ordering::Relaxed);
        }
    }

    fn send(&self, spans: &[TraceSpan]) -> Result<(), String> {
        let request = self.client.post(self.url.clone()).headers(self.headers.clone()).body(encode(&self.resource, spans));
        // Its timer starts within the runtime.
        let answer = self.runtime.block_on(async { request.send().await }).map_err(|e| root_cause(&e))?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            status => Err(format!("it answers {status}")),
        }
    }

    fn warn(&mut self, why: &str) {
        if self.warned.is_some_and(|warned| warned.elapsed() < WARNING_INTERVAL) {
            return;
        }
        self.warned = Some(Instant::now());
        let lost = self.lost.swap(0, Ordering::Relaxed);
        let mut url = self.url.clone();
        // These may be secret.
        let _ = (url.set_username(""), url.set_password(None));
        url.set_query(None);
        (self.warn)(format!("could not send traces to {url}: {why}; {lost} spans are lost"));
    }
}

/// Waits for spans, and a while for more of them. `false`: these are the last.
fn gather(received: &Receiver<Sent>, spans: &mut Vec<TraceSpan>) -> bool {
    let mut until = None;
    while spans.len() < BATCH_MAX {
        let next = match until {
            None => received.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(until) => received.recv_timeout(Instant::saturating_duration_since(&until, Instant::now())),
        };
        match next {
            Ok(Sent::Span(span)) => spans.push(span),
            Ok(Sent::End) | Err(RecvTimeoutError::Disconnected) => return false,
            Err(RecvTimeoutError::Timeout) => break,
        }
        until = until.or_else(|| Some(Instant::now() + DELAY));
    }
    true
}

/// The error below reqwest's words, which have the URL.
fn root_cause(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return format!("it does not answer within {} s", PATIENCE.as_secs());
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::sync::mpsc::channel;

    use super::*;
    use crate::Kind;

    fn span(name: &'static str) -> TraceSpan {
        let (began, ended) = (1, 2);
        let (attributes, error, parent) = (Vec::new(), None, None);
        TraceSpan { trace: [1; 16], id: [2; 8], parent, name: name.into(), kind: Kind::Server, began, ended, attributes, error }
    }

    fn start(endpoint: String, headers: &str) -> (Exporter, Arc<Tracer>, std::sync::mpsc::Receiver<String>) {
        let (warn, warnings) = channel();
        let collector = Collector { endpoint, headers: headers.to_owned() };
        let resource = Resource { service: "here".to_owned(), version: "1".to_owned() };
        let warn = Box::new(move |text| warn.send(text).expect("the test listens"));
        let (exporter, tracer) = Exporter::start(&collector, resource, warn).expect("an exporter");
        (exporter, tracer, warnings)
    }

    #[test]
    fn spans_are_posted_with_the_headers_when_the_server_stops() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let collector = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let mut request = Vec::new();
            let mut piece = [0; 4096];
            while !request.windows(3).any(|w| w == b"two") {
                let read = stream.read(&mut piece).expect("a request");
                request.extend_from_slice(&piece[..read]);
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").expect("an answer");
            String::from_utf8_lossy(&request).into_owned()
        });
        let (exporter, tracer, warnings) = start(format!("http://{address}/base"), "Api-Key: k1\n");
        tracer.finish(span("one"));
        tracer.finish(span("two"));
        exporter.stop();
        let request = collector.join().expect("a request");
        assert!(request.starts_with("POST /base/v1/traces HTTP/1.1\r\n"), "{request}");
        assert!(request.contains("api-key: k1") && request.contains("application/x-protobuf"), "{request}");
        assert!(request.contains("service.name") && request.contains("one") && request.contains("two"), "{request}");
        assert!(warnings.try_recv().is_err());
    }

    #[test]
    fn without_a_collector_spans_are_lost_and_one_warning_tells_how_many() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        drop(listener);
        let (exporter, tracer, warnings) = start(format!("http://{address}"), "");
        let began = Instant::now();
        (0..QUEUED_MAX + 2 * BATCH_MAX).for_each(|_| tracer.finish(span("s")));
        assert!(began.elapsed() < Duration::from_secs(2), "sessions wait");
        let warning = warnings.recv_timeout(Duration::from_secs(20)).expect("a warning");
        assert!(warning.starts_with(&format!("could not send traces to http://{address}/v1/traces: ")), "{warning}");
        assert!(warning.ends_with(" spans are lost") && !warning.contains(" 0 spans"), "{warning}");
        exporter.stop();
        assert!(warnings.try_recv().is_err(), "one warning a minute");
    }

    #[test]
    fn spans_that_wait_are_bounded_in_bytes() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (exporter, tracer, _warnings) = start(format!("http://{address}"), "");
        // Nobody answers: what was taken out of the queue waits, too.
        let long = "x".repeat(crate::WAITING_BYTES_MAX / 10);
        (0..20).for_each(|_| tracer.finish(TraceSpan { error: Some(long.clone()), ..span("long") }));
        assert_eq!(tracer.lost.load(Ordering::Relaxed), 11);
        assert!(tracer.waiting.load(Ordering::Relaxed) <= crate::WAITING_BYTES_MAX);
        tracer.finish(span("short"));
        assert_eq!(tracer.lost.load(Ordering::Relaxed), 11, "there is room for it");
        // The connection is refused, and the next spans have the room again.
        drop(listener);
        exporter.stop();
        assert_eq!(tracer.waiting.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn endpoints_and_headers_are_checked_at_the_start() {
        assert_eq!(traces_url("http://h:4318").expect("a URL").as_str(), "http://h:4318/v1/traces");
        assert_eq!(traces_url("https://h/otlp/v1/traces/").expect("a URL").as_str(), "https://h/otlp/v1/traces/");
        assert!(traces_url("localhost:4318").is_err() && traces_url("ftp://h").is_err() && traces_url("").is_err());
        let error = traces_url("http://u:secret@h").expect_err("it has a password");
        assert!(!error.contains("secret"), "{error}");
        assert!(headers("a: b\n\nc:d").is_ok_and(|headers| headers.len() == 3));
        let error = headers("a: b\nsecret").expect_err("no header");
        assert!(error.starts_with("line 2 ") && !error.contains("secret"), "{error}");
    }
}
