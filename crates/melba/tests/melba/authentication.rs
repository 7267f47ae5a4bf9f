//! Who is let in: pg_hba.conf, what holds without one, and passwords for everybody.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::serving::{Serving, refusal, refused};

fn write(data: &Path, name: &str, text: &str) {
    std::fs::write(data.join(name), text).expect("the folder can be written");
}

/// A folder that only its owner may look into, as it is not empty when it is served.
fn data() -> tempfile::TempDir {
    let only_owner = Permissions::from_mode(0o700);
    tempfile::Builder::new().permissions(only_owner).tempdir().expect("a folder")
}

#[test]
fn rules_are_read_at_the_start_and_again_on_sighup() {
    let data = data();
    write(data.path(), "pg_hba.conf", "host all all all nothing\n");
    let said = refused(data.path(), &[]);
    for part in ["could not load \"", "invalid authentication method \"nothing\" (line 1 of configuration file \""] {
        assert!(said.contains(part), "{said}");
    }

    write(data.path(), "pg_hba.conf", "host all bob all reject\nhost all postgres 127.0.0.1/32 trust\n");
    let server = Serving::start(data.path(), &[]);
    let mut client = server.connect("postgres", None).expect("postgres is trusted");
    client.batch_execute("create role ann login password 'secret'; create role bob login").expect("it may");
    let what = "host \"127.0.0.1\", user \"ann\", database \"postgres\", no encryption";
    assert_eq!(refusal(server.connect("ann", None)), ("28000".into(), format!("no pg_hba.conf entry for {what}")));
    let rejected = format!("pg_hba.conf rejects connection for {}", what.replace("ann", "bob"));
    assert_eq!(refusal(server.connect("bob", None)), ("28000".into(), rejected));
    let shown = client.query_one("show hba_file", &[]).expect("a row").get::<_, String>(0);
    assert_eq!(Path::new(&shown), data.path().join("pg_hba.conf"));

    write(data.path(), "pg_hba.conf", "host all all all scram-sha-256\nhost all all 1.1.1.1/40 trust\n");
    assert!(client.query_one("select pg_reload_conf()", &[]).expect("a row").get::<_, bool>(0));
    server.hear("invalid CIDR mask in address \"1.1.1.1/40\" (line 2 of configuration file");
    server.hear("was not reloaded");
    server.connect("postgres", None).expect("the rules are the old ones");
    let rows = client.query("select line_number, auth_method, error from pg_hba_file_rules", &[]).expect("rows");
    let rows: Vec<(i32, Option<&str>, Option<&str>)> = rows.iter().map(|r| (r.get(0), r.get(1), r.get(2))).collect();
    let error = Some("invalid CIDR mask in address \"1.1.1.1/40\"");
    assert_eq!(rows, [(1, Some("scram-sha-256"), None), (2, None, error)]);

    write(data.path(), "pg_hba.conf", "host all all all scram-sha-256\n");
    server.signal("-HUP");
    while server.connect("postgres", None).is_ok() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    server.connect("ann", Some("secret")).expect("ann knows her password");
    let wrong = ("28P01".to_owned(), "password authentication failed for user \"ann\"".to_owned());
    assert_eq!(refusal(server.connect("ann", Some("guess"))), wrong);
    server.hear("Password does not match for user \"ann\".");
    server.stop();
}

#[test]
fn the_owner_is_let_in_without_rules_and_everybody_needs_a_password_when_it_is_required() {
    let data = data();
    let server = Serving::start(data.path(), &[]);
    let mut client = server.connect("postgres", None).expect("this is the owner");
    let rules = client.query("select type, address, auth_method, file_name from pg_hba_file_rules", &[]).expect("rows");
    let rules: Vec<_> = rules.iter().map(|r| (r.get(0), r.get(1), r.get(2), r.get(3))).collect();
    let expected: [(&str, Option<&str>, &str, Option<&str>); 4] = [
        ("local", None, "owner", None),
        ("host", Some("127.0.0.0"), "owner", None),
        ("host", Some("::1"), "owner", None),
        ("host", Some("all"), "scram-sha-256", None),
    ];
    assert_eq!(rules[0], expected[0]);
    assert_eq!((rules[1].0, rules[2], rules[3]), (expected[1].0, expected[2], expected[3]));
    drop(client);
    server.stop();

    let said = refused(data.path(), &["--require-password"]);
    assert!(said.contains("a password is required, but no superuser has one"), "{said}");

    let server = Serving::start(data.path(), &[]);
    let mut client = server.connect("postgres", None).expect("this is the owner");
    client.batch_execute("alter role postgres password 'secret'").expect("it may");
    drop(client);
    server.stop();
    let server = Serving::start(data.path(), &["--require-password"]);
    server.connect("postgres", Some("secret")).expect("the password is right");
    assert_eq!(refusal(server.connect("postgres", Some("guess"))).0, "28P01");
    assert!(server.connect("postgres", None).is_err());
    server.stop();
}
