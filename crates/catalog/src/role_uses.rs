//! Finds the objects of a database that a role owns or has privileges on.

use melba_types::Oid;

use crate::classes;
use crate::objects::*;
use crate::snapshot::Catalog;

/// A role that an object mentions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoleDependency {
    pub object: ObjectAddress,
    pub role: Oid,
    pub how: RoleUseKind,
}

/// pg_shdepend.deptype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoleUseKind {
    Owner,
    /// In its privileges.
    Acl,
    /// A policy is for the role.
    Policy,
}

impl RoleDependency {
    pub fn is_owner(&self) -> bool {
        self.how == RoleUseKind::Owner
    }
}

/// Every use of a role by OID of the object, databases included, large objects not. The bootstrap superuser and
/// predefined roles cannot be dropped and are left out.
pub fn role_uses(catalog: &Catalog) -> Vec<RoleDependency> {
    let mut uses: Vec<RoleDependency> = catalog.user_objects().iter().flat_map(|o| roles_of(catalog, o)).collect();
    uses.retain(|u| u.role.0 >= classes::FIRST_USER_OID);
    uses.sort_by_key(|u| (u.object.object, u.object.class, u.object.sub));
    uses
}

/// The roles that an object mentions.
pub fn roles_of(catalog: &Catalog, object: &Object) -> Vec<RoleDependency> {
    let none = None;
    // A composite type has a relation as its part, a table a row type as its.
    let is_composite = |oid: Oid| catalog.relation(oid).is_some_and(|r| r.kind == RelationKind::Composite);
    let (owner, acl): (Oid, &Acl) = match object {
        Object::Namespace(o) => (o.owner, &o.acl),
        // An index belongs to its table, an array type to its element's, a multirange type to its range's.
        Object::Relation(o) if o.index.is_none() && o.kind != RelationKind::Composite => (o.owner, &o.acl),
        Object::Type(o) if o.category == b'A' || o.type_kind == TypeKind::Multirange => return Vec::new(),
        Object::Type(o) if !o.relation.is_valid() || is_composite(o.relation) => (o.owner, &o.acl),
        Object::Function(o) => (o.owner, &o.acl),
        Object::Operator(o) => (o.owner, &none),
        Object::OperatorFamily(o) => (o.owner, &none),
        Object::OperatorClass(o) => (o.owner, &none),
        Object::ExtendedStatistics(o) => (o.owner, &none),
        Object::EventTrigger(o) => (o.owner, &none),
        Object::Publication(o) => (o.owner, &none),
        Object::ForeignDataWrapper(o) => (o.owner, &o.acl),
        Object::ForeignServer(o) => (o.owner, &o.acl),
        Object::UserMapping(o) => (o.user, &none),
        Object::Collation(o) => (o.owner, &none),
        Object::TextSearchDictionary(o) => (o.owner, &none),
        Object::TextSearchConfig(o) => (o.owner, &none),
        Object::Extension(o) => (o.owner, &none),
        Object::Database(o) => (o.owner, &o.acl),
        Object::Plain(o) => (o.owner, &o.acl),
        Object::Granted(o) => (classes::POSTGRES_ROLE, &o.acl),
        Object::DefaultAcl(o) => return of_list(object.address(), o.role, &o.acl),
        Object::Policy(o) => {
            let of = |role: &Oid| RoleDependency { object: object.address(), role: *role, how: RoleUseKind::Policy };
            return o.roles.iter().map(of).collect();
        }
        _ => return Vec::new(),
    };
    let mut uses = of_list(object.address(), owner, acl.as_deref().unwrap_or(&[]));
    if let Object::Relation(relation) = object {
        for (number, column) in (1..).zip(relation.columns.iter()) {
            let address = ObjectAddress { sub: number, ..object.address() };
            let of_column = of_list(address, owner, column.acl.as_deref().unwrap_or(&[]));
            uses.extend(of_column.into_iter().filter(|u| !u.is_owner()));
        }
    }
    uses
}

/// The owner, then everybody else in a list, each once.
fn of_list(object: ObjectAddress, owner: Oid, acl: &[AclItem]) -> Vec<RoleDependency> {
    let mut uses = vec![RoleDependency { object, role: owner, how: RoleUseKind::Owner }];
    for role in acl.iter().flat_map(|i| [i.grantee, i.grantor]) {
        if !uses.iter().any(|u| u.role == role) {
            uses.push(RoleDependency { object, role, how: RoleUseKind::Acl });
        }
    }
    uses
}
