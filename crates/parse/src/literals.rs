//! The literals of a query string: the parts in which texts of the same statement may differ.
//!
//! A scanner by PostgreSQL's lexical rules. It need not understand everything: text that it does not recognise as a literal stays
//! part of the key, so an oversight costs a cache miss. Recognised literals are confirmed by analysis, which has the real parse
//! tree (`analyze::analyze_with_literals`).
//!
//! Invariant: texts with equal keys give the grammar the same sequence of tokens, except the values of the literals; and literals
//! in the same place have the same class, by which PostgreSQL chooses a constant's type.
//!
//! Of a long INSERT ... VALUES whose rows differ only in their literals, only two rows are in the key (`RepeatedRows`): the
//! second stands for all that follow it.

use std::ops::Range;

use super::Strings;
use super::lexer::{LexemeKind, Lexer};

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
    pub rows: Option<RepeatedRows>,
}

/// The rows of a text that ends with VALUES (...), (...), ..., those from the second on being the same except for literals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepeatedRows {
    /// Literals of a row; the text has no others.
    pub width: usize,
    /// Where the second row ends: the text before is that of two rows.
    pub end: usize,
}

/// Rows are detected in texts from this length on.
const ROWS_TEXT_BYTES_MIN: usize = 1 << 10;
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
    /// Scans a text; false when it has no literals, or syntax that is not worth understanding.
    pub fn scan(&mut self, text: &str, strings: Strings) -> bool {
        self.clear();
        let is_insert = || text.trim_ascii_start().get(..6).is_some_and(|word| word.eq_ignore_ascii_case("insert"));
        if text.len() >= ROWS_TEXT_BYTES_MIN && is_insert() {
            if self.scan_rows(text, strings) {
                return true;
            }
            self.clear();
        }
        text.len() <= TEXT_BYTES_MAX && Scanner::new(text, strings, self, None).run().is_some() && !self.literals.is_empty()
    }

    fn scan_rows(&mut self, text: &str, strings: Strings) -> bool {
        let mut scanner = Scanner::new(text, strings, self, Some(LiteralRows::default()));
        let scanned = scanner.run().and(scanner.rows);
        self.rows = scanned.and_then(|rows| rows.finish(self));
        self.rows.is_some()
    }

    /// Forgets the last text, and memory that few texts need.
    pub fn clear(&mut self) {
        self.key.clear();
        self.literals.clear();
        self.literals.shrink_to(LITERALS_MAX);
        self.rows = None;
    }
}

/// Rows found so far.
#[derive(Clone, Copy, Debug, Default)]
struct LiteralRows {
    /// VALUES was found, outside of parentheses.
    begun: bool,
    depth: usize,
    count: usize,
    width: usize,
    /// Where the first and the second row end in the key, and the second in the text.
    first_end: usize,
    second_end: usize,
    text_end: usize,
}

impl LiteralRows {
    /// A token that is in the key now; `None` when the text is not of this kind.
    fn token(&mut self, token: &[u8], at: usize, out: &mut Normalized) -> Option<()> {
        match token {
            // Rows with parentheses inside may hold queries, which are not evaluated again for each.
            b"(" if self.begun && self.depth > 0 => return None,
            b"(" => self.depth += 1,
            b")" => {
                self.depth = self.depth.checked_sub(1)?;
                if self.begun {
                    self.end_row(at, out)?;
                }
            }
            _ if self.depth == 0 && token.eq_ignore_ascii_case(b"values") => {
                self.begun = !self.begun && out.literals.is_empty();
                return self.begun.then_some(());
            }
            _ => {}
        }
        Some(())
    }

    fn end_row(&mut self, at: usize, out: &mut Normalized) -> Option<()> {
        self.count += 1;
        match self.count {
            1 => (self.first_end, self.width) = (out.key.len(), out.literals.len()),
            2 => (self.second_end, self.text_end) = (out.key.len(), at),
            _ => {
                let same = out.key[self.second_end..] == out.key[self.first_end..self.second_end];
                out.key.truncate(self.second_end);
                same.then_some(())?;
            }
        }
        (out.literals.len() == self.count * self.width).then_some(())
    }

    fn finish(self, out: &mut Normalized) -> Option<RepeatedRows> {
        let rest = out.key.get(self.second_end..)?;
        let ends_here = rest.iter().all(|b| b.is_ascii_whitespace() || *b == b';');
        out.key.truncate(self.second_end);
        let repeats = self.count > 2 && self.depth == 0 && self.width > 0 && ends_here;
        repeats.then_some(RepeatedRows { width: self.width, end: self.text_end })
    }
}

struct Scanner<'a> {
    text: &'a [u8],
    lexer: Lexer<'a>,
    strings: Strings,
    /// The last token, if it was a minus sign.
    minus: Option<usize>,
    out: &'a mut Normalized,
    /// `None` when repeated rows are not searched.
    rows: Option<LiteralRows>,
}

impl<'a> Scanner<'a> {
    fn new(text: &'a str, strings: Strings, out: &'a mut Normalized, rows: Option<LiteralRows>) -> Scanner<'a> {
        Scanner { text: text.as_bytes(), lexer: Lexer::new(text, strings), strings, minus: None, out, rows }
    }

    /// The whole text; `None` to give up.
    fn run(&mut self) -> Option<()> {
        loop {
            let start = self.lexer.at;
            let Some(kind) = self.lexer.next() else { return Some(()) };
            let token = &self.text[start..self.lexer.at];
            let minus = self.minus.take();
            match kind {
                LexemeKind::Space => self.minus = minus,
                // With a backslash that may be an escape it is left to the grammar.
                LexemeKind::String if !self.strings.conforming && token.contains(&b'\\') => return None,
                LexemeKind::String => {
                    self.literal(LiteralClass::String, start, None)?;
                    continue;
                }
                LexemeKind::Number => {
                    if let Some(class) = number_class(token) {
                        self.literal(class, start, minus)?;
                        continue;
                    }
                }
                LexemeKind::Symbol => match token[0] {
                    // Keys use these, and they are no part of any statement that runs; parameters are not handled here.
                    0..=4 | b'$' => return None,
                    b'-' => self.minus = Some(start),
                    _ => {}
                },
                // Keys are texts with other bytes for literals; these would be ambiguous.
                LexemeKind::QuotedName if token.iter().any(|b| *b <= 4) => return None,
                LexemeKind::Joined { .. } | LexemeKind::Unterminated => return None,
                _ => {}
            }
            self.out.key.extend_from_slice(token);
            if let Some(rows) = &mut self.rows {
                rows.token(token, self.lexer.at, self.out)?;
            }
        }
    }

    fn literal(&mut self, class: LiteralClass, start: usize, minus: Option<usize>) -> Option<()> {
        self.out.key.push(class as u8);
        self.out.literals.push(Literal { class, range: start..self.lexer.at, minus });
        (self.out.literals.len() <= LITERALS_MAX || self.rows.is_some()).then_some(())
    }
}

/// The class of a number, if it is an integer or has a decimal point and nothing else.
fn number_class(token: &[u8]) -> Option<LiteralClass> {
    if token.iter().all(u8::is_ascii_digit) {
        let value: u64 = std::str::from_utf8(token).ok()?.parse().ok()?;
        return match value {
            // Its negative is an int4, though it is not one itself.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn scanned(text: &str) -> Option<(String, Vec<&str>)> {
        let mut n = Normalized::default();
        n.scan(text, Strings::default()).then(|| {
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
    fn backslashes_are_left_alone_when_they_escape() {
        let escaping = Strings { conforming: false, ..Strings::default() };
        let mut n = Normalized::default();
        assert!(n.scan("select 'a', 'b'''", escaping));
        assert!(!n.scan(r"select 'a', '\''", escaping));
        assert!(n.scan(r"select 'a', '\'", Strings::default()));
        assert!(n.scan(r"select 'a', E'\''", escaping));
    }

    #[test]
    fn of_rows_that_repeat_two_are_kept() {
        let insert = |row: &dyn Fn(usize) -> String, count: usize, end: &str| {
            let rows: Vec<String> = (0..count).map(row).collect();
            format!("INSERT INTO t (a, b) VALUES{}{end}", rows.join(", "))
        };
        let plain = |i: usize| format!("({i}, 'x{i}', NULL)");
        let mut n = Normalized::default();
        let text = insert(&plain, 100, " ;");
        assert!(n.scan(&text, Strings::default()));
        let end = text.find(", (2,").expect("a third row");
        assert_eq!(n.rows, Some(RepeatedRows { width: 2, end }));
        assert_eq!(
            (&n.key[..], n.literals.len()),
            (&b"INSERT INTO t (a, b) VALUES(\x01, \x04, NULL), (\x01, \x04, NULL)"[..], 200)
        );
        assert!(n.scan(&insert(&plain, 200, ""), Strings::default()), "another number of rows");
        assert_eq!(n.key, b"INSERT INTO t (a, b) VALUES(\x01, \x04, NULL), (\x01, \x04, NULL)");
        for text in [
            insert(&plain, 100, " on conflict do nothing"),
            insert(&plain, 100, " returning 5"),
            insert(&|i| format!("({i}, ({i}))"), 100, ""),
            insert(&|i| if i == 50 { "(3000000000, 1)".into() } else { format!("({i}, 1)") }, 100, ""),
            insert(&|i| if i == 50 { "(-3, 1)".into() } else { format!("({i}, 1)") }, 100, ""),
            insert(&|i| if i == 50 { "(DEFAULT, 1)".into() } else { format!("({i}, 1)") }, 100, ""),
            insert(&|i| format!("({i}, 1)"), 100, ", (1)"),
        ] {
            n.scan(&text, Strings::default());
            assert_eq!(n.rows, None, "{text}");
        }
    }

    #[test]
    fn a_minus_sign_is_remembered() {
        let mut n = Normalized::default();
        assert!(n.scan("select -  5, - /* c */ 6, a -'x', (7)", Strings::default()));
        let signs: Vec<Option<usize>> = n.literals.iter().map(|l| l.minus).collect();
        assert_eq!(signs, [Some(7), None, None, None]);
    }
}
