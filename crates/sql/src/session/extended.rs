//! The extended query protocol: Parse, Bind, Describe, Execute, Close.

use std::sync::Arc;

use melba_fmgr::Session as _;
use melba_protocol::frontend::parameter_place;
use melba_protocol::{Bind, Format, Target};
use melba_types::{Datum, DbError, Oid, Result, bail, err};
use pg_query::NodeEnum;

use melba_parse::command::{Allowed, allowed};
use melba_statement::client::Client;
use melba_statement::outcome::{Outcome, ResultColumn, StoredRows};
use melba_statement::portal::{Portal, PortalRows, PortalState, Rewind};
use melba_statement::prepared::{BoundName, BoundStatement};
use melba_statement::transaction::{Block, aborted};
use melba_statement::value_io::{ValueIo, too_long, unknown_format};
use melba_types::BATCH_ROWS;

use super::Session;
use super::locking::Known;
use super::measured::{Measured, begin_measure, end_measure, rows_of};
use super::parsing::{find_prepared, revalidate};
use super::preparation::utility_columns;
use super::run::{copy_in, copy_out, send_row_description, send_rows, start_bound};

pub(super) fn bind_message(session: &mut Session, bind: &Bind<'_>, client: &mut dyn Client) -> Result<()> {
    session.begin_logging();
    let mut prepared = find_prepared(session, bind.statement)?;
    let literals = session.prepared.literals(bind.statement).cloned();
    match &literals {
        Some(literals) => session.set_source(&literals.source()),
        None => session.set_source_of(&prepared),
    }
    let types = if literals.is_some() { &[] } else { &prepared.parameter_types[..] };
    session.start_command()?;
    check_parameter_count(bind, types.len())?;
    let ends_block = prepared.statement.as_ref().is_some_and(|s| allowed(&s.node) == Allowed::FailedBlock);
    if session.block == Block::Failed && !(ends_block && types.is_empty()) {
        return Err(aborted());
    }
    if !bind.portal.is_empty() && session.state.portals.contains(bind.portal) {
        bail!(DUPLICATE_CURSOR, "cursor \"{}\" already exists", bind.portal);
    }
    // Domains read the transaction, and 'now' its start.
    session.renew_context();
    let parameters = session.lend(client, |session| read_parameters(session, bind, types))?;
    prepared = session.lend(client, |session| revalidate(session, bind.statement, prepared))?;
    prepared.compiled.check_constants()?;
    // The columns of FETCH and EXECUTE are known by now, if they were not at Parse.
    let columns = match &prepared.statement {
        Some(statement) if matches!(statement.node, NodeEnum::FetchStmt(_) | NodeEnum::ExecuteStmt(_)) => {
            utility_columns(session, statement)?
        }
        _ => prepared.columns.clone(),
    };
    let formats = match columns.as_ref().map(|c| (c.len(), bind.result_formats.expand(c.len()))) {
        None => Vec::new(),
        Some((_, Some(formats))) => formats,
        Some((count, None)) => bail!(
            PROTOCOL_VIOLATION,
            "bind message has {} result formats but query has {count} columns",
            bind.result_formats.len()
        ),
    };
    let parameters: Arc<[Datum]> = parameters.into();
    let bound = BoundName::of(&session.derived.log, bind.statement, &prepared, &parameters);
    session.end_logged_bind(bind.portal, bound.as_deref());
    let statement = match literals {
        Some(literals) if Arc::ptr_eq(&literals.prepared, &prepared) => literals,
        _ => BoundStatement::new(prepared, parameters),
    };
    let portal = Portal {
        bound,
        columns,
        formats,
        state: PortalState::Ready(statement),
        hold: false,
        declared: None,
        held: false,
        positions: Arc::from([]),
        pinned: false,
        number: 0,
        counted: None,
    };
    session.state.portals.insert(bind.portal.to_owned(), portal);
    client.output().bind_complete();
    Ok(())
}

/// 08P01 unless the message has a value for each parameter.
fn check_parameter_count(bind: &Bind<'_>, required: usize) -> Result<()> {
    if bind.parameter_formats.len() > 1 && bind.parameter_formats.len() != bind.parameters.len() {
        bail!(
            PROTOCOL_VIOLATION,
            "bind message has {} parameter formats but {} parameters",
            bind.parameter_formats.len(),
            bind.parameters.len()
        );
    }
    if bind.parameters.len() != required {
        bail!(
            PROTOCOL_VIOLATION,
            "bind message supplies {} parameters, but prepared statement \"{}\" requires {}",
            bind.parameters.len(),
            bind.statement,
            required
        );
    }
    Ok(())
}

fn read_parameters(session: &Session, bind: &Bind<'_>, types: &[Oid]) -> Result<Vec<Datum>> {
    let io = ValueIo::new(&session.context);
    let mut out = Vec::with_capacity(types.len());
    for (i, (value, ty)) in bind.parameters.iter().zip(types).enumerate() {
        let place = |shown: &str| parameter_place(bind.portal, i) + shown;
        let datum = match (value, bind.parameter_formats.get(i)) {
            (_, Format::Unknown(code)) => Err(unknown_format(code).context(place(""))),
            (None, _) => melba_fmgr::io::check_domain(&*session.context, *ty, Datum::Null).map_err(|e| e.context(place(""))),
            (Some(bytes), Format::Text) => {
                let text = melba_protocol::body::utf8(bytes).map_err(|e| e.context(place("")))?;
                // log_parameter_max_length_on_error is 0: not a character of it.
                io.input(*ty, text).map_err(|e| e.context(place(" = '...'")))
            }
            (Some(bytes), Format::Binary) => {
                let received = io.receive(*ty, bytes);
                received.map_err(|e| too_long(e, &format!("bind parameter {}", i + 1)).context(place("")))
            }
        };
        out.push(datum?);
    }
    Ok(out)
}

pub(super) fn describe_message(session: &mut Session, target: Target<'_>, client: &mut dyn Client) -> Result<()> {
    session.continue_command()?;
    session.renew_context();
    match target {
        Target::Statement(name) => {
            let prepared = find_prepared(session, name)?;
            check_describable(session, prepared.columns.as_deref())?;
            let is_bound = session.prepared.literals(name).is_some();
            client.output().parameter_description(if is_bound { &[] } else { &prepared.parameter_types });
            let prepared = revalidate(session, name, prepared)?;
            describe_columns(session, prepared.columns.as_deref(), &[], client)
        }
        Target::Portal(name) => {
            let (columns, formats) = session.state.portals.shape(name).ok_or_else(|| no_portal(name))?;
            check_describable(session, columns.as_deref())?;
            describe_columns(session, columns.as_deref(), &formats, client)
        }
    }
}

/// Describing a result may need the catalogs, which a failed transaction must not read.
fn check_describable(session: &Session, columns: Option<&[ResultColumn]>) -> Result<()> {
    if session.block == Block::Failed && columns.is_some() { Err(aborted()) } else { Ok(()) }
}

fn describe_columns(
    session: &Session,
    columns: Option<&[ResultColumn]>,
    formats: &[Format],
    client: &mut dyn Client,
) -> Result<()> {
    match columns {
        Some(columns) => send_row_description(session, columns, formats, client)?,
        None => client.output().no_data(),
    }
    Ok(())
}

pub(super) fn execute_portal_message(session: &mut Session, name: &str, max_rows: i32, client: &mut dyn Client) -> Result<()> {
    session.begin_logging();
    // Out of the map while it runs, so that its statement may use the session.
    let mut portal = session.state.portals.take(name).ok_or_else(|| no_portal(name))?;
    let empty = matches!(&portal.state, PortalState::Ready(bound) if bound.prepared.statement.is_none());
    if empty {
        client.output().empty_query_response();
        session.state.portals.put_back(name.to_owned(), portal);
        return Ok(());
    }
    let (is_fetch, ends_block) = match &portal.state {
        PortalState::Ready(bound) => {
            session.set_source(&bound.source());
            (false, bound.prepared.statement.as_ref().is_some_and(|s| allowed(&s.node) == Allowed::FailedBlock))
        }
        _ => (true, false),
    };
    if session.block == Block::Failed && !ends_block {
        session.state.portals.put_back(name.to_owned(), portal);
        return Err(aborted());
    }
    let transaction_before = session.transaction.is_some();
    session.start_command()?;
    session.announce();
    if transaction_before && session.executed_in_pipeline {
        session.begin_implicit_block();
    }
    session.state.interrupt.check()?;
    if let Some(bound) = &portal.bound {
        session.log_execution(name, bound, is_fetch);
    }
    let measured = match (&portal.state, &portal.counted) {
        (PortalState::Ready(bound), _) => begin_measure(session, &bound.prepared.clone()),
        (_, Some(counted)) => Some(Measured::resumed(counted, session.context.monotonic())),
        _ => None,
    };
    portal.counted = measured.as_ref().map(|measured| measured.prepared.clone());
    let result = execute_portal(session, name, &mut portal, max_rows, client);
    match &result {
        Ok(Some(tag)) => end_measure(session, measured, rows_of(tag)),
        Ok(None) => end_measure(session, measured, max_rows as u64),
        Err(_) => {}
    }
    let bound = portal.bound.clone();
    let result = result.map_err(|error| session.with_parameters(error, name, bound.as_deref()));
    if result.is_err() {
        portal.state = PortalState::Failed;
    }
    // A transaction statement ended the transaction, and its portals with it.
    if session.transaction.is_some() || portal.hold {
        session.state.portals.put_back(name.to_owned(), portal);
    } else if !name.is_empty() {
        session.state.portals.remove(name);
    }
    let tag = result?;
    session.end_logged_execute(name, bound.as_deref(), is_fetch);
    session.executed_in_pipeline = true;
    session.state.interrupt.end_statement();
    session.send_notices(client);
    match tag {
        Some(tag) => client.output().command_complete(&tag),
        None => client.output().portal_suspended(),
    }
    if session.is_committing() { Ok(()) } else { client.flush_when_large() }
}

/// Runs a portal or continues it; `None` when rows are left.
fn execute_portal(
    session: &mut Session,
    name: &str,
    portal: &mut Portal,
    max_rows: i32,
    client: &mut dyn Client,
) -> Result<Option<String>> {
    if matches!(portal.state, PortalState::Ready(_))
        && let PortalState::Ready(bound) = std::mem::replace(&mut portal.state, PortalState::Failed)
        && let Some(tag) = start_portal(session, portal, bound, client)?
    {
        return Ok(Some(tag));
    }
    let columns = portal.columns.as_deref().unwrap_or_default();
    let count = if max_rows > 0 { max_rows as u64 } else { u64::MAX };
    match &mut portal.state {
        PortalState::Open(rows, tag) => {
            let (sent, more) = send_rows(session, rows, columns, &portal.formats, count, client)?;
            let tag = tag.clone();
            if more && sent == count {
                return Ok(None);
            }
            if !portal.hold && portal.declared.is_none() {
                portal.state = PortalState::Finished { had_rows: true, tag: tag.clone() };
            }
            Ok(Some(tag.text(sent)))
        }
        // Running a finished result again returns no rows.
        PortalState::Finished { had_rows: true, tag } => Ok(Some(tag.text(0))),
        PortalState::Finished { .. } | PortalState::Failed | PortalState::Ready(_) => {
            Err(err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "portal \"{name}\" cannot be run"))
        }
    }
}

/// Starts a bound statement. Returns the tag when it ran to its end.
fn start_portal(
    session: &mut Session,
    portal: &mut Portal,
    bound: BoundStatement,
    client: &mut dyn Client,
) -> Result<Option<String>> {
    let tag = match session.lend(client, |session| start_bound(session, bound, Known::Columns))? {
        Outcome::Rows { mut source, tag, .. } => {
            // A statement with effects runs to its end although only part of its result may be fetched.
            if tag != melba_statement::outcome::Tag::Counted("SELECT") {
                let mut batches = Vec::new();
                while let Some(batch) = session.lend(client, |_| source.next(BATCH_ROWS))? {
                    batches.push(batch);
                }
                source = Box::new(StoredRows(batches.into_iter()));
            }
            portal.state = PortalState::Open(PortalRows::new(source, Rewind::Never), tag);
            return Ok(None);
        }
        Outcome::Done { tag } => tag,
        Outcome::CopyIn { format, columns, copy } => copy_in(session, format, columns, copy, client)?,
        Outcome::CopyOut { format, columns, copy } => copy_out(session, format, columns, copy, client)?,
    };
    portal.state = PortalState::Finished { had_rows: false, tag: melba_statement::outcome::Tag::Fixed(tag.clone()) };
    Ok(Some(tag))
}

pub(super) fn close_message(session: &mut Session, target: Target<'_>, client: &mut dyn Client) {
    match target {
        Target::Statement(name) => {
            session.prepared.remove(name);
        }
        Target::Portal(name) => {
            session.state.portals.remove(name);
        }
    }
    client.output().close_complete();
}

fn no_portal(name: &str) -> DbError {
    err!(UNDEFINED_CURSOR, "portal \"{name}\" does not exist")
}
