//! The privileges set by ALTER DEFAULT PRIVILEGES, with which objects start.

use std::sync::Arc;

use melba_types::Oid;

use crate::grants::merged;
use crate::objects::{Acl, DefaultAcl};
use crate::privileges::AclKind;
use crate::snapshot::Catalog;

impl AclKind {
    /// pg_default_acl's letter; `None` for kinds without default privileges.
    pub fn default_acl_letter(self) -> Option<u8> {
        match self {
            AclKind::Table => Some(b'r'),
            AclKind::Sequence => Some(b'S'),
            AclKind::Function => Some(b'f'),
            AclKind::Type => Some(b'T'),
            AclKind::Namespace => Some(b'n'),
            AclKind::LargeObject => Some(b'L'),
            _ => None,
        }
    }
}

/// The privileges of a role's new objects of a kind, everywhere (`namespace` 0) or in one schema.
pub fn default_acl(catalog: &Catalog, role: Oid, namespace: Oid, letter: u8) -> Option<&Arc<DefaultAcl>> {
    catalog.default_acls_of(role).find(|d| d.namespace == namespace && d.letter == letter)
}

/// The privileges of a new object; `None`: its owner's, as without any setting.
pub fn initial_acl(catalog: &Catalog, kind: AclKind, owner: Oid, namespace: Oid) -> Acl {
    let letter = kind.default_acl_letter()?;
    let everywhere = default_acl(catalog, owner, Oid::INVALID, letter);
    let here = if namespace.is_valid() { default_acl(catalog, owner, namespace, letter) } else { None };
    if everywhere.is_none() && here.is_none() {
        return None;
    }
    let usual = kind.default_acl(owner);
    let everywhere = everywhere.map_or(&*usual, |d| &*d.acl);
    let all = merged(everywhere, here.map_or(&[], |d| &*d.acl));
    let is_usual = all.len() == usual.len() && usual.iter().all(|i| all.contains(i));
    (!is_usual).then(|| all.into())
}
