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
    assert_eq!(f.lines("select 1 from read_csv('@')"), "ERROR 42809: \"@\" is a directory");
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

/// A folder and a server of file_fdw.
fn foreign(files: &[(&str, &str)]) -> Folder {
    let mut f = Folder::new(files);
    f.lines("create extension file_fdw; create server files foreign data wrapper file_fdw");
    f
}

#[test]
fn foreign_tables_of_programs_read_what_they_print() {
    let mut f = foreign(&[]);
    f.lines(&table("a (id int, name text)", "program 'seq 3 | sed \"s/$/,x/\"', format 'csv'"));
    assert_eq!(f.lines("select id || ' ' || name from a order by id"), "1 x\n2 x\n3 x");
    assert_eq!(f.lines("select count(*) from a, a b"), "9");
    let plan = f.lines("explain (costs off) select id from a where name = 'y'");
    assert_eq!(plan, "Foreign Scan on a\n  Filter: (name = 'y'::text)\n  Foreign Program: seq 3 | sed \"s/$/,x/\"");
    // One that would never end is ended.
    f.lines(&table("endless (id int)", "program 'yes 5'"));
    assert_eq!(f.lines("select id from endless limit 2"), "5\n5");
    for (name, program, error) in [
        ("failing", "echo 1; exit 3", "38000: program \"echo 1; exit 3\" failed"),
        ("unknown", "no_such_command", "38000: program \"no_such_command\" failed"),
        ("wrong", "echo x", "22P02: invalid input syntax for type integer: \"x\""),
    ] {
        f.lines(&table(&format!("{name} (id int)"), &format!("program '{program}', format 'csv'")));
        let said = f.lines(&format!("select * from {name}"));
        assert!(said.contains(error), "{program}: {said}");
    }
    f.lines("create role maker; grant all on schema public to maker; grant usage on foreign server files to maker");
    f.lines("set role maker");
    let said = f.lines(&table("b (id int)", "program 'echo 1'"));
    assert!(said.contains("permission denied to set the \"program\" option of a file_fdw foreign table"), "{said}");
}

/// A definition of a foreign table.
fn table(definition: &str, options: &str) -> String {
    format!("create foreign table {definition} server files options ({options})")
}

#[test]
fn foreign_tables_of_lines_are_read_as_by_copy() {
    let mut f = foreign(&[
        ("a.csv", "id,Name,day\n1,Ann,2024-02-29\n2,\"\",2024-03-01\n3,,\n"),
        ("b.csv", "7|'x|y'\r\n8|\r\n"),
        ("c.txt", "1\t\\N\n2\ta\\tb\n\\.\nnot read"),
        ("part1.csv", "1\n2\n"),
        ("part2.csv", "3\n"),
    ]);
    f.lines(&table("a (id int, name text, day date)", "filename '@/a.csv', format 'csv', header 'true'"));
    assert_eq!(
        f.lines("select format('%s %s %s %s', id, name is null, name, day) from a order by id"),
        "1 f Ann 2024-02-29\n2 f  2024-03-01\n3 t  "
    );
    assert_eq!(
        f.lines("explain (costs off) select name from a where id = 2"),
        "Foreign Scan on a\n  Filter: (id = 2)\n  Foreign File: @/a.csv"
    );
    assert_eq!(f.lines("select (a).id from a where day > '2024-02-29'"), "2");
    assert_eq!(f.lines("select count(*) from a"), "3");
    assert_eq!(f.lines("select count(*) from a join a b using (id) where b.name = 'Ann'"), "1");
    assert_eq!(f.lines("select tableoid::regclass || ' ' || id from a for update"), "a 1\na 2\na 3");
    f.lines("create view v as select id * 10 as ten from a where id > 1");
    assert_eq!(f.lines("select sum(ten) from v"), "50");
    // The rows of a rescan are read again.
    assert_eq!(f.lines("select (select max(id) from a where id <= n) from generate_series(1, 2) n"), "1\n2");
    f.lines(&table("b (n int, t text)", "filename '@/b.csv', format 'csv', delimiter '|', quote ''''"));
    assert_eq!(f.lines("select n || ':' || coalesce(t, '-') from b"), "7:x|y\n8:-");
    f.lines(&table("c (n int, t text)", "filename '@/c.txt'"));
    assert_eq!(f.lines("select n || ':' || coalesce(t, '-') from c"), "1:-\n2:a\tb");
    f.lines(&table("part (n int)", "filename '@/part*.csv'"));
    assert_eq!(f.lines("select n from part"), "1\n2\n3");
    // A dropped column is in no file.
    f.lines("alter foreign table b add column later int, drop column n");
    assert!(f.lines("select * from b").contains("invalid input syntax for type integer: \"x|y\""));
}

#[test]
fn errors_of_foreign_tables_have_the_place_in_the_file() {
    let mut f = foreign(&[("a.csv", "1,x\ny,2\n3\n"), ("b.csv", "a,b\n1,2\n")]);
    f.lines(&table("a (n int, t text)", "filename '@/a.csv', format 'csv'"));
    let said = f.lines("select n from a");
    assert!(said.contains("22P02") && said.contains("\"y\""), "{said}");
    // A column that is not read is not looked at.
    let said = f.lines("select t from a");
    assert!(said.contains("22P04") && said.contains("missing data for column \"t\""), "{said}");
    f.lines("alter foreign table a options (set filename '@/none.csv')");
    let said = f.lines("select * from a");
    assert!(said.contains("58P01") && said.contains("could not open file \"@/none.csv\" for reading"), "{said}");
    f.lines("alter foreign table a options (set filename '@/none*.csv')");
    assert!(f.lines("select * from a").contains("58P01"));
    f.lines(&table("b (a int, c int)", "filename '@/b.csv', format 'csv', header 'match'"));
    assert!(f.lines("select * from b").contains("column name mismatch in header line field 2: got \"b\", expected \"c\""));
    f.lines("alter foreign table b rename c to b");
    assert_eq!(f.lines("select a + b from b"), "3");
}

#[test]
fn bad_rows_of_a_foreign_table_may_be_left_out() {
    let mut f = foreign(&[("a.csv", "1,a\nx,b\n3,c\ny,d\n")]);
    f.lines(&table("a (n int, t text)", "filename '@/a.csv', format 'csv', on_error 'ignore', log_verbosity 'silent'"));
    assert_eq!(f.lines("select n || t from a"), "1a\n3c");
    assert_eq!(f.lines("select t from a"), "a\nb\nc\nd");
    // Where no column is read, the rows are those of all columns.
    assert_eq!(f.lines("select count(*) from a"), "2");
    f.lines("alter foreign table a options (add reject_limit '1')");
    assert!(f.lines("select n from a").contains("skipped more than REJECT_LIMIT (1) rows"));
}

#[test]
fn skipped_rows_are_counted_over_all_files() {
    let mut f = foreign(&[("a1.csv", "x\n1\n"), ("a2.csv", "2\ny\n"), ("a3.csv", "z\n3\n")]);
    f.lines(&table(
        "a (n int)",
        "filename '@/a*.csv', format 'csv', on_error 'ignore', reject_limit '2', log_verbosity 'silent'",
    ));
    assert!(f.lines("select n from a").contains("skipped more than REJECT_LIMIT (2) rows"));
    f.lines("alter foreign table a options (set reject_limit '3', drop log_verbosity)");
    // One notice, at the end.
    assert_eq!(f.server.query("select n from a"), "T D:1 D:2 D:3 N00000 C:SELECT 3 Z:I");
}

#[test]
fn files_are_read_to_their_end() {
    let long = "l".repeat(300_000);
    let mut f =
        foreign(&[("a.txt", "1\n2\n"), ("b.csv", "a\n1\n"), ("c.json", "{\"a\": 1}\n"), ("long.txt", &long), ("empty", "")]);
    for (name, options) in
        [("a", "filename 'file://@/a.txt'"), ("e", "filename '@/empty'"), ("j", "filename '@/empty', format 'json'")]
    {
        f.lines(&table(&format!("{name} (a int)"), options));
    }
    assert_eq!(f.lines("select sum(a) from a"), "3");
    assert_eq!(f.lines("select a from read_csv('file://@/b.csv')"), "1");
    assert_eq!(f.lines("select a from read_json('file://@/c.json')"), "1");
    assert_eq!(f.lines("select count(*) from read_json('@/empty') as t(a int)"), "0");
    f.lines(&table("l (t text)", "filename 'file://@/long.txt'"));
    assert_eq!(f.lines("select length(t) from l"), "300000");
    // The system says of this file that it is empty.
    f.lines(&table("os (t text)", "filename '/proc/sys/kernel/ostype'"));
    assert_eq!(f.lines("select t from os"), "Linux");
    assert_eq!(f.lines("select coalesce(sum(a), -1) from e"), "-1");
    assert_eq!(f.lines("select coalesce(sum(a), -1) from j"), "-1");
    f.lines("alter foreign table e options (set filename '/dev/null')");
    assert_eq!(f.lines("select count(*) from e"), "0");
    f.lines("alter foreign table e options (add header 'match')");
    assert!(f.lines("select a from e").contains("column name mismatch in header line field 1: got \"\", expected \"a\""));
    f.lines("alter foreign table e add column b int");
    assert!(f.lines("select a from e").contains("wrong number of fields in header line: got 1, expected 2"));
    f.lines("create table t (a int)");
    assert!(f.lines("copy t from '/dev/null' (format csv, header match)").contains("got null value (\"\"), expected \"a\""));
    assert_eq!(f.lines("copy t from '/dev/null' (format csv, header)"), "COPY 0");
    for statement in ["copy t from '@'", "select * from read_csv('@')"] {
        assert_eq!(f.lines(statement), "ERROR 42809: \"@\" is a directory");
    }
}

#[test]
fn all_lines_of_a_file_end_alike() {
    let mut f =
        foreign(&[("a", "1,a\r\n2,b\n"), ("b", "1,a\n2,b\r\n"), ("c", "1,a\r2,b\r\n3,c"), ("d", "1,\"a\n\r\"\r\n2,b\r\n3,c")]);
    f.lines("create table t (n int, t text)");
    f.lines(&table("f (n int, t text)", "filename '@/d', format 'csv'"));
    assert_eq!(f.lines("select count(*) from f"), "3");
    for (name, what) in [("a", "newline"), ("b", "carriage return"), ("c", "newline")] {
        let error = format!("22P04: unquoted {what} found in data");
        let said = f.lines(&format!("copy t from '@/{name}' csv"));
        assert!(said.contains(&error), "{name}: {said}");
        f.lines(&format!("alter foreign table f options (set filename '@/{name}')"));
        let said = f.lines("select n from f");
        assert!(said.contains(&error), "{name}: {said}");
    }
    // The header's end counts.
    let said = f.lines("copy t from '@/a' (format csv, header)");
    assert!(said.contains("unquoted newline"), "{said}");
}

#[test]
fn a_line_without_end_is_checked_as_it_grows() {
    let mut f = foreign(&[]);
    f.lines(&table("z (t text)", "filename '/dev/zero'"));
    f.lines("create table t (t text)");
    for statement in ["select * from z", "copy t from '/dev/zero'", "copy t from '/dev/zero' csv"] {
        let said = f.lines(statement);
        assert!(said.contains("invalid byte sequence for encoding \"UTF8\": 0x00"), "{statement}: {said}");
    }
    // A character that chunks are cut in.
    let wide = format!("a{}\n", "\u{e4}".repeat(400_000));
    fs::write(f.path().join("wide"), wide).unwrap();
    f.lines("alter foreign table z options (set filename '@/wide')");
    assert_eq!(f.lines("select length(t) from z"), "400001");
    assert_eq!(f.lines("copy t from '@/wide'"), "COPY 1");
}

#[test]
fn columns_of_foreign_parquet_files_are_never_found_by_position() {
    let mut f = foreign(&[("a1.csv", "x,y\n1,2\n"), ("a2.csv", "p,q\n3,4\n")]);
    f.lines("copy (select 1 as x, 2 as y) to '@/xy1.parquet' (format parquet)");
    f.lines("copy (select 3 as p, 4 as q) to '@/xy2.parquet' (format parquet)");
    f.lines(&table("xy (x int, y int)", "filename '@/xy*.parquet', format 'parquet'"));
    f.lines(&table("two (x int, y int)", "filename '@/xy2.parquet', format 'parquet'"));
    for query in [
        "select x from xy offset 1",
        "select x from two",
        "select x from read_parquet('@/xy*.parquet') offset 1",
        "select x from read_csv('@/a*.csv') offset 1",
    ] {
        let said = f.lines(query);
        assert!(said.contains("22P04") && said.contains("has no column \"x\""), "{query}: {said}");
    }
    // Names that are given to the columns of a file which has others.
    assert_eq!(f.lines("select b from read_parquet('@/xy*.parquet') as t(a int, b int)"), "2\n4");
    assert_eq!(f.lines("select b from read_csv('@/a*.csv') as t(a int, b int)"), "2\n4");
}

#[test]
fn patterns_follow_links_but_not_in_circles() {
    let mut f = foreign(&[]);
    fs::create_dir_all(f.path().join("d/e")).unwrap();
    fs::write(f.path().join("d/e/a.csv"), "1\n").unwrap();
    std::os::unix::fs::symlink(f.path().join("d/e"), f.path().join("d/f")).unwrap();
    std::os::unix::fs::symlink(f.path().join("d"), f.path().join("d/self")).unwrap();
    f.lines(&table("a (n int)", "filename '@/d/*/*.csv'"));
    assert_eq!(f.lines("select n from a"), "1\n1");
    f.lines("alter foreign table a options (set filename '@/d/*/*/*/*.csv')");
    assert!(f.lines("select n from a").contains("58P01"));
    f.lines("alter foreign table a options (set filename '@/d/self/e/*.csv')");
    assert_eq!(f.lines("select n from a"), "1");
}

#[test]
fn columns_of_foreign_tables_may_force_nulls() {
    let mut f = foreign(&[("a.csv", "NULL,\"NULL\",NULL\n")]);
    f.lines(&table(
        "a (a text options (force_not_null 'true'), b text options (force_null 'on'), c text)",
        "filename '@/a.csv', format 'csv', null 'NULL'",
    ));
    assert_eq!(f.lines("select format('%s %s %s', a, b is null, c is null) from a"), "NULL t t");
    f.lines("alter foreign table a alter c options (force_not_null '1'), alter a options (drop force_not_null)");
    assert_eq!(f.lines("select format('%s %s %s', a is null, b is null, c) from a"), "t t NULL");
    f.lines("alter foreign table a drop column a, add column d text options (force_null 'false')");
    assert_eq!(
        f.lines(
            "select string_agg(attname || array_to_string(attfdwoptions, ','), ' ' order by attnum) from pg_attribute \
             where attrelid = 'a'::regclass and attnum > 0 and not attisdropped"
        ),
        "bforce_null=on cforce_not_null=1 dforce_null=false"
    );
}

#[test]
fn foreign_tables_of_json_and_parquet_find_their_columns_by_name() {
    let mut f = foreign(&[("c.json", "{\"id\": 1, \"tags\": [1, 2]}\n{\"id\": 2}\n")]);
    f.lines(&table("c (tags jsonb, id int)", "filename '@/c.json', format 'json'"));
    assert_eq!(f.lines("select id || ':' || coalesce(tags->>1, '-') from c"), "1:2\n2:-");
    f.lines("copy (select i as id, 'n' || i as name from generate_series(1, 1000) i) to '@/d.parquet' (format parquet)");
    f.lines(&table("d (name text, id int)", "filename '@/d*.parquet', format 'parquet'"));
    assert_eq!(f.lines("select name from d where id = 700"), "n700");
    f.lines("alter foreign table d add column missing int");
    assert!(f.lines("select missing from d").contains("missing"));
    f.lines("alter foreign table d drop column name, drop column missing");
    assert_eq!(f.lines("select count(*) || ' ' || min(id) from d"), "1000 1");
    // The file has texts where the table has dates.
    f.lines("alter foreign table d add column name date");
    assert!(f.lines("select name from d").contains("invalid input syntax for type date: \"n1\""));
    f.lines("alter foreign table d drop column name, alter id type date");
    assert!(f.lines("select id from d").contains("column \"id\" is of type date but the file's column is of type integer"));
}

#[test]
fn foreign_tables_are_only_read() {
    let mut f = foreign(&[("a.csv", "1\n")]);
    f.lines("create table t (id int); create table parent (id int); create table p (id int) partition by list (id)");
    f.lines(&table("a (id int)", "filename '@/a.csv', format 'csv'"));
    for (statement, error) in [
        ("insert into a values (1)", "cannot insert into foreign table \"a\""),
        ("update a set id = 2", "cannot update foreign table \"a\""),
        ("delete from a", "cannot delete from foreign table \"a\""),
        ("merge into a using t on true when matched then delete", "cannot execute MERGE on relation \"a\""),
        ("truncate a", "cannot truncate foreign table \"a\""),
        ("truncate t, a", "cannot truncate foreign table \"a\""),
        ("copy a from '@/a.csv'", "cannot insert into foreign table \"a\""),
        ("copy a to '@/b.csv'", "cannot copy from foreign table \"a\""),
        ("select ctid from a", "0A000"),
        ("create index on a (id)", "cannot create index on relation \"a\""),
        ("alter table a inherit parent", "0A000"),
        ("alter table p attach partition a default", "0A000"),
        ("create table child () inherits (a)", "0A000"),
        ("create trigger t before insert on a for each row execute function suppress_redundant_updates_trigger()", "0A000"),
        ("create statistics s on id, (id + 1) from a", "0A000"),
        ("alter table a add primary key (id)", "0A000"),
        ("alter foreign table a alter id add generated always as identity", "0A000"),
        ("create publication pub for table a", "cannot add relation \"a\" to publication"),
        ("create table o (id int options (a 'b'))", "\"o\" is not a foreign table"),
        ("alter table t add column x int options (a 'b')", "ALTER action ALTER COLUMN ... OPTIONS cannot be performed"),
        ("alter table a alter id type text using 'x'", "\"a\" is not a table"),
        ("alter table a enable row level security", "42809"),
        ("alter table a set (fillfactor = 10)", "42809"),
    ] {
        let said = f.lines(statement);
        assert!(said.contains(error), "{statement}: {said}");
    }
    f.lines("create type typed as (id int); create view v as select id from a");
    for (statement, error) in [
        ("alter foreign table a of typed", "42809: ALTER action OF cannot be performed on relation \"a\""),
        ("alter table a not of", "42809: ALTER action NOT OF cannot be performed on relation \"a\""),
        ("alter view v of typed", "42809: ALTER action OF cannot be performed on relation \"v\""),
        ("alter table v inherit parent", "42809: ALTER action INHERIT cannot be performed on relation \"v\""),
        ("alter table v no inherit parent", "42809: ALTER action NO INHERIT cannot be performed on relation \"v\""),
        ("analyze a (nope)", "42703: column \"nope\" of relation \"a\" does not exist"),
        ("analyze a (id, id)", "42701"),
        ("drop foreign table missing", "42704: foreign table \"missing\" does not exist"),
    ] {
        let said = f.lines(statement);
        assert!(said.contains(error), "{statement}: {said}");
    }
    f.lines("analyze a (id)");
    assert_eq!(f.lines("select id from a"), "1");
    // The rows of an ordinary table can be changed by it.
    f.lines("insert into t select id from a; update t set id = a.id + 1 from a where a.id = t.id");
    assert_eq!(f.lines("select t.id from t, a for update"), "2");
    f.lines("create view v as select id from a");
    for (statement, error) in [
        ("insert into v values (1)", "cannot insert into foreign table \"a\""),
        ("update v set id = 1", "cannot update foreign table \"a\""),
        ("delete from v", "cannot delete from foreign table \"a\""),
    ] {
        let said = f.lines(statement);
        assert!(said.contains(error), "{statement}: {said}");
    }
    assert_eq!(f.lines("select pg_relation_is_updatable('v', false)"), "0");
    f.lines("create schema s; alter extension file_fdw set schema s");
    assert_eq!(f.lines("select fdwhandler::regproc from pg_foreign_data_wrapper"), "s.file_fdw_handler");
    assert_eq!(f.lines("select id from v"), "1");
}

#[test]
fn foreign_tables_without_a_handler_are_neither_read_nor_changed() {
    let mut f = foreign(&[]);
    f.lines(
        "create foreign data wrapper dummy; create server d foreign data wrapper dummy; create foreign table a (id int) server d",
    );
    f.lines("create view v as select id from a; create table t (id int)");
    for statement in [
        "select id from a",
        "insert into a values (1)",
        "update a set id = 2",
        "delete from a",
        "insert into v values (1)",
        "truncate a",
        "copy a from '@/a.csv'",
        "analyze a",
        "analyze a (nope)",
        "import foreign schema x from server d into public",
    ] {
        let said = f.lines(statement);
        assert!(said.contains("55000: foreign-data wrapper \"dummy\" has no handler"), "{statement}: {said}");
    }
    let said = f.lines("merge into a using t on true when matched then delete");
    assert!(said.contains("0A000: cannot execute MERGE on relation \"a\""), "{said}");
}

#[test]
fn restricted_kinds_of_relations_are_not_used() {
    let mut f = foreign(&[("a.csv", "1\n")]);
    f.lines(&table("a (id int)", "filename '@/a.csv', format 'csv'"));
    f.lines("create table t (id int); create view v as select id from t; create view w as select id from v");
    f.lines("create materialized view m as select id from w; prepare p as select count(*) from v");
    f.lines("create function triggered() returns trigger language plpgsql as 'begin return new; end'");
    f.lines("create view by_trigger as select 1 as id; create trigger i instead of insert on by_trigger for each row execute function triggered()");
    let refused = |f: &mut Folder, statement: &str, error: &str| {
        let said = f.lines(statement);
        assert!(said.contains(error), "{statement}: {said}");
    };
    let set = "set restrict_nonsystem_relation_kind =";
    refused(&mut f, &format!("{set} 'view, x'"), "22023");
    refused(&mut f, &format!("{set} 'view,,'"), "22023");
    f.lines(&format!("{set} 'View'"));
    for (statement, view) in [
        ("select * from v", "v"),
        ("select 1 where exists (select from w)", "w"),
        ("with c as (select id from v) select 1 from t", "v"),
        ("explain select * from v", "v"),
        ("insert into v values (1)", "v"),
        ("update w set id = 1", "w"),
        ("delete from v", "v"),
        ("refresh materialized view m", "w"),
        ("create table u as select * from v", "v"),
        ("copy (select * from v) to stdout", "v"),
        ("execute p", "v"),
    ] {
        refused(&mut f, statement, &format!("55000: access to non-system view \"{view}\" is restricted"));
    }
    // Views of the system, those that are only defined, and those that a trigger stands for.
    assert_eq!(f.lines("select count(*) from pg_user_mappings"), "0");
    assert_eq!(f.lines("select count(*) from information_schema.tables where table_name = 'v'"), "1");
    f.lines("create view x as select * from v; insert into by_trigger values (1)");
    assert_eq!(f.lines("select count(*) from m"), "0");
    assert_eq!(f.lines("select id from a"), "1");
    f.lines(&format!("{set} 'foreign-table'"));
    refused(&mut f, "select id from a", "55000: access to non-system foreign table is restricted");
    refused(&mut f, "select count(*) from a where false", "55000: access to non-system foreign table is restricted");
    assert_eq!(f.lines("execute p"), "0");
    f.lines("reset restrict_nonsystem_relation_kind");
    assert_eq!(f.lines("select id from a"), "1");
}

#[test]
fn options_of_foreign_tables_are_checked() {
    let mut f = foreign(&[]);
    for (columns, options, error) in [
        ("a int", "format 'csv'", "HV002"),
        ("a int", "filename 'x', format 'xml'", "COPY format \"xml\" not recognized"),
        ("a int", "filename 'x', format 'csv', filenam 'y'", "HV00D"),
        ("a int", "filename 'x', format 'csv', delimiter 'xx'", "COPY delimiter must be a single one-byte character"),
        ("a int", "filename 'x', header 'x'", "header requires a Boolean value or \"match\""),
        ("a int", "filename 'x', format 'json', header 'on'", "cannot specify HEADER in JSON mode"),
        ("a int", "filename 'x', format 'parquet', header 'on'", "cannot specify HEADER in PARQUET mode"),
        ("a int", "filename 'x', format 'binary'", "0A000"),
        ("a int", "program 'x', format 'json'", "0A000"),
        ("a int", "program 'x', filename 'y'", "conflicting or redundant options"),
        ("a int", "filename 'x', default 'x'", "0A000"),
        ("a int", "filename 'x', filename 'y'", "option \"filename\" provided more than once"),
        ("a serial", "filename 'x'", "0A000"),
        ("a int generated always as (1) stored", "filename 'x'", "0A000"),
        ("a int options (b 'c')", "filename 'x'", "HV00D"),
        ("a int options (force_null 'c')", "filename 'x'", "force_null requires a Boolean value"),
        ("a int primary key", "filename 'x'", "primary key constraints are not supported on foreign tables"),
        ("like pg_class", "filename 'x'", "0A000"),
    ] {
        let said = f.lines(&table(&format!("x ({columns})"), options));
        assert!(said.contains(error), "{columns}, {options}: {said}");
    }
    for (statement, error) in [
        ("create server x foreign data wrapper file_fdw options (a 'b')", "HV00D"),
        ("create user mapping for public server files options (a 'b')", "HV00D"),
        ("alter foreign data wrapper file_fdw options (a 'b')", "HV00D"),
        ("drop foreign data wrapper file_fdw cascade", "because extension file_fdw requires it"),
        ("import foreign schema x from server files into public", "HV00P"),
        ("select file_fdw_handler()", "0A000"),
        ("select file_fdw_validator('{}', 'pg_foreign_table'::regclass)", "HV002"),
        ("select file_fdw_validator('{filename=x,format=csv}', 0)", "HV00D"),
    ] {
        let said = f.lines(statement);
        assert!(said.contains(error), "{statement}: {said}");
    }
}

#[test]
fn who_may_read_a_foreign_table_needs_no_right_to_read_files() {
    let mut f = foreign(&[("a.csv", "1\n"), ("b.csv", "2\n")]);
    f.lines(&table("a (id int)", "filename '@/a.csv', format 'csv'"));
    f.lines("create role reader; create role maker; grant all on schema public to maker; grant select on a to reader, maker");
    f.lines("grant usage on foreign server files to maker; alter foreign table a owner to maker");
    f.lines("set role reader");
    assert_eq!(f.lines("select id from a"), "1");
    assert!(f.lines("select * from read_csv('@/a.csv')").contains("42501"));
    let make = table("b (id int)", "filename '@/b.csv', format 'csv'");
    assert!(f.lines(&make).contains("42501"));
    f.lines("reset role; set role maker");
    let may_not = "permission denied to set the \"filename\" option of a file_fdw foreign table";
    for statement in [
        make.as_str(),
        "alter foreign table a options (set filename '@/b.csv')",
        "alter foreign table a options (set format 'text')",
    ] {
        let said = f.lines(statement);
        assert!(said.contains(may_not), "{statement}: {said}");
    }
    f.lines("reset role; grant pg_read_server_files to maker; set role maker");
    f.lines("alter foreign table a options (set filename '@/b.csv')");
    f.lines("reset role; set role reader");
    assert_eq!(f.lines("select id from a"), "2");
    f.lines("reset role; revoke select on a from reader; set role reader");
    assert!(f.lines("select id from a").contains("permission denied for foreign table a"));
}
