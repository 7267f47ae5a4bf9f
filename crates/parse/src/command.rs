//! The kind of a statement's command, and PostgreSQL's name for it.

use pg_query::NodeEnum as N;
use pg_query::protobuf::{ObjectType, TransactionStmt, TransactionStmtKind};

/// Statements that are planned: everything else is a utility statement.
pub fn is_query(node: &N) -> bool {
    match node {
        N::SelectStmt(s) => s.into_clause.is_none(),
        N::InsertStmt(_) | N::UpdateStmt(_) | N::DeleteStmt(_) | N::MergeStmt(_) => true,
        _ => false,
    }
}

/// Statements about the session: its transaction, settings, prepared statements and cursors.
pub fn is_session_statement(node: &N) -> bool {
    matches!(
        node,
        N::TransactionStmt(_)
            | N::VariableSetStmt(_)
            | N::VariableShowStmt(_)
            | N::PrepareStmt(_)
            | N::ExecuteStmt(_)
            | N::DeallocateStmt(_)
            | N::DiscardStmt(_)
            | N::DeclareCursorStmt(_)
            | N::FetchStmt(_)
            | N::ClosePortalStmt(_)
            | N::AlterSystemStmt(_)
    )
}

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
        N::CreateExtensionStmt(_) => "CREATE EXTENSION",
        N::AlterExtensionStmt(_) | N::AlterExtensionContentsStmt(_) => "ALTER EXTENSION",
        N::CreateRoleStmt(_) => "CREATE ROLE",
        N::AlterRoleStmt(_) | N::AlterRoleSetStmt(_) => "ALTER ROLE",
        N::DropRoleStmt(_) => "DROP ROLE",
        N::DropOwnedStmt(_) => "DROP OWNED",
        N::ReassignOwnedStmt(_) => "REASSIGN OWNED",
        N::CreatedbStmt(_) => "CREATE DATABASE",
        N::DropdbStmt(_) => "DROP DATABASE",
        N::AlterDatabaseSetStmt(_) | N::AlterDatabaseStmt(_) => "ALTER DATABASE",
        N::CreateEnumStmt(_) | N::CompositeTypeStmt(_) | N::CreateRangeStmt(_) => "CREATE TYPE",
        N::AlterEnumStmt(_) => "ALTER TYPE",
        N::CreateDomainStmt(_) => "CREATE DOMAIN",
        N::AlterDomainStmt(_) => "ALTER DOMAIN",
        N::DefineStmt(s) if s.kind() == ObjectType::ObjectOperator => "CREATE OPERATOR",
        N::DefineStmt(s) if s.kind() == ObjectType::ObjectCollation => "CREATE COLLATION",
        N::AlterCollationStmt(_) => "ALTER COLLATION",
        N::AlterOperatorStmt(_) => "ALTER OPERATOR",
        N::CreateCastStmt(_) => "CREATE CAST",
        N::DefineStmt(s) if s.kind() == ObjectType::ObjectAggregate => "CREATE AGGREGATE",
        N::CreateFunctionStmt(s) if s.is_procedure => "CREATE PROCEDURE",
        N::CreateFunctionStmt(_) => "CREATE FUNCTION",
        N::AlterFunctionStmt(_) => "ALTER FUNCTION",
        N::CreateTrigStmt(_) => "CREATE TRIGGER",
        N::CreatePolicyStmt(_) => "CREATE POLICY",
        N::AlterPolicyStmt(_) => "ALTER POLICY",
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
        ObjectType::ObjectTrigger => "ALTER TRIGGER",
        ObjectType::ObjectPolicy => "ALTER POLICY",
        ObjectType::ObjectCollation => "ALTER COLLATION",
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
        ObjectType::ObjectExtension => "DROP EXTENSION",
        ObjectType::ObjectDomain => "DROP DOMAIN",
        ObjectType::ObjectFunction => "DROP FUNCTION",
        ObjectType::ObjectProcedure => "DROP PROCEDURE",
        ObjectType::ObjectRoutine => "DROP ROUTINE",
        ObjectType::ObjectAggregate => "DROP AGGREGATE",
        ObjectType::ObjectCast => "DROP CAST",
        ObjectType::ObjectCollation => "DROP COLLATION",
        ObjectType::ObjectOperator => "DROP OPERATOR",
        ObjectType::ObjectTrigger => "DROP TRIGGER",
        ObjectType::ObjectPolicy => "DROP POLICY",
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
