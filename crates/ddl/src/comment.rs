//! COMMENT ON.

use std::sync::Arc;

use melba_catalog::{Description, Object, ObjectAddress, ObjectChange, classes};
use melba_types::{DbError, Result, bail, err};
use pg_query::protobuf::{CommentStmt, Node, ObjectType, node::Node as N};

use super::Ddl;
use super::routine::RoutineName;
use super::schema::range_var;
use melba_parse::nodes::{string, strings};

fn is_named_as_dropped(kind: ObjectType) -> bool {
    matches!(kind, ObjectType::ObjectCast | ObjectType::ObjectOperator | ObjectType::ObjectCollation)
}

impl Ddl<'_> {
    pub fn comment(&self, s: &CommentStmt) -> Result<()> {
        let address = self.commented(s)?;
        if s.comment.is_empty() {
            self.tx.change(ObjectChange::RemoveDescription(address));
        } else {
            self.tx.put(Object::Description(Arc::new(Description { address, text: s.comment.as_str().into() })));
        }
        Ok(())
    }

    /// The object that DROP finds by the same name.
    fn commented_as_dropped(&self, kind: ObjectType, object: Option<&Node>) -> Result<ObjectAddress> {
        let object = object.ok_or_else(|| DbError::internal("COMMENT ON nothing"))?;
        let found = match kind {
            ObjectType::ObjectCast => self.find_cast(Some(object), false)?,
            ObjectType::ObjectCollation => self.find_collation(object, false)?,
            _ => self.find_operator(object, false)?,
        };
        found.ok_or_else(|| DbError::internal("COMMENT ON what is not there"))
    }

    fn commented_constraint(&self, names: &[&str]) -> Result<ObjectAddress> {
        let [table @ .., name] = names else {
            bail!(SYNTAX_ERROR, "constraint name must be qualified");
        };
        let catalog = self.catalog();
        let relation = self.open_target(&range_var(table))?;
        self.require_owner(relation.owner, "relation", &relation.name)?;
        let found = relation.constraints.iter().filter_map(|c| catalog.constraint(*c)).find(|c| *c.name == **name);
        let found = found
            .ok_or_else(|| err!(UNDEFINED_OBJECT, "constraint \"{name}\" for table \"{}\" does not exist", relation.name))?;
        Ok(ObjectAddress { class: classes::PG_CONSTRAINT, object: found.oid, sub: 0 })
    }

    fn commented_domain_constraint(&self, object: Option<&Node>) -> Result<ObjectAddress> {
        let parts = match object.and_then(|n| n.node.as_ref()) {
            Some(N::List(list)) => &list.items[..],
            _ => &[],
        };
        let [domain, name] = parts else { return Err(DbError::internal("a constraint without its domain")) };
        let names = match &domain.node {
            Some(N::TypeName(name)) => strings(&name.names),
            _ => vec![],
        };
        let domain = self.domain_by_name(&names)?;
        self.require_type_owner(&domain)?;
        let found = self.domain_constraint_by_name(&domain, string(name).unwrap_or_default())?;
        Ok(ObjectAddress { class: classes::PG_CONSTRAINT, object: found.oid, sub: 0 })
    }

    fn commented(&self, s: &CommentStmt) -> Result<ObjectAddress> {
        let object = s.object.as_deref();
        let names = match object.and_then(|n| n.node.as_ref()) {
            Some(N::List(list)) => strings(&list.items),
            Some(N::TypeName(name)) => strings(&name.names),
            _ => object.and_then(string).into_iter().collect(),
        };
        let (catalog, at) = (self.catalog(), |class, object| ObjectAddress { class, object, sub: 0 });
        match s.objtype() {
            ObjectType::ObjectTable
            | ObjectType::ObjectView
            | ObjectType::ObjectMatview
            | ObjectType::ObjectSequence
            | ObjectType::ObjectIndex => {
                let relation = self.open_target(&range_var(&names))?;
                self.require_owner(relation.owner, super::schema::relation_word(relation.kind), &relation.name)?;
                Ok(at(classes::PG_CLASS, relation.oid))
            }
            ObjectType::ObjectColumn => {
                let [table @ .., column] = names.as_slice() else {
                    bail!(SYNTAX_ERROR, "column name must be qualified");
                };
                let relation = self.open_target(&range_var(table))?;
                self.require_owner(relation.owner, "relation", &relation.name)?;
                let number = self.column_numbers(&relation, &[column], false)?[0];
                Ok(ObjectAddress { sub: number.into(), ..at(classes::PG_CLASS, relation.oid) })
            }
            ObjectType::ObjectPolicy => self.commented_policy(&names),
            kind if is_named_as_dropped(kind) => self.commented_as_dropped(kind, object),
            ObjectType::ObjectLargeobject => self.commented_large_object(object),
            ObjectType::ObjectSchema => {
                let namespace = self.namespace(names.first().unwrap_or(&""))?;
                self.require_owner(namespace.owner, "schema", &namespace.name)?;
                Ok(at(classes::PG_NAMESPACE, namespace.oid))
            }
            ObjectType::ObjectExtension => self.owned_extension(names.first().unwrap_or(&"")),
            ObjectType::ObjectDatabase => {
                let database = self.database_by_name(names.first().unwrap_or(&""))?;
                self.require_owner(database.owner, "database", &database.name)?;
                Ok(at(classes::PG_DATABASE, database.oid))
            }
            ObjectType::ObjectRole => {
                let name = names.first().copied().unwrap_or_default();
                let role = catalog.role_by_name(name);
                let role = role.ok_or_else(|| err!(UNDEFINED_OBJECT, "role \"{name}\" does not exist"))?;
                self.require_role_manager(role)?;
                Ok(at(classes::PG_AUTHID, role.oid))
            }
            ObjectType::ObjectType | ObjectType::ObjectDomain => {
                let ty = self.named_type(object)?;
                self.require_type_owner(&ty)?;
                Ok(at(classes::PG_TYPE, ty.oid))
            }
            ObjectType::ObjectTabconstraint => self.commented_constraint(&names),
            ObjectType::ObjectDomconstraint => self.commented_domain_constraint(object),
            ObjectType::ObjectTrigger => self.commented_trigger(&names),
            kind if RoutineName::is_routine(kind) => self.commented_routine(kind, object),
            _ => Err(DbError::unsupported("COMMENT ON this kind of object")),
        }
    }
}
