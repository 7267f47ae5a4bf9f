//! Loops.

use std::sync::Arc;

use melba_types::{Result, err, oids};

use super::parser::Parser;
use super::tree::*;

impl Parser<'_> {
    /// `LOOP ... END LOOP [label];` with the loop's own level of names open.
    fn rest_of_loop(&mut self, label: Option<Arc<str>>) -> Result<Loop> {
        self.expect_word("loop")?;
        let body = self.statements(&["end"])?;
        self.expect_word("end")?;
        self.expect_word("loop")?;
        self.end_label(label.as_deref())?;
        self.expect_symbol(";")?;
        Ok(Loop { label, body })
    }

    pub fn loop_body(&mut self, label: Option<Arc<str>>) -> Result<Loop> {
        let outer = self.scope;
        self.push_label(label.as_deref().unwrap_or(""), LabelKind::Loop);
        let body = self.rest_of_loop(label)?;
        self.scope = outer;
        Ok(body)
    }

    pub fn while_loop(&mut self, label: Option<Arc<str>>) -> Result<StatementKind> {
        self.advance();
        let outer = self.scope;
        self.push_label(label.as_deref().unwrap_or(""), LabelKind::Loop);
        let condition = self.expression_until(&["loop"])?;
        let body = self.rest_of_loop(label)?;
        self.scope = outer;
        Ok(StatementKind::While { condition, body })
    }

    pub fn for_loop(&mut self, label: Option<Arc<str>>) -> Result<StatementKind> {
        self.advance();
        let outer = self.scope;
        self.push_label(label.as_deref().unwrap_or(""), LabelKind::Loop);
        let at = self.token();
        let (names, tokens) = self.dotted(0);
        let after = self.peek(tokens);
        let is_known = self.resolve(&names).is_some();
        if !is_known && !self.is_word(after, "in") && !self.is_symbol(after, ",") {
            return Err(self.syntax_error());
        }
        // An integer loop has its own variable, so that its name need not be declared.
        let is_single = self.is_word(after, "in") && names.len() == 1;
        let mut target = None;
        if is_known {
            target = Some(self.loop_target()?);
        } else {
            self.skip(tokens);
        }
        self.expect_word("in")?;
        let kind = if self.take_word("execute") {
            let query = self.expression_until(&["using", "loop"])?;
            let using = if self.take_word("using") { self.expressions_until(&["loop"])? } else { Vec::new() };
            let target = self.row_target(target, at)?;
            StatementKind::ForRows { target, source: RowSource::Execute { query, using }, body: self.rest_of_loop(label)? }
        } else if let Some(cursor) = self.cursor_of_loop()? {
            self.for_cursor(cursor, &names, label)?
        } else {
            let reverse = self.take_word("reverse");
            let start = self.position();
            self.skip_until(&["..", "loop"], Form::Expression)?;
            let is_range = self.at_symbol("..");
            self.go_back(start);
            if is_range {
                if !is_single {
                    let message = "integer FOR loop must have only one target variable";
                    return Err(err!(SYNTAX_ERROR, "{message}").at(at.start as i32));
                }
                self.integer_loop(&names[0], reverse, label)?
            } else {
                if reverse {
                    return Err(err!(SYNTAX_ERROR, "cannot specify REVERSE in query FOR loop").at(at.start as i32));
                }
                let target = self.row_target(target, at)?;
                let query = self.piece_until(&["loop"], Form::Statement)?;
                StatementKind::ForRows { target, source: RowSource::Query(query), body: self.rest_of_loop(label)? }
            }
        };
        self.scope = outer;
        Ok(kind)
    }

    fn loop_target(&mut self) -> Result<Target> {
        match self.target_list()? {
            Target::Row(mut targets) if targets.len() == 1 => Ok(Target::Row(vec![targets.remove(0)])),
            target => Ok(target),
        }
    }

    fn row_target(&self, target: Option<Target>, at: super::scan::Token) -> Result<Target> {
        target.ok_or_else(|| {
            let message = "loop variable of loop over rows must be a record variable or list of scalar variables";
            err!(SYNTAX_ERROR, "{message}").at(at.start as i32)
        })
    }

    fn integer_loop(&mut self, name: &Arc<str>, reverse: bool, label: Option<Arc<str>>) -> Result<StatementKind> {
        let lower = self.expression_until(&[".."])?;
        self.advance();
        let upper = self.expression_until(&["loop", "by"])?;
        let step = if self.take_word("by") { Some(self.expression_until(&["loop"])?) } else { None };
        let variable = self.add_named(name, self.types.by_oid(oids::INT4, -1));
        let body = self.rest_of_loop(label)?;
        Ok(StatementKind::ForInteger { variable, lower, upper, step, reverse, body })
    }

    /// The cursor variable that FOR ... IN reads, if one stands here.
    fn cursor_of_loop(&mut self) -> Result<Option<usize>> {
        let (names, tokens) = self.dotted(0);
        let after = self.peek(tokens);
        let Some(found) = self.resolve(&names).filter(|f| f.names_used == names.len()) else { return Ok(None) };
        let variable = &self.variables[found.variable];
        if variable.ty.oid != oids::REFCURSOR || !(self.is_word(after, "loop") || self.is_symbol(after, "(")) {
            return Ok(None);
        }
        if variable.cursor.is_none() {
            let message = "cursor FOR loop must use a bound cursor variable";
            return Err(err!(SYNTAX_ERROR, "{message}").at(self.token().start as i32));
        }
        self.skip(tokens);
        Ok(Some(found.variable))
    }

    fn for_cursor(&mut self, cursor: usize, names: &[Arc<str>], label: Option<Arc<str>>) -> Result<StatementKind> {
        let [name] = names else {
            return Err(err!(SYNTAX_ERROR, "cursor FOR loop must have only one target variable"));
        };
        let arguments = self.cursor_arguments(cursor)?;
        let variable = self.add_named(name, self.types.by_oid(oids::RECORD, -1));
        let source = RowSource::Cursor { cursor, arguments };
        Ok(StatementKind::ForRows { target: Target::Variable(variable), source, body: self.rest_of_loop(label)? })
    }

    pub fn foreach_loop(&mut self, label: Option<Arc<str>>) -> Result<StatementKind> {
        self.advance();
        let outer = self.scope;
        self.push_label(label.as_deref().unwrap_or(""), LabelKind::Loop);
        let at = self.token();
        let target = match self.target_list() {
            Ok(target) => target,
            Err(_) if self.name_of(at).is_some() => {
                let message = "loop variable of FOREACH must be a known variable or list of variables";
                return Err(err!(SYNTAX_ERROR, "{message}").at(at.start as i32));
            }
            Err(e) => return Err(e),
        };
        let target = match target {
            Target::Row(mut targets) if targets.len() == 1 => targets.remove(0),
            target => target,
        };
        let slice = match self.take_word("slice") {
            true => {
                let number = self.advance();
                self.text_of(number).parse().map_err(|_| self.syntax_error())?
            }
            false => 0,
        };
        self.expect_word("in")?;
        self.expect_word("array")?;
        let array = self.expression_until(&["loop"])?;
        let body = self.rest_of_loop(label)?;
        self.scope = outer;
        Ok(StatementKind::ForEach { target, slice, array, body })
    }
}
