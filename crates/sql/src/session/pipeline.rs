//! From a parsed statement to its rows: the one door between the session and the stages analyze, plan, execute and ddl.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use melba_catalog::{Catalog, Function};
use melba_engine::{LockTag, ReadView, Wait};
use melba_fmgr::Session as _;
use melba_parse::command::{is_query, statement_tag};
use melba_types::{Batch, Column, Datum, DbError, Kind, Oid, Result, err};
use pg_query::protobuf::{AConst, DiscardMode, ExecuteStmt, ResTarget, SelectStmt};
use pg_query::{Node, NodeEnum};

use melba_analyze::LiteralUse;
use melba_execute::{Execution, ExecutionState};
use melba_expression::Evaluation;
use melba_parse::Statement;
use melba_plan::NodeTiming;
use melba_plan::{Plan, PlanCommand, PlanContext};
use melba_spill::Store;
use melba_transaction::Tx;
use melba_tree::{Const, Expr, Query, Target};

use super::arbiter_values;
use super::context::StatementContext;
use super::define;
use super::explain;
use super::names::SearchPath;
use super::portal::{KeptRows, Outcome, ResultColumn, RowSource, StoredRows, Tag};
use super::positioned::{Position, add_positions, is_simple_scan};
use super::prepared::{Prepared, same_shape, shape_changed};
use super::routine;
use super::statement_counts::identity::Identity;
use melba_tree::permissions::Permissions;

/// A statement after analysis, as the session keeps it for later executions.
#[derive(Default)]
pub struct Compiled {
    planned: Option<Planned>,
}

/// A planned query, and what it was planned against.
pub(super) struct Planned {
    pub plan: Arc<Plan>,
    pub permissions: Permissions,
    catalog: Arc<Catalog>,
    path: Arc<SearchPath>,
    /// Whose privileges on schemas it was analyzed with.
    user: Oid,
    /// Policies hold for this user, with row_security as it was.
    row_security: Option<bool>,
    parameter_types: Vec<Oid>,
    pub columns: Option<Arc<[ResultColumn]>>,
    /// Of a statement whose literals are its parameters.
    literals: Vec<LiteralUse>,
    /// `Statement::row_literals`.
    row_literals: usize,
    /// Where a cursor's rows come from.
    pub positions: Arc<[Position]>,
    /// Not of a statement of a function's body.
    pub identity: Option<Arc<Identity>>,
    /// Nanoseconds that planning took, until they are counted.
    planning: AtomicU64,
}

impl std::fmt::Debug for Compiled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Compiled(planned: {})", self.planned.is_some())
    }
}

impl Planned {
    pub(super) fn is_current(&self, context: &StatementContext) -> bool {
        Arc::ptr_eq(&self.catalog, &context.catalog)
            && (Arc::ptr_eq(&self.path, &context.path) || self.path.path == context.path.path)
            && self.is_of_user(context)
    }

    /// The policies in it are those that hold for the user.
    pub(super) fn is_of_user(&self, context: &StatementContext) -> bool {
        self.row_security.is_none_or(|on| self.user == context.user.oid && on == row_security(context))
    }
}

fn row_security(context: &StatementContext) -> bool {
    context.setting("row_security").as_deref() != Some("off")
}

impl Compiled {
    /// PostgreSQL computes constants when it plans, which is at Bind.
    pub(super) fn check_constants(&self) -> Result<()> {
        self.planned.as_ref().map_or(Ok(()), |planned| planned.plan.check_constants())
    }

    /// What a query is without its constants.
    pub fn identity(&self) -> Option<&Arc<Identity>> {
        self.planned.as_ref().and_then(|p| p.identity.as_ref())
    }

    /// How long planning took, in nanoseconds, if that was not asked for before.
    pub fn take_planning_time(&self) -> Option<u64> {
        self.planned.as_ref().map(|p| p.planning.swap(0, Ordering::Relaxed)).filter(|time| *time > 0)
    }

    /// Nothing it was analyzed against has changed.
    pub fn is_current(&self, context: &StatementContext) -> bool {
        self.planned.as_ref().is_none_or(|p| p.is_current(context))
    }

    /// The same text would be analyzed to the same now: names in schemas are looked up with the user's privileges.
    pub fn is_for(&self, context: &StatementContext) -> bool {
        self.is_current(context) && self.planned.as_ref().is_none_or(|p| p.user == context.user.oid)
    }

    /// Worth keeping for the next time the same text comes.
    pub fn is_reusable(&self) -> bool {
        self.planned.is_some()
    }

    /// How the statement's literals became its parameters.
    pub fn literals(&self) -> &[LiteralUse] {
        self.planned.as_ref().map_or(&[], |p| &p.literals)
    }

    /// Texts that differ in their literals may share the plan. Not when it reads a whole table: it takes so long that it should
    /// know the constants. Nor when these tell which partitions have rows: the others are not to be locked. Nor when something is
    /// computed of literals alone, whose errors come even where no row asks for it; rows that are inserted do ask.
    pub fn may_share_literals(&self, inserts_values: bool) -> bool {
        let shares =
            |plan: &Plan| !plan.scans_tables && !plan.prunes_by_parameters && (inserts_values || !plan.has_calls_of_parameters);
        self.planned.as_ref().is_none_or(|p| shares(&p.plan))
    }
}

/// What analysis says about a statement.
#[derive(Debug)]
pub struct Analyzed {
    pub parameter_types: Vec<Oid>,
    pub columns: Option<Arc<[ResultColumn]>>,
    pub compiled: Compiled,
}

/// Analyzes a statement that the session does not run itself. `parameter_types`: as the client declared them, 0 for "find out".
pub fn analyze(context: &StatementContext, statement: &Statement, parameter_types: &[Oid]) -> Result<Analyzed> {
    if let NodeEnum::ExplainStmt(s) = &statement.node {
        let parameter_types = match explain::explained(s)? {
            Some(query) => plan_query(context, query, parameter_types, true)?.parameter_types,
            None => parameter_types.to_vec(),
        };
        let columns = Some(explain::columns(s, &context.catalog)?);
        return Ok(Analyzed { parameter_types, columns, compiled: Compiled::default() });
    }
    if let NodeEnum::CallStmt(s) = &statement.node {
        let (parameter_types, columns) = routine::call_columns(context, s, parameter_types)?;
        return Ok(Analyzed { parameter_types, columns, compiled: Compiled::default() });
    }
    if !is_query(&statement.node) {
        return Ok(Analyzed { parameter_types: parameter_types.to_vec(), columns: None, compiled: Compiled::default() });
    }
    if may_ask_for_values(&statement.node) && statement.literals.is_empty() {
        let analyzed = melba_analyze::analyze(&analysis(context), &statement.node, Some(parameter_types))?;
        if arbiter_values::are_asked_of(&analyzed.query) {
            let columns = result_columns(&analyzed.query, &context.catalog);
            return Ok(Analyzed { parameter_types: analyzed.params, columns, compiled: Compiled::default() });
        }
    }
    let planned = plan_statement(context, statement, parameter_types)?;
    Ok(Analyzed {
        parameter_types: planned.parameter_types.clone(),
        columns: planned.columns.clone(),
        compiled: Compiled { planned: Some(planned) },
    })
}

/// An arbiter is inferred by a condition.
fn may_ask_for_values(node: &NodeEnum) -> bool {
    let NodeEnum::InsertStmt(insert) = node else { return false };
    let infer = insert.on_conflict_clause.as_ref().and_then(|c| c.infer.as_ref());
    infer.is_some_and(|infer| infer.where_clause.is_some())
}

/// Raises 42P02 for the first parameter of a statement that may have none.
pub fn refuse_parameters(context: &StatementContext, statement: &Statement) -> Result<()> {
    let query = match &statement.node {
        NodeEnum::DeclareCursorStmt(declare) => declare.query.as_deref().and_then(|q| q.node.as_ref()),
        node => Some(node),
    };
    if let Some(query) = query.filter(|query| is_query(query)) {
        melba_analyze::analyze(&analysis(context), query, None)?;
    }
    Ok(())
}

/// A query failed before its first row; whether PostgreSQL would have raised the error before it began.
pub fn fails_when_planned(context: &StatementContext, statement: &Statement) -> bool {
    is_query(&statement.node)
        && melba_analyze::analyze(&analysis(context), &statement.node, Some(&[]))
            .is_ok_and(|analyzed| melba_plan::constant::fails(&analyzed.query, &plan_context(context, false)))
}

/// What analysis knows of the statement's session.
pub(super) fn analysis<'a>(context: &'a StatementContext) -> melba_analyze::Context<'a> {
    melba_analyze::Context {
        catalog: &context.catalog,
        session: context,
        search_path: &context.path.path,
        temp_namespace: context.path.temporary,
        database: &context.session.database,
        user: context.user.oid,
    }
}

/// `explain`: with the texts that EXPLAIN prints.
pub(super) fn plan_query(context: &StatementContext, node: &NodeEnum, parameter_types: &[Oid], explain: bool) -> Result<Planned> {
    let analyzed = melba_analyze::analyze(&analysis(context), node, Some(parameter_types))?;
    plan_analyzed(context, analyzed, Vec::new(), if explain { Purpose::Explain } else { Purpose::Run })
}

/// Plans a cursor's query.
pub(super) fn plan_cursor(context: &StatementContext, node: &NodeEnum, parameter_types: &[Oid]) -> Result<Planned> {
    let analyzed = melba_analyze::analyze(&analysis(context), node, Some(parameter_types))?;
    plan_analyzed(context, analyzed, Vec::new(), Purpose::Cursor)
}

/// The same in a function's body.
pub(super) fn plan_cursor_in_routine(context: &StatementContext, query: Query) -> Result<Planned> {
    plan_analyzed(context, melba_analyze::Analyzed { query, params: Vec::new() }, Vec::new(), Purpose::Cursor)
}

/// What a plan is made for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Run,
    Explain,
    /// It is run as a part of something else.
    Within,
    /// Its rows tell of which rows of tables they are made.
    Cursor,
}

/// Plans a statement, with its literals as parameters if it has any marked.
fn plan_statement(context: &StatementContext, statement: &Statement, parameter_types: &[Oid]) -> Result<Planned> {
    if statement.literals.is_empty() {
        return plan_query(context, &statement.node, parameter_types, false);
    }
    match melba_analyze::analyze_with_literals(&analysis(context), &statement.node, &statement.literals) {
        Some((analyzed, literals)) => {
            let row_literals = statement.row_literals;
            plan_analyzed(context, analyzed, literals, Purpose::Run).map(|planned| Planned { row_literals, ..planned })
        }
        None => Err(shape_changed()),
    }
}

/// Plans a query of a function's body.
pub(super) fn plan_in_routine(context: &StatementContext, query: Query) -> Result<Planned> {
    plan_analyzed(context, melba_analyze::Analyzed { query, params: Vec::new() }, Vec::new(), Purpose::Within)
}

pub(super) fn plan_analyzed(
    context: &StatementContext,
    mut analyzed: melba_analyze::Analyzed,
    literals: Vec<LiteralUse>,
    purpose: Purpose,
) -> Result<Planned> {
    let started = Instant::now();
    let identity = match purpose {
        Purpose::Run | Purpose::Explain => Some(Identity::of(&analysis(context), &analyzed.query, !literals.is_empty())),
        Purpose::Within | Purpose::Cursor => None,
    };
    let mut permissions = Permissions::of(&analyzed.query, &context.catalog);
    // Whoever may call a function needs the privileges for what is in it as well, but for those of its definer.
    if context.catalog.has_user_functions() && melba_analyze::inline_routines(&analysis(context), &mut analyzed.query)? {
        permissions.add(Permissions::of(&analyzed.query, &context.catalog));
    }
    let secured = secure(context, &mut analyzed.query, &mut permissions)?;
    let columns = result_columns(&analyzed.query, &context.catalog);
    let mut positions = match purpose {
        Purpose::Cursor => add_positions(&mut analyzed.query, &context.catalog),
        Purpose::Run | Purpose::Explain | Purpose::Within => Vec::new(),
    };
    let plan = melba_plan::plan(&analyzed.query, &plan_context(context, purpose == Purpose::Explain))?;
    if !is_simple_scan(&plan.root) {
        positions.retain(|p| p.locked);
    }
    Ok(Planned {
        literals,
        row_literals: 0,
        positions: positions.into(),
        plan,
        permissions,
        catalog: context.catalog.clone(),
        path: context.path.clone(),
        user: context.user.oid,
        row_security: secured,
        parameter_types: analyzed.params,
        columns,
        identity: identity.map(Arc::new),
        planning: AtomicU64::new(started.elapsed().as_nanos() as u64),
    })
}

/// Adds the policies of its tables to a query; with what setting of row_security, if the query is another one without it or for
/// another user.
pub(super) fn secure(context: &StatementContext, query: &mut Query, permissions: &mut Permissions) -> Result<Option<bool>> {
    let is_secured = |oid| context.catalog.relation(oid).is_some_and(|r| r.row_security);
    if !permissions.relations().any(is_secured) {
        return Ok(None);
    }
    let secured = melba_analyze::apply_row_security(&analysis(context), query)?;
    permissions.add(secured.permissions);
    Ok(secured.depends_on_user.then(|| row_security(context)))
}

fn plan_context(context: &StatementContext, explain: bool) -> PlanContext<'_> {
    let statistics = &*context.session.instance.cluster.engine;
    PlanContext { catalog: &context.catalog, session: context, statistics, explain }
}

fn result_columns(query: &Query, catalog: &Catalog) -> Option<Arc<[ResultColumn]>> {
    let targets: &[Target] = match query.command {
        melba_tree::Command::Select => &query.targets,
        _ if query.returning.is_empty() => return None,
        _ => &query.returning,
    };
    let column = |target: &Target| {
        let (ty, typmod) = (target.expr.ty(), target.expr.typmod());
        let size = catalog.type_(ty).map_or(-1, |t| t.length);
        ResultColumn { name: target.name.clone(), ty, typmod, table: target.origin.0, attribute: target.origin.1, size }
    };
    Some(targets.iter().filter(|t| !t.junk).map(column).collect())
}

/// Runs an analyzed statement.
pub fn execute(
    context: &Arc<StatementContext>,
    statement: &Statement,
    prepared: &Prepared,
    parameters: Arc<[Datum]>,
) -> Result<Outcome> {
    let tx = context.tx.as_ref().ok_or_else(|| DbError::internal("no transaction is open"))?;
    match (&prepared.compiled.planned, &statement.node) {
        (Some(planned), _) => execute_planned(context, tx, statement, planned, parameters),
        (None, NodeEnum::ExplainStmt(s)) => explain::run(context, tx, s, &prepared.parameter_types, &parameters),
        (None, node) if is_query(node) => {
            let planned = arbiter_values::plan(context, statement, &prepared.parameter_types, &parameters)?;
            if !same_shape(planned.columns.as_deref(), prepared.columns.as_deref()) {
                return Err(shape_changed());
            }
            execute_planned(context, tx, statement, &planned, parameters)
        }
        (None, _) => execute_utility(context, tx, statement),
    }
}

fn execute_planned(
    context: &Arc<StatementContext>,
    tx: &Arc<Tx>,
    statement: &Statement,
    planned: &Planned,
    parameters: Arc<[Datum]>,
) -> Result<Outcome> {
    lock_relations(tx, &planned.plan)?;
    // While we waited for a lock, the catalog may have changed: what was planned may no longer exist.
    let unchanged = Arc::ptr_eq(&context.catalog, &planned.catalog) && tx.sees_catalog_version(context.catalog_version);
    if unchanged {
        return start(context, tx, planned, parameters);
    }
    let now = tx.catalog();
    if !Arc::ptr_eq(&now, &planned.catalog) {
        let context = Arc::new(StatementContext { catalog: now, ..StatementContext::clone(context) });
        let fresh = match may_ask_for_values(&statement.node) && statement.literals.is_empty() {
            true => arbiter_values::plan(&context, statement, &planned.parameter_types, &parameters)?,
            false => plan_statement(&context, statement, &planned.parameter_types)?,
        };
        if !same_shape(fresh.columns.as_deref(), planned.columns.as_deref()) {
            return Err(shape_changed());
        }
        lock_relations(tx, &fresh.plan)?;
        return start(&context, tx, &fresh, parameters);
    }
    start(context, tx, planned, parameters)
}

pub(super) fn lock_relations(tx: &Tx, plan: &Plan) -> Result<()> {
    for (relation, mode) in &plan.relations {
        tx.engine.lock_relation(LockTag::Relation { database: tx.database.0, relation: relation.0 }, *mode, Wait::Block)?;
    }
    Ok(())
}

/// A cursor's columns, its rows, and where they come from.
type CursorRows = (Arc<[ResultColumn]>, Box<dyn RowSource>, Arc<[Position]>);

/// Plans a cursor's query and begins it.
pub(super) fn open_cursor(
    context: &Arc<StatementContext>,
    statement: &Statement,
    types: &[Oid],
    parameters: Arc<[Datum]>,
) -> Result<CursorRows> {
    let tx = context.tx.as_ref().ok_or_else(|| DbError::internal("no transaction is open"))?;
    let mut context = context.clone();
    let mut planned = plan_cursor(&context, &statement.node, types)?;
    lock_relations(tx, &planned.plan)?;
    let now = tx.catalog();
    if !Arc::ptr_eq(&now, &context.catalog) {
        // Changed while we waited for a lock.
        context = Arc::new(StatementContext { catalog: now, ..StatementContext::clone(&context) });
        planned = plan_cursor(&context, &statement.node, types)?;
    }
    match begin(&context, tx, &planned, parameters, None)? {
        Outcome::Rows { columns, source, .. } => Ok((columns, source, planned.positions)),
        _ => Err(err!(INVALID_CURSOR_DEFINITION, "cannot open {} query as cursor", statement_tag(&statement.node))),
    }
}

/// Begins a query that was planned for the catalog as it is: what gives rows without changing any is read later.
pub(super) fn begin(
    context: &Arc<StatementContext>,
    tx: &Arc<Tx>,
    planned: &Planned,
    parameters: Arc<[Datum]>,
    view: Option<ReadView>,
) -> Result<Outcome> {
    lock_relations(tx, &planned.plan)?;
    start_with(context, tx, planned, parameters, view)
}

fn start(context: &Arc<StatementContext>, tx: &Arc<Tx>, planned: &Planned, parameters: Arc<[Datum]>) -> Result<Outcome> {
    start_with(context, tx, planned, parameters, None)
}

fn start_with(
    context: &Arc<StatementContext>,
    tx: &Arc<Tx>,
    planned: &Planned,
    parameters: Arc<[Datum]>,
    view: Option<ReadView>,
) -> Result<Outcome> {
    planned.permissions.check(&context.catalog, context.user.oid)?;
    let mut evaluation = match view {
        None => evaluation(context, tx, parameters)?,
        Some(view) => evaluation_of(context, tx, view, parameters),
    };
    evaluation.subplans.row_parameters = planned.row_literals;
    let mut execution = Execution::new(planned.plan.clone(), evaluation)?;
    if planned.plan.command == PlanCommand::Select {
        let columns = planned.columns.clone().unwrap_or_default();
        let source = running(tx, execution);
        return Ok(Outcome::Rows { columns, source, tag: Tag::Counted("SELECT"), formats: Vec::new() });
    }
    let mut first = None;
    let mut more = None;
    while let Some(batch) = execution.next_batch(melba_types::BATCH_ROWS)? {
        context.check_interrupt()?;
        match &first {
            None => first = Some(batch),
            Some(_) => more.get_or_insert_with(|| Store::new(execution.evaluation().resources())).push(batch)?,
        }
    }
    if planned.row_literals > 0 && !execution.evaluation().subplans.rows_repeated.get() {
        return Err(DbError::internal("the rows of a VALUES list were not found in its plan"));
    }
    let rows = execution.rows_affected();
    let word = match planned.plan.command {
        PlanCommand::Insert => "INSERT 0",
        PlanCommand::Update => "UPDATE",
        PlanCommand::Delete => "DELETE",
        PlanCommand::Merge => "MERGE",
        PlanCommand::Select => "SELECT",
    };
    let tag = Tag::Counted(word);
    Ok(match &planned.columns {
        None => Outcome::Done { tag: tag.text(rows) },
        Some(columns) => Outcome::Rows {
            columns: columns.clone(),
            source: match more {
                None => Box::new(StoredRows(Vec::from_iter(first).into_iter())),
                Some(rows) => Box::new(Returned { first, rows: KeptRows { rows, place: 0 } }),
            },
            tag,
            formats: Vec::new(),
        },
    })
}

/// Many rows of RETURNING.
struct Returned {
    first: Option<Batch>,
    rows: KeptRows,
}

impl RowSource for Returned {
    fn next(&mut self, limit: usize) -> Result<Option<Batch>> {
        match self.first.take() {
            Some(batch) => Ok(Some(batch)),
            None => self.rows.next(limit),
        }
    }
}

/// A query of a function's body, begun: with a view of its own, or the given one.
pub(super) fn execution(
    context: &Arc<StatementContext>,
    tx: &Arc<Tx>,
    planned: &Planned,
    parameters: &Arc<[Datum]>,
    view: Option<ReadView>,
) -> Result<Execution> {
    lock_relations(tx, &planned.plan)?;
    planned.permissions.check(&context.catalog, context.user.oid)?;
    let evaluation = match view {
        None => evaluation(context, tx, parameters.clone())?,
        Some(view) => evaluation_of(context, tx, view, parameters.clone()),
    };
    Execution::new(planned.plan.clone(), evaluation)
}

/// What a plan runs with.
fn evaluation(context: &Arc<StatementContext>, tx: &Arc<Tx>, parameters: Arc<[Datum]>) -> Result<Evaluation<ExecutionState>> {
    tx.flush_large_objects()?;
    tx.engine.await_safe_snapshot()?;
    Ok(evaluation_of(context, tx, tx.engine.statement_view(), parameters))
}

fn evaluation_of(
    context: &Arc<StatementContext>,
    tx: &Arc<Tx>,
    view: ReadView,
    parameters: Arc<[Datum]>,
) -> Evaluation<ExecutionState> {
    Evaluation::new(context.clone(), tx.engine.clone(), view, parameters, ExecutionState::new(tx.clone()))
}

/// EXPLAIN ANALYZE: runs a plan to its end, gives its rows to `take` and tells what each node did.
pub(super) fn run_measured(
    context: &Arc<StatementContext>,
    tx: &Arc<Tx>,
    planned: &Planned,
    parameters: &Arc<[Datum]>,
    take: &mut dyn FnMut(&Batch) -> Result<()>,
) -> Result<Vec<NodeTiming>> {
    let mut evaluation = evaluation(context, tx, parameters.clone())?;
    evaluation.subplans.instrument();
    let mut execution = Execution::new(planned.plan.clone(), evaluation)?;
    let (started, mut rows) = (Instant::now(), 0);
    while let Some(batch) = execution.next_batch(melba_types::BATCH_ROWS)? {
        rows += batch.rows as u64;
        take(&batch)?;
        context.check_interrupt()?;
    }
    let mut timings = execution.evaluation().subplans.timings();
    // A change is not measured where it is made.
    let root = planned.plan.root.id;
    timings.resize_with(timings.len().max(root + 1), NodeTiming::default);
    if timings[root].loops == 0 {
        let total = started.elapsed();
        timings[root] = NodeTiming { loops: 1, rows, startup: total, total, ..NodeTiming::default() };
    }
    Ok(timings)
}

/// The rows of a running SELECT. Keeps what it sees from being collected.
struct PlanRows {
    execution: Execution,
    _pin: melba_engine::ViewPin,
}

/// The rows of what was begun, as they come.
pub(super) fn running(tx: &Tx, execution: Execution) -> Box<dyn RowSource> {
    let pin = tx.engine.pin_view(execution.evaluation().view());
    Box::new(PlanRows { execution, _pin: pin })
}

impl RowSource for PlanRows {
    fn next(&mut self, limit: usize) -> Result<Option<Batch>> {
        self.execution.next_batch(limit)
    }

    fn keep_stored(&mut self) {
        self.execution.keep_stored = true;
    }
}

pub(super) fn execute_utility(context: &StatementContext, tx: &Arc<Tx>, statement: &Statement) -> Result<Outcome> {
    let query = |context: &StatementContext, node: &NodeEnum| run_query(context, tx, node);
    let Some(result) = define::run(context, statement, &query) else {
        return Err(define::unsupported(statement.text()));
    };
    let outcome = result?;
    tx.claim_names()?;
    Ok(outcome)
}

/// Runs a query that stands inside a utility statement, against the catalog as the transaction sees it now.
fn run_query(context: &StatementContext, tx: &Arc<Tx>, node: &NodeEnum) -> Result<Outcome> {
    if !is_query(node) {
        return Err(DbError::unsupported("this kind of query here"));
    }
    let context = Arc::new(StatementContext { catalog: tx.catalog(), ..context.clone() });
    let planned = plan_query(&context, node, &[], false)?;
    lock_relations(tx, &planned.plan)?;
    start(&context, tx, &planned, Arc::from([]))
}

/// Runs a prepared query that CREATE TABLE AS names, which gives nothing if it is no SELECT.
pub(super) fn run_prepared(context: &StatementContext, tx: &Arc<Tx>, s: &ExecuteStmt) -> Result<Outcome> {
    match plan_prepared(context, tx, s)? {
        Some((context, planned, values)) if planned.plan.command == PlanCommand::Select => {
            begin(&context, tx, &planned, values.into(), None)
        }
        _ => Ok(Outcome::Done { tag: String::new() }),
    }
}

/// EXECUTE in a function.
pub(super) fn execute_prepared(context: &StatementContext, tx: &Arc<Tx>, s: &ExecuteStmt) -> Result<Outcome> {
    let planned = plan_prepared(context, tx, s)?;
    let (context, planned, values) =
        planned.ok_or_else(|| DbError::unsupported("EXECUTE of a statement that is no query in a function"))?;
    begin(&context, tx, &planned, values.into(), None)
}

/// A prepared query with the context that it was planned in, and its parameters.
type PlannedExecute = (Arc<StatementContext>, Planned, Vec<Datum>);

fn plan_prepared(context: &StatementContext, tx: &Arc<Tx>, s: &ExecuteStmt) -> Result<Option<PlannedExecute>> {
    let prepared = context.session.prepared.lock().get(&s.name).cloned();
    let prepared = prepared.ok_or_else(|| err!(UNDEFINED_PSTATEMENT, "prepared statement \"{}\" does not exist", s.name))?;
    let (expected, given) = (prepared.parameter_types.len(), s.params.len());
    if expected != given {
        return Err(err!(SYNTAX_ERROR, "wrong number of parameters for prepared statement \"{}\"", s.name)
            .detail(format!("Expected {expected} parameters but got {given}.")));
    }
    let values = evaluate(context, &s.params, &prepared.parameter_types)?;
    let Some(statement) = prepared.statement.as_ref().filter(|s| is_query(&s.node)) else {
        return Ok(None);
    };
    let context = Arc::new(StatementContext { catalog: tx.catalog(), ..context.clone() });
    let planned = plan_query(&context, &statement.node, &prepared.parameter_types, false)?;
    Ok(Some((context, planned, values)))
}

/// A batch of text columns of equal length.
pub fn text_rows(table: Vec<Vec<String>>) -> Batch {
    let rows = table.first().map_or(0, Vec::len);
    let columns = table.into_iter().map(|values| {
        let mut column = Column::with_capacity(Kind::Text, rows);
        values.into_iter().for_each(|v| column.push(Datum::text(v)));
        column
    });
    Batch::new(columns.collect(), rows)
}

/// The type that PREPARE names for a parameter.
pub fn resolve_type(context: &StatementContext, name: &Node) -> Result<Oid> {
    match &name.node {
        Some(NodeEnum::TypeName(name)) => Ok(analysis(context).transform_type_name(name)?.0),
        _ => Err(DbError::internal("PREPARE lists something that is no type")),
    }
}

/// The values of EXECUTE's arguments, as the parameters' types.
pub fn evaluate(context: &StatementContext, args: &[Node], types: &[Oid]) -> Result<Vec<Datum>> {
    let mut values = Vec::with_capacity(args.len());
    for (i, (arg, ty)) in args.iter().zip(types).enumerate() {
        values.push(evaluate_one(context, arg, *ty, &format!("${}", i + 1))?);
    }
    Ok(values)
}

/// One argument, as the only column of a SELECT without FROM.
fn evaluate_one(context: &StatementContext, arg: &Node, ty: Oid, name: &str) -> Result<Datum> {
    let expected = melba_analyze::Expected { ty, typmod: -1, column: name };
    let kind = melba_analyze::ExprKind::ExecuteParameter;
    let value = melba_analyze::analyze_expression(&analysis(context), arg, None, kind, Some(expected))?;
    first_value(context, &select_one(context, value)?, &Arc::from([]))
}

/// The value of an analyzed expression without columns.
pub(super) fn value_of(context: &StatementContext, value: Expr, parameters: &Arc<[Datum]>) -> Result<Datum> {
    first_value(context, &select_one(context, value)?, parameters)
}

/// Calls a function with values for its arguments.
pub(super) fn call_function(context: &StatementContext, function: &Function, arguments: Vec<Datum>) -> Result<Datum> {
    let constant = |(value, ty): (Datum, &Oid)| {
        let collation = context.catalog.type_(*ty).map_or(Oid::INVALID, |t| t.collation);
        Expr::Const(Const { value, ty: *ty, typmod: -1, collation, location: -1 })
    };
    let collation = context.catalog.type_(function.return_type).map_or(Oid::INVALID, |t| t.collation);
    let call = melba_tree::FunctionCall {
        function: function.oid,
        args: arguments.into_iter().zip(&function.arg_types).map(constant).collect(),
        defaulted: 0,
        ty: function.return_type,
        collation,
        input_collation: melba_tree::DEFAULT_COLLATION,
        returns_set: false,
        variadic: function.variadic.is_valid(),
        form: melba_tree::CoercionForm::Call,
        typmod: -1,
        location: -1,
    };
    value_of(context, Expr::Function(Box::new(call)), &Arc::from([]))
}

/// `SELECT value`, analyzed.
fn select_one(context: &StatementContext, value: Expr) -> Result<Query> {
    let null = Node { node: Some(NodeEnum::AConst(AConst { isnull: true, ..AConst::default() })) };
    let target = ResTarget { val: Some(Box::new(null)), ..ResTarget::default() };
    let target = Node { node: Some(NodeEnum::ResTarget(Box::new(target))) };
    let select = NodeEnum::SelectStmt(Box::new(SelectStmt { target_list: vec![target], ..SelectStmt::default() }));
    let mut query = melba_analyze::analyze(&analysis(context), &select, Some(&[]))?.query;
    match query.targets.first_mut() {
        Some(target) => target.expr = value,
        None => return Err(DbError::internal("the value is gone")),
    }
    Ok(query)
}

/// Runs a query of one column and one row.
fn first_value(context: &StatementContext, query: &Query, parameters: &Arc<[Datum]>) -> Result<Datum> {
    let tx = context.tx.as_ref().ok_or_else(|| DbError::internal("no transaction is open"))?;
    let mut query = query.clone();
    let mut permissions = Permissions::of(&query, &context.catalog);
    let row_security = secure(context, &mut query, &mut permissions)?;
    let planned = Planned {
        plan: melba_plan::plan(&query, &plan_context(context, false))?,
        row_security,
        permissions,
        catalog: context.catalog.clone(),
        path: context.path.clone(),
        user: context.user.oid,
        parameter_types: Vec::new(),
        columns: result_columns(&query, &context.catalog),
        literals: Vec::new(),
        row_literals: 0,
        positions: Arc::from([]),
        identity: None,
        planning: AtomicU64::default(),
    };
    let Outcome::Rows { mut source, .. } = start(&Arc::new(context.clone()), tx, &planned, parameters.clone())? else {
        return Err(DbError::internal("the expression gave no row"));
    };
    while let Some(batch) = source.next(1)? {
        if batch.rows > 0 {
            return Ok(batch.columns[0].get(0));
        }
    }
    Ok(Datum::Null)
}

/// DISCARD: drops temporary tables, forgets cached sequence values.
pub fn discard(context: &StatementContext, mode: DiscardMode) -> Result<()> {
    if matches!(mode, DiscardMode::DiscardAll | DiscardMode::DiscardTemp) {
        define::drop_temporary(context)?;
    }
    if matches!(mode, DiscardMode::DiscardAll | DiscardMode::DiscardSequences) {
        *context.session.sequences.lock() = Default::default();
    }
    Ok(())
}
