//! Changes of system catalogs by their rows, which superusers may make: of those whose rows are whole objects of their own.

use std::sync::Arc;

use melba_catalog::{Description, Object, ObjectAddress, ObjectChange, Relation};
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
    if let Some(at) = row.iter().position(Datum::is_null) {
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
    description(row)
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
