//! State that the whole parser shares: the tokens, the visible names, and messages.

use std::sync::Arc;

use melba_parse::Strings;
use melba_types::{DbError, Result, bail, err, oids};

use super::scan::{Token, TokenKind, tokens};
use super::tree::{
    self, Conflict, Expression, Form, Function, LabelKind, Name, NameKind, Resolved, Target, Variable, VariableType,
};
use super::{Signature, Types};

pub(crate) struct Parser<'a> {
    pub text: &'a str,
    pub strings: Strings,
    tokens: Vec<Token>,
    at: usize,
    pub signature: &'a Signature<'a>,
    pub types: &'a dyn Types,
    pub variables: Vec<Variable>,
    pub names: Vec<Name>,
    /// The innermost name that is visible now.
    pub scope: Option<usize>,
    pub expressions: usize,
    conflict: Option<Conflict>,
    print_strict_params: Option<bool>,
    pub shadowing: Vec<(Arc<str>, usize)>,
    /// A handler is being parsed, where RAISE may stand alone.
    pub in_handler: bool,
}

impl<'a> Parser<'a> {
    pub fn new(text: &'a str, strings: Strings, signature: &'a Signature<'a>, types: &'a dyn Types) -> Result<Parser<'a>> {
        Ok(Parser {
            text,
            strings,
            tokens: tokens(text, strings)?,
            at: 0,
            signature,
            types,
            variables: Vec::new(),
            names: Vec::new(),
            scope: None,
            expressions: 0,
            conflict: None,
            print_strict_params: None,
            shadowing: Vec::new(),
            in_handler: false,
        })
    }

    pub fn function(&mut self) -> Result<Function> {
        self.push_label(self.signature.name, LabelKind::Block);
        for parameter in self.signature.parameters {
            let name = parameter.names.last().cloned().unwrap_or_default();
            let number = self.add_variable(&name, parameter.ty);
            self.variables[number].constant = parameter.constant;
            for name in &parameter.names {
                self.name_variable(name, number);
            }
        }
        let found = self.add_named("found", self.types.by_oid(oids::BOOL, -1));
        self.options()?;
        let body = self.outer_block()?;
        Ok(Function {
            variables: std::mem::take(&mut self.variables),
            names: std::mem::take(&mut self.names),
            body,
            expressions: self.expressions,
            conflict: self.conflict,
            print_strict_params: self.print_strict_params,
            shadowing: std::mem::take(&mut self.shadowing),
            found,
        })
    }

    /// `#option` lines at the beginning.
    fn options(&mut self) -> Result<()> {
        while self.take_symbol("#") {
            let start = self.token();
            let option = self.word_text();
            self.advance();
            let value = self.word_text();
            match (option.as_str(), value.as_str()) {
                ("variable_conflict", "error") => self.conflict = Some(Conflict::Error),
                ("variable_conflict", "use_variable") => self.conflict = Some(Conflict::Variable),
                ("variable_conflict", "use_column") => self.conflict = Some(Conflict::Column),
                ("print_strict_params", "on") => self.print_strict_params = Some(true),
                ("print_strict_params", "off") => self.print_strict_params = Some(false),
                ("option", "dump") => {}
                ("variable_conflict" | "option", _) => return Err(self.syntax_error()),
                ("print_strict_params", other) => {
                    bail!(INVALID_PARAMETER_VALUE, "unrecognized print_strict_params option {other}")
                }
                _ => return Err(self.error_near(start, "syntax error")),
            }
            self.advance();
        }
        Ok(())
    }

    // Tokens.

    pub fn token(&self) -> Token {
        self.tokens[self.at]
    }

    pub fn peek(&self, ahead: usize) -> Token {
        self.tokens[(self.at + ahead).min(self.tokens.len() - 1)]
    }

    pub fn position(&self) -> usize {
        self.at
    }

    pub fn go_back(&mut self, position: usize) {
        self.at = position;
    }

    pub fn advance(&mut self) -> Token {
        let token = self.token();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    pub fn skip(&mut self, tokens: usize) {
        for _ in 0..tokens {
            self.advance();
        }
    }

    pub fn text_of(&self, token: Token) -> &'a str {
        &self.text[token.start..token.end]
    }

    pub fn line_of(&self, token: Token) -> u32 {
        self.text[..token.start].bytes().filter(|b| *b == b'\n').count() as u32 + 1
    }

    /// Whether a token is a keyword, in any case.
    pub fn is_word(&self, token: Token, word: &str) -> bool {
        token.kind == TokenKind::Word && self.text_of(token).eq_ignore_ascii_case(word)
    }

    pub fn is_symbol(&self, token: Token, symbol: &str) -> bool {
        token.kind == TokenKind::Symbol && self.text_of(token) == symbol
    }

    pub fn at_word(&self, word: &str) -> bool {
        self.is_word(self.token(), word)
    }

    pub fn at_symbol(&self, symbol: &str) -> bool {
        self.is_symbol(self.token(), symbol)
    }

    pub fn take_word(&mut self, word: &str) -> bool {
        let found = self.at_word(word);
        if found {
            self.advance();
        }
        found
    }

    pub fn take_symbol(&mut self, symbol: &str) -> bool {
        let found = self.at_symbol(symbol);
        if found {
            self.advance();
        }
        found
    }

    pub fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.take_word(word) { Ok(()) } else { Err(self.syntax_error()) }
    }

    pub fn expect_symbol(&mut self, symbol: &str) -> Result<()> {
        if self.take_symbol(symbol) { Ok(()) } else { Err(self.syntax_error()) }
    }

    /// The token in lower case, if it is a keyword or an unquoted name.
    pub fn word_text(&self) -> String {
        match self.token().kind {
            TokenKind::Word => self.text_of(self.token()).to_ascii_lowercase(),
            _ => String::new(),
        }
    }

    /// The name that a token is, folded as PostgreSQL folds it.
    pub fn name_of(&self, token: Token) -> Option<Arc<str>> {
        match token.kind {
            TokenKind::Word => Some(self.text_of(token).to_lowercase().into()),
            TokenKind::QuotedName => {
                let text = self.text_of(token);
                Some(text.get(1..text.len() - 1)?.replace("\"\"", "\"").into())
            }
            TokenKind::Parameter => Some(self.text_of(token).into()),
            _ => None,
        }
    }

    pub fn expect_name(&mut self) -> Result<Arc<str>> {
        match self.name_of(self.token()).filter(|_| self.token().kind != TokenKind::Parameter) {
            Some(name) => {
                self.advance();
                Ok(name)
            }
            None => Err(self.syntax_error()),
        }
    }

    /// Names joined by dots, from the token on; how many tokens they take.
    pub fn dotted(&self, ahead: usize) -> (Vec<Arc<str>>, usize) {
        let mut names = Vec::new();
        let mut at = ahead;
        while let Some(name) = self.name_of(self.peek(at)) {
            names.push(name);
            at += 1;
            if !self.is_symbol(self.peek(at), ".") || self.name_of(self.peek(at + 1)).is_none() || names.len() == 3 {
                break;
            }
            at += 1;
        }
        (names, at - ahead)
    }

    /// The value of a string token.
    pub fn string_value(&self, token: Token) -> Result<Arc<str>> {
        melba_parse::string_constant(self.text_of(token), self.strings)
    }

    // Errors.

    pub fn syntax_error(&self) -> DbError {
        self.error_near(self.token(), "syntax error")
    }

    /// `message at or near "token"`
    pub fn error_near(&self, token: Token, message: &str) -> DbError {
        let e = match token.kind {
            TokenKind::End => err!(SYNTAX_ERROR, "{message} at end of input"),
            _ => err!(SYNTAX_ERROR, "{message} at or near \"{}\"", self.text_of(token)),
        };
        e.at(token.start as i32)
    }

    // Names.

    pub fn push_label(&mut self, label: &str, kind: LabelKind) {
        self.push_name(label.into(), NameKind::Label(kind));
    }

    fn push_name(&mut self, name: Arc<str>, kind: NameKind) {
        self.names.push(Name { name, kind, previous: self.scope });
        self.scope = Some(self.names.len() - 1);
    }

    pub fn name_variable(&mut self, name: &Arc<str>, variable: usize) {
        self.push_name(name.clone(), NameKind::Variable(variable));
    }

    /// A variable that no name is for yet.
    pub fn add_variable(&mut self, name: &str, ty: VariableType) -> usize {
        let name = name.into();
        self.variables.push(Variable { name, ty, constant: false, not_null: false, default: None, cursor: None, line: 0 });
        self.variables.len() - 1
    }

    pub fn add_named(&mut self, name: &str, ty: VariableType) -> usize {
        let number = self.add_variable(name, ty);
        self.name_variable(&name.into(), number);
        number
    }

    pub fn resolve(&self, names: &[Arc<str>]) -> Option<Resolved> {
        let parts: Vec<&str> = names.iter().map(|n| &**n).collect();
        if parts.is_empty() {
            return None;
        }
        tree::resolve(&self.names, &self.variables, self.scope, &parts, false)
    }

    /// Whether the innermost level has the name already.
    pub fn is_declared_here(&self, name: &str) -> bool {
        tree::resolve(&self.names, &self.variables, self.scope, &[name], true).is_some()
    }

    /// The kinds of the labels of that name around here, innermost first; all of them for no name.
    pub fn labels(&self, name: Option<&str>) -> Vec<LabelKind> {
        let mut at = self.scope;
        let mut out = Vec::new();
        while let Some(i) = at {
            if let NameKind::Label(kind) = self.names[i].kind
                && name.is_none_or(|name| *self.names[i].name == *name)
            {
                out.push(kind);
            }
            at = self.names[i].previous;
        }
        out
    }

    /// The variable or field of the names at the current position, with its name; skips them.
    pub fn variable_here(&mut self) -> Option<(Target, Arc<str>)> {
        let (names, _) = self.dotted(0);
        let found = self.resolve(&names)?;
        let used = found.names_used;
        let is_record = self.variables[found.variable].ty.is_record;
        let field = is_record.then(|| names.get(used)).flatten().cloned();
        let taken = used + usize::from(field.is_some());
        let start = self.token().start;
        self.skip(2 * taken - 1);
        let end = self.peek_back().end;
        let target = match field {
            Some(name) => Target::Field { record: found.variable, name },
            None => Target::Variable(found.variable),
        };
        Some((target, self.text[start..end].into()))
    }

    /// The token that was passed last.
    pub fn peek_back(&self) -> Token {
        self.tokens[self.at.saturating_sub(1)]
    }

    /// Whether a target takes a whole row.
    pub fn is_record(&self, target: &Target) -> bool {
        matches!(target, Target::Variable(number) if self.variables[*number].ty.is_record)
    }

    /// A piece of SQL that sees the names that are visible now.
    pub fn new_expression(&mut self, text: &str, start: usize, form: Form) -> Expression {
        self.expressions += 1;
        Expression { number: self.expressions - 1, text: text.into(), form, scope: self.scope, start, shown: "".into() }
    }

    /// # Errors
    /// 22005 for a constant.
    pub fn check_assignable(&self, target: &Target, at: Token) -> Result<()> {
        let number = match target {
            Target::Variable(number) | Target::Field { record: number, .. } | Target::Part { variable: number, .. } => *number,
            Target::Row(targets) => return targets.iter().try_for_each(|t| self.check_assignable(t, at)),
        };
        let variable = &self.variables[number];
        if variable.constant {
            return Err(err!(ERROR_IN_ASSIGNMENT, "variable \"{}\" is declared CONSTANT", variable.name).at(at.start as i32));
        }
        Ok(())
    }
}
