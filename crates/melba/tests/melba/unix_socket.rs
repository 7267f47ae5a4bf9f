//! Two servers and one socket: the second is refused, and one that was killed leaves nothing that is in the way.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use postgres::{Config, NoTls};

/// A server; killed when dropped.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        // It may be gone already; either way nothing is left of it.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn serve(data: &Path, address: &str, sockets: &str) -> Serving {
    let child = Command::new(env!("CARGO_BIN_EXE_melba"))
        .arg("serve")
        .arg("--data")
        .arg(data)
        .args(["--listen", address, "-c", "fsync=off", "-c"])
        .arg(format!("unix_socket_directories={sockets}"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    Serving(child.expect("a server"))
}

/// The port in `melba is ready: psql -h HOST -p PORT -U postgres`.
fn port(server: &mut Serving) -> u16 {
    let mut ready = String::new();
    BufReader::new(server.0.stdout.as_mut().expect("piped")).read_line(&mut ready).expect("a line");
    let port = ready.split_whitespace().skip_while(|w| *w != "-p").nth(1).and_then(|p| p.parse().ok());
    port.unwrap_or_else(|| panic!("the server says {ready:?}"))
}

fn select(sockets: &Path, port: u16) {
    let mut config = Config::new();
    config.host_path(sockets).port(port).user("postgres").dbname("postgres");
    config.connect(NoTls).and_then(|mut client| client.batch_execute("select 1")).expect("answers");
}

#[test]
fn a_socket_has_one_server() {
    let (first_data, second_data) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let sockets = tempfile::tempdir().expect("a folder");
    let shown = sockets.path().display();
    let mut first = serve(first_data.path(), "127.0.0.1:0", &shown.to_string());
    let port = port(&mut first);
    select(sockets.path(), port);

    // The same port of another address of this machine.
    let second_address = format!("127.0.0.2:{port}");
    let mut second = serve(second_data.path(), &second_address, &shown.to_string());
    let mut said = String::new();
    second.0.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
    assert_eq!(second.0.wait().expect("ends").code(), Some(1));
    let lock = format!("lock file \"{shown}/.s.PGSQL.{port}.lock\" already exists");
    let hint = format!("Is another postmaster (PID {}) using socket file \"{shown}/.s.PGSQL.{port}\"?", first.0.id());
    assert!(said.contains(&lock) && said.contains(&hint), "{said}");
    select(sockets.path(), port);

    drop(first);
    assert_eq!(sockets.path().read_dir().expect("a folder").count(), 2, "what a killed server leaves");
    let mut second = serve(second_data.path(), &second_address, &shown.to_string());
    assert_eq!(self::port(&mut second), port);
    select(sockets.path(), port);
    let kill = Command::new("kill").args(["-TERM", &second.0.id().to_string()]).status();
    assert!(kill.expect("kill runs").success() && second.0.wait().expect("ends").success());
    assert_eq!(sockets.path().read_dir().expect("a folder").count(), 0);
}
