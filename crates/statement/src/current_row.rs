//! The row of WHERE CURRENT OF.

use std::sync::Arc;

use melba_types::{Datum, DbError, Oid, Result, bail};

use super::context::StatementContext;
use super::outcome::Tag;
use super::portal::{Portal, PortalState};
use super::portals::no_cursor;
use super::positioned::Position;

/// The ctid of a table's row that a cursor stands on; `None` when it stands on another table's of its family.
pub(super) fn current_row(context: &StatementContext, cursor: &str, table: Oid) -> Result<Option<i64>> {
    let portals = &context.session.portals;
    let mut portal = portals.take(cursor).ok_or_else(|| no_cursor(cursor))?;
    let row = row_of(context, &mut portal, cursor, table);
    portals.put_back(cursor.to_owned(), portal);
    row
}

fn row_of(context: &StatementContext, portal: &mut Portal, cursor: &str, table: Oid) -> Result<Option<i64>> {
    let PortalState::Open(rows, tag) = &mut portal.state else {
        bail!(INVALID_CURSOR_STATE, "cursor \"{cursor}\" is not positioned on a row");
    };
    if *tag != Tag::Counted("SELECT") {
        bail!(INVALID_CURSOR_STATE, "cursor \"{cursor}\" is not a SELECT query");
    }
    if portal.held {
        bail!(INVALID_CURSOR_STATE, "cursor \"{cursor}\" is held from a previous transaction");
    }
    let position = position_of(context, &portal.positions, cursor, table)?;
    let Some((batch, row)) = rows.current()? else {
        bail!(INVALID_CURSOR_STATE, "cursor \"{cursor}\" is not positioned on a row");
    };
    match (batch.columns[position.column].get(row), batch.columns[position.column + 1].get(row)) {
        (Datum::Oid(of), Datum::Int8(id)) if of == table.0 => Ok(Some(id)),
        _ => Ok(None),
    }
}

fn position_of(context: &StatementContext, positions: &Arc<[Position]>, cursor: &str, table: Oid) -> Result<Position> {
    let name = context.catalog.relation(table).map_or_else(|| "?".into(), |r| r.name.clone());
    let is_of = |p: &&Position| p.table == table || context.catalog.descendants(p.table).contains(&table);
    let mut found = positions.iter().filter(is_of);
    match (found.next(), found.next()) {
        (Some(position), None) => Ok(*position),
        (Some(_), Some(_)) => {
            bail!(INVALID_CURSOR_STATE, "cursor \"{cursor}\" has multiple FOR UPDATE/SHARE references to table \"{name}\"")
        }
        (None, _) if positions.iter().any(|p| p.locked) => Err(DbError::new(
            melba_types::SqlState::INVALID_CURSOR_STATE,
            format!("cursor \"{cursor}\" does not have a FOR UPDATE/SHARE reference to table \"{name}\""),
        )),
        (None, _) => {
            bail!(INVALID_CURSOR_STATE, "cursor \"{cursor}\" is not a simply updatable scan of table \"{name}\"")
        }
    }
}
