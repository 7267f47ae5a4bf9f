//! A statement from its beginning to its end.

use std::sync::Arc;
use std::time::Duration;

use melba_engine::{IoCounts, io_counts};
use melba_fmgr::Session as _;
use melba_parse::command::is_query;
use melba_statement::prepared::Prepared;
use melba_statement::statement_counts::counts::Counts;
use melba_statement::statement_counts::{Key, identity};
use pg_query::NodeEnum;

use super::Session;

/// A statement that is being counted.
pub struct Measured {
    /// The statement under which it is counted.
    pub prepared: Arc<Prepared>,
    began: Duration,
    /// What its thread had read and written by then.
    io: IoCounts,
    /// It was counted before.
    is_resumed: bool,
}

impl Measured {
    /// Execution continues.
    pub fn resumed(prepared: &Arc<Prepared>, began: Duration) -> Measured {
        Measured { prepared: prepared.clone(), began, io: io_counts::counted(), is_resumed: true }
    }
}

/// A statement begins.
#[inline]
pub(super) fn begin_measure(session: &mut Session, prepared: &Arc<Prepared>) -> Option<Measured> {
    session.counted = None;
    let tracking = session.derived.tracking;
    let statement = prepared.statement.as_ref().filter(|_| tracking.is_identified);
    session.state.activity.set_query_id(statement.map_or(0, |_| prepared.identifier()));
    let node = &statement.filter(|_| tracking.is_on)?.node;
    let prepared = match node {
        _ if prepared.compiled.identity().is_some() => prepared.clone(),
        // EXECUTE is counted as the prepared statement.
        NodeEnum::ExecuteStmt(s) => session.prepared.get(&s.name)?,
        NodeEnum::PrepareStmt(_) => return None,
        node if !is_query(node) && !tracking.utility => return None,
        _ => prepared.clone(),
    };
    Some(Measured { prepared, began: session.context.monotonic(), io: io_counts::counted(), is_resumed: false })
}

/// It has returned rows, and may continue.
#[inline]
pub(super) fn end_measure(session: &mut Session, measured: Option<Measured>, rows: u64) {
    let Some(Measured { prepared, began, io, is_resumed }) = measured else { return };
    let io = io_counts::counted().since(&io);
    let spent = session.context.monotonic().saturating_sub(began).as_nanos() as u64;
    let tracking = session.derived.tracking;
    let planning = if tracking.planning { prepared.compiled.take_planning_time() } else { None };
    let counts = match is_resumed {
        false => Counts::one(spent, rows, planning, io),
        true => Counts::more(spent, rows, io),
    };
    let key = Key {
        user: session.context.user.oid,
        database: session.state.database_oid,
        query: prepared.identifier(),
        top_level: true,
    };
    let text = || match (&prepared.statement, prepared.compiled.identity()) {
        (Some(statement), Some(identity)) => identity.text(statement, prepared.compiled.literals()),
        (Some(statement), None) => identity::text_of_utility(statement),
        (None, _) => String::new(),
    };
    let all = &session.state.instance.statements;
    all.count(&session.state.statements, key, &counts, tracking.max, session.statement_start, text);
    session.counted = Some(key);
}

/// A commit that no statement of its own asked for has written the log: the last statement's changes.
pub(super) fn count_commit(session: &mut Session, io: &IoCounts) {
    if let Some(key) = session.counted.take()
        && io.log_records > 0
    {
        session.state.instance.statements.count_more(&session.state.statements, key, &Counts::more(0, 0, *io));
    }
}

/// The number at a command tag's end.
pub fn rows_of(tag: &str) -> u64 {
    tag.rsplit(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0)
}
