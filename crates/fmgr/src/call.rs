//! A function's context: its call, and its session.

use std::sync::Arc;
use std::time::Duration;

use melba_catalog::Catalog;
use melba_catalog::relations::{LiveInfo, NoLiveInfo};
use melba_encoding::Encoding;
use melba_types::datetime::{DateOrder, DateStyle, IntervalStyle};
use melba_types::{Batch, Csn, Datum, Oid, Result};

use super::files::{FileRequest, FileRows};
use super::trigger::{PureTrigger, TransitionTable, TriggerCall};

/// A call as its function sees it (PostgreSQL's FunctionCallInfo).
pub struct CallInfo<'a> {
    pub session: &'a dyn Session,
    /// Types of the actual arguments (polymorphic functions look here).
    pub arg_types: &'a [Oid],
    pub return_type: Oid,
    /// Collation of the call, 0 when none.
    pub collation: Oid,
    /// The last arguments were passed with VARIADIC, as an array.
    pub variadic: bool,
    /// The column definition list of a function in FROM that returns `record`.
    pub columns: Option<&'a [RowColumn]>,
    /// The calling statement's view, as in `RoutineCall`: for functions that call others. A caller whose functions call none
    /// passes `NO_VIEW`.
    pub view: (Csn, u32),
}

impl CallInfo<'_> {
    pub const NO_VIEW: (Csn, u32) = (Csn(0), 0);
}

/// A user's function that neither reads nor changes the database, and tells the client nothing.
pub trait PureRoutine: Send {
    fn run(&mut self, args: &[Datum]) -> Result<Datum>;
}

/// A column of a row type.
#[derive(Clone, Debug)]
pub struct RowColumn {
    pub name: Arc<str>,
    pub ty: Oid,
    pub typmod: i32,
}

/// A call of a function that a user wrote. The session runs it: this crate knows neither statements nor their views.
pub struct RoutineCall<'a> {
    pub function: Oid,
    pub args: &'a [Datum],
    /// Of the arguments and the result: the actual types of polymorphic ones.
    pub arg_types: &'a [Oid],
    pub return_type: Oid,
    /// Of the call, 0 when none: that of the body's parameters and variables without one of their own.
    pub collation: Oid,
    /// The column definition list of a function in FROM that returns `record`.
    pub columns: Option<&'a [RowColumn]>,
    /// The calling statement's view: commits up to a number, and its own transaction's commands before one.
    pub view: (Csn, u32),
}

/// The rows of a function that a user wrote, each as one value.
pub type RoutineRows = Box<dyn Iterator<Item = Result<Datum>> + Send>;

/// The types of a query's columns, and its rows.
pub type QueryRows = (Vec<Oid>, Vec<Vec<Datum>>);

/// The session as functions see it. One implementation, in `melba-sql`; tests use a fixed one.
pub trait Session: Send + Sync {
    fn catalog(&self) -> &Arc<Catalog>;
    /// Data of the system relations beyond the catalog.
    fn live_info(&self) -> &dyn LiveInfo {
        &NoLiveInfo
    }
    /// The ctid of a table's row on which a cursor stands; `None` when it stands on another table's of its family.
    fn cursor_row(&self, _cursor: &str, _table: Oid) -> Result<Option<i64>> {
        Err(melba_types::DbError::internal("WHERE CURRENT OF without a session"))
    }
    /// current_user, whose privileges count. Without a session, the superuser that every cluster starts with.
    fn user(&self) -> Oid {
        melba_catalog::classes::POSTGRES_ROLE
    }
    /// Namespaces that bare names are looked up in, in order, pg_catalog included.
    fn search_path(&self) -> Vec<Oid> {
        const PG_CATALOG: Oid = Oid(11);
        const PUBLIC: Oid = Oid(2200);
        vec![PG_CATALOG, PUBLIC]
    }
    /// Settings that formatting depends on.
    fn format(&self) -> &FormatSettings;
    /// The value of any setting as SHOW prints it.
    fn setting(&self, name: &str) -> Option<String>;
    /// The value of a numeric setting in its own unit (work_mem: kilobytes).
    fn setting_number(&self, _name: &str) -> Option<f64> {
        None
    }
    /// Whether a setting was set explicitly: it is neither a default nor derived from others.
    fn setting_is_given(&self, _name: &str) -> bool {
        true
    }
    /// Microseconds since 2000-01-01: start of the transaction, of the statement, and now.
    fn transaction_timestamp(&self) -> i64;
    fn statement_timestamp(&self) -> i64;
    fn clock_timestamp(&self) -> i64;
    /// Monotonic time since an arbitrary start, for durations.
    fn monotonic(&self) -> Duration;
    /// The next number of the session's generator, which setseed() restarts.
    fn random_u64(&self) -> u64;
    /// Fills a buffer with unpredictable bits: UUIDs, keys, salts.
    ///
    /// # Errors
    /// XX000 without a source of them.
    fn fill_random(&self, bytes: &mut [u8]) -> Result<()>;
    fn notice(&self, notice: melba_types::DbError);
    /// Everything that reaches beyond values (sequences, locks, large objects, sizes, backend control): implemented by
    /// name in `melba-sql`, so that this crate needs no engine.
    fn system_function(&self, source: &str, call: &CallInfo<'_>, args: &[Datum]) -> Result<Datum>;
    /// Checks the one column of a batch by the constraints of a domain, which are SQL expressions.
    ///
    /// # Errors
    /// 23502 and 23514 for the first value that breaks a constraint; any error of a check.
    fn check_domain(&self, domain: Oid, _values: &Batch) -> Result<()> {
        Err(melba_types::DbError::unsupported(format!("checking values of domain {domain}")))
    }
    /// Rows of set-returning functions about the running server (`system`), by name.
    fn system_rows(&self, source: &str, _call: &CallInfo<'_>, _args: &[Datum]) -> Result<Vec<Vec<Datum>>> {
        Err(melba_types::DbError::unsupported(format!("function {source}")))
    }
    /// The columns of the files that a function reads, by its arguments.
    fn file_columns(&self, source: &str, _args: &[Datum]) -> Result<Vec<RowColumn>> {
        Err(melba_types::DbError::unsupported(format!("function {source}")))
    }
    /// The rows of files.
    fn open_files(self: Arc<Self>, request: FileRequest) -> Result<Box<dyn FileRows>> {
        drop(request);
        Err(melba_types::DbError::unsupported("reading files here"))
    }
    /// The value of a function that a user wrote.
    fn call_routine(&self, call: &RoutineCall<'_>) -> Result<Datum> {
        Err(melba_types::DbError::unsupported(format!("function {} here", call.function)))
    }
    /// The rows of a set-returning function that a user wrote, each computed on demand.
    fn routine_rows(&self, call: &RoutineCall<'_>) -> Result<RoutineRows> {
        Err(melba_types::DbError::unsupported(format!("function {} here", call.function)))
    }
    /// The rows of a query that a text holds, in the calling statement's view (`CallInfo::view`).
    fn query_rows(&self, _text: &str, _view: (Csn, u32)) -> Result<QueryRows> {
        Err(melba_types::DbError::unsupported("a query in a function's argument here"))
    }
    /// Runs a trigger's function: returns its row, or NULL.
    fn call_trigger(&self, call: &TriggerCall<'_>) -> Result<Datum> {
        Err(melba_types::DbError::unsupported(format!("trigger {} here", call.trigger.name)))
    }
    /// The function of a call, if it is pure: for the calls with other arguments that follow at once.
    fn pure_routine(&self, _call: &RoutineCall<'_>) -> Result<Option<Box<dyn PureRoutine>>> {
        Ok(None)
    }
    /// A trigger's function, if it is pure. For the rows that are at hand: what is evaluated after them may change the function.
    fn pure_trigger(&self, _call: &TriggerCall<'_>) -> Result<Option<Box<dyn PureTrigger>>> {
        Ok(None)
    }
    /// The rows that the statement of the running trigger function has changed, by the name in REFERENCING.
    fn transition_table(&self, _name: &str) -> Option<Arc<dyn TransitionTable>> {
        None
    }
    /// Whether a trigger runs that a statement on the relation, or on a partition of it, has fired.
    fn is_in_use(&self, _relation: Oid) -> bool {
        false
    }
    /// Whether session_replication_role is replica.
    fn is_replica(&self) -> bool {
        false
    }
    /// A function's SQL-standard body in its displayed form.
    fn shown_body(&self, function: &melba_catalog::Function) -> Result<String> {
        Ok(function.sql_body.as_deref().unwrap_or_default().to_owned())
    }
    /// An expression's stored text in its displayed form: names that the search path finds without their schema, and if `pretty`
    /// without needless parentheses. `relation` is the one whose columns it mentions (or the domain it checks), or 0.
    fn shown_expression(&self, text: &str, _relation: Oid, _pretty: bool) -> Result<String> {
        Ok(text.to_owned())
    }
    /// A view's query as pg_get_viewdef shows it.
    fn shown_query(&self, view: &melba_catalog::Relation, _pretty: bool) -> Result<String> {
        Ok(view.view_query.as_deref().unwrap_or_default().to_owned())
    }
    /// A rule as pg_get_ruledef shows it.
    fn shown_rule(&self, rule: &melba_catalog::RewriteRule, _pretty: bool) -> Result<String> {
        Ok(rule.actions.join(";"))
    }
    /// NOTIFY.
    fn notify(&self, _channel: &str, _payload: &str) -> Result<()> {
        Err(melba_types::DbError::unsupported("NOTIFY here"))
    }
    /// Whether an enum's label was added by a transaction that has not ended: it is not to be used yet.
    fn is_uncommitted_label(&self, _enum_type: Oid, _label: Oid) -> bool {
        false
    }
    /// The schema of the session's temporary objects, or 0.
    fn temporary_namespace(&self) -> Oid {
        Oid::INVALID
    }
    /// Raises 57014 when the statement was cancelled; long loops call it now and then.
    fn check_interrupt(&self) -> Result<()>;
}

/// Settings that input and output of values depend on.
#[derive(Clone, Debug, PartialEq)]
pub struct FormatSettings {
    pub date_style: DateStyle,
    pub date_order: DateOrder,
    pub interval_style: IntervalStyle,
    /// IANA name, abbreviation or POSIX form, as set.
    pub time_zone: Arc<str>,
    pub extra_float_digits: i32,
    /// bytea_output = hex (else escape).
    pub bytea_hex: bool,
    pub xml_document: bool,
    /// The encoding of texts in binary values.
    pub client_encoding: Encoding,
}
