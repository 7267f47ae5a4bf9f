//! Sessions driven by messages, without sockets: the client's messages and the types of the answers.

mod seen;
mod shared_forms;

use std::sync::Arc;

use melba_engine::{Engine, EngineOptions};
use melba_protocol::{Frontend, Output};
use melba_settings::Settings;
use melba_settings::value::Value;
use melba_statement::client::Client;
use melba_statement::context::{Instance, Login, SessionState};
use melba_transaction::cluster::Cluster;
use melba_types::Result;
use melba_vfs::{OsClock, OsDirectory, OsRandom};

use super::{Flow, Session};

#[derive(Default)]
struct Peer(Output);

impl Client for Peer {
    fn output(&mut self) -> &mut Output {
        &mut self.0
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    fn flush_around(&mut self, values: &[(usize, &[u8])]) -> Result<()> {
        assert!(values.is_empty(), "no test here reads long values");
        Ok(())
    }

    fn copy_read(&mut self) -> Result<Option<&[u8]>> {
        Ok(None)
    }
}

/// A session over a new engine.
pub struct Harness {
    session: Session,
    peer: Peer,
    data: Arc<tempfile::TempDir>,
}

impl Harness {
    pub(crate) fn new() -> Harness {
        Harness::with_options(EngineOptions::default())
    }

    pub(crate) fn with_options(options: EngineOptions) -> Harness {
        Harness::over(Arc::new(tempfile::tempdir().expect("a temporary directory")), options, &[])
    }

    /// A server over the data that another one, if there was one, has left.
    pub(super) fn over(data: Arc<tempfile::TempDir>, options: EngineOptions, settings: &[(String, String)]) -> Harness {
        let clock = Arc::new(OsClock::new());
        let directory = Arc::new(OsDirectory::open(data.path()).expect("the directory opens"));
        // The bytes that a merge saves per second depend on the machine; a test checks only the result.
        let options = EngineOptions { fsync: false, dense_gain_min_bytes: 0, ..options };
        let engine = Engine::open(options, directory, clock.clone()).expect("an empty engine opens");
        let cluster = Cluster::open(engine, clock, Arc::new(OsRandom)).expect("the catalog opens");
        let catalog = cluster.catalog_by_name("postgres").expect("the first database");
        let instance = Arc::new(Instance::new(Settings::server(settings).unwrap(), cluster));
        Harness::of(&instance, catalog.database_oid(), data)
    }

    /// The server stops at once, without a shutdown; returns the place of its data.
    pub(super) fn kill(self) -> Arc<tempfile::TempDir> {
        self.data.clone()
    }

    /// The server is shut down; returns the place of its data.
    pub(super) fn stop(self) -> Arc<tempfile::TempDir> {
        self.engine().shutdown().expect("the engine stops");
        self.data.clone()
    }

    /// Another session of the same server.
    pub(super) fn another(&self) -> Harness {
        let state = &self.session.state;
        Harness::of(&state.instance, state.database_oid, self.data.clone())
    }

    fn of(instance: &Arc<Instance>, database_oid: melba_types::Oid, data: Arc<tempfile::TempDir>) -> Harness {
        let login = Login {
            user: "postgres".into(),
            user_oid: melba_catalog::classes::POSTGRES_ROLE,
            database: "postgres".into(),
            database_oid,
            pid: 1,
        };
        let engine = instance.cluster.engine.session().expect("a free slot");
        let mut settings = instance.settings().for_session(true);
        settings.set_internal("session_authorization", Value::Text("postgres".into()));
        let state = SessionState::new(instance, login, engine, settings);
        let mut harness = Harness { session: Session::new(Arc::new(state)), peer: Peer::default(), data };
        harness.session.greet(&[0; 4], &mut harness.peer);
        harness.answer();
        harness
    }

    /// The output since, one word per message: its type letter; for E and N the SQLSTATE; for C the tag; for Z the status; for D
    /// the first value. ParameterStatus is left out.
    fn answer(&mut self) -> String {
        let bytes = self.peer.0.bytes();
        let (mut words, mut at) = (Vec::new(), 0);
        while at < bytes.len() {
            let tag = bytes[at] as char;
            let length = u32::from_be_bytes(bytes[at + 1..at + 5].try_into().unwrap()) as usize;
            let body = &bytes[at + 5..at + 1 + length];
            let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
            match tag {
                'S' => {}
                'E' | 'N' => {
                    let state = body.split(|b| *b == 0).find(|f| f.first() == Some(&b'C')).unwrap_or(b"C?");
                    words.push(format!("{tag}{}", text(&state[1..])));
                }
                'C' | 'Z' => words.push(format!("{tag}:{}", text(body).trim_end_matches('\0'))),
                'D' => {
                    let n = u32::from_be_bytes(body[2..6].try_into().unwrap()) as usize;
                    words.push(format!("D:{}", text(&body[6..6 + n])));
                }
                _ => words.push(tag.to_string()),
            }
            at += 1 + length;
        }
        self.peer.0.clear();
        words.join(" ")
    }

    fn send(&mut self, message: Frontend<'_>) -> Flow {
        self.session.handle(message, &mut self.peer).expect("the session lives")
    }

    pub(crate) fn engine(&self) -> Arc<Engine> {
        self.session.state.instance.cluster.engine.clone()
    }

    /// The committed catalog, and the server's live information.
    pub(crate) fn catalog_and_live_info(
        &self,
    ) -> (Arc<melba_catalog::Catalog>, Arc<dyn melba_catalog::relations::LiveInfo + Send + Sync>) {
        let state = &self.session.state;
        (state.catalog(), state.instance.live.clone())
    }

    pub(crate) fn query(&mut self, text: &str) -> String {
        self.send(Frontend::Query(text));
        self.answer()
    }

    /// Runs a statement: the first value of each row, its tag when it returns no rows, or its error.
    pub(super) fn lines(&mut self, text: &str) -> String {
        self.send(Frontend::Query(text));
        let (mut rest, mut lines) = (self.peer.0.bytes(), Vec::new());
        while let [tag, body @ ..] = rest {
            let (length, _) = body.split_first_chunk().expect("a message has its length");
            let (message, next) = body.split_at(u32::from_be_bytes(*length) as usize);
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned();
            match tag {
                b'D' => lines.push(message.get(10..).map(text).unwrap_or_default()),
                b'C' if lines.is_empty() => lines.push(text(&message[4..])),
                b'E' => {
                    let field = |name| message[4..].split(|b| *b == 0).find_map(|f| f.strip_prefix(&[name])).unwrap_or(b"");
                    lines.push(format!("ERROR {}: {}", text(field(b'C')), text(field(b'M'))));
                }
                _ => {}
            }
            rest = next;
        }
        self.peer.0.clear();
        lines.join("\n")
    }

    /// Sends messages written as bodies with their type letter in front.
    fn raw(&mut self, messages: &[&[u8]]) -> String {
        for m in messages {
            match Frontend::decode_from(self.session.client_encoding(), m[0], &m[1..], &mut Vec::new()) {
                Ok(message) => drop(self.send(message)),
                Err(e) => drop(self.session.reject(m[0], e, &mut self.peer).expect("the session lives")),
            }
        }
        self.answer()
    }
}

#[test]
fn blocks_follow_postgresql_s_states() {
    let mut h = Harness::new();
    for (query, answer) in [
        ("", "I Z:I"),
        ("begin", "C:BEGIN Z:T"),
        ("begin", "N25001 C:BEGIN Z:T"),
        ("set nosuch = 1", "E42704 Z:E"),
        ("show work_mem", "E25P02 Z:E"),
        ("rollback to s", "E3B001 Z:E"),
        ("commit", "C:ROLLBACK Z:I"),
        ("commit", "N25P01 C:COMMIT Z:I"),
        ("savepoint s", "E25P01 Z:I"),
        ("begin; savepoint s; set nosuch = 1", "C:BEGIN C:SAVEPOINT E42704 Z:E"),
        ("rollback to s", "C:ROLLBACK Z:T"),
        ("release s", "C:RELEASE Z:T"),
        ("rollback and chain", "C:ROLLBACK Z:T"),
        ("end", "C:COMMIT Z:I"),
        ("set work_mem = '1MB'; set nosuch = 1", "C:SET E42704 Z:I"),
        ("show work_mem", "T D:4MB C:SHOW Z:I"),
        ("set work_mem = '1MB'; commit; set nosuch = 1", "C:SET N25P01 C:COMMIT E42704 Z:I"),
        ("show work_mem", "T D:1MB C:SHOW Z:I"),
        ("set work_mem = '2MB'; begin; set work_mem = '3MB'", "C:SET C:BEGIN C:SET Z:T"),
        ("rollback; show work_mem", "C:ROLLBACK T D:1MB C:SHOW Z:I"),
        ("commit and chain", "E25P01 Z:I"),
        (
            "begin isolation level repeatable read; show transaction_isolation; commit",
            "C:BEGIN T D:repeatable read C:SHOW C:COMMIT Z:I",
        ),
        ("select frm from", "E42601 Z:I"),
    ] {
        assert_eq!(h.query(query), answer, "{query}");
    }
}

#[test]
fn extended_messages_are_skipped_after_an_error() {
    let mut h = Harness::new();
    let parse = b"P\0show work_mem\0\0\0";
    let bind = b"B\0\0\0\0\0\0\0\0";
    let execute = b"E\0\0\0\0\0";
    assert_eq!(h.raw(&[parse, bind, b"DP\0", execute, b"S"]), "1 2 T D:4MB C:SHOW Z:I");
    assert_eq!(h.raw(&[b"P\0show nosuch\0\0\0", bind, execute]), "E42704");
    assert_eq!(h.raw(&[parse, b"S"]), "Z:I");
    assert_eq!(h.raw(&[parse, b"Bp\0\0\0\0\0\0", b"H", b"S"]), "1 E08P01 Z:I");
    assert_eq!(h.raw(&[b"Bp\0nosuch\0\0\0\0\0\0\0", b"S"]), "E26000 Z:I");
    assert_eq!(h.raw(&[b"E\0\0\0\0\0", b"S"]), "E34000 Z:I");
    assert_eq!(h.raw(&[b"P\0\0\0\0", bind, b"DP\0", execute, b"S"]), "1 2 n I Z:I");
    assert_eq!(h.raw(&[b"P\0show a; show b\0\0\0", b"S"]), "E42601 Z:I");
}

#[test]
fn functions_are_called_by_oid() {
    let mut h = Harness::new();
    assert_eq!(h.raw(&[b"F\0\0\0\0\0\0\0\0\0\0"]), "E42883 Z:I");
    // int4pl(2, 3), arguments as text; then one argument too few; then a binary one that is too short.
    assert_eq!(h.raw(&[b"F\0\0\0\xb1\0\0\0\x02\0\0\0\x012\0\0\0\x013\0\0"]), "V Z:I");
    assert_eq!(h.raw(&[b"F\0\0\0\xb1\0\0\0\x01\0\0\0\x012\0\0"]), "E08P01 Z:I");
    assert_eq!(h.raw(&[b"F\0\0\0\xb1\0\x01\0\x01\0\x02\0\0\0\x012\0\0\0\x013\0\0"]), "E08P01 Z:I");
}

#[test]
fn roles_can_be_taken_and_given_back() {
    let mut h = Harness::new();
    for (query, answer) in [
        ("create role r; create table t (a int); insert into t values (1)", "C:CREATE ROLE C:CREATE TABLE C:INSERT 0 1 Z:I"),
        ("set role r", "C:SET Z:I"),
        ("select current_user", "T D:r C:SELECT 1 Z:I"),
        ("select session_user", "T D:postgres C:SELECT 1 Z:I"),
        ("select a from t", "E42501 Z:I"),
        ("reset role", "C:RESET Z:I"),
        ("grant select (a) on t to r", "C:GRANT Z:I"),
        ("begin; set local role r; select a from t; insert into t values (2)", "C:BEGIN C:SET T D:1 C:SELECT 1 E42501 Z:E"),
        ("rollback; select current_user", "C:ROLLBACK T D:postgres C:SELECT 1 Z:I"),
        ("set role nosuch", "E22023 Z:I"),
    ] {
        assert_eq!(h.query(query), answer, "{query}");
    }
}

#[test]
fn the_end_of_a_session_drops_its_temporary_tables() {
    let mut h = Harness::new();
    assert_eq!(h.query("create temp table t (a int); insert into t values (1)"), "C:CREATE TABLE C:INSERT 0 1 Z:I");
    assert_eq!(h.query("begin"), "C:BEGIN Z:T");
    h.session.close_all();
    assert_eq!(h.query("select count(*) from pg_class where relname = 't'"), "T D:0 C:SELECT 1 Z:I");
    assert_eq!(h.query("create temp table t (a int); discard temp; select * from t"), "C:CREATE TABLE C:DISCARD TEMP E42P01 Z:I");
}

#[test]
fn two_sessions_cannot_create_the_same_function() {
    let mut one = Harness::new();
    let mut other = one.another();
    one.query("begin; create function f() returns int language sql as 'select 1'");
    let waiting = std::thread::spawn(move || other.query("create function f() returns int language sql as 'select 2'"));
    one.query("commit");
    assert_eq!(waiting.join().expect("an answer"), "E42723 Z:I");
    assert_eq!(one.query("select count(*) from pg_proc where proname = 'f'"), "T D:1 C:SELECT 1 Z:I");
}

#[test]
fn calls_nest_until_the_stack_ends() {
    let thread = std::thread::Builder::new().stack_size(super::STACK_BYTES);
    let run = || {
        let mut h = Harness::new();
        h.query("create function f(int) returns int language sql as 'select 1'");
        h.query("create or replace function f(int) returns int language sql as 'select 1; select f($1 + 1)'");
        assert_eq!(h.query("select f(1)"), "T E54001 Z:I");
        assert_eq!(h.query("select 1"), "T D:1 C:SELECT 1 Z:I");
    };
    thread.spawn(run).expect("a thread").join().expect("no overflow");
}

#[test]
fn pipelined_statements_share_a_transaction() {
    let mut h = Harness::new();
    let bind = b"B\0\0\0\0\0\0\0\0";
    let execute = b"E\0\0\0\0\0";
    let messages: [&[u8]; 7] = [b"P\0set work_mem = '1MB'\0\0\0", bind, execute, b"P\0set nosuch = 1\0\0\0", bind, execute, b"S"];
    assert_eq!(h.raw(&messages), "1 2 C:SET 1 2 E42704 Z:I");
    assert_eq!(h.query("show work_mem"), "T D:4MB C:SHOW Z:I");
}

#[test]
fn portals_are_read_in_parts() {
    let mut h = Harness::new();
    let part = b"Ec\0\0\0\0\x02";
    let answer = h.raw(&[b"P\0show all\0\0\0", b"Bc\0\0\0\0\0\0\0\0", part, part, b"Cc\0", b"S"]);
    // Close without a known kind is refused; earlier messages keep their effect.
    assert_eq!(answer.matches("D:").count(), 4);
    assert!(answer.starts_with("1 2 D:") && answer.contains(" s D:") && answer.ends_with(" s E08P01 Z:I"), "{answer}");
    assert_eq!(h.raw(&[part, b"S"]), "E34000 Z:I", "the portal went with its transaction");
}

#[test]
fn prepared_statements_by_name() {
    let mut h = Harness::new();
    for (query, answer) in [
        ("prepare p as show work_mem", "E42601 Z:I"),
        ("execute p", "E26000 Z:I"),
        ("deallocate p", "E26000 Z:I"),
        ("deallocate all", "C:DEALLOCATE ALL Z:I"),
        ("begin; discard all", "C:BEGIN E25001 Z:E"),
        ("rollback; discard all", "C:ROLLBACK E25001 Z:I"),
        ("discard all", "C:DISCARD ALL Z:I"),
        ("declare c cursor for select 1", "E25P01 Z:I"),
        ("fetch c", "E34000 Z:I"),
        ("close all", "C:CLOSE CURSOR ALL Z:I"),
    ] {
        assert_eq!(h.query(query), answer, "{query}");
    }
    assert_eq!(h.raw(&[b"Ps\0show work_mem\0\0\0", b"Ps\0show work_mem\0\0\0", b"S"]), "1 E42P05 Z:I");
    assert_eq!(h.raw(&[b"DSs\0", b"CSs\0", b"DSs\0", b"S"]), "t T 3 E26000 Z:I");
}

/// Random messages, well-formed or not: a session always answers, and works afterwards.
#[test]
fn fuzzed_messages_leave_the_session_working() {
    let mut h = Harness::new();
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as usize
    };
    let seeds: [&[u8]; 13] = [
        b"Qbegin; savepoint a\0",
        b"Qshow all\0",
        b"Qrollback to a; release a\0",
        b"Qdeclare c scroll cursor with hold for select 1; fetch all c; close c\0",
        b"Qset search_path = a, \"B\"; reset all\0",
        b"Ps\0show work_mem\0\0\x01\0\0\0\x17",
        b"Bp\0s\0\0\x01\0\x01\0\0\0\0",
        b"DSs\0",
        b"Ep\0\0\0\0\x01",
        b"CSs\0",
        b"S",
        b"H",
        b"dabc",
    ];
    for case in 0..3000 {
        let mut message = seeds[next() % seeds.len()].to_vec();
        for _ in 0..next() % 3 {
            let at = 1 + next() % message.len();
            match next() % 3 {
                0 if at < message.len() => message[at] = next() as u8,
                1 => message.truncate(at),
                _ => message.insert(at.min(message.len()), next() as u8),
            }
        }
        h.raw(&[&message]);
        if case % 100 == 99 {
            h.raw(&[b"S"]);
            h.query("rollback");
            assert!(h.query("show server_version").starts_with("T D:18.6 C:SHOW Z:I"), "after {message:?}");
        }
    }
}

#[test]
fn not_null_constraints_may_wait_for_validation() {
    let mut h = Harness::new();
    for (query, answer) in [
        ("create table t (a int, b int); insert into t values (1, null), (2, 5)", "C:CREATE TABLE C:INSERT 0 2 Z:I"),
        ("alter table t add constraint b_is_there not null b", "E23502 Z:I"),
        ("alter table t add constraint b_is_there not null b not valid", "C:ALTER TABLE Z:I"),
        ("insert into t values (3, null)", "E23502 Z:I"),
        // Another constraint does not validate it.
        ("alter table t add check (a > 0)", "C:ALTER TABLE Z:I"),
        ("select convalidated from pg_constraint where conname = 'b_is_there'", "T D:f C:SELECT 1 Z:I"),
        ("alter table t validate constraint b_is_there", "E23502 Z:I"),
        // An index must not be taken for an order without NULLs.
        ("create index on t (b); select a from t order by b nulls first limit 1", "C:CREATE INDEX T D:1 C:SELECT 1 Z:I"),
        ("delete from t where b is null; alter table t validate constraint b_is_there", "C:DELETE 1 C:ALTER TABLE Z:I"),
        ("select convalidated from pg_constraint where conname = 'b_is_there'", "T D:t C:SELECT 1 Z:I"),
        ("create table u (a int); alter table u add not null a not valid; alter table u alter a set not null", ""),
        ("select convalidated from pg_constraint where conrelid = 'u'::regclass", "T D:t C:SELECT 1 Z:I"),
    ] {
        let got = h.query(query);
        assert!(answer.is_empty() || got == answer, "{query}: {got}");
    }
}

#[test]
fn indexes_with_all_columns_are_read_alone() {
    let mut h = Harness::new();
    h.query("create table t (id int primary key, k int, note text, price numeric)");
    h.query("insert into t select i, i % 10, 'note', i from generate_series(1, 5000) i");
    h.query("create index t_k on t (k, note); create index t_price on t (price)");
    for (query, scan) in [
        ("select k from t where k between 2 and 3", "Index Only Scan using t_k on t"),
        ("select count(*) from t where k = 2", "Index Only Scan using t_k on t"),
        ("select note from t where k = 2 and note > 'a'", "Index Only Scan using t_k on t"),
        ("select id from t where id = 7", "Index Only Scan using t_pkey on t"),
        ("select k from t where id = 7", "Index Scan using t_pkey on t"),
        ("select id from t where id = 7 for update", "Index Scan using t_pkey on t"),
        // Equal numerics may differ.
        ("select price from t where price = 7", "Index Scan using t_price on t"),
    ] {
        let plan = h.query(&format!("explain (costs off) {query}"));
        assert!(plan.contains(scan), "{query}: {plan}");
    }
}

#[test]
fn compression_levels_require_a_compression_method() {
    let mut h = Harness::new();
    h.query("create table t (a int, b text compression zstd)");
    for (query, answer) in [
        ("alter table t alter a set (compression_level = 3)", "E0A000 Z:I"),
        ("alter table t alter b set (compression_level = 23)", "E22023 Z:I"),
        ("alter table t alter b set (compression_level = 9)", "C:ALTER TABLE Z:I"),
        (
            "select attoptions from pg_attribute where attrelid = 't'::regclass and attname = 'b'",
            "T D:{compression_level=9} C:SELECT 1 Z:I",
        ),
    ] {
        assert_eq!(h.query(query), answer, "{query}");
    }
}

#[test]
fn dense_values_are_stored_by_lz4_until_a_merge_has_come_to_them() {
    let mut h = Harness::new();
    let page = "string_agg(md5((i + n % 3)::text), ' ' order by i) || n from generate_series(1, 400) i";
    h.query("create table t (id int primary key, a text compression dense, b text compression lz4)");
    h.query(&format!("insert into t select n, (select {page}), repeat('b' || n, 3000) from generate_series(1, 60) n"));
    let methods = "select concat_ws(',', pg_column_compression(a), pg_column_compression(b), count(*)) from t \
                   group by pg_column_compression(a), pg_column_compression(b)";
    let values = "select concat_ws(',', count(*), sum(length(a)), sum(octet_length(b)), sum(ascii(substr(a, 5000, 1))), \
                  md5(string_agg(a, b order by id))) from t";
    let before = h.query(values);
    assert_eq!(h.query(methods), "T D:lz4,lz4,60 C:SELECT 1 Z:I");
    assert_eq!(h.query("vacuum t"), "C:VACUUM Z:I");
    assert_eq!(h.query(methods), "T D:dense,lz4,60 C:SELECT 1 Z:I");
    assert_eq!(h.query(values), before);
    // A statement that copies a value stores it again.
    h.query("create table u as select * from t");
    assert_eq!(h.query(&methods.replace("from t", "from u")), "T D:lz4,lz4,60 C:SELECT 1 Z:I");
    assert_eq!(h.query(&values.replace("from t", "from u")), before);
    let statistics = "select concat_ws(',', attname, place, values, methods, governor, raw_bytes > stored_bytes * 3) from melba_compression_stats \
                      where relname = 't'";
    assert_eq!(h.query(statistics), "T D:a,toast,60,dense,done,t C:SELECT 1 Z:I");
    // The chunks of pg_toast are those of the value as it was stored first.
    let toast = "select sum(length(chunk_data)) = (select sum(pg_column_size(a)) from t) from pg_toast.pg_toast_";
    let oid = h.query("select 't'::regclass::oid");
    let oid: String = oid.chars().skip_while(|c| *c != ':').filter(char::is_ascii_digit).take(5).collect();
    assert_eq!(h.query(&format!("{toast}{oid}")), "T D:t C:SELECT 1 Z:I");
    h.query("update t set a = a || 'x' where id % 2 = 0; delete from t where id % 3 = 0");
    assert_eq!(h.query("vacuum t"), "C:VACUUM Z:I");
    let changed = "select concat_ws(',', count(*), count(*) filter (where a like '%x')) from t";
    assert_eq!(h.query(changed), "T D:40,20 C:SELECT 1 Z:I");
    assert_eq!(h.query(methods), "T D:dense,lz4,40 C:SELECT 1 Z:I");
    assert_eq!(
        h.query("select attcompression from pg_attribute where attrelid = 't'::regclass and attname = 'a'"),
        "T D:d C:SELECT 1 Z:I"
    );
    assert_eq!(h.query("set default_toast_compression = dense; show default_toast_compression"), "C:SET T D:dense C:SHOW Z:I");
}

/// Values below the TOAST threshold, which stay in their rows.
#[test]
fn short_values_of_dense_columns_become_dense() {
    let mut h = Harness::new();
    let row =
        "json_build_object('id', n, 'agent', 'Mozilla/5.0 (X11; Linux x86_64)', 'path', '/catalog/' || n % 17, 'status', 200)";
    h.query("create table t (id int primary key, j json)");
    h.query("alter table t alter j set compression dense");
    h.query(&format!("insert into t select n, {row} from generate_series(1, 3000) n"));
    let values = "select concat_ws(',', count(*), sum((j->>'id')::int), md5(string_agg(j::text, ' ' order by id))) from t";
    let before = h.query(values);
    h.query("vacuum t");
    assert_eq!(h.query(values), before);
    let statistics = "select concat_ws(',', attname, place, values, methods, governor, raw_bytes > stored_bytes * 8) from melba_compression_stats";
    assert_eq!(h.query(statistics), "T D:j,row,3000,dense,done,t C:SELECT 1 Z:I");
    assert_eq!(h.query("select j->>'path' from t where id = 1234"), "T D:/catalog/10 C:SELECT 1 Z:I");
    h.query("update t set j = null where id <= 10");
    assert_eq!(h.query("vacuum t"), "C:VACUUM Z:I");
    assert_eq!(
        h.query("select concat_ws(',', count(j), count(*), sum((j->>'id')::int)) from t"),
        "T D:2990,3000,4501445 C:SELECT 1 Z:I"
    );
}

/// A load into separate segments leaves nothing in memory for a flush.
#[test]
fn rows_of_a_bulk_load_become_dense() {
    let mut h = Harness::new();
    h.query("create table t (id int primary key, v text compression dense)");
    h.query("insert into t select n, 'a line of a log that says much the same as the others, number ' || n || repeat('.', 200) from generate_series(1, 30000) n");
    h.query("vacuum t");
    let statistics = "select concat_ws(',', attname, place, values, waiting_bytes, governor) from melba_compression_stats";
    assert_eq!(h.query(statistics), "T D:v,row,30000,0,done C:SELECT 1 Z:I");
    assert_eq!(h.query("select count(*) from t where v like '%number ' || id || '.%'"), "T D:30000 C:SELECT 1 Z:I");
}

/// PostgreSQL drops it; here the values that are stored would be read with their fields shifted.
#[test]
fn a_stored_row_type_keeps_its_columns() {
    let mut h = Harness::new();
    h.query("create table f (a int, b int, c int); create type k as (x int, y int)");
    h.query("create table u (id int, f f, k k[]); insert into u values (1, row(1, 2, 3), array[row(1, 2)::k])");
    for (query, answer) in [
        ("alter table f drop column b", "E0A000 Z:I"),
        ("alter type k drop attribute x", "E0A000 Z:I"),
        ("select concat((f).c, (k[1]).y) from u", "T D:32 C:SELECT 1 Z:I"),
        ("alter table u drop column f, drop column k; alter table f drop column b", "C:ALTER TABLE C:ALTER TABLE Z:I"),
    ] {
        assert_eq!(h.query(query), answer, "{query}");
    }
}

/// PostgreSQL does it since 18.
#[test]
fn having_may_be_a_grouping_expression() {
    let mut h = Harness::new();
    let query = "select a < b and b < 3 from (values (1, 2)) t (a, b) group by rollup (a < b and b < 3) having a < b and b < 3";
    assert_eq!(h.query(query), "T D:t C:SELECT 1 Z:I");
}

/// PostgreSQL has kept such conditions in HAVING since 18.6.
#[test]
fn comparisons_of_bytes_are_made_after_grouping() {
    let mut h = Harness::new();
    h.query("create type measure as (v numeric); create table measured (m measure)");
    h.query("insert into measured values (row(1.0)::measure), (row(1.00)::measure), (row(2)::measure)");
    for query in [
        "select count(*) from measured group by m having m *= row(1.0)::measure",
        "select count(*) from measured group by m having m *= any (array[row(1.0)::measure])",
        "select count from (select m, count(*) from measured group by m) s where m *= row(1.0)::measure",
        "select count(*) from measured group by m having m = row(1.00)::measure",
    ] {
        assert_eq!(h.query(query), "T D:2 C:SELECT 1 Z:I", "{query}");
    }
}

/// OLD and NEW are PostgreSQL 18's, so the scripts that it is compared by cannot show them.
#[test]
fn returning_shows_both_versions_of_a_row() {
    let mut h = Harness::new();
    h.query("create table m (id int, v text); insert into m values (1, 'a'), (2, 'b')");
    h.query("create table p (a int, b int) partition by list (a)");
    h.query("create table p1 partition of p for values in (1); create table p2 partition of p for values in (2)");
    for (query, answer) in [
        (
            "merge into m using (values (1), (2), (3)) s (x) on m.id = s.x when matched and x = 1 then delete
             when matched then update set v = 'u' when not matched then insert values (x, 'n')
             returning concat_ws(',', merge_action(), old.v, '>', new.v, '=', m.v, old, new)",
            "T D:DELETE,a,>,=,a,(1,a) D:UPDATE,b,>,u,=,u,(2,b),(2,u) D:INSERT,>,n,=,n,(3,n) C:MERGE 3 Z:I",
        ),
        (
            "merge into m using (values (2), (3), (4)) s (x) on m.id = s.x when matched and x = 2 then delete
             when matched then do nothing when not matched then insert values (x, 'm') returning (select lower(merge_action()))",
            "T D:delete D:insert C:MERGE 2 Z:I",
        ),
        (
            "insert into p values (1, 1) returning concat_ws(',', old.tableoid::regclass, '>', new.tableoid::regclass, old)",
            "T D:>,p1 C:INSERT 0 1 Z:I",
        ),
        (
            "update p set a = 2 returning concat_ws(',', old.tableoid::regclass, new.tableoid::regclass, tableoid::regclass, old)",
            "T D:p1,p2,p2,(1,1) C:UPDATE 1 Z:I",
        ),
        (
            "delete from p returning concat_ws(',', old.tableoid::regclass, '>', new.tableoid::regclass, tableoid::regclass, a)",
            "T D:p2,>,p2,2 C:DELETE 1 Z:I",
        ),
    ] {
        assert_eq!(h.query(query), answer, "{query}");
    }
}

/// PostgreSQL has them since 18, so the scripts that it is compared by cannot show them.
#[test]
fn virtual_columns_are_computed_when_they_are_read() {
    let mut h = Harness::new();
    for (query, answer) in [
        (
            "create table v (a int, twice int generated always as (a * 2), shown text generated always as (coalesce(a::text, '-')) virtual, check (twice < 100))",
            "C:CREATE TABLE Z:I",
        ),
        (
            "insert into v values (1), (2), (null); insert into v values (4) returning shown || twice",
            "C:INSERT 0 3 T D:48 C:INSERT 0 1 Z:I",
        ),
        ("insert into v values (50)", "E23514 Z:I"),
        ("insert into v (twice) values (50)", "E428C9 Z:I"),
        ("select string_agg(shown, '' order by twice desc nulls last) from v", "T D:421- C:SELECT 1 Z:I"),
        ("select a from v where twice = 4", "T D:2 C:SELECT 1 Z:I"),
        ("select v from v where shown = '-'", "T D:(,,-) C:SELECT 1 Z:I"),
        // A row that an outer join makes has no computed values.
        ("select count(*) from generate_series(1, 2) g left join v on v.a = g + 1 where shown is null", "T D:1 C:SELECT 1 Z:I"),
        ("update v set a = twice where twice = 8 returning old.shown || new.shown", "T D:48 C:UPDATE 1 Z:I"),
        ("update v set a = 60 where twice = 16", "E23514 Z:I"),
        ("update v set twice = 1", "E428C9 Z:I"),
        ("delete from v where twice = 2 returning shown", "T D:1 C:DELETE 1 Z:I"),
        (
            "merge into v using (values (8)) n (x) on v.twice = x * 2 when matched then update set a = twice - 13 returning twice",
            "T D:6 C:MERGE 1 Z:I",
        ),
        (
            "alter table v add minus int generated always as (-a) virtual; select min(minus) from v",
            "C:ALTER TABLE T D:-3 C:SELECT 1 Z:I",
        ),
        ("alter table v alter minus set not null", "E23502 Z:I"),
        ("alter table v add check (minus > -3)", "E23514 Z:I"),
        ("create unique index on v (minus)", "E0A000 Z:I"),
        ("create index on v ((minus + 1))", "E0A000 Z:I"),
        ("create index on v (a) where minus > 0", "E0A000 Z:I"),
        ("alter table v alter minus drop expression", "E0A000 Z:I"),
        ("create table k (k int primary key, kk int generated always as (k * k))", "C:CREATE TABLE Z:I"),
        ("create table f (a int, b int generated always as (a) references k)", "E0A000 Z:I"),
        (
            "insert into k values (2); insert into k values (2) on conflict (k) do update set k = excluded.kk + k.kk where k.kk = 4 returning kk",
            "C:INSERT 0 1 T D:64 C:INSERT 0 1 Z:I",
        ),
        // By the key alone, and from the index alone.
        ("select kk from k where k = 8", "T D:64 C:SELECT 1 Z:I"),
        ("select kk + k from k where k between 2 and 8", "T D:72 C:SELECT 1 Z:I"),
        ("update k set k = kk / 8 + 1 where k = 8 returning new.kk", "T D:81 C:UPDATE 1 Z:I"),
        ("update k set k = 8", "C:UPDATE 1 Z:I"),
        // A value that cannot be computed is an error for its readers.
        ("insert into k values (100000)", "C:INSERT 0 1 Z:I"),
        ("select count(*) from k where k > 8", "T D:1 C:SELECT 1 Z:I"),
        ("select kk from k where k > 8", "T E22003 Z:I"),
        ("create domain d as int; create table n (a int, b d generated always as (a))", "C:CREATE DOMAIN E0A000 Z:I"),
    ] {
        assert_eq!(h.query(query), answer, "{query}");
    }
}

#[test]
fn values_of_dropped_columns_give_their_space_back() {
    let mut h = Harness::new();
    h.query("create table d (id int primary key, kept text, gone text)");
    h.query("alter table d alter kept set storage external, alter gone set storage external");
    h.query("insert into d select i, repeat(md5(i::text), 300), repeat(md5(i::text), 20000) from generate_series(1, 10) i");
    let engine = h.engine();
    let settled = |h: &mut Harness| -> u64 {
        engine.checkpoint().expect("flushes");
        while engine.run_once() {}
        let size = h.query("select pg_table_size('d')");
        size.split_once("D:").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok()).expect("a number")
    };
    let before = settled(&mut h);
    assert!(before > 6_000_000, "{before}");
    h.query("begin; alter table d drop column gone; rollback");
    let intact = "select count(*) from d where gone = repeat(md5(id::text), 20000)";
    assert_eq!(h.query(intact), "T D:10 C:SELECT 1 Z:I");
    assert_eq!(h.query("alter table d drop column gone"), "C:ALTER TABLE Z:I");
    let after = settled(&mut h);
    assert!(after < before / 10, "{after} of {before} bytes");
    // Later statements know nothing of them.
    for (query, answer) in [
        ("update d set kept = kept || 'x' where id < 3", "C:UPDATE 2 Z:I"),
        ("delete from d where id in (1, 5)", "C:DELETE 2 Z:I"),
        ("alter table d alter id type bigint", "C:ALTER TABLE Z:I"),
        ("alter table d add gone text; select count(*) from d where gone is null", "C:ALTER TABLE T D:8 C:SELECT 1 Z:I"),
        ("select count(*) from d where kept = repeat(md5(id::text), 300)", "T D:7 C:SELECT 1 Z:I"),
    ] {
        assert_eq!(h.query(query), answer, "{query}");
    }
}

#[test]
fn a_checkpoint_leaves_recovery_nothing_to_read() {
    let mut h = Harness::new();
    h.query("create table c (id int primary key, v text)");
    h.query("insert into c select i, repeat('x', 100) from generate_series(1, 1000) i");
    let before = h.engine().replay_start();
    h.query("create role plain; set role plain");
    assert_eq!(h.query("checkpoint"), "E42501 Z:I");
    assert_eq!(h.engine().replay_start(), before, "who may not moves nothing");
    assert_eq!(h.query("reset role; grant pg_checkpoint to plain; set role plain"), "C:RESET C:GRANT ROLE C:SET Z:I");
    assert_eq!(h.query("checkpoint"), "C:CHECKPOINT Z:I");
    assert!(h.engine().replay_start() > before);
    assert_eq!(h.engine().log_end(), h.engine().replay_start(), "nothing is left to replay");
    assert_eq!(h.query("reset role; select count(*) from c"), "C:RESET T D:1000 C:SELECT 1 Z:I");
}

#[test]
fn maintenance_asks_for_its_privilege() {
    let mut h = Harness::new();
    h.query("create table m (id int primary key); create index i on m (id); create role plain; set role plain");
    for (query, answer) in [
        // Warnings, which skip the table.
        ("vacuum m", "N01000 C:VACUUM Z:I"),
        ("analyze m", "N01000 C:ANALYZE Z:I"),
        ("reindex table m", "E42501 Z:I"),
        ("reindex index i", "E42501 Z:I"),
        ("reindex schema public", "E42501 Z:I"),
        ("cluster m using i", "E42501 Z:I"),
        ("reset role; grant maintain on m to plain; set role plain", "C:RESET C:GRANT C:SET Z:I"),
        ("vacuum m", "C:VACUUM Z:I"),
        ("analyze m", "C:ANALYZE Z:I"),
        ("reindex table m", "C:REINDEX Z:I"),
        ("reindex index i", "C:REINDEX Z:I"),
        ("cluster m using i", "C:CLUSTER Z:I"),
    ] {
        assert_eq!(h.query(query), answer, "{query}");
    }
}

#[test]
fn a_template_that_has_anything_is_not_copied() {
    let mut h = Harness::new();
    for (query, answer) in [
        ("create database plain", "C:CREATE DATABASE Z:I"),
        ("create schema s", "C:CREATE SCHEMA Z:I"),
        ("create database copy template postgres", "E0A000 Z:I"),
        ("drop schema s", "C:DROP SCHEMA Z:I"),
        ("create database copied template postgres", "C:CREATE DATABASE Z:I"),
        ("grant create on schema public to public", "C:GRANT Z:I"),
        ("create database copy template postgres", "E0A000 Z:I"),
    ] {
        assert_eq!(h.query(query), answer, "{query}");
    }
}

#[test]
fn rows_that_on_conflict_looks_at_and_leaves_have_been_read() {
    let mut one = Harness::new();
    let mut other = one.another();
    one.query("create table a (k int primary key, v int); insert into a values (1, 0), (2, 0)");
    for action in ["nothing", "update set v = 9 where a.v > 5"] {
        other.query("begin isolation level serializable; select v from a where k = 2");
        one.query("begin isolation level serializable");
        let insert =
            format!("insert into a values (1, 9) on conflict (k) do {action}; update a set v = v + 1 where k = 2; commit");
        assert_eq!(one.query(&insert), "C:INSERT 0 0 C:UPDATE 1 C:COMMIT Z:I");
        let answer = other.query("update a set v = v + 1 where k = 1; commit");
        assert!(answer.contains("E40001"), "{action}: {answer}");
        other.query("rollback");
    }
}

/// PostgreSQL 18 lets the transaction that created an enum use its new labels, and renumbers labels when there is no room.
#[test]
fn labels_of_a_new_enum_can_be_used_at_once_and_stay_in_order() {
    let mut h = Harness::new();
    for (query, answer) in [
        ("create type old as enum ('a'); create table t (e old)", "C:CREATE TYPE C:CREATE TABLE Z:I"),
        ("begin; alter type old add value 'b'; insert into t values ('b')", "C:BEGIN C:ALTER TYPE E55P04 Z:E"),
        ("rollback", "C:ROLLBACK Z:I"),
        (
            "begin; create type new as enum ('a'); alter type new add value 'b'; select 'b'::new; commit",
            "C:BEGIN C:CREATE TYPE C:ALTER TYPE T D:b C:SELECT 1 C:COMMIT Z:I",
        ),
    ] {
        assert_eq!(h.query(query), answer, "{query}");
    }
    for n in 0..40 {
        h.query(&format!("alter type new add value 'x{n}' before 'b'"));
    }
    assert_eq!(
        h.query("select count(distinct enumsortorder) from pg_enum where enumtypid = 'new'::regtype"),
        "T D:42 C:SELECT 1 Z:I"
    );
}
