//! Privilege lists of objects that have no row to keep them: languages, which are built in, and settings (pg_parameter_acl).

use std::sync::Arc;

use melba_types::Oid;

use crate::classes;
use crate::objects::{Acl, ObjectAddress};
use crate::privileges::AclKind;
use crate::snapshot::Catalog;

/// The privileges on a language, or a row of pg_parameter_acl. Without one, nothing was granted or revoked.
#[derive(Clone, Debug)]
pub struct Granted {
    /// Of the language or of the row.
    pub oid: Oid,
    /// pg_language or pg_parameter_acl.
    pub class: Oid,
    /// A setting's is in lower case.
    pub name: Arc<str>,
    pub acl: Acl,
}

impl Granted {
    pub fn address(&self) -> ObjectAddress {
        ObjectAddress { class: self.class, object: self.oid, sub: 0 }
    }

    /// The kind of object that privileges of a class are on.
    pub fn kind(class: Oid) -> AclKind {
        if class == classes::PG_LANGUAGE { AclKind::Language } else { AclKind::Parameter }
    }
}

impl Catalog {
    pub fn granted(&self, oid: Oid) -> Option<&Arc<Granted>> {
        self.language_acls.get(oid).or_else(|| self.parameter_acls.get(oid))
    }

    /// Of a class, by name.
    pub fn granted_by_name(&self, class: Oid, name: &str) -> Option<&Arc<Granted>> {
        let of_class = if class == classes::PG_LANGUAGE { &self.language_acls } else { &self.parameter_acls };
        let oid = of_class.named(class, name).next()?.oid;
        of_class.get(oid)
    }

    /// The rows of pg_parameter_acl.
    pub fn parameter_acls(&self) -> impl Iterator<Item = &Arc<Granted>> {
        self.parameter_acls.iter()
    }

    /// The list of a language or a setting, by name; `None`: what is usual.
    pub fn granted_acl(&self, class: Oid, name: &str) -> Acl {
        self.granted_by_name(class, name).and_then(|g| g.acl.clone())
    }

    /// Whether a role has all of the privileges on a language or a setting.
    pub fn may_use(&self, role: Oid, class: Oid, name: &str, privileges: u64) -> bool {
        let acl = self.granted_acl(class, name);
        self.has_privileges(role, Granted::kind(class), classes::POSTGRES_ROLE, &acl, privileges)
    }
}
