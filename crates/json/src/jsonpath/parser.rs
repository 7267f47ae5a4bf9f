//! Parses path text.

use melba_types::{DbError, Numeric, Result, err, json, limits};

use super::ast::{Accessor, Expr, Path, PathOperator};
use super::exec::LIKE_REGEX_FLAGS;

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Symbol(&'static str),
    Word(String),
    String(String),
    Number(Numeric),
    Variable(String),
    End,
}

const SYMBOLS: [&str; 30] = [
    "**", "&&", "||", "==", "!=", "<>", "<=", ">=", "!", "<", ">", "?", "%", "$", ".", "[", "]", "{", "}", "(", ")", "*", "/",
    "+", "-", "@", ",", "=", ":", "#",
];

/// Parses a path.
pub fn parse(text: &str) -> Result<Path> {
    if text.trim().is_empty() {
        return Err(err!(INVALID_TEXT_REPRESENTATION, "invalid input syntax for type jsonpath: \"{text}\""));
    }
    let mut parser = Parser { tokens: tokenize(text)?, at: 0, filters: 0, subscripts: 0, operators: 0 };
    let lax = !parser.take_word("strict");
    if lax {
        parser.take_word("lax");
    }
    let expr = parser.expression(0)?;
    match parser.peek() {
        Token::End => Ok(Path { lax, expr }),
        _ => Err(parser.syntax_error()),
    }
}

fn syntax_error_at(text: &str) -> DbError {
    if text.is_empty() {
        err!(SYNTAX_ERROR, "syntax error at end of jsonpath input")
    } else {
        err!(SYNTAX_ERROR, "syntax error at or near \"{text}\" of jsonpath input")
    }
}

fn is_special(c: char) -> bool {
    "?%$.[]{}()|&!=<>@#,*:-+/\\\"".contains(c) || c.is_ascii_whitespace()
}

/// The tokens with the text of each.
fn tokenize(text: &str) -> Result<Vec<(Token, &str)>> {
    let mut tokens = Vec::new();
    let (mut rest, mut ticker) = (text, limits::Ticker::new());
    loop {
        ticker.step()?;
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace());
        if let Some(comment) = rest.strip_prefix("/*") {
            let end =
                comment.find("*/").ok_or_else(|| err!(SYNTAX_ERROR, "unexpected end of comment at end of jsonpath input"))?;
            rest = &comment[end + 2..];
            continue;
        }
        let Some(first) = rest.chars().next() else { break };
        let (token, length) = if first == '"' {
            let length =
                string_length(rest).ok_or_else(|| err!(SYNTAX_ERROR, "unterminated quoted string at end of jsonpath input"))?;
            (Token::String(unescape(&rest[..length])?), length)
        } else if first == '$' && rest[1..].starts_with('"') {
            let length = string_length(&rest[1..])
                .ok_or_else(|| err!(SYNTAX_ERROR, "unterminated quoted string at end of jsonpath input"))?;
            (Token::Variable(unescape(&rest[1..=length])?), length + 1)
        } else if first == '$' && rest[1..].chars().next().is_some_and(|c| !is_special(c)) {
            let length = rest[1..].find(is_special).unwrap_or(rest.len() - 1);
            (Token::Variable(rest[1..=length].to_string()), length + 1)
        } else if first.is_ascii_digit() || (first == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit())) {
            number(rest)?
        } else if let Some(symbol) = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
            (Token::Symbol(symbol), symbol.len())
        } else {
            let length = word_length(rest);
            if length == 0 {
                return Err(syntax_error_at(&rest[..first.len_utf8()]));
            }
            let word = &rest[..length];
            (Token::Word(if word.contains('\\') { unescape(&format!("\"{word}\""))? } else { word.to_string() }), length)
        };
        let (text, after) = rest.split_at(length);
        // PostgreSQL recognises the end of a word by the next character, which its errors then show.
        let blanks = after.len() - after.trim_start_matches(|c: char| c.is_ascii_whitespace()).len();
        tokens.push((token, text));
        if matches!(tokens.last(), Some((Token::Word(_), _))) {
            let shown = &after[..blanks];
            tokens.last_mut().expect("a token was added").1 = shown;
        }
        rest = after;
    }
    tokens.push((Token::End, ""));
    Ok(tokens)
}

/// A word ends before the next special character that is not escaped.
fn word_length(text: &str) -> usize {
    let mut escaped = false;
    let end = text.char_indices().find(|(_, c)| {
        let ends = !escaped && *c != '\\' && is_special(*c);
        escaped = !escaped && *c == '\\';
        ends
    });
    end.map_or(text.len(), |(at, _)| at)
}

fn string_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    None
}

/// Strings are those of JSON, and take JavaScript's \v, \x and \u{} too.
fn unescape(raw: &str) -> Result<String> {
    let mut plain = String::with_capacity(raw.len());
    let mut chars = raw.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            plain.push(c);
            continue;
        }
        match chars.next() {
            Some('v') => plain.push_str("\\u000b"),
            Some('x') => {
                let hex: String = chars.by_ref().take(2).collect();
                plain.push_str(&format!("\\u00{hex}"));
            }
            Some('u') if chars.peek() == Some(&'{') => {
                let hex: String = chars.by_ref().skip(1).take_while(|c| *c != '}').collect();
                let code = u32::from_str_radix(&hex, 16).ok().and_then(char::from_u32);
                plain.push(code.ok_or_else(|| err!(SYNTAX_ERROR, "invalid Unicode escape sequence of jsonpath input"))?);
            }
            Some(other) if "\"\\/bfnrtu".contains(other) => {
                plain.push('\\');
                plain.push(other);
            }
            Some(other) => plain.push(other),
            None => {}
        }
    }
    json::unescape(&plain)
}

/// Lengths of the forms of numbers that a text begins with.
struct Numbers<'a>(&'a [u8]);

impl Numbers<'_> {
    /// Digits with single underscores between them.
    fn digits(&self, from: usize, is_digit: fn(&u8) -> bool) -> usize {
        let mut end = from;
        loop {
            let after = end + usize::from(end > from && self.0.get(end) == Some(&b'_'));
            match self.0.get(after) {
                Some(c) if is_digit(c) => end = after + 1,
                _ => return end - from,
            }
        }
    }

    fn decimal_digits(&self, from: usize) -> usize {
        self.digits(from, u8::is_ascii_digit)
    }

    /// 0x, 0o and 0b with their digits.
    fn of_base(&self) -> Option<(usize, u32)> {
        let (base, is_digit): (u32, fn(&u8) -> bool) = match self.0.get(1)? {
            _ if self.0[0] != b'0' => return None,
            b'x' | b'X' => (16, u8::is_ascii_hexdigit),
            b'o' | b'O' => (8, |c| (b'0'..=b'7').contains(c)),
            b'b' | b'B' => (2, |c| matches!(c, b'0' | b'1')),
            _ => return None,
        };
        let digits = self.digits(2, is_digit);
        (digits > 0).then_some((2 + digits, base))
    }

    /// The mantissa, an exponent after it, and the sign of an exponent that has no digits.
    fn decimal(&self) -> (usize, usize, usize) {
        let integer = if self.0.first() == Some(&b'0') { 1 } else { self.decimal_digits(0) };
        let mantissa = match self.0.get(integer) {
            Some(b'.') => integer + 1 + self.decimal_digits(integer + 1),
            _ => integer,
        };
        if !matches!(self.0.get(mantissa), Some(b'e' | b'E')) {
            return (mantissa, 0, 0);
        }
        let sign = usize::from(matches!(self.0.get(mantissa + 1), Some(b'+' | b'-')));
        match self.decimal_digits(mantissa + 1 + sign) {
            0 => (mantissa, 0, sign * (mantissa + 2)),
            digits => (mantissa, mantissa + 1 + sign + digits, 0),
        }
    }
}

/// A number, as ECMAScript has them, or the word that digits begin. Of several that fit the longest counts.
fn number(text: &str) -> Result<(Token, usize)> {
    let numbers = Numbers(text.as_bytes());
    let of_base = numbers.of_base();
    let (mantissa, real, unfinished) = numbers.decimal();
    let number = of_base.map_or(0, |(end, _)| end).max(mantissa).max(real);
    let other = |end: usize| text[end..].chars().next().filter(|c| !is_special(*c)).map_or(0, |c| end + c.len_utf8());
    let junk = other(mantissa).max(if real > 0 { other(real) } else { 0 }).max(unfinished);
    let word = text.find(is_special).unwrap_or(text.len());
    if word > number.max(junk) {
        return Ok((Token::Word(text[..word].to_string()), word));
    }
    if junk > number {
        let shown = &text[..junk];
        return Err(err!(SYNTAX_ERROR, "trailing junk after numeric literal at or near \"{shown}\" of jsonpath input"));
    }
    // Numeric input reads all of these forms, except a point without digits after it.
    Ok((Token::Number(Numeric::parse(&text[..number])?), number))
}

struct Parser<'a> {
    tokens: Vec<(Token, &'a str)>,
    at: usize,
    /// Depth of filters and subscripts around, which allow `@` and `last`.
    filters: usize,
    subscripts: usize,
    /// Operators so far: each may lie below all that follow it.
    operators: usize,
}

/// More would make a tree that is too deep for traversals. Accessors in a row are as many.
const OPERATORS_MAX: usize = 10_000;

const METHODS: [&str; 19] = [
    "type",
    "size",
    "double",
    "ceiling",
    "floor",
    "abs",
    "keyvalue",
    "datetime",
    "bigint",
    "boolean",
    "date",
    "decimal",
    "integer",
    "number",
    "string",
    "time",
    "time_tz",
    "timestamp",
    "timestamp_tz",
];

impl Parser<'_> {
    fn peek(&self) -> &Token {
        &self.tokens[self.at].0
    }

    fn next(&mut self) -> Token {
        let token = self.tokens[self.at].0.clone();
        if token != Token::End {
            self.at += 1;
        }
        token
    }

    fn syntax_error(&self) -> DbError {
        syntax_error_at(self.tokens[self.at].1)
    }

    fn take(&mut self, symbol: &str) -> bool {
        let found = matches!(self.peek(), Token::Symbol(s) if *s == symbol);
        if found {
            self.at += 1;
        }
        found
    }

    fn expect(&mut self, symbol: &str) -> Result<()> {
        if self.take(symbol) { Ok(()) } else { Err(self.syntax_error()) }
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Token::Word(w) if w.eq_ignore_ascii_case(word));
        if found {
            self.at += 1;
        }
        found
    }

    fn operator(&self) -> Option<(PathOperator, u8)> {
        let Token::Symbol(symbol) = self.peek() else { return None };
        Some(match *symbol {
            "||" => (PathOperator::Or, 0),
            "&&" => (PathOperator::And, 1),
            "==" => (PathOperator::Equal, 2),
            "!=" | "<>" => (PathOperator::NotEqual, 2),
            "<" => (PathOperator::Less, 2),
            "<=" => (PathOperator::LessOrEqual, 2),
            ">" => (PathOperator::Greater, 2),
            ">=" => (PathOperator::GreaterOrEqual, 2),
            "+" => (PathOperator::Add, 3),
            "-" => (PathOperator::Subtract, 3),
            "*" => (PathOperator::Multiply, 4),
            "/" => (PathOperator::Divide, 4),
            "%" => (PathOperator::Modulo, 4),
            _ => return None,
        })
    }

    fn expression(&mut self, least: u8) -> Result<Expr> {
        limits::check_nesting()?;
        let mut left = self.unary()?;
        loop {
            if least <= 2 && self.take_word("starts") {
                if !self.take_word("with") {
                    return Err(self.syntax_error());
                }
                let right = match self.next() {
                    Token::String(text) => Expr::String(text),
                    Token::Variable(name) => Expr::Variable(name),
                    _ => return Err(self.syntax_error()),
                };
                self.deepen()?;
                left = Expr::StartsWith(Box::new(left), Box::new(right));
                continue;
            }
            if least <= 2 && self.take_word("like_regex") {
                let Token::String(pattern) = self.next() else { return Err(self.syntax_error()) };
                let mut flags = String::new();
                if self.take_word("flag") {
                    let Token::String(text) = self.next() else { return Err(self.syntax_error()) };
                    flags = text;
                }
                self.deepen()?;
                super::exec::regex_of(&pattern, &flags)?;
                let flags = LIKE_REGEX_FLAGS.chars().filter(|flag| flags.contains(*flag)).collect();
                left = Expr::LikeRegex(Box::new(left), pattern, flags);
                continue;
            }
            match self.operator() {
                Some((operator, priority)) if priority >= least => {
                    let logical = matches!(operator, PathOperator::And | PathOperator::Or);
                    if logical && !left.is_predicate() {
                        return Err(self.syntax_error());
                    }
                    self.at += 1;
                    self.deepen()?;
                    let right = self.expression(priority + 1)?;
                    if logical && !right.is_predicate() {
                        return Err(self.syntax_error());
                    }
                    left = Expr::Binary(operator, Box::new(left), Box::new(right));
                }
                _ => return Ok(left),
            }
        }
    }

    fn deepen(&mut self) -> Result<()> {
        self.operators += 1;
        if self.operators > OPERATORS_MAX { Err(limits::stack_error()) } else { Ok(()) }
    }

    fn unary(&mut self) -> Result<Expr> {
        limits::check_nesting()?;
        limits::tick()?;
        for sign in ['+', '-'] {
            if self.take(if sign == '+' { "+" } else { "-" }) {
                let operand = self.unary()?;
                return Ok(match operand {
                    Expr::Number(value) if sign == '-' => Expr::Number(value.neg()),
                    Expr::Number(value) => Expr::Number(value),
                    operand => Expr::Unary(sign, Box::new(operand)),
                });
            }
        }
        if self.take("!") {
            let operand = if self.take_word("exists") { self.exists()? } else { self.parenthesized()? };
            return Ok(Expr::Not(Box::new(operand)));
        }
        let base = self.primary()?;
        let accessors = self.accessors()?;
        Ok(if accessors.is_empty() { base } else { Expr::Chain(Box::new(base), accessors) })
    }

    fn parenthesized(&mut self) -> Result<Expr> {
        self.expect("(")?;
        let inner = self.expression(0)?;
        self.expect(")")?;
        Ok(inner)
    }

    fn exists(&mut self) -> Result<Expr> {
        Ok(Expr::Exists(Box::new(self.parenthesized()?)))
    }

    fn primary(&mut self) -> Result<Expr> {
        if matches!(self.peek(), Token::Symbol("(")) {
            let inner = self.parenthesized()?;
            if self.take_word("is") {
                if !self.take_word("unknown") {
                    return Err(self.syntax_error());
                }
                return Ok(Expr::IsUnknown(Box::new(inner)));
            }
            return Ok(inner);
        }
        if self.take_word("exists") {
            return self.exists();
        }
        let expr = match self.peek() {
            Token::Symbol("$") => Expr::Root,
            Token::Symbol("@") if self.filters == 0 => {
                return Err(err!(SYNTAX_ERROR, "@ is not allowed in root expressions"));
            }
            Token::Symbol("@") => Expr::Current,
            Token::Variable(name) => Expr::Variable(name.clone()),
            Token::String(text) => Expr::String(text.clone()),
            Token::Number(value) => Expr::Number(value.clone()),
            Token::Word(word) => match word.as_str() {
                "true" => Expr::Bool(true),
                "false" => Expr::Bool(false),
                "null" => Expr::Null,
                _ if word.eq_ignore_ascii_case("last") && self.subscripts == 0 => {
                    return Err(err!(SYNTAX_ERROR, "LAST is allowed only in array subscripts"));
                }
                _ if word.eq_ignore_ascii_case("last") => Expr::Last,
                _ => return Err(self.syntax_error()),
            },
            _ => return Err(self.syntax_error()),
        };
        self.at += 1;
        Ok(expr)
    }

    fn accessors(&mut self) -> Result<Vec<Accessor>> {
        let mut accessors = Vec::new();
        loop {
            if self.operators + accessors.len() > OPERATORS_MAX {
                return Err(limits::stack_error());
            }
            if self.take(".") {
                accessors.push(self.member()?);
            } else if self.take("[") {
                accessors.push(self.subscript()?);
            } else if self.take("?") {
                self.expect("(")?;
                self.filters += 1;
                let predicate = self.expression(0)?;
                self.filters -= 1;
                self.expect(")")?;
                if !predicate.is_predicate() {
                    return Err(syntax_error_at(")"));
                }
                accessors.push(Accessor::Filter(predicate));
            } else {
                return Ok(accessors);
            }
        }
    }

    fn member(&mut self) -> Result<Accessor> {
        if self.take("**") {
            return self.levels();
        }
        if self.take("*") {
            return Ok(Accessor::AnyKey);
        }
        let word = match self.peek().clone() {
            Token::String(key) => {
                self.at += 1;
                return Ok(Accessor::Key(key));
            }
            Token::Word(word) => word,
            _ => return Err(self.syntax_error()),
        };
        self.at += 1;
        let is_call = matches!(self.peek(), Token::Symbol("("));
        if !is_call || !METHODS.contains(&word.to_lowercase().as_str()) {
            return Ok(Accessor::Key(word));
        }
        self.expect("(")?;
        let name = word.to_lowercase();
        let args = match name.as_str() {
            "decimal" => self.signed_numbers()?,
            "datetime" => self.optional(|token, _| matches!(token, Token::String(_)))?,
            "time" | "time_tz" | "timestamp" | "timestamp_tz" => self.optional(|token, text| {
                matches!(token, Token::Number(_)) && text.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_')
            })?,
            _ => Vec::new(),
        };
        self.expect(")")?;
        Ok(Accessor::Method(name, args))
    }

    /// At most one argument, of a certain kind.
    fn optional(&mut self, fits: fn(&Token, &str) -> bool) -> Result<Vec<Expr>> {
        let (token, text) = &self.tokens[self.at];
        if !fits(token, text) {
            return Ok(Vec::new());
        }
        Ok(match self.next() {
            Token::String(text) => vec![Expr::String(text)],
            Token::Number(value) => vec![Expr::Number(value)],
            _ => Vec::new(),
        })
    }

    /// Precision and scale.
    fn signed_numbers(&mut self) -> Result<Vec<Expr>> {
        let mut numbers = Vec::new();
        while !matches!(self.peek(), Token::Symbol(")")) {
            if !numbers.is_empty() {
                self.expect(",")?;
            }
            let negative = self.take("-");
            if !negative {
                self.take("+");
            }
            let Token::Number(value) = self.peek().clone() else { return Err(self.syntax_error()) };
            self.at += 1;
            numbers.push(Expr::Number(if negative { value.neg() } else { value }));
        }
        if numbers.len() > 2 {
            return Err(err!(SYNTAX_ERROR, "invalid input syntax for type jsonpath")
                .detail(".decimal() can only have an optional precision[,scale]."));
        }
        Ok(numbers)
    }

    fn levels(&mut self) -> Result<Accessor> {
        if !self.take("{") {
            return Ok(Accessor::AnyLevel(Some(0), None));
        }
        let from = self.level()?;
        let to = if self.take_word("to") { self.level()? } else { from };
        self.expect("}")?;
        Ok(Accessor::AnyLevel(from, to))
    }

    fn level(&mut self) -> Result<Option<u32>> {
        if self.take_word("last") {
            return Ok(None);
        }
        match self.next() {
            Token::Number(value) => {
                let level = value.to_i32().ok().and_then(|v| u32::try_from(v).ok());
                level.map(Some).ok_or_else(|| self.syntax_error())
            }
            _ => Err(self.syntax_error()),
        }
    }

    fn subscript(&mut self) -> Result<Accessor> {
        if self.take("*") {
            self.expect("]")?;
            return Ok(Accessor::AnyElement);
        }
        self.subscripts += 1;
        let mut subscripts = Vec::new();
        loop {
            let from = self.expression(0)?;
            let to = if self.take_word("to") { Some(self.expression(0)?) } else { None };
            subscripts.push((from, to));
            if self.take("]") {
                break;
            }
            self.expect(",")?;
        }
        self.subscripts -= 1;
        Ok(Accessor::Elements(subscripts))
    }
}
