//! DECLARE: variables, aliases and bound cursors.

use std::sync::Arc;

use melba_types::{Result, err, oids};

use super::parser::Parser;
use super::scan::{Token, TokenKind};
use super::tree::{BoundCursor, Expression, Form, LabelKind, Scroll, VariableType};

/// Declarations up to BEGIN; the variables that they make.
pub fn declarations(parser: &mut Parser<'_>) -> Result<Vec<usize>> {
    let mut declared = Vec::new();
    loop {
        if parser.at_word("begin") {
            return Ok(declared);
        }
        if parser.take_word("declare") {
            continue;
        }
        if parser.at_symbol("<<") {
            let message = "block label must be placed before DECLARE, not after";
            return Err(err!(SYNTAX_ERROR, "{message}").at(parser.token().start as i32));
        }
        declaration(parser, &mut declared)?;
    }
}

fn note_shadowing(parser: &mut Parser<'_>, name: &Arc<str>, at: Token) {
    if parser.resolve(std::slice::from_ref(name)).is_some() {
        parser.shadowing.push((name.clone(), at.start));
    }
}

fn declaration(parser: &mut Parser<'_>, declared: &mut Vec<usize>) -> Result<()> {
    let at = parser.token();
    let name = parser.expect_name()?;
    if parser.is_declared_here(&name) {
        return Err(parser.error_near(at, "duplicate declaration"));
    }
    note_shadowing(parser, &name, at);
    if parser.at_word("alias") && parser.is_word(parser.peek(1), "for") {
        parser.advance();
        parser.advance();
        return alias(parser, &name);
    }
    if let Some(scroll) = cursor_head(parser) {
        return bound_cursor(parser, &name, scroll, declared);
    }
    let constant = parser.take_word("constant");
    let mut ty = datatype(parser, &["collate", "not", "default", ":=", "=", ";"])?;
    if parser.take_word("collate") {
        let (names, tokens) = parser.dotted(0);
        parser.skip(tokens);
        let names: Vec<&str> = names.iter().map(|n| &**n).collect();
        if !ty.collation.is_valid() {
            let shown = parser.text_of(at);
            return Err(err!(DATATYPE_MISMATCH, "collations are not supported by type of variable \"{shown}\""));
        }
        ty.collation = parser.types.collation(&names)?;
    }
    let not = parser.token();
    let not_null = parser.take_word("not") && {
        parser.expect_word("null")?;
        true
    };
    let default = match parser.at_symbol(";") {
        true => None,
        false => {
            if !(parser.take_word("default") || parser.take_symbol(":=") || parser.take_symbol("=")) {
                return Err(parser.syntax_error());
            }
            let mut value = parser.expression_until(&[";"])?;
            value.form = Form::Expression;
            Some(value)
        }
    };
    parser.expect_symbol(";")?;
    check_type(parser, &name, ty)?;
    if not_null && default.is_none() {
        let message = format!("variable \"{name}\" must have a default value, since it's declared NOT NULL");
        return Err(err!(NULL_VALUE_NOT_ALLOWED, "{message}").at(not.start as i32));
    }
    let line = parser.line_of(at);
    let number = parser.add_named(&name, ty);
    let variable = &mut parser.variables[number];
    (variable.constant, variable.not_null, variable.default) = (constant, not_null, default);
    variable.line = line;
    declared.push(number);
    Ok(())
}

fn alias(parser: &mut Parser<'_>, name: &Arc<str>) -> Result<()> {
    let at = parser.token();
    let (names, tokens) = parser.dotted(0);
    let Some(found) = parser.resolve(&names).filter(|f| f.names_used == names.len()) else {
        return Err(match names.is_empty() {
            true => parser.syntax_error(),
            false => err!(UNDEFINED_OBJECT, "variable \"{}\" does not exist", names.join(".")).at(at.start as i32),
        });
    };
    parser.skip(tokens);
    parser.expect_symbol(";")?;
    parser.name_variable(name, found.variable);
    Ok(())
}

/// `[[NO] SCROLL] CURSOR`
fn cursor_head(parser: &mut Parser<'_>) -> Option<Scroll> {
    let (scroll, words) = match () {
        _ if parser.at_word("no") && parser.is_word(parser.peek(1), "scroll") => (Scroll::No, 2),
        _ if parser.at_word("scroll") => (Scroll::Yes, 1),
        _ => (Scroll::Default, 0),
    };
    if !parser.is_word(parser.peek(words), "cursor") {
        return None;
    }
    parser.skip(words + 1);
    Some(scroll)
}

fn bound_cursor(parser: &mut Parser<'_>, name: &Arc<str>, scroll: Scroll, declared: &mut Vec<usize>) -> Result<()> {
    // Its arguments are visible in its query only.
    let outer = parser.scope;
    parser.push_label("", LabelKind::Other);
    let mut arguments = Vec::new();
    if parser.take_symbol("(") {
        loop {
            let at = parser.token();
            let argument = parser.expect_name()?;
            note_shadowing(parser, &argument, at);
            let ty = datatype(parser, &[",", ")"])?;
            check_type(parser, &argument, ty)?;
            arguments.push(parser.add_named(&argument, ty));
            if !parser.take_symbol(",") {
                break;
            }
        }
        parser.expect_symbol(")")?;
    }
    if !parser.take_word("is") {
        parser.expect_word("for")?;
    }
    let query = parser.piece_until(&[";"], Form::Statement)?;
    parser.expect_symbol(";")?;
    parser.scope = outer;
    let number = parser.add_named(name, parser.types.by_oid(oids::REFCURSOR, -1));
    declared.push(number);
    declared.extend(&arguments);
    parser.variables[number].cursor = Some(Box::new(BoundCursor { query, arguments, scroll }));
    Ok(())
}

/// # Errors
/// 0A000 for a pseudo-type.
fn check_type(parser: &Parser<'_>, name: &str, ty: VariableType) -> Result<()> {
    match parser.types.pseudo_type(ty) {
        Some(shown) => Err(err!(FEATURE_NOT_SUPPORTED, "variable \"{name}\" has pseudo-type {shown}")),
        None => Ok(()),
    }
}

/// A type's name, up to the text after a declaration's type.
pub fn datatype(parser: &mut Parser<'_>, ends: &[&str]) -> Result<VariableType> {
    let start = parser.token();
    if let Some(ty) = type_by_reference(parser)? {
        return array_suffix(parser, ty);
    }
    let mut end = start.start;
    let mut depth = 0usize;
    loop {
        let token = parser.token();
        if depth == 0 && ends.iter().any(|e| parser.is_word(token, e) || parser.is_symbol(token, e)) {
            break;
        }
        match token.kind {
            TokenKind::End => {
                let message = if depth > 0 { "mismatched parentheses" } else { "incomplete data type declaration" };
                return Err(parser.error_near(token, message));
            }
            TokenKind::Symbol if matches!(parser.text_of(token), "(" | "[") => depth += 1,
            TokenKind::Symbol if matches!(parser.text_of(token), ")" | "]") => depth = depth.saturating_sub(1),
            TokenKind::Symbol if parser.text_of(token) == ";" => {
                return Err(parser.error_near(token, "incomplete data type declaration"));
            }
            _ => {}
        }
        end = token.end;
        parser.advance();
    }
    if end <= start.start {
        return Err(parser.error_near(parser.token(), "missing data type declaration"));
    }
    let text = &parser.text[start.start..end];
    parser.types.named(text).map_err(|e| at_type(e, start))
}

fn at_type(mut e: melba_types::DbError, start: Token) -> melba_types::DbError {
    // The position is one in the type's own text.
    let offset = e.fields_mut().position.take().map_or(0, |p| p as i32 - 1);
    e.at(start.start as i32 + offset.max(0))
}

/// `name%TYPE`, `name%ROWTYPE`
fn type_by_reference(parser: &mut Parser<'_>) -> Result<Option<VariableType>> {
    let (names, tokens) = parser.dotted(0);
    let word = parser.peek(tokens + 1);
    let (is_type, is_row) = (parser.is_word(word, "type"), parser.is_word(word, "rowtype"));
    if names.is_empty() || !parser.is_symbol(parser.peek(tokens), "%") || !(is_type || is_row) {
        return Ok(None);
    }
    parser.skip(tokens + 2);
    let parts: Vec<&str> = names.iter().map(|n| &**n).collect();
    if is_row {
        return parser.types.of_row(&parts).map(Some);
    }
    if let Some(found) = parser.resolve(&names) {
        let ty = parser.variables[found.variable].ty;
        match parts.get(found.names_used) {
            None => return Ok(Some(ty)),
            Some(field) => {
                if let Some(ty) = parser.types.of_field(ty, field) {
                    return Ok(Some(ty));
                }
            }
        }
    }
    parser.types.of_column(&parts).map(Some)
}

/// `[]`, `[3]`, `ARRAY`, `ARRAY[3]` behind `%TYPE`.
fn array_suffix(parser: &mut Parser<'_>, ty: VariableType) -> Result<VariableType> {
    let mut is_array = parser.take_word("array");
    while parser.take_symbol("[") {
        is_array = true;
        if parser.token().kind == TokenKind::Number {
            parser.advance();
        }
        parser.expect_symbol("]")?;
    }
    if is_array { parser.types.array_of(ty) } else { Ok(ty) }
}

/// Whether a variable is a cursor's.
pub fn cursor_variable(parser: &mut Parser<'_>) -> Result<usize> {
    let at = parser.token();
    let (names, _) = parser.dotted(0);
    let Some(found) = parser.resolve(&names).filter(|f| f.names_used == names.len()) else {
        return Err(match names.is_empty() {
            true => parser.syntax_error(),
            false => err!(SYNTAX_ERROR, "\"{}\" is not a known variable", names.join(".")).at(at.start as i32),
        });
    };
    let ty = parser.variables[found.variable].ty;
    if ty.is_record {
        return Err(err!(DATATYPE_MISMATCH, "cursor variable must be a simple variable").at(at.start as i32));
    }
    if ty.oid != oids::REFCURSOR {
        let name = &parser.variables[found.variable].name;
        let message = format!("variable \"{name}\" must be of type cursor or refcursor");
        return Err(err!(DATATYPE_MISMATCH, "{message}").at(at.start as i32));
    }
    parser.skip(2 * names.len() - 1);
    Ok(found.variable)
}

/// A bound cursor's arguments, by place or by name, as one SELECT's list; none when it takes none.
pub fn cursor_arguments(parser: &mut Parser<'_>, cursor: usize) -> Result<Option<Expression>> {
    let bound = parser.variables[cursor].cursor.as_ref().map_or(&[][..], |c| &c.arguments).to_vec();
    let name = parser.variables[cursor].name.clone();
    if !parser.at_symbol("(") {
        if !bound.is_empty() {
            return Err(err!(SYNTAX_ERROR, "cursor \"{name}\" has arguments").at(parser.token().start as i32));
        }
        return Ok(None);
    }
    if bound.is_empty() {
        return Err(err!(SYNTAX_ERROR, "cursor \"{name}\" has no arguments").at(parser.token().start as i32));
    }
    parser.advance();
    let mut values: Vec<Option<String>> = vec![None; bound.len()];
    for next in 0.. {
        let at = parser.token();
        let is_named = parser.is_symbol(parser.peek(1), ":=") || parser.is_symbol(parser.peek(1), "=>");
        let place = match is_named {
            true => {
                let argument = parser.expect_name()?;
                parser.advance();
                let place = bound.iter().position(|a| *parser.variables[*a].name == *argument);
                place.ok_or_else(|| {
                    err!(SYNTAX_ERROR, "cursor \"{name}\" has no argument named \"{argument}\"").at(at.start as i32)
                })?
            }
            false => next,
        };
        if place >= bound.len() {
            return Err(err!(SYNTAX_ERROR, "too many arguments for cursor \"{name}\"").at(at.start as i32));
        }
        if values[place].is_some() {
            let argument = parser.variables[bound[place]].name.clone();
            let message = format!("value for parameter \"{argument}\" of cursor \"{name}\" specified more than once");
            return Err(err!(SYNTAX_ERROR, "{message}").at(at.start as i32));
        }
        let value = parser.expression_until(&[",", ")"])?;
        values[place] = Some(match is_named {
            true => format!("{} AS {}", value.text, parser.variables[bound[place]].name),
            false => value.text.to_string(),
        });
        if !parser.take_symbol(",") {
            break;
        }
    }
    if values.iter().any(Option::is_none) {
        return Err(err!(SYNTAX_ERROR, "not enough arguments for cursor \"{name}\"").at(parser.token().start as i32));
    }
    parser.expect_symbol(")")?;
    let list: Vec<String> = values.into_iter().flatten().collect();
    Ok(Some(parser.synthesized_expression(&list.join(", "))))
}
