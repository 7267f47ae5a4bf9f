//! Whether a read-only transaction or a transaction block may run a statement.

use melba_parse::command::writing_command;
use melba_types::{Result, bail, err};
use pg_query::NodeEnum as N;
use pg_query::protobuf::{ClusterStmt, ReindexObjectType, VacuumStmt};

use super::maintenance::is_concurrent;
use super::transaction::{Block, prevent_in_block};

/// Raises PostgreSQL's errors for a command in the wrong kind of transaction.
pub fn check(node: &N, block: Block, read_only: bool) -> Result<()> {
    if read_only && let Some(command) = writing_command(node) {
        bail!(READ_ONLY_SQL_TRANSACTION, "cannot execute {command} in a read-only transaction");
    }
    match only_outside_block(node)? {
        Some(command) => prevent_in_block(block, command),
        None if matches!(node, N::LockStmt(_)) && block == Block::None => {
            bail!(NO_ACTIVE_SQL_TRANSACTION, "LOCK TABLE can only be used in transaction blocks")
        }
        None => Ok(()),
    }
}

/// # Errors
/// 25001 for a command that a function cannot run.
pub fn check_in_routine(node: &N) -> Result<()> {
    match only_outside_block(node)? {
        Some(command) => Err(err!(ACTIVE_SQL_TRANSACTION, "{command} cannot be executed from a function")),
        None => Ok(()),
    }
}

/// The name of a command that cannot run inside a transaction block.
fn only_outside_block(node: &N) -> Result<Option<&'static str>> {
    Ok(match node {
        N::VacuumStmt(VacuumStmt { is_vacuumcmd: true, .. }) => Some("VACUUM"),
        N::ReindexStmt(s) if is_concurrent(s)? => Some("REINDEX CONCURRENTLY"),
        N::ReindexStmt(s) => match s.kind() {
            ReindexObjectType::ReindexObjectSchema => Some("REINDEX SCHEMA"),
            ReindexObjectType::ReindexObjectSystem => Some("REINDEX SYSTEM"),
            ReindexObjectType::ReindexObjectDatabase => Some("REINDEX DATABASE"),
            _ => None,
        },
        N::ClusterStmt(ClusterStmt { relation: None, .. }) => Some("CLUSTER"),
        N::CreatedbStmt(_) => Some("CREATE DATABASE"),
        N::DropdbStmt(_) => Some("DROP DATABASE"),
        N::AlterSystemStmt(_) => Some("ALTER SYSTEM"),
        N::CreateTableSpaceStmt(_) => Some("CREATE TABLESPACE"),
        N::IndexStmt(s) if s.concurrent => Some("CREATE INDEX CONCURRENTLY"),
        N::DropStmt(s) if s.concurrent => Some("DROP INDEX CONCURRENTLY"),
        _ => None,
    })
}
