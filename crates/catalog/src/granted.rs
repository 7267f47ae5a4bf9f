//! Privilege lists of objects that have no row to keep them: languages, which are built in, and settings (pg_parameter_acl).

use std::sync::Arc;

use melba_types::Oid;

use crate::classes;
use crate::objects::{Acl, ObjectAddress};
use crate::privileges::AclKind;

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
