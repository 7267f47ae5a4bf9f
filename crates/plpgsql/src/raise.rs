//! RAISE.

use std::sync::Arc;

use melba_types::{Result, bail, err};

use super::conditions;
use super::parser::Parser;
use super::scan::TokenKind;
use super::tree::*;

impl Parser<'_> {
    pub fn raise(&mut self) -> Result<StatementKind> {
        self.advance();
        let mut raise =
            Raise { level: Level::Exception, condition: None, message: None, parameters: Vec::new(), options: Vec::new() };
        let done = |raise| Ok(StatementKind::Raise(Box::new(raise)));
        if self.take_symbol(";") {
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
        if let Some((_, level)) = levels.iter().find(|(word, _)| self.at_word(word)) {
            raise.level = *level;
            self.advance();
        }
        if self.token().kind == TokenKind::String {
            raise.message = Some(self.string_value(self.token())?);
            self.advance();
            while self.take_symbol(",") {
                raise.parameters.push(self.expression_until(&[",", ";", "using"])?);
            }
        } else if !self.at_word("using") && !self.at_symbol(";") {
            raise.condition = Some(self.raised_condition()?);
        }
        if self.take_word("using") {
            self.raise_options(&mut raise)?;
        }
        self.expect_symbol(";")?;
        let placeholders = placeholders(raise.message.as_deref().unwrap_or(""));
        if placeholders > raise.parameters.len() {
            bail!(SYNTAX_ERROR, "too few parameters specified for RAISE");
        }
        if placeholders < raise.parameters.len() {
            bail!(SYNTAX_ERROR, "too many parameters specified for RAISE");
        }
        done(raise)
    }

    fn raised_condition(&mut self) -> Result<Arc<str>> {
        let at = self.token();
        let name = self.expect_name()?;
        if &*name != "sqlstate" {
            if conditions::by_name(&name).next().is_none() {
                return Err(err!(UNDEFINED_OBJECT, "unrecognized exception condition \"{name}\"").at(at.start as i32));
            }
            return Ok(name);
        }
        let code = self.token();
        if code.kind != TokenKind::String {
            return Err(self.syntax_error());
        }
        let text = self.string_value(code)?;
        if conditions::by_code(&text).is_none() {
            bail!(SYNTAX_ERROR, "invalid SQLSTATE code");
        }
        self.advance();
        Ok(text)
    }

    fn raise_options(&mut self, raise: &mut Raise) -> Result<()> {
        loop {
            let option = match self.word_text().as_str() {
                "errcode" => RaiseOption::ErrorCode,
                "message" => RaiseOption::Message,
                "detail" => RaiseOption::Detail,
                "hint" => RaiseOption::Hint,
                "column" => RaiseOption::Column,
                "constraint" => RaiseOption::Constraint,
                "datatype" => RaiseOption::Datatype,
                "table" => RaiseOption::Table,
                "schema" => RaiseOption::Schema,
                _ => return Err(self.error_near(self.token(), "unrecognized RAISE statement option")),
            };
            self.advance();
            if !self.take_symbol("=") && !self.take_symbol(":=") {
                return Err(self.error_near(self.token(), "syntax error, expected \"=\""));
            }
            raise.options.push((option, self.expression_until(&[",", ";"])?));
            if !self.take_symbol(",") {
                return Ok(());
            }
        }
    }
}

/// Number of `%` in a message that stand for parameters; `%%` is a percent sign.
fn placeholders(message: &str) -> usize {
    message.replace("%%", "").matches('%').count()
}
