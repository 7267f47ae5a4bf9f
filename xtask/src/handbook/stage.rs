//! Where a page is played: a temporary directory, a server, and a shell that knows `melba` and PostgreSQL's clients.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use super::fences::{Fence, Kind};
use crate::compare::free_port;
use crate::melba::{binary, postgres_program, run};
use crate::root;

const READY_WITHIN: Duration = Duration::from_secs(60);
/// Of one block.
const SECONDS_MAX: &str = "120";

pub struct Stage {
    directory: PathBuf,
    /// The ports that pages write, and those that stand for them.
    ports: Vec<(&'static str, String)>,
    server: Option<Child>,
    /// Whether the page has had a server, which it may have killed.
    has_served: bool,
}

/// Builds the server, unless the environment names one.
pub fn build() -> Result<(), String> {
    if std::env::var_os("MELBA").is_some() { Ok(()) } else { crate::cargo(&["build", "--quiet", "--package", "melba"]) }
}

impl Stage {
    pub fn new(page: &str, postgres: Option<&str>) -> Result<Stage, String> {
        let directory = std::env::temp_dir().join(format!("melba-handbook-{}-{page}", std::process::id()));
        let bin = directory.join("bin");
        std::fs::create_dir_all(&bin).map_err(|e| format!("{}: {e}", bin.display()))?;
        let melba = root().join(binary());
        let clients = ["psql", "pg_dump", "pgbench"].map(|name| (name, postgres_program(name)));
        for (name, program) in clients.into_iter().chain([("melba", Some(melba))]) {
            if let Some(program) = program {
                std::os::unix::fs::symlink(program, bin.join(name)).map_err(|e| format!("{name}: {e}"))?;
            }
        }
        let mut ports = vec![("5432", free_port()?.to_string()), ("9187", free_port()?.to_string())];
        ports.extend(postgres.map(|port| ("5433", port.to_owned())));
        Ok(Stage { directory, ports, server: None, has_served: false })
    }

    /// Plays a block and returns what it printed.
    pub fn play(&mut self, fence: &Fence) -> Result<String, String> {
        let text = &fence.text;
        if !self.has_served && matches!(fence.kind, Kind::Shell | Kind::Sql | Kind::SqlError | Kind::File(_)) {
            self.serve("melba serve --data ./melba-data --listen 127.0.0.1:5432")?;
        }
        match &fence.kind {
            Kind::Shell => self.shell(text).and_then(succeeded),
            Kind::Sql => self.sql(text, "1").and_then(succeeded),
            Kind::SqlError => match self.sql(text, "0")? {
                (_, output) if output.contains("ERROR:") => Ok(output),
                (_, output) => Err(format!("an error was expected:\n{output}")),
            },
            Kind::Server => self.serve(text).map(|()| String::new()),
            Kind::File(name) => self.add(name, text).map(|()| String::new()),
            Kind::Output | Kind::NotRun => Ok(String::new()),
            Kind::Unknown(problem) => Err(problem.clone()),
        }
    }

    /// Starts a server in place of the present one.
    pub fn serve(&mut self, command: &str) -> Result<(), String> {
        self.end_server()?;
        self.has_served = true;
        let log = std::fs::File::create(self.directory.join("server.log")).map_err(|e| format!("server.log: {e}"))?;
        let mut bash = self.command("bash");
        bash.args(["-c", &self.with_ports(command)]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).process_group(0);
        let mut child = bash.spawn().map_err(|e| format!("bash: {e}"))?;
        let stdout = child.stdout.take().ok_or("the server has no output")?;
        self.server = Some(child);
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let line = lines.recv_timeout(READY_WITHIN).unwrap_or_default();
        if line.starts_with("melba is ready") { Ok(()) } else { Err(format!("no server: {line}\n{}", self.log())) }
    }

    /// Stops the server and removes the directory.
    pub fn end(mut self) -> Result<(), String> {
        self.end_server()?;
        std::fs::remove_dir_all(&self.directory).map_err(|e| format!("{}: {e}", self.directory.display()))
    }

    fn end_server(&mut self) -> Result<(), String> {
        let Some(mut server) = self.server.take() else { return Ok(()) };
        let has_ended = server.try_wait().map_err(|e| format!("the server: {e}"))?.is_some();
        if !has_ended {
            run(Command::new("kill").arg(server.id().to_string()), "kill")?;
        }
        let status = server.wait().map_err(|e| format!("the server: {e}"))?;
        // A page may have ended it, or killed it this moment.
        if has_ended || status.success() || status.signal() == Some(9) {
            Ok(())
        } else {
            Err(format!("the server ended with {status}\n{}", self.log()))
        }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.directory.join("server.log")).unwrap_or_default()
    }

    fn shell(&self, text: &str) -> Result<(bool, String), String> {
        let mut bash = self.limited("bash");
        // Not by standard input, which the block's own commands would read.
        self.output(bash.args(["-e", "-o", "pipefail", "-c", &self.with_ports(text)]), "")
    }

    fn sql(&self, text: &str, stop: &str) -> Result<(bool, String), String> {
        let mut psql = self.limited("psql");
        self.output(psql.args(["-X", "-P", "pager=off", "-v", &format!("ON_ERROR_STOP={stop}")]), text)
    }

    /// Whether it succeeded, and both of its outputs as they come.
    fn output(&self, command: &mut Command, input: &str) -> Result<(bool, String), String> {
        let (mut reader, writer) = std::io::pipe().map_err(|e| format!("a pipe: {e}"))?;
        let errors = writer.try_clone().map_err(|e| format!("a pipe: {e}"))?;
        let mut child =
            command.stdin(Stdio::piped()).stdout(writer).stderr(errors).spawn().map_err(|e| format!("a block: {e}"))?;
        // Else the command would hold the writing ends, and the output would not end.
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut stdin = child.stdin.take().ok_or("a block takes no input")?;
        // It may end before it has read everything.
        let _ = stdin.write_all(self.with_ports(input).as_bytes());
        drop(stdin);
        let mut output = String::new();
        std::io::Read::read_to_string(&mut reader, &mut output).map_err(|e| format!("a block's output: {e}"))?;
        let status = child.wait().map_err(|e| format!("a block: {e}"))?;
        Ok((status.success(), self.ports.iter().fold(output, |text, (written, port)| text.replace(port, written))))
    }

    fn add(&self, name: &str, text: &str) -> Result<(), String> {
        let path = self.directory.join(name);
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(&path).map_err(|e| format!("{name}: {e}"))?;
        file.write_all(self.with_ports(text).as_bytes()).map_err(|e| format!("{name}: {e}"))
    }

    fn with_ports(&self, text: &str) -> String {
        self.ports.iter().fold(text.to_owned(), |text, (written, port)| text.replace(written, port))
    }

    fn limited(&self, program: &str) -> Command {
        let mut command = self.command("timeout");
        command.args(["-k", "5", SECONDS_MAX, program]);
        command
    }

    /// A program in the page's directory, whose clients find the page's server.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths([self.directory.join("bin")].into_iter().chain(std::env::split_paths(&path)));
        command.env_clear().current_dir(&self.directory).env("HOME", &self.directory).env("PATH", path.unwrap_or_default());
        command.env("LC_ALL", "C.UTF-8").env("TZ", "UTC");
        let port = self.ports.iter().find(|(written, _)| *written == "5432").map_or("", |(_, port)| port);
        command.env("PGHOST", "127.0.0.1").env("PGPORT", port).env("PGUSER", "postgres").env("PGCONNECT_TIMEOUT", "10");
        command
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            // Both fail only when it has ended.
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

fn succeeded((success, output): (bool, String)) -> Result<String, String> {
    if success { Ok(output) } else { Err(format!("failed:\n{output}")) }
}
