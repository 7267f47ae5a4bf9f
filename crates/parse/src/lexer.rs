//! PostgreSQL's lexical rules, as far as needed to tell strings, names and comments from the rest of a text.
//!
//! Invariants:
//! 1. The tokens of a text follow each other without a gap, from its start to its end.
//! 2. A string is one token together with the pieces that SQL joins to it (on separate lines).

use super::Strings;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LexemeKind {
    Space,
    Comment,
    /// `'...'`
    String,
    /// `N'...'`, read as a plain one.
    National,
    /// `E'...'`
    EscapeString,
    /// `B'...'`, `X'...'`, `U&'...'`
    OtherString,
    /// A string of several pieces, with the kind of its first piece.
    Joined {
        plain: bool,
    },
    /// `"..."`, `U&"..."`
    QuotedName,
    DollarString,
    /// Digits with all that sticks to them.
    Number,
    Word,
    Symbol,
    /// A string, name or comment without an end, up to the end of the text.
    Unterminated,
}

pub struct Lexer<'a> {
    text: &'a [u8],
    pub at: usize,
    /// `'...'` has backslash escapes.
    escapes: bool,
}

fn starts_identifier(b: u8) -> bool {
    b.is_ascii_alphabetic() || b == b'_' || b >= 0x80
}

fn continues_identifier(b: u8) -> bool {
    starts_identifier(b) || b.is_ascii_digit() || b == b'$'
}

fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

impl<'a> Lexer<'a> {
    pub fn new(text: &'a str, strings: Strings) -> Lexer<'a> {
        Lexer { text: text.as_bytes(), at: 0, escapes: !strings.conforming }
    }

    fn byte(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    /// Past the next token, which began where `at` was.
    #[expect(clippy::should_implement_trait, reason = "a token is its kind and the place behind it, which `at` has")]
    pub fn next(&mut self) -> Option<LexemeKind> {
        let b = *self.text.get(self.at)?;
        Some(match b {
            _ if is_space(b) => {
                self.skip_while(is_space);
                LexemeKind::Space
            }
            b'-' if self.byte(1) == b'-' => {
                self.skip_while(|b| !matches!(b, b'\n' | b'\r'));
                LexemeKind::Comment
            }
            b'/' if self.byte(1) == b'*' => self.block_comment(),
            b'\'' => self.string(LexemeKind::String, self.escapes),
            b'"' => self.quoted_name(),
            b'$' => self.dollar(),
            b'0'..=b'9' => self.number(),
            b'.' if self.byte(1).is_ascii_digit() => self.number(),
            _ if starts_identifier(b) => self.word(),
            _ => {
                self.at += 1;
                LexemeKind::Symbol
            }
        })
    }

    fn skip_while(&mut self, within: impl Fn(u8) -> bool) {
        let rest = &self.text[self.at..];
        self.at += rest.iter().position(|b| !within(*b)).unwrap_or(rest.len());
    }

    fn word(&mut self) -> LexemeKind {
        let (kind, prefix, escapes) = match (self.byte(0), self.byte(1), self.byte(2)) {
            (b'e' | b'E', b'\'', _) => (LexemeKind::EscapeString, 1, true),
            (b'n' | b'N', b'\'', _) => (LexemeKind::National, 1, self.escapes),
            (b'b' | b'B' | b'x' | b'X', b'\'', _) => (LexemeKind::OtherString, 1, false),
            (b'u' | b'U', b'&', b'\'') => (LexemeKind::OtherString, 2, false),
            (b'u' | b'U', b'&', b'"') => {
                self.at += 2;
                return self.quoted_name();
            }
            _ => {
                self.skip_while(continues_identifier);
                return LexemeKind::Word;
            }
        };
        self.at += prefix;
        self.string(kind, escapes)
    }

    fn string(&mut self, kind: LexemeKind, escapes: bool) -> LexemeKind {
        let mut pieces = 0;
        loop {
            pieces += 1;
            if !self.quoted(escapes) {
                return LexemeKind::Unterminated;
            }
            match self.next_piece() {
                Some(at) => self.at = at,
                None if pieces == 1 => return kind,
                None => return LexemeKind::Joined { plain: matches!(kind, LexemeKind::String | LexemeKind::National) },
            }
        }
    }

    fn quoted_name(&mut self) -> LexemeKind {
        if self.quoted(false) { LexemeKind::QuotedName } else { LexemeKind::Unterminated }
    }

    /// Skips text that begins with a quote and ends with the same; false when it does not end.
    fn quoted(&mut self, escapes: bool) -> bool {
        let quote = self.byte(0);
        self.at += 1;
        while let Some(&b) = self.text.get(self.at) {
            match b {
                b'\\' if escapes => self.at += 1,
                _ if b == quote && self.byte(1) == quote => self.at += 1,
                _ if b == quote => {
                    self.at += 1;
                    return true;
                }
                _ => {}
            }
            self.at += 1;
        }
        self.at = self.text.len();
        false
    }

    /// Where the string that ends here continues: behind white space with a line's end, and comments that end lines.
    fn next_piece(&self) -> Option<usize> {
        let mut ahead = Lexer { text: self.text, at: self.at, escapes: false };
        let mut lines = false;
        loop {
            match self.text.get(ahead.at)? {
                b'\n' | b'\r' => lines = true,
                b'\'' => return lines.then_some(ahead.at),
                b'-' if ahead.byte(1) == b'-' => {
                    ahead.skip_while(|b| !matches!(b, b'\n' | b'\r'));
                    continue;
                }
                b if is_space(*b) => {}
                _ => return None,
            }
            ahead.at += 1;
        }
    }

    fn number(&mut self) -> LexemeKind {
        let mut last = 0;
        loop {
            let b = self.byte(0);
            let exponent_sign = matches!(b, b'+' | b'-') && matches!(last, b'e' | b'E');
            if !(continues_identifier(b) || b == b'.' || exponent_sign) {
                return LexemeKind::Number;
            }
            last = b;
            self.at += 1;
        }
    }

    /// A dollar-quoted string; a parameter's or a stray dollar is a symbol.
    fn dollar(&mut self) -> LexemeKind {
        match self.dollar_string_end() {
            Some(end) => {
                self.at = end;
                LexemeKind::DollarString
            }
            None => {
                self.at += 1;
                LexemeKind::Symbol
            }
        }
    }

    fn dollar_string_end(&self) -> Option<usize> {
        let rest = &self.text[self.at..];
        let tag = rest[1..].iter().position(|b| *b == b'$' || !continues_identifier(*b))? + 2;
        if rest[tag - 1] != b'$' || rest[1] != b'$' && !starts_identifier(rest[1]) {
            return None;
        }
        let (tag, body) = rest.split_at(tag);
        let end = body.windows(tag.len()).position(|w| w == tag)?;
        Some(self.at + tag.len() + end + tag.len())
    }

    fn block_comment(&mut self) -> LexemeKind {
        let mut depth = 0;
        while let Some(&b) = self.text.get(self.at) {
            match (b, self.byte(1)) {
                (b'/', b'*') => {
                    depth += 1;
                    self.at += 1;
                }
                (b'*', b'/') => {
                    depth -= 1;
                    self.at += 1;
                }
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return LexemeKind::Comment;
            }
        }
        self.at = self.text.len();
        LexemeKind::Unterminated
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str, conforming: bool) -> Vec<(LexemeKind, &str)> {
        let mut lexer = Lexer::new(text, Strings { conforming, ..Strings::default() });
        let mut out = Vec::new();
        let mut start = 0;
        while let Some(kind) = lexer.next() {
            out.push((kind, &text[start..lexer.at]));
            start = lexer.at;
        }
        assert_eq!(start, text.len());
        out
    }

    #[test]
    fn strings_end_where_the_setting_says() {
        use LexemeKind::{EscapeString, Joined, National, OtherString, String, Symbol, Unterminated};
        assert_eq!(tokens(r"'a\'", true), [(String, r"'a\'")]);
        assert_eq!(tokens(r"'a\'", false), [(Unterminated, r"'a\'")]);
        assert_eq!(tokens(r"'a\'',", false), [(String, r"'a\''"), (Symbol, ",")]);
        assert_eq!(tokens(r"n'a\'',", false), [(National, r"n'a\''"), (Symbol, ",")]);
        for conforming in [true, false] {
            assert_eq!(tokens(r"E'a\'''',", conforming), [(EscapeString, r"E'a\''''"), (Symbol, ",")]);
            assert_eq!(tokens(r"x'a\',", conforming), [(OtherString, r"x'a\'"), (Symbol, ",")]);
            assert_eq!(tokens("'a' -- b\n 'c'", conforming), [(Joined { plain: true }, "'a' -- b\n 'c'")]);
            assert_eq!(tokens("e'a'\n'\\''", conforming), [(Joined { plain: false }, "e'a'\n'\\''")]);
        }
    }

    #[test]
    fn what_does_not_end_goes_to_the_end() {
        for text in ["'a", "E'\\", "\"a", "/* /* */", "U&\"x"] {
            assert_eq!(tokens(text, true), [(LexemeKind::Unterminated, text)]);
        }
        assert_eq!(tokens("$a$ b", true)[0], (LexemeKind::Symbol, "$"));
        assert_eq!(tokens("$", true), [(LexemeKind::Symbol, "$")]);
    }
}
