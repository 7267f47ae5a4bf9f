//! Words in the text of a tsvector or a tsquery: quotes, escapes, positions behind a colon.

use melba_fmgr::type_io::is_space;
use melba_types::tsvector::LexemePosition;
use melba_types::{DbError, Result, bail, err, limits};

/// What a text is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Of {
    Vector,
    Query,
    /// What people write into the field of a search engine: no quotes and escapes in words.
    Web,
}

/// A word with its positions, which only vectors have.
pub struct Word {
    pub text: String,
    pub positions: Vec<LexemePosition>,
}

/// Reads words from a text.
pub struct Words<'a> {
    /// The whole text, for errors.
    text: &'a str,
    rest: &'a str,
    of: Of,
}

pub fn is_operator(c: char) -> bool {
    matches!(c, '!' | '&' | '|' | '(' | ')' | '<')
}

fn is_blank(c: char) -> bool {
    c.is_ascii() && is_space(c as u8)
}

/// 42601: `syntax error in tsquery`.
pub fn query_error(text: &str) -> DbError {
    err!(SYNTAX_ERROR, "syntax error in tsquery: \"{text}\"")
}

impl<'a> Words<'a> {
    pub fn new(text: &'a str, of: Of) -> Words<'a> {
        Words { text, rest: text, of }
    }

    /// Words of the same text from a place in it.
    pub fn at(text: &'a str, rest: &'a str, of: Of) -> Words<'a> {
        Words { text, rest, of }
    }

    /// What is behind the words read.
    pub fn rest(&self) -> &'a str {
        self.rest
    }

    fn error(&self) -> DbError {
        match self.of {
            Of::Vector => err!(SYNTAX_ERROR, "syntax error in tsvector: \"{}\"", self.text),
            _ => query_error(self.text),
        }
    }

    fn first(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn skip(&mut self, c: char) {
        self.rest = &self.rest[c.len_utf8()..];
    }

    /// The next word; `None` at the end.
    ///
    /// # Errors
    /// 42601 for what is no word.
    pub fn next(&mut self) -> Result<Option<Word>> {
        limits::tick()?;
        self.rest = self.rest.trim_start_matches(is_blank);
        let Some(first) = self.first() else { return Ok(None) };
        let mut text = String::new();
        if first == '\'' && self.of != Of::Web {
            self.skip(first);
            self.quoted(&mut text)?;
        } else {
            if self.ends_word(first) {
                return Err(self.error());
            }
            self.plain(&mut text)?;
        }
        if text.is_empty() {
            return Err(self.error());
        }
        let mut positions = Vec::new();
        if self.of == Of::Vector && self.first() == Some(':') {
            self.skip(':');
            self.positions(&mut positions)?;
        }
        Ok(Some(Word { text, positions }))
    }

    fn ends_word(&self, c: char) -> bool {
        is_blank(c) || (self.of != Of::Vector && is_operator(c)) || (self.of == Of::Web && c == '"')
    }

    /// A word without quotes, whose first character may be a colon.
    fn plain(&mut self, text: &mut String) -> Result<()> {
        while let Some(c) = self.first() {
            if self.ends_word(c) || (c == ':' && !text.is_empty()) {
                return Ok(());
            }
            self.skip(c);
            text.push(if c == '\\' && self.of != Of::Web { self.escaped()? } else { c });
        }
        Ok(())
    }

    /// A word in quotes, of which the first was read. Two quotes are one.
    fn quoted(&mut self, text: &mut String) -> Result<()> {
        loop {
            let Some(c) = self.first() else { return Err(self.error()) };
            self.skip(c);
            match c {
                '\\' => text.push(self.escaped()?),
                '\'' if self.first() != Some('\'') => return Ok(()),
                '\'' => {
                    self.skip('\'');
                    text.push('\'');
                }
                c => text.push(c),
            }
        }
    }

    fn escaped(&mut self) -> Result<char> {
        let Some(c) = self.first() else { bail!(SYNTAX_ERROR, "there is no escaped character: \"{}\"", self.text) };
        self.skip(c);
        Ok(c)
    }

    /// Positions with weights, up to a blank.
    fn positions(&mut self, out: &mut Vec<LexemePosition>) -> Result<()> {
        loop {
            let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
            if digits == 0 {
                return Err(self.error());
            }
            // A number that is too large counts as the last position.
            let place = self.rest[..digits].parse::<u32>().unwrap_or(u32::MAX);
            if place == 0 {
                bail!(SYNTAX_ERROR, "wrong position info in tsvector: \"{}\"", self.text);
            }
            self.rest = &self.rest[digits..];
            let weight = self.weight()?;
            out.push(LexemePosition::new(place, weight));
            match self.first() {
                Some(',') => self.skip(','),
                _ => return Ok(()),
            }
        }
    }

    /// The weight behind a position: at most one that is not D.
    fn weight(&mut self) -> Result<u8> {
        let mut weight = 0;
        while let Some(c) = self.first().filter(|c| *c != ',' && !is_blank(*c)) {
            self.skip(c);
            let given = match c {
                '*' => 3,
                '0'..='9' => continue,
                c => weight_of(c).ok_or_else(|| self.error())?,
            };
            if weight != 0 {
                return Err(self.error());
            }
            weight = given;
        }
        Ok(weight)
    }
}

/// The number of a weight by its letter.
pub fn weight_of(letter: char) -> Option<u8> {
    match letter.to_ascii_uppercase() {
        'A' => Some(3),
        'B' => Some(2),
        'C' => Some(1),
        'D' => Some(0),
        _ => None,
    }
}

/// The letter of a weight by its number.
pub fn weight_letter(weight: u8) -> char {
    (b'D' - weight.min(3)) as char
}
