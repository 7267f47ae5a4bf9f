//! The Parse message, and the prepared statements that it makes.

use std::sync::Arc;

use melba_protocol::frontend::Oids;
use melba_statement::client::Client;
use melba_statement::prepared::{Prepared, shape_changed};
use melba_statement::transaction::Block;
use melba_types::{Oid, Result, bail, err};

use super::Session;
use super::cache::{self, Cached};
use super::literals::bind_literals;
use super::preparation::{check_block, prepare_statement};

pub(super) fn parse_message(
    session: &mut Session,
    name: &str,
    text: &str,
    types: Oids<'_>,
    client: &mut dyn Client,
) -> Result<()> {
    session.begin_logging();
    session.set_source(&text.into());
    session.start_command()?;
    if name.is_empty() {
        // The old one is dropped even if this one fails.
        session.prepared.remove("");
    }
    session.tell_lexical_notices(text);
    let may_share = name.is_empty() && types.iter().next().is_none() && may_share_form(session, text);
    match if may_share { bind_literals(session, text)? } else { None } {
        Some(bound) => session.prepared.insert_literals(bound),
        None => prepare_text(session, name, text, types)?,
    }
    if let Some(transaction) = &mut session.transaction
        && session.prepared.get(name).is_some_and(|prepared| prepared.compiled.is_reusable())
    {
        // PostgreSQL's analysis takes a snapshot.
        transaction.used = true;
    }
    session.send_notices(client);
    session.end_logged_parse(name);
    client.output().parse_complete();
    Ok(())
}

/// A text without parameters may stand for all that differ from it in their literals, as a query string may. Texts that are logged
/// are not: the log has each step of theirs.
fn may_share_form(session: &mut Session, text: &str) -> bool {
    session.block != Block::Failed
        && session.derived.log.is_quiet
        && !text.contains('$')
        && with_key(session, text, std::iter::empty(), |session, key| session.cache.get(key).is_none())
}

/// Parse of a text that stands for itself.
fn prepare_text(session: &mut Session, name: &str, text: &str, types: Oids<'_>) -> Result<()> {
    with_key(session, text, types.iter(), |session, key| parse_known(session, key, name, text, types))
}

/// Calls `of` with the cache's key of a text.
fn with_key<T>(
    session: &mut Session,
    text: &str,
    types: impl Iterator<Item = Oid>,
    of: impl FnOnce(&mut Session, &[u8]) -> T,
) -> T {
    let mut key = std::mem::take(&mut session.normalized.key);
    cache::parse_key(text, types, &mut key);
    let result = of(session, &key);
    session.normalized.key = key;
    result
}

/// Parse, with the cache entry of its key.
fn parse_known(session: &mut Session, key: &[u8], name: &str, text: &str, types: Oids<'_>) -> Result<()> {
    let (parsed, known) = match session.cache.get(key) {
        Some(Cached::Query { parsed, prepared }) => (parsed.clone(), prepared.clone()),
        _ => (Arc::new(session.parse_text(text)?), None),
    };
    if parsed.statements.len() > 1 {
        bail!(SYNTAX_ERROR, "cannot insert multiple commands into a prepared statement");
    }
    let statement = parsed.statements.first();
    if let Some(statement) = statement {
        check_block(session, statement)?;
    }
    // Named statements are shown with their own time and counts.
    let known = known.filter(|p| name.is_empty() && p.compiled.is_for(session.context()));
    let prepared = match known {
        Some(prepared) => prepared,
        None => {
            let types: Vec<Oid> = types.iter().collect();
            let catalog = session.current_catalog();
            if let Some(ty) = types.iter().find(|ty| ty.is_valid() && catalog.type_(**ty).is_none()) {
                bail!(INTERNAL_ERROR, "cache lookup failed for type {ty}");
            }
            let prepared = Arc::new(prepare_statement(session, statement.cloned(), &types)?);
            let reusable = prepared.compiled.is_reusable() && name.is_empty();
            session.cache.put(key, Cached::Query { parsed, prepared: reusable.then(|| prepared.clone()) });
            prepared
        }
    };
    if !name.is_empty() && session.prepared.get(name).is_some() {
        bail!(DUPLICATE_PSTATEMENT, "prepared statement \"{name}\" already exists");
    }
    session.prepared.insert(name, prepared);
    Ok(())
}

pub(super) fn find_prepared(session: &Session, name: &str) -> Result<Arc<Prepared>> {
    match session.prepared.get(name) {
        Some(prepared) => Ok(prepared),
        None if name.is_empty() => Err(err!(UNDEFINED_PSTATEMENT, "unnamed prepared statement does not exist")),
        None => {
            let error = err!(UNDEFINED_PSTATEMENT, "prepared statement \"{name}\" does not exist");
            // Clients prepare again when they see it.
            Err(error.routine("FetchPreparedStatement"))
        }
    }
}

/// Analyzes a prepared statement again when the catalog changed under it. Its result must keep its shape.
pub(super) fn revalidate(session: &mut Session, name: &str, prepared: Arc<Prepared>) -> Result<Arc<Prepared>> {
    if session.block == Block::Failed || prepared.compiled.is_current(session.context()) {
        return Ok(prepared);
    }
    let literals = session.prepared.literals(name).cloned();
    let fresh = match &literals {
        // The literals may have other types now.
        Some(literals) => {
            prepare_text(session, name, &literals.source(), Oids::default())?;
            find_prepared(session, name)?
        }
        None => {
            let mut fresh = prepare_statement(session, prepared.statement.clone(), &prepared.parameter_types)?;
            (fresh.from_sql, fresh.prepared_at) = (prepared.from_sql, prepared.prepared_at);
            Arc::new(fresh)
        }
    };
    if !fresh.has_shape_of(&prepared) {
        if let Some(literals) = literals {
            session.prepared.insert_literals(literals);
        }
        return Err(shape_changed());
    }
    session.prepared.insert(name, fresh.clone());
    Ok(fresh)
}
