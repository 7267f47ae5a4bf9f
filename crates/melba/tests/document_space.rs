//! Documents that are replaced or deleted give their space back by themselves: soon after the last change a table takes at most 1.3 times what a
//! new one with the same documents does.

mod serving;

use std::time::{Duration, Instant};

use postgres::Client;
use serving::Serving;

/// Nobody calls VACUUM: the background has so long.
const WITHIN: Duration = Duration::from_secs(60);
const MOST: f64 = 1.3;
/// What a table of few documents takes beside them.
const BESIDE_BYTES: f64 = 24_576.0;

/// A document: most of it is one of some templates', some of it is its own.
fn document(id: &str, version: &str) -> String {
    let template = format!("(SELECT string_agg(md5((i + {id} % 7)::text), ' ' ORDER BY i) FROM generate_series(1, 500) i)");
    let own = format!("(SELECT string_agg(md5({id} || '{version}' || i), ' ') FROM generate_series(1, 30) i)");
    format!("{template} || {own}")
}

fn bytes(client: &mut Client, table: &str) -> f64 {
    let size: i64 = client.query_one(&format!("SELECT pg_total_relation_size('{table}')"), &[]).expect("a size").get(0);
    size as f64
}

fn settles(client: &mut Client, method: &str, change: &str) {
    let own = format!(
        "DROP TABLE IF EXISTS own; CREATE TABLE own (id int PRIMARY KEY, body text COMPRESSION {method}); \
         INSERT INTO own SELECT * FROM docs; CHECKPOINT; VACUUM own"
    );
    own.split("; ").for_each(|statement| client.batch_execute(statement).expect("a copy"));
    let most = bytes(client, "own") * MOST + BESIDE_BYTES;
    let began = Instant::now();
    while bytes(client, "docs") > most {
        let taken = bytes(client, "docs");
        assert!(began.elapsed() < WITHIN, "{method}, {change}: {taken} bytes, where {most} are allowed");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn replaced_and_deleted_documents_give_their_space_back() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let server = Serving::start(data.path(), &[]);
    let mut client = server.connect("postgres", None).expect("connects");
    for method in ["dense", "lz4"] {
        client
            .batch_execute(&format!("CREATE TABLE docs (id int PRIMARY KEY, body text COMPRESSION {method})"))
            .expect("a table");
        let load = format!("INSERT INTO docs SELECT id, {} FROM generate_series(1, 400) id", document("id", "first"));
        client.batch_execute(&load).expect("documents");
        client.batch_execute("VACUUM docs").expect("vacuum");
        let replace = |which: &str, version: &str| format!("UPDATE docs SET body = {} WHERE {which}", document("id", version));
        for change in [
            replace("id % 10 = 0", "second"),
            "DELETE FROM docs WHERE id % 10 = 5".to_owned(),
            replace("true", "third"),
            "DELETE FROM docs WHERE id % 10 <> 1".to_owned(),
        ] {
            client.batch_execute(&change).expect("a change");
            settles(&mut client, method, &change);
        }
        client.batch_execute("DROP TABLE docs").expect("dropped");
    }
    server.stop();
}
