//! Who may do what: statements as a superuser, as a holder of CREATEROLE, as an object's owner, as a member with and without INHERIT,
//! as somebody with grants and as a stranger, each in a transaction of its own that is rolled back.
//!
//! `access/expected.txt` has what PostgreSQL 18 answers, recorded by `ACCESS_RECORD=HOST:PORT cargo test -p melba-server --test server access`
//! (user postgres, database postgres; it cleans up). `access/different.txt` has the answers that are known to be others here
//! (FIXME: most are words in messages, and what is refused with 0A000); `UPDATE=1` writes it anew.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::running::Running;
use postgres::{Client, Config, NoTls};

const ROLES: [&str; 7] = ["root", "creator", "owner", "member", "setter", "grantee", "stranger"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/access")
}

fn read(name: &str) -> String {
    std::fs::read_to_string(folder().join(name)).expect("a file of the test")
}

fn connect(host: &str, port: u16) -> Client {
    let mut config = Config::new();
    config.host(host).port(port).user("postgres").dbname("postgres");
    config.connect(NoTls).expect("connects")
}

/// `ok`, or the error without what depends on the server.
fn outcome(client: &mut Client, role: &str, statement: &str) -> String {
    client.batch_execute(&format!("begin; set session authorization acc_{role}")).expect("the role is there");
    let result = client.simple_query(statement);
    client.batch_execute("rollback").expect("the session lives");
    match result {
        Ok(_) => "ok".to_owned(),
        Err(error) => {
            let error = error.as_db_error().expect("an error of the server");
            let detail = error.detail().map_or_else(String::new, |d| format!(" | {}", d.replace('\n', " / ")));
            format!("{} {}{detail}", error.code().code(), error.message())
        }
    }
}

/// The statements with what each role gets, roles with the same answer on one line.
fn walk(client: &mut Client) -> String {
    client.batch_execute(&read("setup.sql")).expect("the roles and objects are made");
    let mut out = String::new();
    for statement in read("statements.sql").lines() {
        if statement.starts_with("--") {
            let _ = writeln!(out, "{statement}");
            continue;
        }
        let _ = writeln!(out, "{statement}");
        let mut answers: Vec<(String, Vec<&str>)> = Vec::new();
        for role in ROLES {
            let answer = outcome(client, role, statement);
            match answers.iter_mut().find(|(known, _)| *known == answer) {
                Some((_, roles)) => roles.push(role),
                None => answers.push((answer, vec![role])),
            }
        }
        for (answer, roles) in answers {
            let _ = writeln!(out, "    {}: {answer}", roles.join(" "));
        }
    }
    out
}

fn record(peer: &str) {
    let (host, port) = peer.split_once(':').expect("HOST:PORT");
    let mut client = connect(host, port.parse().expect("a port"));
    let answers = walk(&mut client);
    client
        .batch_execute(
            "drop schema acc, acc_hidden, acc_rooted cascade;
             do $$ declare r text; begin
                 for r in select rolname from pg_roles where rolname like 'acc\\_%' loop
                     execute 'drop owned by ' || r;
                 end loop;
             end $$;
             drop role acc_root, acc_creator, acc_owner, acc_member, acc_setter, acc_grantee, acc_stranger, acc_victim, acc_group,
                 acc_managed, acc_signaller",
        )
        .expect("it cleans up");
    std::fs::write(folder().join("expected.txt"), answers).expect("the folder can be written");
}

/// The statements of a text of answers, each with its lines.
fn by_statement(answers: &str) -> Vec<(&str, Vec<&str>)> {
    let mut out: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in answers.lines() {
        match (line.starts_with("    "), out.last_mut()) {
            (true, Some((_, lines))) => lines.push(line),
            _ => out.push((line, Vec::new())),
        }
    }
    out
}

#[test]
fn every_role_may_do_what_postgresql_allows() {
    if let Ok(peer) = std::env::var("ACCESS_RECORD") {
        return record(&peer);
    }
    let server = Running::start(&[]);
    let answers = walk(&mut connect("127.0.0.1", server.address.port()));
    let (expected, different) = (read("expected.txt"), read("different.txt"));
    let known = by_statement(&different);
    let (mut wrong, mut now) = (String::new(), String::new());
    for ((statement, postgresql), (_, got)) in by_statement(&expected).into_iter().zip(by_statement(&answers)) {
        if postgresql != got {
            let _ = writeln!(now, "{statement}\n{}", got.join("\n"));
        }
        let here = known.iter().find(|(s, _)| *s == statement).map_or(&postgresql, |(_, lines)| lines);
        if *here != got {
            let _ = writeln!(wrong, "{statement}\n  expected:\n{}\n  got:\n{}", here.join("\n"), got.join("\n"));
        }
    }
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(folder().join("different.txt"), now).expect("the folder can be written");
    } else {
        assert!(wrong.is_empty(), "\n{wrong}");
    }
}
