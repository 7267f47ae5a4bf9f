//! UPDATE and DELETE.

use melba_types::{DbError, Result};
use pg_query::protobuf as pb;

use super::analyzer::Analyzer;
use super::scope::ExprKind;
use super::{assignment, collate, cte, from, returning, view_target};
use melba_tree::*;

pub fn update_statement<'p>(analyzer: &mut Analyzer<'_, 'p>, s: &'p pb::UpdateStmt) -> Result<Query> {
    let mut q = Query::new(Command::Update);
    q.recursive = cte::with_clause(analyzer, s.with_clause.as_ref())?;
    let name = s.relation.as_ref().ok_or_else(|| DbError::internal("UPDATE without a table"))?;
    let relation = assignment::target_relation(analyzer, name, Command::Update, &[Command::Update])?;
    add_target(analyzer, &mut q);
    let from = from_with_target(analyzer, &s.from_clause)?;
    q.from.extend(from);
    // In PostgreSQL's order: of several errors the first counts, and so does the first use of a parameter.
    q.filter = analyzer.condition(&s.where_clause, ExprKind::Where, "WHERE")?;
    view_target::add_view_filter(analyzer, &mut q)?;
    returning::returning_clause(analyzer, s.returning_clause.as_ref(), &mut q, ExprKind::Returning)?;
    q.targets = assignment::set_clause(analyzer, &s.target_list, &relation)?;
    collate::assign_query(analyzer.cx(), &mut q)?;
    Ok(q)
}

pub fn delete_statement<'p>(analyzer: &mut Analyzer<'_, 'p>, s: &'p pb::DeleteStmt) -> Result<Query> {
    let mut q = Query::new(Command::Delete);
    q.recursive = cte::with_clause(analyzer, s.with_clause.as_ref())?;
    let name = s.relation.as_ref().ok_or_else(|| DbError::internal("DELETE without a table"))?;
    assignment::target_relation(analyzer, name, Command::Delete, &[Command::Delete])?;
    add_target(analyzer, &mut q);
    let from = from_with_target(analyzer, &s.using_clause)?;
    q.from.extend(from);
    q.filter = analyzer.condition(&s.where_clause, ExprKind::Where, "WHERE")?;
    view_target::add_view_filter(analyzer, &mut q)?;
    returning::returning_clause(analyzer, s.returning_clause.as_ref(), &mut q, ExprKind::Returning)?;
    collate::assign_query(analyzer.cx(), &mut q)?;
    Ok(q)
}

/// Makes the target table part of FROM and visible.
pub fn add_target(analyzer: &mut Analyzer<'_, '_>, q: &mut Query) {
    let Some(entry) = analyzer.target_entry() else { return };
    q.result = Some(entry);
    q.from.push(FromItem::Range(entry));
    let level = analyzer.level_mut();
    level.namespace.extend(level.target.clone());
}

/// FROM and USING: the target table, which is the last item so far, is not visible to LATERAL items.
fn from_with_target<'p>(analyzer: &mut Analyzer<'_, 'p>, list: &'p [pb::Node]) -> Result<Vec<FromItem>> {
    if let Some(item) = analyzer.level_mut().namespace.last_mut() {
        item.lateral_only = true;
        item.lateral_ok = false;
    }
    from::from_clause(analyzer, list)
}
