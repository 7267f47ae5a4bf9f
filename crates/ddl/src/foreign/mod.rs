//! Foreign data: wrappers, servers, user mappings and foreign tables.

mod mapping;
mod options;
mod server;
mod table;
mod wrapper;

pub use mapping::{alter_mapping, create_mapping, drop_mapping};
pub use server::{alter_server, create_server, give_server, named_server};
pub use table::{
    alter_column_options, alter_table_options, create_foreign_table, import_schema, refuse_column, refuse_constraint,
};
pub use wrapper::{alter_wrapper, create_wrapper, existing_wrapper, give_wrapper, named_wrapper};

use std::sync::Arc;

use melba_catalog::foreign::{server_by_name, wrapper_by_name};
use melba_catalog::privileges::AclKind;
use melba_catalog::{ForeignDataWrapper, ForeignServer, Object, ObjectAddress, classes};
use melba_definition::context::Ddl;
use melba_parse::nodes::string;
use melba_types::{Oid, Result, bail};
use pg_query::protobuf::{Node, ObjectType};

use crate::privileges::acl::{Grant, acl_after};

/// Whether statements about a kind of object are this module's.
pub fn is_foreign(kind: ObjectType) -> bool {
    matches!(kind, ObjectType::ObjectFdw | ObjectType::ObjectForeignServer)
}

/// The wrapper or server that DROP or COMMENT names.
///
/// # Errors
/// 42704 when there is none, 42501 for somebody else's.
pub fn find_foreign(ddl: &Ddl<'_>, kind: ObjectType, object: &Node, missing_ok: bool) -> Result<Option<ObjectAddress>> {
    let (name, catalog) = (string(object).unwrap_or_default(), ddl.catalog());
    let (word, is_there) = match kind {
        ObjectType::ObjectFdw => ("foreign-data wrapper", wrapper_by_name(&catalog, name).is_some()),
        _ => ("server", server_by_name(&catalog, name).is_some()),
    };
    if missing_ok && !is_there {
        ddl.notice(format!("{word} \"{name}\" does not exist, skipping"));
        return Ok(None);
    }
    let (class, object) = match kind {
        ObjectType::ObjectFdw => (classes::PG_FOREIGN_DATA_WRAPPER, named_wrapper(ddl, name)?.oid),
        _ => (classes::PG_FOREIGN_SERVER, named_server(ddl, name)?.oid),
    };
    Ok(Some(ObjectAddress { class, object, sub: 0 }))
}

pub fn rename_foreign(ddl: &Ddl<'_>, kind: ObjectType, object: Option<&Node>, name: &str) -> Result<()> {
    let (old, catalog) = (object.and_then(string).unwrap_or_default(), ddl.catalog());
    if kind == ObjectType::ObjectFdw {
        let wrapper = named_wrapper(ddl, old)?;
        if wrapper_by_name(&catalog, name).is_some() {
            bail!(DUPLICATE_OBJECT, "foreign-data wrapper \"{name}\" already exists");
        }
        ddl.tx().put(Object::ForeignDataWrapper(Arc::new(ForeignDataWrapper { name: name.into(), ..(*wrapper).clone() })));
        return Ok(());
    }
    let server = named_server(ddl, old)?;
    if server_by_name(&catalog, name).is_some() {
        bail!(DUPLICATE_OBJECT, "server \"{name}\" already exists");
    }
    ddl.tx().put(Object::ForeignServer(Arc::new(ForeignServer { name: name.into(), ..(*server).clone() })));
    Ok(())
}

pub fn own_foreign(ddl: &Ddl<'_>, kind: ObjectType, object: Option<&Node>, owner: Oid) -> Result<()> {
    let name = object.and_then(string).unwrap_or_default();
    match kind {
        ObjectType::ObjectFdw => give_wrapper(ddl, &*existing_wrapper(ddl, name)?, owner),
        _ => give_server(ddl, &*named_server(ddl, name)?, owner),
    }
}

/// The wrapper or server that GRANT names.
pub fn granted_foreign(ddl: &Ddl<'_>, kind: ObjectType, name: &str) -> Result<ObjectAddress> {
    let catalog = ddl.catalog();
    let found = match kind {
        ObjectType::ObjectFdw => wrapper_by_name(&catalog, name).map(|w| (classes::PG_FOREIGN_DATA_WRAPPER, w.oid)),
        _ => server_by_name(&catalog, name).map(|s| (classes::PG_FOREIGN_SERVER, s.oid)),
    };
    let word = if kind == ObjectType::ObjectFdw { "foreign-data wrapper" } else { "server" };
    let Some((class, object)) = found else { bail!(UNDEFINED_OBJECT, "{word} \"{name}\" does not exist") };
    Ok(ObjectAddress { class, object, sub: 0 })
}

pub fn grant_on_foreign(ddl: &Ddl<'_>, grant: &Grant<'_>, address: ObjectAddress) -> Result<()> {
    ddl.lock_database_object(ddl.tx().database, address.class, address.object)?;
    match ddl.catalog().object(address) {
        Some(Object::ForeignDataWrapper(w)) => {
            let (kind, what) = (AclKind::ForeignDataWrapper, "foreign-data wrapper");
            let acl = Some(acl_after(ddl, grant, kind, w.owner, w.acl.as_deref(), what, &w.name)?);
            ddl.tx().put(Object::ForeignDataWrapper(Arc::new(ForeignDataWrapper { acl, ..(*w).clone() })));
        }
        Some(Object::ForeignServer(s)) => {
            let acl = acl_after(ddl, grant, AclKind::ForeignServer, s.owner, s.acl.as_deref(), "foreign server", &s.name)?;
            ddl.tx().put(Object::ForeignServer(Arc::new(ForeignServer { acl: Some(acl), ..(*s).clone() })));
        }
        _ => bail!(UNDEFINED_OBJECT, "object {} was concurrently dropped", address.object),
    }
    Ok(())
}
