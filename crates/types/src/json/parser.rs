//! Parses JSON text into a tree of slices of it.

use super::lexer::{Lexer, Token};
use crate::limits::{self, Ticker};
use crate::{DbError, Result};

/// A JSON value and its text.
#[derive(Clone, Debug)]
pub struct JsonNode<'a> {
    pub raw: &'a str,
    pub kind: JsonKind<'a>,
}

#[derive(Clone, Debug)]
pub enum JsonKind<'a> {
    Null,
    Bool(bool),
    /// `raw` is the number.
    Number,
    /// `raw` is the string with quotes and escapes.
    String,
    Array(Vec<JsonNode<'a>>),
    /// Raw keys (with quotes) and values, in the order of the text, duplicates included.
    Object(Vec<(&'a str, JsonNode<'a>)>),
}

/// Parses a document. `strict_escapes`: escapes that have no text are errors.
pub fn parse(text: &str, strict_escapes: bool) -> Result<JsonNode<'_>> {
    let mut parser = Parser { lexer: Lexer::new(text, strict_escapes), ticker: Ticker::new() };
    parser.lexer.advance()?;
    let node = parser.value()?;
    parser.end()?;
    Ok(node)
}

/// Checks that the text is JSON.
pub fn validate(text: &str) -> Result<()> {
    let mut parser = Parser { lexer: Lexer::new(text, false), ticker: Ticker::new() };
    parser.lexer.advance()?;
    parser.skip_value()?;
    parser.end()
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    ticker: Ticker,
}

impl<'a> Parser<'a> {
    /// The error for the current token: `expected` was expected instead.
    fn unexpected(&self, expected: &str) -> DbError {
        if self.lexer.token == Token::End {
            return self.lexer.error("The input string ended unexpectedly.".into());
        }
        self.lexer.error(format!("Expected {expected}, but found \"{}\".", self.lexer.text()))
    }

    fn end(&self) -> Result<()> {
        if self.lexer.token == Token::End { Ok(()) } else { Err(self.unexpected("end of input")) }
    }

    fn enter(&mut self) -> Result<()> {
        limits::check_nesting()?;
        self.lexer.advance()
    }

    fn value(&mut self) -> Result<JsonNode<'a>> {
        self.ticker.step()?;
        let start = self.lexer.start;
        let kind = match self.lexer.token {
            Token::ObjectStart => {
                let mut fields = Vec::new();
                self.object(|parser, key| {
                    fields.push((key, parser.value()?));
                    Ok(())
                })?;
                JsonKind::Object(fields)
            }
            Token::ArrayStart => {
                let mut elements = Vec::new();
                self.array(|parser| {
                    elements.push(parser.value()?);
                    Ok(())
                })?;
                JsonKind::Array(elements)
            }
            Token::String => JsonKind::String,
            Token::Number => JsonKind::Number,
            Token::True => JsonKind::Bool(true),
            Token::False => JsonKind::Bool(false),
            Token::Null => JsonKind::Null,
            _ => return Err(self.unexpected("JSON value")),
        };
        // Containers leave their closing bracket as the current token.
        let raw = self.lexer.slice(start, self.lexer.end);
        self.lexer.advance()?;
        Ok(JsonNode { raw, kind })
    }

    fn skip_value(&mut self) -> Result<()> {
        self.ticker.step()?;
        match self.lexer.token {
            Token::ObjectStart => self.object(|parser, _| parser.skip_value())?,
            Token::ArrayStart => self.array(Parser::skip_value)?,
            Token::String | Token::Number | Token::True | Token::False | Token::Null => {}
            _ => return Err(self.unexpected("JSON value")),
        }
        self.lexer.advance()
    }

    fn object(&mut self, mut field: impl FnMut(&mut Self, &'a str) -> Result<()>) -> Result<()> {
        self.enter()?;
        if self.lexer.token == Token::ObjectEnd {
            return Ok(());
        }
        if self.lexer.token != Token::String {
            return Err(self.unexpected("string or \"}\""));
        }
        loop {
            if self.lexer.token != Token::String {
                return Err(self.unexpected("string"));
            }
            let key = self.lexer.text();
            self.lexer.advance()?;
            if self.lexer.token != Token::Colon {
                return Err(self.unexpected("\":\""));
            }
            self.lexer.advance()?;
            field(self, key)?;
            match self.lexer.token {
                Token::Comma => self.lexer.advance()?,
                Token::ObjectEnd => break,
                _ => return Err(self.unexpected("\",\" or \"}\"")),
            }
        }
        Ok(())
    }

    fn array(&mut self, mut element: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        self.enter()?;
        if self.lexer.token == Token::ArrayEnd {
            return Ok(());
        }
        loop {
            element(self)?;
            match self.lexer.token {
                Token::Comma => self.lexer.advance()?,
                Token::ArrayEnd => break,
                _ => return Err(self.unexpected("\",\" or \"]\"")),
            }
        }
        Ok(())
    }
}
