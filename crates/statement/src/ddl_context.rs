//! The context of utility statements, and the session as `melba_ddl` sees it.

use std::sync::Arc;

use melba_catalog::{Catalog, Function, classes};
use melba_definition::context::{Ddl, DdlSession, Dropped, OnCommit, RewriteReason, StatementText};
use melba_definition::lookup::{Lookup, LookupSession, Schemas};
use melba_definition::progress::{LongCommand, ProgressReport};
use melba_fmgr::Session as FunctionSession;
use melba_protocol::password::{self, PasswordEncryption};
use melba_transaction::Tx;
use melba_types::{Oid, Result, Severity, bail, err};
use pg_query::protobuf::Node;

use super::context::{SessionState, StatementContext};
use super::execution::Parameters;
use super::language::{Within, language_of};
use super::local_settings::LocalSettings;
use super::names::SearchPath;
use super::progress::Running;
use super::setting_text::argument_text;
use super::{event_state, event_trigger};

/// The context of a utility statement.
pub(super) struct Utility<'a> {
    pub context: &'a StatementContext,
    pub tx: &'a Arc<Tx>,
    pub lookup: Lookup<'a>,
    pub text: StatementText<'a>,
    pub parameters: Parameters<'a>,
}

impl<'a> Utility<'a> {
    /// The context of a statement that also defines objects.
    pub fn ddl(&self) -> Ddl<'a> {
        Ddl::new(self.lookup, self.context, self.text)
    }
}

pub fn lookup<'a>(context: &'a StatementContext, tx: &'a Arc<Tx>) -> Lookup<'a> {
    let SearchPath { path, creation, temporary, .. } = &*context.path;
    Lookup::new(tx, context, Schemas { path, creation: *creation, temporary: *temporary })
}

pub fn ddl<'a>(context: &'a StatementContext, tx: &'a Arc<Tx>, text: StatementText<'a>) -> Ddl<'a> {
    Ddl::new(lookup(context, tx), context, text)
}

impl LookupSession for StatementContext {
    fn over(&self, catalog: Arc<Catalog>) -> Arc<dyn FunctionSession> {
        Arc::new(StatementContext { catalog, ..self.clone() })
    }

    fn create_temporary_namespace(&self, tx: &Tx) -> Result<Oid> {
        if self.user.restricted {
            bail!(INSUFFICIENT_PRIVILEGE, "cannot create temporary table within security-restricted operation");
        }
        let mut held = self.session.temporary_namespace.lock();
        // A rollback may have taken it away again.
        if held.is_valid() && tx.catalog().namespace(*held).is_some() {
            return Ok(*held);
        }
        let name = temporary_name(&self.session);
        let catalog = tx.catalog();
        let oid = match catalog.namespace_by_name(&name) {
            Some(namespace) => namespace.oid,
            None => melba_ddl::create_temporary_schema(tx, &name, classes::POSTGRES_ROLE),
        };
        *held = oid;
        Ok(oid)
    }

    fn session_user(&self) -> Oid {
        self.user.session_oid
    }
}

/// The name of a session's temporary schema.
pub(super) fn temporary_name(session: &SessionState) -> String {
    format!("pg_temp_{}", session.pid)
}

impl DdlSession for StatementContext {
    fn over_as_owner(&self, catalog: Arc<Catalog>, owner: Oid) -> Arc<dyn FunctionSession> {
        Arc::new(StatementContext { catalog, ..self.clone() }.maintaining(owner))
    }

    fn stored_password(&self, role: &str, password: &str) -> Result<Option<String>> {
        stored_password(self, role, password)
    }

    fn setting_text(&self, name: &str, args: &[Node]) -> Result<String> {
        argument_text(&self.session.settings.lock(), name, args)
    }

    fn check_kept_setting(&self, name: &str, text: Option<&str>) -> Result<()> {
        self.session.settings.lock().check_kept(name, text)
    }

    fn check_function(&self, catalog: Arc<Catalog>, function: &Arc<Function>, text: StatementText<'_>) -> Result<()> {
        // Values of settings are checked with the body.
        let checks_bodies = self.setting("check_function_bodies").as_deref() != Some("off");
        let _settings = match checks_bodies && !function.config.is_empty() {
            true => Some(LocalSettings::set(self, function)?),
            false => None,
        };
        if !classes::is_written_language(function.language) {
            return Ok(());
        }
        let now = StatementContext { catalog, ..self.clone() };
        language_of(function)?.check(&now, function, Within { statement: text.text, start: text.start })
    }

    fn on_commit(&self, table: Oid, action: OnCommit) {
        self.session.on_commit.lock().push((table, action));
    }

    fn dropping(&self, objects: &[Dropped]) {
        event_state::note_dropped(self, objects);
    }

    fn rewriting(&self, table: Oid, reason: RewriteReason) -> Result<()> {
        event_trigger::before_rewrite(self, table, reason)
    }

    fn begin_progress(&self, command: LongCommand, relation: Oid) -> Box<dyn ProgressReport> {
        match Running::begin_within(&self.session.activity, command.into(), relation) {
            Some(running) => Box::new(running),
            None => Box::new(()),
        }
    }
}

/// PostgreSQL's MAX_ENCRYPTED_PASSWORD_LEN.
const STORED_PASSWORD_BYTES_MAX: usize = 512;

/// The form in which a role stores a password, by the session's settings.
fn stored_password(context: &StatementContext, role: &str, password: &str) -> Result<Option<String>> {
    let mut salt = [0; 16];
    context.fill_random(&mut salt)?;
    let settings = context.session.settings.lock();
    let encryption = match settings.get("password_encryption").as_text() {
        "md5" => PasswordEncryption::Md5,
        _ => {
            let iterations = settings.get("scram_iterations").as_integer().max(1) as u32;
            PasswordEncryption::ScramSha256 { salt, iterations }
        }
    };
    let warns = settings.get("md5_password_warnings").as_bool();
    drop(settings);
    let stored = password::stored(role, password, &encryption);
    if stored.as_ref().is_some_and(|stored| stored.len() > STORED_PASSWORD_BYTES_MAX) {
        let detail = format!("Encrypted passwords must be no longer than {STORED_PASSWORD_BYTES_MAX} bytes.");
        return Err(err!(PROGRAM_LIMIT_EXCEEDED, "encrypted password is too long").detail(detail));
    }
    if warns && stored.as_deref().is_some_and(password::is_md5) {
        let warning = err!(WARNING_DEPRECATED_FEATURE, "setting an MD5-encrypted password").severity(Severity::Warning);
        let detail = "MD5 password support is deprecated and will be removed in a future release of PostgreSQL.";
        let hint = "Refer to the PostgreSQL documentation for details about migrating to another password type.";
        FunctionSession::notice(context, warning.detail(detail).hint(hint));
    }
    Ok(stored)
}
