//! `cargo xtask sqllogictest PATH`: a collection of sqllogictest files on Melba, checked by PostgreSQL where it is installed.

use std::process::Command;

use crate::compare::Postgres;
use crate::melba::{Address, Melba};
use crate::{cargo, root};

/// Runs files below `path`, as many as can be begun in `seconds`.
pub fn sqllogictest(path: &str, seconds: u32, server: Option<Address>, reference: Option<Address>) -> Result<(), String> {
    if path.is_empty() {
        return Err("sqllogictest needs a file or a folder; CONTRIBUTING.md says where collections are".to_owned());
    }
    cargo(&["build", "--quiet", "--package", "melba-testkit", "--bin", "sqllogictest"])?;
    let postgres = if reference.is_none() { Postgres::start()? } else { None };
    let reference = reference.or_else(|| postgres.as_ref().map(|p| p.address.clone()));
    let melba = if server.is_none() { Some(Melba::fresh("sqllogictest")?) } else { None };
    let server = server.or_else(|| melba.as_ref().map(|m| m.address.clone())).ok_or("no server")?;
    let mut runner = Command::new(root().join("target/debug/sqllogictest"));
    runner.args([server.text(), reference.map_or("-".to_owned(), |r| r.text()), seconds.to_string(), path.to_owned()]);
    let status = runner.status().map_err(|e| format!("sqllogictest: {e}"))?;
    drop(postgres);
    if !status.success() {
        return Err("sqllogictest failed".to_owned());
    }
    melba.map_or(Ok(()), Melba::stop)
}
