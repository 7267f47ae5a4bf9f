//! Statements of a function.

use std::sync::Arc;

use melba_types::{Result, bail, err, limits, oids};

use super::parser::Parser;
use super::scan::TokenKind;
use super::tree::*;
use super::{Returns, conditions, declare, loops, raise};

impl Parser<'_> {
    /// The function's block, and nothing behind it but a semicolon.
    pub fn outer_block(&mut self) -> Result<PlpgsqlStatement> {
        let label = self.label()?;
        let block = self.block(label)?;
        self.take_symbol(";");
        match self.token().kind {
            TokenKind::End => Ok(block),
            _ => Err(self.syntax_error()),
        }
    }

    /// `<<label>>`, if there is one.
    fn label(&mut self) -> Result<Option<Arc<str>>> {
        if !self.take_symbol("<<") {
            return Ok(None);
        }
        let label = self.expect_name()?;
        self.expect_symbol(">>")?;
        Ok(Some(label))
    }

    /// `[DECLARE ...] BEGIN ... [EXCEPTION ...] END [label]`
    fn block(&mut self, label: Option<Arc<str>>) -> Result<PlpgsqlStatement> {
        let outer = self.scope;
        self.push_label(label.as_deref().unwrap_or(""), LabelKind::Block);
        let declares = if self.take_word("declare") { declare::declarations(self)? } else { Vec::new() };
        let line = self.line_of(self.token());
        self.expect_word("begin")?;
        let body = self.statements(&["end", "exception"])?;
        let exceptions = if self.take_word("exception") { Some(self.exceptions()?) } else { None };
        self.expect_word("end")?;
        self.end_label(label.as_deref())?;
        self.scope = outer;
        Ok(PlpgsqlStatement::new(line, StatementKind::Block(Box::new(StatementBlock { label, declares, body, exceptions }))))
    }

    pub fn end_label(&mut self, label: Option<&str>) -> Result<()> {
        let at = self.token();
        if self.at_symbol(";") || at.kind == TokenKind::End {
            return Ok(());
        }
        let end = self.expect_name()?;
        match label {
            None => Err(err!(SYNTAX_ERROR, "end label \"{end}\" specified for unlabeled block").at(at.start as i32)),
            Some(label) if *label != *end => {
                Err(err!(SYNTAX_ERROR, "end label \"{end}\" differs from block's label \"{label}\"").at(at.start as i32))
            }
            Some(_) => Ok(()),
        }
    }

    fn exceptions(&mut self) -> Result<Exceptions> {
        let outer = self.scope;
        let text = self.types.by_oid(oids::TEXT, -1);
        let state = self.add_named("sqlstate", text);
        let message = self.add_named("sqlerrm", text);
        for variable in [state, message] {
            self.variables[variable].constant = true;
        }
        let mut handlers = Vec::new();
        let was_in_handler = std::mem::replace(&mut self.in_handler, true);
        while self.take_word("when") {
            let mut conditions = Vec::new();
            loop {
                self.condition(&mut conditions)?;
                if !self.take_word("or") {
                    break;
                }
            }
            self.expect_word("then")?;
            handlers.push(Handler { conditions, body: self.statements(&["end", "when"])? });
        }
        self.in_handler = was_in_handler;
        if handlers.is_empty() {
            return Err(self.syntax_error());
        }
        self.scope = outer;
        Ok(Exceptions { state, message, handlers })
    }

    fn condition(&mut self, out: &mut Vec<Condition>) -> Result<()> {
        let name = self.expect_name()?;
        if &*name == "sqlstate" {
            let code = self.token();
            if code.kind != TokenKind::String {
                return Err(self.syntax_error());
            }
            let text = self.string_value(code)?;
            let Some(state) = conditions::by_code(&text) else { bail!(SYNTAX_ERROR, "invalid SQLSTATE code") };
            self.advance();
            out.push(Condition::State(state.0));
            return Ok(());
        }
        if &*name == "others" {
            out.push(Condition::Others);
            return Ok(());
        }
        let before = out.len();
        out.extend(conditions::by_name(&name).map(|state| Condition::State(state.0)));
        if out.len() == before {
            return Err(err!(UNDEFINED_OBJECT, "unrecognized exception condition \"{name}\""));
        }
        Ok(())
    }

    /// Statements up to one of the words, which is left standing.
    pub fn statements(&mut self, ends: &[&str]) -> Result<Vec<PlpgsqlStatement>> {
        limits::check_stack()?;
        let mut out = Vec::new();
        while !ends.iter().any(|end| self.at_word(end)) {
            if self.token().kind == TokenKind::End {
                return Err(self.syntax_error());
            }
            if let Some(statement) = self.statement()? {
                out.push(statement);
            }
        }
        Ok(out)
    }

    /// One statement with its semicolon; none for NULL.
    fn statement(&mut self) -> Result<Option<PlpgsqlStatement>> {
        if let Some(statement) = self.assignment()? {
            return Ok(Some(statement));
        }
        let label = self.label()?;
        let line = self.line_of(self.token());
        let word = self.word_text();
        let kind = match word.as_str() {
            "declare" | "begin" => {
                let block = self.block(label)?;
                self.expect_symbol(";")?;
                return Ok(Some(block));
            }
            "loop" => StatementKind::Loop(loops::loop_body(self, label)?),
            "while" => loops::while_loop(self, label)?,
            "for" => loops::for_loop(self, label)?,
            "foreach" => loops::foreach_loop(self, label)?,
            _ if label.is_some() => return Err(self.syntax_error()),
            "if" => self.if_statement()?,
            "case" => self.case_statement()?,
            "exit" | "continue" => self.exit(word == "continue")?,
            "return" => self.return_statement()?,
            "raise" => raise::raise_statement(self)?,
            "assert" => self.assert()?,
            "execute" => self.execute()?,
            "perform" => {
                self.advance();
                let mut query = self.expression_until(&[";"])?;
                self.advance();
                // A SELECT whose rows are discarded; the words have the same length.
                query.start = query.start.saturating_sub("SELECT ".len());
                query.text = format!("SELECT {}", query.text).into();
                query.form = Form::Statement;
                StatementKind::Perform(query)
            }
            "call" | "do" => {
                let call = self.piece_until(&[";"], Form::Statement)?;
                self.advance();
                StatementKind::Call { call, is_call: word == "call" }
            }
            "commit" | "rollback" => self.end_transaction(word == "commit")?,
            "get" => self.diagnostics()?,
            "open" => self.open()?,
            "fetch" | "move" => self.fetch(word == "fetch")?,
            "close" => {
                self.advance();
                let cursor = declare::cursor_variable(self)?;
                self.expect_symbol(";")?;
                StatementKind::Close(cursor)
            }
            "null" => {
                self.advance();
                self.expect_symbol(";")?;
                return Ok(None);
            }
            "" if self.token().kind != TokenKind::QuotedName => return Err(self.syntax_error()),
            _ => {
                self.refuse_unknown_target()?;
                let (query, into) = self.sql_statement()?;
                StatementKind::Sql { query, into }
            }
        };
        Ok(Some(PlpgsqlStatement::new(line, kind)))
    }

    /// `target := expression`, if the text here is one.
    fn assignment(&mut self) -> Result<Option<PlpgsqlStatement>> {
        let start = self.position();
        let at = self.token();
        let Some((target, shown)) = self.variable_here() else { return Ok(None) };
        let is_assignment = self.at_symbol(":=") || self.at_symbol("=");
        let is_part = self.at_symbol("[") || self.at_symbol(".");
        if !is_assignment && !is_part {
            self.go_back(start);
            return Ok(None);
        }
        let line = self.line_of(at);
        let path_start = self.token().start;
        let (target, shown) = match is_part {
            false => (target, shown),
            true => {
                self.skip_until(&[":=", "="], Form::Expression)?;
                let path = &self.text[path_start..self.peek_back().end];
                let part = match target {
                    Target::Field { record, name } => {
                        let path = format!(".\"{}\"{path}", name.replace('"', "\"\"")).into();
                        Target::Part { variable: record, path }
                    }
                    Target::Variable(variable) => Target::Part { variable, path: path.into() },
                    other => other,
                };
                (part, self.text[at.start..self.peek_back().end].into())
            }
        };
        self.check_assignable(&target, at)?;
        let operator = self.advance();
        let operator = self.text_of(operator);
        let mut value = self.expression_until(&[";"])?;
        self.advance();
        value.form = Form::Assignment;
        value.shown = format!("{shown} {operator} {}", value.text).into();
        Ok(Some(PlpgsqlStatement::new(line, StatementKind::Assign { target, value })))
    }

    /// A statement that looks like an assignment has no variable as its target.
    fn refuse_unknown_target(&self) -> Result<()> {
        let (names, tokens) = self.dotted(0);
        let next = self.peek(tokens);
        if !names.is_empty() && [":=", "=", "[", "."].iter().any(|s| self.is_symbol(next, s)) {
            let shown = names.join(".");
            return Err(err!(SYNTAX_ERROR, "\"{shown}\" is not a known variable").at(self.token().start as i32));
        }
        Ok(())
    }

    fn if_statement(&mut self) -> Result<StatementKind> {
        let mut branches = Vec::new();
        let mut otherwise = Vec::new();
        self.advance();
        loop {
            let condition = self.expression_until(&["then"])?;
            self.advance();
            branches.push((condition, self.statements(&["elsif", "elseif", "else", "end"])?));
            if self.take_word("elsif") || self.take_word("elseif") {
                continue;
            }
            if self.take_word("else") {
                otherwise = self.statements(&["end"])?;
            }
            break;
        }
        self.expect_word("end")?;
        self.expect_word("if")?;
        self.expect_symbol(";")?;
        Ok(StatementKind::If { branches, otherwise })
    }

    fn case_statement(&mut self) -> Result<StatementKind> {
        self.advance();
        let outer = self.scope;
        let mut operand = None;
        if !self.at_word("when") {
            let value = self.expression_until(&["when"])?;
            let name = format!("__Case__Variable_{}__", self.variables.len());
            // The type is the value's, known when it is computed.
            let variable = self.add_named(&name, self.types.by_oid(oids::INT4, -1));
            operand = Some((variable, name, value));
        }
        let mut branches = Vec::new();
        while self.at_word("when") {
            let line = self.line_of(self.token());
            self.advance();
            let mut condition = self.expression_until(&["then"])?;
            self.advance();
            if let Some((_, name, _)) = &operand {
                condition.text = format!("\"{name}\" IN ({})", condition.text).into();
            }
            branches.push((line, condition, self.statements(&["when", "else", "end"])?));
        }
        let otherwise = if self.take_word("else") { Some(self.statements(&["end"])?) } else { None };
        self.expect_word("end")?;
        self.expect_word("case")?;
        self.expect_symbol(";")?;
        self.scope = outer;
        let operand = operand.map(|(variable, _, value)| (variable, value));
        Ok(StatementKind::Case { operand, branches, otherwise })
    }

    fn exit(&mut self, is_continue: bool) -> Result<StatementKind> {
        let start = self.advance();
        let at = self.token();
        let label = match self.at_symbol(";") || self.at_word("when") {
            true => None,
            false => Some(self.expect_name()?),
        };
        let condition = if self.take_word("when") { Some(self.expression_until(&[";"])?) } else { None };
        self.expect_symbol(";")?;
        let around = self.labels(label.as_deref());
        match &label {
            Some(label) => match around.first() {
                None => {
                    let message = format!("there is no label \"{label}\" attached to any block or loop enclosing this statement");
                    return Err(err!(SYNTAX_ERROR, "{message}").at(at.start as i32));
                }
                Some(kind) if is_continue && *kind != LabelKind::Loop => {
                    let message = format!("block label \"{label}\" cannot be used in CONTINUE");
                    return Err(err!(SYNTAX_ERROR, "{message}").at(at.start as i32));
                }
                Some(_) => {}
            },
            None if !around.contains(&LabelKind::Loop) => {
                let message = match is_continue {
                    true => "CONTINUE cannot be used outside a loop",
                    false => "EXIT cannot be used outside a loop, unless it has a label",
                };
                return Err(err!(SYNTAX_ERROR, "{message}").at(start.start as i32));
            }
            None => {}
        }
        Ok(StatementKind::Exit { is_continue, label, condition })
    }

    fn return_statement(&mut self) -> Result<StatementKind> {
        self.advance();
        if self.take_word("next") {
            return self.return_next();
        }
        if self.take_word("query") {
            return self.return_query();
        }
        let at = self.token();
        let refuse = |message: &str| Err(err!(DATATYPE_MISMATCH, "{message}").at(at.start as i32));
        let is_empty = self.at_symbol(";");
        let returned = match (self.signature.returns, &self.signature.output) {
            (Returns::Set, _) if !is_empty => {
                let e = err!(DATATYPE_MISMATCH, "RETURN cannot have a parameter in function returning set");
                return Err(e.hint("Use RETURN NEXT or RETURN QUERY.").at(at.start as i32));
            }
            (Returns::Set, _) => ReturnExpression::Nothing,
            (Returns::Void, None) if !is_empty => {
                return refuse(match self.signature.is_procedure {
                    true => "RETURN cannot have a parameter in a procedure",
                    false => "RETURN cannot have a parameter in function returning void",
                });
            }
            (_, Some(_)) if !is_empty => {
                return refuse(match self.signature.is_procedure {
                    true => "RETURN cannot have a parameter in a procedure",
                    false => "RETURN cannot have a parameter in function with OUT parameters",
                });
            }
            (Returns::Void, None) | (_, Some(_)) => ReturnExpression::Nothing,
            (Returns::Value { .. } | Returns::Trigger, None) => self.returned_value()?,
        };
        self.expect_symbol(";")?;
        Ok(StatementKind::Return(returned))
    }

    /// A variable unchanged, or an expression.
    fn returned_value(&mut self) -> Result<ReturnExpression> {
        let (names, tokens) = self.dotted(0);
        if let Some(found) = self.resolve(&names).filter(|f| f.names_used == names.len())
            && self.is_symbol(self.peek(tokens), ";")
        {
            self.skip(tokens);
            return Ok(ReturnExpression::Variable(found.variable));
        }
        Ok(ReturnExpression::Value(self.expression_until(&[";"])?))
    }

    fn return_next(&mut self) -> Result<StatementKind> {
        let at = self.token();
        if self.signature.returns != Returns::Set {
            return Err(err!(DATATYPE_MISMATCH, "cannot use RETURN NEXT in a non-SETOF function").at(at.start as i32));
        }
        let returned = match (&self.signature.output, self.at_symbol(";")) {
            (Some(_), false) => {
                let message = "RETURN NEXT cannot have a parameter in function with OUT parameters";
                return Err(err!(DATATYPE_MISMATCH, "{message}").at(at.start as i32));
            }
            (Some(_), true) => ReturnExpression::Nothing,
            (None, _) => self.returned_value()?,
        };
        self.expect_symbol(";")?;
        Ok(StatementKind::ReturnNext(returned))
    }

    fn return_query(&mut self) -> Result<StatementKind> {
        let at = self.token();
        if self.signature.returns != Returns::Set {
            return Err(err!(DATATYPE_MISMATCH, "cannot use RETURN QUERY in a non-SETOF function").at(at.start as i32));
        }
        let source = match self.take_word("execute") {
            true => {
                let query = self.expression_until(&["using", ";"])?;
                let using = if self.take_word("using") { self.expressions_until(&[";"])? } else { Vec::new() };
                LoopSource::Execute { query, using }
            }
            false => LoopSource::Query(self.piece_until(&[";"], Form::Statement)?),
        };
        self.expect_symbol(";")?;
        Ok(StatementKind::ReturnQuery(source))
    }

    fn assert(&mut self) -> Result<StatementKind> {
        self.advance();
        let condition = self.expression_until(&[",", ";"])?;
        let message = if self.take_symbol(",") { Some(self.expression_until(&[";"])?) } else { None };
        self.expect_symbol(";")?;
        Ok(StatementKind::Assert { condition, message })
    }

    fn execute(&mut self) -> Result<StatementKind> {
        self.advance();
        let query = self.expression_until(&["into", "using", ";"])?;
        let (mut into, mut using) = (None, Vec::new());
        loop {
            if self.at_word("into") {
                if into.is_some() {
                    return Err(self.syntax_error());
                }
                self.advance();
                into = Some(self.into_target()?);
            } else if self.at_word("using") {
                if !using.is_empty() {
                    return Err(self.syntax_error());
                }
                self.advance();
                using = self.expressions_until(&["into", ";"])?;
            } else {
                self.expect_symbol(";")?;
                return Ok(StatementKind::Execute { query, into, using });
            }
        }
    }

    fn end_transaction(&mut self, is_commit: bool) -> Result<StatementKind> {
        self.advance();
        let mut chain = false;
        if self.take_word("and") {
            chain = !self.take_word("no");
            self.expect_word("chain")?;
        }
        self.expect_symbol(";")?;
        Ok(if is_commit { StatementKind::Commit { chain } } else { StatementKind::Rollback { chain } })
    }

    fn diagnostics(&mut self) -> Result<StatementKind> {
        let start = self.token();
        self.advance();
        let stacked = self.take_word("stacked");
        if !stacked {
            self.take_word("current");
        }
        self.expect_word("diagnostics")?;
        let mut items = Vec::new();
        loop {
            let at = self.token();
            let target = match self.variable_here() {
                Some((target, _)) if !self.is_record(&target) => target,
                Some(_) => {
                    return Err(err!(SYNTAX_ERROR, "\"{}\" is not a scalar variable", self.text_of(at)).at(at.start as i32));
                }
                None if self.name_of(at).is_some() => {
                    return Err(err!(SYNTAX_ERROR, "\"{}\" is not a known variable", self.text_of(at)).at(at.start as i32));
                }
                None => return Err(self.syntax_error()),
            };
            self.check_assignable(&target, at)?;
            if !self.take_symbol("=") && !self.take_symbol(":=") {
                return Err(self.syntax_error());
            }
            items.push((target, self.diagnostic(stacked, start)?));
            if !self.take_symbol(",") {
                break;
            }
        }
        self.expect_symbol(";")?;
        Ok(StatementKind::GetDiagnostics { stacked, items })
    }

    fn diagnostic(&mut self, stacked: bool, start: super::scan::Token) -> Result<Diagnostic> {
        let at = self.token();
        let word = self.word_text();
        let item = match word.as_str() {
            "row_count" => Diagnostic::RowCount,
            "pg_context" => Diagnostic::Context,
            "pg_routine_oid" => Diagnostic::RoutineOid,
            "pg_exception_context" => Diagnostic::ErrorContext,
            "pg_exception_detail" => Diagnostic::ErrorDetail,
            "pg_exception_hint" => Diagnostic::ErrorHint,
            "returned_sqlstate" => Diagnostic::ReturnedSqlstate,
            "column_name" => Diagnostic::ColumnName,
            "constraint_name" => Diagnostic::ConstraintName,
            "pg_datatype_name" => Diagnostic::DatatypeName,
            "message_text" => Diagnostic::MessageText,
            "table_name" => Diagnostic::TableName,
            "schema_name" => Diagnostic::SchemaName,
            _ => return Err(self.error_near(at, "unrecognized GET DIAGNOSTICS item")),
        };
        self.advance();
        let of_error = !matches!(item, Diagnostic::RowCount | Diagnostic::RoutineOid | Diagnostic::Context);
        let upper = word.to_uppercase();
        if of_error && !stacked {
            let message = format!("diagnostics item {upper} is not allowed in GET CURRENT DIAGNOSTICS");
            return Err(err!(SYNTAX_ERROR, "{message}").at(start.start as i32));
        }
        if !of_error && stacked {
            let message = format!("diagnostics item {upper} is not allowed in GET STACKED DIAGNOSTICS");
            return Err(err!(SYNTAX_ERROR, "{message}").at(start.start as i32));
        }
        Ok(item)
    }

    fn open(&mut self) -> Result<StatementKind> {
        self.advance();
        let cursor = declare::cursor_variable(self)?;
        let mut scroll = Scroll::Default;
        let opened = match &self.variables[cursor].cursor {
            Some(bound) => {
                scroll = bound.scroll;
                Opened::Bound(declare::cursor_arguments(self, cursor)?)
            }
            None => {
                if self.take_word("no") {
                    self.expect_word("scroll")?;
                    scroll = Scroll::No;
                } else if self.take_word("scroll") {
                    scroll = Scroll::Yes;
                }
                if !self.take_word("for") {
                    return Err(self.error_near(self.token(), "syntax error, expected \"FOR\""));
                }
                match self.take_word("execute") {
                    true => {
                        let query = self.expression_until(&["using", ";"])?;
                        let using = if self.take_word("using") { self.expressions_until(&[";"])? } else { Vec::new() };
                        Opened::Execute { query, using }
                    }
                    false => Opened::Query(self.piece_until(&[";"], Form::Statement)?),
                }
            }
        };
        self.expect_symbol(";")?;
        Ok(StatementKind::Open { cursor, opened, scroll })
    }

    fn fetch(&mut self, is_fetch: bool) -> Result<StatementKind> {
        let at = self.token();
        self.advance();
        let (direction, count) = self.fetch_direction()?;
        let is_single = match &count {
            Count::All => false,
            Count::Rows(n) => matches!(direction, Direction::Absolute | Direction::Relative) || n.abs() <= 1,
            Count::Expression(_) => matches!(direction, Direction::Absolute | Direction::Relative),
        };
        if is_fetch && !is_single {
            let message = "FETCH statement cannot return multiple rows";
            return Err(err!(FEATURE_NOT_SUPPORTED, "{message}").at(at.start as i32));
        }
        let cursor = declare::cursor_variable(self)?;
        let target = match is_fetch {
            true => {
                self.expect_word("into")?;
                Some(self.target_list()?)
            }
            false => None,
        };
        self.expect_symbol(";")?;
        Ok(StatementKind::Fetch(Box::new(Fetch { cursor, direction, count, target })))
    }

    fn fetch_direction(&mut self) -> Result<(Direction, Count)> {
        let word = self.word_text();
        // A variable that is called like a direction.
        let is_cursor = self.is_word(self.peek(1), "into") || self.is_symbol(self.peek(1), ";");
        let fixed = match word.as_str() {
            _ if is_cursor => return Ok((Direction::Forward, Count::Rows(1))),
            "next" => Some((Direction::Forward, Count::Rows(1))),
            "prior" => Some((Direction::Backward, Count::Rows(1))),
            "first" => Some((Direction::Absolute, Count::Rows(1))),
            "last" => Some((Direction::Absolute, Count::Rows(-1))),
            "all" => Some((Direction::Forward, Count::All)),
            _ => None,
        };
        if let Some(fixed) = fixed {
            self.advance();
            self.expect_from()?;
            return Ok(fixed);
        }
        let direction = match word.as_str() {
            "absolute" => Direction::Absolute,
            "relative" => Direction::Relative,
            "forward" => Direction::Forward,
            "backward" => Direction::Backward,
            _ => {
                let (names, tokens) = self.dotted(0);
                let ends = self.is_word(self.peek(tokens), "into") || self.is_symbol(self.peek(tokens), ";");
                // A variable is the cursor.
                if self.from_or_in() || !names.is_empty() && (ends || self.resolve(&names).is_some()) {
                    return Ok((Direction::Forward, Count::Rows(1)));
                }
                let count = self.expression_until(&["from", "in"])?;
                self.advance();
                return Ok((Direction::Forward, Count::Expression(count)));
            }
        };
        self.advance();
        if matches!(direction, Direction::Forward | Direction::Backward) {
            if self.take_word("all") {
                self.expect_from()?;
                return Ok((direction, Count::All));
            }
            let next_ends = self.is_word(self.peek(1), "into") || self.is_symbol(self.peek(1), ";");
            if self.from_or_in() || next_ends {
                return Ok((direction, Count::Rows(1)));
            }
        }
        let count = self.expression_until(&["from", "in"])?;
        self.advance();
        Ok((direction, Count::Expression(count)))
    }

    fn expect_from(&mut self) -> Result<()> {
        if self.from_or_in() { Ok(()) } else { Err(self.error_near(self.token(), "expected FROM or IN")) }
    }

    fn from_or_in(&mut self) -> bool {
        self.take_word("from") || self.take_word("in")
    }
}
