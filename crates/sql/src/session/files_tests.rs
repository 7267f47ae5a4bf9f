//! Files as tables.

use std::fs;
use std::path::PathBuf;

use super::tests::Harness;

/// A server, and a folder with files.
struct Folder {
    server: Harness,
    folder: tempfile::TempDir,
}

impl Folder {
    fn new(files: &[(&str, &str)]) -> Folder {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let mut server = Harness::new();
        server.lines("set timezone = 'UTC'");
        Folder { server, folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// The first values of a query's rows; `@` is the folder.
    fn lines(&mut self, sql: &str) -> String {
        let folder = self.path().display().to_string();
        self.server.lines(&sql.replace('@', &folder)).replace(&folder, "@")
    }

    fn types(&mut self, call: &str) -> String {
        self.lines(&format!("create or replace temp view v as select * from {call}"));
        let types = self.lines(
            "select string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' order by attnum) from pg_attribute \
             where attrelid = 'v'::regclass",
        );
        self.lines("drop view v");
        types
    }
}

#[test]
fn csv_has_the_columns_that_an_import_makes() {
    let mut f = Folder::new(&[
        (
            "a.csv",
            "\u{feff}ID;Name of it;Code;Day;Seen at;Price;Ok\r\n1;\"Ann; \"\"A\"\"\r\nof two\";007;2024-02-29;2024-02-29 10:00:00+02;1.50;true\r\n\
             2;\"\";12;;;2;F\r\n",
        ),
        ("b.tsv", "1\tx\n-\ty\n"),
        ("part1.csv", "a,b\n1,2\n"),
        ("part2.csv", "b,a,c\n3,4.5,x\n"),
        ("quoted.csv", "a|b\n'x|y'|NA\n'NA'|\n"),
    ]);
    assert_eq!(
        f.types("read_csv('@/a.csv')"),
        "id bigint, name_of_it text, code text, day date, seen_at timestamp with time zone, price numeric, ok boolean"
    );
    assert_eq!(
        f.lines("select t::text from read_csv('@/a.csv') t"),
        "(1,\"Ann; \"\"A\"\"\r\nof two\",007,2024-02-29,\"2024-02-29 08:00:00+00\",1.50,t)\n(2,\"\",12,,,2,f)"
    );
    assert_eq!(f.lines("select sum(price) from read_csv('@/a.csv') where ok or id = 2"), "3.50");
    assert_eq!(f.types("read_csv('@/b.tsv', null_string => '-')"), "column1 bigint, column2 text");
    assert_eq!(f.lines("select coalesce(column1, 0) || column2 from read_csv('@/b.tsv', null_string => '-')"), "1x\n0y");
    assert_eq!(f.lines("select column2 from read_csv('@/b.tsv', header => false)"), "x\ny");
    assert_eq!(f.types("read_csv('@/b.tsv', true)"), "_1 text, x text");
    // The first file's columns, with types that take the values of all.
    assert_eq!(f.types("read_csv('@/part?.csv')"), "a numeric, b bigint");
    assert_eq!(f.lines("select t::text from read_csv('@/part*.csv') t"), "(1,2)\n(4.5,3)");
    assert_eq!(
        f.lines("select t::text from read_csv('@/quoted.csv', delimiter => '|', quote => '''', null_string => 'NA') t"),
        "(x|y,)\n(NA,)"
    );
    // By name, and by position where no name is known.
    assert_eq!(f.lines("select b from read_csv('@/part*.csv') as t(b smallint, a text)"), "2\n3");
    assert_eq!(f.lines("select y from read_csv('@/part1.csv') as t(x int, y text)"), "2");
    assert_eq!(f.lines("select ordinality || ':' || a from rows from (read_csv('@/part*.csv')) with ordinality"), "1:1\n2:4.5");
    assert_eq!(f.lines("select count(*) from read_csv('@/part*.csv')"), "2");
    assert_eq!(f.lines("select count(*) from read_csv(null) as t(a int)"), "0");
    f.lines("create domain positive as int not null check (value > 0)");
    assert_eq!(f.lines("select a from read_csv('@/part1.csv') as t(a positive, b int)"), "1");
}

#[test]
fn json_lines_have_the_columns_of_all_objects() {
    let mut f = Folder::new(&[
        (
            "a.jsonl",
            "{\"id\": 12345678901234567890, \"Tag\": {\"b\": 1.10}, \"on\": \"2024-01-01\"}\n\n{\"id\": 1, \"text\": \"a\\tb\", \"Tag\": [1]}\n",
        ),
        ("b.jsonl", "{\"id\": null, \"more\": true, \"text\": \"c\"}\n"),
        ("keys.jsonl", "{\"Order ID\": 1, \"order-id\": 2, \"ID\": 3, \"id\": 4}\n"),
        ("array.json", " [{\"a\": 1}]"),
    ]);
    assert_eq!(f.types("read_json('@/?.jsonl')"), "id numeric, tag jsonb, on date, text text, more boolean");
    assert_eq!(
        f.lines("select t::text from read_json('@/?.jsonl') t"),
        "(12345678901234567890,\"{\"\"b\"\": 1.10}\",2024-01-01,,)\n(1,[1],,\"a\tb\",)\n(,,,c,t)"
    );
    assert_eq!(f.lines("select tag from read_json('@/a.jsonl') where id = 1"), "[1]");
    assert_eq!(f.lines("select t::text from read_json('@/keys.jsonl') t"), "(1,2,3,4)");
    assert_eq!(
        f.lines("select t::text from read_json('@/a.jsonl') as t(text varchar, \"Tag\" json)"),
        "(,\"{\"\"b\"\": 1.10}\")\n(\"a\tb\",[1])"
    );
    assert_eq!(
        f.lines("select 1 from read_json('@/array.json')"),
        "ERROR 0A000: reading an array of JSON as a table is not supported yet"
    );
}

#[test]
fn errors_name_the_file_and_the_line() {
    let long = format!("a,b\n{}", (1..=5000).map(|i| format!("{i},x\n")).collect::<String>());
    let mut f = Folder::new(&[
        ("short.csv", "a,b\n1,2\n3\n"),
        ("open.csv", "a,b\n1,\"2\n"),
        ("value.csv", "a,b\n1,\"x\ny\"\nfive,6\n"),
        ("wrong.jsonl", "{\"a\": 1}\n{\"a\": }\n"),
        ("empty.csv", ""),
        ("zip.csv", "PK\u{3}\u{4}"),
        ("long.csv", &long),
    ]);
    for (sql, error) in [
        (
            "select 1 from read_csv('@/short.csv')",
            "ERROR 22P04: invalid file \"@/short.csv\": line 3: it has 1 fields, but the first record has 2",
        ),
        (
            "select 1 from read_csv('@/open.csv')",
            "ERROR 22P04: invalid file \"@/open.csv\": line 2: field 2 of this record begins with a quote, and no quote ends it",
        ),
        (
            "select a from read_csv('@/value.csv') as t(a int, b text)",
            "1\nERROR 22P02: invalid input syntax for type integer: \"five\"",
        ),
        ("select 1 from read_csv('@/empty.csv')", "ERROR 22P04: invalid file \"@/empty.csv\": the file is empty"),
        ("select c from read_csv('@/value.csv') as t(a text, c text)", "ERROR 22P04: the file has no column \"c\""),
        (
            "select 1 from read_csv('@/none.csv')",
            "ERROR 58P01: could not open file \"@/none.csv\" for reading: No such file or directory",
        ),
        ("select 1 from read_csv('@/no*.csv')", "ERROR 58P01: no file matches \"@/no*.csv\""),
        (
            "select 1 from read_csv('@/long.csv', delimiter => ';;')",
            "ERROR 0A000: read_csv delimiter must be a single one-byte character",
        ),
        (
            "select 1 from read_csv('@/long.csv', delimiter => '\"')",
            "ERROR 22023: read_csv delimiter and quote must be different",
        ),
    ] {
        let said = f.lines(sql);
        // Rows may come before an error.
        assert!(said == error || error.ends_with(&said), "{sql}: {said}");
    }
    assert!(
        f.lines("select 1 from read_json('@/wrong.jsonl')")
            .starts_with("ERROR 22P04: invalid file \"@/wrong.jsonl\": line 2: expected value")
    );
    assert!(f.lines("select 1 from read_csv('@/zip.csv')").contains("it is an archive or a spreadsheet"));
    let place = "do $$ declare place text; begin perform a from read_csv('@/value.csv') as t(a int, b text); \
         exception when others then get stacked diagnostics place = pg_exception_context; perform set_config('my.place', place, false); end $$";
    f.lines(place);
    assert!(f.lines("select current_setting('my.place')").contains("line 4, column a\nfile \"@/value.csv\""));
    assert_eq!(f.lines("select sum(a) || ' ' || count(b) from read_csv('@/long.csv')"), "12502500 5000");
    assert_eq!(f.lines("select 1 from read_csv('@')"), "ERROR 42809: \"@\" is not a regular file");
    f.lines("set check_function_bodies = off; create function f(text) returns setof record language plpgsql as 'read_csv'");
    assert!(f.lines("select 1 from f('@/long.csv') as t(a int, b text)").starts_with("ERROR 42601: syntax error"));
    f.lines("create role reader; set role reader");
    assert_eq!(f.lines("select 1 from read_csv('@/long.csv')"), "ERROR 42501: permission denied for function read_csv");
}

#[test]
fn views_keep_the_columns_of_files() {
    let mut f = Folder::new(&[("a.csv", "Id,Of day\n1,2024-01-01\n")]);
    f.lines("copy (select 1 as id, text 'x' as name union all select 2, 'y') to '@/a.parquet' (format parquet)");
    for (call, shown, rows) in [
        ("read_csv('@/a.csv', \"header\" => true) as t", "read_csv('@/a.csv'::text, true) t(id bigint, of_day date)", "1:1"),
        ("read_parquet('@/a.parquet') as t", "read_parquet('@/a.parquet'::text) t(id integer, name text)", "1:1\n2:2"),
        (
            "read_parquet('@/a.parquet') with ordinality as t(id, b, n)",
            "ROWS FROM(read_parquet('@/a.parquet'::text) AS (id integer, name text)) WITH ORDINALITY t(id, b, n)",
            "1:1\n2:2",
        ),
    ] {
        assert_eq!(f.lines(&format!("create view v as select * from {call}")), "CREATE VIEW");
        let text = f.lines("select pg_get_viewdef('v')");
        assert!(text.contains(shown), "{text}");
        // The text makes the same view, as a dump does.
        assert_eq!(f.lines(&format!("create view w as {text}")), "CREATE VIEW");
        assert_eq!(f.lines("select pg_get_viewdef('w')"), text);
        assert_eq!(f.lines("select row_number() over () || ':' || id from w"), rows);
        if call.contains("ordinality") {
            // The number is the file's.
            assert_eq!(f.lines("select n from w where id = 2"), "2");
        }
        f.lines("drop view v, w");
    }
}
