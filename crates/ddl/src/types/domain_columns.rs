//! The columns with values of a domain, for which a new constraint of it is checked.

use melba_catalog::{
    Constraint, ConstraintKind, DependencyKind, ObjectAddress, Relation, RelationKind, Storage, Type, TypeKind, classes,
};
use melba_engine::RelationLockMode;
use melba_expression::compile_domain_check;
use melba_types::{Datum, DbError, Oid, Result, bail, err};

use melba_definition::context::Ddl;
use melba_relation::table::rows::{exec_context, table_target};

/// Checks a constraint of a domain against all values that tables have.
///
/// # Errors
/// 23502 and 23514 for the first column that has other values; 0A000 when values of the domain are parts of others.
pub fn check_domain_columns(ddl: &Ddl<'_>, domain: &Type, constraint: &Constraint) -> Result<()> {
    let info = domain.domain.as_ref().ok_or_else(|| DbError::internal("domain without definition"))?;
    let catalog = ddl.catalog();
    let check = match &constraint.expression {
        Some(text) => {
            let (base, typmod) = catalog.base_type_and_typmod(info.base, info.typmod);
            let expr = ddl.with_context(|c| melba_analyze::analyze_stored_domain_check(c, text, base, typmod))?;
            Some(compile_domain_check(&catalog, Some(ddl.session()), &expr, base)?)
        }
        None => None,
    };
    let ctx = exec_context(ddl);
    for (table, column) in columns_of_domain(ddl, domain)? {
        ddl.lock_relation(table, RelationLockMode::Share)?;
        let (relation, target) = (ddl.relation(table)?, table_target(ddl, table)?);
        let (view, _pin) = ddl.tx().engine.latest_view();
        let mut scan = ddl.tx().engine.scan(view, target.tree, &[column], &target.missing, &[], None)?;
        while let Some(batch) = scan.next()? {
            ctx.check_interrupt()?;
            for i in 0..batch.row_ids.len() {
                let value = ctx.expand(batch.columns[0].get(i), relation.columns[column].kind)?;
                let holds = match &check {
                    Some(check) => !matches!(check.eval_row(&ctx, &[value])?, Datum::Bool(false)),
                    None => !value.is_null(),
                };
                if !holds {
                    return Err(violated(&relation, column, constraint.kind));
                }
            }
        }
    }
    Ok(())
}

/// The columns of tables whose type is the domain, or a domain over it.
fn columns_of_domain(ddl: &Ddl<'_>, domain: &Type) -> Result<Vec<(Oid, usize)>> {
    let catalog = ddl.catalog();
    let (mut found, mut domains, mut at) = (Vec::new(), vec![domain.oid], 0);
    while let Some(oid) = domains.get(at).copied() {
        at += 1;
        for dependency in catalog.dependents(ObjectAddress { class: classes::PG_TYPE, object: oid, sub: 0 }) {
            let user = dependency.dependent;
            match user.class {
                classes::PG_TYPE => match catalog.type_(user.object) {
                    Some(ty) if ty.type_kind == TypeKind::Domain => domains.push(ty.oid),
                    Some(ty) => refuse_columns_with(ddl, domain, ty.oid, &mut Vec::new())?,
                    None => {}
                },
                classes::PG_CLASS if user.sub > 0 => {
                    let Some(relation) = catalog.relation(user.object) else { continue };
                    match relation.kind {
                        RelationKind::Table | RelationKind::MaterializedView if has_rows(relation) => {
                            found.push((relation.oid, user.sub as usize - 1));
                        }
                        RelationKind::Composite => refuse_columns_with(ddl, domain, relation.row_type, &mut Vec::new())?,
                        _ => {}
                    }
                    if relation.kind == RelationKind::Table {
                        refuse_columns_with(ddl, domain, relation.row_type, &mut Vec::new())?;
                    }
                }
                _ => {}
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Refuses tables that have values of a type in which there are values of the domain.
fn refuse_columns_with(ddl: &Ddl<'_>, domain: &Type, ty: Oid, seen: &mut Vec<Oid>) -> Result<()> {
    if !ty.is_valid() || seen.contains(&ty) {
        return Ok(());
    }
    seen.push(ty);
    let catalog = ddl.catalog();
    let users = catalog.dependents(ObjectAddress { class: classes::PG_TYPE, object: ty, sub: 0 });
    for user in users.filter(|d| d.kind != DependencyKind::Extension).map(|d| d.dependent) {
        match user.class {
            classes::PG_TYPE => refuse_columns_with(ddl, domain, user.object, seen)?,
            classes::PG_CLASS if user.sub > 0 => {
                let Some(relation) = catalog.relation(user.object) else { continue };
                if has_rows(relation) || relation.is_partitioned() {
                    let (name, column) = (&relation.name, &relation.columns[user.sub as usize - 1].name);
                    let shown = catalog.type_name(domain.oid, ddl.path());
                    bail!(FEATURE_NOT_SUPPORTED, "cannot alter type \"{shown}\" because column \"{name}.{column}\" uses it");
                }
                refuse_columns_with(ddl, domain, relation.row_type, seen)?;
            }
            _ => {}
        }
    }
    if let Some(array) = catalog.type_(ty).map(|t| t.array) {
        refuse_columns_with(ddl, domain, array, seen)?;
    }
    Ok(())
}

fn has_rows(relation: &Relation) -> bool {
    matches!(relation.storage, Storage::Tree(_))
}

fn violated(relation: &Relation, column: usize, kind: ConstraintKind) -> DbError {
    let (table, column) = (&relation.name, &relation.columns[column].name);
    match kind {
        ConstraintKind::NotNull => err!(NOT_NULL_VIOLATION, "column \"{column}\" of table \"{table}\" contains null values"),
        _ => err!(CHECK_VIOLATION, "column \"{column}\" of table \"{table}\" contains values that violate the new constraint"),
    }
}
