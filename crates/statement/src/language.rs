//! The languages of functions: how a session runs a function of each, and the state it keeps for one between calls.
//!
//! A new one is a row of pg_language (catalog/seed), a `Language`, and its place in `LANGUAGES` of `melba_sql`. Functions LANGUAGE internal are the
//! tables of `fmgr`; the text of LANGUAGE sql is checked by `ddl`, and inlined by `analyze` where it can be.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use melba_catalog::{Function, acl, classes};
use melba_fmgr::{PureRoutine, PureTrigger, RoutineCall, RoutineRows, TriggerCall};
use melba_types::{Datum, DbError, Oid, Result, err};

use super::context::{SessionState, StatementContext};
use super::control::Control;
use super::local_settings::LocalSettings;

/// What an event trigger's function learns of its event.
pub struct EventCall<'a> {
    pub event: &'a str,
    pub tag: &'a str,
}

/// The operations of a language. Positions of errors are bytes of the client's text, where the function's is part of it.
pub trait Language: Sync {
    /// Its row of pg_language.
    fn oid(&self) -> Oid;

    /// Checks a new function's types, and its text.
    fn check(&self, _context: &StatementContext, _function: &Arc<Function>, _within: Within<'_>) -> Result<()> {
        Ok(())
    }

    /// A call with the state that another one of the same statement has left; `None`: it starts afresh.
    fn value_again(&self, _caller: &StatementContext, _call: &RoutineCall<'_>) -> Option<Result<Datum>> {
        None
    }

    /// `Session::pure_routine` of a function of the language.
    fn pure_routine(
        &self,
        _caller: &StatementContext,
        _function: &Arc<Function>,
        _call: &RoutineCall<'_>,
    ) -> Result<Option<Box<dyn PureRoutine>>> {
        Ok(None)
    }

    /// The value of a function, or the output arguments of a procedure, which may end the transaction where `control` lets it.
    fn value(&self, called: Called, call: &RoutineCall<'_>, control: Control<'_>) -> Result<Datum>;

    /// The rows of a set-returning function.
    fn rows(&self, called: Called, call: &RoutineCall<'_>) -> Result<RoutineRows>;

    /// Runs a trigger's function, without rows that have names, with the state that another row of the same statement has left; `None`: it
    /// starts afresh.
    fn trigger_again(&self, _caller: &StatementContext, _call: &TriggerCall<'_>) -> Option<Result<Datum>> {
        None
    }

    /// `Session::pure_trigger` of a function of the language.
    fn pure_trigger(
        &self,
        _caller: &StatementContext,
        _function: &Arc<Function>,
        _call: &TriggerCall<'_>,
    ) -> Result<Option<Box<dyn PureTrigger>>> {
        Ok(None)
    }

    /// Runs a trigger's function: returns its row, or NULL.
    fn trigger(&self, called: Called, _call: &TriggerCall<'_>) -> Result<Datum> {
        let name = called.context.catalog.language_name(self.oid()).unwrap_or_default();
        Err(DbError::internal(format!("a trigger function in language \"{name}\"")))
    }

    /// Runs an event trigger's function.
    fn event_trigger(&self, called: Called, _call: &EventCall<'_>) -> Result<()> {
        let name = called.context.catalog.language_name(self.oid()).unwrap_or_default();
        Err(DbError::internal(format!("an event trigger's function in language \"{name}\"")))
    }

    /// Runs the text of a DO block.
    fn run_inline(&self, context: &Arc<StatementContext>, _text: &str, _within: Within<'_>, _control: Control<'_>) -> Result<()> {
        Err(no_inline_code(context.catalog.language_name(self.oid()).unwrap_or_default()))
    }

    /// A statement of the session has ended: the state kept for its calls may be dropped.
    fn end_statement(&self, _session: &SessionState) {}
}

/// A function that is called, and its surroundings.
pub struct Called {
    pub context: Arc<StatementContext>,
    pub function: Arc<Function>,
    /// Those that last as long as it runs. To be dropped before its result is used.
    pub settings: Option<LocalSettings>,
}

/// The statement that has a function's text, and where in the client's text it begins.
#[derive(Clone, Copy)]
pub struct Within<'a> {
    pub statement: &'a str,
    pub start: usize,
}

impl Within<'_> {
    /// An error whose position is a byte of `text`, with its position in the client's text; unchanged where `text` is not found there.
    pub fn located(self, mut e: DbError, text: &str) -> std::result::Result<DbError, DbError> {
        let Some(position) = e.fields().position else { return Ok(e) };
        match melba_parse::place_of_body(self.statement, text, position as usize - 1) {
            Some(at) => {
                e.fields_mut().position = Some((self.start + at) as u32 + 1);
                Ok(e)
            }
            None => Err(e),
        }
    }
}

static LANGUAGES: OnceLock<&'static [&'static dyn Language]> = OnceLock::new();

/// To be called before the first function is.
pub fn install(languages: &'static [&'static dyn Language]) {
    LANGUAGES.get_or_init(|| languages);
}

pub fn languages() -> impl Iterator<Item = &'static dyn Language> {
    LANGUAGES.get().copied().unwrap_or_default().iter().copied()
}

/// The language of a function.
pub(super) fn language_of(function: &Function) -> Result<&'static dyn Language> {
    let found = languages().find(|language| language.oid() == function.language);
    found.ok_or_else(|| DbError::internal(format!("function {} is of language {}", function.oid, function.language)))
}

/// The language of a DO block.
pub(super) fn language_named(context: &StatementContext, name: &str) -> Result<&'static dyn Language> {
    match context.catalog.language_by_name(name) {
        Some(_) if !context.catalog.may_use(context.user.oid, classes::PG_LANGUAGE, name, acl::USAGE) => {
            Err(err!(INSUFFICIENT_PRIVILEGE, "permission denied for language {name}"))
        }
        Some(oid) => languages().find(|language| language.oid() == oid).ok_or_else(|| no_inline_code(name)),
        None => Err(err!(UNDEFINED_OBJECT, "language \"{name}\" does not exist")),
    }
}

fn no_inline_code(language: &str) -> DbError {
    err!(FEATURE_NOT_SUPPORTED, "language \"{language}\" does not support inline code execution")
}

/// The state that a language keeps for a session between calls: compiled bodies, frames. Only the language's modules know its
/// type. Created at the first use.
#[derive(Default)]
pub struct LanguageState(OnceLock<Box<dyn Any + Send + Sync>>);

impl LanguageState {
    /// A language uses one type only.
    pub fn get<T: Default + Send + Sync + 'static>(&self) -> &T {
        self.0.get_or_init(|| Box::new(T::default())).downcast_ref().expect("a language asks for one type only")
    }

    /// The same, `None` when the session has not used the language yet.
    pub fn used<T: 'static>(&self) -> Option<&T> {
        self.0.get()?.downcast_ref()
    }
}
