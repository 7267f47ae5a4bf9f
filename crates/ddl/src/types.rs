//! CREATE TYPE (enum, composite); range types are in `range`, domains in `domain`.

use std::sync::Arc;

use melba_catalog::privileges::AclKind;
use melba_catalog::{Object, ObjectAddress, Persistence, Relation, RelationKind, Type, TypeKind, classes};
use melba_types::{DbError, Kind, Oid, Result, bail, err};
use pg_query::protobuf::{AlterEnumStmt, CompositeTypeStmt, CreateEnumStmt, node::Node as N};

use super::Ddl;
use super::create_table::TableBuilder;
use super::naming::{NAME_BYTES_MAX, clip};
use melba_parse::nodes::{inner, string, strings};

impl Ddl<'_> {
    /// A pg_type row with everything optional left out.
    pub fn bare_type(&self, namespace: Oid) -> Type {
        Type {
            oid: Oid::INVALID,
            name: "".into(),
            namespace,
            owner: self.user,
            type_kind: TypeKind::Base,
            category: b'U',
            preferred: false,
            length: -1,
            by_value: false,
            align: b'i',
            storage: b'x',
            delimiter: b',',
            defined: true,
            element: Oid::INVALID,
            array: Oid::INVALID,
            collation: Oid::INVALID,
            input: "-".into(),
            output: "-".into(),
            receive: "-".into(),
            send: "-".into(),
            typmod_in: "-".into(),
            typmod_out: "-".into(),
            subscript: "-".into(),
            relation: Oid::INVALID,
            domain: None,
            labels: vec![],
            range: None,
            acl: None,
            kind: Kind::Bytes,
            depends_on: vec![],
        }
    }

    /// Whether a name can be given to a new type. An array type that has it gets another one.
    pub fn free_type_name(&self, namespace: Oid, name: &str) -> Result<bool> {
        let catalog = self.catalog();
        let Some(taken) = catalog.type_by_name(namespace, name) else { return Ok(true) };
        let is_generated = taken.category == b'A' && catalog.type_(taken.element).is_some_and(|e| e.array == taken.oid);
        if !is_generated || taken.oid.0 < classes::FIRST_USER_OID {
            return Ok(false);
        }
        let array = Type { name: self.array_type_name(name, namespace).into(), ..(**taken).clone() };
        self.tx.put(Object::Type(Arc::new(array)));
        Ok(true)
    }

    /// `_name`, with a number when that is taken.
    pub fn array_type_name(&self, name: &str, namespace: Oid) -> String {
        let catalog = self.catalog();
        let attempt = |suffix: &str| {
            let name = format!("_{}{suffix}", clip(name, NAME_BYTES_MAX - 1 - suffix.len()));
            catalog.type_by_name(namespace, &name).is_none().then_some(name)
        };
        let numbered = || (1..).find_map(|n: u32| attempt(&format!("_{n}")));
        attempt("").or_else(numbered).expect("there are more numbers than types")
    }

    /// The array type over a new type.
    pub fn put_array_type(&self, name: &str, namespace: Oid, element: Oid, align: u8) -> Result<Oid> {
        let array_name = self.array_type_name(name, namespace);
        let oid = self.tx.new_oid();
        let array = Type {
            oid,
            name: array_name.into(),
            category: b'A',
            align,
            element,
            input: "array_in".into(),
            output: "array_out".into(),
            receive: "array_recv".into(),
            send: "array_send".into(),
            subscript: "array_subscript_handler".into(),
            kind: Kind::Array,
            ..self.bare_type(namespace)
        };
        self.tx.put(Object::Type(Arc::new(array)));
        Ok(oid)
    }

    pub fn new_type_name<'n>(&self, names: &[&'n str]) -> Result<(Oid, &'n str)> {
        let (schema, name) = self.split(names)?;
        let namespace = self.namespace_for_creation(schema)?;
        if !self.free_type_name(namespace, name)? {
            bail!(DUPLICATE_OBJECT, "type \"{name}\" already exists");
        }
        Ok((namespace, name))
    }

    pub fn create_enum(&self, s: &CreateEnumStmt) -> Result<()> {
        let (namespace, name) = self.new_type_name(&strings(&s.type_name))?;
        let mut labels: Vec<(Oid, f32, Arc<str>)> = Vec::new();
        for node in &s.vals {
            let label = string(node).unwrap_or_default();
            check_label(label)?;
            if labels.iter().any(|l| *l.2 == *label) {
                bail!(UNIQUE_VIOLATION, "enum label \"{label}\" used more than once");
            }
            labels.push((self.tx.new_oid(), labels.len() as f32 + 1.0, label.into()));
        }
        let oid = self.tx.new_oid();
        let array = self.put_array_type(name, namespace, oid, b'i')?;
        let ty = Type {
            oid,
            name: name.into(),
            type_kind: TypeKind::Enum,
            category: b'E',
            length: 4,
            by_value: true,
            storage: b'p',
            array,
            input: "enum_in".into(),
            output: "enum_out".into(),
            receive: "enum_recv".into(),
            send: "enum_send".into(),
            labels,
            acl: self.catalog().initial_acl(AclKind::Type, self.user, namespace),
            kind: Kind::Oid,
            ..self.bare_type(namespace)
        };
        self.tx.put(Object::Type(Arc::new(ty)));
        Ok(())
    }

    pub fn alter_enum(&self, s: &AlterEnumStmt) -> Result<()> {
        let names = strings(&s.type_name);
        let list = pg_query::protobuf::Node { node: Some(N::List(pg_query::protobuf::List { items: s.type_name.clone() })) };
        let ty = self.named_type(Some(&list))?;
        if ty.type_kind != TypeKind::Enum {
            bail!(WRONG_OBJECT_TYPE, "{} is not an enum", names.join("."));
        }
        self.require_type_owner(&ty)?;
        let mut labels = ty.labels.clone();
        let position = |label: &str, labels: &[(Oid, f32, Arc<str>)]| {
            labels
                .iter()
                .position(|l| *l.2 == *label)
                .ok_or_else(|| err!(INVALID_PARAMETER_VALUE, "\"{label}\" is not an existing enum label"))
        };
        if s.old_val.is_empty() {
            check_label(&s.new_val)?;
            if labels.iter().any(|l| *l.2 == *s.new_val) {
                if s.skip_if_new_val_exists {
                    self.session.notice(
                        err!(DUPLICATE_OBJECT, "enum label \"{}\" already exists, skipping", s.new_val)
                            .severity(melba_types::Severity::Notice),
                    );
                    return Ok(());
                }
                bail!(DUPLICATE_OBJECT, "enum label \"{}\" already exists", s.new_val);
            }
            let at = match s.new_val_neighbor.as_str() {
                "" => labels.len(),
                neighbor => position(neighbor, &labels)? + usize::from(s.new_val_is_after),
            };
            let order = |i: usize| labels.get(i).map(|l| l.1);
            let sort = match (at.checked_sub(1).and_then(order), order(at)) {
                (None, None) => 1.0,
                (Some(before), None) => before + 1.0,
                (None, Some(after)) => after - 1.0,
                (Some(before), Some(after)) => (before + after) / 2.0,
            };
            labels.insert(at, (self.tx.new_oid(), sort, s.new_val.as_str().into()));
            let is_between = |n: usize| labels.get(n).zip(labels.get(n + 1)).is_none_or(|(a, b)| a.1 < b.1);
            if !(is_between(at) && at.checked_sub(1).is_none_or(is_between)) {
                // There is no number between the neighbours' any more.
                labels.iter_mut().enumerate().for_each(|(n, label)| label.1 = n as f32 + 1.0);
            }
        } else {
            let at = position(&s.old_val, &labels)?;
            if labels.iter().any(|l| *l.2 == *s.new_val) {
                bail!(DUPLICATE_OBJECT, "enum label \"{}\" already exists", s.new_val);
            }
            labels[at].2 = s.new_val.as_str().into();
            // Stored texts have the label's name.
            let address = ObjectAddress { class: classes::PG_TYPE, object: ty.oid, sub: 0 };
            let renamed = Object::Type(Arc::new(Type { labels, ..(*ty).clone() }));
            return self.rewriting_users_of(address, || {
                self.tx.put(renamed);
                Ok(())
            });
        }
        self.tx.put(Object::Type(Arc::new(Type { labels, ..(*ty).clone() })));
        Ok(())
    }

    pub fn create_composite(&self, s: &CompositeTypeStmt) -> Result<()> {
        let name = s.typevar.as_ref().ok_or_else(|| DbError::internal("composite type without a name"))?;
        let (namespace, _) = self.relation_namespace(name)?;
        if !self.free_type_name(namespace, &name.relname)? {
            bail!(DUPLICATE_OBJECT, "type \"{}\" already exists", name.relname);
        }
        if self.catalog().relation_by_name(namespace, &name.relname).is_some() {
            bail!(DUPLICATE_TABLE, "relation \"{}\" already exists", name.relname);
        }
        let mut builder = TableBuilder::default();
        for node in &s.coldeflist {
            if let N::ColumnDef(def) = inner(node)? {
                self.add_column_definition(&mut builder, def)?;
            }
        }
        let relation = Relation {
            persistence: Persistence::Permanent,
            ..self.bare_relation(namespace, &name.relname, RelationKind::Composite, Persistence::Permanent, builder.columns)
        };
        self.put_relation_with_row_type(relation)
    }
}

fn check_label(label: &str) -> Result<()> {
    if label.len() > NAME_BYTES_MAX {
        return Err(err!(INVALID_NAME, "invalid enum label \"{label}\"")
            .detail(format!("Labels must be {NAME_BYTES_MAX} bytes or less.")));
    }
    Ok(())
}
