//! Turns parse trees into analyzed queries, by PostgreSQL's rules.
//!
//! `analyze` takes a SELECT, INSERT, UPDATE, DELETE or MERGE node; `expression::analyze_expression` takes the expressions of DDL
//! (checks, defaults, index expressions). Errors carry PostgreSQL's SQLSTATE, message, hint and position.
//!
//! ```text
//! statements   select, set_operation, values, insert, update, merge, cte
//! clauses      from, join, targets, clauses (ORDER BY, GROUP BY, ...), window, returning, locking
//! expressions  expr, columns, call, sublink, subscript, json
//! rules        candidates (overloads), coerce, polymorphic, collate, grouping, aggregate
//! ```

mod aggregate;
mod call;
mod candidates;
mod clauses;
mod coerce;
mod collate;
mod columns;
mod context;
mod cte;
mod expr;
mod expression;
mod from;
mod functions;
mod grouping;
mod inline;
mod insert;
mod join;
mod json;
mod json_aggregate;
mod json_query;
mod json_table;
mod literal;
mod locking;
mod merge;
mod missing;
mod nodes;
mod on_conflict;
mod operators;
mod params;
mod polymorphic;
mod range_columns;
mod range_function;
mod record;
mod returning;
mod routine;
mod routine_scope;
mod row_security;
mod scope;
mod search_cycle;
mod select;
mod set_operation;
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

use melba_types::{DbError, Oid, Result, limits};
use pg_query::NodeEnum;

use melba_tree::*;

pub use call::function_columns;
pub use coerce::CoercionContext;
pub use collate::assign as assign_collations;
pub use columns::system_var;
pub use context::Context;
pub use expression::{
    Expected, analyze_domain_check, analyze_expression, analyze_stored_domain_check, analyze_stored_expression, analyze_view,
    coerce_for_assignment, column_default, identity_sequence,
};
pub use inline::inline_routines;
pub use literal::LiteralUse;
pub use operators::{exact_operator, operator_signature};
pub use params::Params;
pub use polymorphic::{is_polymorphic, undetermined_result};
pub use range_columns::relation_columns;
pub use routine::{
    AnalyzedCall, CallPlace, ResultForm, RoutineResult, analyze_call, analyze_in_routine, analyze_part_assignment,
    analyze_with_variables, check_routine_statement, coerce_for_variable, routine_statements,
};
pub use routine_scope::{RoutineScope, input_names};
pub use row_security::{Secured, apply_row_security, is_restricted};
pub use scope::ExprKind;
pub use support_function::{actual_type, support_function};
pub use targets::suggested_name;
pub use trigger::{NEW_ENTRY, OLD_ENTRY, TABLE_OID, analyze_trigger_condition, stored_trigger_condition, trigger_entries};
pub use type_names::{is_pseudo, missing_relation, typmod_from};
pub use updatable::{refused_check_option, updatable_events};
pub use variables::{NameConflict, Variable, VariableField, Variables};
pub use volatility::is_mutable;

use literal::Literals;
use scope::Level;

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
    let params = analyzer.params.finish(&query)?;
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
    let mut analyzer = Analyzer::new(cx, Params::inferred(&literal::types(literals)));
    analyzer.literals = Literals::new(literals);
    let query = analyzer.statement(node).ok()?;
    let params = analyzer.params.finish(&query).ok()?;
    let uses = analyzer.literals.uses()?;
    Some((Analyzed { query, params }, uses))
}

/// The state of one analysis: query levels from the outermost in.
pub(crate) struct Analyzer<'a, 'p> {
    cx: &'a Context<'a>,
    params: Params,
    levels: Vec<Level<'p>>,
    literals: Literals<'a>,
    /// The function whose body is being analyzed.
    routine: Option<&'a RoutineScope>,
    /// Of the procedural function that contains the statement.
    variables: Option<&'a dyn Variables>,
    /// A value assigned to a part of a variable is converted through its text, where there is no cast.
    assigns_through_text: bool,
}

impl<'a, 'p> Analyzer<'a, 'p> {
    fn new(cx: &'a Context<'a>, params: Params) -> Self {
        Analyzer {
            cx,
            params,
            levels: Vec::new(),
            literals: Literals::default(),
            routine: None,
            variables: None,
            assigns_through_text: false,
        }
    }

    /// The innermost query level.
    fn level(&self) -> &Level<'p> {
        self.levels.last().expect("a statement is being analyzed")
    }

    fn level_mut(&mut self) -> &mut Level<'p> {
        self.levels.last_mut().expect("a statement is being analyzed")
    }

    /// The level `up` queries outwards.
    fn level_up(&mut self, up: usize) -> &mut Level<'p> {
        let index = self.levels.len() - 1 - up;
        &mut self.levels[index]
    }

    /// Runs `f` one query level further in.
    fn with_level<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        limits::check_stack()?;
        limits::check_interrupt()?;
        self.levels.push(Level { last_srf: -1, ..Level::default() });
        let result = f(self);
        self.levels.pop();
        result
    }

    /// A whole statement at a new level.
    fn statement(&mut self, node: &'p NodeEnum) -> Result<Query> {
        self.with_level(|a| a.statement_here(node))
    }

    /// A statement at the level just opened.
    fn statement_here(&mut self, node: &'p NodeEnum) -> Result<Query> {
        let mut query = match node {
            NodeEnum::SelectStmt(s) => self.select_statement(s)?,
            NodeEnum::InsertStmt(s) => self.insert_statement(s)?,
            NodeEnum::UpdateStmt(s) => self.update_statement(s)?,
            NodeEnum::DeleteStmt(s) => self.delete_statement(s)?,
            NodeEnum::MergeStmt(s) => self.merge_statement(s)?,
            _ => return Err(DbError::internal("statement cannot be analyzed as a query")),
        };
        self.add_view_checks(&mut query);
        self.take_level(&mut query);
        Ok(query)
    }

    /// Moves the level's collected data into the query.
    fn take_level(&mut self, query: &mut Query) {
        let level = self.level_mut();
        query.range_table = std::mem::take(&mut level.range_table);
        query.ctes = std::mem::take(&mut level.ctes);
        query.has_aggregates = level.has_aggregates;
        query.has_windows = level.has_windows;
        query.has_set_returning = level.has_set_returning;
    }

    /// Returns a new handle for a target.
    fn new_reference(&mut self) -> u32 {
        let level = self.level_mut();
        level.next_reference += 1;
        level.next_reference
    }

    /// Runs `f` with the level's expression kind set.
    fn with_kind<T>(&mut self, kind: ExprKind, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let saved = std::mem::replace(&mut self.level_mut().kind.0, kind);
        let result = f(self);
        self.level_mut().kind.0 = saved;
        result
    }
}

#[cfg(test)]
mod tests;
