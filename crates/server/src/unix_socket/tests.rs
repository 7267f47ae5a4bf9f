//! Sockets and lock files in separate folders.

use std::os::unix::fs::MetadataExt;
use std::process::Command;

use super::*;

const PORT: u16 = 5432;

fn listen_with(settings: &[(&str, &str)], data_directory: &str) -> Result<(Vec<UnixSocket>, Vec<DbError>)> {
    let settings: Vec<(String, String)> = settings.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    let settings = Settings::server(&settings).expect("settings");
    listen(&settings, &Owner { data_directory, started: 1_700_000_000, port: PORT })
}

fn listen_at(directories: &str) -> Result<(Vec<UnixSocket>, Vec<DbError>)> {
    listen_with(&[("unix_socket_directories", directories)], "/data")
}

fn folder() -> (tempfile::TempDir, String, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().to_owned();
    let name = path.display().to_string();
    (folder, name, path.join(".s.PGSQL.5432"), path.join(".s.PGSQL.5432.lock"))
}

/// The process id of a process that has ended.
fn dead_process() -> u32 {
    let mut child = Command::new("true").spawn().expect("a process");
    child.wait().expect("it ends");
    child.id()
}

#[test]
fn lists_are_split() {
    let split = |text| split_directories(text).map(|d| d.join("|"));
    for (text, directories) in [
        ("", ""),
        ("  ", ""),
        ("/tmp", "/tmp"),
        (" /tmp/ , /run/a b ,.", "/tmp|/run/a b|."),
        ("\"/a,b\", \"c\"\"d\"", "/a,b|c\"d"),
        ("/", "/"),
    ] {
        assert_eq!(split(text).as_deref(), Some(directories), "{text}");
    }
    for text in [",", "/tmp,", "/tmp,,/run", "\"/tmp", "\"/tmp\" x", "\"\""] {
        assert_eq!(split(text), None, "{text}");
    }
}

#[test]
fn files_come_and_go_with_the_socket() {
    let (_folder, name, socket, lock) = folder();
    assert!(listen_at("").expect("none").0.is_empty());
    let (sockets, warnings) = listen_at(&name).expect("listens");
    assert_eq!((sockets.len(), warnings.len()), (1, 0));
    let expected = format!("{}\n/data\n1700000000\n5432\n{name}\n", std::process::id());
    assert_eq!(std::fs::read_to_string(&lock).expect("a lock file"), expected);
    let mode = |path| std::fs::metadata(path).expect("a file").mode() & 0o7777;
    assert_eq!((mode(&socket), mode(&lock)), (0o777, 0o600));
    UnixStream::connect(&socket).expect("somebody listens");
    drop(sockets);
    assert!(!socket.exists() && !lock.exists());
}

#[test]
fn group_and_permissions_are_set() {
    let (folder, name, socket, lock) = folder();
    let own = folder.path().metadata().expect("a folder").gid().to_string();
    let with = |group| {
        let settings = [("unix_socket_directories", &*name), ("unix_socket_group", group), ("unix_socket_permissions", "0750")];
        listen_with(&settings, "/data")
    };
    let kept = with(&own).expect("listens");
    assert_eq!(socket.metadata().expect("a socket").mode() & 0o7777, 0o750);
    drop(kept);
    let error = with("no such group").expect_err("nobody is in it");
    assert_eq!(error.message(), "could not create any Unix-domain sockets");
    assert_eq!(error.fields().detail.as_deref(), Some("group \"no such group\" does not exist"));
    assert!(!socket.exists() && !lock.exists());
}

#[test]
fn a_live_server_is_not_replaced() {
    let (_folder, name, socket, lock) = folder();
    let first = listen_at(&name).expect("listens");
    // Whichever process the lock file names.
    for pid in [std::process::id(), dead_process()] {
        std::fs::write(&lock, format!("{pid}\n/data\n0\n5432\n{name}\n")).expect("writes");
        let error = listen_at(&name).expect_err("refused");
        assert_eq!(error.sqlstate(), melba_types::SqlState::LOCK_FILE_EXISTS);
        assert_eq!(error.message(), format!("lock file \"{}\" already exists", lock.display()));
        let hint = format!("Is another postmaster (PID {pid}) using socket file \"{}\"?", socket.display());
        assert_eq!(error.fields().hint, Some(hint));
        UnixStream::connect(&socket).expect("the first still listens");
    }
    drop(first);
    // One that is about to make its socket.
    let mut other = Command::new("sleep").arg("600").spawn().expect("a process");
    std::fs::write(&lock, format!("{}\n", other.id())).expect("writes");
    assert!(listen_at(&name).is_err());
    other.kill().and_then(|()| other.wait()).expect("it ends");
    for text in ["", "what\n", "0\n"] {
        std::fs::write(&lock, text).expect("writes");
        assert!(listen_at(&name).is_err(), "{text:?}");
    }
}

#[test]
fn a_dead_servers_socket_is_replaced() {
    let (_folder, name, socket, lock) = folder();
    let mut other = Command::new("sleep").arg("600").spawn().expect("a process");
    // The last process has the dead server's number by chance.
    for (pid, with_socket) in [(dead_process(), false), (dead_process(), true), (std::process::id(), false), (other.id(), true)] {
        if with_socket {
            drop(UnixListener::bind(&socket).expect("a socket that nobody listens to afterwards"));
        }
        std::fs::write(&lock, format!("{pid}\n/data\n0\n5432\n{name}\n")).expect("writes");
        let sockets = listen_at(&name).unwrap_or_else(|e| panic!("{pid}: {e}"));
        UnixStream::connect(&socket).expect("somebody listens");
        drop(sockets);
    }
    other.kill().and_then(|()| other.wait()).expect("it ends");
}

#[test]
fn one_directory_is_enough() {
    let (folder, name, socket, _) = folder();
    let long = format!("{name}/{}", "x".repeat(100));
    let (sockets, warnings) = listen_at(&format!("{long}, {name}")).expect("listens");
    assert_eq!((sockets.len(), warnings.len()), (1, 1));
    assert_eq!(warnings[0].message(), format!("could not create Unix-domain socket in directory \"{long}\""));
    drop(sockets);
    assert_eq!(listen_at(&long).expect_err("no other").message(), "could not create any Unix-domain sockets");
    let error = listen_at(&format!("{name},{name}/missing")).expect_err("no lock file");
    let reason = "No such file or directory";
    assert_eq!(error.message(), format!("could not create lock file \"{name}/missing/.s.PGSQL.5432.lock\": {reason}"));
    assert!(!socket.exists(), "the first is undone");
    // A name counts from the data directory.
    std::fs::create_dir(folder.path().join("run")).expect("a folder");
    let sockets = listen_with(&[("unix_socket_directories", "run")], &name).expect("listens");
    assert!(folder.path().join("run/.s.PGSQL.5432").exists());
    drop(sockets);
}

#[test]
fn abstract_sockets_have_no_files() {
    let (_folder, name, ..) = folder();
    let abstract_name = format!("@{name}");
    let (sockets, _) = listen_at(&abstract_name).expect("listens");
    let address = SocketAddr::from_abstract_name(format!("{name}/.s.PGSQL.5432")).expect("an address");
    UnixStream::connect_addr(&address).expect("somebody listens");
    assert!(listen_at(&abstract_name).is_err());
    assert_eq!(sockets[0].directory(), None);
}
