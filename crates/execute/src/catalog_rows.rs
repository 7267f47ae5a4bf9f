//! Changes of system catalogs by their rows, which superusers may make: of those whose rows are whole objects of their own, and of the
//! size that pg_class shows of a relation.

use std::sync::Arc;

use melba_catalog::classes::{FIRST_USER_OID, PG_CLASS};
use melba_catalog::{Description, Object, ObjectAddress, ObjectChange, Relation, StatedSize};
use melba_engine::{LockTag, RelationLockMode, Wait};
use melba_fmgr::Session;
use melba_table::error::failing_row;
use melba_transaction::Tx;
use melba_types::{Datum, DbError, Oid, Result, err};

/// Replaces a row of a catalog: `old` is none for a new one, `new` for one that is deleted.
///
/// # Errors
/// 23502 and 23505 as for a table with the catalog's columns and its unique index.
pub fn change(
    (tx, session): (&Tx, &dyn Session),
    relation: &Relation,
    old: Option<&[Datum]>,
    new: Option<&[Datum]>,
) -> Result<()> {
    if relation.oid == PG_CLASS {
        return new.map_or(Ok(()), |row| state_size(tx, session, relation, row));
    }
    let new = new.map(|row| new_description(session, relation, row)).transpose()?;
    let old = old.map(description).transpose()?;
    if let Some(new) = &new
        && old.as_ref().is_none_or(|old| old.address != new.address)
        && tx.catalog().description(new.address).is_some()
    {
        let ObjectAddress { class, object, sub } = new.address;
        let index = "pg_description_o_c_o_index";
        return Err(err!(UNIQUE_VIOLATION, "duplicate key value violates unique constraint \"{index}\"")
            .detail(format!("Key (objoid, classoid, objsubid)=({object}, {class}, {sub}) already exists."))
            .schema("pg_catalog")
            .table(&*relation.name)
            .constraint(index));
    }
    if let Some(old) = old {
        tx.change(ObjectChange::RemoveDescription(old.address));
    }
    if let Some(new) = new {
        tx.put(Object::Description(Arc::new(new)));
    }
    Ok(())
}

fn new_description(session: &dyn Session, relation: &Relation, row: &[Datum]) -> Result<Description> {
    check_not_null(session, relation, row, 0..row.len())?;
    description(row)
}

/// Keeps the size that a new row of pg_class has of a relation.
fn state_size(tx: &Tx, session: &dyn Session, pg_class: &Relation, row: &[Datum]) -> Result<()> {
    let place = |name: &str| pg_class.columns.iter().position(|column| *column.name == *name).unwrap_or_default();
    let (pages, rows) = (place("relpages"), place("reltuples"));
    check_not_null(session, pg_class, row, [pages, rows].into_iter())?;
    let (&Datum::Oid(oid), &Datum::Int4(pages), &Datum::Float4(rows)) = (&row[0], &row[pages], &row[rows]) else {
        return Err(DbError::internal("a row of pg_class with other columns"));
    };
    if oid < FIRST_USER_OID {
        return Err(DbError::unsupported("changing what pg_class says of a system catalog"));
    }
    // Another session that defines the relation anew would lose this, or this its definition.
    let tag = LockTag::Relation { database: tx.database.0, relation: oid };
    tx.engine.lock_relation(tag, RelationLockMode::ShareUpdateExclusive, Wait::Block)?;
    if let Some(changed) = tx.catalog().relation(Oid(oid)) {
        let stated = Some(StatedSize { pages, rows });
        tx.put(Object::Relation(Arc::new(Relation { stated, ..(**changed).clone() })));
    }
    Ok(())
}

/// # Errors
/// 23502 for a NULL at one of the places.
fn check_not_null(
    session: &dyn Session,
    relation: &Relation,
    row: &[Datum],
    mut places: impl Iterator<Item = usize>,
) -> Result<()> {
    if let Some(at) = places.find(|at| row[*at].is_null()) {
        let column = &relation.columns[at].name;
        let table = &relation.name;
        let message = format!("null value in column \"{column}\" of relation \"{table}\" violates not-null constraint");
        let error = err!(NOT_NULL_VIOLATION, "{message}");
        let error = match failing_row(session, relation, &[], row) {
            Some(detail) => error.detail(detail),
            None => error,
        };
        return Err(error.schema("pg_catalog").table(&**table).column(&**column));
    }
    Ok(())
}

/// A row of pg_description.
fn description(row: &[Datum]) -> Result<Description> {
    match row {
        [Datum::Oid(object), Datum::Oid(class), Datum::Int4(sub), Datum::Text(text)] => Ok(Description {
            address: ObjectAddress { class: Oid(*class), object: Oid(*object), sub: *sub },
            text: text.to_string().into(),
        }),
        _ => Err(DbError::internal("a row of pg_description with other columns")),
    }
}
