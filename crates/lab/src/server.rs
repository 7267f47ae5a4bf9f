//! Servers that the experiment starts itself: this binary's own, and the newest installed PostgreSQL.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::{Result, Target, tool};

const START_WITHIN: Duration = Duration::from_secs(60);
const STOP_WITHIN: Duration = Duration::from_secs(30);
/// The account that runs PostgreSQL when we are root, which it refuses.
const ACCOUNT: &str = "postgres";

/// A server that ends with this value.
pub struct Server {
    child: Child,
    pub target: Target,
}

impl Server {
    /// Melba: this binary.
    pub fn melba(scratch: &Path) -> Result<Server> {
        let binary = std::env::current_exe().map_err(|e| e.to_string())?;
        let mut command = Command::new(binary);
        command.arg("serve").arg("--data").arg(scratch.join("melba")).args(["--listen", "127.0.0.1:0"]);
        command.arg("-c").arg("unix_socket_directories=");
        let mut child = command.stdout(Stdio::piped()).spawn().map_err(|e| format!("melba: {e}"))?;
        let output = child.stdout.take().ok_or("no pipe to melba")?;
        let ready = BufReader::new(output).lines().map_while(|line| line.ok()).find(|line| line.contains("ready"));
        let port = ready.as_deref().and_then(|line| line.split("-p ").nth(1)?.split_whitespace().next()?.parse::<u16>().ok());
        let port = port.ok_or("melba did not say where it listens")?;
        let target = Target::parse(&format!("Melba=postgres://postgres@127.0.0.1:{port}/postgres"))?;
        Server { child, target }.answering()
    }

    /// PostgreSQL, with its default settings except the port.
    pub fn postgresql(scratch: &Path) -> Result<Server> {
        let bin = tool::postgresql_folders("postgres").pop().ok_or("PostgreSQL is not installed")?;
        let data = scratch.join("postgresql");
        std::fs::create_dir_all(&data).map_err(|e| format!("{}: {e}", data.display()))?;
        // SAFETY: queries a number and touches no memory of ours.
        let is_root = unsafe { libc::geteuid() } == 0;
        let program = |name: &str| {
            if !is_root {
                return Command::new(bin.join(name));
            }
            let mut command = Command::new("setpriv");
            command.args(["--reuid", ACCOUNT, "--regid", ACCOUNT, "--clear-groups"]).arg(bin.join(name));
            command.current_dir("/");
            command
        };
        if is_root {
            tool::output(Command::new("chown").arg(ACCOUNT).arg(&data))?;
        }
        tool::output(program("initdb").args(["--auth=trust", "--username=postgres", "--locale=C.UTF-8", "-D"]).arg(&data))?;
        let port = free_port()?;
        let mut command = program("postgres");
        command.arg("-D").arg(&data).args(["-p", &port.to_string(), "-h", "127.0.0.1", "-k", ""]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().map_err(|e| format!("postgres: {e}"))?;
        let target = Target::parse(&format!("PostgreSQL=postgres://postgres@127.0.0.1:{port}/postgres"))?;
        Server { child, target }.answering()
    }

    /// Waits until it takes connections.
    fn answering(mut self) -> Result<Server> {
        let started = Instant::now();
        loop {
            match self.target.connect() {
                Ok(_) => return Ok(self),
                Err(e) if started.elapsed() > START_WITHIN => return Err(e),
                Err(_) => std::thread::sleep(Duration::from_millis(100)),
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("{} ended with {status}", self.target.name));
            }
        }
    }
}

/// Runs the newest installed PostgreSQL while a function runs, which gets its URL.
///
/// # Errors
/// There is none, it does not start, or the function's error.
pub fn while_postgresql(body: &mut dyn FnMut(&str) -> Result<()>) -> Result<()> {
    let scratch = std::env::temp_dir().join(format!("melba-postgresql-{}", std::process::id()));
    let failed = |e: std::io::Error| format!("{}: {e}", scratch.display());
    std::fs::create_dir(&scratch).map_err(failed)?;
    // Independent of this process's umask: the server's account must have access.
    std::fs::set_permissions(&scratch, std::fs::Permissions::from_mode(0o755)).map_err(failed)?;
    let result = Server::postgresql(&scratch).and_then(|server| {
        let Target { host, port, user, database, .. } = &server.target;
        body(&format!("postgres://{user}@{host}:{port}/{database}"))
    });
    // The server has ended.
    result.and(std::fs::remove_dir_all(&scratch).map_err(failed))
}

impl Drop for Server {
    fn drop(&mut self) {
        // SAFETY: a signal to a child of ours that was not waited for yet: its number is still its own.
        unsafe { libc::kill(self.child.id() as libc::pid_t, libc::SIGINT) };
        let asked = Instant::now();
        while asked.elapsed() < STOP_WITHIN && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(50));
        }
        // Nothing is left to do when it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port without a listener.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|e| e.to_string())?;
    listener.local_addr().map(|address| address.port()).map_err(|e| e.to_string())
}
