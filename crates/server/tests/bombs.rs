//! Statements that would take the server's stack, memory or time, if it let them: each has an answer soon, and the server lives.

#![allow(clippy::disallowed_methods, reason = "a test by real time and files")]

#[path = "server/running/mod.rs"]
mod running;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use melba_engine::EngineOptions;
use melba_types::limits::{self, Counting};
use postgres::types::private::BytesMut;
use postgres::types::{IsNull, ToSql, Type};
use postgres::{Client, NoTls};
use running::Running;

#[global_allocator]
static ALLOCATOR: Counting<mimalloc::MiMalloc> = Counting(mimalloc::MiMalloc);

const MEMORY: u64 = 256 << 20;
/// The setting, the code of a test build, what the allocator keeps, and a value in the making beside it.
const RESIDENT_MEGABYTES_MAX: u64 = 800;
/// In a test build on a machine that does other things too.
const ANSWER_SECONDS_MAX: u64 = 20;

/// A statement and what comes of it: an SQLSTATE, or "" for a result.
type Bomb = (&'static str, &'static [&'static str]);

const DEEP: &[Bomb] = &[
    ("select (repeat('(', 100000) || '$' || repeat(')', 100000))::jsonpath", &["54001"]),
    ("select (repeat('-', 100000) || '1')::jsonpath", &["54001"]),
    ("select ('1' || repeat('+1', 100000))::jsonpath", &["54001"]),
    ("select ('$' || repeat(' ? (@.a', 20000) || repeat(')', 20000))::jsonpath", &["54001"]),
    ("select jsonb_path_query('{}', ('$' || repeat('.a', 1000000))::jsonpath)", &["54001"]),
    ("select jsonb_path_query('1', ('1' || repeat('+1', 3000))::jsonpath)", &[""]),
    ("select (repeat('[', 1000000) || repeat(']', 1000000))::json", &["54001"]),
    ("select (repeat('{\"a\":', 1000000) || '1' || repeat('}', 1000000))::jsonb", &["54001"]),
    ("select length((repeat('[', 3000) || repeat(']', 3000))::jsonb::text)", &[""]),
    ("select 'a' ~ (repeat('(', 100000) || 'a' || repeat(')', 100000))", &["2201B"]),
    ("select 'a' ~ '((a{1,255}){1,255}){1,255}'", &["2201B"]),
];

const LARGE: &[Bomb] = &[
    ("select count(*), sum(length(repeat('x', 1000000) || i)) from generate_series(1, 300) i", &[""]),
    ("select repeat('x', 1000000) || i from generate_series(1, 100) i", &[""]),
    ("select length(repeat('x', 1000000000))", &["53200"]),
    ("select repeat('abc', 2000000000)", &["54000"]),
    ("select array_length(array_agg(i), 1) from generate_series(1, 100000000) i", &["53200"]),
    ("select length(string_agg(repeat('x', 1000000), ',')) from generate_series(1, 2000) i", &["53200"]),
    ("select length(json_agg(repeat('x', 1000000))::text) from generate_series(1, 2000) i", &["53200"]),
    ("select length(jsonb_agg(repeat('x', 1000000))::text) from generate_series(1, 2000) i", &["53200", "54000"]),
    ("select length(to_json(repeat(E'\\x01', 60000000))::text)", &["53200"]),
    ("select length(to_jsonb(repeat(E'\\x01', 60000000))::text)", &["53200"]),
    ("create table wide as select repeat(md5(g::text), 32000) t from generate_series(1, 400) g", &[""]),
    ("select count(*) from wide a join wide b on a.t = b.t", &[""]),
    ("select count(*) from (select t from wide order by t offset 0) q", &[""]),
    ("select length(format('%2147483647s', 'x'))", &["54000"]),
    ("select length(format('%900000000s', 'x'))", &["53200"]),
    ("select length(encode(repeat('x', 150000000)::bytea, 'hex'))", &["53200"]),
    ("select length(replace(repeat('a', 100000), 'a', repeat('b', 20000)))", &["54000"]),
    ("select length(regexp_replace(repeat('a', 100000), 'a', repeat('b', 20000), 'g'))", &["53200"]),
    ("select array_length(array_fill(1, array[100000000]), 1)", &["53200"]),
    ("select length(array_to_string(array_fill('a'::text, array[2000]), repeat('x', 1000000)))", &["53200"]),
    ("select array_length(string_to_array(repeat('a,', 20000000), ','), 1)", &["53200"]),
    (
        "select count(f) from (select nth_value(repeat('ab', 5000000), 3) over (order by i) f from generate_series(1, 20000) i) q",
        &["53200"],
    ),
    ("select length(B'1'::bit(83886080) | repeat('1', 83886080)::varbit)", &["", "53200"]),
    ("select pg_catalog.\"bit\"(B'1', 2147483647, true)", &["53200"]),
    ("select bpchar('x', 2147483647, true)", &["XX000"]),
    ("select length(translate(repeat('z', 1000000), repeat('ab', 1000000), 'c'))", &[""]),
    ("select lpad('x', 1000000000)", &["54000"]),
    ("select repeat('9', 1000000)::numeric", &["22003"]),
];

/// They would take minutes and more; statement_timeout ends them.
const ENDLESS: &[Bomb] = &[
    ("select repeat('a', 200000) like '%' || repeat('a_', 10000) || 'b%'", &["57014"]),
    ("select count(*) from generate_series(1, 10000000000)", &["57014"]),
    ("select count(*) from generate_series(1, 100000) a, generate_series(1, 1000000) b where a * b = 7", &["57014"]),
    (
        "with recursive t(r, n) as (select jsonb_build_array(1), 1 union all select jsonb_build_array(r), n + 1 from t where n < 100000) \
         select count(*) from t",
        &["57014"],
    ),
    (
        "with recursive t(r, n) as (select row(1), 1 union all select row(r), n + 1 from t where n < 100000) select count(*) from t",
        &["57014"],
    ),
    ("with recursive t(n) as (select 1 union all select n + 1 from t) select count(*) from t", &["57014"]),
];

fn resident_megabytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap_or(0) / 1024
}

fn connect(server: &Running) -> Client {
    let url = format!("host=127.0.0.1 port={} user=postgres", server.address.port());
    Client::connect(&url, NoTls).expect("the server lives")
}

fn outcome<T>(result: Result<T, postgres::Error>, of: &str) -> String {
    match result {
        Ok(_) => String::new(),
        Err(e) => e.code().unwrap_or_else(|| panic!("the connection was lost: {of}: {e}")).code().to_owned(),
    }
}

fn throw(server: &Running, bombs: &[Bomb]) {
    for (sql, expected) in bombs {
        let started = Instant::now();
        let state = outcome(connect(server).simple_query(sql), sql);
        assert!(expected.contains(&&*state), "{sql}: {state:?}, expected {expected:?}");
        assert!(started.elapsed() < Duration::from_secs(ANSWER_SECONDS_MAX), "{sql} took {:?}", started.elapsed());
    }
}

/// Texts that nest, and long ones, for every type that reads them.
fn throw_at_types(server: &Running) {
    let mut client = connect(server);
    let types = "select format_type(oid, null) from pg_type
        where typtype in ('b', 'r', 'm') and (typcategory <> 'A' or typname in ('_int4', '_text', '_json'))";
    let types = client.query(types, &[]).expect("types");
    for ty in types {
        let ty: String = ty.get(0);
        for unit in ["(", "[", "{", "<", "\"", "{\"a\":", "-", "1", "1,", "a", "(1,", "[1,2),", "\\", " ", ".", ":"] {
            let sql = format!("select repeat('{unit}', 100000)::{ty}");
            let state = outcome(client.simple_query(&sql), &sql);
            assert_ne!(state, "XX000", "{sql}");
        }
    }
}

#[derive(Debug)]
struct Raw(Vec<u8>);

impl ToSql for Raw {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        out.extend_from_slice(&self.0);
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    postgres::types::to_sql_checked!();
}

fn throw_binary(server: &Running) {
    let mut client = connect(server);
    let deep = |open: &str| open.repeat(1_000_000).into_bytes();
    let with_version = |text: Vec<u8>| [vec![1], text].concat();
    for (ty, value, expected) in [
        ("json", deep("["), "54001"),
        ("jsonb", with_version(deep("[")), "54001"),
        ("jsonb", with_version(deep("{\"a\":")), "54001"),
        ("jsonpath", with_version(deep("(")), "54001"),
        ("int4[]", [100_000i32.to_be_bytes(), [0; 4], 23i32.to_be_bytes()].concat(), "54000"),
    ] {
        let state = outcome(client.query(&format!("select $1::{ty}"), &[&Raw(value)]), ty);
        assert_eq!(state, expected, "{ty}");
    }
}

#[test]
fn the_server_outlives_every_statement() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    limits::set_memory_limit(MEMORY + MEMORY / 16);
    let options = EngineOptions { fsync: false, query_bytes: MEMORY * 3 / 8, ..EngineOptions::default() };
    let server = Running::with_options(folder.path(), &[], options);
    let (peak, done) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                peak.fetch_max(resident_megabytes(), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let thrown = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            throw(&server, DEEP);
            throw(&server, LARGE);
            throw_binary(&server);
            throw_at_types(&server);
            connect(&server).batch_execute("alter role postgres set statement_timeout = '200ms'").expect("a timeout");
            throw(&server, ENDLESS);
        }));
        done.store(true, Ordering::Relaxed);
        if let Err(panic) = thrown {
            std::panic::resume_unwind(panic);
        }
    });
    let peak = peak.load(Ordering::Relaxed);
    assert!(peak < RESIDENT_MEGABYTES_MAX, "{peak} MB were resident");
}
