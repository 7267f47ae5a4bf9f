//! CREATE SCHEMA, and moving objects between schemas and owners.

use std::sync::Arc;

use melba_catalog::grants::given_to;
use melba_catalog::privileges::AclKind;
use melba_catalog::{Acl, Database, Namespace, Object, Relation, RelationKind, Type, TypeKind, acl};
use melba_types::{DbError, Oid, Result, bail, err};
use pg_query::protobuf::{AlterOwnerStmt, CreateSchemaStmt, Node, ObjectType, RangeVar, node::Node as N};

use super::rename::refuse_reserved_schema;
use super::routine::RoutineName;
use super::{Ddl, execute};
use melba_parse::nodes::{inner, string, strings};

impl Ddl<'_> {
    pub fn create_schema(&self, s: &CreateSchemaStmt) -> Result<()> {
        let owner = match &s.authrole {
            Some(role) => self.role_spec(role)?,
            None => self.user,
        };
        self.require_database(acl::CREATE)?;
        self.require_set_role(owner)?;
        let catalog = self.catalog();
        let name = match s.schemaname.as_str() {
            "" => catalog.role(owner).map_or_else(String::new, |r| r.name.to_string()),
            name => name.to_owned(),
        };
        refuse_reserved_schema(&name)?;
        if catalog.namespace_by_name(&name).is_some() {
            if s.if_not_exists {
                self.session.notice(
                    err!(DUPLICATE_SCHEMA, "schema \"{name}\" already exists, skipping").severity(melba_types::Severity::Notice),
                );
                return Ok(());
            }
            bail!(DUPLICATE_SCHEMA, "schema \"{name}\" already exists");
        }
        let oid = self.tx.new_oid();
        let acl = self.catalog().initial_acl(AclKind::Namespace, owner, Oid::INVALID);
        self.tx.put(Object::Namespace(Arc::new(Namespace { oid, name: name.into(), owner, acl })));
        // The elements are created in the new schema.
        let path: Vec<Oid> = std::iter::once(oid).chain(self.path.iter().copied()).collect();
        let within = Ddl { path: &path, creation_namespace: Some(oid), ..*self };
        for element in &s.schema_elts {
            match execute(&within, inner(element)?) {
                Some(result) => drop(result?),
                None => return Err(DbError::unsupported("this schema element")),
            }
        }
        Ok(())
    }

    /// A schema of the session for temporary objects.
    pub fn create_temporary_schema(tx: &melba_transaction::Tx, name: &str, owner: Oid) -> Oid {
        let oid = tx.new_oid();
        tx.put(Object::Namespace(Arc::new(Namespace { oid, name: name.into(), owner, acl: None })));
        oid
    }

    pub fn alter_owner(&self, s: &AlterOwnerStmt) -> Result<()> {
        let spec = s.newowner.as_ref().ok_or_else(|| DbError::internal("OWNER TO without a role"))?;
        let owner = self.role_spec(spec)?;
        let object = s.object.as_deref();
        match s.object_type() {
            ObjectType::ObjectSchema => {
                let name = object.and_then(string).unwrap_or_default();
                let namespace = self.namespace(name)?;
                self.require_owner(namespace.owner, "schema", name)?;
                self.give_schema(&namespace, owner)
            }
            ObjectType::ObjectLargeobject => self.alter_large_object_owner(object, owner),
            ObjectType::ObjectDatabase => {
                let name = object.and_then(string).unwrap_or_default();
                let database = self.database_by_name(name)?;
                self.require_owner(database.owner, "database", name)?;
                self.check_new_owner(database.owner, owner, None)?;
                if database.owner != owner && !self.may_create_databases() {
                    bail!(INSUFFICIENT_PRIVILEGE, "permission denied to change owner of database");
                }
                self.give_database(&database, owner);
                Ok(())
            }
            ObjectType::ObjectType | ObjectType::ObjectDomain => {
                let ty = self.named_type(object)?;
                self.require_type_owner(&ty)?;
                self.refuse_type_of_other(&ty, "type")?;
                self.refuse_multirange(&ty)?;
                self.check_new_owner(ty.owner, owner, Some(ty.namespace))?;
                self.give_type(&ty, owner);
                Ok(())
            }
            ObjectType::ObjectCollation => self.give_collation(&*self.named_collation(object)?, owner),
            ObjectType::ObjectOperator => {
                let operator = self.named_operator(object)?;
                self.require_owner(operator.owner, "operator", &operator.name)?;
                self.give_operator(&operator, owner)
            }
            kind if RoutineName::is_routine(kind) => self.alter_routine_owner(kind, object, owner),
            _ => Err(DbError::unsupported("ALTER ... OWNER TO of this kind of object")),
        }
    }

    /// # Errors
    /// 42501 when the user may not give it to that role.
    pub fn give_schema(&self, namespace: &Namespace, owner: Oid) -> Result<()> {
        self.check_new_owner(namespace.owner, owner, None)?;
        if namespace.owner != owner {
            self.require_database(acl::CREATE)?;
        }
        let acl = given(&namespace.acl, namespace.owner, owner);
        self.tx.put(Object::Namespace(Arc::new(Namespace { owner, acl, ..namespace.clone() })));
        Ok(())
    }

    /// It belongs to whom its range type belongs.
    fn refuse_multirange(&self, ty: &Type) -> Result<()> {
        let catalog = self.catalog();
        match ty.range.as_ref().filter(|_| ty.type_kind == TypeKind::Multirange) {
            Some(info) => {
                let [own, range] = [ty.oid, info.range].map(|oid| catalog.type_name(oid, self.path));
                Err(err!(WRONG_OBJECT_TYPE, "cannot alter multirange type {own}")
                    .hint(format!("You can alter type {range}, which will alter the multirange type as well.")))
            }
            None => Ok(()),
        }
    }

    pub fn give_database(&self, database: &Database, owner: Oid) {
        let acl = given(&database.acl, database.owner, owner);
        self.tx.put(Object::Database(Arc::new(Database { owner, acl, ..database.clone() })));
    }

    /// A type and its array type get another owner; of a range type, its multirange type, of a composite type, the relation with its
    /// columns, too.
    pub fn give_type(&self, ty: &Type, owner: Oid) {
        let catalog = self.catalog();
        let acl = given(&ty.acl, ty.owner, owner);
        self.tx.put(Object::Type(Arc::new(Type { owner, acl, ..ty.clone() })));
        if let Some(array) = catalog.type_(ty.array) {
            self.tx.put(Object::Type(Arc::new(Type { owner, ..(**array).clone() })));
        }
        let multirange = ty.range.as_ref().filter(|_| ty.type_kind == TypeKind::Range).map(|r| r.multirange);
        if let Some(multirange) = multirange.and_then(|oid| catalog.type_(oid)) {
            self.give_type(multirange, owner);
        }
        if let Some(columns) = catalog.relation(ty.relation).filter(|r| r.kind == RelationKind::Composite) {
            self.put_relation(Relation { owner, ..(**columns).clone() });
        }
    }

    /// The type that a statement names.
    pub fn named_type(&self, object: Option<&Node>) -> Result<Arc<Type>> {
        let names = match object.and_then(|n| n.node.as_ref()) {
            Some(N::List(list)) => strings(&list.items),
            Some(N::TypeName(name)) => strings(&name.names),
            _ => vec![],
        };
        let found = self.type_named(&names)?;
        match object.and_then(|n| n.node.as_ref()) {
            Some(N::TypeName(name)) if !name.array_bounds.is_empty() => {
                let array = self.catalog().type_(found.array).cloned();
                array.ok_or_else(|| err!(UNDEFINED_OBJECT, "type \"{}[]\" does not exist", names.join(".")))
            }
            _ => Ok(found),
        }
    }

    /// The type of a name, which may have a schema before it.
    pub fn type_named(&self, names: &[&str]) -> Result<Arc<Type>> {
        let (schema, name) = self.split(names)?;
        let catalog = self.catalog();
        let found = self.searched_schemas(schema)?.iter().find_map(|ns| catalog.type_by_name(*ns, name));
        found.cloned().ok_or_else(|| err!(UNDEFINED_OBJECT, "type \"{}\" does not exist", names.join(".")))
    }
}

/// A RangeVar for a name given as a list of strings.
pub fn range_var(names: &[&str]) -> RangeVar {
    RangeVar {
        relname: names.last().map_or_else(String::new, |s| s.to_string()),
        schemaname: if names.len() > 1 { names[names.len() - 2].to_owned() } else { String::new() },
        inh: true,
        relpersistence: "p".into(),
        location: -1,
        ..RangeVar::default()
    }
}

/// A privilege list after a change of its object's owner.
pub fn given(acl: &Acl, old: Oid, new: Oid) -> Acl {
    acl.as_ref().map(|items| given_to(items, old, new).into())
}

/// The word for a kind of relation in messages.
pub fn relation_word(kind: RelationKind) -> &'static str {
    match kind {
        RelationKind::Index | RelationKind::PartitionedIndex => "index",
        RelationKind::Sequence => "sequence",
        RelationKind::View => "view",
        RelationKind::MaterializedView => "materialized view",
        RelationKind::Composite => "type",
        _ => "table",
    }
}
