//! UPDATE and DELETE.

use std::sync::Arc;

use melba_catalog::Relation;
use melba_types::{DbError, Result, err, oids};
use pg_query::NodeEnum;
use pg_query::protobuf as pb;

use super::insert::{Assigned, assigned_target};
use super::scope::ExprKind;
use super::{Analyzer, nodes};
use melba_tree::*;

impl<'p> Analyzer<'_, 'p> {
    pub fn update_statement(&mut self, s: &'p pb::UpdateStmt) -> Result<Query> {
        let mut q = Query::new(Command::Update);
        q.recursive = self.with_clause(s.with_clause.as_ref())?;
        let name = s.relation.as_ref().ok_or_else(|| DbError::internal("UPDATE without a table"))?;
        let relation = self.target_relation(name, Command::Update, Command::Update)?;
        self.add_target(&mut q);
        let from = self.from_with_target(&s.from_clause)?;
        q.from.extend(from);
        // In PostgreSQL's order: of several errors the first counts, and so does the first use of a parameter.
        q.filter = self.condition(&s.where_clause, ExprKind::Where, "WHERE")?;
        self.add_view_filter(&mut q)?;
        self.returning_clause(s.returning_clause.as_ref(), &mut q, ExprKind::Returning)?;
        q.targets = self.set_clause(&s.target_list, &relation)?;
        self.assign_query_collations(&mut q)?;
        Ok(q)
    }

    pub fn delete_statement(&mut self, s: &'p pb::DeleteStmt) -> Result<Query> {
        let mut q = Query::new(Command::Delete);
        q.recursive = self.with_clause(s.with_clause.as_ref())?;
        let name = s.relation.as_ref().ok_or_else(|| DbError::internal("DELETE without a table"))?;
        self.target_relation(name, Command::Delete, Command::Delete)?;
        self.add_target(&mut q);
        let from = self.from_with_target(&s.using_clause)?;
        q.from.extend(from);
        q.filter = self.condition(&s.where_clause, ExprKind::Where, "WHERE")?;
        self.add_view_filter(&mut q)?;
        self.returning_clause(s.returning_clause.as_ref(), &mut q, ExprKind::Returning)?;
        self.assign_query_collations(&mut q)?;
        Ok(q)
    }

    /// Makes the target table part of FROM and visible.
    pub fn add_target(&mut self, q: &mut Query) {
        let Some(entry) = self.target_entry() else { return };
        q.result = Some(entry);
        q.from.push(FromItem::Range(entry));
        let level = self.level_mut();
        level.namespace.extend(level.target.clone());
    }

    /// FROM and USING: the target table is not visible to LATERAL items.
    fn from_with_target(&mut self, list: &'p [pb::Node]) -> Result<Vec<FromItem>> {
        for item in &mut self.level_mut().namespace {
            item.lateral_only = true;
            item.lateral_ok = false;
        }
        self.from_clause(list)
    }

    /// The assignments of SET.
    pub fn set_clause(&mut self, list: &'p [pb::Node], relation: &Arc<Relation>) -> Result<Vec<Target>> {
        let mut targets: Vec<Target> = Vec::with_capacity(list.len());
        for node in list {
            let Some(NodeEnum::ResTarget(item)) = &node.node else { continue };
            let value = item.val.as_deref().ok_or_else(|| DbError::internal("SET without a value"))?;
            let is_default = nodes::is_default(value);
            let e = if is_default {
                Expr::Default { ty: oids::UNKNOWN, typmod: -1 }
            } else {
                self.expression(value, ExprKind::UpdateSource)?
            };
            let is_default = is_default || matches!(e, Expr::Default { .. });
            let index = self.assigned_column(relation, &item.name, item.location).map_err(|e| self.set_hint(e, item))?;
            let column = Assigned { index, name: &item.name, indirection: &item.indirection, location: item.location };
            // A view has its own defaults; an UPDATE of it does not use the table's.
            let of_view = self.level().view_target.is_some();
            self.check_updatable(relation, index, is_default && !of_view)?;
            let previous = targets.iter().position(|t| t.column as usize == index + 1);
            let base = match previous {
                Some(i) if !item.indirection.is_empty() && is_partial(&targets[i].expr) => Some(targets.remove(i).expr),
                Some(_) => {
                    return Err(err!(SYNTAX_ERROR, "multiple assignments to same column \"{}\"", relation.columns[index].name));
                }
                None => None,
            };
            let e = self.with_kind(ExprKind::UpdateTarget, |a| a.assigned_expression(e, relation, &column, base, false))?;
            let e = match e {
                Expr::Default { .. } if of_view => self.view_default(relation, index, &item.name)?,
                Expr::Default { .. } => self.default_or_null(relation, index)?,
                e => e,
            };
            targets.push(assigned_target(relation, index, e));
        }
        targets.sort_by_key(|t| t.column);
        Ok(targets)
    }

    fn view_default(&mut self, table: &Relation, index: usize, name: &str) -> Result<Expr> {
        let view = self.level().view_target.as_ref().map(|target| target.view.clone());
        let default = match view.and_then(|v| Some((v.columns.iter().position(|c| &*c.name == name)?, v))) {
            Some((at, view)) => self.column_default_expression(&view, at)?,
            None => None,
        };
        let c = &table.columns[index];
        Ok(default.unwrap_or_else(|| Expr::null(c.ty, c.typmod, c.collation)))
    }

    fn set_hint(&self, e: DbError, item: &pb::ResTarget) -> DbError {
        let target = self.level().target.as_ref().map(|t| t.name.clone());
        if !item.indirection.is_empty() && target.as_deref() == Some(&item.name) {
            return e.hint("SET target columns cannot be qualified with the relation name.");
        }
        e
    }

    fn check_updatable(&self, relation: &Relation, index: usize, is_default: bool) -> Result<()> {
        let c = &relation.columns[index];
        let name = &c.name;
        if is_default {
            return Ok(());
        }
        let refused = err!(GENERATED_ALWAYS, "column \"{name}\" can only be updated to DEFAULT");
        if c.identity == b'a' {
            return Err(refused.detail(format!("Column \"{name}\" is an identity column defined as GENERATED ALWAYS.")));
        }
        if c.generated != 0 {
            return Err(refused.detail(format!("Column \"{name}\" is a generated column.")));
        }
        Ok(())
    }
}

/// An assignment to a part of the column, to which another part can be added.
pub(super) fn is_partial(e: &Expr) -> bool {
    match e {
        Expr::FieldStore { .. } => true,
        Expr::Subscript(s) => s.assign.is_some(),
        Expr::CoerceToDomain { arg, .. } => is_partial(arg),
        _ => false,
    }
}
