//! CREATE SCHEMA, and moving objects between schemas and owners.

use std::sync::Arc;

use melba_catalog::default_privileges::initial_acl;
use melba_catalog::privileges::AclKind;
use melba_catalog::{Namespace, Object, acl};
use melba_definition::context::Ddl;
use melba_definition::naming::refuse_reserved_schema;
use melba_parse::nodes::inner;
use melba_types::{DbError, Oid, Result, bail, err};
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
    ddl.tx().put(Object::Namespace(Arc::new(Namespace { oid, name: name.into(), owner, acl })));
    // The elements are created in the new schema.
    let path: Vec<Oid> = std::iter::once(oid).chain(ddl.path().iter().copied()).collect();
    let within = ddl.with_path(&path, Some(oid));
    for element in &s.schema_elts {
        match execute(&within, inner(element)?) {
            Some(result) => drop(result?),
            None => return Err(DbError::unsupported("this schema element")),
        }
    }
    Ok(())
}

/// A schema of the session for temporary objects.
pub fn create_temporary_schema(tx: &melba_transaction::Tx, name: &str, owner: Oid) -> Oid {
    let oid = tx.new_oid();
    tx.put(Object::Namespace(Arc::new(Namespace { oid, name: name.into(), owner, acl: None })));
    oid
}
