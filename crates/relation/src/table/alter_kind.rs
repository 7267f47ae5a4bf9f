//! Which forms of ALTER TABLE are allowed for which kinds of relations, by PostgreSQL's rules (tablecmds.c, ATPrepCmd).

use melba_catalog::{Relation, RelationKind as Kind};
use melba_types::{DbError, Result, err};
use pg_query::protobuf::AlterTableType as At;

use melba_definition::words::plural;

const TABLES: &[Kind] = &[Kind::Table, Kind::PartitionedTable];
/// Those with rows elsewhere, too.
const ALL_TABLES: &[Kind] = &[Kind::Table, Kind::PartitionedTable, Kind::ForeignTable];
const FOREIGN: &[Kind] = &[Kind::ForeignTable];
const ALL_TABLES_AND_VIEWS: &[Kind] = &[Kind::Table, Kind::PartitionedTable, Kind::View, Kind::ForeignTable];
const TABLES_AND_COPIES: &[Kind] = &[Kind::Table, Kind::PartitionedTable, Kind::MaterializedView];
const ALL_TABLES_AND_COPIES: &[Kind] = &[Kind::Table, Kind::PartitionedTable, Kind::MaterializedView, Kind::ForeignTable];
const TABLES_AND_TYPES: &[Kind] = &[Kind::Table, Kind::PartitionedTable, Kind::Composite, Kind::ForeignTable];

const WITH_FILES: &[Kind] = &[Kind::Table, Kind::PartitionedTable, Kind::MaterializedView, Kind::Index, Kind::PartitionedIndex];
const WITH_STATISTICS: &[Kind] =
    &[Kind::Table, Kind::PartitionedTable, Kind::MaterializedView, Kind::Index, Kind::PartitionedIndex, Kind::ForeignTable];

const WITH_OPTIONS: &[Kind] = &[Kind::Table, Kind::PartitionedTable, Kind::View, Kind::MaterializedView, Kind::Index];

/// The name of a form in messages, and its kinds; `None`: it checks them itself, or all are allowed.
fn form(form: At) -> Option<(&'static str, &'static [Kind])> {
    Some(match form {
        At::AtAddColumn => ("ADD COLUMN", TABLES_AND_TYPES),
        At::AtDropColumn => ("DROP COLUMN", TABLES_AND_TYPES),
        At::AtAlterColumnType => ("ALTER COLUMN ... SET DATA TYPE", TABLES_AND_TYPES),
        At::AtColumnDefault => ("ALTER COLUMN ... SET DEFAULT", ALL_TABLES_AND_VIEWS),
        At::AtAddIdentity => ("ALTER COLUMN ... ADD IDENTITY", ALL_TABLES_AND_VIEWS),
        At::AtSetIdentity => ("ALTER COLUMN ... SET", ALL_TABLES_AND_VIEWS),
        At::AtDropIdentity => ("ALTER COLUMN ... DROP IDENTITY", ALL_TABLES_AND_VIEWS),
        At::AtDropNotNull => ("ALTER COLUMN ... DROP NOT NULL", ALL_TABLES),
        At::AtSetNotNull => ("ALTER COLUMN ... SET NOT NULL", ALL_TABLES),
        At::AtSetExpression => ("ALTER COLUMN ... SET EXPRESSION", ALL_TABLES),
        At::AtDropExpression => ("ALTER COLUMN ... DROP EXPRESSION", ALL_TABLES),
        At::AtSetStatistics => ("ALTER COLUMN ... SET STATISTICS", WITH_STATISTICS),
        At::AtSetOptions => ("ALTER COLUMN ... SET", ALL_TABLES_AND_COPIES),
        At::AtResetOptions => ("ALTER COLUMN ... RESET", ALL_TABLES_AND_COPIES),
        At::AtSetStorage => ("ALTER COLUMN ... SET STORAGE", ALL_TABLES_AND_COPIES),
        At::AtSetCompression => ("ALTER COLUMN ... SET COMPRESSION", TABLES_AND_COPIES),
        At::AtAddConstraint => ("ADD CONSTRAINT", ALL_TABLES),
        At::AtAddIndex | At::AtAddIndexConstraint => ("ADD CONSTRAINT", TABLES),
        At::AtAlterColumnGenericOptions => ("ALTER COLUMN ... OPTIONS", FOREIGN),
        At::AtGenericOptions => ("OPTIONS", FOREIGN),
        At::AtAlterConstraint => ("ALTER CONSTRAINT", TABLES),
        At::AtValidateConstraint => ("VALIDATE CONSTRAINT", ALL_TABLES),
        At::AtDropConstraint => ("DROP CONSTRAINT", ALL_TABLES),
        At::AtClusterOn => ("CLUSTER ON", TABLES_AND_COPIES),
        At::AtDropCluster => ("SET WITHOUT CLUSTER", TABLES_AND_COPIES),
        At::AtReplicaIdentity => ("REPLICA IDENTITY", TABLES_AND_COPIES),
        At::AtSetRelOptions => ("SET", WITH_OPTIONS),
        At::AtResetRelOptions => ("RESET", WITH_OPTIONS),
        At::AtEnableTrig => ("ENABLE TRIGGER", ALL_TABLES),
        At::AtEnableTrigAll => ("ENABLE TRIGGER ALL", ALL_TABLES),
        At::AtEnableTrigUser => ("ENABLE TRIGGER USER", ALL_TABLES),
        At::AtEnableAlwaysTrig => ("ENABLE ALWAYS TRIGGER", ALL_TABLES),
        At::AtEnableReplicaTrig => ("ENABLE REPLICA TRIGGER", ALL_TABLES),
        At::AtDisableTrig => ("DISABLE TRIGGER", ALL_TABLES),
        At::AtDisableTrigAll => ("DISABLE TRIGGER ALL", ALL_TABLES),
        At::AtDisableTrigUser => ("DISABLE TRIGGER USER", ALL_TABLES),
        At::AtEnableRowSecurity => ("ENABLE ROW SECURITY", TABLES),
        At::AtDisableRowSecurity => ("DISABLE ROW SECURITY", TABLES),
        At::AtForceRowSecurity => ("FORCE ROW SECURITY", TABLES),
        At::AtNoForceRowSecurity => ("NO FORCE ROW SECURITY", TABLES),
        At::AtEnableRule => ("ENABLE RULE", TABLES),
        At::AtEnableAlwaysRule => ("ENABLE ALWAYS RULE", TABLES),
        At::AtEnableReplicaRule => ("ENABLE REPLICA RULE", TABLES),
        At::AtDisableRule => ("DISABLE RULE", TABLES),
        At::AtAddOf => ("OF", TABLES),
        At::AtDropOf => ("NOT OF", TABLES),
        At::AtAddInherit => ("INHERIT", ALL_TABLES),
        At::AtDropInherit => ("NO INHERIT", ALL_TABLES),
        At::AtDropOids => ("SET WITHOUT OIDS", ALL_TABLES),
        At::AtSetTableSpace => ("SET TABLESPACE", WITH_FILES),
        At::AtDetachPartitionFinalize => ("DETACH PARTITION ... FINALIZE", &[Kind::PartitionedTable]),
        _ => return None,
    })
}

/// Refuses a form of ALTER TABLE on a relation that it is not for.
pub fn check_form(of: At, relation: &Relation) -> Result<()> {
    match form(of) {
        Some((name, kinds)) if !kinds.contains(&relation.kind) => Err(refused_for_kind(name, relation)),
        _ => Ok(()),
    }
}

/// 0A000 of a form that nothing runs.
pub fn unsupported_form(of: At) -> DbError {
    DbError::unsupported(form(of).map_or("this form of ALTER TABLE".into(), |(name, _)| format!("ALTER TABLE ... {name}")))
}

pub fn refused_for_kind(action: &str, relation: &Relation) -> DbError {
    let message = format!("ALTER action {action} cannot be performed on relation \"{}\"", relation.name);
    err!(WRONG_OBJECT_TYPE, "{message}").detail(format!("This operation is not supported for {}.", plural(relation.kind)))
}
