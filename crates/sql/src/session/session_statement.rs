//! Statements that the session runs itself, because they are about the session: transactions, settings, prepared statements, cursors.

use std::sync::Arc;

use melba_types::{Datum, DbError, Oid, Result, bail, err};
use pg_query::NodeEnum;
use pg_query::protobuf::{
    DeclareCursorStmt, DiscardMode, ExecuteStmt, FetchStmt, PrepareStmt, TransactionStmt, TransactionStmtKind,
};

use melba_parse::Statement;
use melba_statement::cursor::declare_cursor;
use melba_statement::named_statements::check_prepare;
use melba_statement::outcome::Outcome;
use melba_statement::portal::{Portal, PortalRows, PortalState, Rewind};
use melba_statement::portals::no_cursor;
use melba_statement::prepared::BoundStatement;
use melba_statement::set::{modes_of, run_show};
use melba_statement::transaction::{Block, require_block};
use melba_statement::{command, execution, pipeline, planning, values};

use super::Session;
use super::locking::Known;
use super::parsing::{find_prepared, revalidate};
use super::preparation::prepare_statement;
use super::run::start_bound;
use super::server_settings::run_alter_system;
use super::session_set::{run_set, switch_user_to_default};
use super::two_phase::{run_commit_prepared, run_prepare_transaction, run_rollback_prepared};

fn done(tag: &str) -> Result<Outcome> {
    Ok(Outcome::Done { tag: tag.to_owned() })
}

pub(super) fn run_utility(
    session: &mut Session,
    statement: &Statement,
    types: &[Oid],
    parameters: &Arc<[Datum]>,
) -> Result<Outcome> {
    match &statement.node {
        NodeEnum::TransactionStmt(t) => run_transaction_statement(session, t),
        NodeEnum::VariableSetStmt(set) => {
            run_set(session, set)?;
            done(if set.kind >= pg_query::protobuf::VariableSetKind::VarReset as i32 { "RESET" } else { "SET" })
        }
        NodeEnum::VariableShowStmt(show) => run_show(session.context(), show),
        NodeEnum::AlterSystemStmt(s) => run_alter_system(session, s),
        NodeEnum::PrepareStmt(prepare) => run_prepare(session, prepare, statement),
        NodeEnum::ExecuteStmt(execute) => run_execute(session, execute),
        NodeEnum::DeallocateStmt(deallocate) => session.state.run_deallocate(deallocate),
        NodeEnum::DiscardStmt(discard) => run_discard(session, DiscardMode::try_from(discard.target).unwrap_or_default()),
        NodeEnum::DeclareCursorStmt(declare) => run_declare(session, declare, statement, types, parameters),
        NodeEnum::FetchStmt(fetch) => run_fetch(session, fetch),
        NodeEnum::ClosePortalStmt(close) => session.state.run_close(&close.portalname),
        _ => Err(DbError::internal("not a session statement")),
    }
}

fn run_transaction_statement(session: &mut Session, t: &TransactionStmt) -> Result<Outcome> {
    use TransactionStmtKind as Kind;
    match Kind::try_from(t.kind).unwrap_or(Kind::Undefined) {
        kind @ (Kind::TransStmtBegin | Kind::TransStmtStart) => {
            let change = modes_of(&t.options)?;
            session.set_modes(change)?;
            match session.block {
                Block::None | Block::Implicit => session.block = Block::Explicit,
                _ => session.state.warning(err!(ACTIVE_SQL_TRANSACTION, "there is already a transaction in progress")),
            }
            done(if kind == Kind::TransStmtBegin { "BEGIN" } else { "START TRANSACTION" })
        }
        Kind::TransStmtCommit => run_commit(session, t.chain),
        Kind::TransStmtRollback => run_rollback(session, t.chain),
        Kind::TransStmtSavepoint => {
            require_block(session.block, "SAVEPOINT")?;
            session.define_savepoint(&t.savepoint_name)?;
            done("SAVEPOINT")
        }
        Kind::TransStmtRelease => {
            require_block(session.block, "RELEASE SAVEPOINT")?;
            session.release_savepoint(&t.savepoint_name)?;
            done("RELEASE")
        }
        Kind::TransStmtRollbackTo => {
            if session.block != Block::Failed {
                require_block(session.block, "ROLLBACK TO SAVEPOINT")?;
            }
            let depth = session.find_savepoint(&t.savepoint_name)?;
            session.undo_to_savepoint(depth)?;
            session.block = Block::Explicit;
            done("ROLLBACK")
        }
        Kind::TransStmtPrepare => run_prepare_transaction(session, &t.gid),
        Kind::TransStmtCommitPrepared => run_commit_prepared(session, &t.gid),
        Kind::TransStmtRollbackPrepared => run_rollback_prepared(session, &t.gid),
        _ => Err(DbError::internal("not a transaction statement")),
    }
}

fn run_commit(session: &mut Session, chain: bool) -> Result<Outcome> {
    let modes = session.transaction.as_ref().map(|t| t.modes);
    match session.block {
        Block::None | Block::Implicit => {
            if chain {
                require_block(Block::None, "COMMIT AND CHAIN")?;
            }
            session.state.warning(err!(NO_ACTIVE_SQL_TRANSACTION, "there is no transaction in progress"));
            session.block = Block::None;
            session.commit_transaction()?;
            done("COMMIT")
        }
        Block::Explicit => {
            // The block ends, whatever the result.
            session.block = Block::None;
            session.commit_transaction()?;
            begin_chained(session, chain, modes)?;
            done("COMMIT")
        }
        Block::Failed => {
            session.block = Block::None;
            let modes = modes.or(session.failed_modes);
            session.roll_back_transaction();
            begin_chained(session, chain, modes)?;
            done("ROLLBACK")
        }
    }
}

fn run_rollback(session: &mut Session, chain: bool) -> Result<Outcome> {
    if matches!(session.block, Block::None | Block::Implicit) {
        if chain {
            require_block(Block::None, "ROLLBACK AND CHAIN")?;
        }
        session.state.warning(err!(NO_ACTIVE_SQL_TRANSACTION, "there is no transaction in progress"));
    }
    let modes = session.transaction.as_ref().map(|t| t.modes).or(session.failed_modes);
    session.block = Block::None;
    session.roll_back_transaction();
    begin_chained(session, chain, modes)?;
    done("ROLLBACK")
}

fn begin_chained(session: &mut Session, chain: bool, modes: Option<melba_statement::transaction::Modes>) -> Result<()> {
    if chain {
        session.begin_transaction(modes.unwrap_or(session.derived.default_modes))?;
        session.block = Block::Explicit;
    }
    Ok(())
}

fn run_prepare(session: &mut Session, prepare: &PrepareStmt, statement: &Statement) -> Result<Outcome> {
    let inner = check_prepare(session.context(), prepare, statement)?;
    let context = session.context();
    let types = prepare.argtypes.iter().map(|t| planning::resolve_type(context, t)).collect::<Result<Vec<Oid>>>()?;
    let mut prepared = prepare_statement(session, Some(inner), &types)?;
    if let (Some(planned), Some(transaction)) = (&prepared.compiled.planned, &session.transaction) {
        execution::lock_named(&transaction.tx, planned)?;
    }
    prepared.from_sql = true;
    session.prepared.insert(&prepare.name, Arc::new(prepared));
    done("PREPARE")
}

fn run_execute(session: &mut Session, execute: &ExecuteStmt) -> Result<Outcome> {
    let prepared = find_prepared(session, &execute.name)?;
    let prepared = revalidate(session, &execute.name, prepared)?;
    let (expected, given) = (prepared.parameter_types.len(), execute.params.len());
    if expected != given {
        return Err(err!(SYNTAX_ERROR, "wrong number of parameters for prepared statement \"{}\"", execute.name)
            .detail(format!("Expected {expected} parameters but got {given}.")));
    }
    let parameters = values::evaluate(session.context(), &execute.params, &prepared.parameter_types)?;
    // Positions of errors refer to the prepared text, which the client did not just send.
    session.set_source_of(&prepared);
    start_bound(session, BoundStatement::new(prepared, parameters.into()), Known::Columns)
}

fn run_discard(session: &mut Session, mode: DiscardMode) -> Result<Outcome> {
    match mode {
        DiscardMode::DiscardAll => {
            session.state.portals.clear();
            switch_user_to_default(session)?;
            session.state.settings.lock().reset_all();
            session.prepared.clear();
            if let Some(transaction) = &session.transaction {
                transaction.tx.unlisten(&session.state.listener, None);
            }
            session.refresh();
            pipeline::discard(session.context(), mode)?;
            done("DISCARD ALL")
        }
        DiscardMode::DiscardPlans => {
            session.cache.clear();
            done("DISCARD PLANS")
        }
        DiscardMode::DiscardSequences => {
            pipeline::discard(session.context(), mode)?;
            done("DISCARD SEQUENCES")
        }
        _ => {
            pipeline::discard(session.context(), mode)?;
            done("DISCARD TEMP")
        }
    }
}

/// The types and values of the parameters of its query, which keeps them as long as it is open.
pub(super) fn run_declare(
    session: &mut Session,
    declare: &DeclareCursorStmt,
    statement: &Statement,
    types: &[Oid],
    parameters: &Arc<[Datum]>,
) -> Result<Outcome> {
    let read_only = match &mut session.transaction {
        Some(transaction) => {
            transaction.used = true;
            transaction.modes.read_only
        }
        None => false,
    };
    if let Some(query) = declare.query.as_deref().and_then(|q| q.node.as_ref()) {
        command::check(query, session.block, read_only)?;
    }
    declare_cursor(&session.context().clone(), declare, statement, types, parameters)
}

/// FETCH and MOVE, from a portal that was only bound too.
pub(super) fn run_fetch(session: &mut Session, fetch: &FetchStmt) -> Result<Outcome> {
    let name = &fetch.portalname;
    let mut portal = session.state.portals.take(name).ok_or_else(|| no_cursor(name))?;
    let begun = begin_bound(session, &mut portal, name);
    if begun.is_err() {
        portal.state = PortalState::Failed;
    }
    session.state.portals.put_back(name.clone(), portal);
    begun?;
    session.state.run_fetch(fetch)
}

fn begin_bound(session: &mut Session, portal: &mut Portal, name: &str) -> Result<()> {
    if let PortalState::Ready(bound) = &portal.state {
        let Outcome::Rows { source, tag, .. } = start_bound(session, bound.clone(), Known::Columns)? else {
            bail!(INVALID_CURSOR_STATE, "portal \"{name}\" does not return rows");
        };
        portal.state = PortalState::Open(PortalRows::new(source, Rewind::Never), tag);
    }
    Ok(())
}
