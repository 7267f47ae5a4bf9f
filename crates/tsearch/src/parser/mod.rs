//! The default parser: splits a document into tokens of 23 types.
//!
//! The token types and what belongs to them are PostgreSQL's (the parser "default"), down to its odd cases. A token's first
//! character chooses what is tried; what is tried may fail, and the next possibility begins at the same place. Attempts are loops
//! that remember where they could have ended, so long texts need no stack.

mod files;
mod hosts;
mod markup;
mod words;

use melba_types::{Result, limits};
use unicode_width::UnicodeWidthChar;

/// Types of tokens by PostgreSQL's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TokenType {
    AsciiWord = 1,
    Word,
    NumWord,
    Email,
    Url,
    Host,
    Scientific,
    Version,
    HyphenatedNumPart,
    HyphenatedPart,
    HyphenatedAsciiPart,
    Blank,
    Tag,
    Protocol,
    NumHyphenated,
    AsciiHyphenated,
    Hyphenated,
    UrlPath,
    File,
    Float,
    Int,
    UnsignedInt,
    Entity,
}

/// The names and descriptions of token types, by their numbers less one.
pub const TOKEN_TYPES: [(&str, &str); 23] = [
    ("asciiword", "Word, all ASCII"),
    ("word", "Word, all letters"),
    ("numword", "Word, letters and digits"),
    ("email", "Email address"),
    ("url", "URL"),
    ("host", "Host"),
    ("sfloat", "Scientific notation"),
    ("version", "Version number"),
    ("hword_numpart", "Hyphenated word part, letters and digits"),
    ("hword_part", "Hyphenated word part, all letters"),
    ("hword_asciipart", "Hyphenated word part, all ASCII"),
    ("blank", "Space symbols"),
    ("tag", "XML tag"),
    ("protocol", "Protocol head"),
    ("numhword", "Hyphenated word, letters and digits"),
    ("asciihword", "Hyphenated word, all ASCII"),
    ("hword", "Hyphenated word, all letters"),
    ("url_path", "URL path"),
    ("file", "File or path name"),
    ("float", "Decimal notation"),
    ("int", "Signed integer"),
    ("uint", "Unsigned integer"),
    ("entity", "XML entity"),
];

/// A part of a document.
#[derive(Clone, Copy, Debug)]
pub struct Token<'a> {
    pub ty: TokenType,
    pub text: &'a str,
}

/// How the next token begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Base,
    /// In a hyphenated word that was a token already.
    HyphenParts,
    /// Behind the host of a URL.
    UrlPath,
    /// At the digits of a number whose sign is a token.
    Unsigned,
}

/// A token that was found.
#[derive(Clone, Copy)]
struct Found {
    ty: TokenType,
    end: usize,
    /// Where and how the next one begins.
    next: usize,
    mode: Mode,
}

impl Found {
    fn new(ty: TokenType, end: usize) -> Found {
        Found { ty, end, next: end, mode: Mode::Base }
    }
}

/// Reads the tokens of a document.
pub struct Parser<'a> {
    text: &'a str,
    /// Where the token begins.
    start: usize,
    mode: Mode,
    /// In a script or style: everything but tags is blank.
    ignores: bool,
    /// A URL was read: its host is to be read again.
    wants_host: bool,
}

/// Characters that tokens are made of.
#[derive(Clone, Copy)]
struct Char {
    c: char,
    bytes: usize,
}

impl Char {
    fn is(self, c: char) -> bool {
        self.c == c
    }

    fn is_ascii_letter(self) -> bool {
        self.c.is_ascii_alphabetic()
    }

    fn is_digit(self) -> bool {
        self.c.is_ascii_digit()
    }

    /// Letters, and digits of other scripts.
    fn is_letter(self) -> bool {
        if self.c.is_ascii() { self.c.is_ascii_alphabetic() } else { self.c.is_alphanumeric() }
    }

    fn is_alphanumeric(self) -> bool {
        self.c.is_alphanumeric()
    }

    /// A mark that is in a word but no letter: it has no width of its own.
    fn is_mark(self) -> bool {
        !self.c.is_ascii() && self.c.width() == Some(0)
    }

    fn is_space(self) -> bool {
        self.c.is_whitespace()
    }

    /// What RFC 3986 allows in a URL.
    fn is_url(self) -> bool {
        self.c.is_ascii_graphic() && !matches!(self.c, '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}')
    }
}

impl<'a> Parser<'a> {
    pub fn new(text: &'a str) -> Parser<'a> {
        Parser { text, start: 0, mode: Mode::Base, ignores: false, wants_host: false }
    }

    /// The next token; `None` at the end.
    ///
    /// # Errors
    /// 54001 for an address that nests too deeply.
    pub fn next(&mut self) -> Result<Option<Token<'a>>> {
        if self.start >= self.text.len() {
            return Ok(None);
        }
        limits::tick()?;
        let at = self.start;
        let found = match self.mode {
            Mode::Base => self.base(at)?,
            Mode::HyphenParts => match self.hyphen_part(at) {
                Some(found) => found,
                None => self.base(at)?,
            },
            Mode::UrlPath => Found::new(TokenType::UrlPath, self.url_chars(self.behind(at))),
            Mode::Unsigned => self.unsigned(at)?,
        };
        (self.start, self.mode) = (found.next, found.mode);
        Ok(Some(Token { ty: found.ty, text: &self.text[at..found.end] }))
    }

    /// The character at a place.
    #[inline]
    fn at(&self, at: usize) -> Option<Char> {
        let byte = *self.text.as_bytes().get(at)?;
        if byte.is_ascii() {
            return Some(Char { c: char::from(byte), bytes: 1 });
        }
        self.text[at..].chars().next().map(|c| Char { c, bytes: c.len_utf8() })
    }

    /// Whether the character at a place satisfies a test.
    #[inline]
    fn holds(&self, at: usize, test: impl Fn(Char) -> bool) -> bool {
        self.at(at).is_some_and(test)
    }

    /// The place behind a character.
    fn behind(&self, at: usize) -> usize {
        at + self.at(at).map_or(0, |c| c.bytes)
    }

    /// The place behind all characters that satisfy a test.
    #[inline]
    fn skip(&self, mut at: usize, test: impl Fn(Char) -> bool) -> usize {
        while let Some(c) = self.at(at).filter(|c| test(*c)) {
            at += c.bytes;
        }
        at
    }

    fn url_chars(&self, at: usize) -> usize {
        self.skip(at, Char::is_url)
    }

    fn base(&mut self, at: usize) -> Result<Found> {
        let Some(first) = self.at(at) else { return Ok(Found::new(TokenType::Blank, at)) };
        let behind = at + first.bytes;
        if first.is('<')
            && let Some(found) = self.tag(behind)
        {
            return Ok(found);
        }
        if self.ignores {
            return Ok(self.blank(behind));
        }
        if first.is_ascii_letter() {
            return self.ascii_word(behind);
        }
        if first.is_digit() {
            return self.unsigned(at);
        }
        if first.is_letter() {
            return self.word(behind);
        }
        let found = match first.c {
            '-' | '+' => self.signed(behind),
            '&' => self.entity(behind),
            '~' => self.file_behind_tilde(behind),
            '/' => self.file_behind_slash(behind),
            '.' => self.file_behind_dot(behind),
            _ => None,
        };
        Ok(found.unwrap_or_else(|| self.blank(behind)))
    }

    fn blank(&self, at: usize) -> Found {
        let ends = |c: Char| match c.c {
            '<' => true,
            _ if self.ignores => false,
            '-' | '+' | '&' | '/' => true,
            _ => c.is_alphanumeric(),
        };
        Found::new(TokenType::Blank, self.skip(at, |c| !ends(c)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<String> {
        let mut parser = Parser::new(text);
        std::iter::from_fn(|| parser.next().unwrap())
            .map(|token| format!("{} {}", TOKEN_TYPES[token.ty as usize - 1].0, token.text))
            .collect()
    }

    #[test]
    fn urls_have_hosts_and_paths() {
        let found = ["protocol http://", "url a.example.com:80/x?y=1", "host a.example.com:80", "url_path /x?y=1"];
        assert_eq!(tokens("http://a.example.com:80/x?y=1"), found);
        assert_eq!(tokens("teodor@stack.net"), ["email teodor@stack.net"]);
    }

    #[test]
    fn hyphenated_words_have_parts() {
        let found = ["asciihword foo-bar", "hword_asciipart foo", "blank -", "hword_asciipart bar", "blank  ", "numhword a-1b"];
        assert_eq!(tokens("foo-bar a-1b")[..6], found);
        assert_eq!(tokens("beta1-x")[..2], ["numhword beta1-x", "hword_numpart beta1"]);
    }

    #[test]
    fn signs_belong_to_numbers_but_not_to_versions() {
        assert_eq!(tokens("-12 +3.5 1e-5"), ["int -12", "blank  ", "float +3.5", "blank  ", "sfloat 1e-5"]);
        assert_eq!(tokens("-1.2.3"), ["blank -", "version 1.2.3"]);
    }

    #[test]
    fn scripts_are_blank() {
        assert_eq!(tokens("<script>a b</script>c"), ["tag <script>", "blank a b", "tag </script>", "asciiword c"]);
    }

    #[test]
    fn long_chains_need_no_stack() {
        let text = "a.b-".repeat(100_000) + "!";
        assert!(!tokens(&text[..text.len() / 4]).is_empty());
        assert_eq!(tokens(&"../".repeat(100_000)).len(), 2);
    }
}
