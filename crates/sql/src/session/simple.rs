//! The simple query protocol: one string, any number of statements, one transaction unless they say otherwise.

use std::sync::Arc;

use melba_types::Result;
use pg_query::NodeEnum;

use melba_parse::{Parsed, Statement};
use melba_statement::client::Client;
use melba_statement::outcome::Outcome;
use melba_statement::prepared::{BoundStatement, Prepared};

use super::Session;
use super::cache::Cached;
use super::literals::bind_literals;
use super::locking::Known;
use super::measured::{begin_measure, end_measure, rows_of};
use super::preparation::{check_block, prepare_statement};
use super::run::{copy_in, copy_out, send_result, send_row_description, start_bound};

pub(super) fn simple_query(session: &mut Session, text: &str, client: &mut dyn Client) -> Result<()> {
    // The unnamed statement and portal last until the next Query message.
    session.prepared.remove("");
    session.state.portals.remove("");
    session.set_source(&text.into());
    session.start_command()?;
    session.tell_lexical_notices(text);
    if let Some(bound) = bind_literals(session, text)? {
        session.announce();
        session.log_text(bound.prepared.statement.iter().map(|s| &s.node));
        session.state.interrupt.check()?;
        let tag = run_simple(session, bound, client)?;
        session.lend(client, Session::finish_command)?;
        return complete(session, &tag, client);
    }
    let (parsed, mut known) = match session.cache.get(text.as_bytes()) {
        Some(Cached::Query { parsed, prepared }) => (parsed.clone(), prepared.clone()),
        _ => (Arc::new(session.parse_text(text)?), None),
    };
    session.set_source(&parsed.text);
    session.announce();
    session.log_text(parsed.statements.iter().map(|s| &s.node));
    let last = parsed.statements.len().wrapping_sub(1);
    for (i, statement) in parsed.statements.iter().enumerate() {
        check_block(session, statement)?;
        // All statements of a message have its time.
        session.join_command()?;
        if parsed.statements.len() > 1 {
            session.begin_implicit_block();
        }
        session.state.interrupt.check()?;
        let prepared = session.lend(client, |session| prepare_simple(session, &parsed, statement, known.take()))?;
        let tag = run_simple(session, BoundStatement::new(prepared, Arc::from([])), client)?;
        if i == last {
            session.end_implicit_block();
            session.lend(client, Session::finish_command)?;
        } else if matches!(statement.node, NodeEnum::TransactionStmt(_)) {
            session.lend(client, Session::finish_command)?;
        }
        complete(session, &tag, client)?;
    }
    if parsed.statements.is_empty() {
        session.finish_command()?;
        client.output().empty_query_response();
    }
    Ok(())
}

fn complete(session: &mut Session, tag: &str, client: &mut dyn Client) -> Result<()> {
    session.send_notices(client);
    session.state.interrupt.end_statement();
    client.output().command_complete(tag);
    if session.is_committing() { Ok(()) } else { client.flush_when_large() }
}

/// Analyzes a statement, unless the cache had it and the catalog is still the same.
fn prepare_simple(
    session: &mut Session,
    parsed: &Arc<Parsed>,
    statement: &Arc<Statement>,
    known: Option<Arc<Prepared>>,
) -> Result<Arc<Prepared>> {
    if let Some(prepared) = known
        && prepared.compiled.is_for(session.context())
    {
        return Ok(prepared);
    }
    let prepared = match prepare_statement(session, Some(statement.clone()), &[]) {
        Ok(prepared) => Arc::new(prepared),
        Err(error) => {
            // That there are parameters at all is the first thing to say.
            melba_statement::planning::refuse_parameters(session.context(), statement)?;
            return Err(error);
        }
    };
    if !prepared.parameter_types.is_empty() {
        melba_statement::planning::refuse_parameters(session.context(), statement)?;
    }
    let reusable = parsed.statements.len() == 1 && prepared.compiled.is_reusable();
    let entry = Cached::Query { parsed: parsed.clone(), prepared: reusable.then(|| prepared.clone()) };
    session.cache.put(parsed.text.as_bytes(), entry);
    Ok(prepared)
}

fn failed_when_planned(session: &mut Session, statement: Option<Arc<Statement>>) -> bool {
    let Some(mut statement) = statement else { return false };
    if !statement.literals.is_empty() {
        // It stands for all texts of its form; this one's literals are in its text.
        let parsed = session.parse_text(&session.source);
        match parsed.ok().and_then(|parsed| parsed.statements.into_iter().next()) {
            Some(own) => statement = own,
            None => return false,
        }
    }
    melba_statement::planning::fails_when_planned(session.context(), &statement)
}

fn run_simple(session: &mut Session, bound: BoundStatement, client: &mut dyn Client) -> Result<String> {
    let measured = begin_measure(session, &bound.prepared);
    let tag = run_bound(session, bound, client)?;
    end_measure(session, measured, rows_of(&tag));
    Ok(tag)
}

fn run_bound(session: &mut Session, bound: BoundStatement, client: &mut dyn Client) -> Result<String> {
    let statement = bound.prepared.statement.clone();
    match session.lend(client, |session| start_bound(session, bound, Known::Nothing))? {
        Outcome::Done { tag } => Ok(tag),
        Outcome::Rows { columns, source, tag, formats } => {
            session.renew_context();
            session.send_notices(client);
            let before = client.output().mark();
            send_row_description(session, &columns, &formats, client)?;
            let described = client.output().mark();
            let result = send_result(session, &columns, source, &tag, &formats, client);
            // Not when time or memory ran out: the constants would be computed again.
            let is_of_value = |state: &str| state.starts_with('2') || state.starts_with("54");
            let failed = result.as_ref().is_err_and(|e| is_of_value(e.sqlstate().as_str()));
            if failed && client.output().mark() == described && failed_when_planned(session, statement) {
                client.output().take_back(before);
            }
            result
        }
        Outcome::CopyIn { format, columns, copy } => copy_in(session, format, columns, copy, client),
        Outcome::CopyOut { format, columns, copy } => copy_out(session, format, columns, copy, client),
    }
}
