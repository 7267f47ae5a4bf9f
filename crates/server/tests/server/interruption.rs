//! Statements that work long in one place: each ends soon after its time is over.

use std::time::{Duration, Instant};

use crate::running::Running;
use postgres::{Client, NoTls};

const TIMEOUT: Duration = Duration::from_millis(50);
/// A look each 100 ms, in a test build and on a machine that does other things too.
const MARGIN: Duration = Duration::from_secs(2);

/// In a test build each takes ten seconds and more.
const STATEMENTS: &[&str] = &[
    "select translate(repeat('abc', 30000000), 'abc', 'xyz')",
    "select upper(repeat('añ', 80000000))",
    "select initcap(repeat('añ ', 60000000))",
    "select replace(repeat('abc', 60000000), 'b', 'yy')",
    "select md5(repeat('x', 200000000) || repeat('y', 200000000))",
    "select crc32(repeat('x', 200000000)::bytea)",
    "select encode(repeat('x', 300000000)::bytea, 'base64')",
    "select decode(repeat('QUJD', 50000000), 'base64')",
    "select ('[' || repeat('1,', 30000000) || '1]')::json is null",
    "select ('[' || repeat('1,', 30000000) || '1]')::jsonb is null",
    "select ('{' || repeat('\"a\":1,', 15000000) || '\"a\":1}')::jsonb",
    "select jsonb_path_query_array(('[' || repeat('1,', 100000) || '1]')::jsonb, '$[*] ? (@ > $[*])')",
    "select repeat('ab', 80000000) like '%' || repeat('b_a', 50) || '%c%d'",
    "select regexp_count(repeat('ab ', 30000000), '\\w+')",
    "select regexp_replace(repeat('ab ', 30000000), '\\w', 'x', 'g')",
    "select count(*) from regexp_matches(repeat('aab', 10000000), '(a|ab)(c|bcd)*', 'g')",
    "select factorial(30000)",
    "select array_to_string(array_fill(1, array[50000000]), ',')",
    "select string_agg(i::text, ',') over (order by i rows between 100000 preceding and current row) from generate_series(1, 200000) i",
    "select count(*) from generate_series(1, 10000000) i group by md5(i::text)",
    "select i from generate_series(1, 10000000) i order by md5(i::text) offset 9999999",
    "select percentile_cont(0.5) within group (order by random()) from generate_series(1, 20000000)",
    "select count(*) from pg_class a, pg_class b, pg_class c, pg_class d where a.relname || b.relname < c.relname || d.relname",
];

/// Those of an extension.
const OF_PGCRYPTO: &[&str] = &[
    "select crypt('a', '$5$rounds=999999999$x')",
    "select crypt(repeat('a', 1000000), '$6$rounds=1000$x')",
    "select crypt(repeat('a', 10000000), '$1$x')",
    "select crypt('a', gen_salt('bf', 20))",
    "select digest(repeat('x', 300000000), 'sha512')",
    "select hmac(repeat('x', 300000000), 'k', 'sha256')",
    "select encrypt(repeat('x', 100000000)::bytea, 'k', 'aes-ecb')",
    "select decrypt(repeat('x', 100000000)::bytea, 'k', 'bf-cbc/pad:none')",
];

/// Constants are computed when a statement is planned, and again when it runs if that fails: for neither is there more time.
#[test]
fn a_statement_ends_soon_after_its_time() {
    let server = Running::start(&[]);
    let url = format!("host=127.0.0.1 port={} user=postgres", server.address.port());
    let mut client = Client::connect(&url, NoTls).expect("connects");
    client.batch_execute("create extension pgcrypto").expect("an extension");
    client.batch_execute(&format!("set statement_timeout = {}", TIMEOUT.as_millis())).expect("a setting");
    for sql in STATEMENTS.iter().chain(OF_PGCRYPTO) {
        let started = Instant::now();
        let result = client.simple_query(sql);
        let (state, took) = (result.err().and_then(|e| e.code().cloned()), started.elapsed());
        assert_eq!(state.as_ref().map(|s| s.code()), Some("57014"), "{sql}");
        assert!(took < TIMEOUT + MARGIN, "{sql} took {took:?}");
    }
}
