//! Spans of statements, as a collector gets them.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use super::serving::{Serving, refused};

const PATIENCE: Duration = Duration::from_secs(30);
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

fn answer(mut stream: TcpStream, requests: &Sender<Vec<u8>>) {
    let mut request = Vec::new();
    let mut piece = [0; 65536];
    loop {
        let read = stream.read(&mut piece).expect("a request");
        request.extend_from_slice(&piece[..read]);
        let Some(head) = request.windows(4).position(|w| w == b"\r\n\r\n") else { continue };
        let text = String::from_utf8_lossy(&request[..head]).to_ascii_lowercase();
        let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
        if request.len() == head + 4 + length.parse::<usize>().expect("a number") {
            break;
        }
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").expect("an answer");
    // The test may have seen enough.
    let _ = requests.send(request);
}

/// A collector, and the requests that it gets.
fn collector() -> (String, Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
    let (requests, received) = channel();
    std::thread::spawn(move || listener.incoming().flatten().for_each(|stream| answer(stream, &requests)));
    (endpoint, received)
}

/// What comes until all texts have.
fn until(received: &Receiver<Vec<u8>>, texts: &[&str]) -> Vec<u8> {
    let (start, mut all) = (Instant::now(), Vec::new());
    while !texts.iter().all(|text| has(&all, text.as_bytes())) {
        let rest = PATIENCE.saturating_sub(start.elapsed());
        let more = received.recv_timeout(rest);
        all.extend(more.unwrap_or_else(|_| panic!("{texts:?} in {}", String::from_utf8_lossy(&all))));
    }
    all
}

fn has(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|w| w == part)
}

#[test]
fn a_collector_gets_statements_errors_and_commits() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let (endpoint, received) = collector();
    let setting = format!("traces_endpoint={endpoint}");
    let server = Serving::start(data.path(), &["-c", &setting, "-c", "cluster_name=here"]);
    let mut client = server.connect("postgres", None).expect("it connects");
    client.batch_execute("create table t (a int)").expect("it runs");
    client.batch_execute("create role ann password 'hidden word'").expect("it runs");
    client.batch_execute(&format!("insert into t values (1) /*traceparent='00-{TRACE}-b7ad6b7169203331-01'*/")).expect("it runs");
    client.batch_execute(&format!("select 'unsampled' /*traceparent='00-{TRACE}-b7ad6b7169203331-00'*/")).expect("it runs");
    client.query("select a + $1 from t", &[&1]).expect("it runs");
    client.batch_execute("select 1 / 0").expect_err("a division by zero");
    let all =
        until(&received, &["/v1/traces", "CREATE TABLE", "commit", "select a + $1 from t", "22012", "division by zero", "here"]);
    // The ids of the client: protobuf's fields 1 and 4.
    let ids = |hex: &str| {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex")).collect::<Vec<_>>()
    };
    assert!(
        has(&all, &[b"\x0a\x10".as_slice(), &ids(TRACE)].concat())
            && has(&all, &[b"\x22\x08".as_slice(), &ids("b7ad6b7169203331")].concat())
    );
    assert!(has(&all, b"<redacted>") && !has(&all, b"hidden word") && !has(&all, b"'unsampled'"));
}

#[test]
fn messages_of_errors_have_no_passwords_and_without_texts_no_values() {
    let status = |text_max_length: &str, statement: &str, waits_for: &str| {
        let data = tempfile::tempdir().expect("a temporary directory");
        let (endpoint, received) = collector();
        let (endpoint, length) = (format!("traces_endpoint={endpoint}"), format!("traces_text_max_length={text_max_length}"));
        let server = Serving::start(data.path(), &["-c", &endpoint, "-c", &length]);
        let mut client = server.connect("postgres", None).expect("it connects");
        client.batch_execute(statement).expect_err("no integer");
        until(&received, &[waits_for, "22P02"])
    };
    let all = status("2kB", "select $$alter role x password 'hidden word'$$::int", "invalid input syntax");
    assert!(has(&all, b"<redacted>") && !has(&all, b"hidden word"));
    assert!(!has(&status("0", "select 'hidden word'::int", "/v1/traces"), b"hidden word"));
}

#[test]
fn a_server_without_its_collector_serves_and_says_so() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let options = ["-c", "traces_endpoint=http://127.0.0.1:9", "-c", "traces_text_max_length=0"];
    let server = Serving::start(data.path(), &options);
    let mut client = server.connect("postgres", None).expect("it connects");
    let start = Instant::now();
    (0..5000).for_each(|_| client.batch_execute("").expect("it runs"));
    client.batch_execute("select 1").expect("it runs");
    loop {
        let line = server.said.recv_timeout(PATIENCE.saturating_sub(start.elapsed())).expect("a warning");
        if line.contains("could not send traces to http://127.0.0.1:9/v1/traces: ") {
            assert!(line.contains("WARNING") && line.contains("spans are lost"), "{line}");
            break;
        }
    }
}

#[test]
fn an_endpoint_that_is_none_keeps_the_server_from_starting() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let said = refused(data.path(), &["-c", "traces_endpoint=localhost:4318"]);
    assert!(said.contains("\"localhost:4318\" is no endpoint for traces: it is no URL of http or https"), "{said}");
}
