//! The columns of tables and composite types that a query reads from the rows of functions.

use melba_catalog::{Catalog, ObjectAddress, classes};
use melba_tree::{Expr, Query, RangeFunction, RangeKind};
use melba_types::oids;

/// Adds them to the dependencies of a query: they cannot be dropped, or get another type, while it is stored.
pub fn add_function_columns(catalog: &Catalog, query: &Query, all: &mut Vec<ObjectAddress>) {
    for (at, entry) in query.range_table.iter().enumerate() {
        let RangeKind::Function { functions, .. } = &entry.kind else { continue };
        let columns: Vec<Option<ObjectAddress>> = functions.iter().flat_map(|function| row_columns(catalog, function)).collect();
        query.visit(0, &mut |e, level| {
            if let Expr::Var(v) = e
                && (v.levels_up, v.entry) == (level, at)
                && let Some(place) = usize::try_from(v.column).ok().and_then(|column| column.checked_sub(1))
                && let Some(Some(column)) = columns.get(place)
                && !all.contains(column)
            {
                all.push(*column);
            }
            true
        });
    }
    query.subqueries(&mut |inner| add_function_columns(catalog, inner, all));
    query.expressions(&mut |e| {
        e.any(&mut |e| {
            if let Expr::Sublink(sublink) = e {
                add_function_columns(catalog, &sublink.query, all);
            }
            false
        });
    });
}

/// For each column of a function's result, the column of the row's type that it is.
fn row_columns(catalog: &Catalog, function: &RangeFunction) -> Vec<Option<ObjectAddress>> {
    let ty = function.expr.ty();
    let row = catalog.type_(catalog.base_type(ty)).filter(|_| ty != oids::RECORD && !function.column_definitions);
    let relation = row.and_then(|row| catalog.relation(row.relation));
    let numbered = relation.iter().flat_map(|r| (1..).zip(r.columns.iter()));
    let live = numbered.filter(|(_, column)| !column.dropped).map(|(sub, _)| sub);
    let at = |sub: i32| relation.map(|r| ObjectAddress { class: classes::PG_CLASS, object: r.oid, sub });
    let of_users = |a: Option<ObjectAddress>| a.filter(|a| a.object.0 >= classes::FIRST_USER_OID);
    let mut columns: Vec<Option<ObjectAddress>> = live.map(at).map(of_users).collect();
    columns.resize(function.columns.len(), None);
    columns
}
