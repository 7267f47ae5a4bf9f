//! The system relations and views themselves, as relations.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;
use melba_types::{Kind, Oid};

use crate::classes;
use crate::naming::quote_ident;
use crate::objects::*;
use crate::seed::{Row, seed};
use crate::views::ViewColumn;

/// The relations, and the OIDs of those that all databases share.
pub(super) fn relations(types: &BTreeMap<Oid, Arc<Type>>, role: &dyn Fn(&str) -> Oid) -> (Vec<Arc<Relation>>, Vec<Oid>) {
    let mut columns: HashMap<Oid, Vec<Column>> = HashMap::new();
    for r in seed!("columns").rows() {
        columns.entry(r.oid("attrelid")).or_default().push(column(&r, types, role));
    }
    add_old_names(&mut columns);
    let mut constraints = super::constraints::by_relation();
    let mut relations = BTreeMap::new();
    let mut shared = Vec::new();
    for r in seed!("relations").rows() {
        let mut relation = relation(&r, &mut columns, types, role);
        relation.constraints = constraints.remove(&relation.oid).unwrap_or_default();
        if r.bool("relisshared") {
            shared.push(relation.oid);
        }
        relations.insert(relation.oid, Arc::new(relation));
    }
    for index in super::constraints::indexes(&relations) {
        if index.index.as_ref().is_some_and(|i| shared.contains(&i.table)) {
            shared.push(index.oid);
        }
        relations.insert(index.oid, index);
    }
    (relations.into_values().collect(), shared)
}

/// psql 15 and 16 query columns by the names they had before PostgreSQL 17; the relations have both, the old ones last.
const OLD_NAMES: [(Oid, &str, &str); 2] =
    [(classes::PG_DATABASE, "datlocale", "daticulocale"), (classes::PG_COLLATION, "colllocale", "colliculocale")];

fn add_old_names(columns: &mut HashMap<Oid, Vec<Column>>) {
    for (relation, new, old) in OLD_NAMES {
        if let Some(columns) = columns.get_mut(&relation)
            && let Some(locale) = columns.iter().find(|c| &*c.name == new).cloned()
        {
            columns.push(Column { name: old.into(), ..locale });
        }
    }
}

fn column(r: &Row<'_>, types: &BTreeMap<Oid, Arc<Type>>, role: &dyn Fn(&str) -> Oid) -> Column {
    let name = r.text("attname");
    let ty = r.oid("atttypid");
    let known = types.get(&ty);
    Column {
        typmod: r.number("atttypmod"),
        not_null: r.bool("attnotnull"),
        collation: r.oid("attcollation"),
        acl: r.acl("attacl", role),
        storage: known.map_or(b'p', |t| t.storage),
        ..Column::new(name, ty, known.map_or(Kind::Text, |t| t.kind))
    }
}

/// The query of a view, whose columns are those of PostgreSQL's.
fn view_query(namespace: Oid, name: &str, columns: &[Column], types: &BTreeMap<Oid, Arc<Type>>) -> Arc<str> {
    let type_name = |ty: &Oid| {
        let Some(ty) = types.get(ty) else { return String::from("text") };
        let schema = if ty.namespace == classes::PG_CATALOG { "pg_catalog" } else { "information_schema" };
        format!("{schema}.{}", quote_ident(&ty.name))
    };
    let columns: Vec<_> = columns.iter().map(|c| ViewColumn { name: &c.name, ty: type_name(&c.ty) }).collect();
    crate::views::query(namespace, name, &columns).into()
}

fn relation(
    r: &Row<'_>,
    columns: &mut HashMap<Oid, Vec<Column>>,
    types: &BTreeMap<Oid, Arc<Type>>,
    role: &dyn Fn(&str) -> Oid,
) -> Relation {
    let oid = r.oid("oid");
    let name = r.str("relname");
    let is_view = r.char("relkind") == b'v';
    let namespace = r.oid("relnamespace");
    let columns = columns.remove(&oid).unwrap_or_default();
    Relation {
        kind: if is_view { RelationKind::View } else { RelationKind::Table },
        row_type: r.oid("reltype"),
        storage: if is_view { Storage::None } else { Storage::System(name) },
        file_node: r.oid("relfilenode"),
        options: r.texts("reloptions"),
        view_query: is_view.then(|| view_query(namespace, name, &columns, types)),
        columns: columns.into(),
        // initdb gives a view's array type, row type and rule the three OIDs after its own.
        rule: if is_view { Oid(oid.0 + 3) } else { Oid::INVALID },
        access_method: if is_view { Oid::INVALID } else { classes::HEAP },
        acl: r.acl("relacl", role),
        replica_identity: r.char("relreplident"),
        ..bare_relation(oid, name, namespace)
    }
}

/// A relation with nothing but a name.
pub(super) fn bare_relation(oid: Oid, name: &str, namespace: Oid) -> Relation {
    Relation { file_node: Oid::INVALID, replica_identity: b'n', ..Relation::new(oid, name, namespace, classes::POSTGRES_ROLE) }
}
