//! Texts that differ only in their literals, and so share a plan.

use std::sync::Arc;

use melba_types::{Datum, DbError, Oid, Result, err, oids};

use melba_analyze::LiteralUse;
use melba_parse::command::is_query;
use melba_parse::literals::{Literal, LiteralClass, Normalized};
use melba_parse::{Parsed, Statement};
use melba_statement::literal_operations::check_literals;
use melba_statement::prepared::{BoundStatement, Prepared};
use melba_statement::value_io::ValueIo;

use super::Session;
use super::cache::Cached;
use super::preparation::{check_block, prepare_statement};

/// The plan shared by texts of this form, bound to this text's literals; `None` when the text stands for itself.
///
/// # Errors
/// Those of parsing the text. Errors that have a literal in the text as their position are left to the other way.
pub(super) fn bind_literals(session: &mut Session, text: &str) -> Result<Option<BoundStatement>> {
    if session.state.auto_explain.is_on() {
        // A logged plan has the statement's constants.
        return Ok(None);
    }
    let mut normalized = std::mem::take(&mut session.normalized);
    let bound = if normalized.scan(text, session.derived.strings) {
        // Two zeros where a row stands for others.
        normalized.key.resize(normalized.key.len() + 1 + usize::from(normalized.rows.is_some()), 0);
        bind_normalized(session, text, &normalized)
    } else {
        Ok(None)
    };
    normalized.clear();
    session.normalized = normalized;
    bound
}

fn bind_normalized(session: &mut Session, text: &str, normalized: &Normalized) -> Result<Option<BoundStatement>> {
    session.renew_context();
    let prepared = match session.cache.get(&normalized.key) {
        Some(Cached::ByText) => return Ok(None),
        Some(Cached::Query { prepared: Some(prepared), .. }) if prepared.compiled.is_for(&session.context) => prepared.clone(),
        _ => match prepare_form(session, text, normalized)? {
            Some(prepared) => prepared,
            None => return Ok(None),
        },
    };
    let Some(values) = literal_values(session, text, normalized, &prepared) else { return Ok(None) };
    let parameters: Arc<[Datum]> = values.into();
    let before = session.state.notices.lock().len();
    let checked = check_literals(&session.context, &prepared.compiled, &parameters);
    // The statement computes its constants again.
    forget_notices(session, before);
    match checked {
        Ok(()) => Ok(Some(BoundStatement { prepared, parameters, text: Some(session.source.clone()) })),
        // Canceled, or out of time.
        Err(error) if error.sqlstate().class() == "57" => Err(error),
        Err(_) => Ok(None),
    }
}

/// Drops the notices that came after the first ones; whether there were any.
fn forget_notices(session: &Session, first: usize) -> bool {
    let mut notices = session.state.notices.lock();
    let has_more = notices.len() > first;
    notices.truncate(first);
    has_more
}

/// Analyzes a text with its literals as parameters, and caches the result.
fn prepare_form(session: &mut Session, text: &str, normalized: &Normalized) -> Result<Option<Arc<Prepared>>> {
    let text = &text[..normalized.rows.map_or(text.len(), |rows| rows.end)];
    let row_literals = normalized.rows.map_or(0, |rows| rows.width);
    let count = normalized.rows.map_or(normalized.literals.len(), |rows| 2 * rows.width);
    let literals = &normalized.literals[..count];
    let parsed = session.parse_text(text)?;
    let prepared = match &parsed.statements[..] {
        [statement] if is_query(&statement.node) => {
            check_block(session, statement)?;
            let form = Statement { literals: literals.to_vec(), row_literals, ..Statement::clone(statement) };
            let before = session.state.notices.lock().len();
            let prepared = prepare_statement(session, Some(Arc::new(form)), &[]).ok();
            // What has something to tell tells it each time, and once: when the statement is prepared from its text.
            let is_silent = !forget_notices(session, before);
            prepared.filter(|p| is_silent && p.compiled.may_share_literals()).map(Arc::new)
        }
        _ => None,
    };
    let entry = match &prepared {
        Some(_) => {
            Cached::Query { parsed: Arc::new(Parsed { text: parsed.text, statements: vec![] }), prepared: prepared.clone() }
        }
        None => {
            session.cache.put(text.as_bytes(), Cached::Query { parsed: Arc::new(parsed), prepared: None });
            Cached::ByText
        }
    };
    session.cache.put(&normalized.key, entry);
    Ok(prepared)
}

/// The literals' values as the parameters' types; `None` when one is invalid for its type, which the other path reports.
fn literal_values(session: &Session, text: &str, normalized: &Normalized, prepared: &Prepared) -> Option<Vec<Datum>> {
    let io = ValueIo::new(&session.context);
    let (uses, types) = (prepared.compiled.literals(), &prepared.parameter_types);
    let expected = normalized.rows.map_or(normalized.literals.len(), |rows| 2 * rows.width);
    if uses.len() != expected || types.len() != expected {
        return None;
    }
    let values = normalized.literals.iter().enumerate().map(|(i, literal)| {
        let at = match normalized.rows {
            Some(rows) if i >= 2 * rows.width => rows.width + i % rows.width,
            _ => i,
        };
        value(text, literal, uses[at], types[at], &io).ok()
    });
    values.collect()
}

fn value(text: &str, literal: &Literal, used: LiteralUse, ty: Oid, io: &ValueIo<'_>) -> Result<Datum> {
    let digits = &text[literal.range.clone()];
    let negative = used == LiteralUse::Negated;
    match literal.class {
        LiteralClass::Int4 => digits.parse().map(|v: i32| Datum::Int4(if negative { -v } else { v })).map_err(not_in_class),
        LiteralClass::Int8 => digits.parse().map(|v: i64| Datum::Int8(if negative { -v } else { v })).map_err(not_in_class),
        LiteralClass::Numeric if negative => io.input(ty, &format!("-{digits}")),
        LiteralClass::Numeric => io.input(ty, digits),
        LiteralClass::String if matches!(ty, oids::TEXT | oids::VARCHAR | oids::UNKNOWN) => Ok(Datum::text(literal.string(text))),
        LiteralClass::String => io.input(ty, &literal.string(text)),
    }
}

fn not_in_class(e: std::num::ParseIntError) -> DbError {
    err!(NUMERIC_VALUE_OUT_OF_RANGE, "{e}")
}
