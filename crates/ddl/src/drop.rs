//! DROP: finds the named objects, and drops each; `dependents` finds the others.

use std::sync::Arc;

use melba_catalog::{
    Catalog, Column, Constraint, DomainInfo, Object, ObjectAddress, Relation, RelationKind, Storage, Type, classes,
};
use melba_engine::RelationLockMode;
use melba_types::{DbError, Oid, Result, SqlState, err};
use pg_query::protobuf::{DropBehavior, DropStmt, Node, ObjectType, node::Node as N};

use super::Ddl;
use super::routine::RoutineName;
use super::schema::{range_var, relation_word};
use melba_parse::command::object_word;
use melba_parse::nodes::{inner, string, strings};

impl Ddl<'_> {
    pub fn drop_objects(&self, s: &DropStmt) -> Result<()> {
        let kind = s.remove_type();
        let mut addresses = Vec::new();
        for object in &s.objects {
            if let Some(address) = self.resolve_dropped(kind, object, s.missing_ok)? {
                self.refuse_concurrently(s, address.object)?;
                addresses.push(address);
            }
        }
        self.drop_addresses(&addresses, s.behavior() == DropBehavior::DropCascade)
    }

    fn refuse_concurrently(&self, s: &DropStmt, index: Oid) -> Result<()> {
        match self.catalog().relation(index) {
            Some(r) if s.concurrent && r.kind == RelationKind::PartitionedIndex => {
                Err(err!(FEATURE_NOT_SUPPORTED, "cannot drop partitioned index \"{}\" concurrently", r.name))
            }
            _ => Ok(()),
        }
    }

    fn resolve_dropped(&self, kind: ObjectType, object: &Node, missing_ok: bool) -> Result<Option<ObjectAddress>> {
        match kind {
            _ if RoutineName::is_routine(kind) => self.dropped_routine(kind, object, missing_ok),
            ObjectType::ObjectCast => self.find_cast(Some(object), missing_ok),
            ObjectType::ObjectOperator => self.find_operator(object, missing_ok),
            ObjectType::ObjectCollation => self.find_collation(object, missing_ok),
            _ => self.resolve_named(kind, object, missing_ok),
        }
    }

    fn resolve_named(&self, kind: ObjectType, object: &Node, missing_ok: bool) -> Result<Option<ObjectAddress>> {
        let names = match inner(object)? {
            N::List(list) => strings(&list.items),
            N::String(_) => string(object).into_iter().collect(),
            N::TypeName(name) => strings(&name.names),
            _ => vec![],
        };
        let skip = |error: DbError, what: &str| {
            if !missing_ok {
                return Err(error);
            }
            self.notice(format!("{what} \"{}\" does not exist, skipping", names.join(".")));
            Ok(None)
        };
        match kind {
            ObjectType::ObjectTable
            | ObjectType::ObjectView
            | ObjectType::ObjectMatview
            | ObjectType::ObjectSequence
            | ObjectType::ObjectIndex => {
                let word = relation_kind_word(kind);
                let range = range_var(&names);
                if names.len() > 1
                    && self.catalog().namespace_by_name(&range.schemaname).is_none()
                    && range.schemaname != "pg_temp"
                {
                    let error = err!(INVALID_SCHEMA_NAME, "schema \"{}\" does not exist", range.schemaname);
                    if !missing_ok {
                        return Err(error);
                    }
                    self.notice(format!("schema \"{}\" does not exist, skipping", range.schemaname));
                    return Ok(None);
                }
                if self.find_relation(&range)?.is_none() {
                    let message = format!("{word} \"{}\" does not exist", names.join("."));
                    let state =
                        if kind == ObjectType::ObjectIndex { SqlState::UNDEFINED_OBJECT } else { SqlState::UNDEFINED_TABLE };
                    return skip(DbError::new(state, message), word);
                }
                let relation = self.open_target(&range)?;
                self.check_dropped_kind(kind, &relation)?;
                Ok(Some(ObjectAddress { class: classes::PG_CLASS, object: relation.oid, sub: 0 }))
            }
            ObjectType::ObjectSchema => {
                let (name, catalog) = (names.first().copied().unwrap_or_default(), self.catalog());
                let Some(namespace) = catalog.namespace_by_name(name) else {
                    return skip(err!(INVALID_SCHEMA_NAME, "schema \"{name}\" does not exist"), "schema");
                };
                self.require_owner(namespace.owner, "schema", name)?;
                Ok(Some(ObjectAddress { class: classes::PG_NAMESPACE, object: namespace.oid, sub: 0 }))
            }
            ObjectType::ObjectTrigger => self.dropped_trigger(&names, missing_ok),
            ObjectType::ObjectPolicy => self.find_policy(&names, missing_ok),
            ObjectType::ObjectExtension => self.dropped_extension(names.first().unwrap_or(&""), missing_ok),
            ObjectType::ObjectType | ObjectType::ObjectDomain => match self.named_type(Some(object)) {
                Ok(ty) => {
                    if kind == ObjectType::ObjectDomain && ty.domain.is_none() {
                        return Err(err!(WRONG_OBJECT_TYPE, "\"{}\" is not a domain", ty.name));
                    }
                    self.require_type_owner(&ty)?;
                    Ok(Some(ObjectAddress { class: classes::PG_TYPE, object: ty.oid, sub: 0 }))
                }
                Err(error) => skip(error, "type"),
            },
            _ => Err(DbError::unsupported(format!("DROP {}", object_word(kind)))),
        }
    }

    fn check_dropped_kind(&self, kind: ObjectType, relation: &Relation) -> Result<()> {
        let right = match kind {
            ObjectType::ObjectTable => matches!(relation.kind, RelationKind::Table | RelationKind::PartitionedTable),
            ObjectType::ObjectView => relation.kind == RelationKind::View,
            ObjectType::ObjectMatview => relation.kind == RelationKind::MaterializedView,
            ObjectType::ObjectSequence => relation.kind == RelationKind::Sequence,
            _ => matches!(relation.kind, RelationKind::Index | RelationKind::PartitionedIndex),
        };
        if !right {
            let word = relation_kind_word(kind);
            let article = if kind == ObjectType::ObjectIndex { "an" } else { "a" };
            let own = relation_word(relation.kind);
            return Err(err!(WRONG_OBJECT_TYPE, "\"{}\" is not {article} {word}", relation.name).hint(format!(
                "Use DROP {} to remove a{} {own}.",
                own.to_uppercase(),
                if own == "index" { "n" } else { "" }
            )));
        }
        self.require_own_relation(relation)?;
        let Some(info) = &relation.index else { return Ok(()) };
        self.refuse_index_part(relation)?;
        if info.constraint.is_valid() {
            let catalog = self.catalog();
            let name = catalog.constraint(info.constraint).map_or("", |c| &c.name);
            let table = catalog.relation(info.table).map_or("", |r| &r.name);
            return Err(err!(
                DEPENDENT_OBJECTS_STILL_EXIST,
                "cannot drop index {} because constraint {name} on table {table} requires it",
                relation.name
            )
            .hint(format!("You can drop constraint {name} on table {table} instead.")));
        }
        Ok(())
    }

    /// Forgets one object and its storage.
    pub(super) fn remove_object(&self, address: ObjectAddress) -> Result<()> {
        let catalog = self.catalog();
        match address.class {
            classes::PG_CLASS if address.sub != 0 => {
                if catalog.relation(address.object).is_some() {
                    self.mark_column_dropped(address.object, address.sub)?;
                }
                return Ok(());
            }
            classes::PG_CLASS => {
                let Some(relation) = catalog.relation(address.object) else { return Ok(()) };
                self.lock_relation(address.object, RelationLockMode::AccessExclusive)?;
                if matches!(relation.kind, RelationKind::Index | RelationKind::PartitionedIndex) {
                    return self.drop_index_storage(address.object);
                }
                self.refuse_pending_events(relation, "DROP TABLE")?;
                match relation.storage {
                    Storage::Tree(tree) => self.tx.engine.drop_tree(tree)?,
                    Storage::Sequence(sequence) => self.tx.engine.drop_sequence(melba_engine::SequenceId(sequence.0))?,
                    Storage::None | Storage::System(_) | Storage::Toast(_) => {}
                }
                if relation.row_type.is_valid() {
                    self.remove_type(&catalog, relation.row_type);
                }
            }
            classes::PG_CONSTRAINT => {
                if let Some(constraint) = catalog.constraint(address.object) {
                    // A table that is dropped too has already dropped its lists.
                    if constraint.relation.is_valid() && catalog.relation(constraint.relation).is_some() {
                        return self.drop_constraint_row(constraint);
                    }
                    self.remove_from_domain(&catalog, constraint);
                }
            }
            classes::PG_TRIGGER => return self.remove_trigger(address.object),
            classes::PG_OPERATOR => self.unlink_operator(address.object),
            classes::PG_ATTRDEF => return self.remove_default(&catalog, address.object),
            classes::PG_TYPE => {
                self.remove_type(&catalog, address.object);
                return Ok(());
            }
            // They belong to the process: their visible parts are dropped with the extension.
            classes::PG_OPCLASS | classes::PG_OPFAMILY => return Ok(()),
            _ => {}
        }
        self.tx.remove(address);
        Ok(())
    }

    fn remove_type(&self, catalog: &Catalog, oid: Oid) {
        if let Some(ty) = catalog.type_(oid)
            && ty.array.is_valid()
        {
            self.tx.remove(ObjectAddress { class: classes::PG_TYPE, object: ty.array, sub: 0 });
        }
        self.tx.remove(ObjectAddress { class: classes::PG_TYPE, object: oid, sub: 0 });
    }

    /// A domain that stays forgets the constraint.
    fn remove_from_domain(&self, catalog: &Catalog, constraint: &Constraint) {
        if let Some(ty) = catalog.type_(constraint.domain)
            && let Some(info) = &ty.domain
        {
            let constraints = info.constraints.iter().copied().filter(|c| *c != constraint.oid).collect();
            let domain = Some(Arc::new(DomainInfo { constraints, ..(**info).clone() }));
            self.tx.put(Object::Type(Arc::new(Type { domain, ..(**ty).clone() })));
        }
    }

    fn remove_default(&self, catalog: &Catalog, default: Oid) -> Result<()> {
        if let Some(relation) = catalog.relation_of_part(default) {
            let columns = relation.columns.iter().map(|c| match c.default_oid == default {
                true => Column { default: None, default_oid: Oid::INVALID, default_depends_on: vec![], ..c.clone() },
                false => c.clone(),
            });
            self.put_relation(Relation { columns: columns.collect(), ..(**relation).clone() });
        }
        Ok(())
    }

    /// An object as messages about dependencies name it.
    pub fn describe(&self, address: ObjectAddress) -> String {
        let catalog = self.catalog();
        match address.class {
            classes::PG_CLASS => match catalog.relation(address.object) {
                Some(r) if address.sub > 0 => {
                    let column = r.columns.get(address.sub as usize - 1).map_or("?", |c| &c.name);
                    let of = if r.kind == RelationKind::Composite { "composite type" } else { relation_word(r.kind) };
                    format!("column {column} of {of} {}", self.visible_name(r))
                }
                Some(r) if r.kind == RelationKind::Composite => format!("composite type {}", self.visible_name(r)),
                Some(r) => format!("{} {}", relation_word(r.kind), self.visible_name(r)),
                None => format!("relation {}", address.object),
            },
            classes::PG_CONSTRAINT => match catalog.constraint(address.object) {
                Some(c) => match catalog.relation(c.relation) {
                    Some(r) => format!("constraint {} on {} {}", c.name, relation_word(r.kind), self.visible_name(r)),
                    None => format!("constraint {}", c.name),
                },
                None => format!("constraint {}", address.object),
            },
            classes::PG_TRIGGER | classes::PG_POLICY => self.describe_on_table(address),
            classes::PG_TYPE => format!("type {}", catalog.type_name(address.object, self.path)),
            classes::PG_NAMESPACE => format!("schema {}", catalog.namespace(address.object).map_or("?", |n| &n.name)),
            classes::PG_PROC => match catalog.function(address.object) {
                Some(f) => format!("function {}", catalog.function_signature(f, self.path)),
                None => format!("function {}", address.object),
            },
            classes::PG_ATTRDEF => match catalog.column_with_default(address.object) {
                Some((r, at)) => {
                    let column = &r.columns[at].name;
                    format!("default value for column {column} of {} {}", relation_word(r.kind), self.visible_name(r))
                }
                None => format!("default {}", address.object),
            },
            classes::PG_EXTENSION => format!("extension {}", catalog.extension(address.object).map_or("?", |e| &e.name)),
            classes::PG_OPERATOR => match catalog.operator(address.object) {
                Some(o) => {
                    let operand = |ty| catalog.type_name(ty, self.path);
                    let left = if o.left.is_valid() { operand(o.left) } else { "NONE".to_owned() };
                    format!("operator {}({left},{})", o.name, operand(o.right))
                }
                None => format!("operator {}", address.object),
            },
            classes::PG_CAST => match catalog.cast_by_oid(address.object) {
                Some(c) => {
                    let name = |ty| catalog.type_name(ty, self.path);
                    format!("cast from {} to {}", name(c.source), name(c.target))
                }
                None => format!("cast {}", address.object),
            },
            classes::PG_COLLATION => match catalog.collation(address.object) {
                Some(c) => {
                    format!("collation {}", catalog.qualified(catalog.collation_is_visible(c, self.path), c.namespace, &c.name))
                }
                None => format!("collation {}", address.object),
            },
            classes::PG_LARGEOBJECT => format!("large object {}", address.object),
            classes::PG_DATABASE => format!("database {}", catalog.database(address.object).map_or("?", |d| &d.name)),
            classes::PG_DEFAULT_ACL => match catalog.default_acl_by_oid(address.object) {
                Some(acl) => self.describe_default_acl(acl),
                None => format!("default ACL {}", address.object),
            },
            classes::PG_OPCLASS => self.describe_operator_class(address),
            _ => format!("object {}", address.object),
        }
    }

    /// An operator class of an extension.
    fn describe_operator_class(&self, address: ObjectAddress) -> String {
        let catalog = self.catalog();
        let Some(class) = catalog.access_methods().class(address.object) else {
            return format!("operator class {}", address.object);
        };
        let namespace = catalog.extension_of(address).map_or(classes::PG_CATALOG, |e| e.namespace);
        let name = catalog.qualified(self.path.contains(&namespace), namespace, class.name);
        let method = catalog.access_methods().method_name(class.method).unwrap_or("?");
        format!("operator class {name} for access method {method}")
    }

    /// The name of an object within its table.
    fn describe_on_table(&self, address: ObjectAddress) -> String {
        let (word, found) = match self.catalog().object(address) {
            Some(Object::Trigger(t)) => ("trigger", Some((t.name.clone(), t.table))),
            Some(Object::Policy(p)) => ("policy", Some((p.name.clone(), p.table))),
            _ => (if address.class == classes::PG_TRIGGER { "trigger" } else { "policy" }, None),
        };
        match found {
            Some((name, table)) => {
                format!("{word} {name} on {}", self.describe(ObjectAddress { class: classes::PG_CLASS, object: table, sub: 0 }))
            }
            None => format!("{word} {}", address.object),
        }
    }

    /// The relation's name, qualified when the search path does not find it.
    fn visible_name(&self, relation: &Relation) -> String {
        let catalog = self.catalog();
        let found = self.path.iter().find_map(|ns| catalog.relation_by_name(*ns, &relation.name));
        if found.is_some_and(|f| f.oid == relation.oid) {
            melba_catalog::quote_ident(&relation.name).into_owned()
        } else {
            self.qualified_name(relation)
        }
    }
}

fn relation_kind_word(kind: ObjectType) -> &'static str {
    match kind {
        ObjectType::ObjectView => "view",
        ObjectType::ObjectMatview => "materialized view",
        ObjectType::ObjectSequence => "sequence",
        ObjectType::ObjectIndex => "index",
        _ => "table",
    }
}
