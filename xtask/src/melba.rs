//! A Melba server for a test: built, started over a new directory on a free port, stopped or killed.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::{cargo, root};

const READY_WITHIN: Duration = Duration::from_secs(60);

/// Where a test's clients connect to.
#[derive(Clone)]
pub struct Address {
    pub host: String,
    pub port: String,
    pub database: String,
}

impl Address {
    /// HOST:PORT or HOST:PORT/DATABASE.
    pub fn parse(text: &str) -> Result<Address, String> {
        let (host, rest) = text.rsplit_once(':').ok_or_else(|| format!("{text}: expected HOST:PORT"))?;
        let (port, database) = rest.split_once('/').unwrap_or((rest, "postgres"));
        Ok(Address { host: host.to_owned(), port: port.to_owned(), database: database.to_owned() })
    }

    pub fn new(host: &str, port: &str) -> Address {
        Address { host: host.to_owned(), port: port.to_owned(), database: "postgres".to_owned() }
    }

    /// As `parse` reads it.
    pub fn text(&self) -> String {
        format!("{}:{}/{}", self.host, self.port, self.database)
    }

    /// `psql` told where to connect to.
    pub fn psql(&self) -> Command {
        // Not the script that Debian has in PATH: it takes ten times as long to start.
        self.client(postgres_program("psql").unwrap_or_else(|| "psql".into()))
    }

    /// A client program told where to connect to, by the variables that every PostgreSQL client reads.
    pub fn client(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env("PGHOST", &self.host).env("PGPORT", &self.port).env("PGUSER", "postgres").env("PGDATABASE", &self.database);
        command.env("PGCONNECT_TIMEOUT", "10").env("LC_ALL", "C.UTF-8").env_remove("PGOPTIONS").env_remove("PGSERVICE");
        command.current_dir(root());
        command
    }
}

/// A running server; killed when dropped.
pub struct Melba {
    child: Child,
    /// Holds `data` and `log`; removed by [`Melba::stop`], kept when a test fails.
    directory: PathBuf,
    /// Beside where the data are and where to listen.
    arguments: Vec<String>,
    pub address: Address,
}

impl Melba {
    /// A server over an empty data directory below target/.
    pub fn fresh(test: &str) -> Result<Melba, String> {
        Melba::fresh_with(test, &[])
    }

    /// The same, with arguments for `melba serve`.
    pub fn fresh_with(test: &str, arguments: &[&str]) -> Result<Melba, String> {
        build()?;
        let directory = root().join("target").join(format!("{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).map_err(|e| format!("{}: {e}", directory.display()))?;
        Melba::start(directory, "127.0.0.1:0", arguments.iter().map(|a| (*a).to_owned()).collect())
    }

    /// A server over the `data` of a folder, which `stop` removes.
    pub fn over(directory: PathBuf) -> Result<Melba, String> {
        Melba::start(directory, "127.0.0.1:0", Vec::new())
    }

    /// kill -9, then a server over the same data on the same port.
    pub fn crash_and_restart(mut self) -> Result<Melba, String> {
        self.kill();
        self.start_again()
    }

    /// A clean stop, then a server over the same data on the same port.
    pub fn stop_and_restart(mut self) -> Result<Melba, String> {
        self.terminate()?;
        self.start_again()
    }

    fn start_again(&self) -> Result<Melba, String> {
        let listen = format!("{}:{}", self.address.host, self.address.port);
        Melba::start(self.directory.clone(), &listen, self.arguments.clone())
    }

    pub fn signal(&self, name: &str) -> Result<(), String> {
        run(Command::new("kill").args([name, &self.child.id().to_string()]), "kill")
    }

    /// A figure of /proc/PID/status in bytes; 0 where there is none.
    pub fn memory_bytes(&self, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|l| l.strip_prefix(field)?.strip_prefix(':'));
        let kilobytes = line.and_then(|l| l.split_whitespace().next()?.parse::<u64>().ok());
        kilobytes.unwrap_or(0) << 10
    }

    fn terminate(&mut self) -> Result<(), String> {
        self.signal("-TERM")?;
        let status = self.child.wait().map_err(|e| format!("melba: {e}"))?;
        if !status.success() {
            return Err(format!("melba ended with {status} on SIGTERM; its log is {}", self.log().display()));
        }
        Ok(())
    }

    /// Stops a server as its user would, and checks the result: a clean exit and a sound data directory.
    pub fn stop(mut self) -> Result<(), String> {
        self.terminate()?;
        let check = Command::new(binary()).arg("check").arg("--data").arg(self.data()).output();
        let check = check.map_err(|e| format!("melba check: {e}"))?;
        if !check.status.success() {
            return Err(format!("melba check: {}", String::from_utf8_lossy(&check.stderr).trim()));
        }
        std::fs::remove_dir_all(&self.directory).map_err(|e| format!("{}: {e}", self.directory.display()))
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    fn start(directory: PathBuf, listen: &str, arguments: Vec<String>) -> Result<Melba, String> {
        let log = directory.join("log");
        let log =
            std::fs::OpenOptions::new().create(true).append(true).open(&log).map_err(|e| format!("{}: {e}", log.display()))?;
        let mut command = Command::new(binary());
        command.arg("serve").arg("--data").arg(directory.join("data")).args(["--listen", listen]);
        // Servers that are killed would leave their sockets behind.
        command.args(["-c", "unix_socket_directories="]).args(&arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().map_err(|e| format!("{}: {e}", binary().display()))?;
        let stdout = child.stdout.take().ok_or("the server has no output")?;
        let mut melba = Melba { child, directory, arguments, address: Address::new("", "") };
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let ready = lines.recv_timeout(READY_WITHIN).ok().and_then(|line| ready(&line));
        let log = melba.log();
        melba.address = ready.ok_or_else(|| format!("melba did not start; its log is {}", log.display()))?;
        Ok(melba)
    }

    /// The data directory.
    pub fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    fn log(&self) -> PathBuf {
        self.directory.join("log")
    }

    pub fn kill(&mut self) {
        // Both fail only when the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Melba {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The address in `melba is ready: psql -h HOST -p PORT -U postgres`.
fn ready(line: &str) -> Option<Address> {
    let mut words = line.strip_prefix("melba is ready: psql -h ")?.split(' ');
    Some(Address::new(words.next()?, words.nth(1)?))
}

/// The server under test: the environment's MELBA, else the development build.
pub fn binary() -> PathBuf {
    std::env::var_os("MELBA").map_or_else(|| root().join("target/debug/melba"), PathBuf::from)
}

fn build() -> Result<(), String> {
    if std::env::var_os("MELBA").is_some() { Ok(()) } else { cargo(&["build", "--quiet", "--package", "melba"]) }
}

/// Runs a program that is expected to succeed.
pub fn run(command: &mut Command, what: &str) -> Result<(), String> {
    let status = command.status().map_err(|e| format!("{what}: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("{what} failed: {status}")) }
}

/// A program of PostgreSQL's: from where Debian has each version's, the newest first, or from PATH.
pub fn postgres_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = Vec::new();
    if let Ok(versions) = Path::new("/usr/lib/postgresql").read_dir() {
        folders.extend(versions.flatten().map(|v| v.path().join("bin")));
        folders.sort();
        folders.reverse();
    }
    folders.extend(std::env::split_paths(&path));
    folders.into_iter().map(|f| f.join(name)).find(|p| p.is_file())
}

/// One value, by psql.
pub fn ask(address: &Address, query: &str) -> Result<String, String> {
    let mut psql = address.psql();
    let output = psql.args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-c", query]).output().map_err(|e| format!("psql: {e}"))?;
    if !output.status.success() {
        return Err(format!("{query}: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
