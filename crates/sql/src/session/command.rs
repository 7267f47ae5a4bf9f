//! Whether a read-only transaction or a transaction block may run a statement.

use melba_parse::command::writing_command;
use melba_types::{Result, bail};
use pg_query::NodeEnum as N;
use pg_query::protobuf::{ClusterStmt, ReindexObjectType, VacuumStmt};

use super::maintenance::is_concurrent;
use super::transaction::{Block, prevent_in_block};

/// Raises PostgreSQL's errors for a command in the wrong kind of transaction.
pub fn check(node: &N, block: Block, read_only: bool) -> Result<()> {
    if read_only && let Some(command) = writing_command(node) {
        bail!(READ_ONLY_SQL_TRANSACTION, "cannot execute {command} in a read-only transaction");
    }
    match node {
        N::VacuumStmt(VacuumStmt { is_vacuumcmd: true, .. }) => prevent_in_block(block, "VACUUM"),
        N::ReindexStmt(s) if is_concurrent(s)? => prevent_in_block(block, "REINDEX CONCURRENTLY"),
        N::ReindexStmt(s) => match s.kind() {
            ReindexObjectType::ReindexObjectSchema => prevent_in_block(block, "REINDEX SCHEMA"),
            ReindexObjectType::ReindexObjectSystem => prevent_in_block(block, "REINDEX SYSTEM"),
            ReindexObjectType::ReindexObjectDatabase => prevent_in_block(block, "REINDEX DATABASE"),
            _ => Ok(()),
        },
        N::ClusterStmt(ClusterStmt { relation: None, .. }) => prevent_in_block(block, "CLUSTER"),
        N::CreatedbStmt(_) => prevent_in_block(block, "CREATE DATABASE"),
        N::DropdbStmt(_) => prevent_in_block(block, "DROP DATABASE"),
        N::AlterSystemStmt(_) => prevent_in_block(block, "ALTER SYSTEM"),
        N::CreateTableSpaceStmt(_) => prevent_in_block(block, "CREATE TABLESPACE"),
        N::IndexStmt(s) if s.concurrent => prevent_in_block(block, "CREATE INDEX CONCURRENTLY"),
        N::DropStmt(s) if s.concurrent => prevent_in_block(block, "DROP INDEX CONCURRENTLY"),
        N::LockStmt(_) if block == Block::None => {
            bail!(NO_ACTIVE_SQL_TRANSACTION, "LOCK TABLE can only be used in transaction blocks")
        }
        _ => Ok(()),
    }
}
