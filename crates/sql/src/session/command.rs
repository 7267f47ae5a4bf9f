//! What kind of command a statement is: whether a read-only transaction or a transaction block may run it.

use melba_types::{Result, bail};
use pg_query::NodeEnum as N;
use pg_query::protobuf::{ClusterStmt, ObjectType, ReindexObjectType, TransactionStmt, TransactionStmtKind, VacuumStmt};

use super::maintenance::is_concurrent;
use super::transaction::{Block, prevent_in_block};

/// The command as PostgreSQL names it in "cannot execute ... in a read-only transaction"; `None`: it changes nothing.
/// Changes to temporary tables, which PostgreSQL allows there, are refused as well.
pub fn writing_command(node: &N) -> Option<&'static str> {
    Some(match node {
        N::InsertStmt(_) => "INSERT",
        N::UpdateStmt(_) => "UPDATE",
        N::DeleteStmt(_) => "DELETE",
        N::MergeStmt(_) => "MERGE",
        N::CopyStmt(copy) if copy.is_from => "COPY FROM",
        N::SelectStmt(select) if select.into_clause.is_some() => "SELECT INTO",
        N::SelectStmt(select) if !select.locking_clause.is_empty() => "SELECT FOR UPDATE",
        N::CreateTableAsStmt(s) if s.objtype() == ObjectType::ObjectMatview => "CREATE MATERIALIZED VIEW",
        N::CreateTableAsStmt(_) => "CREATE TABLE AS",
        N::RefreshMatViewStmt(_) => "REFRESH MATERIALIZED VIEW",
        N::CreateStmt(_) => "CREATE TABLE",
        N::IndexStmt(_) => "CREATE INDEX",
        N::ViewStmt(_) => "CREATE VIEW",
        N::CreateSeqStmt(_) => "CREATE SEQUENCE",
        N::AlterSeqStmt(_) => "ALTER SEQUENCE",
        N::CreateSchemaStmt(_) => "CREATE SCHEMA",
        N::CreateRoleStmt(_) => "CREATE ROLE",
        N::AlterRoleStmt(_) | N::AlterRoleSetStmt(_) => "ALTER ROLE",
        N::DropRoleStmt(_) => "DROP ROLE",
        N::CreatedbStmt(_) => "CREATE DATABASE",
        N::DropdbStmt(_) => "DROP DATABASE",
        N::AlterDatabaseSetStmt(_) | N::AlterDatabaseStmt(_) => "ALTER DATABASE",
        N::CreateEnumStmt(_) | N::CompositeTypeStmt(_) | N::CreateRangeStmt(_) => "CREATE TYPE",
        N::AlterEnumStmt(_) => "ALTER TYPE",
        N::CreateDomainStmt(_) => "CREATE DOMAIN",
        N::AlterDomainStmt(_) => "ALTER DOMAIN",
        N::CreateFunctionStmt(s) if s.is_procedure => "CREATE PROCEDURE",
        N::CreateFunctionStmt(_) => "CREATE FUNCTION",
        N::AlterFunctionStmt(_) => "ALTER FUNCTION",
        N::CreateTrigStmt(_) => "CREATE TRIGGER",
        N::AlterTableStmt(_) => "ALTER TABLE",
        N::RenameStmt(s) => rename_command(s.rename_type()),
        N::AlterOwnerStmt(_) | N::AlterObjectSchemaStmt(_) => "ALTER",
        N::DropStmt(s) => drop_command(s.remove_type()),
        N::TruncateStmt(_) => "TRUNCATE TABLE",
        N::CommentStmt(_) => "COMMENT",
        N::GrantStmt(s) => {
            if s.is_grant {
                "GRANT"
            } else {
                "REVOKE"
            }
        }
        N::GrantRoleStmt(s) => {
            if s.is_grant {
                "GRANT ROLE"
            } else {
                "REVOKE ROLE"
            }
        }
        _ => return None,
    })
}

fn rename_command(ty: ObjectType) -> &'static str {
    match ty {
        ObjectType::ObjectIndex => "ALTER INDEX",
        ObjectType::ObjectView => "ALTER VIEW",
        ObjectType::ObjectSequence => "ALTER SEQUENCE",
        ObjectType::ObjectSchema => "ALTER SCHEMA",
        _ => "ALTER TABLE",
    }
}

fn drop_command(ty: ObjectType) -> &'static str {
    match ty {
        ObjectType::ObjectIndex => "DROP INDEX",
        ObjectType::ObjectView => "DROP VIEW",
        ObjectType::ObjectMatview => "DROP MATERIALIZED VIEW",
        ObjectType::ObjectSequence => "DROP SEQUENCE",
        ObjectType::ObjectSchema => "DROP SCHEMA",
        ObjectType::ObjectType => "DROP TYPE",
        ObjectType::ObjectDomain => "DROP DOMAIN",
        ObjectType::ObjectFunction => "DROP FUNCTION",
        ObjectType::ObjectProcedure => "DROP PROCEDURE",
        ObjectType::ObjectRoutine => "DROP ROUTINE",
        ObjectType::ObjectTrigger => "DROP TRIGGER",
        _ => "DROP TABLE",
    }
}

/// A statement's command tag, where it is known without running it.
pub fn statement_tag(node: &N) -> &'static str {
    match node {
        N::TransactionStmt(s) => transaction_command(s),
        N::VariableSetStmt(_) => "SET",
        N::CallStmt(_) => "CALL",
        N::CopyStmt(_) => "COPY",
        node => writing_command(node).unwrap_or("statement"),
    }
}

/// A transaction statement's command tag.
pub fn transaction_command(s: &TransactionStmt) -> &'static str {
    use TransactionStmtKind as Kind;
    match Kind::try_from(s.kind).unwrap_or(Kind::Undefined) {
        Kind::TransStmtStart => "START TRANSACTION",
        Kind::TransStmtCommit => "COMMIT",
        Kind::TransStmtRollback | Kind::TransStmtRollbackTo => "ROLLBACK",
        Kind::TransStmtSavepoint => "SAVEPOINT",
        Kind::TransStmtRelease => "RELEASE",
        Kind::TransStmtPrepare => "PREPARE TRANSACTION",
        Kind::TransStmtCommitPrepared => "COMMIT PREPARED",
        Kind::TransStmtRollbackPrepared => "ROLLBACK PREPARED",
        _ => "BEGIN",
    }
}

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
