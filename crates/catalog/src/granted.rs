//! Privilege lists that are objects: of settings (pg_parameter_acl), and those that new objects get (pg_default_acl).

use std::sync::Arc;

use melba_types::Oid;

use crate::objects::{Acl, AclItem, ObjectAddress};

/// A row of pg_parameter_acl. Without one, nothing was granted or revoked.
#[derive(Clone, Debug)]
pub struct Granted {
    pub oid: Oid,
    /// pg_parameter_acl; in data of earlier versions, pg_language.
    pub class: Oid,
    /// In lower case.
    pub name: Arc<str>,
    pub acl: Acl,
}

impl Granted {
    pub fn address(&self) -> ObjectAddress {
        ObjectAddress { class: self.class, object: self.oid, sub: 0 }
    }
}

/// pg_default_acl: the privileges that new objects of a role get.
#[derive(Clone, Debug)]
pub struct DefaultAcl {
    pub oid: Oid,
    /// Whose objects.
    pub role: Oid,
    /// In this schema, in addition to those for all (0).
    pub namespace: Oid,
    /// Of objects of a kind: 'r' relations, 'S' sequences, 'f' functions, 'T' types, 'n' schemas, 'L' large objects.
    pub letter: u8,
    pub acl: Arc<[AclItem]>,
}
