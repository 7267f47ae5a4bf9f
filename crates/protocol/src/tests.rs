use melba_types::{Severity, SqlState, err};

use crate::body::utf8;
use crate::frame::NextFrame;
use crate::frontend::decode_sasl_initial;
use crate::startup::NextStartup;
use crate::*;

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    out.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    out.extend_from_slice(body);
    out
}

fn startup(code: u32, body: &[u8]) -> Vec<u8> {
    let mut out = (body.len() as u32 + 8).to_be_bytes().to_vec();
    out.extend_from_slice(&code.to_be_bytes());
    out.extend_from_slice(body);
    out
}

const BIND: &[u8] = b"p\0s\0\0\x01\0\x01\0\x02\0\0\0\x02ab\xff\xff\xff\xff\0\x02\0\0\0\x01";

#[test]
fn bind_is_read_without_copying() {
    let Frontend::Bind(bind) = Frontend::decode(b'B', BIND).unwrap() else { panic!("not a bind") };
    assert_eq!((bind.portal, bind.statement), ("p", "s"));
    assert_eq!(bind.parameters.iter().collect::<Vec<_>>(), [Some(&b"ab"[..]), None]);
    assert_eq!(bind.parameter_formats.get(1), Format::Binary, "one code stands for all");
    assert_eq!(bind.result_formats.expand(2), Some(vec![Format::Text, Format::Binary]));
    assert_eq!(bind.result_formats.expand(3), None);
}

#[test]
fn malformed_bodies_are_protocol_violations() {
    for (tag, body) in [
        (b'Q', &b"no terminator"[..]),
        (b'Q', b"text\0trailing"),
        (b'P', b"\0\0\0\x09"),
        (b'D', b"X\0"),
        (b'E', b"\0\0"),
        (b'B', &BIND[..BIND.len() - 1]),
        (b'F', b"\0\0\0\x01"),
    ] {
        let error = Frontend::decode(tag, body).unwrap_err();
        assert_eq!(error.sqlstate(), SqlState::PROTOCOL_VIOLATION, "{} {body:?}", tag as char);
    }
}

#[test]
fn invalid_utf8_names_the_bytes() {
    let error = Frontend::decode(b'Q', b"select '\xc3\x28'\0").unwrap_err();
    assert_eq!(error.sqlstate(), SqlState::CHARACTER_NOT_IN_REPERTOIRE);
    assert_eq!(error.message(), "invalid byte sequence for encoding \"UTF8\": 0xc3 0x28");
    assert_eq!(utf8(b"\xff").unwrap_err().message(), "invalid byte sequence for encoding \"UTF8\": 0xff");
    assert_eq!(utf8(b"a\0\xff").unwrap_err().message(), "invalid byte sequence for encoding \"UTF8\": 0x00");
    assert_eq!(utf8(b"a\xff\0").unwrap_err().message(), "invalid byte sequence for encoding \"UTF8\": 0xff");
}

#[test]
fn frames_are_cut_and_limited() {
    let mut stream = message(b'S', b"");
    stream.extend(message(b'Q', b"x\0"));
    assert_eq!(next_frame(&stream).unwrap(), NextFrame::Frame(MessageFrame { tag: b'S', body: 5, end: 5 }));
    assert_eq!(next_frame(&stream[5..9]).unwrap(), NextFrame::Need(5));
    assert_eq!(next_frame(&stream[5..11]).unwrap(), NextFrame::Need(7));
    for bad in [&b"S\0\0\0\x03"[..], b"S\0\0\xff\xff", b"Q\x7f\0\0\0"] {
        assert_eq!(next_frame(bad).unwrap(), NextFrame::Lost);
    }
    let error = next_frame(b"!\0\0\0\x04").unwrap_err();
    assert_eq!((error.sqlstate(), error.fields().severity), (SqlState::PROTOCOL_VIOLATION, Severity::Fatal));
}

#[test]
fn startup_packets() {
    assert_eq!(next_startup(&startup(80877103, b"")).unwrap(), NextStartup::Packet(Startup::Ssl, 8));
    assert_eq!(next_startup(&startup(80877104, b"")).unwrap(), NextStartup::Packet(Startup::Gssenc, 8));
    let cancel = startup(80877102, b"\0\0\0\x07secret");
    assert_eq!(next_startup(&cancel).unwrap(), NextStartup::Packet(Startup::Cancel { pid: 7, secret: b"secret" }, 18));
    let packet = startup(0x0003_270f, b"user\0u\0_pq_.x\0on\0\0");
    let NextStartup::Packet(Startup::Message(m), _) = next_startup(&packet).unwrap() else { panic!("no message") };
    assert_eq!(m.negotiate().unwrap(), (ProtocolVersion::V3_2, vec!["_pq_.x"]));
    assert_eq!(m.parameters().next().unwrap().unwrap(), ("user", "u"));
    assert_eq!(next_startup(&startup(0x0004_0000, b"\0")).unwrap_err().sqlstate(), SqlState::FEATURE_NOT_SUPPORTED);
    let old = ProtocolVersion { major: 2, minor: 0 };
    assert_eq!(next_startup(&startup(0x0002_0000, b"\0")).unwrap(), NextStartup::Packet(Startup::Outdated(old), 9));
    for other in [&b"X\0\0\0\x04"[..], b"\0\0\0\x07\0\x03\0", &startup(80877102, b"\0\0\0\x07")] {
        assert_eq!(next_startup(other).unwrap(), NextStartup::NoPacket);
    }
    for bad in [startup(0x0003_0000, b"user\0u\0"), startup(0x0003_0000, b"user\0\0"), startup(0x0003_0000, b"")] {
        assert_eq!(next_startup(&bad).unwrap_err().sqlstate(), SqlState::PROTOCOL_VIOLATION);
    }
}

#[test]
fn backend_messages_have_their_bytes() {
    let mut out = Output::new();
    out.begin_data_row(2);
    out.null();
    out.value_with::<()>(|b| {
        b.push(b'7');
        Ok(())
    })
    .unwrap();
    out.end();
    assert_eq!(out.bytes(), b"D\0\0\0\x0f\0\x02\xff\xff\xff\xff\0\0\0\x017");
    out.clear();
    let error = err!(SYNTAX_ERROR, "bad").at(4).severity(Severity::Error).routine("base_yyerror");
    out.report(&error);
    let line = error.fields().origin.line();
    let fields = format!("SERROR\0VERROR\0C42601\0Mbad\0P5\0Ftests.rs\0L{line}\0Rbase_yyerror\0\0");
    assert_eq!(out.bytes(), [&b"E"[..], &(fields.len() as u32 + 4).to_be_bytes(), fields.as_bytes()].concat());
}

/// The decoder under mutated and random messages: any answer but a panic, and only the documented SQLSTATEs.
#[test]
fn fuzzed_messages_are_clean_errors() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let seeds: Vec<Vec<u8>> = vec![
        message(b'Q', b"select 1\0"),
        message(b'P', b"s\0select $1\0\0\x01\0\0\0\x17"),
        message(b'B', BIND),
        message(b'D', b"Ss\0"),
        message(b'E', b"p\0\0\0\0\x0a"),
        message(b'F', b"\0\0\x03\xbb\0\x01\0\x01\0\x01\0\0\0\x04\0\0\0\x01\0\x01"),
        message(b'p', b"SCRAM-SHA-256\0\0\0\0\x02n,"),
        startup(0x0003_0002, b"user\0postgres\0database\0d\0\0"),
    ];
    let expected = [
        SqlState::PROTOCOL_VIOLATION,
        SqlState::CHARACTER_NOT_IN_REPERTOIRE,
        SqlState::INVALID_PARAMETER_VALUE,
        SqlState::FEATURE_NOT_SUPPORTED,
    ];
    let mut failures = 0u32;
    for case in 0..200_000usize {
        let mut bytes = seeds[case % seeds.len()].clone();
        for _ in 0..next() % 4 {
            let at = next() as usize % bytes.len();
            match next() % 4 {
                0 => bytes[at] = next() as u8,
                1 => bytes[at] ^= 1 << (next() % 8),
                2 => bytes.truncate(at.max(1)),
                _ => bytes.insert(at, next() as u8),
            }
        }
        let mut check = |result: melba_types::Result<()>| {
            if let Err(e) = result {
                failures += 1;
                assert!(expected.contains(&e.sqlstate()), "case {case}: {e:?} for {bytes:?}");
            }
        };
        check(next_startup(&bytes).and_then(|s| match s {
            NextStartup::Packet(Startup::Message(m), _) => m.negotiate().map(drop),
            _ => Ok(()),
        }));
        if let Ok(NextFrame::Frame(frame)) = next_frame(&bytes) {
            check(Frontend::decode(frame.tag, &bytes[frame.body..frame.end]).map(|m| {
                if let Frontend::Bind(b) = &m {
                    assert_eq!(b.parameters.iter().count(), b.parameters.len());
                }
            }));
            check(decode_sasl_initial(&bytes[frame.body..frame.end]).map(drop));
        }
        check(next_frame(&bytes).map(drop));
    }
    assert!(failures > 10_000, "the mutations must reach the error paths");
}

#[test]
fn only_what_was_not_sent_can_be_taken_back() {
    let mut out = Output::new();
    out.parse_complete();
    let before = out.mark();
    out.no_data();
    assert_ne!(out.mark(), before);
    out.take_back(before);
    assert_eq!(out.bytes(), [b'1', 0, 0, 0, 4]);
    // What is written after the output was sent is not what was there before it, however long.
    out.clear();
    assert_eq!(out.mark(), before);
    out.bind_complete();
    assert_ne!(out.mark(), before);
    out.take_back(before);
    assert!(out.is_empty());
}
