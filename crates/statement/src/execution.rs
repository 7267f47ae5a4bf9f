//! Runs planned queries: the locks of their relations, their privileges, and their rows.

use std::sync::Arc;

use melba_engine::{Isolation, LockTag, ReadView, RelationLockMode, Wait, io_counts, log_bytes};
use melba_execute::{Execution, ExecutionState, complete};
use melba_expression::{Evaluation, NoSubPlans};
use melba_fmgr::Session as _;
use melba_parse::Statement;
use melba_parse::command::{self, is_query};
use melba_plan::{NodeTiming, Plan, PlanCommand};
use melba_spill::Store;
use melba_transaction::Tx;
use melba_types::{Batch, Datum, DbError, Oid, Result, bail, err};
use pg_query::NodeEnum;

use super::auto_explain;
use super::context::StatementContext;
use super::lent::notices_sent;
use super::outcome::{KeptRows, Outcome, ResultColumn, RowSource, StoredRows, Tag};
use super::planned::Planned;
use super::planning::{Purpose, plan_cursor, plan_query};
use super::positioned::Position;

fn lock_relations(tx: &Tx, plan: &Plan) -> Result<()> {
    plan.relations.iter().try_for_each(|(relation, mode)| lock_relation(tx, *relation, *mode))
}

/// Locks a planned query's relations. Returns whether the catalog has changed since the query was planned, perhaps during the wait for
/// a lock: then the query must be planned again.
pub fn is_outdated(context: &StatementContext, tx: &Tx, planned: &Planned) -> Result<bool> {
    lock_relations(tx, &planned.plan)?;
    let unchanged = Arc::ptr_eq(&context.catalog, &planned.catalog) && tx.sees_catalog_version(context.catalog_version);
    Ok(!unchanged && !Arc::ptr_eq(&tx.catalog(), &planned.catalog))
}

/// Plans a query and locks its relations: for the definitions that these have once they are locked.
pub fn plan_locked(
    context: &Arc<StatementContext>,
    tx: &Tx,
    plan: impl Fn(&Arc<StatementContext>) -> Result<Planned>,
) -> Result<(Arc<StatementContext>, Planned)> {
    let mut context = context.clone();
    let mut planned = plan(&context)?;
    while is_outdated(&context, tx, &planned)? {
        context = Arc::new(StatementContext { catalog: tx.catalog(), ..StatementContext::clone(&context) });
        planned = plan(&context)?;
    }
    Ok((context, planned))
}

fn lock_relation(tx: &Tx, relation: Oid, mode: RelationLockMode) -> Result<()> {
    tx.engine.lock_relation(LockTag::Relation { database: tx.database.0, relation: relation.0 }, mode, Wait::Block)?;
    Ok(())
}

/// The locks that PostgreSQL takes when it analyzes a statement, without running it: those of relations that it names, not of the
/// partitions that are read for them.
pub fn lock_named(tx: &Tx, planned: &Planned) -> Result<()> {
    let all = &planned.plan.relations;
    let is_read = |parent: &Oid| all.iter().any(|(relation, _)| relation == parent);
    for (relation, mode) in all {
        let below = planned.catalog.relation(*relation).is_some_and(|r| r.parents.iter().any(is_read));
        if !below {
            lock_relation(tx, *relation, *mode)?;
        }
    }
    Ok(())
}

/// Takes the snapshot of a transaction that keeps one.
pub fn keep_snapshot(tx: &Tx) -> Result<()> {
    if tx.engine.isolation() == Isolation::ReadCommitted {
        return Ok(());
    }
    tx.flush_large_objects()?;
    tx.engine.await_safe_snapshot()?;
    tx.engine.statement_view();
    Ok(())
}

/// Begins a query that was planned for the current catalog, and whose relations are locked: a query that changes no rows is read later.
pub fn start(context: &Arc<StatementContext>, tx: &Arc<Tx>, planned: &Planned, parameters: Arc<[Datum]>) -> Result<Outcome> {
    start_with(context, tx, planned, parameters, (None, None))
}

/// The same with the given view, if there is one, and as the query of a text.
pub fn start_with(
    context: &Arc<StatementContext>,
    tx: &Arc<Tx>,
    planned: &Planned,
    parameters: Arc<[Datum]>,
    (view, text): (Option<ReadView>, Option<&Arc<str>>),
) -> Result<Outcome> {
    check_use(context, planned, view.as_ref(), true)?;
    auto_explain::draw_sample(&context.session);
    let mut evaluation = match view {
        None => evaluation(context, tx, parameters)?,
        Some(view) => evaluation_of(context, tx, view, parameters),
    };
    evaluation.subplans.row_parameters = planned.row_literals;
    if auto_explain::measures(&context.session) {
        evaluation.subplans.instrument();
    }
    let mut execution = Execution::new(planned.plan.clone(), evaluation)?;
    auto_explain::watch(context, planned, text, &mut execution);
    // A statement with changes runs to its end, however many of its rows are read.
    if !planned.plan.must_complete() {
        let columns = planned.columns.clone().unwrap_or_default();
        let source = match planned.permissions.calls_functions_of_users() {
            true => Box::new(TellingRows { rows: running(tx, execution), has_told: true }),
            false => running(tx, execution),
        };
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
                Some(rows) => Box::new(ReturningRows { first, rows: KeptRows { rows, place: 0 } }),
            },
            tag,
            formats: Vec::new(),
        },
    })
}

/// Many rows of RETURNING.
struct ReturningRows {
    first: Option<Batch>,
    rows: KeptRows,
}

impl RowSource for ReturningRows {
    fn next(&mut self, limit: usize) -> Result<Option<Batch>> {
        match self.first.take() {
            Some(batch) => Ok(Some(batch)),
            None => self.rows.next(limit),
        }
    }
}

/// The types and values of a statement's parameters.
pub type Parameters<'a> = (&'a [Oid], &'a Arc<[Datum]>);

/// Runs a query that stands inside a utility statement, against the catalog as the transaction sees it now.
pub(super) fn run_query(
    context: &StatementContext,
    tx: &Arc<Tx>,
    node: &NodeEnum,
    (types, values): Parameters<'_>,
) -> Result<Outcome> {
    if !is_query(node) {
        return Err(DbError::unsupported("this kind of query here"));
    }
    let context = Arc::new(StatementContext { catalog: tx.catalog(), ..context.clone() });
    let (context, planned) = plan_locked(&context, tx, |context| plan_query(context, node, types, Purpose::Run))?;
    // Only COPY runs statements that rules rewrite.
    if let Some(which) = planned.plan.steps.as_ref().and_then(|steps| steps.not_one) {
        bail!(FEATURE_NOT_SUPPORTED, "{which} rules are not supported for COPY");
    }
    start(&context, tx, &planned, values.clone())
}

/// A cursor's columns, its rows, and where they come from.
type CursorRows = (Arc<[ResultColumn]>, Box<dyn RowSource>, Arc<[Position]>);

/// Plans a cursor's query and begins it.
pub(super) fn open_cursor(
    context: &Arc<StatementContext>,
    statement: &Statement,
    types: &[Oid],
    parameters: Arc<[Datum]>,
    may_open: impl Fn(&Planned) -> Result<()>,
) -> Result<CursorRows> {
    let tx = context.tx.as_ref().ok_or_else(|| DbError::internal("no transaction is open"))?;
    let (context, planned) = plan_locked(context, tx, |context| {
        let planned = plan_cursor(context, &statement.node, types)?;
        may_open(&planned)?;
        Ok(planned)
    })?;
    match start_with(&context, tx, &planned, parameters, (None, Some(&statement.source)))? {
        Outcome::Rows { columns, source, .. } => Ok((columns, source, planned.positions)),
        _ => Err(err!(INVALID_CURSOR_DEFINITION, "cannot open {} query as cursor", command::tag(&statement.node))),
    }
}

/// `view`: that of the function which is not VOLATILE and runs the query. EXPLAIN checks privileges only of a query that it does
/// not run: `runs`.
///
/// # Errors
/// By the name of the whole statement, as PostgreSQL's ExecCheckXactReadOnly and CommandIsReadOnly: 0A000 for changes by such a
/// function, 25006 for changes in a read-only transaction. 55000 for what `restrict_nonsystem_relation_kind` refuses, 42501 for the first privilege that the user lacks.
pub(super) fn check_use(context: &StatementContext, planned: &Planned, view: Option<&ReadView>, runs: bool) -> Result<()> {
    let first = planned.plan.steps.as_ref().and_then(|steps| steps.plans().next());
    let command = first.unwrap_or(&planned.plan).command.name();
    if runs && planned.permissions.changes() && view.is_some() {
        bail!(FEATURE_NOT_SUPPORTED, "{command} is not allowed in a non-volatile function");
    }
    if runs && planned.permissions.changes_permanent() && context.session.settings.lock().get("transaction_read_only").as_bool() {
        bail!(READ_ONLY_SQL_TRANSACTION, "cannot execute {command} in a read-only transaction");
    }
    // PostgreSQL computes constants when it plans, and checks privileges when it begins to run.
    planned.plan.check_constants()?;
    if planned.permissions.is_restrictable() {
        let settings = context.session.settings.lock();
        planned.permissions.check_restricted(&context.catalog, settings.get("restrict_nonsystem_relation_kind").as_text())?;
    }
    planned.permissions.check(&context.catalog, context.user.oid)?;
    if runs { planned.permissions.check_populated() } else { Ok(()) }
}

/// A query of a function's body whose relations are locked, begun: with a new view, or the given one. `text` is the query's.
pub fn execution(
    context: &Arc<StatementContext>,
    tx: &Arc<Tx>,
    planned: &Planned,
    parameters: &Arc<[Datum]>,
    (view, text): (Option<ReadView>, &Arc<str>),
) -> Result<Execution> {
    check_use(context, planned, view.as_ref(), true)?;
    auto_explain::draw_sample(&context.session);
    let mut evaluation = match view {
        None => evaluation(context, tx, parameters.clone())?,
        Some(view) => evaluation_of(context, tx, view, parameters.clone()),
    };
    if auto_explain::measures(&context.session) {
        evaluation.subplans.instrument();
    }
    let mut execution = Execution::new(planned.plan.clone(), evaluation)?;
    auto_explain::watch(context, planned, Some(text), &mut execution);
    Ok(execution)
}

/// The context in which a plan runs.
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

/// The context of expressions without queries, with the transaction's current catalog.
pub(super) fn plain_evaluation(context: &StatementContext, tx: &Arc<Tx>) -> Evaluation<NoSubPlans> {
    Evaluation::plain(Arc::new(StatementContext { catalog: tx.catalog(), ..context.clone() }), &tx.engine)
}

/// EXPLAIN ANALYZE: runs a plan to its end, passes its rows to `take` and returns the measurements of each node. `wal`: with the log
/// that the commit will write of its changes.
pub(super) fn run_measured(
    context: &Arc<StatementContext>,
    tx: &Arc<Tx>,
    planned: &Planned,
    parameters: &Arc<[Datum]>,
    wal: bool,
    take: &mut dyn FnMut(&Batch) -> Result<()>,
) -> Result<Vec<NodeTiming>> {
    let (io, logged) = (io_counts::counted(), if wal { log_bytes(&tx.engine) } else { 0 });
    auto_explain::draw_sample(&context.session);
    let mut evaluation = evaluation(context, tx, parameters.clone())?;
    evaluation.subplans.instrument();
    let mut execution = Execution::new(planned.plan.clone(), evaluation)?;
    auto_explain::watch(context, planned, None, &mut execution);
    let (started, mut rows) = (context.monotonic(), 0);
    while let Some(batch) = execution.next_batch(melba_types::BATCH_ROWS)? {
        rows += batch.rows as u64;
        take(&batch)?;
        context.check_interrupt()?;
    }
    let mut timings = execution.evaluation().subplans.timings();
    let (total, io) = (context.monotonic().saturating_sub(started), io_counts::counted().since(&io));
    complete(&mut timings, &planned.plan, rows, total, &io);
    let root = planned.plan.root.id;
    if wal {
        // One record has all changes of a transaction.
        let bytes = log_bytes(&tx.engine);
        timings[root].io.log_records += u64::from(bytes > 0 && logged == 0);
        timings[root].io.log_bytes += bytes.saturating_sub(logged);
    }
    Ok(timings)
}

/// The rows of a running SELECT. Keeps the versions of its view from being collected.
struct PlanRows {
    execution: Execution,
    _pin: melba_engine::ViewPin,
}

/// Rows of a query whose functions may have something to tell: what they tell goes out as the rows do, so that rows are made one by one
/// where it does.
struct TellingRows {
    rows: Box<dyn RowSource>,
    /// The row before has told something, or is not known yet.
    has_told: bool,
}

impl RowSource for TellingRows {
    fn next(&mut self, limit: usize) -> Result<Option<Batch>> {
        let before = notices_sent();
        let rows = self.rows.next(if self.has_told { 1 } else { limit })?;
        self.has_told = notices_sent() != before;
        Ok(rows)
    }

    fn keep_stored(&mut self) {
        self.rows.keep_stored();
    }
}

/// The rows of a begun execution, in order.
pub fn running(tx: &Tx, execution: Execution) -> Box<dyn RowSource> {
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
