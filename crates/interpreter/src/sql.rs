//! SQL statements: those of the text, and those that EXECUTE builds.

use std::sync::Arc;

use melba_analyze::CallPlace;
use melba_execute::Execution;
use melba_parse::Statement;
use melba_parse::command::is_query;
use melba_plan::PlanCommand;
use melba_plpgsql::tree::{Expression, Into, LoopSource};
use melba_statement::context::StatementContext;
use melba_statement::outcome::{Outcome, ResultColumn, RowSource, StoredRows, Tag};
use melba_statement::positioned::Position;
use melba_statement::{command, error_context, execution, planning, routine};
use melba_types::{BATCH_ROWS, Batch, Datum, DbError, Oid, Result, Severity, SqlState, bail, err};
use pg_query::NodeEnum;
use pg_query::protobuf::CallStmt;

use super::expression::{PieceUse, VariableNames};
use super::frame::{Frame, Typed};
use super::misuse::{is_misuse, misuse, of_text};
use super::program::{ParameterSource, PieceKind, PreparedPiece};
use super::value::RecordShape;
use super::{expression, extra_checks, field, result, utility, value};

/// A query that was begun.
pub(super) struct Begun {
    pub source: Box<dyn RowSource>,
    pub columns: Arc<[ResultColumn]>,
    pub tag: Tag,
    pub origin: QueryOrigin,
    pub positions: Arc<[Position]>,
}

/// Whose error it is when rows cannot be read.
#[derive(Clone)]
pub(super) enum QueryOrigin {
    Piece(Expression),
    Text(Arc<str>),
}

impl QueryOrigin {
    fn piece(&self) -> (&'static str, Arc<str>) {
        match self {
            QueryOrigin::Piece(piece) => expression::piece_of(piece),
            QueryOrigin::Text(text) => ("SQL statement", text.clone()),
        }
    }

    pub fn text(&self) -> &str {
        match self {
            QueryOrigin::Piece(piece) => &piece.text,
            QueryOrigin::Text(text) => text,
        }
    }
}

/// Rows with their columns.
type RowsOf = (Box<dyn RowSource>, Arc<[ResultColumn]>, Tag, Arc<[Position]>);

/// How INTO takes the rows of a statement.
#[derive(Clone, Copy, Default)]
struct IntoRule {
    /// It changes rows, all of which must be processed.
    changes: bool,
    /// It is a SELECT that changes rows in WITH: the same, but it may return several rows.
    changes_within: bool,
    /// It stands in the text, where a change of several rows is an error even without STRICT.
    is_static: bool,
}

/// The result of a statement.
struct Done {
    /// Rows that it returned or changed.
    rows: u64,
    /// It is one that sets FOUND by its rows.
    is_query: bool,
}

/// An error while a query's rows are read.
pub fn of_source(origin: &QueryOrigin, e: DbError) -> DbError {
    match origin {
        QueryOrigin::Piece(piece) => expression::of_piece(piece, e),
        QueryOrigin::Text(text) => of_text(text, e),
    }
}

/// Begins a query over whose rows a loop runs.
pub fn begin_rows(frame: &mut Frame<'_>, source: &LoopSource) -> Result<Begun> {
    begin_source(frame, source, PieceUse::Any)
}

/// The same, where statements may refer to the row that was read last.
pub fn begin_cursor(frame: &mut Frame<'_>, source: &LoopSource) -> Result<Begun> {
    begin_source(frame, source, PieceUse::Cursor)
}

fn begin_source(frame: &mut Frame<'_>, source: &LoopSource, wanted: PieceUse<'_>) -> Result<Begun> {
    let (result, origin) = match source {
        LoopSource::Query(query) => {
            let prepared = expression::prepare(frame, query, wanted)?;
            let _entered = frame.enter(Some(expression::piece_of(query)));
            (begin_prepared(frame, query, &prepared), QueryOrigin::Piece(query.clone()))
        }
        LoopSource::Execute { query, using } => {
            let text = dynamic_text(frame, query)?;
            let (types, values) = using_values(frame, using)?;
            let _entered = frame.enter(Some(("SQL statement", text.clone())));
            (begin_text(frame, &text, &types, values), QueryOrigin::Text(text))
        }
        LoopSource::Cursor { .. } => return Err(DbError::internal("a cursor's rows are fetched")),
    };
    let (source, columns, tag, positions) = result.map_err(|e| of_source(&origin, e))?;
    Ok(Begun { source, columns, tag, origin, positions })
}

fn begin_prepared(frame: &mut Frame<'_>, piece: &Expression, prepared: &PreparedPiece) -> Result<RowsOf> {
    let outcome = match &prepared.kind {
        PieceKind::Query(planned) => {
            utility::note_use(frame);
            let parameters = expression::parameters(frame, prepared);
            let outcome = execution::start_with(&frame.context, &frame.tx, planned, parameters, (frame.view, Some(&piece.text)))?;
            return rows_of(outcome, planned.positions.clone());
        }
        PieceKind::Simple(simple) => {
            let value = expression::eval_entered(frame, simple)?;
            let mut column = ResultColumn::new(&simple.name, simple.expression.ty, &frame.context.catalog);
            column.typmod = simple.typmod;
            return Ok((one_row(simple.expression.kind, value), Arc::from([column]), Tag::Counted("SELECT"), Arc::from([])));
        }
        PieceKind::Utility(statement) => utility::run_static_utility(frame, piece, &statement.clone())?,
    };
    rows_of(outcome, Arc::from([]))
}

fn begin_text(frame: &mut Frame<'_>, text: &Arc<str>, types: &[Oid], values: Arc<[Datum]>) -> Result<RowsOf> {
    let mut statements = melba_parse::parse_as(text, frame.program.strings)?.statements;
    let (Some(statement), true) = (statements.pop(), statements.is_empty()) else {
        return Err(misuse(err!(INVALID_CURSOR_DEFINITION, "cannot open multi-query plan as cursor")));
    };
    if !is_query(&statement.node) {
        let outcome = utility::run_utility(frame, &statement, (types, &values))?;
        return rows_of(outcome, Arc::from([]));
    }
    command::check_in_function(&statement.node, frame.program.shares_view, &frame.context.session)?;
    utility::note_use(frame);
    let plan = |context: &Arc<StatementContext>| planning::plan_cursor(context, &statement.node, types);
    let (context, planned) = execution::plan_locked(&frame.context, &frame.tx, plan)?;
    let outcome = execution::start_with(&context, &frame.tx, &planned, values, (frame.view, Some(&statement.source)))?;
    rows_of(outcome, planned.positions)
}

fn dynamic_execution(frame: &mut Frame<'_>, statement: &Statement, types: &[Oid], values: &Arc<[Datum]>) -> Result<Execution> {
    command::check_in_function(&statement.node, frame.program.shares_view, &frame.context.session)?;
    utility::note_use(frame);
    let plan = |context: &Arc<StatementContext>| planning::plan_text(context, &statement.node, types);
    let (context, planned) = execution::plan_locked(&frame.context, &frame.tx, plan)?;
    execution::execution(&context, &frame.tx, &planned, values, (frame.view, &statement.source))
}

/// The text that EXECUTE runs.
fn dynamic_text(frame: &mut Frame<'_>, query: &Expression) -> Result<Arc<str>> {
    let value = expression::evaluate(frame, query, PieceUse::Any)?;
    if value.value.is_null() {
        bail!(NULL_VALUE_NOT_ALLOWED, "query string argument of EXECUTE is null");
    }
    value::text_of(frame, &value).map(Arc::from)
}

/// The parameters of USING. A value without a type is text.
fn using_values(frame: &mut Frame<'_>, using: &[Expression]) -> Result<(Vec<Oid>, Arc<[Datum]>)> {
    let mut types = Vec::with_capacity(using.len());
    let mut values = Vec::with_capacity(using.len());
    for e in using {
        let value = expression::evaluate(frame, e, PieceUse::Any)?;
        types.push(value.ty);
        values.push(value.value);
    }
    Ok((types, values.into()))
}

/// A statement of the function's text.
pub fn run_static(frame: &mut Frame<'_>, query: &Expression, into: Option<&Into>) -> Result<()> {
    let prepared = expression::prepare(frame, query, PieceUse::Any)?;
    let entered = frame.enter(Some(expression::piece_of(query)));
    let result = run_prepared(frame, query, &prepared, into);
    drop(entered);
    let done = result.map_err(|e| with_parameters(frame, e, &prepared)).map_err(|e| expression::of_piece(query, e))?;
    finish(frame, &done);
    Ok(())
}

/// The parameters of a statement whose INTO STRICT failed, where they are requested.
fn with_parameters(frame: &Frame<'_>, e: DbError, prepared: &PreparedPiece) -> DbError {
    let name = |source: &ParameterSource| match *source {
        ParameterSource::Variable(variable) => frame.program.tree.variables[variable].name.to_string(),
        ParameterSource::Field { record, field } => {
            let fields = field::fields_of(frame, record).unwrap_or_default();
            let name = fields.get(field).map_or("", |(name, _)| &**name);
            format!("{}.{name}", frame.program.tree.variables[record].name)
        }
    };
    let parameter = |source: &ParameterSource| (name(source), expression::source_type(frame, *source));
    let parameters = prepared.sources.iter().map(|s| (parameter(s), expression::source_value(frame, *s)));
    detailed(frame, e, parameters.collect())
}

fn with_values(frame: &Frame<'_>, mut e: DbError, types: &[Oid], values: &[Datum]) -> DbError {
    if is_misuse(&e) && e.sqlstate() == SqlState::TOO_MANY_ROWS {
        e.fields_mut().hint = None;
    }
    let parameters = types.iter().zip(values).enumerate().map(|(i, (ty, v))| ((format!("${}", i + 1), *ty), v.clone()));
    detailed(frame, e, parameters.collect())
}

fn detailed(frame: &Frame<'_>, e: DbError, parameters: Vec<((String, Oid), Datum)>) -> DbError {
    let is_strict = is_misuse(&e) && matches!(e.sqlstate(), SqlState::NO_DATA_FOUND | SqlState::TOO_MANY_ROWS);
    let setting = || melba_fmgr::Session::setting(&*frame.context, "plpgsql.print_strict_params");
    let is_asked_for = || frame.program.tree.print_strict_params.unwrap_or_else(|| setting().as_deref() == Some("on"));
    if !is_strict || parameters.is_empty() || !is_asked_for() {
        return e;
    }
    let shown = parameters.into_iter().map(|((name, ty), value)| match value.is_null() {
        true => format!("{name} = NULL"),
        false => {
            let text = value::text_of(frame, &Typed { value, ty, typmod: -1 }).unwrap_or_default();
            format!("{name} = '{}'", text.replace('\'', "''"))
        }
    });
    e.detail(format!("parameters: {}", shown.collect::<Vec<_>>().join(", ")))
}

fn finish(frame: &mut Frame<'_>, done: &Done) {
    frame.row_count = done.rows;
    if done.is_query {
        frame.set_found(done.rows > 0);
    }
    frame.refresh();
}

fn run_prepared(frame: &mut Frame<'_>, piece: &Expression, prepared: &PreparedPiece, into: Option<&Into>) -> Result<Done> {
    match &prepared.kind {
        PieceKind::Utility(statement) => {
            let outcome = utility::run_static_utility(frame, piece, &statement.clone())?;
            utility_rows(frame, outcome, into)
        }
        PieceKind::Query(planned) => {
            utility::note_use(frame);
            let execution = expression::execution(frame, piece, prepared, planned)?;
            run_query(frame, execution, into, true)
        }
        PieceKind::Simple(_) => {
            let (rows, columns, ..) = begin_prepared(frame, piece, prepared)?;
            let Some(into) = into else { return Err(no_destination(true)) };
            store_rows(frame, rows, &RecordShape::of_result(&columns), into, IntoRule::default())
        }
    }
}

/// Runs a query to its end. `must_go_somewhere`: its rows may not be dropped.
fn run_query(frame: &mut Frame<'_>, mut execution: Execution, into: Option<&Into>, must_go_somewhere: bool) -> Result<Done> {
    let is_select = execution.plan().command == PlanCommand::Select;
    if let Some(into) = into {
        if execution.plan().columns.is_empty() && !is_select {
            return Err(misuse(err!(SYNTAX_ERROR, "INTO used with a command that cannot return data")));
        }
        let shape = RecordShape::of(frame, &execution.plan().columns);
        let changes_within = is_select && execution.plan().must_complete();
        let rows = execution::running(&frame.tx, execution);
        let rule = IntoRule { changes: !is_select, changes_within, is_static: must_go_somewhere };
        return store_rows(frame, rows, &shape, into, rule);
    }
    if must_go_somewhere && (is_select || !execution.plan().columns.is_empty()) {
        return Err(no_destination(is_select));
    }
    while execution.next_batch(BATCH_ROWS)?.is_some() {
        frame.context.session.interrupt.check()?;
    }
    Ok(Done { rows: execution.rows_affected(), is_query: must_go_somewhere })
}

/// Stores the first row in the target.
fn store_rows(
    frame: &mut Frame<'_>,
    mut rows: Box<dyn RowSource>,
    shape: &RecordShape,
    into: &Into,
    rule: IntoRule,
) -> Result<Done> {
    let changes = rule.changes;
    let is_plain = rule.is_static && !into.strict && !changes;
    let check = if is_plain { extra_checks::demanded(&frame.context, "too_many_rows") } else { None };
    let wanted = if into.strict || changes || check.is_some() { 2 } else { 1 };
    let mut first: Option<Batch> = None;
    let mut count = 0u64;
    let all = changes || rule.changes_within;
    while count < wanted || all {
        let Some(batch) = rows.next(if all { BATCH_ROWS } else { (wanted - count) as usize })? else { break };
        count += batch.rows as u64;
        if first.is_none() && batch.rows > 0 {
            first = Some(batch);
        }
    }
    drop(rows);
    error_context::leave();
    if count > 1 && (into.strict || changes && rule.is_static || check.is_some()) {
        let e = DbError::new(SqlState::TOO_MANY_ROWS, "query returned more than one row");
        let e = misuse(e.hint("Make sure the query returns a single row, or use LIMIT 1."));
        extra_checks::report(frame, e, check.map_or(Severity::Error, |(_, severity)| severity))?;
    }
    match first {
        Some(batch) => value::assign_row(frame, &into.target, shape, &batch, 0)?,
        None if into.strict => return Err(misuse(DbError::new(SqlState::NO_DATA_FOUND, "query returned no rows"))),
        None => value::assign_no_row(frame, &into.target, shape)?,
    }
    Ok(Done { rows: count.min(wanted), is_query: true })
}

fn utility_rows(frame: &mut Frame<'_>, outcome: Outcome, into: Option<&Into>) -> Result<Done> {
    match (outcome, into) {
        (Outcome::Rows { columns, source, .. }, Some(into)) => {
            store_rows(frame, source, &RecordShape::of_result(&columns), into, IntoRule::default())
        }
        (Outcome::Rows { .. }, None) => Err(no_destination(false)),
        (_, Some(_)) => Err(misuse(err!(SYNTAX_ERROR, "INTO used with a command that cannot return data"))),
        (Outcome::Done { tag }, None) => {
            let rows = tag.rsplit(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0);
            Ok(Done { rows, is_query: false })
        }
        _ => Err(misuse(err!(FEATURE_NOT_SUPPORTED, "cannot COPY to/from client in PL/pgSQL"))),
    }
}

pub fn perform(frame: &mut Frame<'_>, query: &Expression) -> Result<()> {
    let prepared = expression::prepare(frame, query, PieceUse::Any)?;
    let entered = frame.enter(Some(expression::piece_of(query)));
    let rows = match &prepared.kind {
        PieceKind::Simple(simple) => {
            expression::eval_entered(frame, simple).map_err(|e| expression::of_piece(query, e))?;
            1
        }
        _ => {
            let (mut rows, ..) = begin_prepared(frame, query, &prepared).map_err(|e| expression::of_piece(query, e))?;
            let mut count = 0;
            while let Some(batch) = rows.next(BATCH_ROWS).map_err(|e| expression::of_piece(query, e))? {
                frame.context.session.interrupt.check()?;
                count += batch.rows as u64;
            }
            count
        }
    };
    drop(entered);
    finish(frame, &Done { rows, is_query: true });
    Ok(())
}

/// EXECUTE.
pub fn execute(frame: &mut Frame<'_>, query: &Expression, into: Option<&Into>, using: &[Expression]) -> Result<()> {
    let text = dynamic_text(frame, query)?;
    let (types, values) = using_values(frame, using)?;
    let statements = melba_parse::parse_as(&text, frame.program.strings).map_err(|e| of_text(&text, e))?.statements;
    let mut rows = 0;
    for (i, statement) in statements.iter().enumerate() {
        let into = into.filter(|_| i + 1 == statements.len());
        let entered = frame.enter(Some(("SQL statement", text.clone())));
        let result = execute_one(frame, statement, into, &types, &values);
        drop(entered);
        let done = result.map_err(|e| with_values(frame, e, &types, &values)).map_err(|e| of_text(&text, e))?;
        rows = done.rows;
        frame.refresh();
    }
    frame.row_count = rows;
    Ok(())
}

fn execute_one(
    frame: &mut Frame<'_>,
    statement: &Arc<Statement>,
    into: Option<&Into>,
    types: &[Oid],
    values: &Arc<[Datum]>,
) -> Result<Done> {
    match &statement.node {
        NodeEnum::SelectStmt(s) if s.into_clause.is_some() => {
            let hint = "You might want to use EXECUTE ... INTO or EXECUTE CREATE TABLE ... AS instead.";
            Err(misuse(err!(FEATURE_NOT_SUPPORTED, "EXECUTE of SELECT ... INTO is not implemented").hint(hint)))
        }
        NodeEnum::TransactionStmt(_) => {
            Err(misuse(err!(FEATURE_NOT_SUPPORTED, "EXECUTE of transaction commands is not implemented")))
        }
        node if is_query(node) => {
            let execution = dynamic_execution(frame, statement, types, values)?;
            run_query(frame, execution, into, false)
        }
        _ => match (utility::run_utility(frame, statement, (types, values))?, into) {
            (Outcome::Rows { mut source, .. }, None) => {
                let mut rows = 0;
                while let Some(batch) = source.next(BATCH_ROWS)? {
                    frame.context.session.interrupt.check()?;
                    rows += batch.rows as u64;
                }
                Ok(Done { rows, is_query: false })
            }
            (outcome, into) => utility_rows(frame, outcome, into),
        },
    }
}

pub fn return_query(frame: &mut Frame<'_>, source: &LoopSource) -> Result<()> {
    let Begun { source: mut rows, columns, origin, .. } = begin_rows(frame, source)?;
    let shape = RecordShape::of_result(&columns);
    let mut count = 0;
    result::row_to_result(frame, &shape.columns, vec![Datum::Null; shape.columns.len()]).map_err(|e| of_source(&origin, e))?;
    let _entered = frame.enter(Some(origin.piece()));
    while let Some(batch) = rows.next(BATCH_ROWS).map_err(|e| of_source(&origin, e))? {
        frame.context.session.interrupt.check()?;
        for row in 0..batch.rows {
            let values = batch.columns.iter().take(shape.columns.len()).map(|c| c.get(row)).collect();
            let value = result::row_to_result(frame, &shape.columns, values)?;
            frame.returned.push(value)?;
        }
        count += batch.rows as u64;
    }
    drop(rows);
    finish(frame, &Done { rows: count, is_query: true });
    Ok(())
}

/// CALL, whose output arguments are assigned to their variables, and DO.
pub fn call(frame: &mut Frame<'_>, call: &Expression) -> Result<()> {
    let mut statements = melba_parse::parse_as(&call.text, frame.program.strings)?.statements;
    let Some(statement) = statements.pop() else { return Err(DbError::internal("CALL without a call")) };
    let _entered = frame.enter(Some(expression::piece_of(call)));
    let result = match &statement.node {
        NodeEnum::CallStmt(s) => call_procedure(frame, call, s),
        NodeEnum::DoStmt(block) => {
            let result = routine::run_do(&frame.context, block, &statement, frame.control.lent());
            result.and_then(|()| frame.follow_transaction())
        }
        _ => Err(DbError::internal("a call of something else")),
    };
    result.map_err(|e| expression::of_piece(call, e))
}

fn call_procedure(frame: &mut Frame<'_>, piece: &Expression, s: &CallStmt) -> Result<()> {
    let names = VariableNames::at(frame, piece);
    let called = routine::analyzed(&frame.context, s, CallPlace::Variables(&names))?;
    let sources = names.into_sources();
    let values: Arc<[Datum]> = sources.iter().map(|s| expression::source_value(frame, *s)).collect();
    let mut targets = Vec::with_capacity(called.outputs.len());
    let names = routine::output(&frame.context, &called.call)?.unwrap_or_default();
    for (i, number) in called.outputs.iter().enumerate() {
        let target = number.map(|number| expression::target_of(frame, sources[number - 1])).transpose()?.flatten();
        targets.push(target.ok_or_else(|| {
            let name = names.get(i).map_or("", |c| &*c.name);
            let message =
                format!("procedure parameter \"{name}\" is an output parameter but corresponding argument is not writable");
            misuse(err!(SYNTAX_ERROR, "{message}"))
        })?);
    }
    let result = routine::run_called(&frame.context, called.call, &values, frame.control.lent())?;
    frame.follow_transaction()?;
    let Some((value, columns)) = result else { return Ok(()) };
    let Datum::Record(record) = value else { return Ok(()) };
    for (i, target) in targets.into_iter().enumerate() {
        let value =
            Typed { value: record.fields.get(i).cloned().unwrap_or_default(), ty: columns[i].ty, typmod: columns[i].typmod };
        value::assign(frame, &target, value)?;
    }
    Ok(())
}

fn no_destination(is_select: bool) -> DbError {
    let e = misuse(err!(SYNTAX_ERROR, "query has no destination for result data"));
    if is_select { e.hint("If you want to discard the results of a SELECT, use PERFORM instead.") } else { e }
}

/// The rows of the query for which a cursor is opened.
fn rows_of(outcome: Outcome, positions: Arc<[Position]>) -> Result<RowsOf> {
    match outcome {
        Outcome::Rows { columns, source, tag, .. } => Ok((source, columns, tag, positions)),
        Outcome::Done { tag } => {
            let word = tag.trim_end_matches(|c: char| c.is_ascii_digit() || c == ' ');
            Err(misuse(err!(INVALID_CURSOR_DEFINITION, "cannot open {word} query as cursor")))
        }
        _ => Err(misuse(err!(INVALID_CURSOR_DEFINITION, "cannot open COPY query as cursor"))),
    }
}

fn one_row(kind: melba_types::Kind, value: Datum) -> Box<dyn RowSource> {
    let mut column = melba_types::Column::with_capacity(kind, 1);
    column.push(value);
    Box::new(StoredRows(vec![Batch::new(vec![column], 1)].into_iter()))
}
