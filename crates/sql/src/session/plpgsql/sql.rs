//! SQL statements: those of the text, and those that EXECUTE builds.

use std::sync::Arc;

use melba_analyze::CallPlace;
use melba_execute::Execution;
use melba_parse::Statement;
use melba_parse::command::is_query;
use melba_plan::PlanCommand;
use melba_plpgsql::tree::{Expression, Into, RowSource};
use melba_types::{BATCH_ROWS, Batch, Datum, DbError, Oid, Result, SqlState, bail, err};
use pg_query::NodeEnum;
use pg_query::protobuf::CallStmt;

use super::super::outcome::{Outcome, ResultColumn, RowSource as ParameterSource, StoredRows, Tag};
use super::super::positioned::Position;
use super::super::routine;
use super::super::{execution, planning};
use super::expression::{Names, Wanted};
use super::frame::{Frame, Typed};
use super::program::{ParameterSource as Place, PieceKind, Prepared};
use super::value::RowShape;

/// A query that was begun.
pub(super) struct Begun {
    pub source: Box<dyn ParameterSource>,
    pub columns: Arc<[ResultColumn]>,
    pub tag: Tag,
    pub origin: Origin,
    pub positions: Arc<[Position]>,
}

/// Whose error it is when rows cannot be read.
#[derive(Clone)]
pub(super) enum Origin {
    Piece(Expression),
    Text(Arc<str>),
}

impl Origin {
    pub fn text(&self) -> &str {
        match self {
            Origin::Piece(piece) => &piece.text,
            Origin::Text(text) => text,
        }
    }
}

/// Rows with their columns.
type RowsOf = (Box<dyn ParameterSource>, Arc<[ResultColumn]>, Tag, Arc<[Position]>);

/// How INTO takes the rows of a statement.
#[derive(Clone, Copy, Default)]
struct IntoRule {
    /// It changes rows, all of which must be processed.
    changes: bool,
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

impl Frame<'_> {
    /// An error while a query's rows are read.
    pub fn of_source(&self, origin: &Origin, e: DbError) -> DbError {
        match origin {
            Origin::Piece(piece) => self.of_piece(piece, e),
            Origin::Text(text) => of_text(text, e),
        }
    }

    /// Begins a query over whose rows a loop runs.
    pub fn begin_rows(&mut self, source: &RowSource) -> Result<Begun> {
        self.begin_source(source, Wanted::Any)
    }

    /// The same, where statements may refer to the row that was read last.
    pub fn begin_cursor(&mut self, source: &RowSource) -> Result<Begun> {
        self.begin_source(source, Wanted::Cursor)
    }

    fn begin_source(&mut self, source: &RowSource, wanted: Wanted<'_>) -> Result<Begun> {
        let (result, origin) = match source {
            RowSource::Query(query) => {
                let prepared = self.prepare(query, wanted)?;
                (self.begin_prepared(&prepared), Origin::Piece(query.clone()))
            }
            RowSource::Execute { query, using } => {
                let text = self.dynamic_text(query)?;
                let (types, values) = self.using(using)?;
                (self.begin_text(&text, &types, values), Origin::Text(text))
            }
            RowSource::Cursor { .. } => return Err(Frame::internal("a cursor's rows are fetched")),
        };
        let (source, columns, tag, positions) = result.map_err(|e| self.of_source(&origin, e))?;
        Ok(Begun { source, columns, tag, origin, positions })
    }

    fn begin_prepared(&mut self, prepared: &Prepared) -> Result<RowsOf> {
        let outcome = match &prepared.kind {
            PieceKind::Query(planned) => {
                self.note_use();
                let parameters = self.parameters(prepared);
                let outcome = execution::begin(&self.context, &self.tx, planned, parameters, self.view)?;
                return rows_of(outcome, planned.positions.clone());
            }
            PieceKind::Simple(simple) => {
                let value = self.eval_simple(simple)?;
                let mut column = ResultColumn::new(&simple.name, simple.expression.ty, &self.context.catalog);
                column.typmod = simple.typmod;
                return Ok((one_row(simple.expression.kind, value), Arc::from([column]), Tag::Counted("SELECT"), Arc::from([])));
            }
            PieceKind::Utility(statement) => self.utility(&statement.clone())?,
        };
        rows_of(outcome, Arc::from([]))
    }

    fn begin_text(&mut self, text: &Arc<str>, types: &[Oid], values: Arc<[Datum]>) -> Result<RowsOf> {
        let mut statements = melba_parse::parse_as(text, self.program.strings)?.statements;
        let (Some(statement), true) = (statements.pop(), statements.is_empty()) else {
            return Err(misuse(err!(INVALID_CURSOR_DEFINITION, "cannot open multi-query plan as cursor")));
        };
        if !is_query(&statement.node) {
            let outcome = self.utility(&statement)?;
            return rows_of(outcome, Arc::from([]));
        }
        self.check_may_run(&statement.node)?;
        self.note_use();
        let planned = planning::plan_cursor(&self.context, &statement.node, types)?;
        let outcome = execution::begin(&self.context, &self.tx, &planned, values, self.view)?;
        rows_of(outcome, planned.positions)
    }

    /// The transaction's modes are fixed from now on.
    pub fn note_use(&mut self) {
        if let Some(session) = self.control.session() {
            session.note_use();
        }
    }

    fn dynamic_execution(&mut self, statement: &Statement, types: &[Oid], values: &Arc<[Datum]>) -> Result<Execution> {
        self.check_may_run(&statement.node)?;
        self.note_use();
        let planned = planning::plan_query(&self.context, &statement.node, types, false)?;
        execution::execution(&self.context, &self.tx, &planned, values, self.view)
    }

    /// The text that EXECUTE runs.
    pub fn dynamic_text(&mut self, query: &Expression) -> Result<Arc<str>> {
        let value = self.evaluate(query, Wanted::Any)?;
        if value.value.is_null() {
            bail!(NULL_VALUE_NOT_ALLOWED, "query string argument of EXECUTE is null");
        }
        self.text_of(&value).map(Arc::from)
    }

    /// The parameters of USING. A value without a type is text.
    pub fn using(&mut self, using: &[Expression]) -> Result<(Vec<Oid>, Arc<[Datum]>)> {
        let mut types = Vec::with_capacity(using.len());
        let mut values = Vec::with_capacity(using.len());
        for e in using {
            let value = self.evaluate(e, Wanted::Any)?;
            types.push(value.ty);
            values.push(value.value);
        }
        Ok((types, values.into()))
    }

    /// A statement of the function's text.
    pub fn sql(&mut self, query: &Expression, into: Option<&Into>) -> Result<()> {
        let prepared = self.prepare(query, Wanted::Any)?;
        let result = self.run_prepared(&prepared, into);
        let done = result.map_err(|e| self.with_parameters(e, &prepared)).map_err(|e| self.of_piece(query, e))?;
        self.finish(&done);
        Ok(())
    }

    /// The parameters of a statement whose INTO STRICT failed, where they are requested.
    fn with_parameters(&self, e: DbError, prepared: &Prepared) -> DbError {
        let parameter = |source: &Place| match *source {
            Place::Variable(variable) => (self.program.tree.variables[variable].name.to_string(), self.types[variable].oid),
            Place::Field { record, field } => {
                let fields = self.fields_of(record).unwrap_or_default();
                let (name, ty) = fields.get(field).map_or(("", Oid::INVALID), |(name, ty)| (&**name, ty.0));
                (format!("{}.{name}", self.program.tree.variables[record].name), ty)
            }
        };
        let parameters = prepared.sources.iter().map(|s| (parameter(s), self.source_value(*s)));
        self.detailed(e, parameters.collect())
    }

    fn with_values(&self, mut e: DbError, types: &[Oid], values: &[Datum]) -> DbError {
        if is_misuse(&e) && e.sqlstate() == SqlState::TOO_MANY_ROWS {
            e.fields_mut().hint = None;
        }
        let parameters = types.iter().zip(values).enumerate().map(|(i, (ty, v))| ((format!("${}", i + 1), *ty), v.clone()));
        self.detailed(e, parameters.collect())
    }

    fn detailed(&self, e: DbError, parameters: Vec<((String, Oid), Datum)>) -> DbError {
        let is_strict = is_misuse(&e) && matches!(e.sqlstate(), SqlState::NO_DATA_FOUND | SqlState::TOO_MANY_ROWS);
        let setting = || melba_fmgr::Session::setting(&*self.context, "plpgsql.print_strict_params");
        let is_asked_for = || self.program.tree.print_strict_params.unwrap_or_else(|| setting().as_deref() == Some("on"));
        if !is_strict || parameters.is_empty() || !is_asked_for() {
            return e;
        }
        let shown = parameters.into_iter().map(|((name, ty), value)| match value.is_null() {
            true => format!("{name} = NULL"),
            false => {
                let text = self.text_of(&Typed { value, ty, typmod: -1 }).unwrap_or_default();
                format!("{name} = '{}'", text.replace('\'', "''"))
            }
        });
        e.detail(format!("parameters: {}", shown.collect::<Vec<_>>().join(", ")))
    }

    fn finish(&mut self, done: &Done) {
        self.row_count = done.rows;
        if done.is_query {
            self.set_found(done.rows > 0);
        }
        self.refresh();
    }

    fn run_prepared(&mut self, prepared: &Prepared, into: Option<&Into>) -> Result<Done> {
        match &prepared.kind {
            PieceKind::Utility(statement) => {
                let statement = statement.clone();
                let outcome = self.utility(&statement)?;
                self.utility_rows(outcome, into)
            }
            PieceKind::Query(planned) => {
                self.note_use();
                let execution = self.execution(prepared, planned)?;
                self.run_query(execution, into, true)
            }
            PieceKind::Simple(_) => {
                let (rows, columns, ..) = self.begin_prepared(prepared)?;
                let Some(into) = into else { return Err(no_destination(true)) };
                self.store_rows(rows, &RowShape::of_result(&columns), into, IntoRule::default())
            }
        }
    }

    /// Runs a query to its end. `must_go_somewhere`: its rows may not be dropped.
    fn run_query(&mut self, mut execution: Execution, into: Option<&Into>, must_go_somewhere: bool) -> Result<Done> {
        let is_select = execution.plan().command == PlanCommand::Select;
        if let Some(into) = into {
            if execution.plan().columns.is_empty() && !is_select {
                return Err(misuse(err!(SYNTAX_ERROR, "INTO used with a command that cannot return data")));
            }
            let shape = RowShape::of(&execution.plan().columns);
            let rows = execution::running(&self.tx, execution);
            let rule = IntoRule { changes: !is_select, is_static: must_go_somewhere };
            return self.store_rows(rows, &shape, into, rule);
        }
        if must_go_somewhere && (is_select || !execution.plan().columns.is_empty()) {
            return Err(no_destination(is_select));
        }
        while execution.next_batch(BATCH_ROWS)?.is_some() {
            self.context.session.interrupt.check()?;
        }
        Ok(Done { rows: execution.rows_affected(), is_query: must_go_somewhere })
    }

    /// Stores the first row in the target.
    fn store_rows(&mut self, mut rows: Box<dyn ParameterSource>, shape: &RowShape, into: &Into, rule: IntoRule) -> Result<Done> {
        let changes = rule.changes;
        let wanted = if into.strict || changes { 2 } else { 1 };
        let mut first: Option<Batch> = None;
        let mut count = 0u64;
        while count < wanted || changes {
            let Some(batch) = rows.next(if changes { BATCH_ROWS } else { (wanted - count) as usize })? else { break };
            count += batch.rows as u64;
            if first.is_none() && batch.rows > 0 {
                first = Some(batch);
            }
        }
        drop(rows);
        if count > 1 && (into.strict || changes && rule.is_static) {
            let e = DbError::new(SqlState::TOO_MANY_ROWS, "query returned more than one row");
            return Err(misuse(e.hint("Make sure the query returns a single row, or use LIMIT 1.")));
        }
        match first {
            Some(batch) => self.assign_row(&into.target, shape, &batch, 0)?,
            None if into.strict => return Err(misuse(DbError::new(SqlState::NO_DATA_FOUND, "query returned no rows"))),
            None => self.assign_no_row(&into.target, shape)?,
        }
        Ok(Done { rows: count.min(wanted), is_query: true })
    }

    fn utility_rows(&mut self, outcome: Outcome, into: Option<&Into>) -> Result<Done> {
        match (outcome, into) {
            (Outcome::Rows { columns, source, .. }, Some(into)) => {
                self.store_rows(source, &RowShape::of_result(&columns), into, IntoRule::default())
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

    pub fn perform(&mut self, query: &Expression) -> Result<()> {
        let prepared = self.prepare(query, Wanted::Any)?;
        let rows = match &prepared.kind {
            PieceKind::Simple(simple) => {
                self.eval_simple(simple).map_err(|e| self.of_piece(query, e))?;
                1
            }
            _ => {
                let (mut rows, ..) = self.begin_prepared(&prepared).map_err(|e| self.of_piece(query, e))?;
                let mut count = 0;
                while let Some(batch) = rows.next(BATCH_ROWS).map_err(|e| self.of_piece(query, e))? {
                    self.context.session.interrupt.check()?;
                    count += batch.rows as u64;
                }
                count
            }
        };
        self.finish(&Done { rows, is_query: true });
        Ok(())
    }

    /// EXECUTE.
    pub fn execute(&mut self, query: &Expression, into: Option<&Into>, using: &[Expression]) -> Result<()> {
        let text = self.dynamic_text(query)?;
        let (types, values) = self.using(using)?;
        let statements = melba_parse::parse_as(&text, self.program.strings).map_err(|e| of_text(&text, e))?.statements;
        let mut rows = 0;
        for (i, statement) in statements.iter().enumerate() {
            let into = into.filter(|_| i + 1 == statements.len());
            let result = self.execute_one(statement, into, &types, &values);
            let done = result.map_err(|e| self.with_values(e, &types, &values)).map_err(|e| of_text(&text, e))?;
            rows = done.rows;
            self.refresh();
        }
        self.row_count = rows;
        Ok(())
    }

    fn execute_one(
        &mut self,
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
                let execution = self.dynamic_execution(statement, types, values)?;
                self.run_query(execution, into, false)
            }
            _ => match (self.utility(statement)?, into) {
                (Outcome::Rows { .. }, None) => Ok(Done { rows: 0, is_query: false }),
                (outcome, into) => self.utility_rows(outcome, into),
            },
        }
    }

    pub fn return_query(&mut self, source: &RowSource) -> Result<()> {
        let Begun { source: mut rows, columns, origin, .. } = self.begin_rows(source)?;
        let shape = RowShape::of_result(&columns);
        let mut count = 0;
        self.row_to_result(&shape.columns, vec![Datum::Null; shape.columns.len()]).map_err(|e| self.of_source(&origin, e))?;
        while let Some(batch) = rows.next(BATCH_ROWS).map_err(|e| self.of_source(&origin, e))? {
            self.context.session.interrupt.check()?;
            for row in 0..batch.rows {
                let values = batch.columns.iter().take(shape.columns.len()).map(|c| c.get(row)).collect();
                let value = self.row_to_result(&shape.columns, values)?;
                self.returned.push(value)?;
            }
            count += batch.rows as u64;
        }
        drop(rows);
        self.finish(&Done { rows: count, is_query: true });
        Ok(())
    }

    /// CALL, whose output arguments are assigned to their variables, and DO.
    pub fn call(&mut self, call: &Expression) -> Result<()> {
        let mut statements = melba_parse::parse_as(&call.text, self.program.strings)?.statements;
        let Some(statement) = statements.pop() else { return Err(Frame::internal("CALL without a call")) };
        let result = match &statement.node {
            NodeEnum::CallStmt(s) => self.call_procedure(call, s),
            NodeEnum::DoStmt(block) => {
                let result = routine::run_do(&self.context, block, &statement, self.control.lent());
                result.and_then(|()| self.follow_transaction())
            }
            _ => Err(Frame::internal("a call of something else")),
        };
        result.map_err(|e| self.of_piece(call, e))
    }

    fn call_procedure(&mut self, piece: &Expression, s: &CallStmt) -> Result<()> {
        let names = Names::at(self, piece);
        let called = routine::analyzed(&self.context, s, CallPlace::Variables(&names))?;
        let sources = names.into_sources();
        let values: Arc<[Datum]> = sources.iter().map(|s| self.source_value(*s)).collect();
        let mut targets = Vec::with_capacity(called.outputs.len());
        let names = routine::output(&self.context, &called.call)?.unwrap_or_default();
        for (i, number) in called.outputs.iter().enumerate() {
            let target = number.map(|number| self.target_of(sources[number - 1])).transpose()?.flatten();
            targets.push(target.ok_or_else(|| {
                let name = names.get(i).map_or("", |c| &*c.name);
                let message =
                    format!("procedure parameter \"{name}\" is an output parameter but corresponding argument is not writable");
                misuse(err!(SYNTAX_ERROR, "{message}"))
            })?);
        }
        let result = routine::run_called(&self.context, called.call, &values, self.control.lent())?;
        self.follow_transaction()?;
        let Some((value, columns)) = result else { return Ok(()) };
        let Datum::Record(record) = value else { return Ok(()) };
        for (i, target) in targets.into_iter().enumerate() {
            let value =
                Typed { value: record.fields.get(i).cloned().unwrap_or_default(), ty: columns[i].ty, typmod: columns[i].typmod };
            self.assign(&target, value)?;
        }
        Ok(())
    }
}

/// Misuse of a statement is no error of the statement: its context does not show it.
pub(super) fn misuse(e: DbError) -> DbError {
    e.routine(MISUSE)
}

pub(super) fn is_misuse(e: &DbError) -> bool {
    e.fields().origin.routine() == MISUSE && e.fields().context.is_none()
}

/// PostgreSQL's function that raises most of these.
const MISUSE: &str = "exec_stmt_execsql";

fn no_destination(is_select: bool) -> DbError {
    let e = misuse(err!(SYNTAX_ERROR, "query has no destination for result data"));
    if is_select { e.hint("If you want to discard the results of a SELECT, use PERFORM instead.") } else { e }
}

/// An error of a statement that EXECUTE runs.
pub(super) fn of_text(text: &str, e: DbError) -> DbError {
    if is_misuse(&e) {
        return e;
    }
    match e.fields().position {
        Some(_) => e.in_query(text),
        None => e.within(format!("SQL statement \"{text}\"")),
    }
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

fn one_row(kind: melba_types::Kind, value: Datum) -> Box<dyn ParameterSource> {
    let mut column = melba_types::Column::with_capacity(kind, 1);
    column.push(value);
    Box::new(StoredRows(vec![Batch::new(vec![column], 1)].into_iter()))
}
