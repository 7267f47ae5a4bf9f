//! What a value of type record was made of: the columns of PostgreSQL's expandRecordVariable.

use melba_tree::{Cte, Expr, OutputColumn, Query, RangeEntry, RangeKind};
use melba_types::{Result, oids};

use super::Analyzer;
use super::scope::Level;

/// What references within one query level refer to.
#[derive(Clone, Copy)]
struct Names<'q> {
    entries: &'q [RangeEntry],
    ctes: &'q [Cte],
}

/// Where the fields of a record come from.
enum Origin {
    /// An expression that is no reference.
    Expr(Expr),
    /// A whole row of these columns.
    Row(Vec<OutputColumn>),
}

impl Analyzer<'_, '_> {
    /// The columns of a record by what made it, also where it is a column of sub-queries, joins and CTEs; `None`: not known.
    pub fn columns_of_record(&self, value: &Expr) -> Result<Option<Vec<OutputColumn>>> {
        let mut scopes: Vec<Names> = self.levels.iter().map(Names::of_level).collect();
        match origin(&mut scopes, value) {
            Some(Origin::Row(columns)) => Ok(Some(columns)),
            Some(Origin::Expr(Expr::Row(row))) => Ok(Some(
                row.fields
                    .iter()
                    .zip(&row.names)
                    .map(|(f, n)| OutputColumn { name: n.clone(), ty: f.ty(), typmod: f.typmod(), collation: f.collation() })
                    .collect(),
            )),
            Some(Origin::Expr(Expr::Function(call))) => self.cx.function_columns(&call),
            _ => Ok(None),
        }
    }
}

impl<'q> Names<'q> {
    fn of_level(level: &'q Level<'_>) -> Names<'q> {
        Names { entries: &level.range_table, ctes: &level.ctes }
    }

    fn of_query(query: &'q Query) -> Names<'q> {
        Names { entries: &query.range_table, ctes: &query.ctes }
    }
}

/// Follows references from the innermost of `scopes`; `None` when one leads nowhere.
fn origin<'q>(scopes: &mut Vec<Names<'q>>, value: &'q Expr) -> Option<Origin> {
    let mut value = value;
    loop {
        let Expr::Var(v) = value else { return Some(Origin::Expr(value.clone())) };
        scopes.truncate(scopes.len().checked_sub(v.levels_up)?);
        let names = *scopes.last()?;
        let entry = names.entries.get(v.entry)?;
        let Some(index) = usize::try_from(v.column).ok()?.checked_sub(1) else { return Some(Origin::Row(entry.columns.clone())) };
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

/// Whether a value is a record whose columns, if they are to be found, are those of something else.
pub fn is_record_reference(value: &Expr) -> bool {
    matches!(value, Expr::Var(v) if v.column != 0) && value.ty() == oids::RECORD
}
