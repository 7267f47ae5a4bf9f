//! CREATE SCHEMA, and moving objects between schemas and owners.

use std::sync::Arc;

use melba_catalog::default_privileges::initial_acl;
use melba_catalog::privileges::AclKind;
use melba_catalog::{Namespace, Object, acl};
use melba_definition::context::Ddl;
use melba_definition::naming::refuse_reserved_schema;
use melba_parse::nodes::inner;
use melba_types::{DbError, Oid, Result, bail, err};
use pg_query::NodeEnum as N;
use pg_query::protobuf::CreateSchemaStmt;

use crate::statements::execute;

pub fn create_schema(ddl: &Ddl<'_>, s: &CreateSchemaStmt) -> Result<()> {
    let owner = match &s.authrole {
        Some(role) => ddl.role_spec(role)?,
        None => ddl.user(),
    };
    ddl.require_database(acl::CREATE)?;
    ddl.require_set_role(owner)?;
    let catalog = ddl.catalog();
    let name = match s.schemaname.as_str() {
        "" => catalog.role(owner).map_or_else(String::new, |r| r.name.to_string()),
        name => name.to_owned(),
    };
    refuse_reserved_schema(&name)?;
    if catalog.namespace_by_name(&name).is_some() {
        if s.if_not_exists {
            ddl.session().notice(
                err!(DUPLICATE_SCHEMA, "schema \"{name}\" already exists, skipping").severity(melba_types::Severity::Notice),
            );
            return Ok(());
        }
        bail!(DUPLICATE_SCHEMA, "schema \"{name}\" already exists");
    }
    let oid = ddl.tx().new_oid();
    let acl = initial_acl(&ddl.catalog(), AclKind::Namespace, owner, Oid::INVALID);
    let created = name.as_str();
    ddl.tx().put(Object::Namespace(Arc::new(Namespace { oid, name: created.into(), owner, acl })));
    // The elements are created in the new schema.
    let path: Vec<Oid> = std::iter::once(oid).chain(ddl.path().iter().copied()).collect();
    let within = ddl.with_path(&path, Some(oid));
    let mut elements = s.schema_elts.iter().map(inner).collect::<Result<Vec<&N>>>()?;
    elements.sort_by_key(|element| turn(element));
    for element in elements {
        let mut element = element.clone();
        put_into_schema(&mut element, created)?;
        match execute(&within, &element) {
            Some(result) => drop(result?),
            None => return Err(DbError::unsupported("this schema element")),
        }
    }
    Ok(())
}

/// When a statement of CREATE SCHEMA has its turn: in which order they are written does not matter.
fn turn(element: &N) -> u8 {
    match element {
        N::CreateSeqStmt(_) => 0,
        N::CreateStmt(_) => 1,
        N::ViewStmt(_) => 2,
        N::IndexStmt(_) => 3,
        N::CreateTrigStmt(_) => 4,
        _ => 5,
    }
}

/// Names the schema in a statement of CREATE SCHEMA.
///
/// # Errors
/// 42P15 when the statement names another one.
fn put_into_schema(element: &mut N, schema: &str) -> Result<()> {
    let is_placed = !matches!(element, N::ViewStmt(_) | N::CreateSeqStmt(_));
    let name = match element {
        N::CreateStmt(s) => s.relation.as_mut(),
        N::ViewStmt(s) => s.view.as_mut(),
        N::CreateSeqStmt(s) => s.sequence.as_mut(),
        N::IndexStmt(s) => s.relation.as_mut(),
        N::CreateTrigStmt(s) => s.relation.as_mut(),
        _ => None,
    };
    let Some(name) = name else { return Ok(()) };
    // PostgreSQL's errors about the names of views and sequences have no position.
    if !is_placed {
        name.location = -1;
    }
    match name.schemaname.as_str() {
        "" => name.schemaname = schema.to_owned(),
        own if own != schema => {
            let message = format!("CREATE specifies a schema ({own}) different from the one being created ({schema})");
            bail!(INVALID_SCHEMA_DEFINITION, "{message}")
        }
        _ => {}
    }
    Ok(())
}

/// A schema of the session for temporary objects.
pub fn create_temporary_schema(tx: &melba_transaction::Tx, name: &str, owner: Oid) -> Oid {
    let oid = tx.new_oid();
    tx.put(Object::Namespace(Arc::new(Namespace { oid, name: name.into(), owner, acl: None })));
    oid
}
