//! Loops.

use std::sync::Arc;

use melba_types::{DbError, Result, SqlState, err, oids};

use super::declare;
use super::parser::Parser;
use super::tree::*;

/// `LOOP ... END LOOP [label];` with the loop's own level of names open.
fn rest_of_loop(parser: &mut Parser<'_>, label: Option<Arc<str>>) -> Result<Loop> {
    parser.expect_word("loop")?;
    let body = parser.statements(&["end"])?;
    parser.expect_word("end")?;
    parser.expect_word("loop")?;
    parser.end_label(label.as_deref())?;
    parser.expect_symbol(";")?;
    Ok(Loop { label, body })
}

pub fn loop_body(parser: &mut Parser<'_>, label: Option<Arc<str>>) -> Result<Loop> {
    let outer = parser.scope;
    parser.push_label(label.as_deref().unwrap_or(""), LabelKind::Loop);
    let body = rest_of_loop(parser, label)?;
    parser.scope = outer;
    Ok(body)
}

pub fn while_loop(parser: &mut Parser<'_>, label: Option<Arc<str>>) -> Result<StatementKind> {
    parser.advance();
    let outer = parser.scope;
    parser.push_label(label.as_deref().unwrap_or(""), LabelKind::Loop);
    let condition = parser.expression_until(&["loop"])?;
    let body = rest_of_loop(parser, label)?;
    parser.scope = outer;
    Ok(StatementKind::While { condition, body })
}

pub fn for_loop(parser: &mut Parser<'_>, label: Option<Arc<str>>) -> Result<StatementKind> {
    parser.advance();
    let outer = parser.scope;
    parser.push_label(label.as_deref().unwrap_or(""), LabelKind::Loop);
    let at = parser.token();
    let (names, tokens) = parser.dotted(0);
    let after = parser.peek(tokens);
    let is_known = parser.resolve(&names).is_some();
    if !is_known && !parser.is_word(after, "in") && !parser.is_symbol(after, ",") {
        return Err(parser.syntax_error());
    }
    // An integer loop has its own variable, so that its name need not be declared.
    let is_single = parser.is_word(after, "in") && names.len() == 1;
    let mut target = None;
    if is_known {
        check_loop_target(parser)?;
        let start = parser.position();
        let found = loop_target(parser);
        if found.is_err() {
            // An integer loop does not use it.
            if !is_single {
                return found.map(|_| StatementKind::Null);
            }
            parser.go_back(start);
            parser.skip(tokens);
        }
        target = Some(found);
    } else {
        parser.skip(tokens);
    }
    parser.expect_word("in")?;
    let kind = if parser.take_word("execute") {
        let query = parser.expression_until(&["using", "loop"])?;
        let using = if parser.take_word("using") { parser.expressions_until(&["loop"])? } else { Vec::new() };
        let target = row_target(target, at, SqlState::DATATYPE_MISMATCH)?;
        StatementKind::ForRows { target, source: LoopSource::Execute { query, using }, body: rest_of_loop(parser, label)? }
    } else if let Some(cursor) = cursor_of_loop(parser)? {
        for_cursor(parser, cursor, &names, label)?
    } else {
        let reverse = parser.take_word("reverse");
        let start = parser.position();
        parser.skip_until(&["..", "loop"], Form::Expression)?;
        let is_range = parser.at_symbol("..");
        parser.go_back(start);
        if is_range {
            if !is_single {
                let message = "integer FOR loop must have only one target variable";
                return Err(err!(SYNTAX_ERROR, "{message}").at(at.start as i32));
            }
            integer_loop(parser, &names[0], reverse, label)?
        } else {
            if reverse {
                return Err(err!(SYNTAX_ERROR, "cannot specify REVERSE in query FOR loop").at(at.start as i32));
            }
            let target = row_target(target, at, SqlState::SYNTAX_ERROR)?;
            let query = parser.piece_until(&["loop"], Form::Statement)?;
            StatementKind::ForRows { target, source: LoopSource::Query(query), body: rest_of_loop(parser, label)? }
        }
    };
    parser.scope = outer;
    Ok(kind)
}

/// # Errors
/// 42601 for anything but a variable, or a list of them: elements of arrays are none.
fn check_loop_target(parser: &mut Parser<'_>) -> Result<()> {
    let start = parser.position();
    parser.variable_here();
    if !parser.at_word("in") && !parser.at_symbol(",") {
        return Err(parser.syntax_error());
    }
    parser.go_back(start);
    Ok(())
}

fn loop_target(parser: &mut Parser<'_>) -> Result<Target> {
    match parser.target_list()? {
        Target::Row(mut targets) if targets.len() == 1 => Ok(Target::Row(vec![targets.remove(0)])),
        target => Ok(target),
    }
}

/// # Errors
/// `state` when the loop's variable is none that is known; that of the target.
fn row_target(target: Option<Result<Target>>, at: super::scan::Token, state: SqlState) -> Result<Target> {
    target.unwrap_or_else(|| {
        let message = "loop variable of loop over rows must be a record variable or list of scalar variables";
        Err(DbError::new(state, message).at(at.start as i32))
    })
}

fn integer_loop(parser: &mut Parser<'_>, name: &Arc<str>, reverse: bool, label: Option<Arc<str>>) -> Result<StatementKind> {
    let lower = parser.expression_until(&[".."])?;
    parser.advance();
    let upper = parser.expression_until(&["loop", "by"])?;
    let step = if parser.take_word("by") { Some(parser.expression_until(&["loop"])?) } else { None };
    let variable = parser.add_named(name, parser.types.by_oid(oids::INT4, -1));
    let body = rest_of_loop(parser, label)?;
    Ok(StatementKind::ForInteger { variable, lower, upper, step, reverse, body })
}

/// The cursor variable that FOR ... IN reads, if one stands here.
fn cursor_of_loop(parser: &mut Parser<'_>) -> Result<Option<usize>> {
    let (names, tokens) = parser.dotted(0);
    let after = parser.peek(tokens);
    let Some(found) = parser.resolve(&names).filter(|f| f.names_used == names.len()) else { return Ok(None) };
    let variable = &parser.variables[found.variable];
    if variable.ty.oid != oids::REFCURSOR || !(parser.is_word(after, "loop") || parser.is_symbol(after, "(")) {
        return Ok(None);
    }
    if variable.cursor.is_none() {
        let message = "cursor FOR loop must use a bound cursor variable";
        return Err(err!(SYNTAX_ERROR, "{message}").at(parser.token().start as i32));
    }
    parser.skip(tokens);
    Ok(Some(found.variable))
}

fn for_cursor(parser: &mut Parser<'_>, cursor: usize, names: &[Arc<str>], label: Option<Arc<str>>) -> Result<StatementKind> {
    let [name] = names else {
        return Err(err!(SYNTAX_ERROR, "cursor FOR loop must have only one target variable"));
    };
    let arguments = declare::cursor_arguments(parser, cursor)?;
    let variable = parser.add_named(name, parser.types.by_oid(oids::RECORD, -1));
    let source = LoopSource::Cursor { cursor, arguments };
    Ok(StatementKind::ForRows { target: Target::Variable(variable), source, body: rest_of_loop(parser, label)? })
}

pub fn foreach_loop(parser: &mut Parser<'_>, label: Option<Arc<str>>) -> Result<StatementKind> {
    parser.advance();
    let outer = parser.scope;
    parser.push_label(label.as_deref().unwrap_or(""), LabelKind::Loop);
    let at = parser.token();
    let target = match parser.target_list() {
        Ok(target) => target,
        Err(_) if parser.name_of(at).is_some() => {
            let message = "loop variable of FOREACH must be a known variable or list of variables";
            return Err(err!(SYNTAX_ERROR, "{message}").at(at.start as i32));
        }
        Err(e) => return Err(e),
    };
    let target = match target {
        Target::Row(mut targets) if targets.len() == 1 => targets.remove(0),
        target => target,
    };
    let slice = match parser.take_word("slice") {
        true => {
            let number = parser.advance();
            parser.text_of(number).parse().map_err(|_| parser.syntax_error())?
        }
        false => 0,
    };
    parser.expect_word("in")?;
    parser.expect_word("array")?;
    let array = parser.expression_until(&["loop"])?;
    let body = rest_of_loop(parser, label)?;
    parser.scope = outer;
    Ok(StatementKind::ForEach { target, slice, array, body })
}
