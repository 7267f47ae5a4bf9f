//! A server on a folder, with the preloaded library or without.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// A start, a stop, an answer: one that takes longer counts as hanging.
const WITHIN: Duration = Duration::from_secs(60);

/// Small, so that flushes and merges run all the time.
const SETTINGS: [&str; 6] = ["-c", "shared_buffers=2MB", "-c", "unix_socket_directories=", "-c", "wal_writer_delay=50ms"];

/// A running server; killed when dropped.
pub struct Server {
    child: Child,
    pub port: u16,
}

impl Server {
    /// Starts a server on a folder; its log is appended to `log`. One without the library, whose environment is empty, syncs nothing: its
    /// disk is not cut.
    ///
    /// # Errors
    /// It ends, or is not ready in time.
    pub fn start(binary: &Path, data: &Path, log: &Path, environment: &[(&str, String)]) -> Result<Server, String> {
        let text = |what: &str, e: std::io::Error| format!("{what}: {e}");
        let output = std::fs::OpenOptions::new().create(true).append(true).open(log).map_err(|e| text("log", e))?;
        let mut command = Command::new(binary);
        command.arg("serve").arg("--data").arg(data).args(["--listen", "127.0.0.1:0"]).args(SETTINGS);
        if environment.is_empty() {
            command.args(["-c", "fsync=off"]);
        }
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        let mut child = command.stdout(Stdio::piped()).stderr(output).spawn().map_err(|e| text("melba", e))?;
        let stdout = child.stdout.take().ok_or("the server has no output")?;
        let mut server = Server { child, port: 0 };
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let line = match lines.recv_timeout(WITHIN) {
            Ok(line) => line,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                return Err(format!("the server hangs as it starts; its log is {}", log.display()));
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                let said = std::fs::read_to_string(log).unwrap_or_default();
                return Err(format!("the server did not start: {}", said.lines().last().unwrap_or_default()));
            }
        };
        let port = line.split(" -p ").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok());
        server.port = port.ok_or_else(|| format!("the server said {line}"))?;
        Ok(server)
    }

    /// kill -9.
    pub fn kill(&mut self) {
        // Both fail only when the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// A clean stop; whether it was one.
    ///
    /// # Errors
    /// The server hangs.
    pub fn stop(&mut self) -> Result<bool, String> {
        // It may have ended already.
        let _ = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).stderr(Stdio::null()).status();
        let start = Instant::now();
        while start.elapsed() < WITHIN {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Ok(status.success());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Err("the server hangs as it stops".to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
