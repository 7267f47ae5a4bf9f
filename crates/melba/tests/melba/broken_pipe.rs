//! Commands whose output nobody reads: they end without a word, and leave nothing behind.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Standard output is a pipe that has lost its reader. The exit code or `-SIGNAL`, standard error, and how many temporary files are left.
fn unread(arguments: &[&str]) -> (i32, String, usize) {
    let (temporary, working) = [(); 2].map(|()| tempfile::tempdir().expect("a temporary directory")).into();
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_melba"));
    command.args(arguments).env("TMPDIR", temporary.path()).current_dir(working.path()).stdin(Stdio::null()).stdout(writer);
    let output = command.stderr(Stdio::piped()).output().expect("it runs");
    let status = output.status.code().or(output.status.signal().map(|signal| -signal)).expect("a code or a signal");
    let left = std::fs::read_dir(temporary.path()).expect("a folder").count();
    (status, String::from_utf8_lossy(&output.stderr).into_owned(), left)
}

fn path(path: &Path) -> &str {
    path.to_str().expect("text")
}

#[test]
fn commands_end_quietly_when_nobody_reads_them() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let data = folder.path().join("data");
    let texts = folder.path().join("texts");
    std::fs::create_dir(&texts).expect("a folder");
    for number in 0..50 {
        let text: String = (0..400).map(|word| format!("word{} ", word * number % 97)).collect();
        std::fs::write(texts.join(format!("{number}.txt")), text).expect("a file");
    }
    let csv = folder.path().join("some.csv");
    std::fs::write(&csv, "a,b\n1,2\n").expect("a file");
    const ENDED: i32 = -libc::SIGPIPE;
    // The shell ends well when it has written enough, as after a pager.
    assert_eq!(unread(&["sql", "--data", path(&data), "-c", "select 1"]), (0, String::new(), 0));
    for (arguments, expected) in [
        (&["advise", path(&texts)][..], ENDED),
        (&["check", "--data", path(&data)], ENDED),
        (&["completions", "bash"], ENDED),
        (&["import", path(&csv), "--data", path(&data)], ENDED),
    ] {
        assert_eq!(unread(arguments), (expected, String::new(), 0), "{arguments:?}");
    }
    // Other errors are told.
    let (code, error, _) = unread(&["check", "--data", path(&csv)]);
    assert!(code == 1 && error.starts_with("melba: "), "{code} {error}");
}

#[test]
fn a_server_serves_without_a_reader_of_its_messages() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_melba"));
    command.arg("serve").arg("--data").arg(data.path().join("data")).args(["--listen", "127.0.0.1:0", "-c", "fsync=off"]);
    let mut server = command.stdout(writer).stderr(Stdio::piped()).spawn().expect("a server");
    let said = BufReader::new(server.stderr.take().expect("piped")).lines().map_while(Result::ok);
    let mut said = said.inspect(|line| assert!(!line.contains("panicked"), "{line}"));
    let listening =
        said.by_ref().find_map(|line| line.split_once(", port ").map(|(_, port)| port.parse::<u16>().expect("a port")));
    assert!(said.any(|line| line.contains("ready to accept connections")));
    let mut config = postgres::Config::new();
    config.host("127.0.0.1").port(listening.expect("it says where")).user("postgres");
    let answer = config.connect(postgres::NoTls).and_then(|mut client| client.query_one("select 1", &[]));
    server.kill().and_then(|()| server.wait()).expect("it ends");
    assert_eq!(answer.expect("it serves").get::<_, i32>(0), 1);
}
