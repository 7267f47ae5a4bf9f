//! `melba import`: files with what makes them hard.

use super::{melba, path, run, said};

const CSV: &str = "\u{feff}ID;Name of it;Code;Day;Seen at;Price;Ok;Note\r
1;\"Ann; \"\"A\"\"\r
of two lines\";007;2024-02-29;2024-02-29 10:00:00+02;1.50;true;\"\"\r
2;5\" pipe;12;;;2;F;\r
";

#[test]
fn csv_and_json_become_tables() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let (data, csv, json) =
        (folder.path().join("data"), folder.path().join("Some Things.csv"), folder.path().join("events.jsonl"));
    std::fs::write(&csv, CSV).expect("a file");
    let events = "{\"id\": 12345678901234567890, \"tag\": {\"b\": 1.10}, \"on\": \"2024-01-01\"}\n\n{\"id\": 1, \"text\": \"a\\tb\\\\\", \"tag\": [1]}\n";
    std::fs::write(&json, events).expect("a file");
    let (code, out, error) = run(&["import", path(&csv), path(&json), "--dry-run"]);
    let expected = "CREATE TABLE some_things (
    id bigint,
    name_of_it text,
    code text,
    day date,
    seen_at timestamptz,
    price numeric,
    ok boolean,
    note text
);
CREATE TABLE events (
    id numeric,
    tag jsonb,
    \"on\" date,
    text text
);
";
    assert_eq!((code, out.as_str()), (Some(0), expected), "{error}");
    let (code, out, error) = run(&["import", path(&csv), path(&json), "--data", path(&data)]);
    assert_eq!(code, Some(0), "{error}");
    assert!(
        out.contains("some_things: 2 rows from ")
            && out.contains("(CSV with ';' and a header)")
            && out.contains("events: 2 rows from"),
        "{out}"
    );
    let ask = |sql: &str| run(&["sql", "--data", path(&data), "--csv", "-t", "-c", sql]).1;
    assert_eq!(
        ask("set timezone = 'UTC'; select * from some_things order by id"),
        "1,\"Ann; \"\"A\"\"\r\nof two lines\",007,2024-02-29,2024-02-29 08:00:00+00,1.50,t,\"\"\n2,\"5\"\" pipe\",12,,,2,f,\n"
    );
    assert_eq!(
        ask("select * from events order by id"),
        "1,[1],,a\tb\\\n12345678901234567890,\"{\"\"b\"\": 1.10}\",2024-01-01,\n"
    );
    // The table is there, and takes more only when that is said.
    let (code, _, error) = run(&["import", path(&csv), "--data", path(&data)]);
    assert!(code == Some(1) && error.contains("already exists (--append"), "{error}");
    let (code, _, error) = run(&["import", path(&csv), "--data", path(&data), "--append"]);
    assert_eq!(code, Some(0), "{error}");
    assert_eq!(ask("select count(*) from some_things"), "4\n");
}

#[test]
fn after_an_error_nothing_is_there() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let (data, good, bad) = (folder.path().join("data"), folder.path().join("good.csv"), folder.path().join("bad.csv"));
    std::fs::write(&good, "a,b\n1,2\n").expect("a file");
    std::fs::write(&bad, "a,b\n1,\"x\ny\"\n3,4\n5\n").expect("a file");
    let import = |options: &[&str]| {
        let mut command = melba(&["import", path(&good), path(&bad), "--data", path(&data)]);
        said(&command.args(options).output().expect("it runs"))
    };
    let (code, _, error) = import(&[]);
    assert!(code == Some(1) && error.contains("bad.csv: line 5: it has 1 fields, but the first record has 2"), "{error}");
    std::fs::write(&bad, "a,b\n1,\"x\ny\"\n3,4\nfive,6\n").expect("a file");
    let (code, _, error) = import(&["--types", "a=bigint"]);
    assert!(
        code == Some(1) && error.contains("bad.csv: line 5, column a: invalid input syntax for type bigint: \"five\""),
        "{error}"
    );
    let (_, out, _) =
        run(&["sql", "--data", path(&data), "-A", "-t", "-c", "select count(*) from pg_tables where schemaname = 'public'"]);
    assert_eq!(out, "0\n");
    std::fs::write(&bad, b"PAR1....PAR1").expect("a file");
    let (code, _, error) = import(&[]);
    assert!(code == Some(1) && error.contains("bad.csv: invalid Parquet file"), "{error}");
}

#[test]
fn parquet_files_say_their_columns() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let (data, file) = (folder.path().join("data"), folder.path().join("Of May.parquet"));
    let sql = |sql: &str| run(&["sql", "--data", path(&data), "--csv", "-t", "-c", sql]);
    let query = "select i as id, i / 4.0::numeric(4, 2) as \"Share of it\", case when i > 1 then array['a', null] end as tags, \
         date '2026-05-01' + i as day from generate_series(1, 2) i";
    let (code, _, error) = sql(&format!("copy ({query}) to '{}' (format parquet)", path(&file)));
    assert_eq!(code, Some(0), "{error}");
    let (code, out, error) = run(&["import", path(&file), "--dry-run"]);
    let expected = "CREATE TABLE of_may (
    id integer,
    \"Share of it\" numeric,
    tags text[],
    day date
);
";
    assert_eq!((code, out.as_str()), (Some(0), expected), "{error}");
    let (code, out, error) = run(&["import", path(&file), "--data", path(&data)]);
    assert_eq!(code, Some(0), "{error}");
    assert!(out.contains("of_may: 2 rows from ") && out.contains("(Parquet)"), "{out}");
    let (_, out, error) = sql("select id, round(\"Share of it\", 2), tags, day from of_may order by id");
    assert_eq!(out, "1,0.25,,2026-05-02\n2,0.50,\"{a,NULL}\",2026-05-03\n", "{error}");
    // A value that a table does not take.
    assert_eq!(sql("create table small (id smallint)").0, Some(0));
    let narrow = folder.path().join("narrow.parquet");
    let (code, _, error) = sql(&format!("copy (select 1 as id union all select 70000) to '{}' (format parquet)", path(&narrow)));
    assert_eq!(code, Some(0), "{error}");
    let (code, _, error) = run(&["import", path(&narrow), "--table", "small", "--append", "--data", path(&data)]);
    assert!(code == Some(1) && error.contains("narrow.parquet: row 2, column id: value \"70000\" is out of range"), "{error}");
}
