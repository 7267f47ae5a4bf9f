//! One call of a function: its variables, and the context of its statements. Where no caller needs the transaction, it may ask
//! the session to end that.

use std::sync::Arc;

use melba_engine::ReadView;
use melba_expression::{Evaluation, NoSubPlans};
use melba_plpgsql::tree::{Expression, Loop, PlpgsqlStatement, VariableType};
use melba_statement::context::StatementContext;
use melba_statement::control::Control;
use melba_statement::error_context;
use melba_statement::error_context::{Entered, ErrorContext};
use melba_transaction::Tx;
use melba_types::{Datum, DbError, Oid, Result};

use super::program::{PreparedPiece, Program};
use super::returned::Returned;

/// Where the statements continue; EXIT and CONTINUE at the frame's label. A word, which a result is returned with in registers.
#[derive(Clone, Copy)]
pub(super) enum StatementFlow {
    Next,
    Exit,
    Continue,
    Return,
}

/// A field to be assigned to.
#[derive(Clone, Copy)]
pub(super) struct FieldPlace {
    /// Among the record's fields.
    pub at: usize,
    pub ty: (Oid, i32),
    /// The record's type is a domain, which looks at the whole record.
    pub is_of_domain: bool,
}

/// What the variables behind the rows of a trigger are, for an event and a table.
pub(super) struct TriggerValues {
    pub event: i16,
    pub table: Oid,
    pub values: [Datum; 10],
}

/// A value with its type.
pub(super) struct Typed {
    pub value: Datum,
    pub ty: Oid,
    pub typmod: i32,
}

pub(super) struct Frame<'a> {
    pub program: Arc<Program>,
    pub context: Arc<StatementContext>,
    pub tx: Arc<Tx>,
    /// By the variable's number.
    pub values: Vec<Datum>,
    /// Types that are known only with a value (CASE), else the declared ones.
    pub types: Vec<VariableType>,
    /// Of the fields of records by variable, where they are not those of the fields' types.
    pub record_collations: Vec<(usize, Arc<[Oid]>)>,
    /// By the expression's number, as far as this call has reached them in this context.
    pub prepared: Vec<Option<Arc<PreparedPiece>>>,
    /// The same, for fields that values of expressions go to.
    pub places: Vec<Option<FieldPlace>>,
    pub evaluation: Evaluation<NoSubPlans>,
    /// The calling statement's view, for functions that use the same.
    pub view: Option<ReadView>,
    pub returned: Returned,
    /// Of the trigger that it runs.
    pub trigger_values: Option<Box<TriggerValues>>,
    /// ROW_COUNT
    pub row_count: u64,
    /// The error that is being handled.
    pub handled: Option<DbError>,
    /// The error on its way out has its line of context.
    pub located: bool,
    pub settings_version: u64,
    /// Where the last EXIT or CONTINUE goes: to the innermost loop without one.
    pub label: Option<Arc<str>>,
    /// Of the statement that runs.
    pub line: u32,
    /// Its name.
    pub statement: &'static str,
    /// The changes of the transaction that it may make.
    pub control: Control<'a>,
}

impl<'a> Frame<'a> {
    pub fn new(
        program: Arc<Program>,
        context: Arc<StatementContext>,
        view: Option<ReadView>,
        control: Control<'a>,
    ) -> Result<Frame<'a>> {
        let tx = context.tx.clone().ok_or_else(|| DbError::internal("no transaction is open"))?;
        // Statements that read tables take a new view, unless the function uses its caller's.
        let at = view.unwrap_or_else(|| tx.engine.active_view());
        let variables = &program.tree.variables;
        let mut frame = Frame {
            values: vec![Datum::Null; variables.len()],
            types: variables.iter().map(|v| v.ty).collect(),
            record_collations: Vec::new(),
            prepared: vec![None; program.tree.expressions],
            places: vec![None; program.tree.expressions],
            evaluation: Evaluation::new(context.clone(), tx.engine.clone(), at, Arc::from([]), NoSubPlans),
            view,
            returned: Returned::new(&context, &program),
            trigger_values: None,
            row_count: 0,
            handled: None,
            located: false,
            settings_version: context.session.settings_version(),
            label: None,
            line: 0,
            statement: "",
            program,
            context,
            tx,
            control,
        };
        let found = frame.program.tree.found;
        frame.values[found] = Datum::Bool(false);
        Ok(frame)
    }
}

impl Frame<'_> {
    /// Where a loop continues whose body ended with `flow`: `None` for the next round.
    #[inline]
    pub fn after_round(&self, flow: StatementFlow, body: &Loop) -> Option<StatementFlow> {
        let is_own = || self.label.is_none() || self.label == body.label;
        match flow {
            StatementFlow::Next => None,
            StatementFlow::Continue if is_own() => None,
            StatementFlow::Exit if is_own() => Some(StatementFlow::Next),
            other => Some(other),
        }
    }

    pub fn set_found(&mut self, found: bool) {
        let variable = self.program.tree.found;
        self.values[variable] = Datum::Bool(found);
    }

    /// A statement before may have changed the catalog, and settings.
    pub fn refresh(&mut self) {
        let now = self.tx.catalog();
        let settings_version = self.context.session.settings_version();
        if Arc::ptr_eq(&now, &self.context.catalog) && settings_version == self.settings_version {
            return;
        }
        let mut context = StatementContext { catalog: now, ..StatementContext::clone(&self.context) };
        context.look_at_settings();
        self.settings_version = settings_version;
        self.move_to(Arc::new(context), self.evaluation.view());
    }

    /// What was analyzed in the old context may have another meaning in the new one.
    fn move_to(&mut self, context: Arc<StatementContext>, view: ReadView) {
        self.context = context;
        self.prepared.fill(None);
        self.places.fill(None);
        self.evaluation = Evaluation::new(self.context.clone(), self.tx.engine.clone(), view, Arc::from([]), NoSubPlans);
    }

    /// COMMIT and ROLLBACK.
    pub fn end_transaction(&mut self, commit: bool, chain: bool) -> Result<()> {
        let context = self.control.end_transaction(commit, chain)?;
        self.go_on_in(context)
    }

    /// A called procedure may have ended the transaction.
    pub fn follow_transaction(&mut self) -> Result<()> {
        let Some(session) = self.control.session() else {
            self.refresh();
            return Ok(());
        };
        let context = session.surroundings();
        let is_same = context.tx.as_ref().is_some_and(|tx| Arc::ptr_eq(tx, &self.tx));
        if is_same {
            self.refresh();
            return Ok(());
        }
        self.go_on_in(context)
    }

    fn go_on_in(&mut self, context: Arc<StatementContext>) -> Result<()> {
        self.tx = context.tx.clone().ok_or_else(|| DbError::internal("no transaction is open"))?;
        self.settings_version = context.session.settings_version();
        let view = self.tx.engine.statement_view();
        self.move_to(context, view);
        Ok(())
    }

    pub fn is_domain(&self, ty: Oid) -> bool {
        self.context.catalog.base_type(ty) != ty
    }

    /// The expression is to be analyzed again.
    pub fn forget(&mut self, e: &Expression) {
        self.prepared[e.number] = None;
        self.program.prepared.lock()[e.number] = None;
    }

    /// The view of expressions that read tables: the newest, or the caller's.
    pub fn renew_view(&self) {
        if self.view.is_none() {
            self.evaluation.set_view(self.tx.engine.statement_view());
        }
    }

    /// The error with the line of the statement that it came from.
    pub fn locate(&mut self, e: DbError, statement: &PlpgsqlStatement) -> DbError {
        if std::mem::replace(&mut self.located, true) {
            return e;
        }
        e.within(self.place(statement.line, statement.name))
    }

    /// Until it is dropped, the present statement is one that runs functions of others, by the piece of SQL.
    pub fn enter(&self, piece: Option<(&'static str, Arc<str>)>) -> Entered {
        let (function, line, statement) = (self.program.name.clone(), self.line, self.statement);
        error_context::enter(ErrorContext::PlPgSql { function, line, statement, piece })
    }

    pub fn place(&self, line: u32, what: &str) -> String {
        format!("PL/pgSQL function {} line {line} at {what}", self.program.name)
    }
}
