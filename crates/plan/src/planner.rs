//! The planner's state: query levels, executor parameters, numbering; and compilation against layouts.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use melba_engine::{ColumnEstimate, RelationLockMode};
use melba_types::{Datum, DbError, Kind, Oid, Result};

use super::layout::Layout;
use super::member::Member;
use super::modify_node::Routines;
use super::node::*;
use super::sampled::{Evaluated, Frequent};
use super::shown;
use super::wanted::Wanted;
use super::{Plan, PlanInputs};
use melba_expression::Expression;
use melba_expression::{Compiler, Resolved, Routine, Scope};
use melba_tree::{Const, Expr, OutputColumn, Query, RangeEntry, Sublink, Target, Var, Window};

/// Table scans above this make planning cheap in comparison.
const LONG_SCAN_COST: f64 = 100.0;

/// By entry and column.
type ByColumn<T> = RefCell<HashMap<(usize, usize), Option<Rc<T>>>>;

/// The statistics that a query level has read.
#[derive(Default)]
pub(super) struct Estimates {
    pub columns: ByColumn<ColumnEstimate>,
    pub frequent: ByColumn<Frequent>,
    pub evaluated: RefCell<Evaluated>,
}

/// A query being planned.
#[derive(Default)]
pub(super) struct Level {
    pub entries: Vec<RangeEntry>,
    /// Columns of each entry that anything reads, and in how many places.
    pub needed: Vec<BTreeMap<i16, usize>>,
    /// The member of a family that is planned in its parent's place.
    pub member: Option<Arc<Member>>,
    /// By entry: the tables of its family that its scans reach. The others have no rows for its conditions.
    pub scanned: HashMap<usize, HashSet<Oid>>,
    /// The query's ORDER BY is only wished for.
    pub wish: Option<Wish>,
    /// Conditions may be checked again for a row's newest version.
    pub rechecks: bool,
    pub estimates: Estimates,
    /// Executor parameters that carry columns of this level to where they are not in the row.
    pub parameters: HashMap<(usize, i16), usize>,
    pub ctes: Vec<(Arc<str>, CteBinding)>,
    /// The expressions of computed columns, for EXPLAIN.
    pub computed: Vec<((usize, i16), Expr)>,
    /// Its windows with the names by which EXPLAIN calls them, and the targets that these sort by.
    pub windows: (Vec<Window>, Vec<Target>),
}

/// An order that is of use if rows come in it: nothing is sorted for it.
pub(super) struct Wish {
    /// How many rows will be read.
    pub wanted: Wanted,
    pub is_granted: bool,
}

/// How references to a WITH query are planned.
#[derive(Clone)]
pub(super) struct CteBinding {
    /// Index into `Plan::ctes`.
    pub index: usize,
    pub kinds: Arc<[Kind]>,
    pub rows: f64,
    /// Inside its own recursive term: the working table, and the parameter that changes with it.
    pub work_table: Option<(usize, usize)>,
}

/// The relations of a plan, in the order of planning, and the strongest lock that each needs.
#[derive(Default)]
pub(super) struct Mentioned {
    list: Vec<(Oid, RelationLockMode)>,
    places: HashMap<Oid, usize>,
}

impl Mentioned {
    /// One of the three modes of queries and changes: each conflicts with all modes with which the weaker ones conflict.
    pub fn add(&mut self, relation: Oid, mode: RelationLockMode) {
        let place = *self.places.entry(relation).or_insert(self.list.len());
        match self.list.get_mut(place) {
            Some(known) => known.1 = known.1.max(mode),
            None => self.list.push((relation, mode)),
        }
    }
}

/// A planned node with the meaning of its columns.
pub(super) struct Stage {
    pub node: PlanNode,
    pub layout: Layout,
}

/// The consumer of a query that is no ordinary SELECT: an INSERT's source already removes junk columns.
pub(super) struct Purpose {
    /// Columns of entries that the consumer reads besides the targets.
    pub needed: Vec<(usize, i16)>,
}

pub(super) struct Planner<'a> {
    pub inputs: PlanInputs<'a>,
    pub levels: Vec<Level>,
    pub subplans: Vec<SubPlanNode>,
    pub ctes: Vec<Option<CteNode>>,
    pub work_tables: usize,
    pub join_filters: usize,
    pub top_filters: usize,
    pub relations: Mentioned,
    /// By number: the level (counted from the outermost), entry and column of every executor parameter; the other
    /// parameters (columns of sub-plans under test) belong to no level.
    pub parameters: Vec<Option<(usize, usize, i16)>>,
    /// Parameters of expressions compiled since the collector was last taken.
    pub used: BTreeSet<usize>,
    nodes: usize,
    /// The statement has several range entries: EXPLAIN shows columns with the names of theirs.
    pub has_several_entries: bool,
    pub scans_tables: bool,
    pub prunes_by_parameters: bool,
    /// The statement is one that several threads may run parts of.
    pub may_be_parallel: bool,
    /// The first error of a call with constants.
    pub constant_error: Option<DbError>,
    /// Since they were last taken: `Scope::calls_routine`.
    pub routines: Routines,
}

impl<'a> Planner<'a> {
    pub fn new(inputs: PlanInputs<'a>) -> Planner<'a> {
        Planner {
            inputs,
            levels: Vec::new(),
            subplans: Vec::new(),
            ctes: Vec::new(),
            work_tables: 0,
            join_filters: 0,
            top_filters: 0,
            relations: Mentioned::default(),
            parameters: Vec::new(),
            used: BTreeSet::new(),
            nodes: 0,
            has_several_entries: false,
            scans_tables: false,
            prunes_by_parameters: false,
            may_be_parallel: false,
            constant_error: None,
            routines: Routines::default(),
        }
    }

    pub fn plan(mut self, query: Query) -> Result<Arc<Plan>> {
        let columns = query.output_columns();
        let command = PlanCommand::from(query.command);
        let changes = |cte: &melba_tree::Cte| cte.query.command != melba_tree::Command::Select;
        self.may_be_parallel = command == PlanCommand::Select && !query.ctes.iter().any(changes);
        self.has_several_entries = self.inputs.verbose && shown::has_several_entries(self.catalog(), &query);
        let root = self.query(query, None)?.node;
        let ctes = self.ctes.into_iter().flatten().collect();
        Ok(Arc::new(Plan {
            root,
            columns,
            subplans: self.subplans,
            ctes,
            work_tables: self.work_tables,
            join_filters: self.join_filters,
            top_filters: self.top_filters,
            nodes: self.nodes,
            relations: self.relations.list,
            command,
            scans_tables: self.scans_tables,
            prunes_by_parameters: self.prunes_by_parameters,
            constant_error: self.constant_error,
            steps: None,
        }))
    }

    pub fn catalog(&self) -> &'a Arc<melba_catalog::Catalog> {
        self.inputs.catalog
    }

    pub fn kind(&self, ty: Oid) -> Kind {
        Kind::of_builtin(ty).or_else(|| self.catalog().kind_of(ty)).unwrap_or(Kind::Text)
    }

    pub fn kinds_of(&self, columns: &[OutputColumn]) -> Arc<[Kind]> {
        columns.iter().map(|c| self.kind(c.ty)).collect()
    }

    pub fn level(&self) -> &Level {
        &self.levels[self.levels.len() - 1]
    }

    pub fn level_mut(&mut self) -> &mut Level {
        let last = self.levels.len() - 1;
        &mut self.levels[last]
    }

    /// How a reference to a WITH query, `levels` outwards, is planned.
    pub fn cte_binding(&self, name: &str, levels: usize) -> Result<CteBinding> {
        let depth = self.levels.len() - 1;
        let level = depth.checked_sub(levels).map(|l| &self.levels[l]);
        let found = level.and_then(|l| l.ctes.iter().rev().find(|(n, _)| **n == *name));
        found
            .map(|(_, binding)| binding.clone())
            .ok_or_else(|| DbError::internal(format!("WITH query \"{name}\" is not planned")))
    }

    pub fn node(&mut self, op: Op, kinds: Arc<[Kind]>, estimate: Estimate) -> PlanNode {
        self.nodes += 1;
        self.scans_tables |= matches!(op, Op::TableScan(_)) && estimate.total > LONG_SCAN_COST;
        PlanNode { id: self.nodes - 1, op, kinds, estimate, details: vec![], scanned: None, outputs: None }
    }

    /// Adds a line for EXPLAIN.
    pub fn detail(&self, node: &mut PlanNode, key: &'static str, text: impl FnOnce() -> String) {
        if self.inputs.explain {
            node.details.push((key, text()));
        }
    }

    /// Remembers the expressions of the columns of `entry`.
    pub fn note_computed(&mut self, entry: usize, exprs: &[Expr]) {
        if self.inputs.explain {
            let noted: Vec<_> = exprs.iter().enumerate().map(|(i, e)| ((entry, i as i16 + 1), self.resolved(e))).collect();
            self.level_mut().computed.extend(noted);
        }
    }

    /// An expression as EXPLAIN prints it.
    pub fn show(&self, expr: &Expr) -> String {
        if !self.inputs.explain {
            return String::new();
        }
        self.print(&self.resolved(expr), self.qualifies_conditions())
    }

    /// PostgreSQL names the relation in all conditions with VERBOSE, if there is only one, too.
    pub fn qualifies_conditions(&self) -> bool {
        self.inputs.verbose || self.levels.len() > 1 || self.level().entries.len() > 1
    }

    /// An expression with those of computed columns in their places.
    pub fn resolved(&self, expr: &Expr) -> Expr {
        let mut expr = expr.clone();
        let computed = &self.level().computed;
        expr.visit_mut(0, &mut |e, level| {
            if let Expr::Var(v) = e
                && v.levels_up == level
                && let Some((_, of)) = computed.iter().rev().find(|(at, _)| *at == (v.entry, v.column))
            {
                *e = of.clone();
            }
            self.fold(e)
        });
        expr
    }

    /// The text of an expression, with its relations' names before its columns if `qualify`.
    pub fn print(&self, expr: &Expr, qualify: bool) -> String {
        melba_deparse::plan_expression(self.catalog(), self.inputs.session, &self.shown_levels(), qualify, expr)
    }

    /// The queries around what is printed, outermost first.
    pub fn shown_levels(&self) -> Vec<Query> {
        let shown = |level: &Level| {
            let mut query = Query::new(melba_tree::Command::Select);
            query.range_table = level.entries.clone();
            (query.windows, query.targets) = level.windows.clone();
            query
        };
        self.levels.iter().map(shown).collect()
    }

    /// Conditions that all hold, as EXPLAIN prints them.
    pub fn show_all(&self, conditions: &[Expr]) -> String {
        let show = |condition| parenthesized(self.show(condition));
        match conditions {
            [one] => show(one),
            many => format!("({})", many.iter().map(show).collect::<Vec<_>>().join(" AND ")),
        }
    }

    /// Shows a part that is computed when it is compiled as its value; false when it has become that.
    fn fold(&self, expr: &mut Expr) -> bool {
        let (catalog, session) = (self.inputs.catalog, self.inputs.session);
        let part = Compiler::new(catalog, Some(session), &mut Nothing).compile(expr);
        let Some(value) = part.as_ref().ok().and_then(Expression::as_const) else { return true };
        let (ty, typmod, collation) = (expr.ty(), expr.typmod(), expr.collation());
        *expr = Expr::Const(Const { value: value.clone(), ty, typmod, collation, location: -1 });
        false
    }

    pub fn compile(&mut self, expr: &Expr, layout: &Layout) -> Result<Expression> {
        self.compile_in(expr, layout, None)
    }

    /// Nothing is computed behind a condition that is false, so errors of later expressions are not the statement's.
    pub fn compile_all<'e>(&mut self, exprs: impl IntoIterator<Item = &'e Expr>, layout: &Layout) -> Result<Vec<Expression>> {
        let mut compiled = Vec::new();
        let mut before_false: Option<Option<DbError>> = None;
        for e in exprs {
            let expression = self.compile(e, layout)?;
            if before_false.is_none() && matches!(expression.as_const(), Some(Datum::Bool(false))) {
                before_false = Some(self.constant_error.clone());
            }
            compiled.push(expression);
        }
        if let Some(error) = before_false {
            self.constant_error = error;
        }
        Ok(compiled)
    }

    /// `test`: the first parameter of a sub-plan's columns.
    pub fn compile_in(&mut self, expr: &Expr, layout: &Layout, test: Option<usize>) -> Result<Expression> {
        self.compile_with(layout, test, |compiler| compiler.compile(expr))
    }

    /// Compiles with `f` over the columns of a layout.
    pub fn compile_with<T>(
        &mut self,
        layout: &Layout,
        test: Option<usize>,
        f: impl FnOnce(&mut Compiler<'_>) -> Result<T>,
    ) -> Result<T> {
        let catalog = self.inputs.catalog;
        let session = self.inputs.session;
        let mut scope = PlanScope { planner: self, layout, test };
        f(&mut Compiler::new(catalog, Some(session), &mut scope))
    }

    pub fn new_parameter(&mut self, owner: Option<(usize, usize, i16)>) -> usize {
        self.parameters.push(owner);
        self.parameters.len() - 1
    }

    /// The parameter that carries a column of some level.
    fn parameter_for(&mut self, level: usize, entry: usize, column: i16) -> usize {
        let number = match self.levels[level].parameters.get(&(entry, column)) {
            Some(number) => *number,
            None => {
                let number = self.new_parameter(Some((level, entry, column)));
                self.levels[level].parameters.insert((entry, column), number);
                number
            }
        };
        self.used.insert(number);
        number
    }

    /// Runs `f` and returns the parameters that it used, which also count as used here.
    pub fn collecting<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<(T, BTreeSet<usize>)> {
        let outer = std::mem::take(&mut self.used);
        let result = f(self);
        let used = std::mem::replace(&mut self.used, outer);
        self.used.extend(used.iter().copied());
        Ok((result?, used))
    }

    /// Parameters that come from this level and the place of their column in a layout.
    pub fn settable(&self, used: &BTreeSet<usize>, layout: &Layout) -> Vec<(usize, usize)> {
        let depth = self.levels.len() - 1;
        used.iter()
            .filter_map(|&p| {
                let (level, entry, column) = self.parameters[p]?;
                if level != depth {
                    return None;
                }
                Some((p, layout.position(entry, column)?))
            })
            .collect()
    }
}

/// The scope of expressions that refer to nothing.
pub(super) struct Nothing;

impl Scope for Nothing {
    fn var(&mut self, _: &Var) -> Result<Resolved> {
        Err(DbError::internal("a column in a constant"))
    }
}

/// An expression's surroundings within a plan.
struct PlanScope<'p, 'a, 'l> {
    planner: &'p mut Planner<'a>,
    layout: &'l Layout,
    test: Option<usize>,
}

impl Scope for PlanScope<'_, '_, '_> {
    fn var(&mut self, var: &Var) -> Result<Resolved> {
        let depth = self.planner.levels.len() - 1;
        let entry = var.entry;
        if var.levels_up == 0
            && let Some(i) = self.layout.position(entry, var.column)
        {
            return Ok(Resolved::Column(i));
        }
        let Some(level) = depth.checked_sub(var.levels_up) else {
            return Err(DbError::internal("variable refers to a query that is not being planned"));
        };
        Ok(Resolved::Executor(self.planner.parameter_for(level, entry, var.column)))
    }

    fn executor(&mut self, number: usize) -> Result<usize> {
        match self.test {
            Some(first) => Ok(first + number),
            None => Err(DbError::internal("subquery column outside its test")),
        }
    }

    fn sublink(&mut self, sublink: &Sublink) -> Result<Expression> {
        self.planner.sublink(sublink, self.layout)
    }

    fn calls_routine(&mut self, routine: Option<&Routine>) {
        self.planner.routines.add(routine);
    }

    fn constant_fails(&mut self, error: DbError) {
        // Others are of this attempt to plan, as a lack of memory is, not of the constants.
        if error.sqlstate().class() == "22" {
            self.planner.constant_error.get_or_insert(error);
        }
    }
}

/// Conditions stand in parentheses; most print with their own.
fn parenthesized(text: String) -> String {
    if text.starts_with('(') || !text.contains(' ') { text } else { format!("({text})") }
}
