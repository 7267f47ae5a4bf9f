//! PREPARE TRANSACTION, COMMIT PREPARED, ROLLBACK PREPARED.

use melba_transaction::prepared::Finisher;
use melba_types::{Datum, DbError, Result, bail, err};

use super::Session;
use super::context::StatementContext;
use super::outcome::Outcome;
use super::transaction::Block;

/// Longer identifiers are refused.
const IDENTIFIER_BYTES: usize = 200;

fn done(tag: &str) -> Result<Outcome> {
    Ok(Outcome::Done { tag: tag.to_owned() })
}

impl Session {
    pub(super) fn run_prepare_transaction(&mut self, identifier: &str) -> Result<Outcome> {
        let block = std::mem::replace(&mut self.block, Block::None);
        match block {
            Block::None | Block::Implicit => {
                self.state.warning(err!(NO_ACTIVE_SQL_TRANSACTION, "there is no transaction in progress"));
                self.roll_back_transaction();
                done("ROLLBACK")
            }
            Block::Failed => {
                self.roll_back_transaction();
                done("ROLLBACK")
            }
            // The block ends, whatever the result.
            Block::Explicit => {
                self.run_deferred_checks()?;
                if identifier.len() >= IDENTIFIER_BYTES {
                    bail!(INVALID_PARAMETER_VALUE, "transaction identifier \"{identifier}\" is too long");
                }
                self.prepare_transaction(identifier)?;
                done("PREPARE TRANSACTION")
            }
        }
    }

    fn prepare_transaction(&mut self, identifier: &str) -> Result<()> {
        let cluster = self.state.instance.cluster.clone();
        cluster.prepared.check_enabled()?;
        let mut has_held_cursor = false;
        self.state.portals.each(
            |p| p.hold && !p.is_stored(),
            |_| {
                has_held_cursor = true;
                Ok(())
            },
        )?;
        if has_held_cursor {
            bail!(FEATURE_NOT_SUPPORTED, "cannot PREPARE a transaction that has created a cursor WITH HOLD");
        }
        self.state.portals.retain(|p| p.hold || p.pinned);
        self.run_on_commit()?;
        let Some(tx) = self.transaction.as_ref().map(|t| t.tx.clone()) else { return Ok(()) };
        let Some(engine) = self.state.engine().successor()? else {
            return Err(DbError::unsupported("PREPARE TRANSACTION in a session that holds advisory locks of its own"));
        };
        tx.prepare(identifier, self.context().user.oid)?;
        self.state.set_engine(engine);
        self.detach_transaction();
        Ok(())
    }

    fn finisher(&mut self) -> Finisher {
        let user = self.context().user.clone();
        Finisher { user: user.oid, superuser: user.superuser, database: self.state.database_oid }
    }

    pub(super) fn run_commit_prepared(&mut self, identifier: &str) -> Result<Outcome> {
        let who = self.finisher();
        self.state.instance.cluster.commit_prepared(identifier, &who)?;
        done("COMMIT PREPARED")
    }

    pub(super) fn run_rollback_prepared(&mut self, identifier: &str) -> Result<Outcome> {
        let who = self.finisher();
        self.state.instance.cluster.rollback_prepared(identifier, &who)?;
        done("ROLLBACK PREPARED")
    }
}

impl StatementContext {
    /// transaction, gid, prepared, ownerid, dbid
    pub(super) fn prepared_transaction_rows(&self) -> Vec<Vec<Datum>> {
        let all = self.session.instance.cluster.prepared.list();
        let row = |p: melba_transaction::prepared::PreparedTransaction| {
            vec![
                Datum::Oid(p.xid as u32),
                Datum::text(p.identifier),
                Datum::Int8(p.at),
                Datum::Oid(p.owner.0),
                Datum::Oid(p.database.0),
            ]
        };
        all.into_iter().map(row).collect()
    }
}
