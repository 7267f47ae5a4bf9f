use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use super::*;

fn status(head: &str) -> Option<u16> {
    match parse(head.as_bytes()) {
        Ok(None) => None,
        Ok(Some(_)) => Some(200),
        Err(response) => Some(response.status),
    }
}

fn parsed(head: &str) -> Request {
    parse(head.as_bytes()).ok().flatten().expect("it is whole")
}

#[test]
fn only_whole_requests_of_a_known_length_are_taken() {
    assert_eq!(status("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"), Some(200));
    assert_eq!(status("GET /metrics HTTP/1.1\r\nHost: x\r\n"), None);
    assert_eq!(status("GET /metrics HTTP/1.0\n\n"), Some(200));
    assert_eq!(status("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"), Some(411));
    assert_eq!(status("POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"), Some(400));
    assert_eq!(status("POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\n"), Some(400));
    assert_eq!(status("POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"), Some(400));
    assert_eq!(status("POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n"), Some(400));
    assert_eq!(status("GET / HTTP/2.0\r\n\r\n"), Some(505));
    assert_eq!(status("\u{16}\u{3}\u{1}garbage\r\n\r\n"), Some(400), "TLS to a port without it");
    let many = "X: y\r\n".repeat(HEADERS_MAX + 1);
    assert_eq!(status(&format!("GET / HTTP/1.1\r\n{many}\r\n")), Some(431));
}

#[test]
fn a_body_is_refused_where_none_is_taken() {
    let request = parsed("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhel");
    assert_eq!((request.body_bytes, request.begun.as_slice()), (5, &b"hel"[..]));
    assert_eq!(request.refused_body().map(|response| response.status), Some(413));
    assert!(parsed("GET / HTTP/1.1\r\nContent-Length: 0\r\n\r\n").refused_body().is_none());
}

#[test]
fn a_path_ends_before_its_query() {
    let request = parsed("GET /metrics?name[]=pg_up HTTP/1.1\r\nAuthorization: Bearer x\r\n\r\n");
    assert_eq!((request.path.as_str(), request.query.as_str()), ("/metrics", "name[]=pg_up"));
    assert_eq!(request.header("authorization"), Some("Bearer x"));
    assert_eq!(parsed("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n").header("host"), None, "which is it?");
}

#[test]
fn bodies_pass_and_answers_in_pieces_are_whole() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let client = std::thread::spawn(move || {
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.write_all(b"POST / HTTP/1.1\r\nContent-Length: 6\r\n\r\nabc").expect("sent");
        std::thread::sleep(Duration::from_millis(20));
        stream.write_all(b"defghi").expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    });
    let (stream, _) = listener.accept().expect("a client");
    let mut request = read(&stream).map_err(drop).expect("a request");
    let body = RequestBody::new(&mut request, &stream).whole(6).map_err(drop).expect("a body");
    assert_eq!(body, b"abcdef", "what follows the body is not part of it");
    let mut answer = Pieces::begin(&stream, &Response::text(200, "")).expect("begun");
    answer.write_all(b"hello").and_then(|()| answer.flush()).expect("sent");
    answer.finish().expect("sent");
    drop(stream);
    let answer = client.join().expect("it ran");
    assert!(answer.contains("Transfer-Encoding: chunked") && answer.ends_with("\r\n\r\n5\r\nhello\r\n0\r\n\r\n"), "{answer}");
}
