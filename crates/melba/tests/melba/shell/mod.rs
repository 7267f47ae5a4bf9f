//! `melba sql`, `melba import` and `melba demo`: the binary on a data directory and on a server.

mod import;
mod terminal;

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::serving::Serving;

pub fn melba(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_melba"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Exit code, standard output, standard error.
pub fn said(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    said(&melba(arguments).output().expect("it runs"))
}

fn run_script(arguments: &[&str], script: &str) -> (Option<i32>, String, String) {
    let mut child =
        melba(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    child.stdin.take().expect("piped").write_all(script.as_bytes()).expect("it reads");
    said(&child.wait_with_output().expect("it ends"))
}

fn path(path: &Path) -> &str {
    path.to_str().expect("text")
}

const SCRIPT: &str = "\\set n 2
create table t (id int primary key, v text check (v <> 'no'), at date default '2024-01-01');
copy t (id, v) from stdin;
1\tone
2\t\\N
\\.
insert into t values (3, E'x\\ty\\x1b[31m;') returning id;
select id, v from t where id = :n or v = 'one' order by id;
begin; insert into t values (1, 'again');
select 1;
rollback;
do $$ begin raise notice 'heard; %', 1; end $$;
select v as \"V\" from t where id = 3 \\gx
\\d t
\\dt
\\nonsense
copy t (id, v) to stdout
";

fn check_script(result: (Option<i32>, String, String)) {
    let (code, out, said) = result;
    let expected = "CREATE TABLE
COPY 2
 id 
----
  3
(1 row)

INSERT 0 1
 id |  v  
----+-----
  1 | one
  2 | 
(2 rows)

BEGIN
ROLLBACK
DO
-[ RECORD 1 ]---------
V | x       y\\x1B[31m;

                       Table \"public.t\"
 Column |  Type   | Collation | Nullable |      Default       
--------+---------+-----------+----------+--------------------
 id     | integer |           | not null | 
 v      | text    |           |          | 
 at     | date    |           |          | '2024-01-01'::date
Indexes:
    \"t_pkey\" PRIMARY KEY, btree (id)
Check constraints:
    \"t_v_check\" CHECK (v <> 'no'::text)

          List of tables
 Schema | Name | Type  |  Owner   
--------+------+-------+----------
 public | t    | table | postgres
(1 row)

1\tone
2\t\\N
3\tx\\ty\u{1b}[31m;
";
    assert_eq!(out, expected, "{said}");
    for part in [
        "duplicate key value violates unique constraint \"t_pkey\"\nDETAIL:  Key (id)=(1) already exists.",
        "current transaction is aborted, commands ignored until end of transaction block",
        "NOTICE:  heard; 1",
        "invalid command \\nonsense",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(code, Some(0));
}

#[test]
fn a_script_runs_on_a_directory_and_on_a_server() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let data = folder.path().join("data");
    check_script(run_script(&["sql", "--data", path(&data)], SCRIPT));
    // It was ended in order, and nothing but the directory is left.
    assert!(run(&["check", "--data", path(&data)]).0 == Some(0));
    let other = tempfile::tempdir().expect("a temporary directory");
    let server = Serving::start(other.path(), &["-c", "unix_socket_directories="]);
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", server.port);
    check_script(run_script(&["sql", &url], SCRIPT));
    // A directory belongs to its server.
    let (code, _, said) = run(&["sql", "--data", path(other.path()), "-c", "select 1"]);
    assert!(code == Some(1) && said.contains("another server is using"), "{said}");
}

#[test]
fn exit_codes_and_formats_are_for_programs() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let server = Serving::start(folder.path(), &["-c", "unix_socket_directories="]);
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", server.port);
    let of = |arguments: &[&str]| run(&[&["sql", url.as_str()], arguments].concat());
    let json =
        of(&["--format", "json", "-c", "select 1.50 as n, null as x, '{\"a\": [1]}'::jsonb as j; select true as b where false"]);
    assert_eq!(json, (Some(0), "[\n  {\"n\": 1.50, \"x\": null, \"j\": {\"a\": [1]}}\n]\n[]\n".to_owned(), String::new()));
    let csv = of(&["--csv", "-c", "create table c (v text)", "-c", "select 'a,b' as v, '' as e, null as n"]);
    assert_eq!(csv, (Some(0), "v,e,n\n\"a,b\",\"\",\n".to_owned(), String::new()));
    assert_eq!(of(&["-A", "-t", "-c", "values (1, 'x'), (2, null)"]).1, "1|x\n2|\n");
    let (code, out, error) = of(&["-c", "select 1; selec 2"]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert_eq!(error, "ERROR:  syntax error at or near \"selec\"\nLINE 1: select 1; selec 2\n                  ^\n");
    let script = folder.path().join("script.sql");
    std::fs::write(&script, "select 1 as one;\n\nselect x;\nselect 2 as two;\n").expect("a file");
    let (code, out, error) = of(&["-A", "-t", "-f", path(&script)]);
    assert_eq!((code, out.as_str()), (Some(0), "1\n2\n"));
    assert!(error.contains("script.sql:3: ERROR:  column \"x\" does not exist\nLINE 1: select x;"), "{error}");
    let (code, out, _) = of(&["-A", "-t", "-v", "ON_ERROR_STOP=1", "-f", path(&script)]);
    assert_eq!((code, out.as_str()), (Some(3), "1\n"));
    let (code, _, error) = of(&["-c", "select pg_terminate_backend(pg_backend_pid())"]);
    assert_eq!(code, Some(2), "{error}");
    let (code, _, error) = run(&["sql", "postgres://postgres@127.0.0.1:1/postgres", "-c", "select 1"]);
    assert!(code == Some(2) && error.contains("could not connect to host \"127.0.0.1\", port 1"), "{error}");
}

#[test]
fn the_demonstration_answers_its_questions() {
    let (code, out, error) = run(&["demo", "--scale", "0.02", "--alone"]);
    assert_eq!(code, Some(0), "{error}");
    for number in 1..=5 {
        assert!(out.contains(&format!("{number}. ")) && out.contains(&format!("question {number} ")), "{out}");
    }
    assert!(out.contains("documents, with indexes") && !out.contains("(0 rows)"), "{out}");
}
