//! The binary, serving a folder.
// Each test file uses a part of it.
#![allow(dead_code)]

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use postgres::{Client, Config, Error, NoTls};

/// A server; killed when dropped.
pub struct Serving {
    child: Child,
    pub port: u16,
    /// What it says on standard error, by lines.
    pub said: Receiver<String>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may be gone already; either way nothing is left of it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(mut command: Command, data: &Path, options: &[&str]) -> Child {
    command.arg("serve").arg("--data").arg(data).args(["--listen", "127.0.0.1:0", "-c", "fsync=off"]);
    command.args(options).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a server")
}

fn melba() -> Command {
    Command::new(env!("CARGO_BIN_EXE_melba"))
}

/// What a server that cannot start says.
pub fn refused(data: &Path, options: &[&str]) -> String {
    let output = spawn(melba(), data, options).wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8(output.stderr).expect("text")
}

impl Serving {
    pub fn start(data: &Path, options: &[&str]) -> Serving {
        Serving::ready(spawn(melba(), data, options))
    }

    /// With variables of the environment.
    pub fn start_with(data: &Path, options: &[&str], environment: &[(&str, String)]) -> Serving {
        let mut melba = melba();
        melba.envs(environment.iter().map(|(name, value)| (*name, value)));
        Serving::ready(spawn(melba, data, options))
    }

    /// With a limit of the shell's, such as `-n 160` (open files) or `-v 3145728` (kilobytes of address space).
    pub fn start_limited(data: &Path, limit: &str, options: &[&str]) -> Serving {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("ulimit {limit}; exec \"$0\" \"$@\"")).arg(env!("CARGO_BIN_EXE_melba"));
        Serving::ready(spawn(shell, data, options))
    }

    fn ready(mut child: Child) -> Serving {
        let mut ready = String::new();
        BufReader::new(child.stdout.as_mut().expect("piped")).read_line(&mut ready).expect("a line");
        // In `melba is ready: psql -h HOST -p PORT -U postgres`.
        let port = ready.split_whitespace().skip_while(|w| *w != "-p").nth(1).and_then(|p| p.parse().ok());
        let mut stderr = child.stderr.take().expect("piped");
        let Some(port) = port else {
            let mut said = String::new();
            stderr.read_to_string(&mut said).expect("text");
            panic!("the server says {ready:?} and {said:?}");
        };
        let (sender, said) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                // The test may be over.
                let _ = sender.send(line);
            }
        });
        Serving { child, port, said }
    }

    pub fn config(&self, user: &str) -> Config {
        let mut config = Config::new();
        config.host("127.0.0.1").port(self.port).user(user).dbname("postgres");
        config
    }

    pub fn connect(&self, user: &str, password: Option<&str>) -> Result<Client, Error> {
        let mut config = self.config(user);
        password.iter().for_each(|password| _ = config.password(password));
        config.connect(NoTls)
    }

    /// Waits until the server says something with this in it.
    pub fn hear(&self, part: &str) {
        let mut heard = Vec::new();
        while let Ok(line) = self.said.recv_timeout(Duration::from_secs(30)) {
            if line.contains(part) {
                return;
            }
            heard.push(line);
        }
        panic!("the server says {heard:?}, but not {part:?}");
    }

    pub fn signal(&self, signal: &str) {
        let kill = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(kill.expect("kill runs").success());
    }

    pub fn stop(mut self) {
        self.signal("-TERM");
        assert!(self.child.wait().expect("ends").success());
    }
}

/// SQLSTATE and message of a connection that was refused.
pub fn refusal(result: Result<Client, Error>) -> (String, String) {
    let error = result.err().expect("nobody is let in");
    let error = error.as_db_error().unwrap_or_else(|| panic!("no answer of the server: {error}"));
    (error.code().code().to_owned(), error.message().to_owned())
}
