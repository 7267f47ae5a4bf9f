//! pg_init_privs: the privileges that built-in objects start with, which pg_dump leaves out.

use melba_types::{Datum, Oid};

use super::{GeneratorInput, RelationRows, push, values};
use crate::builtin::BUILTINS;
use crate::classes;
use crate::objects::Acl;

pub(super) fn rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    let mut push = |class: Oid, object: Oid, sub: usize, acl: &Acl| {
        if acl.is_some() {
            push!(
                out,
                [
                    values::oid(object),
                    values::oid(class),
                    Datum::Int4(sub as i32),
                    values::char(b'i'),
                    values::acl(acl, s.catalog)
                ]
            );
        }
    };
    for function in BUILTINS.functions.iter() {
        push(classes::PG_PROC, function.oid, 0, &function.acl);
    }
    // information_schema is created after PostgreSQL records the privileges.
    for relation in BUILTINS.relations.iter().filter(|r| r.namespace == classes::PG_CATALOG) {
        push(classes::PG_CLASS, relation.oid, 0, &relation.acl);
        for (i, column) in relation.columns.iter().enumerate() {
            push(classes::PG_CLASS, relation.oid, i + 1, &column.acl);
        }
    }
    for namespace in BUILTINS.namespaces.iter().filter(|n| n.oid.0 < 12000) {
        push(classes::PG_NAMESPACE, namespace.oid, 0, &namespace.acl);
    }
}
