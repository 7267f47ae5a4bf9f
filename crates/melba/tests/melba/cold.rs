//! Tables whose old segments are objects of a store that works, fails, or does not answer.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use postgres::Client;

use super::serving::Serving;

/// The background's time for moves.
const PATIENCE: Duration = Duration::from_secs(60);

/// How the store answers.
#[derive(Clone, Copy, PartialEq)]
enum Mood {
    Works,
    Fails,
    Hangs,
}

struct State {
    objects: BTreeMap<String, Vec<u8>>,
    gets: usize,
    mood: Mood,
}

/// A part of S3: whole objects are put, ranges are got, objects are deleted.
#[derive(Clone)]
struct Store(Arc<Mutex<State>>);

impl Store {
    /// With the environment by which a server reaches it.
    fn start() -> (Store, Vec<(&'static str, String)>) {
        let store = Store(Arc::new(Mutex::new(State { objects: BTreeMap::new(), gets: 0, mood: Mood::Works })));
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let endpoint = format!("http://{}", listener.local_addr().expect("bound"));
        let served = store.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let store = served.clone();
                std::thread::spawn(move || while store.answer(&stream).is_some() {});
            }
        });
        let words =
            [("AWS_ALLOW_HTTP", "true"), ("AWS_REGION", "us-east-1"), ("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b")];
        let mut environment: Vec<_> = words.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        environment.push(("AWS_ENDPOINT", endpoint));
        (store, environment)
    }

    /// Answers one request; `None` at the connection's end.
    fn answer(&self, mut stream: &TcpStream) -> Option<()> {
        let mut reader = BufReader::with_capacity(1, stream);
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
            match line.trim_end() {
                "" => break,
                line => head.push(line.to_ascii_lowercase()),
            }
        }
        let header = |name: &str| head.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim);
        let mut body = vec![0; header("content-length").map_or(0, |length| length.parse().expect("a number"))];
        reader.read_exact(&mut body).ok()?;
        let mut words = head.first()?.split(' ');
        let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
        let mut state = self.0.lock().expect("no panic");
        if state.mood == Mood::Hangs {
            drop(state);
            std::thread::sleep(PATIENCE);
            return None;
        }
        let (status, more, content) = match (method.as_str(), state.mood) {
            (_, Mood::Fails) => ("500 Internal Server Error", String::new(), Vec::new()),
            ("put", _) => {
                state.objects.insert(path, body);
                ("200 OK", "ETag: \"x\"\r\n".to_owned(), Vec::new())
            }
            ("delete", _) => {
                state.objects.remove(&path);
                ("204 No Content", String::new(), Vec::new())
            }
            _ => {
                state.gets += 1;
                match (state.objects.get(&path), header("range").and_then(|range| range.strip_prefix("bytes=")?.split_once('-')))
                {
                    (Some(object), Some((from, to))) => {
                        let (from, to): (usize, usize) = (from.parse().expect("a number"), to.parse().expect("a number"));
                        let to = to.min(object.len() - 1);
                        let more = format!(
                            "ETag: \"x\"\r\nLast-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\nContent-Range: bytes {from}-{to}/{}\r\n",
                            object.len()
                        );
                        ("206 Partial Content", more, object[from..=to].to_vec())
                    }
                    _ => ("404 Not Found", String::new(), Vec::new()),
                }
            }
        };
        drop(state);
        write!(stream, "HTTP/1.1 {status}\r\n{more}Content-Length: {}\r\n\r\n", content.len()).ok()?;
        stream.write_all(&content).ok()
    }

    fn set(&self, mood: Mood) {
        self.0.lock().expect("no panic").mood = mood;
    }

    fn gets(&self) -> usize {
        self.0.lock().expect("no panic").gets
    }

    fn objects(&self) -> usize {
        self.0.lock().expect("no panic").objects.len()
    }
}

fn number(client: &mut Client, query: &str) -> i64 {
    client.query_one(query, &[]).expect("a row").get(0)
}

/// Waits until a query says true.
fn wait(client: &mut Client, condition: &str) {
    let start = Instant::now();
    while !client.query_one(&format!("select {condition}"), &[]).expect("a row").get::<_, Option<bool>>(0).unwrap_or(false) {
        let state = client.query_one("select melba_cold::text from melba_cold", &[]).map(|row| row.get::<_, String>(0));
        assert!(start.elapsed() < PATIENCE, "not {condition}: {state:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Waits until `count` objects are left.
fn until_there_are(count: usize, objects: impl Fn() -> usize) {
    let start = Instant::now();
    while objects() != count {
        assert!(start.elapsed() < PATIENCE, "{} objects", objects());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Runs statements, whose rows are in segments then.
fn run(client: &mut Client, statements: &str) {
    client.batch_execute(statements).expect("it runs");
    client.batch_execute("checkpoint").expect("it runs");
}

fn refused(client: &mut Client, statement: &str) -> String {
    let error = client.batch_execute(statement).expect_err("it is refused");
    let error = error.as_db_error().expect("an answer");
    format!("{} {}", error.code().code(), error.message())
}

fn segment_bytes(data: &Path) -> u64 {
    let files = std::fs::read_dir(data.join("segments")).expect("a folder");
    files.map(|file| file.expect("a file").metadata().map_or(0, |found| found.len())).sum()
}

const DOCUMENT: &str = "(select string_agg(md5((i * 1000 + j)::text), '') from generate_series(1, 200) j)";

#[test]
fn documents_are_rows_with_their_bytes_in_the_store() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let (store, environment) = Store::start();
    let mut server = Serving::start_with(data.path(), &[], &environment);
    let mut client = server.connect("postgres", None).expect("it connects");
    let create = format!(
        "create table d (id int primary key, name text, body text) with (cold_store = 's3://bucket/cold/', cold_after = '0');
         insert into d select i, 'document ' || i, {DOCUMENT} from generate_series(1, 500) i"
    );
    run(&mut client, &create);
    let sum = "select sum(hashtext(body)::int8)::int8 from d";
    let expected = number(&mut client, "select sum(length(body))::int8 from d");
    let hash = number(&mut client, sum);
    wait(&mut client, "local_files <= 1 and cold_files > 0 and cold_bytes > 1000000 from melba_cold");
    assert!(segment_bytes(data.path()) < 600_000, "{}", segment_bytes(data.path()));
    // Nothing is in the block cache after a start.
    drop(client);
    server.stop();
    server = Serving::start_with(data.path(), &[], &environment);
    let mut client = server.connect("postgres", None).expect("it connects");
    let before = store.gets();
    assert_eq!(number(&mut client, "select count(*) from d where name like 'doc%'"), 500);
    assert_eq!(store.gets(), before, "rows are here");
    let one = client.query_one("select body from d where id = 77", &[]).expect("a row").get::<_, String>(0);
    assert_eq!((one.len(), store.gets()), (6400, before + 1));
    // Of those rows only, of this statement only, and not for long.
    store.set(Mood::Fails);
    let start = Instant::now();
    assert!(refused(&mut client, "select sum(length(body || '')) from d").starts_with("58030"));
    assert!(start.elapsed() < Duration::from_secs(30));
    assert_eq!(number(&mut client, "select sum(length(body))::int8 from d where id = 77"), 6400);
    assert_eq!(number(&mut client, "select count(*) from d where name like 'doc%'"), 500);
    store.set(Mood::Hangs);
    let start = Instant::now();
    client.batch_execute("set statement_timeout = '300ms'").expect("it runs");
    assert!(refused(&mut client, "select sum(hashtext(body)::int8) from d").starts_with("57014"));
    client.batch_execute("set statement_timeout = 0").expect("it runs");
    assert!(start.elapsed() < Duration::from_secs(5));
    let start = Instant::now();
    assert!(refused(&mut client, "select sum(hashtext(body)::int8) from d").starts_with("58030"));
    assert!(start.elapsed() < Duration::from_secs(40));
    store.set(Mood::Works);
    assert_eq!((number(&mut client, sum), number(&mut client, "select sum(length(body))::int8 from d")), (hash, expected));
    // One transaction.
    client.batch_execute("begin; update d set body = 'short' where id < 100; rollback").expect("it runs");
    assert_eq!(number(&mut client, sum), hash);
    client.batch_execute("begin; delete from d where id = 77; update d set body = 'x' where id = 78; commit").expect("it runs");
    assert_eq!(number(&mut client, "select count(*) from d where id = 77 or id = 78 and body <> 'x'"), 0);
    client.batch_execute("alter table d reset (cold_store)").expect("it runs");
    wait(&mut client, "not exists (select from melba_cold)");
    let start = Instant::now();
    while store.objects() > 0 {
        assert!(start.elapsed() < PATIENCE, "objects stay");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(number(&mut client, "select count(*) from d"), 499);
}

#[test]
fn tables_move_into_a_folder_and_leave_it_with_their_end() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let folder = tempfile::tempdir().expect("a temporary directory");
    let objects = || {
        let databases = std::fs::read_dir(folder.path()).expect("a folder");
        databases.map(|found| std::fs::read_dir(found.expect("a folder").path()).expect("a folder").count()).sum::<usize>()
    };
    let server = Serving::start(data.path(), &[]);
    let mut client = server.connect("postgres", None).expect("it connects");
    let url = format!("file://{}", folder.path().display());
    client.batch_execute("create role app; create schema a authorization app").expect("it runs");
    for (statement, error) in [
        (
            "create table r (i int) with (cold_store = '/x')",
            "22023 invalid value for option \"cold_store\": \"/x\" is no folder of a store",
        ),
        ("create table r (i int) with (cold_store = 's3://b/x?y=1')", "22023"),
        ("create table r (i int) with (cold_store = 'https://s3.eu-1.amazonaws.com/b')", "22023"),
        ("create table r (i int) with (cold_after = '1 week')", "22023 invalid value for option \"cold_after\": 1 week"),
        ("create unlogged table r (i int) with (cold_store = 'file:///x')", "0A000"),
        ("create temp table r with (cold_store = 'file:///x') as select 1", "0A000"),
        ("create table r (i int) with (cold_store = 'file:///x'); alter table r set unlogged", "0A000"),
        ("create table r (i int) with (cold_store = 'file:///x'); alter table r set access method memory", "0A000"),
        ("create table r (i int) partition by list (i) with (cold_store = 'file:///x')", "42809"),
        ("set role app; create table a.r (i int) with (cold_store = 'file:///x')", "42501"),
        ("set role app; create table a.r (i int); alter table a.r set (cold_store = 'file:///x')", "42501"),
    ] {
        let found = refused(&mut client, statement);
        assert!(found.starts_with(error), "{statement}: {found}");
    }
    let within =
        format!("create table w with (cold_store = 'file://{}/segments', cold_after = '0') as select 1 i", data.path().display());
    run(&mut client, &within);
    wait(&mut client, "error like '%is in the data directory' from melba_cold");
    client.batch_execute("drop table w").expect("it runs");
    let create = format!(
        "create table t (id int primary key, v text) with (cold_store = '{url}', cold_after = '0');
         insert into t select i, md5(i::text) from generate_series(1, 50000) i"
    );
    run(&mut client, &create);
    wait(&mut client, "local_files = 0 and cold_files > 0 from melba_cold");
    assert!(objects() > 0);
    let sum = "select sum(hashtext(v)::int8)::int8 from t";
    let hash = number(&mut client, sum);
    assert_eq!(client.query_one("select v from t where id = 4711", &[]).expect("a row").get::<_, String>(0).len(), 32);
    // Rows above cold ones, a merge with them, and a server that is killed meanwhile.
    client.batch_execute("delete from t where id % 2 = 0").expect("it runs");
    client.batch_execute("checkpoint").expect("it runs");
    let half = number(&mut client, sum);
    assert_ne!(half, hash);
    drop((client, server));
    let server = Serving::start(data.path(), &[]);
    let mut client = server.connect("postgres", None).expect("it connects");
    assert_eq!(number(&mut client, sum), half);
    client.batch_execute("vacuum t").expect("it runs");
    // What came back for a merge stays for a while.
    wait(&mut client, "cold_files > 0 and error is null from melba_cold");
    assert_eq!(number(&mut client, sum), half);
    client.batch_execute("truncate t; insert into t values (1, 'one')").expect("it runs");
    client.batch_execute("checkpoint").expect("it runs");
    wait(&mut client, "local_files = 0 and cold_files = 1 from melba_cold");
    until_there_are(1, objects);
    run(&mut client, "drop table t");
    until_there_are(0, objects);
    server.stop();
}
