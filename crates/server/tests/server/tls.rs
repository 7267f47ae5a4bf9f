//! Encrypted connections: agreement, certificates of clients, and answers that are in step with what was asked.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::encrypted::{Authority, Credentials, Encrypted, SSL_REQUEST, write};
use crate::running::{Peer, Running, query, startup};

struct Secured {
    server: Running,
    authority: Authority,
    folder: tempfile::TempDir,
}

impl Secured {
    fn start(hba: &str, settings: &[(&str, &str)]) -> Secured {
        Secured::start_with(Authority::new("authority"), hba, settings)
    }

    fn start_with(authority: Authority, hba: &str, settings: &[(&str, &str)]) -> Secured {
        let folder = tempfile::tempdir().expect("a folder");
        let signed = authority.sign("localhost", 1);
        let certificate = write(folder.path(), "server.crt", &signed.certificate);
        let key = write(folder.path(), "server.key", &signed.key);
        let hba = write(folder.path(), "pg_hba.conf", hba);
        let ours = [
            ("ssl", "on"),
            ("ssl_cert_file", certificate.as_str()),
            ("ssl_key_file", &key),
            ("hba_file", &hba),
            ("auth_delay.milliseconds", "0"),
        ];
        let settings: Vec<(&str, &str)> = ours.iter().chain(settings).copied().collect();
        Secured { server: Running::start(&settings), authority, folder }
    }

    fn log_in(&self) -> Peer<Encrypted> {
        let stream = Credentials::of(&self.authority.certificate).connect(self.server.address).expect("they agree");
        log_in(stream, "postgres").unwrap_or_else(|e| panic!("{e}"))
    }
}

/// The connection up to ReadyForQuery, or what the server says instead.
fn log_in<S: Read + Write>(stream: S, user: &str) -> Result<Peer<S>, String> {
    let mut peer = Peer(stream);
    peer.send(&startup(format!("user\0{user}\0database\0postgres\0").as_bytes()));
    let answer = peer.until(b'Z');
    if answer.ends_with('Z') { Ok(peer) } else { Err(answer) }
}

/// The fields of the first row.
fn row<S: Read + Write>(peer: &mut Peer<S>, sql: &str) -> Vec<String> {
    peer.send(&query(sql));
    let mut fields = Vec::new();
    while let Some((tag, body)) = peer.body() {
        if tag == b'D' && fields.is_empty() {
            let mut rest = &body[2..];
            while let Some((length, after)) = rest.split_first_chunk::<4>() {
                let length = i32::from_be_bytes(*length).max(0) as usize;
                fields.push(String::from_utf8_lossy(&after[..length]).into_owned());
                rest = &after[length..];
            }
        }
        if tag == b'Z' {
            break;
        }
    }
    fields
}

const TRUST: &str = "host all all all trust";
const OWN_ROW: &str =
    "select ssl, version, cipher, bits, client_dn, client_serial, issuer_dn from pg_stat_ssl where pid = pg_backend_pid()";

#[test]
fn clients_agree_in_both_ways_and_versions() {
    let secured = Secured::start("hostssl all all all trust", &[]);
    for (version, shown) in [
        (&rustls::version::TLS13, ["t", "TLSv1.3", "TLS_AES_256_GCM_SHA384", "256"]),
        (&rustls::version::TLS12, ["t", "TLSv1.2", "ECDHE-ECDSA-AES256-GCM-SHA384", "256"]),
    ] {
        let credentials = Credentials { versions: vec![version], ..Credentials::of(&secured.authority.certificate) };
        for stream in [credentials.connect(secured.server.address), credentials.connect_directly(secured.server.address)] {
            let mut peer = log_in(stream.expect("they agree"), "postgres").unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(row(&mut peer, OWN_ROW)[..4], shown);
        }
    }
    // Without TLS no rule is for them.
    let plain = log_in(secured.server.connect().0, "postgres").err();
    assert_eq!(plain.as_deref(), Some("E[FATAL 28000]"));
    // Without the protocol's name only who asks first may encrypt.
    let nameless = Credentials { protocols: &[], ..Credentials::of(&secured.authority.certificate) };
    log_in(nameless.connect(secured.server.address).expect("they agree"), "postgres").unwrap_or_else(|e| panic!("{e}"));
    let direct = nameless.connect_directly(secured.server.address).map(|stream| log_in(stream, "postgres").err());
    assert!(direct.is_err() || direct.is_ok_and(|answer| answer == Some(String::new())));
    let other = Credentials { protocols: &["http/1.1"], ..Credentials::of(&secured.authority.certificate) };
    assert!(other.connect(secured.server.address).is_err());
}

#[test]
fn bytes_before_the_tls_handshake_are_refused() {
    let secured = Secured::start(TRUST, &[]);
    let mut peer = secured.server.connect();
    let mut bytes = SSL_REQUEST.to_vec();
    bytes.extend_from_slice(&startup(b"user\0postgres\0"));
    peer.send(&bytes);
    assert_eq!(peer.message(), Some((b'E', "FATAL 08P01".to_owned())));
    assert_eq!(peer.message(), None);
    // A second request makes no sense within.
    let stream = Credentials::of(&secured.authority.certificate).connect(secured.server.address).expect("they agree");
    let mut peer = Peer(stream);
    peer.send(&SSL_REQUEST);
    assert_eq!(peer.message(), Some((b'E', "FATAL 0A000".to_owned())));
}

#[test]
fn clients_show_certificates() {
    let authority = Authority::new("authority");
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str, text: &str| write(folder.path(), name, text);
    let ca = path("ca.crt", &authority.certificate);
    let crl = path("list.crl", &authority.revoke(&[9]));
    let ident = path("pg_ident.conf", "people /^(.*)@example\\.org$ \\1\n");
    let rules = "hostssl all mapped all cert map=people\nhostssl all ann,bob all cert\nhostssl all carl all cert clientname=DN\n\
         hostssl all dora all trust clientcert=verify-ca\nhostssl all eve all trust clientcert=verify-full\nhost all all all trust\n";
    let settings = [("ssl_ca_file", ca.as_str()), ("ssl_crl_file", &crl), ("ident_file", &ident)];
    let secured = Secured::start_with(authority, rules, &settings);
    let mut first = secured.log_in();
    for role in ["ann", "bob", "mapped", "carl", "dora", "eve"] {
        assert_eq!(first.query(&format!("create role {role} login")), "CZ");
    }
    let ann = secured.authority.sign("ann", 7);
    let mapped = secured.authority.sign("mapped@example.org", 8);
    let revoked = secured.authority.sign("ann", 9);
    let other = Authority::new("another").sign("ann", 7);
    let attempt = |certificate, user: &str| {
        let credentials = Credentials { certificate, ..Credentials::of(&secured.authority.certificate) };
        match credentials.connect(secured.server.address) {
            Err(_) => "no agreement".to_owned(),
            Ok(stream) => match log_in(stream, user) {
                Ok(mut peer) => row(&mut peer, OWN_ROW)[4..].join(" "),
                // With TLS 1.3 the client is done before the server has looked at its certificate.
                Err(answer) if answer.is_empty() => "no agreement".to_owned(),
                Err(answer) => answer,
            },
        }
    };
    let shown = "/CN=ann 7 /CN=authority";
    for (what, certificate, user, expected) in [
        ("the name", Some(&ann), "ann", shown),
        ("another name", Some(&ann), "bob", "E[FATAL 28000]"),
        ("a mapped name", Some(&mapped), "mapped", "/CN=mapped@example.org 8 /CN=authority"),
        ("a name that is not mapped", Some(&ann), "mapped", "E[FATAL 28000]"),
        ("the whole name", Some(&ann), "carl", "E[FATAL 28000]"),
        ("any certificate", Some(&ann), "dora", shown),
        ("any certificate, but its name", Some(&ann), "eve", "E[FATAL 28000]"),
        ("none", None, "ann", "E[FATAL 28000]"),
        ("none for any", None, "dora", "E[FATAL 28000]"),
        ("a revoked one", Some(&revoked), "ann", "no agreement"),
        ("a stranger's", Some(&other), "ann", "no agreement"),
    ] {
        assert_eq!(attempt(certificate, user), expected, "{what}");
    }
}

/// Messages do not keep to records: many are in one, and one is in many. Nothing that was decrypted waits for news of the socket.
#[test]
fn answers_come_however_messages_lie_in_records() {
    let secured = Secured::start(TRUST, &[]);
    let mut peer = secured.log_in();
    peer.0.sock.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
    peer.0.sock.set_nodelay(true).expect("an option");
    let many: Vec<u8> = (0..500).flat_map(|n| query(&format!("select {n}"))).collect();
    peer.send(&many);
    for n in 0..500 {
        assert_eq!(peer.until(b'Z'), "TDCZ", "{n}");
    }
    for byte in query("select 'a message in many records'") {
        peer.send(&[byte]);
    }
    assert_eq!(peer.until(b'Z'), "TDCZ");
    // The last record ends within a message.
    let two = [query("select 1"), query("select 2")].concat();
    for cut in 1..two.len() {
        peer.send(&two[..cut]);
        if cut % 3 == 0 {
            std::thread::sleep(Duration::from_millis(2));
        }
        peer.send(&two[cut..]);
        assert_eq!((peer.until(b'Z'), peer.until(b'Z')), ("TDCZ".to_owned(), "TDCZ".to_owned()), "cut at {cut}");
    }
    // Keys are renewed on the way.
    for _ in 0..3 {
        peer.0.conn.refresh_traffic_keys().expect("TLS 1.3");
        assert_eq!(peer.query("select 1"), "TDCZ");
    }
}

#[test]
fn large_messages_go_in_both_directions() {
    let secured = Secured::start(TRUST, &[]);
    let mut peer = secured.log_in();
    let answer = row(&mut peer, &format!("select md5('{0}'), length('{0}')", "x".repeat(5 << 20)));
    assert_eq!(answer[1], (5 << 20).to_string());
    assert_eq!(row(&mut peer, "select repeat('y', 20000000)")[0].len(), 20_000_000);
    let rows = "select i, repeat('z', 200) from generate_series(1, 50000) i";
    assert_eq!(peer.query(rows).matches('D').count(), 50_000);
    assert_eq!(peer.query("create table t(a text)"), "CZ");
    peer.send(&query("copy t from stdin"));
    assert_eq!(peer.until(b'G'), "G");
    for _ in 0..100 {
        let line = format!("{}\n", "c".repeat(100_000));
        peer.send(&[&[b'd'][..], &(line.len() as u32 + 4).to_be_bytes(), line.as_bytes()].concat());
    }
    peer.send(b"c\0\0\0\x04");
    assert_eq!(peer.until(b'Z'), "CZ");
    assert_eq!(row(&mut peer, "select count(*), sum(length(a)) from t"), ["100", "10000000"]);
}

/// Many at once, with answers that are sent together and commits that are ended together.
#[test]
fn many_encrypted_and_plain_clients_are_answered() {
    let secured = Secured::start(TRUST, &[]);
    assert_eq!(
        secured
            .log_in()
            .query("create table t(id int primary key, n int); insert into t select i, 0 from generate_series(0, 31) i"),
        "CCZ"
    );
    std::thread::scope(|scope| {
        for number in 0..32 {
            let secured = &secured;
            scope.spawn(move || match number % 4 {
                0 => ask(&mut secured.server.log_in(), |peer| &peer.0, number),
                _ => ask(&mut secured.log_in(), |peer| &peer.0.sock, number),
            });
        }
    });
    assert_eq!(row(&mut secured.log_in(), "select count(*), min(n), max(n) from t"), ["32", "100", "100"]);
}

fn ask<S: Read + Write>(peer: &mut Peer<S>, socket: impl Fn(&Peer<S>) -> &TcpStream, number: usize) {
    socket(peer).set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    let add = query(&format!("update t set n = n + 1 where id = {number}"));
    let look = query("select 1");
    for round in 0..50 {
        let sent = [&add[..], &look, &add, &look].concat();
        peer.send(&sent);
        for expected in ["CZ", "TDCZ", "CZ", "TDCZ"] {
            assert_eq!(peer.until(b'Z'), expected, "client {number}, round {round}");
        }
    }
}

#[test]
fn ends_are_found_and_said() {
    let secured = Secured::start(TRUST, &[("idle_session_timeout", "300")]);
    let mut peer = secured.log_in();
    assert_eq!(peer.message(), Some((b'E', "FATAL 57P05".to_owned())));
    let mut rest = Vec::new();
    // An end without close_notify would be an error here.
    peer.0.read_to_end(&mut rest).expect("the server says that it is the end");
    assert_eq!(rest, b"");

    // A cancel request is answered by that alone.
    let stream = Credentials::of(&secured.authority.certificate).connect(secured.server.address).expect("they agree");
    let mut canceller = Peer(stream);
    canceller.send(&[0, 0, 0, 16, 0x04, 0xd2, 0x16, 0x2e, 0, 0, 0, 1, 0, 0, 0, 1]);
    canceller.0.read_to_end(&mut rest).expect("the server says that it is the end");
    assert_eq!(rest, b"");

    // A client that says so is gone, though its socket is open.
    let secured = Secured::start(TRUST, &[]);
    let mut leaving = secured.log_in();
    leaving.0.conn.send_close_notify();
    leaving.0.flush().expect("it is sent");
    let mut other = secured.log_in();
    let count = "select count(*) from pg_stat_activity";
    let began = std::time::Instant::now();
    while row(&mut other, count) != ["1"] {
        assert!(began.elapsed() < Duration::from_secs(20), "the session is still there");
        std::thread::sleep(Duration::from_millis(10));
    }
    // What is no record ends the connection.
    other.0.sock.write_all(&[0xff; 64]).expect("it is sent");
    assert!(other.body().is_none());
    drop(secured.folder);
}

#[test]
fn notifications_reach_an_idle_session_over_tls() {
    let secured = Secured::start(TRUST, &[]);
    let (mut listener, mut other) = (secured.log_in(), secured.log_in());
    listener.send(&query("listen news"));
    assert_eq!(listener.until(b'Z'), "CZ");
    for n in 0..3 {
        other.send(&query(&format!("notify news, '{n}'")));
        assert_eq!(other.until(b'Z'), "CZ");
        let (tag, body) = listener.body().expect("the connection is there");
        assert_eq!((tag, &body[4..]), (b'A', format!("news\0{n}\0").as_bytes()));
    }
}
