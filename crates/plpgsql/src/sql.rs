//! Pieces of SQL in a function: finds their ends, and checks them with SQL's grammar.

use std::sync::Arc;

use melba_types::{Result, err};

use super::parser::Parser;
use super::scan::{Token, TokenKind};
use super::tree::{Expression, Form, Into, Target};

impl Parser<'_> {
    /// An expression up to one of the words or symbols, which is left standing.
    ///
    /// # Errors
    /// 42601 when the text ends before, or there is nothing.
    pub fn expression_until(&mut self, ends: &[&str]) -> Result<Expression> {
        self.piece_until(ends, Form::Expression)
    }

    pub fn piece_until(&mut self, ends: &[&str], form: Form) -> Result<Expression> {
        let start = self.token().start;
        let end = self.skip_until(ends, form)?;
        if end <= start {
            return Err(self
                .error_near(self.token(), if form == Form::Statement { "missing SQL statement" } else { "missing expression" }));
        }
        let text = &self.text[start..end];
        let expression = self.new_expression(text, start, form);
        self.check(&expression)?;
        Ok(expression)
    }

    /// Goes to one of the words or symbols, outside of parentheses; where the text before it ends.
    pub fn skip_until(&mut self, ends: &[&str], form: Form) -> Result<usize> {
        let mut depth = 0usize;
        let mut end = self.token().start;
        loop {
            let token = self.token();
            let is_end = depth == 0 && ends.iter().any(|e| self.is_word(token, e) || self.is_symbol(token, e));
            if is_end {
                return Ok(end);
            }
            match token.kind {
                TokenKind::End => return Err(self.missing(depth, ends, form)),
                TokenKind::Symbol => match self.text_of(token) {
                    "(" | "[" => depth += 1,
                    ")" | "]" if depth == 0 => return Err(self.error_near(token, "mismatched parentheses")),
                    ")" | "]" => depth -= 1,
                    ";" => return Err(self.missing(depth, ends, form)),
                    _ => {}
                },
                _ => {}
            }
            end = token.end;
            self.advance();
        }
    }

    fn missing(&self, depth: usize, ends: &[&str], form: Form) -> melba_types::DbError {
        if depth > 0 {
            return self.error_near(self.token(), "mismatched parentheses");
        }
        let what = if form == Form::Statement { "statement" } else { "expression" };
        let wanted = match ends {
            [";"] => ";".to_owned(),
            [first, ..] if first.starts_with(|c: char| c.is_ascii_alphabetic()) => first.to_uppercase(),
            [",", "using", ";"] => ", or ;".to_owned(),
            [first, ..] => (*first).to_owned(),
            [] => String::new(),
        };
        self.error_near(self.token(), &format!("missing \"{wanted}\" at end of SQL {what}"))
    }

    /// Parses a piece, for errors of its syntax.
    fn check(&self, expression: &Expression) -> Result<()> {
        const HEAD: &str = "SELECT ";
        let (text, head) = match expression.form {
            Form::Statement => (expression.text.to_string(), 0),
            Form::Expression | Form::Assignment => (format!("{HEAD}{}", expression.text), HEAD.len()),
        };
        melba_parse::parse_as(&text, self.strings).map(drop).map_err(|mut e| {
            if let Some(position) = e.fields().position {
                let offset = (position as usize - 1).saturating_sub(head);
                e.fields_mut().position = Some((expression.start + offset) as u32 + 1);
            }
            e
        })
    }

    /// A statement of SQL, its INTO taken out; passes the semicolon.
    pub fn sql_statement(&mut self) -> Result<(Expression, Option<Into>)> {
        let first = self.token();
        let mut text = String::new();
        let mut from = first.start;
        let mut into = None;
        let mut depth = 0usize;
        let mut begins = 0usize;
        let is_routine = self.is_word(first, "create");
        let mut previous = first;
        loop {
            let token = self.token();
            match token.kind {
                TokenKind::End => return Err(self.error_near(token, "syntax error")),
                TokenKind::Symbol => match self.text_of(token) {
                    "(" | "[" => depth += 1,
                    ")" | "]" => depth = depth.saturating_sub(1),
                    ";" if depth == 0 && begins == 0 => break,
                    _ => {}
                },
                TokenKind::Word if is_routine && self.begins_atomic(token) => begins += 1,
                TokenKind::Word if begins > 0 && self.is_word(token, "case") => begins += 1,
                TokenKind::Word if begins > 0 && self.is_word(token, "end") => begins -= 1,
                TokenKind::Word if self.is_into(token, previous, first) => {
                    if into.is_some() {
                        return Err(err!(SYNTAX_ERROR, "INTO specified more than once").at(token.start as i32));
                    }
                    text.push_str(&self.text[from..token.start]);
                    self.advance();
                    into = Some(self.into_target()?);
                    from = self.peek_back().end;
                    // The rest keeps its place.
                    text.push_str(&" ".repeat(from - token.start));
                    previous = token;
                    continue;
                }
                _ => {}
            }
            previous = token;
            self.advance();
        }
        text.push_str(&self.text[from..self.peek_back().end.max(from)]);
        self.advance();
        let trimmed = text.trim_end();
        let expression = self.new_expression(trimmed, first.start, Form::Statement);
        self.check(&expression)?;
        Ok((expression, into))
    }

    fn begins_atomic(&self, token: Token) -> bool {
        self.is_word(token, "begin") && self.is_word(self.peek(1), "atomic")
    }

    /// INSERT INTO, MERGE INTO and IMPORT ... INTO are SQL's own.
    fn is_into(&self, token: Token, previous: Token, first: Token) -> bool {
        self.is_word(token, "into")
            && !self.is_word(previous, "insert")
            && !self.is_word(previous, "merge")
            && !self.is_word(first, "import")
    }

    /// `[STRICT] target [, ...]` behind INTO.
    pub fn into_target(&mut self) -> Result<Into> {
        let strict = self.at_word("strict") && {
            self.advance();
            true
        };
        Ok(Into { target: self.target_list()?, strict })
    }

    /// A record variable, or a list of others.
    pub fn target_list(&mut self) -> Result<Target> {
        let at = self.token();
        let first = self.one_target()?;
        self.check_assignable(&first, at)?;
        if self.is_record(&first) {
            if self.at_symbol(",") {
                let message = "record variable cannot be part of multiple-item INTO list";
                return Err(err!(SYNTAX_ERROR, "{message}").at(self.token().start as i32));
            }
            return Ok(first);
        }
        let mut targets = vec![first];
        while self.take_symbol(",") {
            let at = self.token();
            let next = self.one_target()?;
            self.check_assignable(&next, at)?;
            if self.is_record(&next) {
                return Err(err!(SYNTAX_ERROR, "\"{}\" is not a scalar variable", self.text_of(at)).at(at.start as i32));
            }
            targets.push(next);
        }
        Ok(Target::Row(targets))
    }

    fn one_target(&mut self) -> Result<Target> {
        let at = self.token();
        match self.variable_here() {
            Some((target, _)) => Ok(target),
            None if self.name_of(at).is_some() => {
                let (names, _) = self.dotted(0);
                let shown = names.join(".");
                Err(err!(SYNTAX_ERROR, "\"{shown}\" is not a known variable").at(at.start as i32))
            }
            None => Err(self.syntax_error()),
        }
    }

    /// `expression [, ...]` up to one of the ends.
    pub fn expressions_until(&mut self, ends: &[&str]) -> Result<Vec<Expression>> {
        let mut all = vec![","];
        all.extend(ends);
        let mut out = Vec::new();
        loop {
            out.push(self.expression_until(&all)?);
            if !self.take_symbol(",") {
                return Ok(out);
            }
        }
    }

    /// A text that is no part of the function's, over the names that are visible now.
    pub fn synthesized_expression(&mut self, text: &str) -> Expression {
        let start = self.token().start;
        let mut expression = self.new_expression(text, start, Form::Expression);
        expression.shown = Arc::from("");
        expression
    }
}
