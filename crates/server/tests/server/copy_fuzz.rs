//! COPY FROM STDIN of broken input: text, csv and binary data, valid and then mutated, in pieces of any size.
//!
//! Whatever comes, the answer is a row count or an error that is the input's fault, and the connection stays in step.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use crate::running::{Peer, Running};

const CASES: u64 = 4000;

/// Classes of errors that bad input may raise: data, integrity, syntax and names, limits, cancelled by the client, protocol.
const CLEAN: &[&str] = &["22", "23", "42", "54", "57", "08"];

const COMMANDS: &[&str] = &[
    "copy t from stdin",
    "copy t (d, a) from stdin (delimiter ',', null '')",
    "copy t from stdin (on_error ignore, log_verbosity silent)",
    "copy t from stdin (header)",
    "copy t from stdin (format csv)",
    "copy t from stdin (format csv, header match)",
    "copy t from stdin (format csv, quote '''', escape '\\', delimiter '|', null 'N')",
    "copy t (a, b) from stdin (format csv, force_not_null (b), force_null (a))",
    "copy t from stdin (format binary)",
    "copy t (a) from stdin (format binary)",
];

/// Pieces that readers of these formats take apart.
const PIECES: &[&[u8]] = &[
    b"\n",
    b"\r\n",
    b"\r",
    b"\t",
    b",",
    b"|",
    b"\\",
    b"\\.",
    b"\\.\n",
    b"\\N",
    b"\\x",
    b"\\x4",
    b"\\777",
    b"\"",
    b"\"\"",
    b"'",
    b"\0",
    b"\xff",
    b"\xc3",
    b"\xe2\x98\x95",
    b"1",
    b"-",
    b"1e400",
    b"99999999999999999999",
    b"NaN",
    b"{1,2",
    b"{}",
    b"{{1},{2,3}}",
    b"\\\\xff",
    b"\\\\x0",
    b"2024-02-30",
    b"a,b,c,d,e\n",
    b"PGCOPY\n\xff\r\n\0",
    b"\0\0\0\0",
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\0\x05",
    b"\xff\xff",
    b"\0\0\0\x04",
];

#[test]
fn broken_copy_input_is_refused_cleanly() {
    let server = Running::start(&[]);
    let mut peer = server.log_in();
    assert_eq!(peer.query("create table t (a int, b text, c numeric, d bytea, e int[])"), "CZ");
    let mut accepted = 0;
    for seed in 0..CASES {
        let mut random = StdRng::seed_from_u64(seed);
        let command = COMMANDS.choose(&mut random).expect("there are some");
        let data = input(&mut random, command.contains("csv"), command.contains("binary"));
        let answer = copy(&mut peer, &mut random, command, &data);
        let clean = match answer.strip_suffix('Z') {
            Some("GC") => true,
            Some(rest) => {
                let state = rest.trim_start_matches(['G', 'N']).strip_prefix("E[ERROR ");
                state.is_some_and(|s| s.len() == 6 && CLEAN.iter().any(|class| s.starts_with(class)))
            }
            None => false,
        };
        assert!(clean, "seed {seed}: {command} of {:?} gave {answer}", String::from_utf8_lossy(&data));
        accepted += u64::from(answer == "GCZ");
        if seed % 50 == 0 {
            assert_eq!(peer.query("select count(*), sum(length(b)), max(e) from t"), "TDCZ", "seed {seed}");
        }
    }
    assert!(accepted > CASES / 20, "only {accepted} of {CASES} inputs were accepted: the mutations are too hard");
    assert!(accepted < CASES * 9 / 10, "{accepted} of {CASES} inputs were accepted: the mutations are too soft");
}

/// Some valid rows of the table, most of the time damaged.
fn input(random: &mut StdRng, csv: bool, binary: bool) -> Vec<u8> {
    let mut data = Vec::new();
    if binary {
        data.extend_from_slice(b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0");
    }
    for row in 0..random.random_range(0..5i32) {
        if binary {
            data.extend_from_slice(&5i16.to_be_bytes());
            let array =
                [&[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 23, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 4][..], &row.to_be_bytes()].concat();
            for field in [&row.to_be_bytes()[..], b"text", &[0, 1, 0, 0, 0, 0, 0, 0, 0, 7], b"\x00\xff", &array] {
                data.extend_from_slice(&(field.len() as i32).to_be_bytes());
                data.extend_from_slice(field);
            }
        } else if csv {
            data.extend_from_slice(format!("{row},\"te,\"\"xt\",{row}.5,\\x00ff,\"{{1,{row}}}\"\n").as_bytes());
        } else {
            data.extend_from_slice(format!("{row}\tte\\tx\\x41\t{row}.5\t\\\\x00ff\t{{1,{row}}}\n").as_bytes());
        }
    }
    if binary && random.random_bool(0.8) {
        data.extend_from_slice(&(-1i16).to_be_bytes());
    }
    if random.random_bool(0.8) {
        for _ in 0..random.random_range(1..4) {
            mutate(random, &mut data);
        }
    }
    data
}

fn mutate(random: &mut StdRng, data: &mut Vec<u8>) {
    let at = random.random_range(0..=data.len());
    let end = (at + random.random_range(0..8)).min(data.len());
    match random.random_range(0..5) {
        0 => data.truncate(at),
        1 => drop(data.drain(at..end)),
        2 => data[at..end].iter_mut().for_each(|byte| *byte = random.random()),
        3 => {
            let piece = PIECES.choose(random).expect("there are some");
            data.splice(at..end, piece.iter().copied());
        }
        _ => {
            let piece = data[at..end].to_vec();
            let to = random.random_range(0..=data.len());
            data.splice(to..to, piece);
        }
    }
}

/// Runs a COPY with its data in pieces; gives the types of all messages up to ReadyForQuery.
fn copy(peer: &mut Peer, random: &mut StdRng, command: &str, mut data: &[u8]) -> String {
    let mut messages = message(b'Q', &[command.as_bytes(), b"\0"].concat());
    let piece_bytes_max = *[1, 3, 17, 4096].choose(random).expect("there are some");
    while !data.is_empty() {
        let (piece, rest) = data.split_at(random.random_range(1..=piece_bytes_max).min(data.len()));
        messages.extend(message(b'd', piece));
        data = rest;
    }
    let end = if random.random_bool(0.05) { message(b'f', b"no more\0") } else { message(b'c', b"") };
    messages.extend(end);
    peer.send(&messages);
    peer.until(b'Z')
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut message = vec![tag];
    message.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    message.extend_from_slice(body);
    message
}
