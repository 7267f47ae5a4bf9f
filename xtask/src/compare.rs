//! `cargo xtask compare`: runs the scripts of tests/sql, by psql, on a real PostgreSQL and on Melba; the output must be the same.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::melba::{Address, Melba, ask, postgres_program, run};
use crate::root;

/// The PostgreSQL to compare with: the one given, or one started into `postgres`; `None`, and said so, where there is none.
pub fn reference_for(task: &str, given: Option<Address>, postgres: &mut Option<Postgres>) -> Result<Option<Address>, String> {
    if given.is_some() {
        return Ok(given);
    }
    *postgres = Postgres::start()?;
    if postgres.is_none() {
        println!("skipped {task}: PostgreSQL's server is not installed");
    }
    Ok(postgres.as_ref().map(|p| p.address.clone()))
}

/// Runs the scripts whose name contains `filter`. Without `reference` PostgreSQL is started for it, where it is installed.
pub fn compare(filter: &str, server: Option<Address>, reference: Option<Address>) -> Result<(), String> {
    let scripts = scripts(filter)?;
    let mut postgres = None;
    let Some(reference) = reference_for("compare", reference, &mut postgres)? else { return Ok(()) };
    let arguments = ["-c", "max_prepared_transactions=4"];
    let melba = if server.is_none() { Some(Melba::fresh_with("compare", &arguments)?) } else { None };
    let server = server.or_else(|| melba.as_ref().map(|m| m.address.clone())).ok_or("no server")?;
    let outputs = root().join("target/compare");
    std::fs::create_dir_all(&outputs).map_err(|e| format!("{}: {e}", outputs.display()))?;
    let mut different = Vec::new();
    for script in &scripts {
        let name = script.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        let expected = outputs.join(format!("{name}.postgres"));
        let actual = outputs.join(format!("{name}.melba"));
        play(&reference, script, &expected)?;
        play(&server, script, &actual)?;
        let mut diff = Command::new("diff");
        diff.args(["-U3", "--label", "PostgreSQL", "--label", "Melba"]).arg(&expected).arg(&actual);
        if diff.status().map_err(|e| format!("diff: {e}"))?.success() {
            println!("ok      compare: {name}");
        } else {
            println!("FAILED  compare: {name}");
            different.push(name);
        }
    }
    drop(postgres);
    if !different.is_empty() {
        return Err(format!("different from PostgreSQL: {}; `cargo xtask compare NAME` repeats one", different.join(", ")));
    }
    melba.map_or(Ok(()), Melba::stop)
}

fn scripts(filter: &str) -> Result<Vec<PathBuf>, String> {
    let folder = root().join("tests/sql");
    let entries = folder.read_dir().map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut scripts: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    scripts.retain(|p| p.extension().is_some_and(|e| e == "sql") && p.to_string_lossy().contains(filter));
    scripts.sort();
    if scripts.is_empty() { Err(format!("no script of tests/sql is called {filter}")) } else { Ok(scripts) }
}

/// Runs a script in a new schema, with statements echoed and all output of psql in `output`.
fn play(address: &Address, script: &Path, output: &Path) -> Result<(), String> {
    ask(address, "drop schema if exists play cascade; create schema play")?;
    let file = std::fs::File::create(output).map_err(|e| format!("{}: {e}", output.display()))?;
    let also = file.try_clone().map_err(|e| format!("{}: {e}", output.display()))?;
    let mut psql = address.psql();
    psql.args(["-X", "-a", "-q", "-v", "VERBOSITY=default", "-v", "SHOW_CONTEXT=never", "-P", "pager=off", "-f"]).arg(script);
    psql.env("PGOPTIONS", "-c search_path=play -c timezone=UTC -c client_min_messages=notice -c intervalstyle=postgres");
    psql.env("PGAPPNAME", "compare");
    // A script continues after an error, as at the prompt; psql then ends with success all the same.
    run(psql.stdin(Stdio::null()).stdout(file).stderr(also), "psql")?;
    without_lines_of_notices(output).map_err(|e| format!("{}: {e}", output.display()))
}

/// At which line of COPY's data a notice reaches psql is chance.
fn without_lines_of_notices(output: &Path) -> std::io::Result<()> {
    let text = String::from_utf8_lossy(&std::fs::read(output)?).into_owned();
    let line = |line: &str| match line.split_once(": NOTICE: ").filter(|_| line.starts_with("psql:")) {
        Some((_, notice)) => format!("NOTICE: {notice}\n"),
        None => format!("{line}\n"),
    };
    std::fs::write(output, text.lines().map(line).collect::<String>())
}

/// PostgreSQL over a temporary cluster; stopped and removed when dropped.
pub struct Postgres {
    directory: PathBuf,
    pub address: Address,
}

impl Postgres {
    /// Starts one; `None` where PostgreSQL's server is not installed.
    pub fn start() -> Result<Option<Postgres>, String> {
        let (Some(_), Some(_)) = (postgres_program("initdb"), postgres_program("pg_ctl")) else { return Ok(None) };
        // Below /tmp: the server refuses to run as root, and the user it then runs as may not see our folder.
        let directory = std::env::temp_dir().join(format!("melba-compare-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).map_err(|e| format!("{}: {e}", directory.display()))?;
        let port = free_port()?;
        let address = Address::new("127.0.0.1", &port.to_string());
        let postgres = Postgres { directory, address };
        if is_root()? {
            run(Command::new("chown").arg("postgres:").arg(&postgres.directory), "chown")?;
        }
        let data = postgres.data();
        postgres
            .server_program("initdb", &["-D", &data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N"])?;
        let socket = postgres.directory.display();
        let options = format!("-p {port} -c listen_addresses=127.0.0.1 -k {socket} -c fsync=off -c max_prepared_transactions=4");
        let log = format!("{}/log", postgres.directory.display());
        postgres.server_program("pg_ctl", &["-D", &data, "-w", "-l", &log, "-o", &options, "start"])?;
        Ok(Some(postgres))
    }

    fn data(&self) -> String {
        format!("{}/data", self.directory.display())
    }

    fn server_program(&self, name: &str, arguments: &[&str]) -> Result<(), String> {
        let program = postgres_program(name).ok_or_else(|| format!("{name} is not installed"))?;
        let mut command = if is_root()? {
            let mut runuser = Command::new("runuser");
            runuser.args(["-u", "postgres", "--"]).arg(program);
            runuser
        } else {
            Command::new(program)
        };
        run(command.args(arguments).current_dir("/").stdout(Stdio::null()), name)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if let Err(error) = self.server_program("pg_ctl", &["-D", &self.data(), "-m", "immediate", "stop"]) {
            eprintln!("{error}");
        }
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn is_root() -> Result<bool, String> {
    let output = Command::new("id").arg("-u").output().map_err(|e| format!("id: {e}"))?;
    Ok(output.stdout.trim_ascii() == b"0")
}

pub fn free_port() -> Result<u16, String> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").map_err(|e| format!("no free port: {e}"))?;
    Ok(listener.local_addr().map_err(|e| format!("no free port: {e}"))?.port())
}
