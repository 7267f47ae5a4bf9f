//! RAISE and ASSERT.

use std::sync::Arc;

use melba_plpgsql::conditions;
use melba_plpgsql::tree::{Expression, Level, Raise, RaiseOption};
use melba_types::{Datum, DbError, Result, Severity, SqlState, bail, err};

use super::expression::PieceUse;
use super::frame::Frame;
use super::{expression, value};

pub fn raise(frame: &mut Frame<'_>, raise: &Raise) -> Result<()> {
    if raise.condition.is_none() && raise.message.is_none() && raise.options.is_empty() {
        return Err(frame.handled.clone().map_or_else(
            || {
                let message = "RAISE without parameters cannot be used outside an exception handler";
                DbError::new(SqlState::STACKED_DIAGNOSTICS_ACCESSED_WITHOUT_ACTIVE_HANDLER, message)
            },
            |handled| {
                frame.located = true;
                handled
            },
        ));
    }
    let mut state = raise.condition.as_deref().and_then(state_of);
    let mut shown = raise.condition.clone();
    let mut message = match &raise.message {
        Some(format) => Some(formatted(frame, format, &raise.parameters)?),
        None => None,
    };
    let mut options: Vec<(RaiseOption, String)> = Vec::new();
    for (option, e) in &raise.options {
        let value = expression::evaluate(frame, e, PieceUse::Any)?;
        if value.value.is_null() {
            bail!(NULL_VALUE_NOT_ALLOWED, "RAISE statement option cannot be null");
        }
        let text = value::text_of(frame, &value)?;
        let again = match option {
            RaiseOption::ErrorCode => state.is_some(),
            RaiseOption::Message => message.is_some(),
            other => options.iter().any(|(o, _)| o == other),
        };
        if again {
            bail!(SYNTAX_ERROR, "RAISE option already specified: {}", name_of(*option));
        }
        match option {
            RaiseOption::ErrorCode => {
                let found = state_of(&text);
                state = Some(found.ok_or_else(|| err!(UNDEFINED_OBJECT, "unrecognized exception condition \"{text}\""))?);
                shown = Some(text.into());
            }
            RaiseOption::Message => message = Some(text),
            other => options.push((*other, text)),
        }
    }
    let severity = severity_of(raise.level);
    let default = match raise.level {
        Level::Exception => SqlState::RAISE_EXCEPTION,
        Level::Warning => SqlState::WARNING,
        _ => SqlState::SUCCESSFUL_COMPLETION,
    };
    let state = state.unwrap_or(default);
    let message = message.or_else(|| shown.map(|s: Arc<str>| s.to_string())).unwrap_or_else(|| state.to_string());
    let error = with_options(DbError::new(state, message).severity(severity).routine("exec_stmt_raise"), options);
    if raise.level == Level::Exception {
        return Err(error);
    }
    let place = frame.place(frame.line, "RAISE");
    frame.context.session.notice(error.within(place));
    Ok(())
}

/// The message with its parameters in place of percent signs.
fn formatted(frame: &mut Frame<'_>, format: &str, parameters: &[Expression]) -> Result<String> {
    let mut parameters = parameters.iter();
    let mut out = String::with_capacity(format.len());
    let mut characters = format.chars().peekable();
    while let Some(c) = characters.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        if characters.next_if_eq(&'%').is_some() {
            out.push('%');
            continue;
        }
        let Some(e) = parameters.next() else { bail!(SYNTAX_ERROR, "too few parameters specified for RAISE") };
        let value = expression::evaluate(frame, e, PieceUse::Any)?;
        match value.value.is_null() {
            true => out.push_str("<NULL>"),
            false => out.push_str(&value::text_of(frame, &value)?),
        }
    }
    Ok(out)
}

pub fn assert(frame: &mut Frame<'_>, condition: &Expression, message: Option<&Expression>) -> Result<()> {
    let setting = melba_fmgr::Session::setting(&*frame.context, "plpgsql.check_asserts");
    if setting.as_deref() == Some("off") || value::holds(frame, condition)? {
        return Ok(());
    }
    let text = match message {
        None => None,
        Some(e) => {
            let value = expression::evaluate(frame, e, PieceUse::Any)?;
            if matches!(value.value, Datum::Null) { None } else { Some(value::text_of(frame, &value)?) }
        }
    };
    Err(DbError::new(SqlState::ASSERT_FAILURE, text.unwrap_or_else(|| "assertion failed".into())))
}

fn state_of(text: &str) -> Option<SqlState> {
    conditions::by_code(text).or_else(|| conditions::by_name(text).next())
}

fn severity_of(level: Level) -> Severity {
    match level {
        Level::Exception => Severity::Error,
        Level::Warning => Severity::Warning,
        Level::Notice => Severity::Notice,
        Level::Info => Severity::Info,
        Level::Log => Severity::Log,
        Level::Debug => Severity::Debug,
    }
}

fn name_of(option: RaiseOption) -> &'static str {
    match option {
        RaiseOption::ErrorCode => "ERRCODE",
        RaiseOption::Message => "MESSAGE",
        RaiseOption::Detail => "DETAIL",
        RaiseOption::Hint => "HINT",
        RaiseOption::Column => "COLUMN",
        RaiseOption::Constraint => "CONSTRAINT",
        RaiseOption::Datatype => "DATATYPE",
        RaiseOption::Table => "TABLE",
        RaiseOption::Schema => "SCHEMA",
    }
}

fn with_options(error: DbError, options: Vec<(RaiseOption, String)>) -> DbError {
    options.into_iter().fold(error, |error, (option, text)| match option {
        RaiseOption::Detail => error.detail(text),
        RaiseOption::Hint => error.hint(text),
        RaiseOption::Column => error.column(text),
        RaiseOption::Constraint => error.constraint(text),
        RaiseOption::Datatype => error.data_type(text),
        RaiseOption::Table => error.table(text),
        RaiseOption::Schema => error.schema(text),
        RaiseOption::ErrorCode | RaiseOption::Message => error,
    })
}
