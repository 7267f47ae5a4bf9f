//! RAISE.

use std::sync::Arc;

use melba_types::{Result, bail, err};

use super::conditions;
use super::parser::Parser;
use super::scan::TokenKind;
use super::tree::*;

pub fn raise_statement(parser: &mut Parser<'_>) -> Result<StatementKind> {
    parser.advance();
    let mut raise =
        Raise { level: Level::Exception, condition: None, message: None, parameters: Vec::new(), options: Vec::new() };
    let done = |raise| Ok(StatementKind::Raise(Box::new(raise)));
    if parser.take_symbol(";") {
        return done(raise);
    }
    let levels = [
        ("exception", Level::Exception),
        ("warning", Level::Warning),
        ("notice", Level::Notice),
        ("info", Level::Info),
        ("log", Level::Log),
        ("debug", Level::Debug),
    ];
    if let Some((_, level)) = levels.iter().find(|(word, _)| parser.at_word(word)) {
        raise.level = *level;
        parser.advance();
    }
    if parser.token().kind == TokenKind::String {
        raise.message = Some(parser.string_value(parser.token())?);
        parser.advance();
        while parser.take_symbol(",") {
            raise.parameters.push(parser.expression_until(&[",", ";", "using"])?);
        }
    } else if !parser.at_word("using") && !parser.at_symbol(";") {
        raise.condition = Some(raised_condition(parser)?);
    }
    if parser.take_word("using") {
        raise_options(parser, &mut raise)?;
    }
    parser.expect_symbol(";")?;
    let placeholders = placeholders(raise.message.as_deref().unwrap_or(""));
    if placeholders > raise.parameters.len() {
        bail!(SYNTAX_ERROR, "too few parameters specified for RAISE");
    }
    if placeholders < raise.parameters.len() {
        bail!(SYNTAX_ERROR, "too many parameters specified for RAISE");
    }
    done(raise)
}

fn raised_condition(parser: &mut Parser<'_>) -> Result<Arc<str>> {
    let at = parser.token();
    let name = parser.expect_name()?;
    if &*name != "sqlstate" {
        if conditions::by_name(&name).next().is_none() {
            return Err(err!(UNDEFINED_OBJECT, "unrecognized exception condition \"{name}\"").at(at.start as i32));
        }
        return Ok(name);
    }
    let code = parser.token();
    if code.kind != TokenKind::String {
        return Err(parser.syntax_error());
    }
    let text = parser.string_value(code)?;
    if conditions::by_code(&text).is_none() {
        bail!(SYNTAX_ERROR, "invalid SQLSTATE code");
    }
    parser.advance();
    Ok(text)
}

fn raise_options(parser: &mut Parser<'_>, raise: &mut Raise) -> Result<()> {
    loop {
        let option = match parser.word_text().as_str() {
            "errcode" => RaiseOption::ErrorCode,
            "message" => RaiseOption::Message,
            "detail" => RaiseOption::Detail,
            "hint" => RaiseOption::Hint,
            "column" => RaiseOption::Column,
            "constraint" => RaiseOption::Constraint,
            "datatype" => RaiseOption::Datatype,
            "table" => RaiseOption::Table,
            "schema" => RaiseOption::Schema,
            _ => return Err(parser.error_near(parser.token(), "unrecognized RAISE statement option")),
        };
        parser.advance();
        if !parser.take_symbol("=") && !parser.take_symbol(":=") {
            return Err(parser.error_near(parser.token(), "syntax error, expected \"=\""));
        }
        raise.options.push((option, parser.expression_until(&[",", ";"])?));
        if !parser.take_symbol(",") {
            return Ok(());
        }
    }
}

/// Number of `%` in a message that stand for parameters; `%%` is a percent sign.
fn placeholders(message: &str) -> usize {
    message.replace("%%", "").matches('%').count()
}
