//! Splits lines of pg_hba.conf and pg_ident.conf into tokens, by the rules of PostgreSQL's hba.c. Pure code: `file` reads the files.
//!
//! Tokens are separated by blanks, and by commas within a field. Double quotes take away the meaning of blanks, commas, `#` and
//! keywords; two of them in quotes are one. A comment ends with the line.

/// A word of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub text: String,
    /// It begins with a quote: it is never a keyword, group or file.
    pub quoted: bool,
}

impl Token {
    pub fn is_keyword(&self, keyword: &str) -> bool {
        !self.quoted && self.text == keyword
    }

    /// The role whose members are meant by `+role`.
    pub fn group(&self) -> Option<&str> {
        self.text.strip_prefix('+').filter(|_| !self.quoted)
    }

    /// The regular expression that a token with a leading slash is.
    pub fn pattern(&self) -> Option<&str> {
        self.text.strip_prefix('/')
    }

    /// The file whose tokens stand in the place of `@file`.
    pub fn file(&self) -> Option<&str> {
        self.text.strip_prefix('@').filter(|name| !self.quoted && !name.is_empty())
    }
}

/// Characters of a line that were not read yet.
pub(super) struct Scanner<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
}

impl<'a> Scanner<'a> {
    pub fn new(line: &'a str) -> Scanner<'a> {
        Scanner { rest: line.chars().peekable() }
    }

    pub fn is_at_end(&mut self) -> bool {
        self.rest.peek().is_none()
    }

    /// The next token, and whether a comma follows it; `None` at the end of the line. An unclosed quote ends with the line.
    pub fn token(&mut self) -> Option<(Token, bool)> {
        while self.rest.next_if(|c| is_blank(*c) || *c == ',').is_some() {}
        let mut text = String::new();
        let (mut in_quotes, mut after_quote, mut saw_quote, mut quoted) = (false, false, false, false);
        let mut comma = false;
        while let Some(&c) = self.rest.peek() {
            if !in_quotes {
                if is_blank(c) {
                    break;
                }
                if c == ',' {
                    comma = true;
                    break;
                }
                if c == '#' {
                    while self.rest.next().is_some() {}
                    break;
                }
            }
            if c != '"' || after_quote {
                text.push(c);
            }
            after_quote = in_quotes && c == '"' && !after_quote;
            if c == '"' {
                in_quotes = !in_quotes;
                saw_quote = true;
                quoted |= text.is_empty();
            }
            self.rest.next();
        }
        (saw_quote || !text.is_empty()).then_some((Token { text, quoted }, comma))
    }
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r')
}

/// A line as it stands in the file, without its end: a line that ends with a backslash continues with the next.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Where it begins, from 1.
    pub number: usize,
    pub text: String,
}

pub(super) fn lines(content: &str) -> Vec<Line> {
    let mut out = Vec::new();
    let mut open: Option<Line> = None;
    for (at, line) in content.lines().enumerate() {
        let mut whole = open.take().unwrap_or(Line { number: at + 1, text: String::new() });
        let added = line.trim_end_matches('\r');
        whole.text.push_str(added);
        match added.strip_suffix('\\') {
            Some(_) => {
                whole.text.pop();
                open = Some(whole);
            }
            None => out.push(whole),
        }
    }
    out.extend(open);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(line: &str) -> Vec<(String, bool, bool)> {
        let mut scanner = Scanner::new(line);
        std::iter::from_fn(|| scanner.token()).map(|(t, comma)| (t.text, t.quoted, comma)).collect()
    }

    #[test]
    fn a_line_is_cut_as_postgresql_cuts_it() {
        let plain = |text: &str| (text.to_owned(), false, false);
        for (line, expected) in [
            ("host  all\tall", vec![plain("host"), plain("all"), plain("all")]),
            ("a,b c", vec![("a".into(), false, true), plain("b"), plain("c")]),
            ("a , b", vec![plain("a"), plain("b")]),
            ("abc#def ghi", vec![plain("abc")]),
            ("# a comment", vec![]),
            (r#""a b,#c" d"#, vec![("a b,#c".into(), true, false), plain("d")]),
            (r#""say ""hi""" "#, vec![(r#"say "hi""#.into(), true, false)]),
            (r#""" x"#, vec![(String::new(), true, false), plain("x")]),
            (r#"@"my file""#, vec![plain("@my file")]),
            (r#""open and on"#, vec![("open and on".into(), true, false)]),
            (r#"a"b c"d"#, vec![plain("ab cd")]),
        ] {
            assert_eq!(tokens(line), expected, "{line}");
        }
    }

    #[test]
    fn the_meaning_of_a_token_depends_on_quotes() {
        let token = |line: &str| Scanner::new(line).token().expect("a token").0;
        assert!(token("all").is_keyword("all") && !token("\"all\"").is_keyword("all"));
        assert_eq!((token("+staff").group(), token("\"+staff\"").group()), (Some("staff"), None));
        assert_eq!((token("@f").file(), token("\"@f\"").file(), token("@").file()), (Some("f"), None, None));
        assert_eq!(token("\"/^a b$\"").pattern(), Some("^a b$"));
    }

    #[test]
    fn lines_go_on_after_a_backslash_and_keep_their_first_number() {
        let got: Vec<(usize, String)> =
            lines("one\ntwo \\\nmore\\\n end\n\nlast\\").into_iter().map(|l| (l.number, l.text)).collect();
        let expected = [(1, "one"), (2, "two more end"), (5, ""), (6, "last")];
        assert_eq!(got, expected.map(|(n, t)| (n, t.to_owned())));
    }
}
