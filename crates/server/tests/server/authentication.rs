//! The methods of pg_hba.conf, one client after the other.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::running::{Running, startup};
use postgres::{Client, Config, Error, NoTls};

/// A server with these rules, quick to answer those who fail.
struct Guarded {
    server: Running,
    sockets: PathBuf,
    _folder: tempfile::TempDir,
}

impl Guarded {
    fn start(hba: &str, ident: &str, settings: &[(&str, &str)]) -> Guarded {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name).display().to_string();
        // The first line lets the test itself in, as a role that the rules below do not name.
        let rules = format!("host all postgres all trust\n{hba}\n");
        std::fs::write(path("pg_hba.conf"), rules).expect("the folder can be written");
        std::fs::write(path("pg_ident.conf"), ident).expect("the folder can be written");
        let (hba, ident, sockets) = (path("pg_hba.conf"), path("pg_ident.conf"), path(""));
        let ours = [
            ("hba_file", hba.as_str()),
            ("ident_file", &ident),
            ("unix_socket_directories", &sockets),
            ("auth_delay.milliseconds", "0"),
        ];
        let settings: Vec<(&str, &str)> = ours.iter().chain(settings).copied().collect();
        Guarded { server: Running::start(&settings), sockets: folder.path().to_owned(), _folder: folder }
    }

    fn config(&self, user: &str, password: &str) -> Config {
        let mut config = Config::new();
        config.host("127.0.0.1").port(self.server.address.port()).user(user).password(password).dbname("postgres");
        config
    }

    fn connect(&self, user: &str, password: &str) -> Result<Client, Error> {
        self.config(user, password).connect(NoTls)
    }

    fn connect_locally(&self, user: &str) -> Result<Client, Error> {
        let mut config = Config::new();
        config.host_path(&self.sockets).port(self.server.address.port()).user(user).dbname("postgres");
        config.connect(NoTls)
    }

    fn run(&self, sql: &str) {
        self.connect("postgres", "").expect("the test is let in").batch_execute(sql).expect("it may");
    }
}

/// `ok`, or SQLSTATE and message.
fn outcome(result: Result<Client, Error>) -> String {
    match result {
        Ok(_) => "ok".to_owned(),
        Err(error) => match error.as_db_error() {
            Some(error) => format!("{} {}", error.code().code(), error.message()),
            None => format!("no answer: {error}"),
        },
    }
}

#[test]
fn passwords_are_asked_for_in_three_ways() {
    let rules = "host all /^s_ all scram-sha-256\nhost all /^m_ all md5\nhost all /^p_ all password";
    let guarded = Guarded::start(rules, "", &[]);
    for method in ["s_", "m_", "p_"] {
        guarded.run(&format!(
            "create role {method}scram login password 'secret';
             create role {method}late login password 'secret' valid until '2001-01-01';
             create role {method}bare login;
             set password_encryption = 'md5';
             create role {method}md5 login password 'secret'"
        ));
    }
    for method in ["s_", "m_", "p_"] {
        for (role, password, is_let_in) in [
            ("scram", "secret", true),
            ("scram", "guess", false),
            // SCRAM cannot be done with a hash of MD5.
            ("md5", "secret", method != "s_"),
            ("md5", "guess", false),
            ("late", "secret", false),
            ("bare", "secret", false),
            ("nobody", "secret", false),
        ] {
            let user = format!("{method}{role}");
            let expected = match is_let_in {
                true => "ok".to_owned(),
                false => format!("28P01 password authentication failed for user \"{user}\""),
            };
            assert_eq!(outcome(guarded.connect(&user, password)), expected, "{user} {password}");
        }
    }
}

#[test]
fn accounts_of_the_system_are_mapped_to_roles() {
    let rules = "local all root_like peer map=m\nlocal all ann peer map=m\nlocal all bob peer map=m\nlocal all all peer";
    let own = std::process::Command::new("id").arg("-un").output().expect("id runs").stdout;
    let own = String::from_utf8(own).expect("text").trim().to_owned();
    let guarded = Guarded::start(rules, &format!("m {own} ann\nm /^(.*)$ \\1_like\nm nobody bob\n"), &[]);
    guarded.run(&format!("create role ann login; create role bob login; create role {own}_like login; create role carl login"));
    assert_eq!(outcome(guarded.connect_locally("ann")), "ok");
    assert_eq!(outcome(guarded.connect_locally("bob")), "28000 Peer authentication failed for user \"bob\"");
    assert_eq!(outcome(guarded.connect_locally("carl")), "28000 Peer authentication failed for user \"carl\"");
    let rejected = "28000 no pg_hba.conf entry for host \"127.0.0.1\", user \"ann\", database \"postgres\", no encryption";
    assert_eq!(outcome(guarded.connect("ann", "")), rejected);
}

#[test]
fn groups_and_databases_choose_the_rule() {
    let rules = "host all +staff all reject\nhost sameuser all all trust\nlocal all all reject";
    let guarded = Guarded::start(rules, "", &[]);
    guarded.run("create role staff; create role ann login in role staff; create role root login superuser");
    guarded.run("create database root");
    let entry = |what: &str, user: &str| {
        format!("28000 {what} host \"127.0.0.1\", user \"{user}\", database \"postgres\", no encryption")
    };
    assert_eq!(outcome(guarded.connect("ann", "")), entry("pg_hba.conf rejects connection for", "ann"));
    assert_eq!(outcome(guarded.connect("root", "")), entry("no pg_hba.conf entry for", "root"), "superusers are in no group");
    assert_eq!(outcome(guarded.config("root", "").dbname("root").connect(NoTls)), "ok");
    let local = "28000 pg_hba.conf rejects connection for host \"[local]\", user \"root\", database \"postgres\", no encryption";
    assert_eq!(outcome(guarded.connect_locally("root")), local);
}

/// SASLprep: a soft hyphen in a password is none.
#[test]
fn passwords_are_prepared() {
    let guarded = Guarded::start("host all all all scram-sha-256", "", &[]);
    guarded.run("create role ann login password 'I\u{AD}X'");
    assert_eq!(outcome(guarded.connect("ann", "IX")), "ok");
    assert_eq!(outcome(guarded.connect("ann", "I\u{AD}X")), "ok");
}

/// The salt and the iterations that a role's client is told.
fn challenge(guarded: &Guarded, user: &str) -> String {
    let mut peer = guarded.server.connect();
    peer.send(&startup(format!("user\0{user}\0database\0postgres\0").as_bytes()));
    assert_eq!(peer.body().expect("an answer").0, b'R');
    let first = b"SCRAM-SHA-256\0\0\0\0\x09n,,n=,r=x";
    let mut message = vec![b'p'];
    message.extend_from_slice(&(first.len() as u32 + 4).to_be_bytes());
    message.extend_from_slice(first);
    peer.send(&message);
    let (tag, body) = peer.body().expect("an answer");
    assert_eq!(tag, b'R', "{}", String::from_utf8_lossy(&body));
    let text = String::from_utf8_lossy(&body[4..]).into_owned();
    text.split_once(',').expect("a nonce first").1.to_owned()
}

#[test]
fn roles_that_do_not_exist_look_like_others() {
    let guarded = Guarded::start("host all all all scram-sha-256", "", &[]);
    guarded.run("create role ann login password 'secret'; create role late login password 'x' valid until '2001-01-01'; create role bare login");
    for user in ["ann", "late", "bare", "nobody"] {
        let told = challenge(&guarded, user);
        assert_eq!(told, challenge(&guarded, user), "{user}: the salt is always the same");
        assert!(told.len() == "s=".len() + 24 + ",i=4096".len() && told.ends_with(",i=4096"), "{told}");
    }
    assert_ne!(challenge(&guarded, "nobody"), challenge(&guarded, "nobody else"));
}

/// What others do is shown to members of their roles, and to who may read all statistics.
#[test]
fn sessions_of_others_are_not_shown() {
    let guarded = Guarded::start("host all all all trust", "", &[]);
    guarded.run("create role ann login; create role bob login; create role reader login in role pg_read_all_stats");
    guarded.run("create role ally login in role bob");
    let mut bob = guarded.connect("bob", "").expect("bob is let in");
    bob.batch_execute("select 'a secret of bob''s'").expect("runs");
    let shown = |user: &str| {
        let mut client = guarded.connect(user, "").expect("is let in");
        let row = client.query_one("select query, state, client_port is null from pg_stat_activity where usename = 'bob'", &[]);
        let row = row.expect("one session");
        (row.get::<_, String>(0), row.get::<_, Option<String>>(1), row.get::<_, bool>(2))
    };
    let hidden = ("<insufficient privilege>".to_owned(), None, true);
    assert_eq!(shown("ann"), hidden);
    for user in ["ally", "reader", "postgres"] {
        assert_eq!(shown(user), ("select 'a secret of bob''s'".to_owned(), Some("idle".to_owned()), false), "{user}");
    }
}

#[test]
fn failed_logins_are_delayed_and_silent_connections_closed() {
    let settings = [("auth_delay.milliseconds", "700"), ("authentication_timeout", "1")];
    let guarded = Guarded::start("host all all all scram-sha-256", "", &settings);
    let began = Instant::now();
    assert!(guarded.connect("ann", "guess").is_err());
    assert!(began.elapsed() >= Duration::from_millis(700), "{:?}", began.elapsed());

    // A byte now and then does not buy time, neither before the startup packet nor after it.
    let began = Instant::now();
    let mut slow = guarded.server.connect();
    let mut asked = guarded.server.connect();
    asked.send(&startup(b"user\0ann\0"));
    assert_eq!(asked.body().expect("a request").0, b'R');
    let packet = startup(b"user\0ann\0application_name\0a client that takes its time\0");
    let sender = slow.0.try_clone().expect("a socket");
    let drip = std::thread::spawn(move || {
        for byte in packet {
            if std::io::Write::write_all(&mut &sender, &[byte]).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    });
    assert_eq!(slow.message(), None);
    assert_eq!(asked.message(), None);
    let took = began.elapsed();
    assert!((Duration::from_millis(900)..Duration::from_secs(5)).contains(&took), "{took:?}");
    drip.join().expect("no panic");
}

#[test]
fn silent_connections_do_not_exclude_others() {
    let guarded = Guarded::start("host all all all scram-sha-256", "", &[("max_connections", "3")]);
    // More than the 2 * 3 + 16 that may be authenticating.
    let silent: Vec<_> = (0..22).map(|_| guarded.server.connect()).collect();
    std::thread::sleep(Duration::from_millis(1100));
    let deadline = Instant::now() + Duration::from_secs(10);
    for _ in 0..30 {
        // On a busy machine the server may not have seen yet that the connections before are closed.
        while let Err(refused) = guarded.connect("postgres", "") {
            assert!(Instant::now() < deadline, "there is room: {refused:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    drop(silent);
}
