//! SEARCH and CYCLE of recursive WITH queries: the columns that they add. Planning computes these (`melba_plan::search_cycle`),
//! so that the query is printed as it was written.

use std::sync::Arc;

use melba_types::{DbError, Oid, Result, err, oids};
use pg_query::protobuf as pb;

use super::analyzer::Analyzer;
use super::scope::ExprKind;
use super::sort_key::refuse_function;
use super::{coerce, nodes};
use melba_tree::*;

/// The clauses of a WITH query whose own columns are known, and the columns that they add, in order.
pub fn search_and_cycle<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    cte: &'p pb::CommonTableExpr,
    recursive: bool,
    query: &Query,
    columns: &[OutputColumn],
) -> Result<(Option<Search>, Option<Cycle>, Vec<OutputColumn>)> {
    let mut added = Vec::new();
    if cte.search_clause.is_none() && cte.cycle_clause.is_none() {
        return Ok((None, None, added));
    }
    // The marks have their types before the query is analyzed.
    let cycle = cte.cycle_clause.as_deref().map(|c| cycle(analyzer, c)).transpose()?;
    if !recursive {
        return Err(err!(SYNTAX_ERROR, "WITH query is not recursive").at(cte.location));
    }
    if let Some(set) = &query.set_operation {
        let what = "with a SEARCH or CYCLE clause, the";
        if !matches!(set.left, SetInput::Leaf(_)) {
            return Err(err!(FEATURE_NOT_SUPPORTED, "{what} left side of the UNION must be a SELECT"));
        }
        if !matches!(set.right, SetInput::Leaf(_)) {
            return Err(err!(SYNTAX_ERROR, "{what} right side of the UNION must be a SELECT"));
        }
    }
    let search = cte.search_clause.as_ref().map(search);
    let at = |location: i32| move |e: DbError| e.at(location);
    if let (Some(search), Some(written)) = (&search, &cte.search_clause) {
        check_columns("search", &search.columns, columns).map_err(at(written.location))?;
        check_new("search sequence", &search.set_column, columns).map_err(at(written.location))?;
        let ty = if search.breadth_first { oids::RECORD } else { oids::RECORD_ARRAY };
        added.push(column(&search.set_column, ty, -1, Oid::INVALID));
    }
    if let (Some(cycle), Some(written)) = (&cycle, &cte.cycle_clause) {
        let location = written.location;
        check_columns("cycle", &cycle.columns, columns).map_err(at(location))?;
        check_new("cycle mark", &cycle.mark_column, columns).map_err(at(location))?;
        check_new("cycle path", &cycle.path_column, columns).map_err(at(location))?;
        check_differ("cycle mark", &cycle.mark_column, "cycle path", &cycle.path_column).map_err(at(location))?;
        let mark = &cycle.mark_value;
        let typmod = if mark.typmod() == cycle.mark_default.typmod() { mark.typmod() } else { -1 };
        added.push(column(&cycle.mark_column, mark.ty(), typmod, mark.collation()));
        added.push(column(&cycle.path_column, oids::RECORD_ARRAY, -1, Oid::INVALID));
    }
    if let (Some(search), Some(cycle), Some(written)) = (&search, &cycle, &cte.search_clause) {
        let name = &search.set_column;
        check_differ("search sequence", name, "cycle mark", &cycle.mark_column).map_err(at(written.location))?;
        check_differ("search sequence", name, "cycle path", &cycle.path_column).map_err(at(written.location))?;
    }
    Ok((search, cycle, added))
}

fn cycle<'p>(analyzer: &mut Analyzer<'_, 'p>, c: &'p pb::CteCycleClause) -> Result<Cycle> {
    let mut mark = |node: &'p Option<Box<pb::Node>>| analyzer.with_kind(ExprKind::CycleMark, |a| a.boxed(node));
    let (value, default) = (mark(&c.cycle_mark_value)?, mark(&c.cycle_mark_default)?);
    let ty = coerce::select_common_type(analyzer.cx(), &[&value, &default], "CYCLE")?;
    let mut value = coerce::to_common(analyzer, value, ty, "CYCLE/SET/TO")?;
    let mut default = coerce::to_common(analyzer, default, ty, "CYCLE/SET/DEFAULT")?;
    super::collate::assign(analyzer.cx(), &mut value)?;
    super::collate::assign(analyzer.cx(), &mut default)?;
    refuse_function(analyzer.cx(), ty, -1)?;
    if !analyzer.cx().catalog.type_operators(ty).equal.is_valid() {
        let name = analyzer.cx().type_name(ty);
        return Err(err!(UNDEFINED_FUNCTION, "could not identify an equality operator for type {name}"));
    }
    Ok(Cycle {
        columns: names(&c.cycle_col_list),
        mark_column: c.cycle_mark_column.as_str().into(),
        mark_value: Box::new(value),
        mark_default: Box::new(default),
        path_column: c.cycle_path_column.as_str().into(),
    })
}

fn search(s: &pb::CteSearchClause) -> Search {
    let columns = names(&s.search_col_list);
    Search { breadth_first: s.search_breadth_first, columns, set_column: s.search_seq_column.as_str().into() }
}

fn names(list: &[pb::Node]) -> Vec<Arc<str>> {
    nodes::strings(list).into_iter().map(Into::into).collect()
}

fn column(name: &Arc<str>, ty: Oid, typmod: i32, collation: Oid) -> OutputColumn {
    OutputColumn { name: name.clone(), ty, typmod, collation }
}

/// The columns that identify rows are those of the query, each once.
fn check_columns(clause: &str, listed: &[Arc<str>], columns: &[OutputColumn]) -> Result<()> {
    for (i, name) in listed.iter().enumerate() {
        if !columns.iter().any(|c| c.name == *name) {
            return Err(err!(SYNTAX_ERROR, "{clause} column \"{name}\" not in WITH query column list"));
        }
        if listed[..i].contains(name) {
            return Err(err!(DUPLICATE_COLUMN, "{clause} column \"{name}\" specified more than once"));
        }
    }
    Ok(())
}

fn check_new(what: &str, name: &Arc<str>, columns: &[OutputColumn]) -> Result<()> {
    match columns.iter().any(|c| c.name == *name) {
        true => Err(err!(SYNTAX_ERROR, "{what} column name \"{name}\" already used in WITH query column list")),
        false => Ok(()),
    }
}

fn check_differ(what: &str, name: &Arc<str>, other: &str, other_name: &Arc<str>) -> Result<()> {
    match name == other_name {
        true => Err(err!(SYNTAX_ERROR, "{what} column name and {other} column name are the same")),
        false => Ok(()),
    }
}
