//! CREATE, ALTER and DROP USER MAPPING.

use std::sync::Arc;

use melba_catalog::foreign::{mapped_user, server_by_name, user_mapping_of};
use melba_catalog::{ForeignServer, Object, ObjectAddress, UserMapping, classes};
use melba_definition::context::Ddl;
use melba_relation::dependents::drop_addresses;
use melba_types::{DbError, Oid, Result, Severity, err};
use pg_query::protobuf::{AlterUserMappingStmt, CreateUserMappingStmt, DropUserMappingStmt, RoleSpec, RoleSpecType};

use super::options::changed;
use super::server::{existing_server, locked_server, require_usage, wrapper_of};

fn user_of(ddl: &Ddl<'_>, spec: Option<&RoleSpec>) -> Result<Oid> {
    ddl.role_spec(spec.ok_or_else(|| DbError::internal("a user mapping for nobody"))?)
}

/// The server's owner may change all mappings, a user with USAGE the own one.
fn require_change(ddl: &Ddl<'_>, user: Oid, server: &ForeignServer) -> Result<()> {
    if ddl.is_owner(server.owner) {
        return Ok(());
    }
    match user == ddl.user() {
        true => require_usage(ddl, server),
        false => ddl.require_owner(server.owner, "foreign server", &server.name),
    }
}

fn named(ddl: &Ddl<'_>, user: Oid, server: &ForeignServer) -> String {
    let mapping = UserMapping { oid: Oid::INVALID, user, server: server.oid, options: vec![] };
    format!("user mapping for \"{}\"", mapped_user(&ddl.catalog(), &mapping))
}

fn missing(ddl: &Ddl<'_>, user: Oid, server: &ForeignServer) -> String {
    format!("{} does not exist for server \"{}\"", named(ddl, user, server), server.name)
}

pub fn create_mapping(ddl: &Ddl<'_>, s: &CreateUserMappingStmt) -> Result<()> {
    let user = user_of(ddl, s.user.as_ref())?;
    let server = locked_server(ddl, &s.servername)?;
    require_change(ddl, user, &server)?;
    if user_mapping_of(&ddl.catalog(), user, server.oid).is_some() {
        let exists = format!("{} already exists for server \"{}\"", named(ddl, user, &server), server.name);
        if !s.if_not_exists {
            return Err(err!(DUPLICATE_OBJECT, "{exists}"));
        }
        ddl.session().notice(err!(DUPLICATE_OBJECT, "{exists}, skipping").severity(Severity::Notice));
        return Ok(());
    }
    let options = changed(ddl, classes::PG_USER_MAPPING, wrapper_of(ddl, &server)?.validator, &[], &s.options)?;
    let mapping = UserMapping { oid: ddl.tx().new_oid(), user, server: server.oid, options };
    ddl.tx().put(Object::UserMapping(Arc::new(mapping)));
    Ok(())
}

pub fn alter_mapping(ddl: &Ddl<'_>, s: &AlterUserMappingStmt) -> Result<()> {
    let user = user_of(ddl, s.user.as_ref())?;
    let server = locked_server(ddl, &s.servername)?;
    let old = user_mapping_of(&ddl.catalog(), user, server.oid).cloned();
    let old = old.ok_or_else(|| err!(UNDEFINED_OBJECT, "{}", missing(ddl, user, &server)))?;
    require_change(ddl, user, &server)?;
    let options = changed(ddl, classes::PG_USER_MAPPING, wrapper_of(ddl, &server)?.validator, &old.options, &s.options)?;
    ddl.tx().put(Object::UserMapping(Arc::new(UserMapping { options, ..(*old).clone() })));
    Ok(())
}

pub fn drop_mapping(ddl: &Ddl<'_>, s: &DropUserMappingStmt) -> Result<()> {
    let user = match s.user.as_ref() {
        Some(spec) if s.missing_ok && is_missing(ddl, spec) => {
            ddl.notice(format!("role \"{}\" does not exist, skipping", spec.rolename));
            return Ok(());
        }
        spec => user_of(ddl, spec)?,
    };
    if s.missing_ok && server_by_name(&ddl.catalog(), &s.servername).is_none() {
        ddl.notice(format!("server \"{}\" does not exist, skipping", s.servername));
        return Ok(());
    }
    let server = existing_server(ddl, &s.servername)?;
    let Some(object) = user_mapping_of(&ddl.catalog(), user, server.oid).map(|m| m.oid) else {
        let missing = missing(ddl, user, &server);
        if !s.missing_ok {
            return Err(err!(UNDEFINED_OBJECT, "{missing}"));
        }
        ddl.notice(format!("{missing}, skipping"));
        return Ok(());
    };
    require_change(ddl, user, &server)?;
    drop_addresses(ddl, &[ObjectAddress { class: classes::PG_USER_MAPPING, object, sub: 0 }], true)
}

fn is_missing(ddl: &Ddl<'_>, spec: &RoleSpec) -> bool {
    spec.roletype() == RoleSpecType::RolespecCstring && ddl.catalog().role_by_name(&spec.rolename).is_none()
}
