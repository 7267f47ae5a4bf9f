//! `cargo xtask clients`: popular drivers, each with a test below tests/clients. `cargo xtask console`: the console, in a browser.

use crate::melba::{Address, Melba};
use crate::root;

const CLIENTS: &[&str] = &["psycopg", "node", "pgx", "jdbc", "wheel"];

/// In a browser, which is slow to start and to install: not a part of CI.
const CONSOLE: &[&str] = &["console"];

/// The drivers.
pub fn run(server: Option<Address>) -> Result<(), String> {
    run_each("clients", CLIENTS, server)
}

pub fn console(server: Option<Address>) -> Result<(), String> {
    run_each("console", CONSOLE, server)
}

/// Runs them against an existing server, or against a fresh Melba.
fn run_each(task: &str, clients: &[&'static str], server: Option<Address>) -> Result<(), String> {
    let melba = if server.is_none() { Some(Melba::fresh_with(task, &["--tls-self-signed"])?) } else { None };
    let address = server.or_else(|| melba.as_ref().map(|m| m.address.clone())).ok_or("no server")?;
    let mut failed = Vec::new();
    for client in clients {
        let script = root().join("tests/clients").join(client).join("run");
        let mut command = address.client(&script);
        if let Some(melba) = &melba {
            command.env("MELBA_CERTIFICATE", melba.data().join("server.crt"));
        }
        let status = command.status().map_err(|e| format!("{}: {e}", script.display()))?;
        if !status.success() {
            failed.push(*client);
        }
    }
    if !failed.is_empty() {
        return Err(format!("failed: {}; `cargo xtask {task}` repeats it", failed.join(", ")));
    }
    melba.map_or(Ok(()), Melba::stop)
}
