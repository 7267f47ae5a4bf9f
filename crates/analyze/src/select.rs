//! SELECT.

use melba_types::{Result, err};
use pg_query::protobuf as pb;

use super::Analyzer;
use super::scope::{ExprKind, WindowSource};
use melba_tree::*;

impl<'p> Analyzer<'_, 'p> {
    pub fn select_statement(&mut self, s: &'p pb::SelectStmt) -> Result<Query> {
        if s.into_clause.is_some() && self.levels.len() > 1 {
            return Err(err!(SYNTAX_ERROR, "SELECT ... INTO is not allowed here").at(s
                .into_clause
                .as_ref()
                .and_then(|i| i.rel.as_ref())
                .map_or(-1, |r| r.location)));
        }
        if s.op != pb::SetOperation::SetopNone as i32 && s.larg.is_some() {
            return self.set_operation_statement(s);
        }
        if !s.values_lists.is_empty() {
            return self.values_statement(s);
        }
        self.plain_select(s)
    }

    fn plain_select(&mut self, s: &'p pb::SelectStmt) -> Result<Query> {
        let mut q = Query::new(Command::Select);
        q.recursive = self.with_clause(s.with_clause.as_ref())?;
        for node in &s.window_clause {
            if let Some(pg_query::NodeEnum::WindowDef(d)) = &node.node {
                self.level_mut().window_definitions.push(WindowSource { definition: d, anonymous: false });
            }
        }
        q.from = self.from_clause(&s.from_clause)?;
        q.targets = self.target_list(&s.target_list, ExprKind::SelectTarget)?;
        self.mark_origins(&mut q.targets);
        q.filter = self.condition(&s.where_clause, ExprKind::Where, "WHERE")?;
        q.having = self.condition(&s.having_clause, ExprKind::Having, "HAVING")?;
        q.order_by = self.sort_list(&s.sort_clause, &mut q.targets, ExprKind::OrderBy)?;
        let group = self.group_clause(&s.group_clause, &mut q.targets, &q.order_by)?;
        q.group_by = group.groups;
        q.grouping_sets = group.sets;
        q.grouping_text = group.text;
        q.group_distinct = s.group_distinct;
        if s.group_distinct
            && let Some(sets) = &mut q.grouping_sets
        {
            remove_duplicates(sets);
        }
        q.distinct = self.distinct_clause(&s.distinct_clause, &mut q.targets, &q.order_by)?;
        self.limits(s, &mut q)?;
        q.windows = self.windows(&mut q.targets)?;
        if !self.level().is_insert_select {
            self.resolve_unknown_targets(&mut q.targets)?;
        }
        self.locking_clauses(&s.locking_clause, &mut q)?;
        self.finish_select(&mut q)?;
        Ok(q)
    }

    /// Collations, then the rules of grouping, once everything else is known.
    pub fn finish_select(&mut self, q: &mut Query) -> Result<()> {
        self.assign_query_collations(q)?;
        let level = self.level();
        if level.has_aggregates || !q.group_by.is_empty() || q.grouping_sets.is_some() || q.having.is_some() {
            self.check_grouping(q)?;
        }
        Ok(())
    }

    pub fn limits(&mut self, s: &'p pb::SelectStmt, q: &mut Query) -> Result<()> {
        if let Some(node) = &s.limit_offset {
            q.offset = Some(self.limit_expression(node, ExprKind::Offset)?);
        }
        if let Some(node) = &s.limit_count {
            q.with_ties = s.limit_option == pb::LimitOption::WithTies as i32;
            let e = self.limit_expression(node, ExprKind::Limit)?;
            if q.with_ties && e.is_null_const() {
                return Err(err!(
                    INVALID_ROW_COUNT_IN_LIMIT_CLAUSE,
                    "row count cannot be null in FETCH FIRST ... WITH TIES clause"
                ));
            }
            // LIMIT ALL is a null constant.
            q.limit = Some(e);
        }
        Ok(())
    }

    /// Literals without a type are text.
    pub fn resolve_unknown_targets(&mut self, targets: &mut [Target]) -> Result<()> {
        for target in targets {
            if target.expr.ty() == melba_types::oids::UNKNOWN {
                let e = std::mem::replace(&mut target.expr, Expr::MergeAction);
                target.expr = self.resolve_unknown(e)?;
            }
        }
        Ok(())
    }
}

fn remove_duplicates(sets: &mut Vec<Vec<usize>>) {
    let mut seen: Vec<Vec<usize>> = Vec::new();
    sets.retain(|set| {
        let mut sorted = set.clone();
        sorted.sort_unstable();
        let new = !seen.contains(&sorted);
        if new {
            seen.push(sorted);
        }
        new
    });
}
