//! Utility statements that define objects: they change the catalog and the storage of its objects.
//!
//! Each statement reads the transaction's catalog, takes the locks PostgreSQL takes, and records `Object` changes in the
//! `Tx`; nothing is visible to others before the commit. A clause that is not supported is refused with 0A000.

mod access;
mod aggregate;
mod alter_column;
mod alter_constraint;
mod alter_kind;
mod alter_table;
mod attach;
mod cast;
mod collation;
mod column_constraints;
mod comment;
mod constraint;
mod context;
mod create_table;
mod database;
mod default_privileges;
mod define;
mod dependents;
mod domain;
mod domain_columns;
mod drop;
mod exclusion;
mod expression;
mod extension;
mod fill_index;
mod grant;
mod index;
mod index_marks;
mod inherit;
mod large_object;
mod like;
mod move_schema;
mod naming;
mod on_commit;
mod operator;
mod owned;
mod partition;
mod partition_foreign_key;
mod partition_identity;
mod partition_index;
mod persistence;
mod policy;
mod range;
mod recurse;
mod referenced_partition;
mod rename;
mod retype;
mod rewrite;
mod role;
mod routine;
mod schema;
mod sequence;
mod storage_parameters;
mod stored_text;
mod transition;
mod trigger;
mod truncate;
mod typed_table;
mod types;
mod view;

pub use context::{Ddl, undefined_relation};
pub use index::plural;
pub use on_commit::OnCommit;
pub use storage_parameters::ParametersOf;
pub use view::deparse_with_names;

use melba_engine::RelationLockMode;
use melba_types::Result;
use pg_query::protobuf::node::Node as N;

/// A row for each statement of this crate: `statement(s): the lock it takes on the relations it names => its method`.
macro_rules! statements {
    ($($node:ident($s:pat): $lock:expr => $method:path;)*) => {
        /// Runs a defining statement; `None` when the statement belongs to another crate.
        ///
        /// # Errors
        /// As PostgreSQL's, with 0A000 for unsupported clauses.
        pub fn execute(ddl: &Ddl<'_>, statement: &N) -> Option<Result<()>> {
            use RelationLockMode::*;
            #[allow(unused_variables)]
            let lock = match statement {
                $(N::$node($s) => $lock,)*
                _ => return None,
            };
            let ddl = Ddl { lock, ..*ddl };
            match statement {
                $(N::$node(s) => Some($method(&ddl, s)),)*
                _ => None,
            }
        }

        /// The statements that have a row, by the names of their nodes.
        pub const STATEMENTS: &[&str] = &[$(stringify!($node)),*];
    };
}

/// The lock of statements that name no relation, or that lock it where they look it up.
const UNNAMED: RelationLockMode = RelationLockMode::AccessExclusive;

statements! {
    // Tables and their parts
    CreateStmt(_): UNNAMED => Ddl::create_table;
    AlterTableStmt(s): alter_table::lock_of(s) => Ddl::alter_table;
    IndexStmt(_): Share => Ddl::create_index;
    ViewStmt(_): AccessExclusive => Ddl::create_view;
    CreateSeqStmt(_): UNNAMED => Ddl::create_sequence_statement;
    AlterSeqStmt(_): ShareRowExclusive => Ddl::alter_sequence;
    CreateTrigStmt(_): ShareRowExclusive => Ddl::create_trigger;
    CreatePolicyStmt(_): AccessExclusive => Ddl::create_policy;
    AlterPolicyStmt(_): AccessExclusive => Ddl::alter_policy;
    TruncateStmt(_): AccessExclusive => Ddl::truncate;

    // Objects of any kind
    DropStmt(_): AccessExclusive => Ddl::drop_objects;
    RenameStmt(_): AccessExclusive => Ddl::rename;
    AlterOwnerStmt(_): UNNAMED => Ddl::alter_owner;
    AlterObjectSchemaStmt(_): AccessExclusive => Ddl::alter_schema;
    CommentStmt(_): ShareUpdateExclusive => Ddl::comment;
    SecLabelStmt(_): UNNAMED => Ddl::label;
    DefineStmt(_): UNNAMED => Ddl::define;

    // Functions, types, operators
    CreateFunctionStmt(_): UNNAMED => Ddl::create_function;
    AlterFunctionStmt(_): UNNAMED => Ddl::alter_function;
    CreateEnumStmt(_): UNNAMED => Ddl::create_enum;
    AlterEnumStmt(_): UNNAMED => Ddl::alter_enum;
    CreateRangeStmt(_): UNNAMED => Ddl::create_range;
    CompositeTypeStmt(_): UNNAMED => Ddl::create_composite;
    CreateDomainStmt(_): UNNAMED => Ddl::create_domain;
    AlterDomainStmt(_): UNNAMED => Ddl::alter_domain;
    CreateCastStmt(_): UNNAMED => Ddl::create_cast;
    AlterOperatorStmt(_): UNNAMED => Ddl::alter_operator;
    AlterCollationStmt(_): UNNAMED => Ddl::refresh_collation;

    // Schemas, extensions, databases
    CreateSchemaStmt(_): UNNAMED => Ddl::create_schema;
    CreateExtensionStmt(_): UNNAMED => Ddl::create_extension;
    AlterExtensionStmt(_): UNNAMED => Ddl::update_extension;
    AlterExtensionContentsStmt(_): UNNAMED => Ddl::change_extension_members;
    CreatedbStmt(_): UNNAMED => Ddl::create_database;
    AlterDatabaseStmt(_): UNNAMED => Ddl::alter_database;
    AlterDatabaseSetStmt(_): UNNAMED => Ddl::alter_database_set;
    DropdbStmt(_): UNNAMED => Ddl::drop_database;

    // Roles and privileges
    CreateRoleStmt(_): UNNAMED => Ddl::create_role;
    AlterRoleStmt(_): UNNAMED => Ddl::alter_role;
    AlterRoleSetStmt(_): UNNAMED => Ddl::alter_role_set;
    DropRoleStmt(_): UNNAMED => Ddl::drop_role;
    DropOwnedStmt(_): UNNAMED => Ddl::drop_owned;
    ReassignOwnedStmt(_): UNNAMED => Ddl::reassign_owned;
    GrantStmt(_): ShareUpdateExclusive => Ddl::grant;
    GrantRoleStmt(_): UNNAMED => Ddl::grant_role;
    AlterDefaultPrivilegesStmt(_): UNNAMED => Ddl::alter_default_privileges;
}
