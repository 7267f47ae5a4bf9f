//! CREATE TYPE (enum, composite); range types are in `range`, domains in `domain`.

use std::sync::Arc;

use melba_catalog::default_privileges::initial_acl;
use melba_catalog::privileges::AclKind;
use melba_catalog::{Object, ObjectAddress, Persistence, Relation, RelationKind, Type, TypeKind, classes};
use melba_definition::context::Ddl;
use melba_definition::naming::NAME_BYTES_MAX;
use melba_parse::nodes::{inner, string, strings};
use melba_relation::stored_text::rewriting_users_of;
use melba_relation::table::builder::TableBuilder;
use melba_relation::table::create::add_column_definition;
use melba_relation::table::relation::{bare_relation, put_relation_with_row_type};
use melba_routine::array::{bare_type, free_type_name, new_type_name, put_array_type};
use melba_routine::shell::own_shell;
use melba_types::{DbError, Kind, Oid, Result, bail, err};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{AlterEnumStmt, CompositeTypeStmt, CreateEnumStmt};

use crate::types::named::{open_type, require_defined};

pub fn create_enum(ddl: &Ddl<'_>, s: &CreateEnumStmt) -> Result<()> {
    let (namespace, name, shell) = new_type_name(ddl, &strings(&s.type_name))?;
    let mut labels: Vec<(Oid, f32, Arc<str>)> = Vec::new();
    for node in &s.vals {
        let label = string(node).unwrap_or_default();
        check_label(label)?;
        if labels.iter().any(|l| *l.2 == *label) {
            bail!(UNIQUE_VIOLATION, "enum label \"{label}\" used more than once");
        }
        labels.push((ddl.tx().new_oid(), labels.len() as f32 + 1.0, label.into()));
    }
    let oid = shell.unwrap_or_else(|| ddl.tx().new_oid());
    let array = put_array_type(ddl, name, namespace, oid, b'i')?;
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
        acl: initial_acl(&ddl.catalog(), AclKind::Type, ddl.user(), namespace),
        kind: Kind::Oid,
        ..bare_type(ddl, namespace)
    };
    ddl.tx().put(Object::Type(Arc::new(ty)));
    Ok(())
}

pub fn alter_enum(ddl: &Ddl<'_>, s: &AlterEnumStmt) -> Result<()> {
    let names = strings(&s.type_name);
    let list = pg_query::protobuf::Node { node: Some(N::List(pg_query::protobuf::List { items: s.type_name.clone() })) };
    let ty = open_type(ddl, Some(&list))?;
    require_defined(ddl, &ty)?;
    if ty.type_kind != TypeKind::Enum {
        bail!(WRONG_OBJECT_TYPE, "{} is not an enum", names.join("."));
    }
    ddl.require_type_owner(&ty)?;
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
                ddl.session().notice(
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
        labels.insert(at, (ddl.tx().new_oid(), sort, s.new_val.as_str().into()));
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
        return rewriting_users_of(ddl, address, || {
            ddl.tx().put(renamed);
            Ok(())
        });
    }
    ddl.tx().put(Object::Type(Arc::new(Type { labels, ..(*ty).clone() })));
    Ok(())
}

pub fn create_composite(ddl: &Ddl<'_>, s: &CompositeTypeStmt) -> Result<()> {
    let name = s.typevar.as_ref().ok_or_else(|| DbError::internal("composite type without a name"))?;
    let (namespace, _) = ddl.relation_namespace(name)?;
    if own_shell(ddl, namespace, &name.relname)?.is_none() && !free_type_name(ddl, namespace, &name.relname)? {
        bail!(DUPLICATE_OBJECT, "type \"{}\" already exists", name.relname);
    }
    if ddl.catalog().relation_by_name(namespace, &name.relname).is_some() {
        bail!(DUPLICATE_TABLE, "relation \"{}\" already exists", name.relname);
    }
    let mut builder = TableBuilder::default();
    for node in &s.coldeflist {
        if let N::ColumnDef(def) = inner(node)? {
            add_column_definition(ddl, &mut builder, def).map_err(DbError::without_position)?;
        }
    }
    let relation = Relation {
        persistence: Persistence::Permanent,
        ..bare_relation(ddl, namespace, &name.relname, RelationKind::Composite, Persistence::Permanent, builder.columns)
    };
    put_relation_with_row_type(ddl, relation)
}

fn check_label(label: &str) -> Result<()> {
    if label.len() > NAME_BYTES_MAX {
        return Err(err!(INVALID_NAME, "invalid enum label \"{label}\"")
            .detail(format!("Labels must be {NAME_BYTES_MAX} bytes or less.")));
    }
    Ok(())
}
