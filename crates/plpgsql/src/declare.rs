//! DECLARE: variables, aliases and bound cursors.

use std::sync::Arc;

use melba_types::{Result, err, oids};

use super::parser::Parser;
use super::scan::{Token, TokenKind};
use super::tree::{BoundCursor, Expression, Form, LabelKind, Scroll, VariableType};

impl Parser<'_> {
    /// Declarations up to BEGIN; the variables that they make.
    pub fn declarations(&mut self) -> Result<Vec<usize>> {
        let mut declared = Vec::new();
        loop {
            if self.at_word("begin") {
                return Ok(declared);
            }
            if self.take_word("declare") {
                continue;
            }
            if self.at_symbol("<<") {
                let message = "block label must be placed before DECLARE, not after";
                return Err(err!(SYNTAX_ERROR, "{message}").at(self.token().start as i32));
            }
            self.declaration(&mut declared)?;
        }
    }

    fn declaration(&mut self, declared: &mut Vec<usize>) -> Result<()> {
        let at = self.token();
        let name = self.expect_name()?;
        if self.is_declared_here(&name) {
            return Err(self.error_near(at, "duplicate declaration"));
        }
        if self.at_word("alias") && self.is_word(self.peek(1), "for") {
            self.advance();
            self.advance();
            return self.alias(&name);
        }
        if let Some(scroll) = self.cursor_head() {
            return self.bound_cursor(&name, scroll, declared);
        }
        let constant = self.take_word("constant");
        let mut ty = self.datatype(&["collate", "not", "default", ":=", "=", ";"])?;
        if self.take_word("collate") {
            let (names, tokens) = self.dotted(0);
            self.skip(tokens);
            let names: Vec<&str> = names.iter().map(|n| &**n).collect();
            if !ty.collation.is_valid() {
                let shown = self.text_of(at);
                return Err(err!(DATATYPE_MISMATCH, "collations are not supported by type of variable \"{shown}\""));
            }
            ty.collation = self.types.collation(&names)?;
        }
        let not = self.token();
        let not_null = self.take_word("not") && {
            self.expect_word("null")?;
            true
        };
        let default = match self.at_symbol(";") {
            true => None,
            false => {
                if !(self.take_word("default") || self.take_symbol(":=") || self.take_symbol("=")) {
                    return Err(self.syntax_error());
                }
                let mut value = self.expression_until(&[";"])?;
                value.form = Form::Expression;
                Some(value)
            }
        };
        self.expect_symbol(";")?;
        if not_null && default.is_none() {
            let message = format!("variable \"{name}\" must have a default value, since it's declared NOT NULL");
            return Err(err!(NULL_VALUE_NOT_ALLOWED, "{message}").at(not.start as i32));
        }
        let line = self.line_of(at);
        let number = self.add_named(&name, ty);
        let variable = &mut self.variables[number];
        (variable.constant, variable.not_null, variable.default) = (constant, not_null, default);
        variable.line = line;
        declared.push(number);
        Ok(())
    }

    fn alias(&mut self, name: &Arc<str>) -> Result<()> {
        let at = self.token();
        let (names, tokens) = self.dotted(0);
        let Some(found) = self.resolve(&names).filter(|f| f.names_used == names.len()) else {
            return Err(match names.is_empty() {
                true => self.syntax_error(),
                false => err!(UNDEFINED_OBJECT, "variable \"{}\" does not exist", names.join(".")).at(at.start as i32),
            });
        };
        self.skip(tokens);
        self.expect_symbol(";")?;
        self.name_variable(name, found.variable);
        Ok(())
    }

    /// `[[NO] SCROLL] CURSOR`
    fn cursor_head(&mut self) -> Option<Scroll> {
        let (scroll, words) = match () {
            _ if self.at_word("no") && self.is_word(self.peek(1), "scroll") => (Scroll::No, 2),
            _ if self.at_word("scroll") => (Scroll::Yes, 1),
            _ => (Scroll::Default, 0),
        };
        if !self.is_word(self.peek(words), "cursor") {
            return None;
        }
        self.skip(words + 1);
        Some(scroll)
    }

    fn bound_cursor(&mut self, name: &Arc<str>, scroll: Scroll, declared: &mut Vec<usize>) -> Result<()> {
        // Its arguments are visible in its query only.
        let outer = self.scope;
        self.push_label("", LabelKind::Other);
        let mut arguments = Vec::new();
        if self.take_symbol("(") {
            loop {
                let argument = self.expect_name()?;
                let ty = self.datatype(&[",", ")"])?;
                arguments.push(self.add_named(&argument, ty));
                if !self.take_symbol(",") {
                    break;
                }
            }
            self.expect_symbol(")")?;
        }
        if !self.take_word("is") {
            self.expect_word("for")?;
        }
        let query = self.piece_until(&[";"], Form::Statement)?;
        self.expect_symbol(";")?;
        self.scope = outer;
        let number = self.add_named(name, self.types.by_oid(oids::REFCURSOR, -1));
        declared.push(number);
        declared.extend(&arguments);
        self.variables[number].cursor = Some(Box::new(BoundCursor { query, arguments, scroll }));
        Ok(())
    }

    /// A type's name, up to the text after a declaration's type.
    pub fn datatype(&mut self, ends: &[&str]) -> Result<VariableType> {
        let start = self.token();
        if let Some(ty) = self.type_by_reference()? {
            return self.array_suffix(ty);
        }
        let mut end = start.start;
        let mut depth = 0usize;
        loop {
            let token = self.token();
            if depth == 0 && ends.iter().any(|e| self.is_word(token, e) || self.is_symbol(token, e)) {
                break;
            }
            match token.kind {
                TokenKind::End => {
                    let message = if depth > 0 { "mismatched parentheses" } else { "incomplete data type declaration" };
                    return Err(self.error_near(token, message));
                }
                TokenKind::Symbol if matches!(self.text_of(token), "(" | "[") => depth += 1,
                TokenKind::Symbol if matches!(self.text_of(token), ")" | "]") => depth = depth.saturating_sub(1),
                TokenKind::Symbol if self.text_of(token) == ";" => {
                    return Err(self.error_near(token, "incomplete data type declaration"));
                }
                _ => {}
            }
            end = token.end;
            self.advance();
        }
        if end <= start.start {
            return Err(self.error_near(self.token(), "missing data type declaration"));
        }
        let text = &self.text[start.start..end];
        self.types.named(text).map_err(|e| self.at_type(e, start))
    }

    fn at_type(&self, e: melba_types::DbError, start: Token) -> melba_types::DbError {
        // The position is one in the type's own text.
        let offset = e.fields().position.map_or(0, |p| p as i32 - 1);
        e.at(start.start as i32 + offset.max(0))
    }

    /// `name%TYPE`, `name%ROWTYPE`
    fn type_by_reference(&mut self) -> Result<Option<VariableType>> {
        let (names, tokens) = self.dotted(0);
        let word = self.peek(tokens + 1);
        let (is_type, is_row) = (self.is_word(word, "type"), self.is_word(word, "rowtype"));
        if names.is_empty() || !self.is_symbol(self.peek(tokens), "%") || !(is_type || is_row) {
            return Ok(None);
        }
        self.skip(tokens + 2);
        let parts: Vec<&str> = names.iter().map(|n| &**n).collect();
        if is_row {
            return self.types.of_row(&parts).map(Some);
        }
        if let Some(found) = self.resolve(&names) {
            let ty = self.variables[found.variable].ty;
            match parts.get(found.names_used) {
                None => return Ok(Some(ty)),
                Some(field) => {
                    if let Some(ty) = self.types.of_field(ty, field) {
                        return Ok(Some(ty));
                    }
                }
            }
        }
        self.types.of_column(&parts).map(Some)
    }

    /// `[]`, `[3]`, `ARRAY`, `ARRAY[3]` behind `%TYPE`.
    fn array_suffix(&mut self, ty: VariableType) -> Result<VariableType> {
        let mut is_array = self.take_word("array");
        while self.take_symbol("[") {
            is_array = true;
            if self.token().kind == TokenKind::Number {
                self.advance();
            }
            self.expect_symbol("]")?;
        }
        if is_array { self.types.array_of(ty) } else { Ok(ty) }
    }

    /// Whether a variable is a cursor's.
    pub fn cursor_variable(&mut self) -> Result<usize> {
        let at = self.token();
        let (names, _) = self.dotted(0);
        let Some(found) = self.resolve(&names).filter(|f| f.names_used == names.len()) else {
            return Err(match names.is_empty() {
                true => self.syntax_error(),
                false => err!(SYNTAX_ERROR, "\"{}\" is not a known variable", names.join(".")).at(at.start as i32),
            });
        };
        let ty = self.variables[found.variable].ty;
        if ty.is_record {
            return Err(err!(DATATYPE_MISMATCH, "cursor variable must be a simple variable").at(at.start as i32));
        }
        if ty.oid != oids::REFCURSOR {
            let name = &self.variables[found.variable].name;
            let message = format!("variable \"{name}\" must be of type cursor or refcursor");
            return Err(err!(DATATYPE_MISMATCH, "{message}").at(at.start as i32));
        }
        self.skip(2 * names.len() - 1);
        Ok(found.variable)
    }

    /// A bound cursor's arguments, by place or by name, as one SELECT's list; none when it takes none.
    pub fn cursor_arguments(&mut self, cursor: usize) -> Result<Option<Expression>> {
        let bound = self.variables[cursor].cursor.as_ref().map_or(&[][..], |c| &c.arguments).to_vec();
        let name = self.variables[cursor].name.clone();
        if !self.at_symbol("(") {
            if !bound.is_empty() {
                return Err(err!(SYNTAX_ERROR, "cursor \"{name}\" has arguments").at(self.token().start as i32));
            }
            return Ok(None);
        }
        if bound.is_empty() {
            return Err(err!(SYNTAX_ERROR, "cursor \"{name}\" has no arguments").at(self.token().start as i32));
        }
        self.advance();
        let mut values: Vec<Option<String>> = vec![None; bound.len()];
        for next in 0.. {
            let at = self.token();
            let is_named = self.is_symbol(self.peek(1), ":=") || self.is_symbol(self.peek(1), "=>");
            let place = match is_named {
                true => {
                    let argument = self.expect_name()?;
                    self.advance();
                    let place = bound.iter().position(|a| *self.variables[*a].name == *argument);
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
                let argument = self.variables[bound[place]].name.clone();
                let message = format!("value for parameter \"{argument}\" of cursor \"{name}\" specified more than once");
                return Err(err!(SYNTAX_ERROR, "{message}").at(at.start as i32));
            }
            let value = self.expression_until(&[",", ")"])?;
            values[place] = Some(match is_named {
                true => format!("{} AS {}", value.text, self.variables[bound[place]].name),
                false => value.text.to_string(),
            });
            if !self.take_symbol(",") {
                break;
            }
        }
        if values.iter().any(Option::is_none) {
            return Err(err!(SYNTAX_ERROR, "not enough arguments for cursor \"{name}\"").at(self.token().start as i32));
        }
        self.expect_symbol(")")?;
        let list: Vec<String> = values.into_iter().flatten().collect();
        Ok(Some(self.made_expression(&list.join(", "))))
    }
}
