//! CREATE and ALTER SERVER.

use std::sync::Arc;

use melba_catalog::foreign::{server_by_name, wrapper};
use melba_catalog::privileges::AclKind;
use melba_catalog::{ForeignDataWrapper, ForeignServer, Object, acl, classes};
use melba_definition::context::Ddl;
use melba_types::{DbError, Oid, Result, Severity, bail, err};
use pg_query::protobuf::{AlterForeignServerStmt, CreateForeignServerStmt};

use super::options::changed;
use super::wrapper::locked_wrapper;
use crate::privileges::acl::given;

fn put(ddl: &Ddl<'_>, server: ForeignServer) {
    ddl.tx().put(Object::ForeignServer(Arc::new(server)));
}

fn text(given: &str) -> Option<Arc<str>> {
    (!given.is_empty()).then(|| given.into())
}

pub fn create_server(ddl: &Ddl<'_>, s: &CreateForeignServerStmt) -> Result<()> {
    let name = s.servername.as_str();
    if server_by_name(&ddl.catalog(), name).is_some() {
        if !s.if_not_exists {
            bail!(DUPLICATE_OBJECT, "server \"{name}\" already exists");
        }
        let exists = err!(DUPLICATE_OBJECT, "server \"{name}\" already exists, skipping");
        ddl.session().notice(exists.severity(Severity::Notice));
        return Ok(());
    }
    let wrapper = locked_wrapper(ddl, &s.fdwname)?;
    require_usage_of_wrapper(ddl, ddl.user(), &wrapper)?;
    let options = changed(ddl, classes::PG_FOREIGN_SERVER, wrapper.validator, &[], &s.options)?;
    put(
        ddl,
        ForeignServer {
            oid: ddl.tx().new_oid(),
            name: name.into(),
            owner: ddl.user(),
            wrapper: wrapper.oid,
            ty: text(&s.servertype),
            version: text(&s.version),
            acl: None,
            options,
        },
    );
    Ok(())
}

/// # Errors
/// 42501 for a role without USAGE.
fn require_usage_of_wrapper(ddl: &Ddl<'_>, role: Oid, wrapper: &ForeignDataWrapper) -> Result<()> {
    if ddl.catalog().has_privileges(role, AclKind::ForeignDataWrapper, wrapper.owner, &wrapper.acl, acl::USAGE) {
        return Ok(());
    }
    bail!(INSUFFICIENT_PRIVILEGE, "permission denied for foreign-data wrapper {}", wrapper.name)
}

/// # Errors
/// 42501 without USAGE.
pub fn require_usage(ddl: &Ddl<'_>, server: &ForeignServer) -> Result<()> {
    if ddl.catalog().has_privileges(ddl.user(), AclKind::ForeignServer, server.owner, &server.acl, acl::USAGE) {
        return Ok(());
    }
    bail!(INSUFFICIENT_PRIVILEGE, "permission denied for foreign server {}", server.name)
}

/// # Errors
/// 42704
pub fn existing_server(ddl: &Ddl<'_>, name: &str) -> Result<Arc<ForeignServer>> {
    let found = server_by_name(&ddl.catalog(), name).cloned();
    found.ok_or_else(|| err!(UNDEFINED_OBJECT, "server \"{name}\" does not exist"))
}

/// A server as it is when nobody else can change or drop it.
pub fn locked_server(ddl: &Ddl<'_>, name: &str) -> Result<Arc<ForeignServer>> {
    let found = existing_server(ddl, name)?;
    ddl.lock_database_object(ddl.tx().database, classes::PG_FOREIGN_SERVER, found.oid)?;
    existing_server(ddl, name)
}

/// The user's own server of a name.
pub fn named_server(ddl: &Ddl<'_>, name: &str) -> Result<Arc<ForeignServer>> {
    let found = existing_server(ddl, name)?;
    ddl.require_owner(found.owner, "foreign server", name)?;
    Ok(found)
}

/// The wrapper of a server.
pub fn wrapper_of(ddl: &Ddl<'_>, server: &ForeignServer) -> Result<Arc<ForeignDataWrapper>> {
    let found = wrapper(&ddl.catalog(), server.wrapper).cloned();
    found.ok_or_else(|| DbError::internal("a server without its foreign-data wrapper"))
}

pub fn alter_server(ddl: &Ddl<'_>, s: &AlterForeignServerStmt) -> Result<()> {
    named_server(ddl, &s.servername)?;
    let old = locked_server(ddl, &s.servername)?;
    let options = match s.options.is_empty() {
        true => old.options.clone(),
        false => changed(ddl, classes::PG_FOREIGN_SERVER, wrapper_of(ddl, &old)?.validator, &old.options, &s.options)?,
    };
    let version = if s.has_version { text(&s.version) } else { old.version.clone() };
    put(ddl, ForeignServer { version, options, ..(*old).clone() });
    Ok(())
}

pub fn give_server(ddl: &Ddl<'_>, old: &ForeignServer, owner: Oid) -> Result<()> {
    if old.owner == owner {
        return Ok(());
    }
    ddl.check_new_owner(old.owner, owner, None)?;
    if !ddl.is_superuser() {
        require_usage_of_wrapper(ddl, owner, &*wrapper_of(ddl, old)?)?;
    }
    put(ddl, ForeignServer { owner, acl: given(&old.acl, old.owner, owner), ..old.clone() });
    Ok(())
}
