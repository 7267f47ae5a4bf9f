//! The literals of a query string: what one text may have different from another without being another statement.
//!
//! A scanner by PostgreSQL's lexical rules. It need not understand everything: what it does not take for a literal stays
//! part of the key, so an oversight costs a cache miss. What it does take for one is confirmed by analysis, which has the
//! real parse tree (`analyze::analyze_with_literals`).
//!
//! Invariant: texts with equal keys give the grammar the same sequence of tokens, but for the values of the literals; and
//! literals in the same place have the same class, by which PostgreSQL chooses a constant's type.

use std::ops::Range;

/// How PostgreSQL types a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum LiteralClass {
    Int4 = 1,
    Int8 = 2,
    Numeric = 3,
    /// Of unknown type.
    String = 4,
}

/// A literal in a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Literal {
    pub class: LiteralClass,
    /// Quotes included.
    pub range: Range<usize>,
    /// A minus sign right before it, with white space between: it may be the literal's.
    pub minus: Option<usize>,
}

/// A text without its literals. Keys of different texts are equal when only their literals differ.
#[derive(Debug, Default)]
pub struct Normalized {
    pub key: Vec<u8>,
    pub literals: Vec<Literal>,
}

/// Longer texts are not worth the scan.
const TEXT_BYTES_MAX: usize = 16 << 10;
const LITERALS_MAX: usize = 256;
/// Without its sign.
const LEAST_INT4: u64 = 1 << 31;

impl Literal {
    /// The content of a string literal.
    pub fn string(&self, text: &str) -> String {
        text[self.range.start + 1..self.range.end - 1].replace("''", "'")
    }
}

impl Normalized {
    /// Takes a text apart; false when it has no literals, or something that is not worth understanding.
    pub fn scan(&mut self, text: &str) -> bool {
        self.key.clear();
        self.literals.clear();
        if text.len() > TEXT_BYTES_MAX {
            return false;
        }
        let mut scanner = Scanner { text: text.as_bytes(), at: 0, minus: None, out: self };
        scanner.run().is_some() && !self.literals.is_empty()
    }
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    /// The last token, if it was a minus sign.
    minus: Option<usize>,
    out: &'a mut Normalized,
}

fn starts_identifier(b: u8) -> bool {
    b.is_ascii_alphabetic() || b == b'_' || b >= 0x80
}

fn continues_identifier(b: u8) -> bool {
    starts_identifier(b) || b.is_ascii_digit() || b == b'$'
}

impl Scanner<'_> {
    fn byte(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    /// The whole text; `None` to give up.
    fn run(&mut self) -> Option<()> {
        while self.at < self.text.len() {
            let (start, b) = (self.at, self.text[self.at]);
            let minus = self.minus.take();
            match b {
                // Keys use these, and they are no part of any statement that runs.
                0..=4 => return None,
                b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => {
                    self.at += 1;
                    self.minus = minus;
                }
                b'-' if self.byte(1) == b'-' => self.line_comment(),
                b'/' if self.byte(1) == b'*' => self.block_comment()?,
                b'-' => {
                    self.minus = Some(start);
                    self.at += 1;
                }
                b'\'' => {
                    self.quoted(false)?;
                    self.literal(LiteralClass::String, start, None)?;
                    continue;
                }
                b'"' => self.quoted(false)?,
                b'$' => self.dollar()?,
                b'0'..=b'9' => {
                    if let Some(class) = self.number() {
                        self.literal(class, start, minus)?;
                        continue;
                    }
                }
                b'.' if self.byte(1).is_ascii_digit() => drop(self.number()),
                _ if starts_identifier(b) => self.identifier()?,
                _ => self.at += 1,
            }
            self.out.key.extend_from_slice(&self.text[start..self.at]);
        }
        Some(())
    }

    fn literal(&mut self, class: LiteralClass, start: usize, minus: Option<usize>) -> Option<()> {
        self.out.key.push(class as u8);
        self.out.literals.push(Literal { class, range: start..self.at, minus });
        (self.out.literals.len() <= LITERALS_MAX).then_some(())
    }

    /// Past a quoted token; gives up on strings that go on after white space (SQL joins them) and on those without an end.
    fn quoted(&mut self, escapes: bool) -> Option<()> {
        let quote = self.byte(0);
        self.at += 1;
        loop {
            match *self.text.get(self.at)? {
                b'\\' if escapes => self.at += 1,
                // Keys are texts with other bytes for literals; these would be ambiguous.
                0..=4 if quote == b'"' => return None,
                b if b == quote && self.byte(1) == quote => self.at += 1,
                b if b == quote => break,
                _ => {}
            }
            self.at += 1;
        }
        self.at += 1;
        let rest = self.text[self.at..].trim_ascii_start();
        let goes_on = rest.starts_with(b"'") || rest.starts_with(b"--") || rest.starts_with(b"/*");
        (quote == b'"' || !goes_on).then_some(())
    }

    fn identifier(&mut self) -> Option<()> {
        match (self.byte(0), self.byte(1), self.byte(2)) {
            (b'e' | b'E', b'\'', _) => {
                self.at += 1;
                self.quoted(true)
            }
            (b'b' | b'B' | b'x' | b'X' | b'n' | b'N', b'\'', _) => {
                self.at += 1;
                self.quoted(false)
            }
            (b'u' | b'U', b'&', b'\'' | b'"') => {
                self.at += 2;
                self.quoted(false)
            }
            _ => {
                while continues_identifier(self.byte(0)) {
                    self.at += 1;
                }
                Some(())
            }
        }
    }

    /// Past a number. Its class, if it is an integer or has a decimal point and nothing else.
    fn number(&mut self) -> Option<LiteralClass> {
        let start = self.at;
        let mut last = 0;
        loop {
            let b = self.byte(0);
            let exponent_sign = matches!(b, b'+' | b'-') && matches!(last, b'e' | b'E');
            if !(continues_identifier(b) || b == b'.' || exponent_sign) {
                break;
            }
            last = b;
            self.at += 1;
        }
        let token = &self.text[start..self.at];
        if token.iter().all(u8::is_ascii_digit) {
            let value: u64 = std::str::from_utf8(token).ok()?.parse().ok()?;
            return match value {
                // Its negative is an int4, though it is none itself.
                LEAST_INT4 => None,
                _ if i32::try_from(value).is_ok() => Some(LiteralClass::Int4),
                _ => i64::try_from(value).is_ok().then_some(LiteralClass::Int8),
            };
        }
        let point = token.iter().position(|b| *b == b'.')?;
        let (whole, fraction) = (&token[..point], &token[point + 1..]);
        let digits = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
        (digits(whole) && digits(fraction)).then_some(LiteralClass::Numeric)
    }

    /// A dollar-quoted string. Parameters and stray dollars are given up on.
    fn dollar(&mut self) -> Option<()> {
        let rest = &self.text[self.at..];
        let tag = rest[1..].iter().position(|b| *b == b'$')? + 2;
        if rest[1] != b'$' && !starts_identifier(rest[1])
            || !rest[1..tag - 1].iter().all(|b| *b != b'$' && continues_identifier(*b))
        {
            return None;
        }
        let (tag, body) = rest.split_at(tag);
        let end = body.windows(tag.len()).position(|w| w == tag)?;
        self.at += tag.len() + end + tag.len();
        Some(())
    }

    fn line_comment(&mut self) {
        while !matches!(self.byte(0), b'\n' | b'\r') && self.at < self.text.len() {
            self.at += 1;
        }
    }

    fn block_comment(&mut self) -> Option<()> {
        let mut depth = 0;
        loop {
            match (*self.text.get(self.at)?, self.byte(1)) {
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
                return Some(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scanned(text: &str) -> Option<(String, Vec<&str>)> {
        let mut n = Normalized::default();
        n.scan(text).then(|| {
            let key = n.key.iter().map(|b| if *b <= 4 { (b'0' + b) as char } else { *b as char }).collect();
            (key, n.literals.iter().map(|l| &text[l.range.clone()]).collect())
        })
    }

    #[test]
    fn literals_are_found_by_postgresqls_rules() {
        for (text, key, literals) in [
            ("select a from t where id = 42", "select a from t where id = 1", vec!["42"]),
            ("select t1.c5, x$1 + 007", "select t1.c5, x$1 + 1", vec!["007"]),
            ("select 2147483647, 3000000000, 1.50", "select 1, 2, 3", vec!["2147483647", "3000000000", "1.50"]),
            ("select 'it''s', E'a\\'b', 'x'", "select 4, E'a\\'b', 4", vec!["'it''s'", "'x'"]),
            ("select \"a 'b' 1\", 5 -- 6 '\n, 7", "select \"a 'b' 1\", 1 -- 6 '\n, 1", vec!["5", "7"]),
            ("select 1 /* 2 /* '3 */ */ + 4", "select 1 /* 2 /* '3 */ */ + 1", vec!["1", "4"]),
            ("select $a$ 5 ' $a$, $$'$$, 6", "select $a$ 5 ' $a$, $$'$$, 1", vec!["6"]),
            ("select 0x1F, 1_000, 1e-5, 1.e5, .5, 7", "select 0x1F, 1_000, 1e-5, 1.e5, .5, 1", vec!["7"]),
            ("select B'01', x'1f', U&'\\0041', 8", "select B'01', x'1f', U&'\\0041', 1", vec!["8"]),
        ] {
            assert_eq!(scanned(text), Some((key.to_owned(), literals)), "{text}");
        }
    }

    #[test]
    fn what_is_not_understood_is_left_alone() {
        for text in [
            "select 'a'\n'b'",
            "select 'a' -- c\n'b'",
            "select $1 + 5",
            "select 'open",
            "select 5 /* open",
            "select a from t",
            "select \u{1}, 5",
            "select \"a\u{1}\", 5",
            "select 2147483648",
        ] {
            assert_eq!(scanned(text), None, "{text}");
        }
    }

    #[test]
    fn a_minus_sign_is_remembered() {
        let mut n = Normalized::default();
        assert!(n.scan("select -  5, - /* c */ 6, a -'x', (7)"));
        let signs: Vec<Option<usize>> = n.literals.iter().map(|l| l.minus).collect();
        assert_eq!(signs, [Some(7), None, None, None]);
    }
}
