//! Who may look into a data directory.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::serving::{Serving, refused};

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is ours");
}

/// The modes of all files and folders below, each once.
fn modes_below(folder: &Path) -> Vec<u32> {
    let mut modes = Vec::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            modes.push(mode(&path));
            if path.is_dir() {
                pending.push(path);
            }
        }
    }
    modes.sort();
    modes.dedup();
    modes
}

fn write_and_look(data: &Path, expected: u32, shown: &str) {
    let server = Serving::start(data, &[]);
    let mut client = server.connect("postgres", None).expect("the owner");
    let statements =
        ["create table t as select generate_series(1, 10000) as i", "alter system set work_mem = '5MB'", "checkpoint"];
    statements.iter().for_each(|sql| client.batch_execute(sql).expect("runs"));
    assert_eq!(client.query_one("show data_directory_mode", &[]).expect("a row").get::<_, &str>(0), shown);
    drop(client);
    assert_eq!(mode(data), expected);
    let file = expected & 0o666;
    let modes = modes_below(data);
    // The secret of authentication is the owner's alone in either case.
    assert!(modes.iter().all(|mode| [file, expected, 0o600].contains(mode)) && modes.contains(&file), "{modes:?}");
    server.stop();
}

#[test]
fn files_are_the_owner_s_and_the_group_s_only_if_the_directory_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("new");
    write_and_look(&data, 0o700, "0700");
    set_mode(&data, 0o755);
    let said = refused(&data, &[]);
    assert!(said.contains(&format!("data directory \"{}\" has invalid permissions", data.display())), "{said}");
    assert!(said.contains("Permissions should be u=rwx (0700) or u=rwx,g=rx (0750)."), "{said}");
    assert_eq!(mode(&data), 0o755, "it is left as it was");

    let group = folder.path().join("group");
    std::fs::create_dir(&group).expect("a folder");
    set_mode(&group, 0o750);
    write_and_look(&group, 0o750, "0750");

    let empty = folder.path().join("empty");
    std::fs::create_dir(&empty).expect("a folder");
    set_mode(&empty, 0o777);
    write_and_look(&empty, 0o700, "0700");
}

#[test]
fn files_for_users_can_be_read_by_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let server = Serving::start(&data, &[]);
    let mut client = server.connect("postgres", None).expect("the owner");
    let shown = folder.path().display();
    let copied = format!("copy (select 1) to '{shown}/copied'");
    let exported = format!("select lo_export(77, '{shown}/exported')");
    for sql in [copied.as_str(), "select lo_from_bytea(77, 'x')", exported.as_str()] {
        client.batch_execute(sql).expect("a superuser may");
    }
    assert_eq!([mode(&folder.path().join("copied")), mode(&folder.path().join("exported"))], [0o644; 2]);

    // Links that lead out of the data directory are for those who may read everything.
    std::os::unix::fs::symlink(folder.path().join("copied"), data.join("link")).expect("a link");
    client
        .batch_execute(
            "create role reader login; grant execute on function pg_read_file(text) to reader;
         create role member login in role pg_read_server_files; grant execute on function pg_read_file(text) to member",
        )
        .expect("runs");
    let read = |user: &str, file: &str| {
        let mut client = server.connect(user, None).expect("the owner");
        let row = client.query_one("select pg_read_file($1)", &[&file]);
        row.map(|row| row.get::<_, String>(0)).map_err(|e| e.as_db_error().expect("an answer").message().to_owned())
    };
    assert_eq!(read("member", "link"), Ok("1\n".to_owned()));
    assert_eq!(read("reader", "link"), Err("path must be in or below the data directory".to_owned()));
    assert_eq!(read("reader", "../copied"), Err("path must be in or below the data directory".to_owned()));
    assert_eq!(read("reader", "/etc/passwd"), Err("absolute path not allowed".to_owned()));
    assert!(read("reader", "melba.conf").is_ok());
    drop(client);
    server.stop();
}
