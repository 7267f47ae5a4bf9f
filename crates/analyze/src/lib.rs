//! Turns parse trees into analyzed queries, by PostgreSQL's rules.
//!
//! `analyze` takes a SELECT, INSERT, UPDATE, DELETE or MERGE node; `expression::analyze_expression` takes the expressions of DDL
//! (checks, defaults, index expressions). Errors carry PostgreSQL's SQLSTATE, message, hint and position.
//!
//! ```text
//! statements   select, set_operation, values, insert, update, merge, cte, assignment
//! clauses      from, join, targets, clauses (ORDER BY, GROUP BY, ...), limit, window, returning, locking
//! expressions  expr, columns, items, call, sublink, subscript, field, row, json
//! rules        candidates (overloads), coerce, polymorphic, collate, grouping, aggregate
//! rewriting    rule, rewrite, row_security, inline
//! state        analyzer: the query levels, and what surrounds the statement
//! ```
//!
//! The modules are functions over the `Analyzer`, as PostgreSQL's are over its ParseState. Those that look at the catalog only take
//! the `Context`.

mod aggregate;
mod analyzer;
mod assignment;
mod call;
mod call_syntax;
mod candidates;
mod clauses;
mod coerce;
mod collate;
mod columns;
mod context;
mod cte;
mod expr;
mod expression;
mod field;
mod from;
mod functions;
mod grouping;
mod inline;
mod insert;
mod items;
mod join;
mod json;
mod json_aggregate;
mod json_expression;
mod json_query;
mod json_table;
mod limit;
mod literal;
mod locking;
mod merge;
mod missing;
mod nodes;
mod on_conflict;
mod operators;
mod out_arguments;
mod params;
mod polymorphic;
mod range_columns;
mod range_function;
pub mod record;
mod returning;
mod rewrite;
mod rewrite_action;
mod routine;
mod routine_names;
mod routine_scope;
mod row;
mod row_security;
mod rule;
mod rule_rows;
mod scope;
mod search_cycle;
mod select;
mod set_operation;
mod sort_key;
mod sublink;
mod subscript;
mod support_function;
mod targets;
mod trigger;
mod type_names;
mod updatable;
mod update;
mod values;
mod variables;
mod view_target;
mod volatility;
mod window;
use melba_types::{DbError, Oid, Result, err, limits};
use pg_query::NodeEnum;
use pg_query::protobuf as pb;

use melba_tree::*;

pub use coerce::CoercionContext;
pub use collate::assign as assign_collations;
pub use context::Context;
pub use expression::{
    Expected, analyze_domain_check, analyze_expression, analyze_stored_domain_check, analyze_stored_expression, analyze_view,
    coerce_for_assignment, column_default, identity_sequence,
};
pub use inline::{inline_in_expression, inline_routines};
pub use literal::LiteralUse;
pub use missing::levenshtein;
pub use operators::{OperatorName, exact_operator, operator_signature};
pub use out_arguments::function_columns;
pub use params::Params;
pub use polymorphic::{is_polymorphic, undetermined_result};
pub use range_columns::relation_columns;
pub use rewrite::{Rewritten, apply_rules};
pub use routine::{
    AnalyzedCall, CallPlace, ResultForm, RoutineResult, analyze_call, analyze_in_routine, analyze_part_assignment,
    analyze_with_variables, check_routine_statement, coerce_for_variable, fit_routine_result, no_final_query, routine_result,
    routine_statements,
};
pub use routine_scope::{RoutineScope, input_names};
pub use row_security::{Secured, apply_row_security, is_restricted};
pub use rule::{AnalyzedRule, RuleAction, analyze_rule, stored_rule};
pub use scope::ExprKind;
pub use scope::system_var;
pub use support_function::{actual_type, support_function};
pub use targets::suggested_name;
pub use trigger::{NEW_ENTRY, OLD_ENTRY, TABLE_OID, analyze_trigger_condition, stored_trigger_condition, trigger_entries};
pub use type_names::{is_pseudo, missing_relation, typmod_from};
pub use updatable::{refused_check_option, updatable_events};
pub use variables::{NameConflict, Variable, VariableField, Variables};
pub use volatility::is_mutable;

use analyzer::Analyzer;
use literal::Literals;
use nodes::is_star;
use scope::FromResult;

use melba_parse::literals::Literal;

/// An analyzed statement and the types of its parameters, the inferred ones included.
#[derive(Clone, Debug)]
pub struct Analyzed {
    pub query: Query,
    pub params: Vec<Oid>,
}

/// Analyzes an optimizable statement. `params` are the types of `$1`, ... as far as the client gave them (0: to be
/// inferred); with `None` the statement may have no parameters.
pub fn analyze(cx: &Context<'_>, node: &NodeEnum, params: Option<&[Oid]>) -> Result<Analyzed> {
    let params = match params {
        Some(types) => Params::inferred(types),
        None => Params::none(),
    };
    let mut analyzer = Analyzer::new(cx, params);
    let query = analyzer.statement(node)?;
    let params = analyzer.params().finish(&query)?;
    Ok(Analyzed { query, params })
}

/// Analyzes a statement with its literals as parameters: the result fits every text that differs from this one in the values
/// of literals only. `None` when that is not certain: some literal is no ordinary constant of an expression (a position in
/// ORDER BY, a type modifier, ...), or its type follows from its value.
///
/// That is safe because analysis never treats a parameter as more than a constant of the same type: an analysis that depends on a
/// constant's value fails with parameters. A clause that searches its expression in the select list, and continues without it
/// when there is none, refuses literals in it.
pub fn analyze_with_literals(cx: &Context<'_>, node: &NodeEnum, literals: &[Literal]) -> Option<(Analyzed, Vec<LiteralUse>)> {
    let params = Params::inferred(&literal::types(literals));
    let mut analyzer = Analyzer::new(cx, params).with_literals(Literals::new(literals));
    let query = analyzer.statement(node).ok()?;
    let (params, literals) = analyzer.into_parts();
    let (params, uses) = (params.finish(&query).ok()?, literals.uses()?);
    Some((Analyzed { query, params }, uses))
}

/// The recursion of the grammar: what a rule calls of the rules above it, as an expression calls a statement in a sub-query. All
/// other calls between the modules lead downwards.
impl<'p> Analyzer<'_, 'p> {
    /// A whole statement at a new level.
    fn statement(&mut self, node: &'p NodeEnum) -> Result<Query> {
        self.with_level(|a| a.statement_here(node))
    }

    /// A statement at the level just opened.
    fn statement_here(&mut self, node: &'p NodeEnum) -> Result<Query> {
        let mut query = match node {
            NodeEnum::SelectStmt(s) => self.select_statement(s)?,
            NodeEnum::InsertStmt(s) => insert::insert_statement(self, s)?,
            NodeEnum::UpdateStmt(s) => update::update_statement(self, s)?,
            NodeEnum::DeleteStmt(s) => update::delete_statement(self, s)?,
            NodeEnum::MergeStmt(s) => merge::merge_statement(self, s)?,
            _ => return Err(DbError::internal("statement cannot be analyzed as a query")),
        };
        view_target::add_view_checks(self, &mut query);
        self.take_level(&mut query);
        Ok(query)
    }

    /// A SELECT, a set operation or VALUES at the level just opened.
    fn select_statement(&mut self, s: &'p pb::SelectStmt) -> Result<Query> {
        if s.into_clause.is_some() && self.depth() > 1 {
            return Err(err!(SYNTAX_ERROR, "SELECT ... INTO is not allowed here").at(s
                .into_clause
                .as_ref()
                .and_then(|i| i.rel.as_ref())
                .map_or(-1, |r| r.location)));
        }
        if s.op != pb::SetOperation::SetopNone as i32 && s.larg.is_some() {
            return set_operation::set_operation_statement(self, s);
        }
        if !s.values_lists.is_empty() {
            return values::values_statement(self, s);
        }
        select::plain_select(self, s)
    }

    /// An item of FROM.
    fn from_item(&mut self, node: &'p pb::Node) -> Result<FromResult> {
        from::range_item(self, node)
    }

    /// An expression standing in a certain place.
    fn expression(&mut self, node: &'p pb::Node, kind: ExprKind) -> Result<Expr> {
        self.with_kind(kind, |a| a.expr(node))
    }

    /// A subexpression of one being analyzed.
    fn expr(&mut self, node: &'p pb::Node) -> Result<Expr> {
        limits::check_stack()?;
        limits::check_interrupt()?;
        expr::expr_inner(self, node)
    }

    fn boxed(&mut self, node: &'p Option<Box<pb::Node>>) -> Result<Expr> {
        match node {
            Some(node) => self.expr(node),
            None => Err(DbError::internal("parse tree lacks an expression")),
        }
    }

    /// Expressions of ROW(...) and VALUES, with `x.*` expanded.
    fn expression_list(&mut self, list: &'p [pb::Node]) -> Result<Vec<Expr>> {
        let mut out = Vec::with_capacity(list.len());
        for node in list {
            match &node.node {
                Some(NodeEnum::ColumnRef(c)) if is_star(c.fields.last()) => {
                    out.extend(targets::expand_star(self, c)?.into_iter().map(|(e, _)| e));
                }
                Some(NodeEnum::AIndirection(i)) if is_star(i.indirection.last()) => {
                    out.extend(subscript::expand_indirection_star(self, i)?.into_iter().map(|(e, _)| e));
                }
                _ => out.push(self.expr(node)?),
            }
        }
        Ok(out)
    }

    /// `row.name` as a call of a function, or a field of the row; none when there is neither.
    fn functional_notation(&mut self, name: &str, row: Expr, location: i32) -> Result<Option<Expr>> {
        call::functional_notation(self, name, row, location)
    }

    /// Puts the bodies of functions LANGUAGE sql into an expression of a finished analysis.
    fn inline_routines(cx: &Context<'_>, e: &mut Expr) -> Result<()> {
        inline::inline_in_expression(cx, e)
    }

    /// `WHERE` and the like.
    fn condition(&mut self, node: &'p Option<Box<pb::Node>>, kind: ExprKind, construct: &str) -> Result<Option<Expr>> {
        let Some(node) = node else { return Ok(None) };
        let e = self.expression(node, kind)?;
        coerce::to_boolean(self, e, construct).map(Some)
    }
}

#[cfg(test)]
mod tests;
