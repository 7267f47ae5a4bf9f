//! The errors of constraint violations, in PostgreSQL's wording.

use melba_catalog::row_security::hides_rows;
use melba_catalog::{Catalog, Column, Constraint, Relation, acl};
use melba_fmgr::{Session, io};
use melba_types::{Datum, DbError, Oid, Result, err};

use super::part_source::PartSource;
use super::target::{IndexPart, IndexTarget, TableTarget};

/// PostgreSQL's functions that raise these errors: clients see their names.
const EXEC_CONSTRAINTS: &str = "ExecConstraints";
const RI_REPORT: &str = "ri_ReportViolation";

/// Longest value shown in a detail, in bytes.
const SHOWN_BYTES_MAX: usize = 64;

/// A value as details show it.
fn shown(session: &dyn Session, ty: Oid, value: &Datum) -> String {
    if value.is_null() {
        return "null".into();
    }
    let mut out = Vec::new();
    if io::text_out(session, ty, value, &mut out).is_err() {
        return "?".into();
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Whether the session's user may see all of a relation's values.
pub fn sees_all(session: &dyn Session, relation: &Relation) -> bool {
    let (catalog, user) = (session.catalog(), session.user());
    !hides_rows(catalog, relation, user) && catalog.has_relation_privileges(user, relation, acl::SELECT)
}

/// Whether the user may see the values of a column in every row: in none, where policies hide rows.
pub fn sees(session: &dyn Session, relation: &Relation, column: &Column) -> bool {
    let (catalog, user) = (session.catalog(), session.user());
    !hides_rows(catalog, relation, user) && catalog.has_column_privileges(user, relation, column, acl::SELECT)
}

/// 40001: the row that was to be locked lives in another partition by now, where the statement's snapshot does not show it.
pub fn moved() -> DbError {
    err!(T_R_SERIALIZATION_FAILURE, "tuple to be locked was already moved to another partition due to concurrent update")
}

/// 27000: a trigger before the change of a row has changed it. `done`: the verb for the intended change.
pub fn changed_by_trigger(done: &str) -> DbError {
    let message = format!("tuple to be {done} was already modified by an operation triggered by the current command");
    err!(TRIGGERED_DATA_CHANGE_VIOLATION, "{message}")
        .hint("Consider using an AFTER trigger instead of a BEFORE trigger to propagate changes to other rows.")
}

/// `Failing row contains (1, null, abc).`, long values cut. Columns that the user may neither read nor has written (`written`) are
/// left out, and the others named; `None`: there is none to show.
pub fn failing_row(session: &dyn Session, relation: &Relation, written: &[i16], row: &[Datum]) -> Option<String> {
    if hides_rows(session.catalog(), relation, session.user()) {
        return None;
    }
    let all = sees_all(session, relation);
    let (mut names, mut parts) = (Vec::new(), Vec::new());
    for (at, (column, value)) in relation.columns.iter().zip(row).enumerate() {
        if column.dropped || !(all || written.contains(&(at as i16 + 1)) || sees(session, relation, column)) {
            continue;
        }
        names.push(&*column.name);
        if column.generated == b'v' {
            parts.push("virtual".to_owned());
            continue;
        }
        let mut text = shown(session, column.ty, value);
        if text.len() > SHOWN_BYTES_MAX {
            let mut end = SHOWN_BYTES_MAX;
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            text.truncate(end);
            text.push_str("...");
        }
        parts.push(text);
    }
    let values = parts.join(", ");
    match all {
        true => Some(format!("Failing row contains ({values}).")),
        false if names.is_empty() => None,
        false => Some(format!("Failing row contains ({}) = ({values}).", names.join(", "))),
    }
}

/// An error with a detail, if there is one.
pub(super) fn with_detail(error: DbError, detail: Option<String>) -> DbError {
    match detail {
        Some(detail) => error.detail(detail),
        None => error,
    }
}

fn at_table(error: DbError, session: &dyn Session, relation: &Relation) -> DbError {
    let catalog = session.catalog();
    let schema = catalog.namespace(relation.namespace).map_or("", |n| &n.name);
    error.schema(schema).table(&*relation.name)
}

/// `detail`: the failing row, as far as it may be shown.
pub fn not_null(session: &dyn Session, target: &TableTarget, column: usize, detail: Option<String>) -> DbError {
    let relation = &target.relation;
    let name = &relation.columns[column].name;
    let error = err!(
        NOT_NULL_VIOLATION,
        "null value in column \"{name}\" of relation \"{}\" violates not-null constraint",
        relation.name
    );
    let error = with_detail(error, detail);
    at_table(error, session, relation).column(&**name).routine(EXEC_CONSTRAINTS)
}

pub fn check(session: &dyn Session, target: &TableTarget, constraint: &str, detail: Option<String>) -> DbError {
    let relation = &target.relation;
    let error = err!(CHECK_VIOLATION, "new row for relation \"{}\" violates check constraint \"{constraint}\"", relation.name);
    let error = with_detail(error, detail);
    at_table(error, session, relation).constraint(constraint).routine(EXEC_CONSTRAINTS)
}

pub fn partition(session: &dyn Session, target: &TableTarget, detail: Option<String>) -> DbError {
    let relation = &target.relation;
    let error = err!(CHECK_VIOLATION, "new row for relation \"{}\" violates partition constraint", relation.name);
    let error = with_detail(error, detail);
    at_table(error, session, relation)
}

/// `Key (a, b)=(1, 2)`.
fn key_text(session: &dyn Session, names: &[String], types: &[Oid], values: &[Datum]) -> String {
    let values: Vec<String> = types.iter().zip(values).map(|(ty, v)| shown(session, *ty, v)).collect();
    format!("Key ({})=({})", names.join(", "), values.join(", "))
}

/// 23505.
pub fn unique(session: &dyn Session, target: &TableTarget, index: &IndexTarget, values: &[Datum]) -> DbError {
    let error = err!(UNIQUE_VIOLATION, "duplicate key value violates unique constraint \"{}\"", index.name);
    let detail = index_key(session, target, index, values).map(|key| format!("{key} already exists."));
    at_table(with_detail(error, detail), session, &target.relation).constraint(&*index.name).routine("_bt_check_unique")
}

/// 23514 for an empty value in the last column of a key WITHOUT OVERLAPS.
pub fn check_period(target: &TableTarget, index: &IndexTarget, values: &[Datum]) -> Result<()> {
    let is_empty = index.exclusion.as_ref().is_some_and(|exclusion| exclusion.is_empty_period(values));
    match index.parts.last().filter(|_| is_empty).map(|part| &part.source) {
        Some(PartSource::Column(column)) => {
            let (column, table) = (&target.relation.columns[*column].name, &target.relation.name);
            Err(err!(CHECK_VIOLATION, "empty WITHOUT OVERLAPS value found in column \"{column}\" in relation \"{table}\""))
        }
        _ => Ok(()),
    }
}

/// 55000: ON CONFLICT without a target cannot decide by keys that are checked later.
pub fn deferrable_arbiter(session: &dyn Session, target: &TableTarget, index: &IndexTarget) -> DbError {
    let error = err!(
        OBJECT_NOT_IN_PREREQUISITE_STATE,
        "ON CONFLICT does not support deferrable unique constraints/exclusion constraints as arbiters"
    );
    at_table(error, session, &target.relation).constraint(&*index.name)
}

/// CREATE UNIQUE INDEX over rows that are not unique.
pub fn not_unique(session: &dyn Session, target: &TableTarget, index: &IndexTarget, values: &[Datum]) -> DbError {
    let error = err!(UNIQUE_VIOLATION, "could not create unique index \"{}\"", index.name);
    let detail = index_key(session, target, index, values).map(|key| format!("{key} is duplicated."));
    at_table(with_detail(error, detail), session, &target.relation).constraint(&*index.name)
}

/// 23P01. `existing`: of the row that is in the way.
pub fn exclusion(
    session: &dyn Session,
    target: &TableTarget,
    index: &IndexTarget,
    values: &[Datum],
    existing: Option<&[Datum]>,
) -> DbError {
    let error = err!(EXCLUSION_VIOLATION, "conflicting key value violates exclusion constraint \"{}\"", index.name);
    let error = error.detail(conflict(session, target, index, (values, existing), "existing key"));
    at_table(error, session, &target.relation).constraint(&*index.name)
}

/// An exclusion constraint over rows that exclude each other.
pub fn not_exclusive(
    session: &dyn Session,
    target: &TableTarget,
    index: &IndexTarget,
    values: &[Datum],
    existing: Option<&[Datum]>,
) -> DbError {
    let error = err!(EXCLUSION_VIOLATION, "could not create exclusion constraint \"{}\"", index.name);
    let error = error.detail(conflict(session, target, index, (values, existing), "key"));
    at_table(error, session, &target.relation).constraint(&*index.name)
}

fn conflict(
    session: &dyn Session,
    target: &TableTarget,
    index: &IndexTarget,
    (new, existing): (&[Datum], Option<&[Datum]>),
    what: &str,
) -> String {
    let key = |values: &[Datum]| index_key(session, target, index, values);
    match (key(new), existing.and_then(key)) {
        (Some(new), Some(existing)) => {
            format!("{new} conflicts with {what} {}.", existing.strip_prefix("Key ").unwrap_or(&existing))
        }
        _ if what == "key" => "Key conflicts exist.".into(),
        _ => format!("Key conflicts with {what}."),
    }
}

/// `None`: the user may not read all of the columns.
fn index_key(session: &dyn Session, target: &TableTarget, index: &IndexTarget, values: &[Datum]) -> Option<String> {
    let relation = &target.relation;
    let may_see = |part: &PartSource| match part {
        PartSource::Column(column) => sees(session, relation, &relation.columns[*column]),
        PartSource::Expression(_) => false,
    };
    if !sees_all(session, relation) && !index.parts.iter().all(|part| may_see(&part.source)) {
        return None;
    }
    let catalog = session.catalog();
    let info = catalog.relation(index.oid).and_then(|r| r.index.clone());
    let mut names = Vec::new();
    let mut types = Vec::new();
    let mut places: Vec<(&IndexPart, &Datum)> = index.parts.iter().zip(values).collect();
    places.sort_by_key(|(part, _)| part.place);
    for (part, _) in &places {
        match &part.source {
            PartSource::Column(column) => {
                names.push(melba_catalog::quote_ident(&target.relation.columns[*column].name).into_owned());
                types.push(target.relation.columns[*column].ty);
            }
            PartSource::Expression(expression) => {
                let text = info.as_ref().and_then(|i| i.keys.get(part.place)?.expression.clone());
                names.push(text.as_deref().unwrap_or("expr").to_owned());
                types.push(expression.ty);
            }
        }
    }
    let values: Vec<Datum> = places.into_iter().map(|(_, value)| value.clone()).collect();
    Some(key_text(session, &names, &types, &values))
}

/// The key of a foreign key's row: of the referencing or of the referenced table. Just `Key` for a user who may not read it.
fn foreign_key_text(session: &dyn Session, relation: &Relation, columns: &[i16], values: &[Datum]) -> String {
    let column = |n: &i16| &relation.columns[*n as usize - 1];
    if !sees_all(session, relation) && !columns.iter().all(|n| sees(session, relation, column(n))) {
        return "Key".into();
    }
    let names: Vec<String> = columns.iter().map(|n| melba_catalog::quote_ident(&column(n).name).into_owned()).collect();
    let types: Vec<Oid> = columns.iter().map(|n| column(n).ty).collect();
    key_text(session, &names, &types, values)
}

/// 23503 of a referencing row.
pub fn not_present(session: &dyn Session, constraint: &Constraint, relation: &Relation, values: &[Datum]) -> DbError {
    let catalog = session.catalog();
    let referenced = referenced_name(catalog, constraint);
    let error = err!(
        FOREIGN_KEY_VIOLATION,
        "insert or update on table \"{}\" violates foreign key constraint \"{}\"",
        relation.name,
        constraint.name
    )
    .detail(format!(
        "{} is not present in table \"{referenced}\".",
        foreign_key_text(session, relation, &constraint.columns, values)
    ));
    at_table(error, session, relation).constraint(&*constraint.name).routine(RI_REPORT)
}

/// 23503 of MATCH FULL with some columns null.
pub fn mixed_nulls(session: &dyn Session, constraint: &Constraint, relation: &Relation) -> DbError {
    let error = err!(
        FOREIGN_KEY_VIOLATION,
        "insert or update on table \"{}\" violates foreign key constraint \"{}\"",
        relation.name,
        constraint.name
    )
    .detail("MATCH FULL does not allow mixing of null and nonnull key values.");
    at_table(error, session, relation).constraint(&*constraint.name).routine(RI_REPORT)
}

/// 23503 (or 23001 for RESTRICT) of a referenced row.
pub fn still_referenced(
    session: &dyn Session,
    constraint: &Constraint,
    referenced: &Relation,
    columns: &[i16],
    values: &[Datum],
    restrict: bool,
) -> DbError {
    let catalog = session.catalog();
    // For a partition the error names the whole partitioned table's constraint.
    let constraint = catalog.constraint(constraint.oid).map_or(constraint, |whole| whole);
    let referencing = catalog.relation(constraint.relation);
    let name = referencing.map_or("", |r| &r.name);
    let key = foreign_key_text(session, referenced, columns, values);
    let error = if restrict {
        err!(
            RESTRICT_VIOLATION,
            "update or delete on table \"{}\" violates RESTRICT setting of foreign key constraint \"{}\" on table \"{name}\"",
            referenced.name,
            constraint.name
        )
        .detail(format!("{key} is referenced from table \"{name}\"."))
    } else {
        err!(
            FOREIGN_KEY_VIOLATION,
            "update or delete on table \"{}\" violates foreign key constraint \"{}\" on table \"{name}\"",
            referenced.name,
            constraint.name
        )
        .detail(format!("{key} is still referenced from table \"{name}\"."))
    };
    let error = error.routine(RI_REPORT);
    match referencing {
        Some(relation) => at_table(error, session, relation).constraint(&*constraint.name),
        None => error,
    }
}

/// 23503 of a partition that is no longer to be one. `values`: of the referencing table's columns.
pub fn removed(session: &dyn Session, constraint: &Constraint, referencing: &Relation, values: &[Datum]) -> DbError {
    let (partition, name) = (referenced_name(session.catalog(), constraint), &constraint.name);
    let key = foreign_key_text(session, referencing, &constraint.columns, values);
    let error = err!(FOREIGN_KEY_VIOLATION, "removing partition \"{partition}\" violates foreign key constraint \"{name}\"")
        .detail(format!("{key} is still referenced from table \"{}\".", referencing.name));
    at_table(error, session, referencing).constraint(&**name).routine(RI_REPORT)
}

fn referenced_name(catalog: &Catalog, constraint: &Constraint) -> String {
    let oid = constraint.foreign_key.as_ref().map_or(Oid::INVALID, |f| f.referenced_table);
    catalog.relation(oid).map_or_else(String::new, |r| r.name.to_string())
}
