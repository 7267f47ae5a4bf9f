//! The port over real sockets, without a database: what is refused before a statement could run.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use super::*;

fn console() -> String {
    let bound = Bound::new("127.0.0.1:0", &["https://db.example.com".to_owned()]).expect("a port");
    let address = bound.url().trim_start_matches("http://").trim_end_matches('/').to_owned();
    // Nobody listens there.
    let target = Target::parse("host=127.0.0.1 port=1 connect_timeout=1").expect("a target");
    std::thread::spawn(move || bound.serve(target, Box::new(|_| false)));
    address
}

fn ask(address: &str, request: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.unwrap_or_else(|| panic!("no status: {answer:?}")), answer)
}

fn post(address: &str, path: &str, headers: &str, body: &str) -> u16 {
    let length = body.len();
    ask(address, &format!("POST {path} HTTP/1.1\r\nHost: {address}\r\n{headers}Content-Length: {length}\r\n\r\n{body}")).0
}

#[test]
fn the_page_is_bound_by_its_headers() {
    let address = console();
    let (status, answer) = ask(&address, &format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n"));
    assert_eq!(status, 200);
    for header in
        ["default-src 'none'", "frame-ancestors 'none'", "X-Content-Type-Options: nosniff", "Referrer-Policy: no-referrer"]
    {
        assert!(answer.contains(header), "{header} is missing in {answer}");
    }
    assert!(!answer.contains("unsafe-inline"));
    assert_eq!(ask(&address, &format!("GET /../Cargo.toml HTTP/1.1\r\nHost: {address}\r\n\r\n")).0, 404);
    assert_eq!(ask(&address, &format!("DELETE / HTTP/1.1\r\nHost: {address}\r\n\r\n")).0, 405);
}

#[test]
fn a_page_of_another_name_is_refused() {
    let address = console();
    let port = address.split(':').next_back().expect("a port").to_owned();
    let status = |host: &str| ask(&address, &format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")).0;
    assert_eq!(status("evil.example.com"), 421);
    assert_eq!(status(&format!("evil.example.com:{port}")), 421, "DNS that was changed to this address");
    assert_eq!(status("127.0.0.1:1"), 421);
    assert_eq!(status(&format!("localhost:{port}")), 200);
    assert_eq!(status("db.example.com"), 200, "a proxy");
    assert_eq!(ask(&address, "GET / HTTP/1.1\r\n\r\n").0, 421);
    assert_eq!(ask(&address, &format!("GET / HTTP/1.1\r\nHost: {address}\r\nHost: evil\r\n\r\n")).0, 421);
}

#[test]
fn a_request_of_another_page_is_refused() {
    let address = console();
    let login = "{\"user\": \"postgres\"}";
    assert_eq!(post(&address, "/api/login", "", login), 403, "no origin");
    assert_eq!(post(&address, "/api/login", "Origin: null\r\n", login), 403);
    assert_eq!(post(&address, "/api/login", "Origin: http://evil.example.com\r\n", login), 403);
    let own = format!("Origin: http://{address}\r\n");
    assert_eq!(post(&address, "/api/query", &own, "{}"), 401, "no session");
    let forged = format!("{own}Cookie: melba_console_{}=0000; x=y\r\n", address.split(':').next_back().expect("a port"));
    assert_eq!(post(&address, "/api/query", &forged, "{}"), 401);
    assert_eq!(ask(&address, &format!("GET /api/download/x HTTP/1.1\r\nHost: {address}\r\n\r\n")).0, 401);
    assert_eq!(ask(&address, &format!("GET /reports/one.html HTTP/1.1\r\nHost: {address}\r\n\r\n")).0, 401);
    assert_eq!(ask(&address, &format!("GET /api/query HTTP/1.1\r\nHost: {address}\r\n\r\n")).0, 404);
}

#[test]
fn malformed_and_oversized_requests_are_answered() {
    let address = console();
    let own = format!("Origin: http://{address}\r\n");
    assert_eq!(post(&address, "/api/login", &own, "{\"user\": 1}"), 400);
    assert_eq!(post(&address, "/api/login", &own, "not JSON"), 400);
    assert_eq!(post(&address, "/api/login", &own, "{\"user\": \"a\\u0000b\"}"), 400);
    assert_eq!(post(&address, "/api/login", &own, &"x".repeat(5000)), 413);
    assert_eq!(post(&address, "/api/login", &own, "{\"user\": \"postgres\"}"), 403, "the server cannot be reached");
    assert_eq!(ask(&address, "nonsense\r\n\r\n").0, 400);
    assert_eq!(ask(&address, &format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "y".repeat(9000))).0, 431);
}

#[test]
fn clients_that_send_nothing_keep_nobody_out() {
    let address = console();
    let silent: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(&address).expect("it listens")).collect();
    assert_eq!(ask(&address, &format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n")).0, 200);
    drop(silent);
}

#[test]
fn the_console_is_for_this_machine() {
    assert!(Bound::new("0.0.0.0:0", &[]).err().is_some_and(|e| e.contains("this machine only")));
    assert!(Bound::new("127.0.0.1:0", &["db.example.com".to_owned()]).err().is_some_and(|e| e.contains("no origin")));
}
