//! ALTER ... SET SCHEMA.

use std::sync::Arc;

use melba_catalog::{Constraint, Object, ObjectAddress, Relation, RelationKind, Type, classes};
use melba_types::{DbError, Oid, Result, bail, err};
use pg_query::protobuf::{AlterObjectSchemaStmt, ObjectType};

use super::Ddl;
use super::routine::RoutineName;

impl Ddl<'_> {
    pub fn alter_schema(&self, s: &AlterObjectSchemaStmt) -> Result<()> {
        match s.object_type() {
            kind
            @ (ObjectType::ObjectTable | ObjectType::ObjectView | ObjectType::ObjectSequence | ObjectType::ObjectMatview) => {
                let name = s.relation.as_ref().ok_or_else(|| DbError::internal("ALTER without a name"))?;
                if s.missing_ok && self.find_relation(name)?.is_none() {
                    self.notice(format!("relation \"{}\" does not exist, skipping", name.relname));
                    return Ok(());
                }
                let relation = self.open_target(name)?;
                self.check_movable(kind, &relation)?;
                let target = self.namespace_for_creation(Some(&s.newschema))?;
                self.refuse_special_schema(relation.namespace, target)?;
                self.move_relation(&relation, target)
            }
            kind @ (ObjectType::ObjectType | ObjectType::ObjectDomain) => {
                let ty = self.named_type(s.object.as_deref())?;
                let target = self.namespace_for_creation(Some(&s.newschema))?;
                self.require_type_owner(&ty)?;
                if kind == ObjectType::ObjectDomain && ty.domain.is_none() {
                    bail!(WRONG_OBJECT_TYPE, "{} is not a domain", self.catalog().type_name(ty.oid, self.path));
                }
                self.refuse_type_of_other(&ty, "type")?;
                self.refuse_special_schema(ty.namespace, target)?;
                self.move_named_type(&ty, target)
            }
            ObjectType::ObjectExtension => {
                let name = s.object.as_deref().and_then(melba_parse::nodes::string).unwrap_or_default();
                self.move_extension(name, &s.newschema)
            }
            ObjectType::ObjectCollation => self.move_collation(s.object.as_deref(), &s.newschema),
            ObjectType::ObjectOperator => {
                let operator = self.named_operator(s.object.as_deref())?;
                self.move_operator(&operator, &s.newschema)
            }
            kind if RoutineName::is_routine(kind) => self.move_routine(kind, s.object.as_deref(), &s.newschema),
            _ => Err(DbError::unsupported("ALTER ... SET SCHEMA of this kind of object")),
        }
    }

    fn check_movable(&self, kind: ObjectType, relation: &Relation) -> Result<()> {
        self.require_own_relation(relation)?;
        let cannot = |what: &str, hint: &str| {
            Err(err!(WRONG_OBJECT_TYPE, "cannot change schema of {what} \"{}\"", relation.name).hint(hint.to_owned()))
        };
        super::alter_table::check_kind(kind, relation)?;
        match relation.kind {
            RelationKind::Index | RelationKind::PartitionedIndex => cannot("index", "Change the schema of the table instead."),
            RelationKind::Composite => cannot("composite type", "Use ALTER TYPE instead."),
            _ => self.refuse_owned_sequence(relation),
        }
    }

    /// A sequence is in the schema of its column's table.
    fn refuse_owned_sequence(&self, relation: &Relation) -> Result<()> {
        let catalog = self.catalog();
        let owner = relation.sequence.as_ref().and_then(|s| s.owned_by).and_then(|(table, _)| catalog.relation(table));
        match owner {
            Some(table) => Err(err!(FEATURE_NOT_SUPPORTED, "cannot move an owned sequence into another schema")
                .detail(format!("Sequence \"{}\" is linked to table \"{}\".", relation.name, table.name))),
            None => Ok(()),
        }
    }

    /// A temporary object stays temporary, and toast tables move with their tables.
    fn refuse_special_schema(&self, from: Oid, to: Oid) -> Result<()> {
        let catalog = self.catalog();
        let is_temporary = |oid: Oid| catalog.namespace(oid).is_some_and(|n| n.name.starts_with("pg_temp_"));
        if is_temporary(from) || is_temporary(to) {
            bail!(FEATURE_NOT_SUPPORTED, "cannot move objects into or out of temporary schemas");
        }
        if from == classes::PG_TOAST || to == classes::PG_TOAST {
            bail!(FEATURE_NOT_SUPPORTED, "cannot move objects into or out of TOAST schema");
        }
        Ok(())
    }

    fn move_relation(&self, relation: &Relation, target: Oid) -> Result<()> {
        if relation.namespace == target {
            return Ok(());
        }
        let catalog = self.catalog();
        let schema = catalog.namespace(target).map_or("", |n| &n.name);
        if catalog.relation_by_name(target, &relation.name).is_some() {
            bail!(DUPLICATE_TABLE, "relation \"{}\" already exists in schema \"{schema}\"", relation.name);
        }
        if relation.row_type.is_valid() && catalog.type_by_name(target, &relation.name).is_some() {
            bail!(DUPLICATE_OBJECT, "type \"{}\" already exists in schema \"{schema}\"", relation.name);
        }
        self.rewriting_dependents(relation.oid, || {
            let catalog = self.catalog();
            self.put_relation(Relation { namespace: target, ..relation.clone() });
            for index in relation.indexes.iter().filter_map(|i| catalog.relation(*i)) {
                self.put_relation(Relation { namespace: target, ..(**index).clone() });
            }
            relation.constraints.iter().for_each(|c| self.move_constraint(*c, target));
            if let Some(ty) = catalog.type_(relation.row_type) {
                self.put_moved_type(ty, target);
            }
            for column in relation.columns.iter().filter(|c| !c.dropped) {
                if let Some(sequence) = self.owned_sequence(relation, &column.name) {
                    self.put_relation(Relation { namespace: target, ..(*sequence).clone() });
                }
            }
            Ok(())
        })
    }

    fn move_named_type(&self, ty: &Type, target: Oid) -> Result<()> {
        if ty.namespace == target {
            return Ok(());
        }
        let catalog = self.catalog();
        if let Some(relation) = catalog.relation(ty.relation) {
            return self.move_relation(relation, target);
        }
        if catalog.type_by_name(target, &ty.name).is_some() {
            let schema = catalog.namespace(target).map_or("", |n| &n.name);
            bail!(DUPLICATE_OBJECT, "type \"{}\" already exists in schema \"{schema}\"", ty.name);
        }
        let address = ObjectAddress { class: classes::PG_TYPE, object: ty.oid, sub: 0 };
        self.rewriting_users_of(address, || {
            self.put_moved_type(ty, target);
            ty.domain.iter().flat_map(|d| &d.constraints).for_each(|c| self.move_constraint(*c, target));
            Ok(())
        })
    }

    /// A type and its array type.
    fn put_moved_type(&self, ty: &Type, target: Oid) {
        self.tx.put(Object::Type(Arc::new(Type { namespace: target, ..ty.clone() })));
        let catalog = self.catalog();
        if let Some(array) = catalog.type_(ty.array) {
            let name = self.array_type_name(&ty.name, target).into();
            self.tx.put(Object::Type(Arc::new(Type { namespace: target, name, ..(**array).clone() })));
        }
    }

    fn move_constraint(&self, constraint: Oid, target: Oid) {
        if let Some(constraint) = self.catalog().constraint(constraint) {
            self.tx.put(Object::Constraint(Arc::new(Constraint { namespace: target, ..(**constraint).clone() })));
        }
    }
}
