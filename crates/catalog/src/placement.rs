//! The schemas of objects.

use melba_types::Oid;

use crate::objects::Object;

impl Object {
    /// The schema in which the object is.
    pub fn namespace(&self) -> Option<Oid> {
        let namespace = match self {
            Object::Relation(o) => o.namespace,
            Object::Type(o) => o.namespace,
            Object::Function(o) => o.namespace,
            Object::Operator(o) => o.namespace,
            Object::OperatorFamily(o) => o.namespace,
            Object::OperatorClass(o) => o.namespace,
            Object::Constraint(o) => o.namespace,
            Object::ExtendedStatistics(o) => o.namespace,
            Object::Collation(o) => o.namespace,
            Object::TextSearchDictionary(o) => o.namespace,
            Object::TextSearchConfig(o) => o.namespace,
            Object::Extension(o) => o.namespace,
            Object::Plain(o) => o.namespace,
            Object::DefaultAcl(o) => o.namespace,
            _ => Oid::INVALID,
        };
        namespace.is_valid().then_some(namespace)
    }
}
