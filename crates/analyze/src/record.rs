//! The origin of a value of type record, as PostgreSQL's expandRecordVariable finds it.

use std::sync::Arc;

use melba_tree::{Cte, Expr, OutputColumn, Query, RangeEntry, RangeKind};
use melba_types::oids;

/// The range table and CTEs to which references within one query level refer.
#[derive(Clone, Copy)]
pub struct Names<'q> {
    pub entries: &'q [RangeEntry],
    pub ctes: &'q [Cte],
}

/// Where the fields of a record come from.
pub enum RecordOrigin {
    /// An expression that is no reference.
    Expr(Expr),
    /// A whole row of these columns.
    Row(Vec<OutputColumn>),
}

impl<'q> Names<'q> {
    fn of_query(query: &'q Query) -> Names<'q> {
        Names { entries: &query.range_table, ctes: &query.ctes }
    }
}

/// Follows references through sub-queries, joins and CTEs, from the last of `scopes`, the innermost; `None` when one leads to an
/// expression that cannot be followed.
pub fn origin<'q>(mut scopes: Vec<Names<'q>>, mut value: &'q Expr) -> Option<RecordOrigin> {
    loop {
        let Expr::Var(v) = value else { return Some(RecordOrigin::Expr(value.clone())) };
        scopes.truncate(scopes.len().checked_sub(v.levels_up)?);
        let names = *scopes.last()?;
        let entry = names.entries.get(v.entry)?;
        let Some(index) = usize::try_from(v.column).ok()?.checked_sub(1) else {
            return Some(RecordOrigin::Row(entry.columns.clone()));
        };
        let query = match &entry.kind {
            RangeKind::Subquery { query, .. } => query,
            RangeKind::Cte { name, levels, self_reference: false } => {
                scopes.truncate(scopes.len().checked_sub(*levels)?);
                &scopes.last()?.ctes.iter().find(|cte| cte.name == *name)?.query
            }
            RangeKind::Join { merged, .. } => {
                value = merged.get(index)?;
                continue;
            }
            _ => return None,
        };
        scopes.push(Names::of_query(query));
        value = &query.output().iter().filter(|target| !target.junk).nth(index)?.expr;
    }
}

/// Whether a value is a record whose columns, if they are needed, are those of another value.
pub fn is_record_reference(value: &Expr) -> bool {
    matches!(value, Expr::Var(v) if v.column != 0) && value.ty() == oids::RECORD
}

/// The names of the fields of a record, where its origin has them. `levels`: the queries around the value, the innermost last.
pub fn field_names(levels: &[&Query], value: &Expr) -> Option<Vec<Arc<str>>> {
    match origin(levels.iter().map(|query| Names::of_query(query)).collect(), value)? {
        RecordOrigin::Expr(Expr::Row(row)) => Some(row.names),
        RecordOrigin::Row(columns) => Some(columns.iter().map(|c| c.name.clone()).collect()),
        RecordOrigin::Expr(_) => None,
    }
}
