//! pg_shdepend: what roles own and are granted in this database. The bootstrap superuser is pinned and not listed.

use melba_types::{Datum, Oid};

use super::{Rows, Source, values::*};
use crate::classes;
use crate::objects::*;

pub(super) fn rows(s: &Source<'_>, out: &mut Rows<'_>) {
    for object in s.catalog.user_objects() {
        let (owner, acl): (Oid, &Acl) = match &object {
            Object::Namespace(o) => (o.owner, &o.acl),
            // A table's row type and an index belong to the table.
            Object::Relation(o) if o.index.is_none() => (o.owner, &o.acl),
            Object::Type(o) if !o.relation.is_valid() => (o.owner, &o.acl),
            Object::Function(o) => (o.owner, &o.acl),
            Object::Operator(o) => (o.owner, &None),
            Object::Collation(o) => (o.owner, &None),
            Object::Database(o) => (o.owner, &o.acl),
            _ => continue,
        };
        let shared = matches!(object, Object::Database(_));
        let database = if shared { Oid::INVALID } else { s.catalog.database_oid() };
        let grantees = acl.iter().flat_map(|items| items.iter()).map(|i| i.grantee).filter(|g| *g != owner);
        let mut mentioned: Vec<(Oid, u8)> = [(owner, b'o')].into_iter().chain(grantees.map(|g| (g, b'a'))).collect();
        mentioned.dedup();
        for (role, kind) in mentioned.into_iter().filter(|(role, _)| role.0 >= classes::FIRST_USER_OID) {
            let address = object.address();
            out.push([
                oid(database),
                oid(address.class),
                oid(address.object),
                Datum::Int4(0),
                oid(classes::PG_AUTHID),
                oid(role),
                char(kind),
            ]);
        }
    }
}
