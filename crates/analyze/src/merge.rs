//! MERGE.

use melba_types::{DbError, Result, err};
use pg_query::NodeEnum;
use pg_query::protobuf as pb;

use super::scope::ExprKind;
use super::{Analyzer, nodes};
use melba_tree::*;

impl<'p> Analyzer<'_, 'p> {
    pub fn merge_statement(&mut self, s: &'p pb::MergeStmt) -> Result<Query> {
        let mut q = Query::new(Command::Merge);
        if s.with_clause.as_ref().is_some_and(|w| w.recursive) {
            return Err(err!(SYNTAX_ERROR, "WITH RECURSIVE is not supported for MERGE statement"));
        }
        self.with_clause(s.with_clause.as_ref())?;
        check_reachable(&s.merge_when_clauses)?;
        let name = s.relation.as_ref().ok_or_else(|| DbError::internal("MERGE without a table"))?;
        let relation = self.target_relation(name, Command::Merge, first_command(&s.merge_when_clauses))?;
        let target = self.level().target.clone().ok_or_else(|| DbError::internal("MERGE without a target"))?;
        q.result = self.target_entry();
        let source_node = s.source_relation.as_deref().ok_or_else(|| DbError::internal("MERGE without a source"))?;
        let source = self.from_clause(std::slice::from_ref(source_node))?;
        q.from.extend(source);
        let source_items = self.level().namespace.clone();
        if source_items.iter().any(|i| i.relation_visible && i.name == target.name) {
            return Err(err!(DUPLICATE_ALIAS, "name \"{}\" specified more than once", target.name)
                .detail("The name is used both as MERGE target table and data source."));
        }
        let both = |target_visible: bool, source_visible: bool| {
            let mut all: Vec<_> = target_visible.then(|| target.clone()).into_iter().collect();
            if source_visible {
                all.extend(source_items.iter().cloned());
            }
            all
        };
        self.level_mut().namespace = both(true, true);
        q.merge_condition = self.condition(&s.join_condition, ExprKind::JoinOn, "JOIN/ON")?;
        for node in &s.merge_when_clauses {
            let Some(NodeEnum::MergeWhenClause(clause)) = &node.node else { continue };
            let matched = match pb::MergeMatchKind::try_from(clause.match_kind) {
                Ok(pb::MergeMatchKind::MergeWhenMatched) => MergeMatch::Matched,
                Ok(pb::MergeMatchKind::MergeWhenNotMatchedBySource) => MergeMatch::NotMatchedBySource,
                _ => MergeMatch::NotMatchedByTarget,
            };
            self.level_mut().namespace = match matched {
                MergeMatch::Matched => both(true, true),
                MergeMatch::NotMatchedBySource => both(true, false),
                MergeMatch::NotMatchedByTarget => both(false, true),
            };
            let condition = self.condition(&clause.condition, ExprKind::MergeWhen, "WHEN")?;
            let overriding = match pb::OverridingKind::try_from(clause.r#override) {
                Ok(pb::OverridingKind::OverridingUserValue) => Overriding::User,
                Ok(pb::OverridingKind::OverridingSystemValue) => Overriding::System,
                _ => Overriding::None,
            };
            let command = command_of(clause);
            command.into_iter().for_each(|command| self.require(command));
            let (command, targets) = match command {
                Some(Command::Insert) => {
                    let columns = self.insert_columns(&relation, &clause.target_list, clause.values.len())?;
                    let row = self.with_kind(ExprKind::ValuesSingle, |a| a.values_row(&clause.values))?;
                    if row.len() > columns.len() {
                        return Err(err!(SYNTAX_ERROR, "INSERT has more expressions than target columns")
                            .at(row[columns.len()].location()));
                    }
                    if !clause.target_list.is_empty() && row.len() < columns.len() {
                        return Err(
                            err!(SYNTAX_ERROR, "INSERT has more target columns than expressions").at(columns[row.len()].location)
                        );
                    }
                    let mut targets = Vec::with_capacity(row.len());
                    for (e, column) in row.into_iter().zip(&columns) {
                        let e = self.assigned_expression(e, &relation, column, None, true)?;
                        targets.push(super::insert::assigned_target(&relation, column.index, e));
                    }
                    (MergeCommand::Insert, self.complete_insert(targets, &relation, overriding)?)
                }
                Some(Command::Update) => (MergeCommand::Update, self.set_clause(&clause.target_list, &relation)?),
                Some(Command::Delete) => (MergeCommand::Delete, Vec::new()),
                _ => (MergeCommand::DoNothing, Vec::new()),
            };
            q.merge_actions.push(MergeAction { matched, condition, command, targets, overriding });
        }
        // The source's columns come first in `*`.
        self.level_mut().namespace.clone_from(&source_items);
        self.level_mut().namespace.push(target.clone());
        self.returning_clause(s.returning_clause.as_ref(), &mut q, ExprKind::MergeReturning)?;
        self.assign_query_collations(&mut q)?;
        self.add_view_filter(&mut q)?;
        Ok(q)
    }
}

/// MERGE's command by its first WHEN with an action.
fn first_command(clauses: &[pb::Node]) -> Command {
    let command = |node: &pb::Node| match &node.node {
        Some(NodeEnum::MergeWhenClause(clause)) => command_of(clause),
        _ => None,
    };
    clauses.iter().find_map(command).unwrap_or(Command::Update)
}

/// The command of a WHEN, except DO NOTHING.
fn command_of(clause: &pb::MergeWhenClause) -> Option<Command> {
    match pb::CmdType::try_from(clause.command_type) {
        Ok(pb::CmdType::CmdInsert) => Some(Command::Insert),
        Ok(pb::CmdType::CmdUpdate) => Some(Command::Update),
        Ok(pb::CmdType::CmdDelete) => Some(Command::Delete),
        _ => None,
    }
}

/// A WHEN after an unconditional one of its kind could never apply.
fn check_reachable(clauses: &[pb::Node]) -> Result<()> {
    let mut closed: Vec<i32> = Vec::new();
    for node in clauses {
        let Some(NodeEnum::MergeWhenClause(clause)) = &node.node else { continue };
        if closed.contains(&clause.match_kind) {
            return Err(
                err!(SYNTAX_ERROR, "unreachable WHEN clause specified after unconditional WHEN clause").at(nodes::location(node))
            );
        }
        if clause.condition.is_none() {
            closed.push(clause.match_kind);
        }
    }
    Ok(())
}
