//! The context of utility statements: the session as `melba_ddl` uses it, and the rest of it for statements that need more.

use std::sync::Arc;

use melba_catalog::{Catalog, Function, classes};
use melba_engine::RelationLockMode;
use melba_fmgr::Session as FunctionSession;
use melba_protocol::password::{self, Encryption};
use melba_types::{Oid, Result, Severity, bail, err};

use super::context::StatementContext;
use super::execution::Parameters;
use super::language::{Within, language_of};
use melba_ddl::Ddl;
use melba_transaction::Tx;

/// The context of a utility statement.
pub(super) struct Utility<'a> {
    pub context: &'a StatementContext,
    pub tx: &'a Arc<Tx>,
    pub ddl: &'a Ddl<'a>,
    pub parameters: Parameters<'a>,
}

pub(super) fn with_ddl<T>(
    context: &StatementContext,
    tx: &Arc<Tx>,
    (source, start): (&str, usize),
    f: impl FnOnce(&Ddl<'_>) -> T,
) -> T {
    let session_for =
        |catalog: Arc<Catalog>| -> Arc<dyn FunctionSession> { Arc::new(StatementContext { catalog, ..context.clone() }) };
    let maintainer = |catalog: Arc<Catalog>, owner: Oid| -> Arc<dyn FunctionSession> {
        Arc::new(StatementContext { catalog, ..context.clone() }.maintaining(owner))
    };
    let temporary_namespace = || temporary_namespace(context, tx);
    let check_function = |function: &Arc<Function>| {
        if !classes::is_written_language(function.language) {
            return Ok(());
        }
        let now = StatementContext { catalog: tx.catalog(), ..context.clone() };
        language_of(function)?.check(&now, function, Within { statement: source, start })
    };
    let stored_password = |role: &str, password: &str| stored_password(context, role, password);
    let on_commit = |table: Oid, action| context.session.on_commit.lock().push((table, action));
    f(&Ddl {
        tx,
        session: context,
        session_for: &session_for,
        maintainer: &maintainer,
        path: &context.path.path,
        creation_namespace: context.path.creation,
        temporary: context.path.temporary,
        temporary_namespace: &temporary_namespace,
        user: context.user.oid,
        session_user: context.user.session_oid,
        stored_password: &stored_password,
        check_function: &check_function,
        on_commit: &on_commit,
        source,
        start,
        lock: RelationLockMode::AccessExclusive,
    })
}

/// The session's temporary schema, made when it is first needed.
pub(super) fn temporary_namespace(context: &StatementContext, tx: &Tx) -> Result<Oid> {
    if context.user.restricted {
        bail!(INSUFFICIENT_PRIVILEGE, "cannot create temporary table within security-restricted operation");
    }
    let mut held = context.session.temporary_namespace.lock();
    // A rollback may have taken it away again.
    if held.is_valid() && tx.catalog().namespace(*held).is_some() {
        return Ok(*held);
    }
    let name = format!("pg_temp_{}", context.session.pid);
    let catalog = tx.catalog();
    let oid = match catalog.namespace_by_name(&name) {
        Some(namespace) => namespace.oid,
        None => Ddl::create_temporary_schema(tx, &name, melba_catalog::classes::POSTGRES_ROLE),
    };
    *held = oid;
    Ok(oid)
}

/// The form in which a role stores a password, by the session's settings.
fn stored_password(context: &StatementContext, role: &str, password: &str) -> Result<Option<String>> {
    let mut salt = [0; 16];
    context.fill_random(&mut salt)?;
    let settings = context.session.settings.lock();
    let encryption = match settings.get("password_encryption").as_text() {
        "md5" => Encryption::Md5,
        _ => {
            let iterations = settings.get("scram_iterations").as_integer().max(1) as u32;
            Encryption::ScramSha256 { salt, iterations }
        }
    };
    let warns = settings.get("md5_password_warnings").as_bool();
    drop(settings);
    let stored = password::stored(role, password, &encryption);
    if warns && stored.as_deref().is_some_and(password::is_md5) {
        let warning = err!(WARNING_DEPRECATED_FEATURE, "setting an MD5-encrypted password").severity(Severity::Warning);
        let detail = "MD5 password support is deprecated and will be removed in a future release of PostgreSQL.";
        let hint = "Refer to the PostgreSQL documentation for details about migrating to another password type.";
        FunctionSession::notice(context, warning.detail(detail).hint(hint));
    }
    Ok(stored)
}
