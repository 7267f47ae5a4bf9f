//! The state of one analysis: query levels from the outermost in, and what surrounds the statement.
//!
//! The rules are functions in the other modules. They take the analyzer, or the `Context` alone if they look at the catalog only.

use melba_types::{Result, limits};

use super::context::Context;
use super::literal::Literals;
use super::params::Params;
use super::routine_scope::RoutineScope;
use super::scope::{ExprKind, QueryLevel};
use super::variables::Variables;
use melba_tree::*;

/// The state of one analysis.
pub struct Analyzer<'a, 'p> {
    cx: &'a Context<'a>,
    params: Params,
    levels: Vec<QueryLevel<'p>>,
    literals: Literals<'a>,
    /// The function whose body is being analyzed.
    routine: Option<&'a RoutineScope>,
    /// Of the procedural function that contains the statement.
    variables: Option<&'a dyn Variables>,
    /// A value assigned to a part of a variable is converted through its text, where there is no cast.
    assigns_through_text: bool,
    /// The statement is a rule's action as it is stored.
    is_action: bool,
}

impl<'a, 'p> Analyzer<'a, 'p> {
    pub fn new(cx: &'a Context<'a>, params: Params) -> Self {
        Analyzer {
            cx,
            params,
            levels: Vec::new(),
            literals: Literals::default(),
            routine: None,
            variables: None,
            assigns_through_text: false,
            is_action: false,
        }
    }

    /// Its constants that are `literals` become parameters.
    pub fn with_literals(self, literals: Literals<'a>) -> Self {
        Analyzer { literals, ..self }
    }

    /// Names that no column has may be arguments of the function.
    pub fn in_routine(self, routine: &'a RoutineScope) -> Self {
        Analyzer { routine: Some(routine), ..self }
    }

    /// Names may be variables of a procedural function.
    pub fn with_variables(self, variables: &'a dyn Variables) -> Self {
        Analyzer { variables: Some(variables), ..self }
    }

    /// A view remains the target of a change: what becomes of it is decided when the rule applies.
    pub fn as_action(self) -> Self {
        Analyzer { is_action: true, ..self }
    }

    /// Whether a view remains the target of a change.
    pub fn is_action(&self) -> bool {
        self.is_action
    }

    /// From here on values are assigned to parts of a variable.
    pub fn assign_through_text(&mut self) {
        self.assigns_through_text = true;
    }

    pub fn cx(&self) -> &'a Context<'a> {
        self.cx
    }

    pub fn params(&mut self) -> &mut Params {
        &mut self.params
    }

    pub fn literals(&mut self) -> &mut Literals<'a> {
        &mut self.literals
    }

    pub fn routine(&self) -> Option<&'a RoutineScope> {
        self.routine
    }

    pub fn variables(&self) -> Option<&'a dyn Variables> {
        self.variables
    }

    pub fn assigns_through_text(&self) -> bool {
        self.assigns_through_text
    }

    /// The parameters and the literals, when the analysis is done.
    pub fn into_parts(self) -> (Params, Literals<'a>) {
        (self.params, self.literals)
    }

    /// The query levels, the innermost first.
    pub fn levels(&self) -> impl DoubleEndedIterator<Item = &QueryLevel<'p>> + ExactSizeIterator {
        self.levels.iter().rev()
    }

    /// How many query levels are open.
    pub fn depth(&self) -> usize {
        self.levels.len()
    }

    /// The innermost query level.
    pub fn level(&self) -> &QueryLevel<'p> {
        self.levels.last().expect("a statement is being analyzed")
    }

    pub fn level_mut(&mut self) -> &mut QueryLevel<'p> {
        self.levels.last_mut().expect("a statement is being analyzed")
    }

    /// The level `up` queries outwards.
    pub fn level_up(&self, up: usize) -> &QueryLevel<'p> {
        &self.levels[self.levels.len() - 1 - up]
    }

    pub fn level_up_mut(&mut self, up: usize) -> &mut QueryLevel<'p> {
        let index = self.levels.len() - 1 - up;
        &mut self.levels[index]
    }

    /// Runs `f` one query level further in.
    pub fn with_level<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        limits::check_stack()?;
        limits::check_interrupt()?;
        self.levels.push(QueryLevel { last_srf: -1, ..QueryLevel::default() });
        let result = f(self);
        self.levels.pop();
        result
    }

    /// Moves the level's collected data into the query.
    pub fn take_level(&mut self, query: &mut Query) {
        let level = self.level_mut();
        query.range_table = std::mem::take(&mut level.range_table);
        query.ctes = std::mem::take(&mut level.ctes);
        query.has_aggregates = level.has_aggregates;
        query.has_windows = level.has_windows;
        query.has_set_returning = level.has_set_returning;
    }

    /// Adds a range entry to the level, and returns its index.
    pub fn add_entry(&mut self, entry: RangeEntry) -> usize {
        let table = &mut self.level_mut().range_table;
        table.push(entry);
        table.len() - 1
    }

    /// The range entry that the statement changes.
    pub fn target_entry(&self) -> Option<usize> {
        let level = self.level();
        let item = level.target.as_ref()?;
        Some(if level.view_target.is_some() { item.entry - 1 } else { item.entry })
    }

    /// A reference to a parameter.
    pub fn parameter(&mut self, number: i32, location: i32) -> Result<Expr> {
        self.params.reference(self.cx, number, location)
    }

    /// A parameter that is a whole column of the source has its type by the column it is assigned to: in the source, too.
    pub fn type_source_parameters(&mut self, entry: usize) {
        let Some(level) = self.levels.last_mut() else { return };
        let RangeKind::Subquery { query, .. } = &mut level.range_table[entry].kind else { return };
        for target in &mut query.targets {
            if let Expr::Param(param) = &mut target.expr {
                self.params.set_type(self.cx, param);
            }
        }
    }

    /// Returns a new handle for a target.
    pub fn new_reference(&mut self) -> u32 {
        let level = self.level_mut();
        level.next_reference += 1;
        level.next_reference
    }

    /// Runs `f` with the level's expression kind set.
    pub fn with_kind<T>(&mut self, kind: ExprKind, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let saved = std::mem::replace(&mut self.level_mut().kind.0, kind);
        let result = f(self);
        self.level_mut().kind.0 = saved;
        result
    }
}
