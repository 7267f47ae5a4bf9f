//! Tokens of JSON text.

use crate::{DbError, Result, err};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    String,
    Number,
    ObjectStart,
    ObjectEnd,
    ArrayStart,
    ArrayEnd,
    Comma,
    Colon,
    True,
    False,
    Null,
    End,
}

/// Reads tokens one at a time; the current one is `token`, its text `start..end`.
pub(super) struct Lexer<'a> {
    input: &'a str,
    pub token: Token,
    pub start: usize,
    pub end: usize,
    line: usize,
    line_start: usize,
    /// Check escapes as conversion to text will.
    strict_escapes: bool,
}

/// A letter, digit or other part of a word, for error messages.
fn is_word(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_' || c >= 0x80
}

impl<'a> Lexer<'a> {
    pub fn new(input: &'a str, strict_escapes: bool) -> Lexer<'a> {
        Lexer { input, token: Token::Null, start: 0, end: 0, line: 1, line_start: 0, strict_escapes }
    }

    pub fn text(&self) -> &'a str {
        &self.input[self.start..self.end]
    }

    /// The input from `start` up to the end of the token before the current one is not needed by anyone but the parser.
    pub fn slice(&self, start: usize, end: usize) -> &'a str {
        &self.input[start..end]
    }

    /// Moves to the next token.
    pub fn advance(&mut self) -> Result<()> {
        let bytes = self.input.as_bytes();
        let mut at = self.end;
        while let Some(c) = bytes.get(at).filter(|c| matches!(c, b' ' | b'\t' | b'\n' | b'\r')) {
            at += 1;
            if *c == b'\n' {
                self.line += 1;
                self.line_start = at;
            }
        }
        self.start = at;
        let Some(&c) = bytes.get(at) else {
            self.end = at;
            self.token = Token::End;
            return Ok(());
        };
        let single = match c {
            b'{' => Some(Token::ObjectStart),
            b'}' => Some(Token::ObjectEnd),
            b'[' => Some(Token::ArrayStart),
            b']' => Some(Token::ArrayEnd),
            b',' => Some(Token::Comma),
            b':' => Some(Token::Colon),
            _ => None,
        };
        if let Some(token) = single {
            self.end = at + 1;
            self.token = token;
            return Ok(());
        }
        match c {
            b'"' => self.string(),
            b'-' => self.number(at + 1),
            b'0'..=b'9' => self.number(at),
            _ => self.word(),
        }
    }

    fn invalid_token(&self) -> DbError {
        self.error(format!("Token \"{}\" is invalid.", self.text()))
    }

    fn word(&mut self) -> Result<()> {
        let bytes = self.input.as_bytes();
        let length = bytes[self.start..].iter().take_while(|c| is_word(**c)).count();
        self.end = self.start + length.max(1);
        self.token = match self.text() {
            "true" => Token::True,
            "false" => Token::False,
            "null" => Token::Null,
            _ => return Err(self.invalid_token()),
        };
        Ok(())
    }

    /// A number whose digits begin at `at`.
    fn number(&mut self, mut at: usize) -> Result<()> {
        let bytes = self.input.as_bytes();
        let digits = |at: usize| bytes[at.min(bytes.len())..].iter().take_while(|c| c.is_ascii_digit()).count();
        let whole = if bytes.get(at) == Some(&b'0') { 1 } else { digits(at) };
        let mut valid = whole > 0;
        at += whole;
        if bytes.get(at) == Some(&b'.') {
            let decimals = digits(at + 1);
            valid &= decimals > 0;
            at += 1 + decimals;
        }
        if matches!(bytes.get(at), Some(b'e' | b'E')) {
            at += 1;
            at += usize::from(matches!(bytes.get(at), Some(b'+' | b'-')));
            let exponent = digits(at);
            valid &= exponent > 0;
            at += exponent;
        }
        let garbage = bytes[at..].iter().take_while(|c| is_word(**c)).count();
        self.end = at + garbage;
        if !valid || garbage > 0 {
            return Err(self.invalid_token());
        }
        self.token = Token::Number;
        Ok(())
    }

    /// Ends the token after the character at `at`.
    fn end_at_char(&mut self, at: usize) {
        self.end = at + self.input.get(at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
    }

    fn string(&mut self) -> Result<()> {
        let bytes = self.input.as_bytes();
        let mut at = self.start + 1;
        let mut high_surrogate = false;
        loop {
            let c = match bytes.get(at) {
                None => {
                    self.end = bytes.len();
                    return Err(self.invalid_token());
                }
                Some(&c) => c,
            };
            if c == b'\\' {
                at = self.escape(at + 1, &mut high_surrogate)?;
                continue;
            }
            if high_surrogate {
                self.end_at_char(at);
                return Err(self.error("Unicode low surrogate must follow a high surrogate.".into()));
            }
            if c == b'"' {
                break;
            }
            if c < 0x20 {
                self.end = at;
                return Err(self.error(format!("Character with value 0x{c:02x} must be escaped.")));
            }
            at += 1;
        }
        self.end = at + 1;
        self.token = Token::String;
        Ok(())
    }

    /// Checks the escape whose letter is at `at`; returns where it ends.
    fn escape(&mut self, at: usize, high_surrogate: &mut bool) -> Result<usize> {
        let bytes = self.input.as_bytes();
        let Some(&letter) = bytes.get(at) else {
            self.end = bytes.len();
            return Err(self.invalid_token());
        };
        if letter == b'u' {
            return self.unicode_escape(at + 1, high_surrogate);
        }
        if self.strict_escapes && *high_surrogate {
            self.end_at_char(at);
            return Err(self.error("Unicode low surrogate must follow a high surrogate.".into()));
        }
        if !b"\"\\/bfnrt".contains(&letter) {
            self.start = at;
            self.end_at_char(at);
            return Err(self.error(format!("Escape sequence \"\\{}\" is invalid.", self.text())));
        }
        Ok(at + 1)
    }

    fn unicode_escape(&mut self, at: usize, high_surrogate: &mut bool) -> Result<usize> {
        let bytes = self.input.as_bytes();
        let mut code = 0u32;
        for i in at..at + 4 {
            let Some(c) = bytes.get(i) else {
                self.end = bytes.len();
                return Err(self.invalid_token());
            };
            let Some(digit) = char::from(*c).to_digit(16) else {
                self.end_at_char(i);
                return Err(self.error("\"\\u\" must be followed by four hexadecimal digits.".into()));
            };
            code = code * 16 + digit;
        }
        if self.strict_escapes {
            let is_high = (0xd800..0xdc00).contains(&code);
            let is_low = (0xdc00..0xe000).contains(&code);
            let problem = match (is_high, is_low, *high_surrogate) {
                _ if code == 0 => {
                    self.end_at_char(at + 3);
                    return Err(self.unsupported_escape("\\u0000 cannot be converted to text."));
                }
                (true, _, true) => Some("Unicode high surrogate must not follow a high surrogate."),
                (_, true, false) => Some("Unicode low surrogate must follow a high surrogate."),
                (false, false, true) => Some("Unicode low surrogate must follow a high surrogate."),
                _ => None,
            };
            if let Some(problem) = problem {
                self.end_at_char(at + 3);
                return Err(self.error(problem.into()));
            }
            *high_surrogate = is_high;
        }
        Ok(at + 4)
    }

    /// 22P02 with the place in the text.
    pub fn error(&self, detail: String) -> DbError {
        err!(INVALID_TEXT_REPRESENTATION, "invalid input syntax for type json").detail(detail).context(self.context())
    }

    fn unsupported_escape(&self, detail: &str) -> DbError {
        err!(UNTRANSLATABLE_CHARACTER, "unsupported Unicode escape sequence").detail(detail).context(self.context())
    }

    /// The line up to the offending token, or its last 50 bytes.
    fn context(&self) -> String {
        let mut from = self.line_start;
        while self.end - from >= 50 {
            from += self.input[from..].chars().next().map_or(1, char::len_utf8);
        }
        if from - self.line_start <= 3 {
            from = self.line_start;
        }
        let prefix = if from > self.line_start { "..." } else { "" };
        let more = self.input.as_bytes().get(self.end).is_some_and(|c| *c != b'\n' && *c != b'\r');
        let suffix = if self.token != Token::End && more { "..." } else { "" };
        let shown = self.input.get(from..self.end).unwrap_or("");
        format!("JSON data, line {}: {prefix}{shown}{suffix}", self.line)
    }
}

/// The text of a JSON string (with its quotes), whose syntax was checked. `\u0000` and lone surrogates have no text.
pub fn unescape(raw: &str) -> Result<String> {
    let inner = raw.get(1..raw.len().saturating_sub(1)).unwrap_or("");
    if !inner.contains('\\') {
        return Ok(inner.to_string());
    }
    // Escapes that cannot be converted are found again, for their error.
    Lexer::new(raw, true).advance()?;
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    let mut high = 0u32;
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('b') => out.push('\u{8}'),
            Some('f') => out.push('\u{c}'),
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some('u') => {
                let hex: String = chars.by_ref().take(4).collect();
                let code = u32::from_str_radix(&hex, 16).unwrap_or(0xfffd);
                match code {
                    0xd800..0xdc00 => high = code,
                    0xdc00..0xe000 => {
                        let code = 0x10000 + ((high & 0x3ff) << 10) + (code & 0x3ff);
                        out.push(char::from_u32(code).unwrap_or('\u{fffd}'));
                    }
                    _ => out.push(char::from_u32(code).unwrap_or('\u{fffd}')),
                }
            }
            Some(other) => out.push(other),
            None => break,
        }
    }
    Ok(out)
}
