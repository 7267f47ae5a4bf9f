//! The statements of this crate, with their locks and functions.

use melba_engine::RelationLockMode;
use melba_types::Result;
use pg_query::protobuf::node::Node as N;

use melba_definition::context::Ddl;
use melba_relation::{index, operator_class, policy, rule, sequence, statistics, table, trigger, view};
use melba_routine::{create, operator};

use crate::{
    alter_routine, alter_table, collation, comment, conversion, database, define, drop, event_trigger, extension,
    extension_members, foreign, move_schema, owned, owner, plain, privileges, publication, rename, role, schema, text_search,
    types,
};

/// A row for each statement of this crate: `statement(s): the lock it takes on the relations it names => its function`.
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
            let ddl = ddl.with_target_lock(lock);
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
    CreateStmt(_): UNNAMED => table::create::create_table;
    AlterTableStmt(s): alter_table::lock_of(s) => alter_table::alter_table;
    IndexStmt(s): index::create::lock_of(s) => index::create::create_index;
    ViewStmt(_): AccessExclusive => view::create_view;
    CreateSeqStmt(_): UNNAMED => sequence::create_sequence_statement;
    AlterSeqStmt(_): ShareRowExclusive => sequence::alter_sequence;
    CreateTrigStmt(_): ShareRowExclusive => trigger::create_trigger;
    RuleStmt(_): AccessExclusive => rule::create_rule;
    CreatePolicyStmt(_): AccessExclusive => policy::create_policy;
    AlterPolicyStmt(_): AccessExclusive => policy::alter_policy;
    CreateEventTrigStmt(_): UNNAMED => event_trigger::create_event_trigger;
    AlterEventTrigStmt(_): UNNAMED => event_trigger::alter_event_trigger;
    CreatePublicationStmt(_): ShareUpdateExclusive => publication::create_publication;
    AlterPublicationStmt(_): ShareUpdateExclusive => publication::alter_publication;
    CreateStatsStmt(_): ShareUpdateExclusive => statistics::create::create_statistics;
    AlterStatsStmt(_): UNNAMED => statistics::alter::alter_statistics;
    TruncateStmt(_): AccessExclusive => table::truncate::truncate;

    // Objects of any kind
    DropStmt(_): AccessExclusive => drop::drop_objects;
    RenameStmt(_): AccessExclusive => rename::rename;
    AlterOwnerStmt(_): UNNAMED => owner::alter_owner;
    AlterObjectSchemaStmt(_): AccessExclusive => move_schema::alter_schema;
    CommentStmt(_): ShareUpdateExclusive => comment::comment;
    SecLabelStmt(_): UNNAMED => define::label;
    DefineStmt(_): UNNAMED => define::define;

    // Foreign data
    CreateFdwStmt(_): UNNAMED => foreign::create_wrapper;
    AlterFdwStmt(_): UNNAMED => foreign::alter_wrapper;
    CreateForeignServerStmt(_): UNNAMED => foreign::create_server;
    AlterForeignServerStmt(_): UNNAMED => foreign::alter_server;
    CreateUserMappingStmt(_): UNNAMED => foreign::create_mapping;
    AlterUserMappingStmt(_): UNNAMED => foreign::alter_mapping;
    DropUserMappingStmt(_): UNNAMED => foreign::drop_mapping;
    CreateForeignTableStmt(_): UNNAMED => foreign::create_foreign_table;
    ImportForeignSchemaStmt(_): UNNAMED => foreign::import_schema;

    // Functions, types, operators
    CreateFunctionStmt(_): UNNAMED => create::create_function;
    AlterFunctionStmt(_): UNNAMED => alter_routine::alter_function;
    CreateEnumStmt(_): UNNAMED => types::create::create_enum;
    AlterEnumStmt(_): UNNAMED => types::create::alter_enum;
    AlterTypeStmt(_): UNNAMED => types::base::alter_base;
    CreateRangeStmt(_): UNNAMED => types::range::create_range;
    CompositeTypeStmt(_): UNNAMED => types::create::create_composite;
    CreateDomainStmt(_): UNNAMED => types::domain::create_domain;
    AlterDomainStmt(_): UNNAMED => types::domain::alter_domain;
    CreateCastStmt(_): UNNAMED => types::cast::create_cast;
    AlterOperatorStmt(_): UNNAMED => operator::alter_operator;
    CreateOpClassStmt(_): UNNAMED => operator_class::create_class;
    CreateOpFamilyStmt(_): UNNAMED => operator_class::create_family;
    AlterOpFamilyStmt(_): UNNAMED => operator_class::alter_family;
    AlterCollationStmt(_): UNNAMED => collation::refresh_collation;
    AlterTsdictionaryStmt(_): UNNAMED => text_search::alter_dictionary;
    AlterTsconfigurationStmt(_): UNNAMED => text_search::alter_config;

    // Schemas, extensions, databases
    CreateSchemaStmt(_): UNNAMED => schema::create_schema;
    CreateExtensionStmt(_): UNNAMED => extension::create_extension;
    AlterExtensionStmt(_): UNNAMED => extension::update_extension;
    AlterExtensionContentsStmt(_): ShareUpdateExclusive => extension_members::change_members;
    AlterObjectDependsStmt(_): AccessExclusive => extension_members::depend_on_extension;
    CreateConversionStmt(_): UNNAMED => conversion::create_conversion;
    CreateTransformStmt(_): UNNAMED => conversion::create_transform;
    AlterTableSpaceOptionsStmt(_): UNNAMED => plain::alter_tablespace;
    CreatedbStmt(_): UNNAMED => database::create_database;
    AlterDatabaseStmt(_): UNNAMED => database::alter_database;
    AlterDatabaseSetStmt(_): UNNAMED => database::alter_database_set;
    AlterDatabaseRefreshCollStmt(_): UNNAMED => database::refresh_database_collation;
    DropdbStmt(_): UNNAMED => database::drop_database;

    // Roles and privileges
    CreateRoleStmt(_): UNNAMED => role::create_role;
    AlterRoleStmt(_): UNNAMED => role::alter_role;
    AlterRoleSetStmt(_): UNNAMED => role::alter_role_set;
    DropRoleStmt(_): UNNAMED => role::drop_role;
    DropOwnedStmt(_): UNNAMED => owned::drop_owned;
    ReassignOwnedStmt(_): UNNAMED => owned::reassign_owned;
    GrantStmt(_): ShareUpdateExclusive => privileges::grant::grant;
    GrantRoleStmt(_): UNNAMED => role::grant_role;
    AlterDefaultPrivilegesStmt(_): UNNAMED => privileges::defaults::alter_default_privileges;
}
