//! The context of statements that define objects.

use crate::progress::{LongCommand, ProgressReport};
use std::ops::Deref;
use std::sync::Arc;

use melba_catalog::{Catalog, Function, ObjectAddress};
use melba_engine::RelationLockMode;
use melba_fmgr::Session;
use melba_types::{Oid, Result};
use pg_query::protobuf::Node;

use crate::lookup::{Lookup, LookupSession};

/// What definitions ask of the session besides lookups.
pub trait DdlSession: LookupSession {
    /// The session over another catalog, on behalf of an object's owner.
    fn over_as_owner(&self, catalog: Arc<Catalog>, owner: Oid) -> Arc<dyn Session>;
    /// The stored form of a role's password (a given verifier is kept unchanged); `None` for an empty password.
    fn stored_password(&self, role: &str, password: &str) -> Result<Option<String>>;
    /// The text of the arguments of SET.
    fn setting_text(&self, name: &str, args: &[Node]) -> Result<String>;
    /// Whether the user may keep a value of a setting for later sessions, see `melba_settings::Settings::check_kept`.
    fn check_kept_setting(&self, name: &str, text: Option<&str>) -> Result<()>;
    /// Checks a new function by the rules of its language, if its body is a text. `catalog` has it already.
    fn check_function(&self, catalog: Arc<Catalog>, function: &Arc<Function>, text: StatementText<'_>) -> Result<()>;
    /// Keeps the action for a temporary table when the transaction commits.
    fn on_commit(&self, table: Oid, action: OnCommit);
    /// Objects are about to be dropped: event triggers may ask for them afterwards.
    fn dropping(&self, objects: &[Dropped]);
    /// The rows of a table are about to be written again: fires the event triggers of that.
    fn rewriting(&self, table: Oid, reason: RewriteReason) -> Result<()>;
    /// A long statement begins to work on a relation.
    fn begin_progress(&self, command: LongCommand, relation: Oid) -> Box<dyn ProgressReport>;
}

/// An object that a statement drops.
#[derive(Clone, Copy, Debug)]
pub struct Dropped {
    pub address: ObjectAddress,
    /// The statement names it.
    pub original: bool,
    /// Another object depended on it in the usual way.
    pub normal: bool,
}

/// The reason why a table's rows are written again, as pg_event_trigger_table_rewrite_reason() returns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RewriteReason {
    Persistence = 1,
    /// A new column has a volatile default.
    Default = 2,
    ColumnType = 4,
}

/// The action on a temporary table when its transaction commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnCommit {
    DeleteRows,
    Drop,
}

/// A statement's text, in which the bodies of functions are found, and where in the query string it begins.
#[derive(Clone, Copy, Default)]
pub struct StatementText<'a> {
    pub text: &'a str,
    pub start: usize,
}

/// The context of a defining statement: a lookup, and what only definitions need.
#[derive(Clone, Copy)]
pub struct Ddl<'a> {
    lookup: Lookup<'a>,
    session: &'a dyn DdlSession,
    text: StatementText<'a>,
}

impl<'a> Ddl<'a> {
    pub fn new(lookup: Lookup<'a>, session: &'a dyn DdlSession, text: StatementText<'a>) -> Ddl<'a> {
        Ddl { lookup, session, text }
    }

    /// The same for a statement that locks its relations in a mode.
    pub fn with_target_lock(self, lock: RelationLockMode) -> Ddl<'a> {
        Ddl { lookup: self.lookup.with_target_lock(lock), ..self }
    }

    /// The same with another search path.
    pub fn with_path<'b>(&'b self, path: &'b [Oid], creation: Option<Oid>) -> Ddl<'b> {
        Ddl { lookup: self.lookup.with_path(path, creation), ..*self }
    }

    pub fn text(&self) -> StatementText<'a> {
        self.text
    }

    /// The session over the present catalog, on behalf of an object's owner.
    pub fn session_of_owner(&self, owner: Oid) -> Arc<dyn Session> {
        self.session.over_as_owner(self.catalog(), owner)
    }

    /// The text of the arguments of SET.
    pub fn setting_text(&self, name: &str, args: &[Node]) -> Result<String> {
        self.session.setting_text(name, args)
    }

    /// Whether the user may keep a value of a setting for later sessions; `None`: whether one that was kept may be removed.
    pub(crate) fn check_kept_setting(&self, name: &str, text: Option<&str>) -> Result<()> {
        self.session.check_kept_setting(name, text)
    }

    /// The stored form of a role's password; `None` for an empty one.
    pub fn stored_password(&self, role: &str, password: &str) -> Result<Option<String>> {
        self.session.stored_password(role, password)
    }

    /// Checks a new function, which the catalog has, by the rules of its language.
    pub fn check_function(&self, function: &Arc<Function>) -> Result<()> {
        self.session.check_function(self.catalog(), function, self.text)
    }

    /// Objects are about to be dropped.
    pub fn dropping(&self, objects: &[Dropped]) {
        self.session.dropping(objects);
    }

    /// The rows of a table are about to be written again.
    pub fn rewriting(&self, table: Oid, reason: RewriteReason) -> Result<()> {
        self.session.rewriting(table, reason)
    }

    /// A long statement begins to work on a relation.
    pub fn begin_progress(&self, command: LongCommand, relation: Oid) -> Box<dyn ProgressReport> {
        self.session.begin_progress(command, relation)
    }

    /// Keeps the action for a temporary table when the transaction commits.
    pub fn on_commit(&self, table: Oid, action: OnCommit) {
        self.session.on_commit(table, action);
    }
}

impl<'a> Deref for Ddl<'a> {
    type Target = Lookup<'a>;

    fn deref(&self) -> &Lookup<'a> {
        &self.lookup
    }
}
