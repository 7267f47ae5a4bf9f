//! The texts of queries: operators, parentheses, and what makes operands of words.

use melba_fmgr::Session;
use melba_fmgr::type_io::is_space;
use melba_types::tsquery::{Binary, DISTANCE_MAX, QueryBuilder, TsOperand};
use melba_types::tsvector::{LEXEME_BYTES_MAX, STRING_BYTES_MAX};
use melba_types::{Datum, DbError, Result, Severity, SqlState, bail, err, limits};

use crate::words::{Of, Words, is_operator, query_error, weight_of};

/// Operators that wait for their operands in one pair of parentheses at most, as in PostgreSQL.
const OPERATORS_MAX: usize = 32;

/// How a text is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// As tsquery's input.
    Standard,
    /// The whole text is one operand.
    Plain,
    /// websearch_to_tsquery.
    Web,
}

/// Appends the part of a query that a word stands for.
pub type PushWord<'p> = &'p mut dyn FnMut(&mut QueryParser<'_>, &str, u8, bool) -> Result<()>;

/// The value of a query's text.
///
/// # Errors
/// 42601 for a text that is no query; those of `push`.
pub fn parse(session: Option<&dyn Session>, text: &str, syntax: Syntax, push: PushWord<'_>) -> Result<Datum> {
    let mut parser =
        QueryParser { text, rest: text, syntax, state: State::First, depth: 0, query: QueryBuilder::default(), bytes: 0 };
    parser.level(push)?;
    let mut query = parser.query;
    let notice = |message: String| {
        if let Some(session) = session {
            session.notice(DbError::new(SqlState::SUCCESSFUL_COMPLETION, message).severity(Severity::Notice));
        }
    };
    if query.is_empty() {
        notice(format!("text-search query doesn't contain lexemes: \"{text}\""));
    } else if query.has_stops() {
        query.remove_stops();
        if query.is_empty() {
            notice("text-search query contains only stop words or doesn't contain lexemes, ignored".to_owned());
        }
    }
    query.finish().map(Datum::bytes)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    First,
    Operand,
    Operator,
}

#[derive(Clone, Copy)]
enum QueryOperator {
    Not,
    Binary(Binary),
}

impl QueryOperator {
    fn priority(self) -> u8 {
        match self {
            QueryOperator::Not => 4,
            QueryOperator::Binary(Binary::Phrase(_)) => 3,
            QueryOperator::Binary(Binary::And) => 2,
            QueryOperator::Binary(Binary::Or) => 1,
        }
    }
}

enum QueryToken {
    End,
    Operator(QueryOperator),
    Word { text: String, weights: u8, prefix: bool },
    Open,
    Close,
}

/// A query as it is read.
pub struct QueryParser<'a> {
    text: &'a str,
    rest: &'a str,
    syntax: Syntax,
    state: State,
    depth: usize,
    query: QueryBuilder,
    /// Of operands.
    bytes: usize,
}

impl QueryParser<'_> {
    /// Appends an operand.
    ///
    /// # Errors
    /// 54000 when it is too long.
    pub fn operand(&mut self, text: &str, weights: u8, prefix: bool) -> Result<()> {
        if text.len() >= LEXEME_BYTES_MAX {
            bail!(PROGRAM_LIMIT_EXCEEDED, "word is too long in tsquery: \"{}\"", self.text);
        }
        if self.bytes >= STRING_BYTES_MAX {
            bail!(PROGRAM_LIMIT_EXCEEDED, "value is too big in tsquery: \"{}\"", self.text);
        }
        self.bytes += text.len() + 1;
        self.query.operand(TsOperand { text: text.as_bytes(), weights, prefix });
        Ok(())
    }

    pub fn query(&mut self) -> &mut QueryBuilder {
        &mut self.query
    }

    /// Reads up to the closing parenthesis, or to the end.
    fn level(&mut self, push: PushWord<'_>) -> Result<()> {
        limits::check_stack()?;
        let mut waiting: Vec<QueryOperator> = Vec::new();
        loop {
            limits::tick()?;
            match self.token()? {
                QueryToken::Word { text, weights, prefix } => push(self, &text, weights, prefix)?,
                QueryToken::Operator(operator) => {
                    // NOT binds its operand first; the others are left-associative.
                    let is_before = |w: QueryOperator| match operator {
                        QueryOperator::Not => w.priority() > operator.priority(),
                        _ => w.priority() >= operator.priority(),
                    };
                    self.apply(&mut waiting, is_before);
                    if waiting.len() == OPERATORS_MAX {
                        return Err(DbError::internal("tsquery stack too small"));
                    }
                    waiting.push(operator);
                }
                QueryToken::Open => self.level(push)?,
                QueryToken::Close | QueryToken::End => {
                    self.apply(&mut waiting, |_| true);
                    return Ok(());
                }
            }
        }
    }

    fn apply(&mut self, waiting: &mut Vec<QueryOperator>, is_before: impl Fn(QueryOperator) -> bool) {
        while let Some(operator) = waiting.pop_if(|operator| is_before(*operator)) {
            match operator {
                QueryOperator::Not => self.query.not(),
                QueryOperator::Binary(operator) => self.query.binary(operator),
            }
        }
    }

    fn token(&mut self) -> Result<QueryToken> {
        match self.syntax {
            Syntax::Standard => self.standard_token(),
            Syntax::Plain if self.rest.is_empty() => Ok(QueryToken::End),
            Syntax::Plain => {
                let text = std::mem::take(&mut self.rest).to_owned();
                Ok(QueryToken::Word { text, weights: 0, prefix: false })
            }
            Syntax::Web => self.web_token(),
        }
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches(|c: char| c.is_ascii() && is_space(c as u8));
    }

    fn take(&mut self, c: char) -> bool {
        self.rest.strip_prefix(c).is_some_and(|rest| {
            self.rest = rest;
            true
        })
    }

    fn standard_token(&mut self) -> Result<QueryToken> {
        self.skip_blanks();
        if self.state == State::Operator {
            return self.operator_token();
        }
        if self.take('!') {
            self.state = State::Operand;
            return Ok(QueryToken::Operator(QueryOperator::Not));
        }
        if self.take('(') {
            self.state = State::Operand;
            self.depth += 1;
            return Ok(QueryToken::Open);
        }
        if self.rest.starts_with(':') {
            return Err(query_error(self.text));
        }
        let mut words = Words::at(self.text, self.rest, Of::Query);
        let Some(word) = words.next()? else {
            return match self.state {
                State::First => Ok(QueryToken::End),
                _ => Err(err!(SYNTAX_ERROR, "no operand in tsquery: \"{}\"", self.text)),
            };
        };
        self.rest = words.rest();
        self.state = State::Operator;
        let (weights, prefix) = self.modifiers();
        Ok(QueryToken::Word { text: word.text, weights, prefix })
    }

    /// `:AB*` behind an operand.
    fn modifiers(&mut self) -> (u8, bool) {
        let (mut weights, mut prefix) = (0, false);
        if self.take(':') {
            while let Some(c) = self.rest.chars().next() {
                match (c, weight_of(c)) {
                    ('*', _) => prefix = true,
                    (_, Some(weight)) => weights |= 1 << weight,
                    _ => break,
                }
                self.rest = &self.rest[1..];
            }
        }
        (weights, prefix)
    }

    fn operator_token(&mut self) -> Result<QueryToken> {
        let operator = if self.take('&') {
            Some(Binary::And)
        } else if self.take('|') {
            Some(Binary::Or)
        } else {
            self.phrase_operator()?.map(Binary::Phrase)
        };
        if let Some(operator) = operator {
            self.state = State::Operand;
            return Ok(QueryToken::Operator(QueryOperator::Binary(operator)));
        }
        if self.rest.is_empty() && self.depth == 0 {
            return Ok(QueryToken::End);
        }
        if self.depth > 0 && self.take(')') {
            self.depth -= 1;
            return Ok(QueryToken::Close);
        }
        Err(query_error(self.text))
    }

    /// `<->`, `<3>`: behind it something must follow.
    fn phrase_operator(&mut self) -> Result<Option<u16>> {
        let Some(inside) = self.rest.strip_prefix('<') else { return Ok(None) };
        let (distance, rest) = match inside.strip_prefix('-') {
            Some(rest) => (1, rest),
            None => {
                let digits = inside.bytes().take_while(u8::is_ascii_digit).count();
                if digits == 0 {
                    return Ok(None);
                }
                let number = inside[..digits].parse().ok().filter(|distance| *distance <= DISTANCE_MAX);
                (number.ok_or_else(distance_error)?, &inside[digits..])
            }
        };
        let Some(rest) = rest.strip_prefix('>').filter(|rest| !rest.is_empty()) else { return Ok(None) };
        self.rest = rest;
        Ok(Some(distance))
    }

    fn web_token(&mut self) -> Result<QueryToken> {
        loop {
            self.skip_blanks();
            let Some(c) = self.rest.chars().next() else { return Ok(self.web_end()) };
            if self.state == State::Operator {
                if self.take_or() {
                    self.state = State::Operand;
                    return Ok(QueryToken::Operator(QueryOperator::Binary(Binary::Or)));
                }
                if !is_operator(c) {
                    self.state = State::Operand;
                    return Ok(QueryToken::Operator(QueryOperator::Binary(Binary::And)));
                }
            } else if self.take('-') {
                self.state = State::Operand;
                return Ok(QueryToken::Operator(QueryOperator::Not));
            } else if self.take('"') {
                let (text, rest) = self.rest.split_once('"').unwrap_or((self.rest, ""));
                (self.rest, self.state) = (rest, State::Operator);
                return Ok(QueryToken::Word { text: text.to_owned(), weights: 0, prefix: false });
            } else if !is_operator(c) {
                let mut words = Words::at(self.text, self.rest, Of::Web);
                let word = words.next()?.map(|word| word.text);
                (self.rest, self.state) = (words.rest(), State::Operator);
                return Ok(QueryToken::Word { text: word.unwrap_or_default(), weights: 0, prefix: false });
            } else {
                self.state = State::Operand;
            }
            // Other operators are no operators here.
            self.rest = &self.rest[c.len_utf8()..];
        }
    }

    /// The end, before which an operand may be missing.
    fn web_end(&mut self) -> QueryToken {
        if self.state == State::Operand {
            self.query.stop();
        }
        QueryToken::End
    }

    /// Takes the word OR, if there is something behind it.
    fn take_or(&mut self) -> bool {
        let Some((word, rest)) = self.rest.split_at_checked(2) else { return false };
        let is_in_word = |c: char| c == '-' || c == '_' || c.is_alphanumeric();
        let mut behind = rest.chars();
        let next = behind.next();
        let is_or = word.eq_ignore_ascii_case("or")
            && next.is_some_and(|c| !is_in_word(c))
            && behind.any(|c| !(c.is_ascii() && is_space(c as u8)));
        if is_or {
            self.rest = rest;
        }
        is_or
    }
}

/// 22023 for the distance of a phrase that is out of range.
pub fn distance_error() -> DbError {
    let what = "distance in phrase operator must be an integer value between zero and";
    err!(INVALID_PARAMETER_VALUE, "{what} {DISTANCE_MAX} inclusive")
}

/// The distance of a phrase.
///
/// # Errors
/// 22023 when it is out of range.
pub fn checked_distance(distance: i32) -> Result<u16> {
    u16::try_from(distance).ok().filter(|distance| *distance <= DISTANCE_MAX).ok_or_else(distance_error)
}
