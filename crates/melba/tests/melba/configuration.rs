//! Configuration files, as those who run the server write them.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::serving::{Serving, refused};
use postgres::Client;

fn write(data: &Path, name: &str, text: &str) {
    std::fs::write(data.join(name), text).expect("the folder can be written");
}

/// A folder that only its owner may look into, as it is not empty when it is served.
fn data() -> tempfile::TempDir {
    let only_owner = Permissions::from_mode(0o700);
    tempfile::Builder::new().permissions(only_owner).tempdir().expect("a folder")
}

/// The columns of a row as text.
fn row(client: &mut Client, query: &str) -> Vec<Option<String>> {
    let messages = client.simple_query(query).expect("it may");
    let row = messages.iter().find_map(|m| if let postgres::SimpleQueryMessage::Row(row) = m { Some(row) } else { None });
    let row = row.expect("a row");
    (0..row.len()).map(|i| row.get(i).map(str::to_owned)).collect()
}

fn texts(row: &[Option<String>]) -> Vec<&str> {
    row.iter().map(|value| value.as_deref().unwrap_or("NULL")).collect()
}

#[test]
fn every_error_is_told_with_file_and_line() {
    let data = data();
    write(data.path(), "melba.conf", "work_mem = 4MB\ninclude 'more.conf'\nwork_mem = much\nno_such = 1\narchive_mode = on\n");
    write(data.path(), "more.conf", "\na b c\n");
    let said = refused(data.path(), &[]);
    let (main, more) = (data.path().join("melba.conf"), data.path().join("more.conf"));
    for part in [
        format!("syntax error in file \"{}\" line 2, near token \"c\"", more.display()),
        format!("invalid value for parameter \"work_mem\": \"much\" in file \"{}\" line 3", main.display()),
        format!("unrecognized configuration parameter \"no_such\" in file \"{}\" line 4", main.display()),
        format!("parameter \"archive_mode\" cannot be set to \"on\" in file \"{}\" line 5", main.display()),
    ] {
        assert!(said.contains(&part), "{part} is not in {said}");
    }
}

#[test]
fn a_reload_applies_valid_settings_and_shows_their_sources() {
    let data = data();
    write(data.path(), "melba.conf", "work_mem = 5MB\nlisten_addresses = 'localhost'\n");
    let server = Serving::start(data.path(), &["-c", "statement_timeout=1h"]);
    let mut client = server.connect("postgres", None).expect("postgres may");
    let of = |name: &str| {
        format!("select setting, source, sourcefile, sourceline, pending_restart from pg_settings where name = '{name}'")
    };
    let main = data.path().join("melba.conf").display().to_string();
    assert_eq!(texts(&row(&mut client, &of("work_mem"))), ["5120", "configuration file", &main, "1", "f"]);
    assert_eq!(texts(&row(&mut client, &of("statement_timeout")))[..2], ["3600000", "command line"]);
    assert_eq!(texts(&row(&mut client, &of("enable_hashjoin")))[..2], ["on", "default"]);
    assert_eq!(texts(&row(&mut client, "show config_file")), [main.as_str()]);

    write(data.path(), "melba.conf", "work_mem = 6MB\nlog_min_messages = loud\nmax_connections = 77\nlog_statement = all\n");
    let errors = row(
        &mut client,
        "select string_agg(sourceline || ':' || applied || ':' || coalesce(error, '-'), ' ' order by seqno) from pg_file_settings",
    );
    assert_eq!(texts(&errors), ["1:true:- 2:false:setting could not be applied 3:false:setting could not be applied 4:true:-"]);
    server.signal("-HUP");
    server.hear(&format!("invalid value for parameter \"log_min_messages\": \"loud\" in file \"{main}\" line 2"));
    server.hear("parameter \"max_connections\" cannot be changed without restarting the server");
    server.hear("unaffected changes were applied");
    assert_eq!(texts(&row(&mut client, &of("work_mem")))[0], "6144");
    assert_eq!(texts(&row(&mut client, &of("max_connections")))[4], "t");
    assert_eq!(texts(&row(&mut client, "show log_min_messages")), ["warning"]);

    write(data.path(), "melba.conf", "work_mem = 7MB\noops\n");
    client.batch_execute("select pg_reload_conf()").expect("it may");
    server.hear("contains errors; no changes were applied");
    assert_eq!(texts(&row(&mut client, "show work_mem")), ["6MB"]);
    write(data.path(), "melba.conf", "");
    client.batch_execute("alter system set work_mem = '8MB'").expect("it may");
    client.batch_execute("select pg_reload_conf()").expect("it may");
    let auto = data.path().join("melba.auto.conf").display().to_string();
    assert_eq!(texts(&row(&mut client, &of("work_mem"))), ["8192", "configuration file", &auto, "2", "f"]);
    client.batch_execute("alter system reset all").expect("it may");
    client.batch_execute("select pg_reload_conf()").expect("it may");
    assert_eq!(texts(&row(&mut client, &of("work_mem")))[1], "override", "it follows from memory again");
}

#[test]
fn inert_settings_warn_and_unknown_settings_are_refused() {
    let data = data();
    let server = Serving::start(data.path(), &[]);
    let mut client = server.connect("postgres", None).expect("postgres may");
    let note = row(&mut client, "select extra_desc from pg_settings where name = 'jit'");
    assert!(texts(&note)[0].starts_with("Accepted without effect. "), "{note:?}");
    let error = client.batch_execute("set session_preload_libraries = 'x'").expect_err("there is no such thing");
    assert_eq!(error.code().map(|code| code.code().to_owned()).as_deref(), Some("0A000"));
    client.batch_execute("set session_replication_role = local; set array_nulls = on").expect("these are so");
}

#[test]
fn a_data_directory_is_never_made_by_mistake() {
    let data = data();
    let missing = data.path().join("typo/deep/path");
    assert!(refused(&missing, &[]).contains("there is no directory"));
    assert!(!data.path().join("typo").exists());
    write(data.path(), "holiday.jpg", "");
    assert!(refused(data.path(), &[]).contains("is not empty, and holds no database of Melba: there is \"holiday.jpg\""));
    write(data.path(), "PG_VERSION", "18\n");
    assert!(refused(data.path(), &[]).contains("holds a database cluster of PostgreSQL"));
}
