//! ALTER ... RENAME.

use std::sync::Arc;

use melba_catalog::{Constraint, Database, Namespace, Object, ObjectAddress, Relation, RelationKind, Type, acl, classes};
use melba_types::{DbError, Result, bail, err};
use pg_query::protobuf::{ObjectType, RenameStmt};

use super::Ddl;
use super::routine::RoutineName;
use melba_parse::nodes::string;

impl Ddl<'_> {
    pub fn rename(&self, s: &RenameStmt) -> Result<()> {
        let kind = s.rename_type();
        match kind {
            ObjectType::ObjectTable
            | ObjectType::ObjectView
            | ObjectType::ObjectMatview
            | ObjectType::ObjectSequence
            | ObjectType::ObjectIndex => {
                self.renamed_relation(s)?.map_or(Ok(()), |relation| self.rename_relation(&relation, &s.newname))
            }
            ObjectType::ObjectColumn | ObjectType::ObjectAttribute => {
                self.renamed_relation(s)?.map_or(Ok(()), |relation| self.rename_column_and_typed(&relation, s))
            }
            ObjectType::ObjectTabconstraint => {
                self.renamed_relation(s)?.map_or(Ok(()), |relation| self.rename_constraint_everywhere(&relation, s))
            }
            ObjectType::ObjectTrigger => self.rename_trigger(s),
            ObjectType::ObjectCollation => self.rename_collation(s.object.as_deref(), &s.newname),
            ObjectType::ObjectPolicy => self.rename_policy(s),
            ObjectType::ObjectSchema => self.rename_schema(&s.subname, &s.newname),
            ObjectType::ObjectRole => self.rename_role(&s.subname, &s.newname),
            ObjectType::ObjectDatabase => {
                let database = self.database_by_name(&s.subname)?;
                self.require_owner(database.owner, "database", &s.subname)?;
                if !self.may_create_databases() {
                    bail!(INSUFFICIENT_PRIVILEGE, "permission denied to rename database");
                }
                if database.oid == self.tx.database {
                    bail!(FEATURE_NOT_SUPPORTED, "current database cannot be renamed");
                }
                if self.catalog().database_by_name(&s.newname).is_some() {
                    bail!(DUPLICATE_DATABASE, "database \"{}\" already exists", s.newname);
                }
                self.tx.put(Object::Database(Arc::new(Database { name: s.newname.as_str().into(), ..(*database).clone() })));
                Ok(())
            }
            ObjectType::ObjectType | ObjectType::ObjectDomain => {
                self.rename_named_type(kind, &*self.named_type(s.object.as_deref())?, &s.newname)
            }
            ObjectType::ObjectDomconstraint => self.rename_domain_constraint(s),
            kind if RoutineName::is_routine(kind) => self.rename_routine(kind, s.object.as_deref(), &s.newname),
            _ => {
                let name = s.object.as_deref().and_then(string).unwrap_or_default();
                Err(DbError::unsupported(format!("renaming {name}")))
            }
        }
    }

    fn rename_schema(&self, from: &str, to: &str) -> Result<()> {
        let namespace = self.namespace(from)?;
        let catalog = self.catalog();
        if catalog.namespace_by_name(to).is_some() {
            bail!(DUPLICATE_SCHEMA, "schema \"{to}\" already exists");
        }
        self.require_owner(namespace.owner, "schema", from)?;
        self.require_database(acl::CREATE)?;
        refuse_reserved_schema(to)?;
        if namespace.oid.0 < classes::FIRST_USER_OID && namespace.oid != classes::PUBLIC {
            // PostgreSQL lets a superuser do it, and does not work any more then.
            return Err(DbError::unsupported("renaming a built-in schema"));
        }
        let members = catalog.relations_in(namespace.oid).filter(|r| r.index.is_none()).map(|r| r.oid);
        let functions = catalog.functions_in(namespace.oid).map(|f| f.oid);
        let types = catalog.types_in(namespace.oid).map(|t| t.oid);
        let kept = self.read_texts(members, functions, types)?;
        self.tx.put(Object::Namespace(Arc::new(Namespace { name: to.into(), ..(*namespace).clone() })));
        self.print_texts(kept)
    }

    fn renamed_relation(&self, s: &RenameStmt) -> Result<Option<Arc<Relation>>> {
        let name = s.relation.as_ref().ok_or_else(|| DbError::internal("RENAME without a relation"))?;
        if s.missing_ok && self.find_relation(name)?.is_none() {
            self.notice(format!("relation \"{}\" does not exist, skipping", name.relname));
            return Ok(None);
        }
        let relation = self.open_target(name)?;
        self.require_own_relation(&relation)?;
        Ok(Some(relation))
    }

    /// Renames a relation, its row type, and the constraint an index belongs to.
    pub fn rename_relation(&self, relation: &Relation, name: &str) -> Result<()> {
        let catalog = self.catalog();
        if catalog.relation_by_name(relation.namespace, name).is_some() {
            bail!(DUPLICATE_TABLE, "relation \"{name}\" already exists");
        }
        self.rewriting_dependents(relation.oid, || {
            self.put_relation(Relation { name: name.into(), ..relation.clone() });
            if let Some(ty) = catalog.type_(relation.row_type) {
                self.rename_type(ty, name)?;
            }
            if let Some(constraint) = relation.index.as_ref().and_then(|i| catalog.constraint(i.constraint)) {
                self.tx.put(Object::Constraint(Arc::new(Constraint { name: name.into(), ..(**constraint).clone() })));
            }
            Ok(())
        })
    }

    /// ALTER TYPE or DOMAIN ... RENAME TO.
    fn rename_named_type(&self, kind: ObjectType, ty: &Type, name: &str) -> Result<()> {
        self.require_type_owner(ty)?;
        self.require_schema(self.user, ty.namespace, acl::CREATE)?;
        let catalog = self.catalog();
        if kind == ObjectType::ObjectDomain && ty.domain.is_none() {
            bail!(WRONG_OBJECT_TYPE, "{} is not a domain", catalog.type_name(ty.oid, self.path));
        }
        self.refuse_type_of_other(ty, "type")?;
        if let Some(relation) = catalog.relation(ty.relation) {
            return self.rename_relation(&relation.clone(), name);
        }
        let address = ObjectAddress { class: classes::PG_TYPE, object: ty.oid, sub: 0 };
        self.rewriting_users_of(address, || self.rename_type(ty, name))
    }

    /// Row types of tables and array types follow their table or element type.
    pub fn refuse_type_of_other(&self, ty: &Type, what: &str) -> Result<()> {
        let catalog = self.catalog();
        let shown = catalog.type_name(ty.oid, self.path);
        if catalog.relation(ty.relation).is_some_and(|r| r.kind != RelationKind::Composite) {
            return Err(err!(WRONG_OBJECT_TYPE, "{shown} is a table's row type").hint("Use ALTER TABLE instead."));
        }
        match catalog.type_(ty.element).filter(|e| e.array == ty.oid) {
            Some(element) => {
                let element = catalog.type_name(element.oid, self.path);
                Err(err!(WRONG_OBJECT_TYPE, "cannot alter array type {shown}")
                    .hint(format!("You can alter {what} {element}, which will alter the array type as well.")))
            }
            None => Ok(()),
        }
    }

    fn rename_type(&self, ty: &Type, name: &str) -> Result<()> {
        let catalog = self.catalog();
        let taken = catalog.type_by_name(ty.namespace, name).map(|t| t.oid);
        if !self.free_type_name(ty.namespace, name)? {
            bail!(DUPLICATE_OBJECT, "type \"{name}\" already exists");
        }
        self.tx.put(Object::Type(Arc::new(Type { name: name.into(), ..ty.clone() })));
        // Its own array type may have had the name, and has another one then.
        if let Some(array) = catalog.type_(ty.array).filter(|a| taken != Some(a.oid)) {
            let array_name = self.array_type_name(name, ty.namespace);
            self.tx.put(Object::Type(Arc::new(Type { name: array_name.into(), ..(**array).clone() })));
        }
        Ok(())
    }

    pub fn rename_column(&self, relation: &Relation, from: &str, to: &str) -> Result<()> {
        if matches!(relation.kind, RelationKind::Index | RelationKind::PartitionedIndex) {
            bail!(WRONG_OBJECT_TYPE, "cannot rename columns of relation \"{}\"", relation.name);
        }
        let at = relation
            .columns
            .iter()
            .position(|c| *c.name == *from && !c.dropped)
            .ok_or_else(|| err!(UNDEFINED_COLUMN, "column \"{from}\" does not exist"))?;
        if relation.columns.iter().any(|c| *c.name == *to && !c.dropped) {
            bail!(DUPLICATE_COLUMN, "column \"{to}\" of relation \"{}\" already exists", relation.name);
        }
        if super::alter_table::is_system_column(to) {
            bail!(DUPLICATE_COLUMN, "column name \"{to}\" conflicts with a system column name");
        }
        self.rewriting_dependents(relation.oid, || {
            let mut columns = relation.columns.to_vec();
            columns[at].name = to.into();
            self.put_relation(Relation { columns: columns.into(), ..relation.clone() });
            // An index's column has the name of the table's.
            let catalog = self.catalog();
            for index in relation.indexes.iter().filter_map(|i| catalog.relation(*i)) {
                let Some(info) = &index.index else { continue };
                let mut columns = index.columns.to_vec();
                for (key, column) in info.keys.iter().zip(&mut columns) {
                    if key.column as usize == at + 1 && *column.name == *from {
                        column.name = to.into();
                    }
                }
                self.put_relation(Relation { columns: columns.into(), ..(**index).clone() });
            }
            Ok(())
        })
    }

    pub fn rename_constraint(&self, relation: &Relation, from: &str, to: &str) -> Result<()> {
        let catalog = self.catalog();
        let mut all = relation.constraints.iter().filter_map(|c| catalog.constraint(*c));
        let Some(constraint) = all.clone().find(|c| *c.name == *from) else {
            bail!(UNDEFINED_OBJECT, "constraint \"{from}\" for table \"{}\" does not exist", relation.name);
        };
        if all.any(|c| *c.name == *to) {
            bail!(DUPLICATE_OBJECT, "constraint \"{to}\" for relation \"{}\" already exists", relation.name);
        }
        self.tx.put(Object::Constraint(Arc::new(Constraint { name: to.into(), ..(**constraint).clone() })));
        if let Some(index) = catalog.relation(constraint.index)
            && index.index.as_ref().is_some_and(|i| i.constraint == constraint.oid)
        {
            self.put_relation(Relation { name: to.into(), ..(**index).clone() });
        }
        Ok(())
    }
}

/// Names that users' schemas cannot have.
pub(super) fn refuse_reserved_schema(name: &str) -> Result<()> {
    match name.starts_with("pg_") {
        true => Err(err!(RESERVED_NAME, "unacceptable schema name \"{name}\"")
            .detail("The prefix \"pg_\" is reserved for system schemas.")),
        false => Ok(()),
    }
}
