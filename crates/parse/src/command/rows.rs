//! The table of statements: a row for each kind that is run.

use pg_query::NodeEnum as N;
use pg_query::protobuf::{
    AlterTableStmt, DiscardMode, DropStmt, FetchStmt, LockClauseStrength, Node, ObjectType, ReindexObjectType, ReindexStmt,
    RenameStmt, SelectStmt, TransactionStmt, TransactionStmtKind, VariableSetKind,
};

use super::Allowed::{self, *};
use super::Effect::{self, *};
use super::Logged::{self, *};
use super::RunBy::{self, *};
use super::objects::{alter, create, drop};
use crate::nodes::{option_bool, options};

/// DeclareCursorStmt.options: WITH HOLD.
const HOLD: i32 = 0x20;

/// Makes a function of each column; a column's expression may read the statement.
macro_rules! statements {
    ($($node:ident($s:pat): $run_by:expr, $tag:expr, $effect:expr, $logged:expr, $allowed:expr;)*) => {
        /// The part of the server that runs the statement.
        #[allow(unused_variables)]
        pub fn run_by(node: &N) -> RunBy {
            match node {
                $(N::$node($s) => $run_by,)*
                _ => Utility,
            }
        }

        /// PostgreSQL's command tag, without the number of rows.
        #[allow(unused_variables)]
        pub fn tag(node: &N) -> &'static str {
            match node {
                $(N::$node($s) => $tag,)*
                _ => "statement",
            }
        }

        /// Whether a read-only transaction may run the statement.
        #[allow(unused_variables)]
        pub(super) fn effect(node: &N) -> Effect {
            match node {
                $(N::$node($s) => $effect,)*
                _ => Reads,
            }
        }

        /// From which value of log_statement on the statement is logged.
        #[allow(unused_variables)]
        pub fn logged(node: &N) -> Logged {
            match node {
                $(N::$node($s) => $logged,)*
                _ => Ddl,
            }
        }

        /// Where the statement is allowed.
        #[allow(unused_variables)]
        pub fn allowed(node: &N) -> Allowed {
            match node {
                $(N::$node($s) => $allowed,)*
                _ => Anywhere,
            }
        }
    };
}

statements! {
    // Queries
    SelectStmt(s): select_run_by(s), select_tag(s), select_effect(s), select_logged(s), Anywhere;
    InsertStmt(_): Executor, "INSERT", Changes, Mod, Anywhere;
    UpdateStmt(_): Executor, "UPDATE", Changes, Mod, Anywhere;
    DeleteStmt(_): Executor, "DELETE", Changes, Mod, Anywhere;
    MergeStmt(_): Executor, "MERGE", Changes, Mod, Anywhere;

    // The session
    TransactionStmt(s): Session, transaction_tag(s), Reads, All, transaction_allowed(s);
    VariableSetStmt(s): Session, if is_reset(s.kind()) { "RESET" } else { "SET" }, Reads, All, Anywhere;
    VariableShowStmt(_): Session, "SHOW", Reads, All, Anywhere;
    AlterSystemStmt(_): Session, "ALTER SYSTEM", Reads, Ddl, OwnTransaction("ALTER SYSTEM");
    PrepareStmt(_): Session, "PREPARE", Reads, All, Anywhere;
    ExecuteStmt(_): Session, "EXECUTE", Reads, All, Anywhere;
    DeallocateStmt(s): Session, if s.isall { "DEALLOCATE ALL" } else { "DEALLOCATE" }, Reads, All, Anywhere;
    DiscardStmt(s): Session, discard_tag(s.target()), Reads, All, discard_allowed(s.target());
    DeclareCursorStmt(s): Session, "DECLARE CURSOR", Reads, All,
        if s.options & HOLD == 0 { Block("DECLARE CURSOR") } else { Anywhere };
    FetchStmt(s): Session, fetch_tag(s), Reads, All, Anywhere;
    ClosePortalStmt(s): Session, if s.portalname.is_empty() { "CLOSE CURSOR ALL" } else { "CLOSE CURSOR" }, Reads, All, Anywhere;

    // Statements that run others, whose own rows count
    CallStmt(_): Utility, "CALL", Reads, All, Anywhere;
    DoStmt(_): Utility, "DO", Reads, All, Anywhere;
    ExplainStmt(_): Utility, "EXPLAIN", Reads, All, Anywhere;

    // Rows
    CopyStmt(s): Utility, "COPY", if s.is_from { ChangesAs("COPY FROM") } else { Reads }, if s.is_from { Mod } else { All },
        Anywhere;
    CreateTableAsStmt(s): Utility, create_as_tag(s.objtype()), Changes, Ddl, Anywhere;
    RefreshMatViewStmt(_): Utility, "REFRESH MATERIALIZED VIEW", Changes, Ddl, Anywhere;
    TruncateStmt(_): Utility, "TRUNCATE TABLE", Changes, Mod, Anywhere;

    // Locks, checks, notifications, maintenance
    LockStmt(_): Utility, "LOCK TABLE", Reads, All, Block("LOCK TABLE");
    ConstraintsSetStmt(_): Utility, "SET CONSTRAINTS", Reads, All, Anywhere;
    NotifyStmt(_): Utility, "NOTIFY", Reads, All, Anywhere;
    ListenStmt(_): Utility, "LISTEN", Reads, All, Anywhere;
    UnlistenStmt(_): Utility, "UNLISTEN", Reads, All, Anywhere;
    CheckPointStmt(_): Utility, "CHECKPOINT", Reads, All, Anywhere;
    ReindexStmt(s): Utility, "REINDEX", Reads, All, reindex_allowed(s);
    ClusterStmt(s): Utility, "CLUSTER", Reads, Ddl, if s.relation.is_none() { OwnTransaction("CLUSTER") } else { Anywhere };
    VacuumStmt(s): Utility, if s.is_vacuumcmd { "VACUUM" } else { "ANALYZE" }, Reads, All,
        if s.is_vacuumcmd { OwnTransaction("VACUUM") } else { Anywhere };

    // Tables and their parts
    CreateStmt(_): Utility, "CREATE TABLE", Changes, Ddl, Anywhere;
    AlterTableStmt(s): Utility, alter(s.objtype()), Changes, Ddl, alter_table_allowed(s);
    IndexStmt(s): Utility, "CREATE INDEX", Changes, Ddl,
        if s.concurrent { OwnTransaction("CREATE INDEX CONCURRENTLY") } else { Anywhere };
    ViewStmt(_): Utility, "CREATE VIEW", Changes, Ddl, Anywhere;
    CreateSeqStmt(_): Utility, "CREATE SEQUENCE", Changes, Ddl, Anywhere;
    AlterSeqStmt(_): Utility, "ALTER SEQUENCE", Changes, Ddl, Anywhere;
    CreateTrigStmt(_): Utility, "CREATE TRIGGER", Changes, Ddl, Anywhere;
    CreatePolicyStmt(_): Utility, "CREATE POLICY", Changes, Ddl, Anywhere;
    AlterPolicyStmt(_): Utility, "ALTER POLICY", Changes, Ddl, Anywhere;
    CreateEventTrigStmt(_): Utility, "CREATE EVENT TRIGGER", Changes, Ddl, Anywhere;
    AlterEventTrigStmt(_): Utility, "ALTER EVENT TRIGGER", Changes, Ddl, Anywhere;
    CreateStatsStmt(_): Utility, "CREATE STATISTICS", Changes, Ddl, Anywhere;
    AlterStatsStmt(_): Utility, "ALTER STATISTICS", Changes, Ddl, Anywhere;

    // Objects of any kind
    DropStmt(s): Utility, drop(s.remove_type()), Changes, Ddl, drop_allowed(s);
    RenameStmt(s): Utility, alter(renamed(s)), Changes, Ddl, Anywhere;
    AlterOwnerStmt(s): Utility, alter(s.object_type()), Changes, Ddl, Anywhere;
    AlterObjectSchemaStmt(s): Utility, alter(s.object_type()), Changes, Ddl, Anywhere;
    CommentStmt(_): Utility, "COMMENT", Changes, Ddl, Anywhere;
    SecLabelStmt(_): Utility, "SECURITY LABEL", Changes, Ddl, Anywhere;
    DefineStmt(s): Utility, create(s.kind()), Changes, Ddl, Anywhere;

    // Functions, types, operators
    CreateFunctionStmt(s): Utility, if s.is_procedure { "CREATE PROCEDURE" } else { "CREATE FUNCTION" }, Changes, Ddl, Anywhere;
    AlterFunctionStmt(s): Utility, alter(s.objtype()), Changes, Ddl, Anywhere;
    CreateEnumStmt(_): Utility, "CREATE TYPE", Changes, Ddl, Anywhere;
    AlterEnumStmt(_): Utility, "ALTER TYPE", Changes, Ddl, Anywhere;
    CreateRangeStmt(_): Utility, "CREATE TYPE", Changes, Ddl, Anywhere;
    CompositeTypeStmt(_): Utility, "CREATE TYPE", Changes, Ddl, Anywhere;
    CreateDomainStmt(_): Utility, "CREATE DOMAIN", Changes, Ddl, Anywhere;
    AlterDomainStmt(_): Utility, "ALTER DOMAIN", Changes, Ddl, Anywhere;
    CreateCastStmt(_): Utility, "CREATE CAST", Changes, Ddl, Anywhere;
    AlterOperatorStmt(_): Utility, "ALTER OPERATOR", Changes, Ddl, Anywhere;
    AlterCollationStmt(_): Utility, "ALTER COLLATION", Changes, Ddl, Anywhere;

    // Schemas, extensions, databases
    CreateSchemaStmt(_): Utility, "CREATE SCHEMA", Changes, Ddl, Anywhere;
    CreateExtensionStmt(_): Utility, "CREATE EXTENSION", Changes, Ddl, Anywhere;
    AlterExtensionStmt(_): Utility, "ALTER EXTENSION", Changes, Ddl, Anywhere;
    AlterExtensionContentsStmt(_): Utility, "ALTER EXTENSION", Changes, Ddl, Anywhere;
    CreatedbStmt(_): Utility, "CREATE DATABASE", Changes, Ddl, OwnTransaction("CREATE DATABASE");
    AlterDatabaseStmt(_): Utility, "ALTER DATABASE", Changes, Ddl, Anywhere;
    AlterDatabaseSetStmt(_): Utility, "ALTER DATABASE", Changes, Ddl, Anywhere;
    DropdbStmt(_): Utility, "DROP DATABASE", Changes, Ddl, OwnTransaction("DROP DATABASE");

    // Roles and privileges
    CreateRoleStmt(_): Utility, "CREATE ROLE", Changes, Ddl, Anywhere;
    AlterRoleStmt(_): Utility, "ALTER ROLE", Changes, Ddl, Anywhere;
    AlterRoleSetStmt(_): Utility, "ALTER ROLE", Changes, Ddl, Anywhere;
    DropRoleStmt(_): Utility, "DROP ROLE", Changes, Ddl, Anywhere;
    DropOwnedStmt(_): Utility, "DROP OWNED", Changes, Ddl, Anywhere;
    ReassignOwnedStmt(_): Utility, "REASSIGN OWNED", Changes, Ddl, Anywhere;
    GrantStmt(s): Utility, if s.is_grant { "GRANT" } else { "REVOKE" }, Changes, Ddl, Anywhere;
    GrantRoleStmt(s): Utility, if s.is_grant { "GRANT ROLE" } else { "REVOKE ROLE" }, Changes, Ddl, Anywhere;
    AlterDefaultPrivilegesStmt(_): Utility, "ALTER DEFAULT PRIVILEGES", Changes, Ddl, Anywhere;

    // Not supported yet
    CreateTableSpaceStmt(_): Utility, "CREATE TABLESPACE", Changes, Ddl, OwnTransaction("CREATE TABLESPACE");
    CreateAmStmt(_): Utility, "CREATE ACCESS METHOD", Changes, Ddl, Anywhere;
    CreateConversionStmt(_): Utility, "CREATE CONVERSION", Changes, Ddl, Anywhere;
    CreateOpClassStmt(_): Utility, "CREATE OPERATOR CLASS", Changes, Ddl, Anywhere;
    CreateOpFamilyStmt(_): Utility, "CREATE OPERATOR FAMILY", Changes, Ddl, Anywhere;
    AlterOpFamilyStmt(_): Utility, "ALTER OPERATOR FAMILY", Changes, Ddl, Anywhere;
    AlterTypeStmt(_): Utility, "ALTER TYPE", Changes, Ddl, Anywhere;
    CreatePlangStmt(_): Utility, "CREATE LANGUAGE", Changes, Ddl, Anywhere;
    CreateTransformStmt(_): Utility, "CREATE TRANSFORM", Changes, Ddl, Anywhere;
    RuleStmt(_): Utility, "CREATE RULE", Changes, Ddl, Anywhere;
    AlterTsdictionaryStmt(_): Utility, "ALTER TEXT SEARCH DICTIONARY", Changes, Ddl, Anywhere;
    AlterTsconfigurationStmt(_): Utility, "ALTER TEXT SEARCH CONFIGURATION", Changes, Ddl, Anywhere;
    CreateFdwStmt(_): Utility, "CREATE FOREIGN DATA WRAPPER", Changes, Ddl, Anywhere;
    AlterFdwStmt(_): Utility, "ALTER FOREIGN DATA WRAPPER", Changes, Ddl, Anywhere;
    CreateForeignServerStmt(_): Utility, "CREATE SERVER", Changes, Ddl, Anywhere;
    AlterForeignServerStmt(_): Utility, "ALTER SERVER", Changes, Ddl, Anywhere;
    CreateForeignTableStmt(_): Utility, "CREATE FOREIGN TABLE", Changes, Ddl, Anywhere;
    ImportForeignSchemaStmt(_): Utility, "IMPORT FOREIGN SCHEMA", Changes, Ddl, Anywhere;
    CreateUserMappingStmt(_): Utility, "CREATE USER MAPPING", Changes, Ddl, Anywhere;
    AlterUserMappingStmt(_): Utility, "ALTER USER MAPPING", Changes, Ddl, Anywhere;
    DropUserMappingStmt(_): Utility, "DROP USER MAPPING", Changes, Ddl, Anywhere;
    CreatePublicationStmt(_): Utility, "CREATE PUBLICATION", Changes, Ddl, Anywhere;
    AlterPublicationStmt(_): Utility, "ALTER PUBLICATION", Changes, Ddl, Anywhere;
    CreateSubscriptionStmt(_): Utility, "CREATE SUBSCRIPTION", Changes, Ddl, Anywhere;
    AlterSubscriptionStmt(_): Utility, "ALTER SUBSCRIPTION", Changes, Ddl, Anywhere;
    DropSubscriptionStmt(_): Utility, "DROP SUBSCRIPTION", Changes, Ddl, Anywhere;
    AlterTableSpaceOptionsStmt(_): Utility, "ALTER TABLESPACE", Changes, Ddl, Anywhere;
    AlterDatabaseRefreshCollStmt(_): Utility, "ALTER DATABASE", Changes, Ddl, Anywhere;
    AlterTableMoveAllStmt(s): Utility, alter(s.objtype()), Changes, Ddl, Anywhere;
    AlterObjectDependsStmt(s): Utility, alter(s.object_type()), Changes, Ddl, Anywhere;
    DropTableSpaceStmt(_): Utility, "DROP TABLESPACE", Changes, Ddl, OwnTransaction("DROP TABLESPACE");
    LoadStmt(_): Utility, "LOAD", Reads, All, Anywhere;
}

fn select_run_by(s: &SelectStmt) -> RunBy {
    if s.into_clause.is_some() { Utility } else { Executor }
}

fn select_tag(s: &SelectStmt) -> &'static str {
    if s.into_clause.is_some() { "SELECT INTO" } else { "SELECT" }
}

fn select_logged(s: &SelectStmt) -> Logged {
    if s.into_clause.is_some() { Ddl } else { All }
}

fn select_effect(s: &SelectStmt) -> Effect {
    if s.into_clause.is_some() {
        return Changes;
    }
    let Some(N::LockingClause(lock)) = s.locking_clause.first().and_then(|clause| clause.node.as_ref()) else { return Reads };
    ChangesAs(match lock.strength() {
        LockClauseStrength::LcsForkeyshare => "SELECT FOR KEY SHARE",
        LockClauseStrength::LcsForshare => "SELECT FOR SHARE",
        LockClauseStrength::LcsFornokeyupdate => "SELECT FOR NO KEY UPDATE",
        _ => "SELECT FOR UPDATE",
    })
}

fn transaction_tag(s: &TransactionStmt) -> &'static str {
    use TransactionStmtKind::*;
    match s.kind() {
        TransStmtStart => "START TRANSACTION",
        TransStmtCommit => "COMMIT",
        TransStmtRollback | TransStmtRollbackTo => "ROLLBACK",
        TransStmtSavepoint => "SAVEPOINT",
        TransStmtRelease => "RELEASE",
        TransStmtPrepare => "PREPARE TRANSACTION",
        TransStmtCommitPrepared => "COMMIT PREPARED",
        TransStmtRollbackPrepared => "ROLLBACK PREPARED",
        TransStmtBegin | Undefined => "BEGIN",
    }
}

/// SAVEPOINT and similar statements require a block of BEGIN, and check that themselves.
fn transaction_allowed(s: &TransactionStmt) -> Allowed {
    use TransactionStmtKind::*;
    match s.kind() {
        TransStmtCommit | TransStmtRollback | TransStmtRollbackTo | TransStmtPrepare => FailedBlock,
        TransStmtCommitPrepared => OwnTransaction("COMMIT PREPARED"),
        TransStmtRollbackPrepared => OwnTransaction("ROLLBACK PREPARED"),
        _ => Anywhere,
    }
}

fn is_reset(kind: VariableSetKind) -> bool {
    matches!(kind, VariableSetKind::VarReset | VariableSetKind::VarResetAll)
}

fn discard_tag(target: DiscardMode) -> &'static str {
    match target {
        DiscardMode::DiscardAll | DiscardMode::Undefined => "DISCARD ALL",
        DiscardMode::DiscardPlans => "DISCARD PLANS",
        DiscardMode::DiscardSequences => "DISCARD SEQUENCES",
        DiscardMode::DiscardTemp => "DISCARD TEMP",
    }
}

fn discard_allowed(target: DiscardMode) -> Allowed {
    if target == DiscardMode::DiscardAll { OwnTransaction("DISCARD ALL") } else { Anywhere }
}

fn fetch_tag(s: &FetchStmt) -> &'static str {
    if s.ismove { "MOVE" } else { "FETCH" }
}

fn create_as_tag(kind: ObjectType) -> &'static str {
    if kind == ObjectType::ObjectMatview { "CREATE MATERIALIZED VIEW" } else { "CREATE TABLE AS" }
}

/// The kind of object that is renamed, or to which a renamed column belongs.
fn renamed(s: &RenameStmt) -> ObjectType {
    if s.rename_type() == ObjectType::ObjectColumn { s.relation_type() } else { s.rename_type() }
}

fn drop_allowed(s: &DropStmt) -> Allowed {
    if s.concurrent { OwnTransaction("DROP INDEX CONCURRENTLY") } else { Anywhere }
}

fn alter_table_allowed(s: &AlterTableStmt) -> Allowed {
    let detaches_concurrently = |node: &Node| match &node.node {
        Some(N::AlterTableCmd(c)) => match c.def.as_ref().and_then(|def| def.node.as_ref()) {
            Some(N::PartitionCmd(part)) => part.concurrent,
            _ => false,
        },
        _ => false,
    };
    match s.cmds.iter().any(detaches_concurrently) {
        true => OwnTransaction("ALTER TABLE ... DETACH CONCURRENTLY"),
        false => Anywhere,
    }
}

fn reindex_allowed(s: &ReindexStmt) -> Allowed {
    // REINDEX itself refuses a value that is no boolean.
    let concurrently = options(&s.params).filter(|option| option.defname == "concurrently").last();
    if concurrently.is_some_and(|option| option_bool(option).unwrap_or(false)) {
        return OwnTransaction("REINDEX CONCURRENTLY");
    }
    match s.kind() {
        ReindexObjectType::ReindexObjectSchema => OwnTransaction("REINDEX SCHEMA"),
        ReindexObjectType::ReindexObjectSystem => OwnTransaction("REINDEX SYSTEM"),
        ReindexObjectType::ReindexObjectDatabase => OwnTransaction("REINDEX DATABASE"),
        _ => Anywhere,
    }
}
