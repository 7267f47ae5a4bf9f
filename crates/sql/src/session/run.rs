//! Runs one statement: analysis, execution by the session itself or through `pipeline`, and sending its result.

use melba_protocol::Format;
use melba_protocol::backend::FieldDescription;
use melba_types::{DbError, Result, SqlState};
use pg_query::NodeEnum;

use melba_parse::command::{Allowed, allowed, is_session_statement, takes_snapshot};
use melba_statement::client::Client;
use melba_statement::outcome::{CopyIn, CopyOut, Outcome, ResultColumn, RowSource, Tag};
use melba_statement::portal::{PortalRows, Rewind};
use melba_statement::prepared::BoundStatement;
use melba_statement::value_io::ValueIo;
use melba_statement::{command, execution, pipeline, routine};

use super::Session;
use super::detach;
use super::encode::RowEncoder;
use super::locking::{Known, lock_bound};
use super::preparation::check_block;
use super::procedure_transactions::transaction_control;
use super::session_statement::run_utility;

/// Runs a statement up to its first row, or to its end when it has none.
pub(super) fn start_bound(session: &mut Session, bound: BoundStatement, known: Known) -> Result<Outcome> {
    let Some(statement) = &bound.prepared.statement else {
        return Err(DbError::internal("an empty query cannot be started"));
    };
    check_block(session, statement)?;
    bound.prepared.count_execution();
    session.note_command(statement);
    let read_only = session.transaction.as_ref().is_some_and(|t| t.modes.read_only);
    command::check(&statement.node, session.block, read_only)?;
    command::warn_outside_block(&statement.node, session.block, &session.state);
    if let Some(transaction) = session.transaction.as_ref().filter(|_| takes_snapshot(&statement.node)) {
        execution::keep_snapshot(&transaction.tx)?;
    }
    if is_session_statement(&statement.node) {
        return run_utility(session, statement, &bound.prepared.parameter_types, &bound.parameters);
    }
    if let Some(transaction) = &mut session.transaction {
        transaction.used = true;
    }
    let statement = statement.clone();
    let bound = lock_bound(session, bound, known)?;
    let context = session.context().clone();
    match &statement.node {
        NodeEnum::CallStmt(s) => {
            let types = &bound.prepared.parameter_types;
            routine::run_call(&context, s, None, (types, &bound.parameters), transaction_control(session))
        }
        NodeEnum::DoStmt(s) => {
            routine::run_do(&context, s, &statement, transaction_control(session))?;
            Ok(Outcome::Done { tag: "DO".into() })
        }
        NodeEnum::AlterTableStmt(s) if matches!(allowed(&statement.node), Allowed::OwnTransaction(_)) => {
            detach::run(session, &statement, s, &bound.prepared)
        }
        _ => pipeline::execute(&context, &statement, &bound.prepared, bound.parameters),
    }
}

/// With the context renewed.
pub(super) fn send_row_description(
    session: &Session,
    columns: &[ResultColumn],
    formats: &[Format],
    client: &mut dyn Client,
) -> Result<()> {
    let encoding = session.client_encoding();
    if !encoding.is_plain() {
        columns.iter().try_for_each(|c| encoding.encode(&c.name).map(drop))?;
    }
    client.output().set_encoding(encoding);
    let catalog = &session.context.catalog;
    client.output().row_description(columns.iter().enumerate().map(|(i, c)| {
        // Clients get the types under domains.
        let (type_oid, type_modifier) = catalog.base_type_and_typmod(c.ty, c.typmod);
        FieldDescription {
            name: &c.name,
            table: c.table,
            attribute: c.attribute,
            type_oid,
            type_size: c.size,
            type_modifier,
            format: formats.get(i).copied().unwrap_or(Format::Text),
        }
    }));
    Ok(())
}

/// Sends up to `count` rows. Returns how many were sent, and whether some may be left.
pub(super) fn send_rows(
    session: &mut Session,
    rows: &mut PortalRows,
    columns: &[ResultColumn],
    formats: &[Format],
    count: u64,
    client: &mut dyn Client,
) -> Result<(u64, bool)> {
    session.renew_context();
    let this = &*session;
    let io = ValueIo::new(&this.context);
    let encoder = RowEncoder::new(columns, formats, &io)?;
    let mut sent = 0;
    while sent < count {
        if !this.lend_for(client, || rows.read(count - sent))? {
            return Ok((sent, false));
        }
        this.state.interrupt.check()?;
        this.send_notices(client);
        sent += rows.take_read(count - sent, |batch, range| encoder.send(batch, range, client))?;
    }
    Ok((sent, true))
}

/// Sends a whole result and returns its command tag.
pub(super) fn send_result(
    session: &mut Session,
    columns: &[ResultColumn],
    source: Box<dyn RowSource>,
    tag: &Tag,
    formats: &[Format],
    client: &mut dyn Client,
) -> Result<String> {
    let mut rows = PortalRows::new(source, Rewind::Never);
    let (sent, _) = send_rows(session, &mut rows, columns, formats, u64::MAX, client)?;
    Ok(tag.text(sent))
}

/// COPY FROM STDIN: feeds the client's data.
pub(super) fn copy_in(
    session: &mut Session,
    format: Format,
    columns: usize,
    mut copy: Box<dyn CopyIn>,
    client: &mut dyn Client,
) -> Result<String> {
    /// What a trigger has to tell of a longer piece of data waits for the next one.
    const LENT_BYTES_MAX: usize = 1 << 20;
    session.send_notices(client);
    client.output().copy_in_response(format, columns);
    client.flush()?;
    let mut piece = Vec::new();
    loop {
        if client.copy_stalls()? {
            session.lend(client, |_| copy.catch_up())?;
        }
        let data = match client.copy_read() {
            Ok(Some(data)) => data,
            Ok(None) => break,
            Err(error) => {
                // A session that must end is woken by closing the reading side, so reads end.
                if let Some(ends) = session.state.interrupt.must_end() {
                    return Err(ends.context(copy.place()));
                }
                session.lost_sync = error.sqlstate() != SqlState::QUERY_CANCELED;
                return Err(error.context(copy.place()));
            }
        };
        session.state.interrupt.check()?;
        if data.len() > LENT_BYTES_MAX {
            copy.feed(data)?;
            continue;
        }
        // The client cannot be lent as long as what it has sent is looked at where it lies.
        piece.clear();
        piece.extend_from_slice(data);
        session.lend(client, |_| copy.feed(&piece))?;
    }
    let rows = session.lend(client, |_| copy.finish())?;
    Ok(format!("COPY {rows}"))
}

/// COPY TO STDOUT: one CopyData per row, as clients that read rows expect.
pub(super) fn copy_out(
    session: &mut Session,
    format: Format,
    columns: usize,
    mut copy: Box<dyn CopyOut>,
    client: &mut dyn Client,
) -> Result<String> {
    client.output().copy_out_response(format, columns);
    let mut row = Vec::new();
    while session.lend(client, |_| copy.next(&mut row))? {
        session.state.interrupt.check()?;
        client.output().copy_data(&row);
        client.flush_when_large()?;
        row.clear();
    }
    client.output().copy_done();
    Ok(format!("COPY {}", copy.rows()))
}
