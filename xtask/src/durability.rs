//! `cargo xtask durability`: the waits of a commit in each mode, and the rows that remain of each kind of table after a crash and
//! a clean stop. Over psql, with settings from every possible source; syncs are counted by pg_stat_io.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::melba::{Address, Melba, ask, postgres_program};

/// The log's syncs that clients waited for.
const SYNCS: &str =
    "select fsyncs from pg_stat_io where object = 'wal' and context = 'normal' and backend_type = 'client backend'";
const BACKGROUND_SYNCS: &str =
    "select fsyncs from pg_stat_io where object = 'wal' and context = 'normal' and backend_type = 'walwriter'";
const INSERT: &str = "insert into logged (note) values ('x');";
/// The log writer is given this long, and is expected at once.
const PATIENCE: Duration = Duration::from_secs(20);
/// The first version of pg_dump that reads a server which says it is PostgreSQL 18.
const PG_DUMP_MIN: u32 = 18;

pub fn durability() -> Result<(), String> {
    if postgres_program("psql").is_none() {
        println!("skipped durability: psql is not installed");
        return Ok(());
    }
    // A delay so long that the log writer never acts on its own.
    let arguments = ["-c", "shared_buffers=16MB", "-c", "wal_writer_flush_after=1GB"];
    let mut melba = Melba::fresh_with("durability", &arguments)?;
    script(&melba.address, TABLES)?;
    set_and_reload(&melba.address, "wal_writer_delay = '10s'")?;
    modes(&melba.address)?;
    origins(&melba)?;
    log_writer(&melba)?;
    println!("ok      durability: each mode waits for the disk as often as it must");
    kinds_of_table(&melba)?;
    melba = restarts(melba)?;
    println!("ok      durability: what a crash and a clean stop leave");
    dumps(&melba)?;
    melba.stop()
}

const TABLES: &str = "
    create table logged (id serial primary key, note text);
    create unlogged table unlogged (id serial primary key, note text);
    create table memory (id serial primary key, note text) using memory;";

/// How often clients waited for the log while a script ran in one session.
fn syncs(address: &Address, before: &str, counted: &str) -> Result<u64, String> {
    let text = format!("{before}\n{SYNCS} \\gset\n{counted}\nselect fsyncs - :fsyncs from ({SYNCS}) s;");
    let text = script(address, &text)?;
    let last = text.lines().last().unwrap_or_default();
    last.parse().map_err(|_| format!("{counted}: no number of syncs in {text}"))
}

fn expect_syncs(address: &Address, expected: u64, before: &str, counted: &str) -> Result<(), String> {
    let found = syncs(address, before, counted)?;
    if found != expected {
        return Err(format!("{before} {counted}: {found} syncs, {expected} expected"));
    }
    Ok(())
}

fn modes(address: &Address) -> Result<(), String> {
    for (mode, expected) in [("on", 1), ("off", 0), ("local", 1), ("remote_write", 1), ("remote_apply", 1), ("false", 0)] {
        expect_syncs(address, expected, &format!("set synchronous_commit = {mode};"), INSERT)?;
    }
    let off_locally = format!("begin; set local synchronous_commit = off; {INSERT} commit;");
    expect_syncs(address, 0, "", &off_locally)?;
    expect_syncs(address, 1, "", &format!("{off_locally} {INSERT}"))?;
    // The mode at the commit counts.
    expect_syncs(address, 0, "", &format!("begin; {INSERT} set local synchronous_commit = off; commit;"))?;
    expect_syncs(
        address,
        1,
        "set synchronous_commit = off;",
        &format!("begin; set local synchronous_commit = on; {INSERT} commit;"),
    )?;
    for table in ["unlogged", "memory"] {
        expect_syncs(address, 0, "", &format!("insert into {table} (note) values ('x'); update {table} set note = 'y';"))?;
        expect_syncs(address, 0, "", &format!("insert into {table} (note) select 'x' from generate_series(1, 20000);"))?;
        expect_syncs(address, 0, "", &format!("delete from {table};"))?;
    }
    expect_syncs(address, 1, "", &format!("begin; {INSERT} insert into unlogged (note) values ('x'); commit;"))?;
    expect_syncs(address, 0, "", "select count(*) from logged;")?;
    // Alone there is no sibling to wait for; with no sibling demanded, the delay is waited for. It is a lower bound.
    let delayed = format!(
        "set commit_siblings = 0; set commit_delay = 100000; select clock_timestamp() as start \\gset\n{INSERT}\n\
         select clock_timestamp() - :'start' >= interval '100 ms';"
    );
    match script(address, &delayed)?.lines().last() {
        Some("t") => Ok(()),
        _ => Err("commit_delay had no effect".to_owned()),
    }
}

/// Settings from roles, databases, the connection, configuration files, ALTER SYSTEM.
fn origins(melba: &Melba) -> Result<(), String> {
    let address = &melba.address;
    for of in ["role postgres", "database postgres", "role postgres in database postgres"] {
        script(address, &format!("alter {of} set synchronous_commit = off;"))?;
        expect_syncs(address, 0, "", INSERT)?;
        script(address, &format!("alter {of} reset synchronous_commit;"))?;
        expect_syncs(address, 1, "", INSERT)?;
    }
    set_and_reload(address, "synchronous_commit = off")?;
    expect_syncs(address, 0, "", INSERT)?;
    set_and_reload(address, "synchronous_commit = on")?;
    expect_syncs(address, 1, "", INSERT)?;
    set_and_reload(address, "fsync = off")?;
    expect_syncs(address, 0, "", INSERT)?;
    set_and_reload(address, "fsync = on")?;
    expect_syncs(address, 1, "", INSERT)?;
    let file = melba.data().join("melba.conf");
    let mut file = std::fs::OpenOptions::new().append(true).open(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    writeln!(file, "commit_siblings = 7").map_err(|e| format!("melba.conf: {e}"))?;
    melba.signal("-HUP")?;
    until("SIGHUP reads melba.conf again", || Ok(ask(address, "show commit_siblings")? == "7"))
}

/// The log writer's two settings at run time.
fn log_writer(melba: &Melba) -> Result<(), String> {
    let address = &melba.address;
    let asynchronous = format!("set synchronous_commit = off; {INSERT}");
    let written_after = |what: &str| {
        let before = ask(address, BACKGROUND_SYNCS)?;
        script(address, &asynchronous)?;
        until(what, || Ok(ask(address, BACKGROUND_SYNCS)? != before))
    };
    set_and_reload(address, "wal_writer_delay = '20ms'")?;
    written_after("the log writer follows a shorter wal_writer_delay")?;
    script(address, "alter system set wal_writer_delay = '10s';")?;
    set_and_reload(address, "wal_writer_flush_after = 0")?;
    // The command line overrides ALTER SYSTEM, as in PostgreSQL.
    match ask(address, "show wal_writer_flush_after")?.as_str() {
        "1GB" => Ok(()),
        other => Err(format!("wal_writer_flush_after of the command line became {other}")),
    }
}

fn set_and_reload(address: &Address, assignment: &str) -> Result<(), String> {
    script(address, &format!("alter system set {assignment};\nselect pg_reload_conf();")).map(drop)
}

fn kinds_of_table(melba: &Melba) -> Result<(), String> {
    let address = &melba.address;
    // Words that no compression hides in the log.
    let insert = |table: &str| format!("insert into {table} (note) values ('marker-of-{table}');");
    let bytes = |table: &str| {
        let text = format!(
            "select wal_bytes as before from pg_stat_wal \\gset\n{}\nselect wal_bytes - :before from pg_stat_wal;",
            insert(table)
        );
        Ok::<_, String>(script(address, &text)?.lines().last().unwrap_or_default().to_owned())
    };
    for table in ["unlogged", "memory"] {
        if bytes(table)? != "0" {
            return Err(format!("the log has rows of the {table} table"));
        }
    }
    if bytes("logged")? == "0" || !on_disk(&melba.data(), "marker-of-logged")? {
        return Err("the log lacks a row of the logged table".to_owned());
    }
    script(address, "checkpoint;")?;
    if on_disk(&melba.data(), "marker-of-memory")? {
        return Err("a file holds a row of the memory table".to_owned());
    }
    let full = script(
        address,
        "\\set VERBOSITY sqlstate\ninsert into memory (note) select repeat('x', 1000) from generate_series(1, 20000);",
    );
    match full {
        Err(e) if e.contains("53200") => Ok(()),
        other => Err(format!("a memory table without limit: {other:?}")),
    }
}

fn restarts(mut melba: Melba) -> Result<Melba, String> {
    script(
        &melba.address,
        "truncate logged, unlogged, memory restart identity;
         begin;
         insert into logged (note) values ('a'), ('b');
         insert into unlogged (note) values ('a'), ('b');
         insert into memory (note) values ('a'), ('b');
         commit;",
    )?;
    let rows = |melba: &Melba, expected: &str| {
        // Once by the index, once without.
        for setting in ["enable_seqscan", "enable_indexscan"] {
            let text = format!(
                "set {setting} = off;
                 select array(select id from logged where id > 0 order by id), array(select id from unlogged where id > 0
                     order by id), array(select id from memory where id > 0 order by id);"
            );
            let found = script(&melba.address, &text)?;
            if found != expected {
                return Err(format!("{found} after the restart, {expected} expected"));
            }
        }
        Ok(())
    };
    let add = "insert into logged (note) values ('c'); insert into unlogged (note) values ('c');
               insert into memory (note) values ('c');";
    melba = melba.stop_and_restart()?;
    rows(&melba, "{1,2}|{1,2}|{}")?;
    script(&melba.address, add)?;
    rows(&melba, "{1,2,3}|{1,2,3}|{1}")?;
    melba = melba.crash_and_restart()?;
    rows(&melba, "{1,2,3}|{}|{}")?;
    // The log had a sequence's values ahead, as in PostgreSQL; an emptied table's begins at the start.
    script(&melba.address, "select setval('logged_id_seq', 3);")?;
    script(&melba.address, add)?;
    rows(&melba, "{1,2,3,4}|{1}|{1}")?;
    script(
        &melba.address,
        "alter table unlogged set logged; alter table logged set unlogged; alter table memory set access method heap;",
    )?;
    rows(&melba, "{1,2,3,4}|{1}|{1}")?;
    melba = melba.crash_and_restart()?;
    rows(&melba, "{}|{1}|{1}")?;
    // Sequences have followed their tables: nothing comes again.
    script(
        &melba.address,
        "insert into unlogged (note) values ('d'); insert into memory (note) values ('d');
         alter table unlogged set unlogged; alter table logged set logged; alter table memory set access method memory;",
    )?;
    Ok(melba)
}

/// pg_dump omits data as told, and its output recreates the same tables.
fn dumps(melba: &Melba) -> Result<(), String> {
    let pg_dump = postgres_program("pg_dump").filter(|p| version(p).is_some_and(|v| v >= PG_DUMP_MIN));
    let Some(pg_dump) = pg_dump else {
        println!("skipped durability: pg_dump {PG_DUMP_MIN} is not installed");
        return Ok(());
    };
    let dump = |arguments: &[&str]| {
        let output = melba.address.client(&pg_dump).args(arguments).output().map_err(|e| format!("pg_dump: {e}"))?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(format!("pg_dump: {}", String::from_utf8_lossy(&output.stderr))),
        }
    };
    script(&melba.address, "truncate unlogged; insert into unlogged (note) values ('in-the-dump');")?;
    let (whole, without) = (dump(&[])?, dump(&["--no-unlogged-table-data"])?);
    if !whole.contains("in-the-dump") || without.contains("in-the-dump") || !without.contains("CREATE UNLOGGED TABLE") {
        return Err("pg_dump writes the wrong rows of unlogged tables".to_owned());
    }
    if !whole.contains("SET default_table_access_method = memory;") {
        return Err("pg_dump does not know the memory table's access method".to_owned());
    }
    script(&melba.address, "create database copy;")?;
    let copy = Address { database: "copy".to_owned(), ..melba.address.clone() };
    script(&copy, &whole)?;
    let kinds = "select string_agg(relname || ' ' || relpersistence::text || ' ' || coalesce(amname, ''), ', ' order by relname)
        from pg_class c left join pg_am a on a.oid = relam where relkind in ('r', 'S') and relnamespace = 'public'::regnamespace";
    let (original, copied) = (ask(&melba.address, kinds)?, ask(&copy, kinds)?);
    if original != copied || !original.contains("unlogged u heap") || !original.contains("memory p memory") {
        return Err(format!("{original} was restored as {copied}"));
    }
    println!("ok      durability: pg_dump and its restoration");
    Ok(())
}

/// The number in "pg_dump (PostgreSQL) 18.1".
fn version(program: &Path) -> Option<u32> {
    let output = std::process::Command::new(program).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split(") ").nth(1)?.split(['.', ' ', '\n']).next()?.parse().ok()
}

/// Whether any file below a directory has the words.
fn on_disk(directory: &Path, words: &str) -> Result<bool, String> {
    let io = |e: std::io::Error| format!("{}: {e}", directory.display());
    for entry in directory.read_dir().map_err(io)? {
        let path = entry.map_err(io)?.path();
        let found = match path.is_dir() {
            true => on_disk(&path, words)?,
            // A file may disappear meanwhile.
            false => std::fs::read(&path).unwrap_or_default().windows(words.len()).any(|w| w == words.as_bytes()),
        };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

fn until(what: &str, mut condition: impl FnMut() -> Result<bool, String>) -> Result<(), String> {
    let start = Instant::now();
    while !condition()? {
        if start.elapsed() > PATIENCE {
            return Err(format!("waited in vain: {what}"));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Runs a script in one session of psql, which stops at the first error; its output.
fn script(address: &Address, text: &str) -> Result<String, String> {
    let mut psql = address.psql();
    psql.args(["-XAtq", "-v", "ON_ERROR_STOP=1"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = psql.spawn().map_err(|e| format!("psql: {e}"))?;
    if let Some(mut input) = child.stdin.take() {
        // psql reports why it did not read everything.
        let _ = input.write_all(text.as_bytes());
    }
    let output = child.wait_with_output().map_err(|e| format!("psql: {e}"))?;
    if !output.status.success() {
        return Err(format!("{text}: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
