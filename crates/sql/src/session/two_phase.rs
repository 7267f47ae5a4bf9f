//! PREPARE TRANSACTION, COMMIT PREPARED, ROLLBACK PREPARED.

use melba_statement::outcome::Outcome;
use melba_statement::transaction::Block;
use melba_transaction::prepared::Finisher;
use melba_types::{DbError, Result, bail, err};

use super::Session;

/// Longer identifiers are refused.
const IDENTIFIER_BYTES: usize = 200;

fn done(tag: &str) -> Result<Outcome> {
    Ok(Outcome::Done { tag: tag.to_owned() })
}

pub(super) fn run_prepare_transaction(session: &mut Session, identifier: &str) -> Result<Outcome> {
    let block = std::mem::replace(&mut session.block, Block::None);
    match block {
        Block::None | Block::Implicit => {
            session.state.warning(err!(NO_ACTIVE_SQL_TRANSACTION, "there is no transaction in progress"));
            session.roll_back_transaction();
            done("ROLLBACK")
        }
        Block::Failed => {
            session.roll_back_transaction();
            done("ROLLBACK")
        }
        // The block ends, whatever the result.
        Block::Explicit => {
            session.run_deferred_checks()?;
            if identifier.len() >= IDENTIFIER_BYTES {
                bail!(INVALID_PARAMETER_VALUE, "transaction identifier \"{identifier}\" is too long");
            }
            prepare_transaction(session, identifier)?;
            done("PREPARE TRANSACTION")
        }
    }
}

fn prepare_transaction(session: &mut Session, identifier: &str) -> Result<()> {
    let cluster = session.state.instance.cluster.clone();
    cluster.prepared.check_enabled()?;
    let mut has_held_cursor = false;
    session.state.portals.each(
        |p| p.hold && !p.held,
        |_| {
            has_held_cursor = true;
            Ok(())
        },
    )?;
    if has_held_cursor {
        bail!(FEATURE_NOT_SUPPORTED, "cannot PREPARE a transaction that has created a cursor WITH HOLD");
    }
    session.state.portals.retain(|p| p.hold || p.pinned);
    session.run_on_commit()?;
    let Some(tx) = session.transaction.as_ref().map(|t| t.tx.clone()) else { return Ok(()) };
    let Some(engine) = session.state.engine().successor()? else {
        return Err(DbError::unsupported("PREPARE TRANSACTION in a session that holds advisory locks of its own"));
    };
    tx.prepare(identifier, session.context().user.oid)?;
    session.state.set_engine(engine);
    session.detach_transaction();
    Ok(())
}

fn finisher(session: &mut Session) -> Finisher {
    let user = session.context().user.clone();
    Finisher { user: user.oid, superuser: user.superuser, database: session.state.database_oid }
}

pub(super) fn run_commit_prepared(session: &mut Session, identifier: &str) -> Result<Outcome> {
    let who = finisher(session);
    session.state.instance.cluster.commit_prepared(identifier, &who)?;
    done("COMMIT PREPARED")
}

pub(super) fn run_rollback_prepared(session: &mut Session, identifier: &str) -> Result<Outcome> {
    let who = finisher(session);
    session.state.instance.cluster.rollback_prepared(identifier, &who)?;
    done("ROLLBACK PREPARED")
}
