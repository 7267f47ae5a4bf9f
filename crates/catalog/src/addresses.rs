//! Where objects have their rows.

use melba_types::Oid;

use crate::classes;
use crate::objects::*;

impl Object {
    /// Where the object has its row. A description's is that of the object it describes.
    pub fn address(&self) -> ObjectAddress {
        let at = |class, object| ObjectAddress { class, object, sub: 0 };
        match self {
            Object::Namespace(o) => at(classes::PG_NAMESPACE, o.oid),
            Object::Relation(o) => at(classes::PG_CLASS, o.oid),
            Object::Type(o) => at(classes::PG_TYPE, o.oid),
            Object::Function(o) => at(classes::PG_PROC, o.oid),
            Object::Operator(o) => at(classes::PG_OPERATOR, o.oid),
            Object::OperatorFamily(o) => at(classes::PG_OPFAMILY, o.oid),
            Object::OperatorClass(o) => at(classes::PG_OPCLASS, o.oid),
            Object::Cast(o) => at(classes::PG_CAST, o.oid),
            Object::Constraint(o) => at(classes::PG_CONSTRAINT, o.oid),
            Object::Trigger(o) => at(classes::PG_TRIGGER, o.oid),
            Object::Policy(o) => at(classes::PG_POLICY, o.oid),
            Object::Rule(o) => o.address(),
            Object::ExtendedStatistics(o) => at(classes::PG_STATISTIC_EXT, o.oid),
            Object::EventTrigger(o) => at(classes::PG_EVENT_TRIGGER, o.oid),
            Object::Publication(o) => at(classes::PG_PUBLICATION, o.oid),
            Object::PublicationMember(o) => o.address(),
            Object::ForeignDataWrapper(o) => at(classes::PG_FOREIGN_DATA_WRAPPER, o.oid),
            Object::ForeignServer(o) => at(classes::PG_FOREIGN_SERVER, o.oid),
            Object::UserMapping(o) => at(classes::PG_USER_MAPPING, o.oid),
            Object::Collation(o) => at(classes::PG_COLLATION, o.oid),
            Object::TextSearchDictionary(o) => at(classes::PG_TS_DICT, o.oid),
            Object::TextSearchConfig(o) => at(classes::PG_TS_CONFIG, o.oid),
            Object::Extension(o) => at(classes::PG_EXTENSION, o.oid),
            Object::Plain(o) => o.address(),
            Object::DefaultAcl(o) => at(classes::PG_DEFAULT_ACL, o.oid),
            Object::Granted(o) => o.address(),
            Object::Description(o) => o.address,
            Object::Role(o) => at(classes::PG_AUTHID, o.oid),
            Object::Database(o) => at(classes::PG_DATABASE, o.oid),
        }
    }

    pub(crate) fn relation(&self) -> Option<&Relation> {
        match self {
            Object::Relation(relation) => Some(relation),
            _ => None,
        }
    }

    /// The highest OID that the object or a part of it has.
    pub fn oid_max(&self) -> Oid {
        let own = self.address().object;
        match self {
            Object::Relation(o) => o.columns.iter().map(|c| c.default_oid).fold(own.max(o.rule), Oid::max),
            Object::Type(o) => o.labels.iter().map(|l| l.0).fold(own, Oid::max),
            Object::Role(o) => o.member_of.iter().map(|m| m.oid).fold(own, Oid::max),
            Object::OperatorFamily(o) => o.member_oids().fold(own, Oid::max),
            _ => own,
        }
    }
}
