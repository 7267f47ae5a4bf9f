//! VALUES lists.

use std::cell::OnceCell;
use std::sync::Arc;

use melba_types::{Result, err, oids};
use pg_query::protobuf as pb;

use super::analyzer::Analyzer;
use super::coerce::common_typmod;
use super::scope::{ExprKind, NsItem};
use super::{clauses, coerce, collate, cte, limit, nodes};
use melba_tree::*;

/// VALUES as a query.
pub fn values_statement<'p>(analyzer: &mut Analyzer<'_, 'p>, s: &'p pb::SelectStmt) -> Result<Query> {
    let mut q = Query::new(Command::Select);
    q.recursive = cte::with_clause(analyzer, s.with_clause.as_ref())?;
    let mut rows = values_rows(analyzer, &s.values_lists, ExprKind::Values)?;
    let width = rows.first().map_or(0, Vec::len);
    let keep_unknown = analyzer.level().is_insert_select;
    let mut columns = Vec::with_capacity(width);
    for i in 0..width {
        let types: Vec<&Expr> = rows.iter().map(|r| &r[i]).collect();
        let all_unknown = types.iter().all(|e| e.ty() == oids::UNKNOWN);
        let ty = if keep_unknown && all_unknown {
            oids::UNKNOWN
        } else {
            coerce::select_common_type(analyzer.cx(), &types, "VALUES")?
        };
        let mut column = Vec::with_capacity(rows.len());
        for row in &mut rows {
            let e = std::mem::replace(&mut row[i], Expr::MergeAction);
            column.push(if ty == oids::UNKNOWN { e } else { coerce::to_common(analyzer, e, ty, "VALUES")? });
        }
        super::collate::assign_list(analyzer.cx(), &mut column)?;
        let typmod = common_typmod(&column, ty);
        let collation = super::collate::common(analyzer.cx(), &column)?;
        for (row, e) in rows.iter_mut().zip(column) {
            row[i] = e;
        }
        let name: Arc<str> = format!("column{}", i + 1).into();
        columns.push(OutputColumn { name, ty, typmod, collation });
    }
    let entry = analyzer.add_entry(RangeEntry {
        kind: RangeKind::Values { rows },
        alias: None,
        name: "*VALUES*".into(),
        columns: columns.clone(),
        ..RangeEntry::default()
    });
    let item = NsItem::new(entry, "*VALUES*".into());
    analyzer.level_mut().namespace.push(item);
    q.from.push(FromItem::Range(entry));
    q.targets =
        columns.iter().enumerate().map(|(i, c)| super::targets::target(column_var(entry, i, c), c.name.clone())).collect();
    q.order_by = clauses::sort_list(analyzer, &s.sort_clause, &mut q.targets, ExprKind::OrderBy)?;
    limit::limits(analyzer, s, &mut q)?;
    if !s.locking_clause.is_empty() {
        let strength = super::locking::strength_text_of(&s.locking_clause);
        return Err(err!(FEATURE_NOT_SUPPORTED, "{strength} cannot be applied to VALUES"));
    }
    collate::assign_query(analyzer.cx(), &mut q)?;
    Ok(q)
}

/// All rows, of equal width.
pub fn values_rows<'p>(analyzer: &mut Analyzer<'_, 'p>, lists: &'p [pb::Node], kind: ExprKind) -> Result<Vec<Vec<Expr>>> {
    let mut rows: Vec<Vec<Expr>> = Vec::with_capacity(lists.len());
    for list in lists {
        let row = analyzer.with_kind(kind, |a| a.expression_list(nodes::list(list)))?;
        if let Some(first) = rows.first()
            && first.len() != row.len()
        {
            return Err(err!(SYNTAX_ERROR, "VALUES lists must all be the same length")
                .at(nodes::list(list).first().map_or(-1, nodes::location)));
        }
        if let Some(e) = row.iter().find(|e| super::coerce::returns_set(e)) {
            return Err(err!(FEATURE_NOT_SUPPORTED, "set-returning functions are not allowed in VALUES").at(e.location()));
        }
        rows.push(row);
    }
    Ok(rows)
}

impl NsItem {
    /// A fully visible item for an entry.
    pub fn new(entry: usize, name: Arc<str>) -> NsItem {
        NsItem {
            entry,
            name,
            columns: None,
            visible_columns: None,
            relation_visible: true,
            columns_visible: true,
            lateral_only: false,
            lateral_ok: true,
            version: RowVersion::Default,
            system_columns: true,
            names: OnceCell::new(),
        }
    }
}

/// A Var for a column of an entry of the current level.
pub fn column_var(entry: usize, index: usize, c: &OutputColumn) -> Expr {
    Expr::Var(Var::new(entry, index as i16 + 1, c.ty, c.typmod, c.collation))
}
