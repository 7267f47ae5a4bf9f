//! What uses a column or a table's row type, and so forbids to change it.

use std::sync::Arc;

use melba_catalog::{ObjectAddress, Relation, RelationKind, Storage, classes};
use melba_tree::Var;
use melba_types::{Oid, Result, bail, err};

use melba_definition::context::Ddl;
use melba_definition::describe::describe;

/// An expression stored as text that uses the column would have another meaning with another type of it.
pub fn refuse_used_column(ddl: &Ddl<'_>, relation: &Relation, at: usize) -> Result<()> {
    let catalog = ddl.catalog();
    let name = &relation.columns[at].name;
    let address = ObjectAddress { class: classes::PG_CLASS, object: relation.oid, sub: at as i32 + 1 };
    if let Some(column) = generated_from(ddl, relation, at)?.first() {
        let user = &relation.columns[*column].name;
        return Err(err!(FEATURE_NOT_SUPPORTED, "cannot alter type of a column used by a generated column")
            .detail(format!("Column \"{name}\" is used by generated column \"{user}\".")));
    }
    for dependent in catalog.dependents(address).map(|d| d.dependent).filter(|d| d.object != relation.oid) {
        let (what, detail) = match dependent.class {
            classes::PG_PROC => ("function or procedure", format!("{} depends on column \"{name}\"", describe(ddl, dependent))),
            classes::PG_TRIGGER => ("trigger definition", format!("{} depends on column \"{name}\"", describe(ddl, dependent))),
            classes::PG_POLICY => ("policy definition", format!("{} depends on column \"{name}\"", describe(ddl, dependent))),
            classes::PG_REWRITE => ("view or rule", format!("{} depends on column \"{name}\"", describe(ddl, dependent))),
            classes::PG_CLASS if catalog.relation(dependent.object).is_some_and(|r| r.rule.is_valid()) => {
                ("view or rule", format!("rule _RETURN on {} depends on column \"{name}\"", describe(ddl, dependent)))
            }
            _ => continue,
        };
        let used = if matches!(dependent.class, classes::PG_TRIGGER | classes::PG_POLICY) { "in" } else { "by" };
        return Err(err!(FEATURE_NOT_SUPPORTED, "cannot alter type of a column used {used} a {what}").detail(detail));
    }
    Ok(())
}

/// The places of the generated columns that are computed from a column.
pub fn generated_from(ddl: &Ddl<'_>, relation: &Relation, at: usize) -> Result<Vec<usize>> {
    let mut found = Vec::new();
    let visible = Arc::new(relation.clone());
    for (place, column) in relation.columns.iter().enumerate().filter(|(_, c)| c.generated != 0 && !c.dropped) {
        let Some(text) = &column.default else { continue };
        let expression = ddl.with_context(|c| melba_analyze::analyze_stored_expression(c, text, Some(&visible), None))?;
        let mut uses = false;
        expression.visit_vars(&mut |v: &Var| uses |= v.column == 0 || v.column as usize == at + 1);
        if uses && place != at {
            found.push(place);
        }
    }
    Ok(found)
}

/// Whether a view, default, constraint or the like has an expression over a type.
pub fn has_expressions(ddl: &Ddl<'_>, ty: Oid) -> bool {
    let catalog = ddl.catalog();
    let is_expression = |d: ObjectAddress| match d.class {
        classes::PG_ATTRDEF
        | classes::PG_CONSTRAINT
        | classes::PG_POLICY
        | classes::PG_REWRITE
        | classes::PG_TRIGGER
        | classes::PG_STATISTIC_EXT => true,
        classes::PG_CLASS => {
            d.sub == 0 && catalog.relation(d.object).is_some_and(|r| r.view_query.is_some() || r.index.is_some())
        }
        _ => false,
    };
    catalog.dependents(ObjectAddress { class: classes::PG_TYPE, object: ty, sub: 0 }).any(|d| is_expression(d.dependent))
}

/// Columns of a row type hold values of the type as it was.
pub fn refuse_used_row_type(ddl: &Ddl<'_>, relation: &Relation) -> Result<()> {
    refuse_columns_of(ddl, relation, relation.row_type, &mut Vec::new())
}

/// Refuses columns of a type, and of types built from it.
fn refuse_columns_of(ddl: &Ddl<'_>, relation: &Relation, ty: Oid, seen: &mut Vec<Oid>) -> Result<()> {
    if !ty.is_valid() || seen.contains(&ty) {
        return Ok(());
    }
    seen.push(ty);
    let catalog = ddl.catalog();
    for dependent in catalog.dependents(ObjectAddress { class: classes::PG_TYPE, object: ty, sub: 0 }) {
        let dependent = dependent.dependent;
        match (dependent.class, catalog.relation(dependent.object)) {
            (classes::PG_TYPE, _) => refuse_columns_of(ddl, relation, dependent.object, seen)?,
            (classes::PG_CLASS, Some(user)) if dependent.sub > 0 && user.oid != relation.oid => {
                if matches!(user.storage, Storage::Tree(_)) || user.is_partitioned() {
                    let column = &user.columns[dependent.sub as usize - 1].name;
                    let (what, used) = match relation.kind {
                        RelationKind::Composite => ("type", "it"),
                        RelationKind::ForeignTable => ("foreign table", "its row type"),
                        _ => ("table", "its row type"),
                    };
                    bail!(
                        FEATURE_NOT_SUPPORTED,
                        "cannot alter {what} \"{}\" because column \"{}.{column}\" uses {used}",
                        relation.name,
                        user.name
                    );
                }
                refuse_columns_of(ddl, relation, user.row_type, seen)?;
            }
            _ => {}
        }
    }
    Ok(())
}
