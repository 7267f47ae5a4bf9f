//! MERGE.

use std::sync::Arc;

use melba_catalog::Relation;
use melba_types::{DbError, Result, err};
use pg_query::{NodeEnum, protobuf as pb};

use super::analyzer::Analyzer;
use super::scope::ExprKind;
use super::{assignment, collate, cte, from, insert, nodes, returning, view_target};
use melba_tree::*;

pub fn merge_statement<'p>(analyzer: &mut Analyzer<'_, 'p>, s: &'p pb::MergeStmt) -> Result<Query> {
    let mut q = Query::new(Command::Merge);
    if s.with_clause.as_ref().is_some_and(|w| w.recursive) {
        return Err(err!(SYNTAX_ERROR, "WITH RECURSIVE is not supported for MERGE statement"));
    }
    cte::with_clause(analyzer, s.with_clause.as_ref())?;
    check_reachable(&s.merge_when_clauses)?;
    let name = s.relation.as_ref().ok_or_else(|| DbError::internal("MERGE without a table"))?;
    let relation = assignment::target_relation(analyzer, name, Command::Merge, &commands(&s.merge_when_clauses))?;
    let target = analyzer.level().target.clone().ok_or_else(|| DbError::internal("MERGE without a target"))?;
    q.result = analyzer.target_entry();
    let source_node = s.source_relation.as_deref().ok_or_else(|| DbError::internal("MERGE without a source"))?;
    let source = from::from_clause(analyzer, std::slice::from_ref(source_node))?;
    q.from.extend(source);
    let source_items = analyzer.level().namespace.clone();
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
    analyzer.level_mut().namespace = both(true, true);
    q.merge_condition = analyzer.condition(&s.join_condition, ExprKind::JoinOn, "JOIN/ON")?;
    for node in &s.merge_when_clauses {
        let Some(NodeEnum::MergeWhenClause(clause)) = &node.node else { continue };
        let matched = match pb::MergeMatchKind::try_from(clause.match_kind) {
            Ok(pb::MergeMatchKind::MergeWhenMatched) => MergeMatch::Matched,
            Ok(pb::MergeMatchKind::MergeWhenNotMatchedBySource) => MergeMatch::NotMatchedBySource,
            _ => MergeMatch::NotMatchedByTarget,
        };
        analyzer.level_mut().namespace = match matched {
            MergeMatch::Matched => both(true, true),
            MergeMatch::NotMatchedBySource => both(true, false),
            MergeMatch::NotMatchedByTarget => both(false, true),
        };
        let condition = analyzer.condition(&clause.condition, ExprKind::MergeWhen, "WHEN")?;
        let overriding = match pb::OverridingKind::try_from(clause.r#override) {
            Ok(pb::OverridingKind::OverridingUserValue) => Overriding::User,
            Ok(pb::OverridingKind::OverridingSystemValue) => Overriding::System,
            _ => Overriding::None,
        };
        let command = command_of(clause);
        assignment::require(analyzer, command.unwrap_or(Command::Select));
        let (command, targets) = match command {
            Some(Command::Insert) => {
                let targets = inserted_row(analyzer, &relation, clause)?;
                (MergeCommand::Insert, insert::complete_insert(analyzer, targets, &relation, overriding)?)
            }
            Some(Command::Update) => (MergeCommand::Update, assignment::set_clause(analyzer, &clause.target_list, &relation)?),
            Some(Command::Delete) => (MergeCommand::Delete, Vec::new()),
            _ => (MergeCommand::DoNothing, Vec::new()),
        };
        q.merge_actions.push(MergeAction { matched, condition, command, targets, overriding });
    }
    // The source's columns come first in `*`.
    analyzer.level_mut().namespace.clone_from(&source_items);
    analyzer.level_mut().namespace.push(target.clone());
    returning::returning_clause(analyzer, s.returning_clause.as_ref(), &mut q, ExprKind::MergeReturning)?;
    collate::assign_query(analyzer.cx(), &mut q)?;
    view_target::add_view_filter(analyzer, &mut q)?;
    Ok(q)
}

/// The columns and values of INSERT.
fn inserted_row<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    relation: &Arc<Relation>,
    clause: &'p pb::MergeWhenClause,
) -> Result<Vec<Target>> {
    let columns = insert::insert_columns(analyzer, relation, &clause.target_list, clause.values.len())?;
    let row = analyzer.with_kind(ExprKind::ValuesSingle, |a| insert::values_row(a, &clause.values))?;
    if row.len() > columns.len() {
        return Err(err!(SYNTAX_ERROR, "INSERT has more expressions than target columns").at(row[columns.len()].location()));
    }
    if !clause.target_list.is_empty() && row.len() < columns.len() {
        return Err(err!(SYNTAX_ERROR, "INSERT has more target columns than expressions").at(columns[row.len()].location));
    }
    let mut targets = Vec::with_capacity(row.len());
    for (e, column) in row.into_iter().zip(&columns) {
        let e = assignment::assigned_expression(analyzer, e, relation, column, None, true)?;
        targets.push(assignment::assigned_target(relation, column.index, e));
    }
    Ok(targets)
}

/// The commands of MERGE's actions, in their order.
fn commands(clauses: &[pb::Node]) -> Vec<Command> {
    let command = |node: &pb::Node| match &node.node {
        Some(NodeEnum::MergeWhenClause(clause)) => command_of(clause),
        _ => None,
    };
    clauses.iter().filter_map(command).collect()
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
