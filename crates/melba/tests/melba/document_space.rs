//! Documents that are replaced or deleted give their space back by themselves: soon after the last change a table takes at most 1.3 times what a
//! new one with the same documents does.

use std::time::{Duration, Instant};

use crate::serving::Serving;
use postgres::Client;

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

const METHODS: [&str; 2] = ["dense", "lz4"];

/// Runs statements, one by one, in which `{}` is a method's name: for each method.
fn run(client: &mut Client, statements: &[&str]) {
    for method in METHODS {
        statements.iter().for_each(|statement| client.batch_execute(&statement.replace("{}", method)).expect(statement));
    }
}

fn bytes(client: &mut Client, table: &str) -> f64 {
    let size: i64 = client.query_one(&format!("SELECT pg_total_relation_size('{table}')"), &[]).expect("a size").get(0);
    size as f64
}

/// The tables of all methods wait together: each wait begins with seconds in which nothing happens.
fn settles(client: &mut Client, change: &str) {
    let own = [
        "DROP TABLE IF EXISTS own_{}",
        "CREATE TABLE own_{} (id int PRIMARY KEY, body text COMPRESSION {})",
        "INSERT INTO own_{} SELECT * FROM docs_{}",
        "VACUUM own_{}",
    ];
    run(client, &own);
    let began = Instant::now();
    for method in METHODS {
        let most = bytes(client, &format!("own_{method}")) * MOST + BESIDE_BYTES;
        loop {
            let taken = bytes(client, &format!("docs_{method}"));
            if taken <= most {
                break;
            }
            assert!(began.elapsed() < WITHIN, "{method}, {change}: {taken} bytes, where {most} are allowed");
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

#[test]
fn replaced_and_deleted_documents_give_their_space_back() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let server = Serving::start(data.path(), &[]);
    let mut client = server.connect("postgres", None).expect("connects");
    client.batch_execute("CREATE TABLE new (id int PRIMARY KEY, body text)").expect("a table");
    let documents = |client: &mut Client, version: &str| {
        let all = format!("INSERT INTO new SELECT id, {} FROM generate_series(1, 300) id", document("id", version));
        client.batch_execute(&format!("TRUNCATE new; {all}")).expect("documents");
    };
    documents(&mut client, "first");
    let load = ["CREATE TABLE docs_{} (id int PRIMARY KEY, body text COMPRESSION {})", "INSERT INTO docs_{} SELECT * FROM new"];
    run(&mut client, &load);
    run(&mut client, &["VACUUM docs_{}"]);
    for (version, change) in [
        (Some("second"), "UPDATE docs_{} d SET body = new.body FROM new WHERE d.id = new.id AND d.id % 10 = 0"),
        (None, "DELETE FROM docs_{} WHERE id % 10 = 5"),
        (Some("third"), "UPDATE docs_{} d SET body = new.body FROM new WHERE d.id = new.id"),
        (None, "DELETE FROM docs_{} WHERE id % 10 <> 1"),
    ] {
        version.iter().for_each(|version| documents(&mut client, version));
        run(&mut client, &[change]);
        settles(&mut client, change);
    }
    server.stop();
}
