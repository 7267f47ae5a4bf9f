//! The server log, as those who run the server read it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::serving::Serving;
use postgres::Client;

const COLLECTED: [&str; 6] =
    ["-c", "logging_collector=on", "-c", "log_destination=stderr,csvlog,jsonlog", "-c", "log_filename=melba.log"];

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn served(data: &Path, options: &[&str]) -> (Serving, Client) {
    let server = Serving::start(data, options);
    let client = server.connect("postgres", None).expect("postgres may");
    (server, client)
}

/// A file's text once it has what is waited for.
fn text_with(path: &Path, part: &str) -> String {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        if text.contains(part) {
            return text;
        }
        assert!(Instant::now() < until, "{} has no {part:?}: {text}", path.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn log_file(data: &Path, extension: &str) -> PathBuf {
    data.join("log").join(format!("melba.{extension}"))
}

#[test]
fn signals_of_postgresql_are_harmless_and_sigquit_ends_at_once() {
    let data = folder();
    let (server, mut client) = served(data.path(), &[]);
    for signal in ["-USR1", "-USR2", "-HUP"] {
        server.signal(signal);
    }
    server.hear("received SIGHUP, reloading configuration files");
    client.batch_execute("create table t as select 1").expect("it lives");
    server.signal("-QUIT");
    server.hear("received immediate shutdown request");
    drop((client, server));
    let (server, mut client) = served(data.path(), &[]);
    server.hear("database system was not properly shut down");
    client.query_one("select * from t", &[]).expect("it was committed");
}

#[test]
fn statements_errors_and_durations_are_in_all_formats() {
    let data = folder();
    let options = [&COLLECTED[..], &["-c", "log_line_prefix=%m [%p] %q%u@%d %e ", "-c", "log_statement=mod"]].concat();
    let (server, mut client) = served(data.path(), &options);
    client.batch_execute("set application_name = 'the \"test\"'; create table t(a int primary key)").expect("it may");
    client.execute("insert into t values ($1)", &[&7i32]).expect("a row");
    client.execute("insert into t values ($1)", &[&7i32]).expect_err("it is there");
    client.batch_execute("select 'a\nb' from missing").expect_err("there is none");
    client.batch_execute("alter role postgres password 'hunter2'").expect("it may");
    client.batch_execute("set log_min_duration_statement = 0; select 42 as answer").expect("it may");
    client.query("select $1::text || 'x'", &[&"it's"]).expect("a text");
    let text = text_with(&log_file(data.path(), "log"), "it''s");
    for part in [
        "LOG:  starting PostgreSQL",
        "database system is ready to accept connections",
        "postgres@postgres 00000 LOG:  statement: set application_name = 'the \"test\"'; create table t(a int primary key)\n",
        ": insert into t values ($1)\n",
        "00000 LOG:  execute s",
        "00000 DETAIL:  Parameters: $1 = '7'\n",
        "23505 ERROR:  duplicate key value violates unique constraint \"t_pkey\"\n",
        "23505 DETAIL:  Key (a)=(7) already exists.\n",
        "23505 STATEMENT:  insert into t values ($1)\n",
        "42P01 ERROR:  relation \"missing\" does not exist at character 19\n",
        "STATEMENT:  select 'a\n\tb' from missing\n",
        "statement: alter role postgres password '<redacted>'\n",
        "ms  statement: set log_min_duration_statement = 0; select 42 as answer\n",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    let csv = text_with(&log_file(data.path(), "csv"), "it''s");
    let record = csv.lines().find(|line| line.contains("duplicate key value")).expect("a record");
    for part in [
        ",\"postgres\",\"postgres\",",
        ",\"INSERT\",",
        ",ERROR,23505,\"duplicate key value violates unique constraint \"\"t_pkey\"\"\"",
        ",\"insert into t values ($1)\",,,\"the \"\"test\"\"\",\"client backend\",,",
    ] {
        assert!(record.contains(part), "{part:?} is not in {record}");
    }
    let query_id = record.rsplit(',').next().and_then(|id| id.parse::<i64>().ok());
    assert!(query_id.is_some_and(|id| id != 0), "{record}");
    let json = text_with(&log_file(data.path(), "json"), "it''s");
    let record = json.lines().find(|line| line.contains("duplicate key value")).expect("a record");
    assert!(
        record.contains("\"state_code\":\"23505\",\"message\":\"duplicate key value violates unique constraint \\\"t_pkey\\\"\"")
    );
    assert!(record.contains("\"application_name\":\"the \\\"test\\\"\",\"backend_type\":\"client backend\""), "{record}");
    for text in [text, csv, json] {
        assert!(!text.contains("hunter2"), "a password is in the log");
    }
    drop(client);
    server.stop();
    text_with(&log_file(data.path(), "log"), "database system is shut down");
}

#[test]
fn connections_are_logged_by_aspect() {
    let data = folder();
    let options = ["-c", "log_connections=all", "-c", "log_disconnections=on"];
    let (server, client) = served(data.path(), &options);
    server.hear("connection received: host=127.0.0.1 port=");
    server.hear("connection authenticated: identity=");
    server.hear("connection authorized: user=postgres database=postgres");
    server.hear("connection ready: setup total=");
    drop(client);
    server.hear("disconnection: session time: 0:00:0");
}

#[test]
fn log_files_are_rotated_and_a_failing_log_blocks_no_session() {
    // In the file, where ALTER SYSTEM can override it.
    let only_owner = std::fs::Permissions::from_mode(0o700);
    let data = tempfile::Builder::new().permissions(only_owner).tempdir().expect("a folder");
    let settings: Vec<&str> = COLLECTED.iter().copied().filter(|word| *word != "-c").collect();
    let settings = settings.iter().map(|setting| setting.replacen('=', " = '", 1) + "'\n").collect::<String>();
    std::fs::write(data.path().join("melba.conf"), settings).expect("the folder can be written");
    let (server, mut client) = served(data.path(), &[]);
    let current = |client: &mut Client, format: &str| {
        client.query_one("select pg_current_logfile($1)", &[&format]).expect("a row").get::<_, Option<String>>(0)
    };
    assert_eq!(current(&mut client, "csvlog").as_deref(), Some("log/melba.csv"));
    let file = log_file(data.path(), "log");
    std::fs::rename(&file, file.with_extension("old")).expect("it is there");
    assert!(client.query_one("select pg_rotate_logfile()", &[]).expect("a row").get::<_, bool>(0));
    client.batch_execute("select missing").expect_err("there is none");
    text_with(&file, "column \"missing\" does not exist");
    // A device that is always full.
    for setting in ["log_directory = '/dev'", "log_filename = 'full'", "log_destination = 'stderr'"] {
        client.batch_execute(&format!("alter system set {setting}")).expect("it may");
    }
    client.batch_execute("select pg_reload_conf()").expect("it may");
    let began = Instant::now();
    for _ in 0..50 {
        client.batch_execute("select missing").expect_err("there is none");
    }
    assert!(began.elapsed() < Duration::from_secs(10));
    client.batch_execute("alter system reset log_directory").expect("it may");
    client.batch_execute("alter system set log_filename = 'after.log'").expect("it may");
    client.batch_execute("select pg_reload_conf()").expect("it may");
    client.batch_execute("select missing_again").expect_err("there is none");
    let after = text_with(&data.path().join("log/after.log"), "missing_again");
    assert!(after.contains("messages could not be written to the server log"), "{after}");
    drop(client);
    server.stop();
}

/// What pgbadger makes of a log file.
fn pgbadger(file: &Path, format: &str, prefix: &str) -> String {
    let out = file.with_extension(format!("{format}.report.json"));
    let mut command = std::process::Command::new("pgbadger");
    command.args(["-q", "-f", format, "-x", "json", "-o"]).arg(&out).arg(file);
    if format == "stderr" {
        command.args(["-p", prefix]);
    }
    let output = command.output().expect("pgbadger is installed (scripts/setup.sh test)");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::read_to_string(&out).expect("a report")
}

#[test]
fn pgbadger_reads_all_three_formats() {
    const PREFIX: &str = "%m [%p] %q%u@%d,host=%h ";
    let data = folder();
    let prefix = format!("log_line_prefix={PREFIX}");
    let more =
        ["-c", prefix.as_str(), "-c", "log_min_duration_statement=0", "-c", "log_connections=on", "-c", "log_temp_files=0"];
    let (server, mut client) = served(data.path(), &[&COLLECTED[..], &more].concat());
    for answer in 40..45 {
        client.simple_query(&format!("select {answer} as answer")).expect("a row");
    }
    client.query("select $1::int4 + 1 as bound", &[&1i32]).expect("a row");
    client.simple_query("select * from missing").expect_err("there is none");
    client
        .batch_execute(
            "set work_mem = '64kB'; create temp table sorted as select g from generate_series(1, 200000) g order by -g",
        )
        .expect("it may");
    drop(client);
    server.stop();
    for (extension, format) in [("log", "stderr"), ("csv", "csv"), ("json", "jsonlog")] {
        let report = pgbadger(&log_file(data.path(), extension), format, PREFIX);
        // What pgbadger puts in the place of $1 depends on its version.
        for part in ["select ? as answer", "::int4 + ? as bound", "relation \\\"...\\\" does not exist"] {
            assert!(report.contains(part), "{format}: no {part} in {report}");
        }
        for part in ["\"connection_info\":{}", "\"tempfile_info\":{}", "\"error_info\":{}"] {
            assert!(!report.contains(part), "{format}: {part} in {report}");
        }
    }
}
