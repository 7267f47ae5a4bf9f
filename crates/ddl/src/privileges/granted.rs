//! GRANT and REVOKE on languages and parameters.

use std::sync::Arc;

use melba_catalog::privileges::AclKind;
use melba_catalog::{Acl, Granted, Object, ObjectChange, PlainObject, classes};
use melba_definition::context::Ddl;
use melba_settings::is_settable_name;
use melba_types::{Oid, Result, bail, err};

use crate::privileges::acl::{Grant, acl_after};

/// A language on which privileges may be granted.
pub fn language_named(ddl: &Ddl<'_>, name: &str) -> Result<Arc<PlainObject>> {
    let Some(language) = ddl.catalog().plain_object_by_name(classes::PG_LANGUAGE, Oid::INVALID, name).cloned() else {
        bail!(UNDEFINED_OBJECT, "language \"{name}\" does not exist");
    };
    if [classes::INTERNAL_LANGUAGE, classes::C_LANGUAGE].contains(&language.oid) {
        return Err(err!(WRONG_OBJECT_TYPE, "language \"{name}\" is not trusted").detail(
            "GRANT and REVOKE are not allowed on untrusted languages, because only superusers can use untrusted languages.",
        ));
    }
    Ok(language)
}

/// A setting; `None` for one whose privileges were never granted, when they are to be revoked.
pub fn parameter_named(ddl: &Ddl<'_>, name: &str, is_grant: bool) -> Result<Option<Granted>> {
    let name = name.to_ascii_lowercase();
    let oid = match ddl.catalog().granted_by_name(&name) {
        Some(row) => row.oid,
        None if !is_grant => return Ok(None),
        None if !is_settable_name(&name) => bail!(UNDEFINED_OBJECT, "unrecognized configuration parameter \"{name}\""),
        None => ddl.tx().new_oid(),
    };
    Ok(Some(Granted { oid, class: classes::PG_PARAMETER_ACL, name: name.into(), acl: None }))
}

/// Changes the list of a setting, which the catalog may have already. It goes when it says nothing.
pub fn change_granted(ddl: &Ddl<'_>, grant: &Grant<'_>, granted: Granted) -> Result<()> {
    ddl.lock_database_object(Oid::INVALID, granted.class, granted.oid)?;
    let (kind, owner) = (AclKind::Parameter, classes::POSTGRES_ROLE);
    let before: Acl = ddl.catalog().granted_acl(&granted.name);
    let after = acl_after(ddl, grant, kind, owner, before.as_deref(), "parameter", &granted.name)?;
    if *after == *kind.default_acl(owner) {
        ddl.tx().change(ObjectChange::Remove(granted.address()));
    } else {
        ddl.tx().put(Object::Granted(Arc::new(Granted { acl: Some(after), ..granted })));
    }
    Ok(())
}
