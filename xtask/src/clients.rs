//! `cargo xtask clients`: popular drivers, each with a test below tests/clients.

use crate::melba::{Address, Melba};
use crate::root;

const CLIENTS: &[&str] = &["psycopg", "node", "pgx", "jdbc"];

/// Runs them against an existing server, or against a fresh Melba.
pub fn run(server: Option<Address>) -> Result<(), String> {
    let melba = if server.is_none() { Some(Melba::fresh_with("clients", &["--tls-self-signed"])?) } else { None };
    let address = server.or_else(|| melba.as_ref().map(|m| m.address.clone())).ok_or("no server")?;
    let mut failed = Vec::new();
    for client in CLIENTS {
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
        return Err(format!("failed: {}; `cargo xtask clients` repeats it", failed.join(", ")));
    }
    melba.map_or(Ok(()), Melba::stop)
}
