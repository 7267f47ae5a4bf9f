//! Statements of SQL: those of the text, and those that EXECUTE makes.

use std::sync::Arc;

use melba_analyze::CallPlace;
use melba_engine::ViewPin;
use melba_execute::Execution;
use melba_parse::Statement;
use melba_parse::command::{is_query, is_session_statement, transaction_command};
use melba_plan::PlanCommand;
use melba_plpgsql::tree::{Expression, Into, RowSource, Target};
use melba_tree::OutputColumn;
use melba_types::{BATCH_ROWS, Batch, Datum, DbError, Oid, Result, SqlState, bail, err};
use pg_query::NodeEnum;
use pg_query::protobuf::CallStmt;

use super::super::pipeline;
use super::super::portal::{Outcome, ResultColumn, RowSource as Source};
use super::super::{explain, routine};
use super::expression::{Names, Wanted};
use super::frame::{Frame, Typed};
use super::program::{Prepared, What};
use super::value::RowShape;

/// A query's rows as they come.
pub(super) enum Rows {
    Running(Box<Execution>, ViewPin),
    Given(Box<dyn Source>),
}

impl Rows {
    pub fn next(&mut self, limit: usize) -> Result<Option<Batch>> {
        match self {
            Rows::Running(execution, _pin) => execution.next_batch(limit),
            Rows::Given(source) => source.next(limit),
        }
    }
}

/// Whose error it is when rows cannot be read.
pub(super) enum Origin {
    Piece(Expression),
    Text(Arc<str>),
}

/// What a statement has done.
struct Done {
    /// Rows that it gave or changed.
    rows: u64,
    /// It is one whose rows FOUND tells of.
    is_query: bool,
}

impl Frame {
    /// An error while a query's rows are read.
    pub fn of_source(&self, origin: &Origin, e: DbError) -> DbError {
        match origin {
            Origin::Piece(piece) => self.of_piece(piece, e),
            Origin::Text(text) => of_text(text, e),
        }
    }

    /// A query whose rows are gone through.
    pub fn begin_rows(&mut self, source: &RowSource) -> Result<(Rows, RowShape, Origin)> {
        match source {
            RowSource::Query(query) => {
                let prepared = self.prepare(query, Wanted::Any)?;
                let (rows, shape) = self.begin_prepared(&prepared).map_err(|e| self.of_piece(query, e))?;
                Ok((rows, shape, Origin::Piece(query.clone())))
            }
            RowSource::Execute { query, using } => {
                let text = self.dynamic_text(query)?;
                let (types, values) = self.using(using)?;
                let (rows, shape) = self.begin_text(&text, &types, values).map_err(|e| of_text(&text, e))?;
                Ok((rows, shape, Origin::Text(text)))
            }
            RowSource::Cursor { .. } => Err(Frame::internal("a cursor's rows are fetched")),
        }
    }

    pub fn begin_prepared(&mut self, prepared: &Prepared) -> Result<(Rows, RowShape)> {
        match &prepared.what {
            What::Query(planned) => {
                let execution = self.execution(prepared, planned)?;
                Ok(self.running(execution))
            }
            What::Simple(simple) => {
                let value = self.eval_simple(simple)?;
                let column = OutputColumn {
                    name: simple.name.clone(),
                    ty: simple.expression.ty,
                    typmod: simple.typmod,
                    collation: Oid::INVALID,
                };
                Ok((one_row(simple.expression.kind, value), RowShape::of(&[column])))
            }
            What::Utility(statement) => match self.utility(&statement.clone())? {
                Outcome::Rows { columns, source, .. } => Ok((Rows::Given(source), shape_of(&columns))),
                _ => Err(err!(
                    SYNTAX_ERROR,
                    "cannot open {} query as cursor",
                    melba_parse::command::statement_tag(&statement.node)
                )),
            },
        }
    }

    fn running(&self, execution: Execution) -> (Rows, RowShape) {
        let shape = RowShape::of(&execution.plan().columns);
        let pin = self.tx.engine.pin_view(execution.evaluation().view());
        (Rows::Running(Box::new(execution), pin), shape)
    }

    fn begin_text(&mut self, text: &Arc<str>, types: &[Oid], values: Arc<[Datum]>) -> Result<(Rows, RowShape)> {
        let mut statements = melba_parse::parse_as(text, self.program.strings)?.statements;
        let (Some(statement), true) = (statements.pop(), statements.is_empty()) else {
            bail!(INVALID_CURSOR_DEFINITION, "cannot open multi-query plan as cursor");
        };
        if is_query(&statement.node) {
            let execution = self.dynamic_execution(&statement, types, &values)?;
            return Ok(self.running(execution));
        }
        match self.utility(&statement)? {
            Outcome::Rows { columns, source, .. } => Ok((Rows::Given(source), shape_of(&columns))),
            _ => Err(err!(
                INVALID_CURSOR_DEFINITION,
                "cannot open {} query as cursor",
                melba_parse::command::statement_tag(&statement.node)
            )),
        }
    }

    fn dynamic_execution(&self, statement: &Statement, types: &[Oid], values: &Arc<[Datum]>) -> Result<Execution> {
        self.check_may_run(&statement.node)?;
        let planned = pipeline::plan_query(&self.context, &statement.node, types, false)?;
        pipeline::execution(&self.context, &self.tx, &planned, values, self.view)
    }

    /// The text that EXECUTE runs.
    pub fn dynamic_text(&mut self, query: &Expression) -> Result<Arc<str>> {
        let value = self.evaluate(query, Wanted::Any)?;
        if value.value.is_null() {
            bail!(NULL_VALUE_NOT_ALLOWED, "query string argument of EXECUTE is null");
        }
        self.text_of(&value).map(Arc::from)
    }

    /// The parameters of USING. What is of no type yet is text.
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
        let done = self.run_prepared(&prepared, into).map_err(|e| self.of_statement(query, e))?;
        self.finish(&done);
        Ok(())
    }

    /// What is wrong with how the statement is used is no error of the statement.
    fn of_statement(&self, query: &Expression, e: DbError) -> DbError {
        let is_own = matches!(e.sqlstate(), SqlState::NO_DATA_FOUND | SqlState::TOO_MANY_ROWS);
        let is_misused = e.message() == NO_DESTINATION;
        if is_own || is_misused { e } else { self.of_piece(query, e) }
    }

    fn finish(&mut self, done: &Done) {
        self.row_count = done.rows;
        if done.is_query {
            self.set_found(done.rows > 0);
        }
        self.refresh();
    }

    fn run_prepared(&mut self, prepared: &Prepared, into: Option<&Into>) -> Result<Done> {
        match &prepared.what {
            What::Utility(statement) => {
                let statement = statement.clone();
                let outcome = self.utility(&statement)?;
                self.utility_rows(outcome, into)
            }
            What::Query(planned) => {
                self.check_command(planned.plan.command)?;
                let execution = self.execution(prepared, planned)?;
                self.run_query(execution, into, true)
            }
            What::Simple(_) => {
                let (rows, shape) = self.begin_prepared(prepared)?;
                let Some(into) = into else { return Err(no_destination(true)) };
                self.store_rows(rows, &shape, into, false)
            }
        }
    }

    fn check_command(&self, command: PlanCommand) -> Result<()> {
        let name = match command {
            PlanCommand::Select => return Ok(()),
            PlanCommand::Insert => "INSERT",
            PlanCommand::Update => "UPDATE",
            PlanCommand::Delete => "DELETE",
            PlanCommand::Merge => "MERGE",
        };
        if self.program.shares_view {
            bail!(FEATURE_NOT_SUPPORTED, "{name} is not allowed in a non-volatile function");
        }
        if self.context.session.settings.lock().get("transaction_read_only").as_bool() {
            bail!(READ_ONLY_SQL_TRANSACTION, "cannot execute {name} in a read-only transaction");
        }
        Ok(())
    }

    /// Runs a query to its end. `must_go_somewhere`: its rows may not be dropped.
    fn run_query(&mut self, mut execution: Execution, into: Option<&Into>, must_go_somewhere: bool) -> Result<Done> {
        let is_select = execution.plan().command == PlanCommand::Select;
        if let Some(into) = into {
            if execution.plan().columns.is_empty() && !is_select {
                bail!(SYNTAX_ERROR, "INTO used with a command that cannot return data");
            }
            let (rows, shape) = self.running(execution);
            return self.store_rows(rows, &shape, into, !is_select);
        }
        if must_go_somewhere && (is_select || !execution.plan().columns.is_empty()) {
            return Err(no_destination(is_select));
        }
        while execution.next_batch(BATCH_ROWS)?.is_some() {
            self.context.session.interrupt.check()?;
        }
        Ok(Done { rows: execution.rows_affected(), is_query: must_go_somewhere })
    }

    /// The first row goes into the target.
    fn store_rows(&mut self, mut rows: Rows, shape: &RowShape, into: &Into, changes: bool) -> Result<Done> {
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
        if count > 1 && (into.strict || changes) {
            return Err(DbError::new(SqlState::TOO_MANY_ROWS, "query returned more than one row")
                .hint("Make sure the query returns a single row, or use LIMIT 1."));
        }
        match first {
            Some(batch) => self.assign_row(&into.target, shape, &batch, 0)?,
            None if into.strict => return Err(DbError::new(SqlState::NO_DATA_FOUND, "query returned no rows")),
            None => self.assign_no_row(&into.target, shape)?,
        }
        Ok(Done { rows: count.min(wanted), is_query: true })
    }

    fn utility_rows(&mut self, outcome: Outcome, into: Option<&Into>) -> Result<Done> {
        match (outcome, into) {
            (Outcome::Rows { columns, source, .. }, Some(into)) => {
                self.store_rows(Rows::Given(source), &shape_of(&columns), into, false)
            }
            (Outcome::Rows { .. }, None) => Err(no_destination(false)),
            (_, Some(_)) => bail!(SYNTAX_ERROR, "INTO used with a command that cannot return data"),
            (Outcome::Done { tag }, None) => {
                let rows = tag.rsplit(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0);
                Ok(Done { rows, is_query: false })
            }
            _ => bail!(FEATURE_NOT_SUPPORTED, "cannot COPY to/from client in PL/pgSQL"),
        }
    }

    /// A statement that is no query.
    fn utility(&mut self, statement: &Arc<Statement>) -> Result<Outcome> {
        self.check_may_run(&statement.node)?;
        match &statement.node {
            NodeEnum::TransactionStmt(s) => {
                let name = transaction_command(s);
                Err(err!(FEATURE_NOT_SUPPORTED, "unsupported transaction command in PL/pgSQL").detail(format!("{name} is one.")))
            }
            NodeEnum::CopyStmt(s) if s.filename.is_empty() => {
                Err(err!(FEATURE_NOT_SUPPORTED, "cannot COPY to/from client in PL/pgSQL"))
            }
            NodeEnum::VariableSetStmt(set) => {
                self.context.set_in_routine(set)?;
                Ok(Outcome::Done { tag: "SET".into() })
            }
            NodeEnum::CallStmt(call) => routine::run_call(&self.context, call, None, &[], &Arc::from([])),
            NodeEnum::ExplainStmt(s) => explain::run(&self.context, &self.tx, s, &[], &Arc::from([])),
            NodeEnum::DoStmt(block) => {
                routine::run_do(&self.context, block, statement)?;
                Ok(Outcome::Done { tag: "DO".into() })
            }
            node if is_session_statement(node) => Err(DbError::unsupported("a statement about the session in a function")),
            _ => {
                self.refresh();
                pipeline::execute_utility(&self.context, &self.tx, statement)
            }
        }
    }

    pub fn perform(&mut self, query: &Expression) -> Result<()> {
        let prepared = self.prepare(query, Wanted::Any)?;
        let rows = match &prepared.what {
            What::Simple(simple) => {
                self.eval_simple(simple)?;
                1
            }
            _ => {
                let (mut rows, _) = self.begin_prepared(&prepared).map_err(|e| self.of_piece(query, e))?;
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
            let done = self.execute_one(statement, into, &types, &values).map_err(|e| match e.sqlstate() {
                SqlState::NO_DATA_FOUND | SqlState::TOO_MANY_ROWS => e,
                _ => of_text(&text, e),
            })?;
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
                Err(err!(FEATURE_NOT_SUPPORTED, "EXECUTE of SELECT ... INTO is not implemented").hint(hint))
            }
            NodeEnum::TransactionStmt(_) => bail!(FEATURE_NOT_SUPPORTED, "EXECUTE of transaction commands is not implemented"),
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
        let (mut rows, shape, origin) = self.begin_rows(source)?;
        let mut count = 0;
        self.row_to_result(&shape.columns, vec![Datum::Null; shape.columns.len()])?;
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

    /// CALL, whose output arguments go into the variables that stand for them, and DO.
    pub fn call(&mut self, call: &Expression) -> Result<()> {
        let mut statements = melba_parse::parse_as(&call.text, self.program.strings)?.statements;
        let Some(statement) = statements.pop() else { return Err(Frame::internal("CALL without a call")) };
        let result = match &statement.node {
            NodeEnum::CallStmt(s) => self.call_procedure(call, s),
            _ => self.utility(&statement).map(drop),
        };
        result.map_err(|e| self.of_piece(call, e))?;
        self.refresh();
        Ok(())
    }

    fn call_procedure(&mut self, piece: &Expression, s: &CallStmt) -> Result<()> {
        let names = Names::at(self, piece);
        let called = routine::analyzed(&self.context, s, CallPlace::Variables(&names))?;
        let sources = names.into_sources();
        let values: Arc<[Datum]> = sources.iter().map(|s| self.source_value(*s)).collect();
        let targets: Vec<Option<Target>> = called.outputs.iter().map(|number| self.target_of(sources[(*number)? - 1])).collect();
        let Some((value, columns)) = routine::run_called(&self.context, called.call, &values)? else { return Ok(()) };
        let Datum::Record(record) = value else { return Ok(()) };
        for (i, target) in targets.into_iter().enumerate() {
            let Some(target) = target else {
                let name = columns[i].name.clone();
                bail!(
                    SYNTAX_ERROR,
                    "procedure parameter \"{name}\" is an output parameter but corresponding argument is not writable"
                );
            };
            let value =
                Typed { value: record.fields.get(i).cloned().unwrap_or_default(), ty: columns[i].ty, typmod: columns[i].typmod };
            self.assign(&target, value)?;
        }
        Ok(())
    }
}

const NO_DESTINATION: &str = "query has no destination for result data";

fn no_destination(is_select: bool) -> DbError {
    let e = err!(SYNTAX_ERROR, "{NO_DESTINATION}");
    if is_select { e.hint("If you want to discard the results of a SELECT, use PERFORM instead.") } else { e }
}

/// An error of a statement that EXECUTE runs.
pub(super) fn of_text(text: &str, e: DbError) -> DbError {
    match e.fields().position {
        Some(_) => e.in_query(text),
        None => e.within(format!("SQL statement \"{text}\"")),
    }
}

fn shape_of(columns: &[ResultColumn]) -> RowShape {
    let column = |c: &ResultColumn| OutputColumn { name: c.name.clone(), ty: c.ty, typmod: c.typmod, collation: Oid::INVALID };
    RowShape::of(&columns.iter().map(column).collect::<Vec<_>>())
}

fn one_row(kind: melba_types::Kind, value: Datum) -> Rows {
    let mut column = melba_types::Column::with_capacity(kind, 1);
    column.push(value);
    Rows::Given(Box::new(super::super::portal::StoredRows(vec![Batch::new(vec![column], 1)].into_iter())))
}
