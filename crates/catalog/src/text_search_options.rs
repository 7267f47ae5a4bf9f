//! Lists of options as text: `name = value, name = 'a value'`.

use std::iter::Peekable;
use std::str::Chars;

use melba_types::{DbError, Result, err};

/// An option of a dictionary or of a headline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextSearchOption {
    pub name: String,
    pub value: String,
    /// A number is written without quotes.
    pub quoted: bool,
}

fn is_blank(c: char) -> bool {
    c.is_ascii_whitespace() || c == '\u{b}'
}

/// The options of a list.
///
/// # Errors
/// 42601 for what is no list.
pub fn parse_options(text: &str) -> Result<Vec<TextSearchOption>> {
    let error = || -> DbError { err!(SYNTAX_ERROR, "invalid parameter list format: \"{text}\"") };
    let mut rest = text.chars().peekable();
    let mut out = Vec::new();
    loop {
        skip(&mut rest, |c| is_blank(c) || c == ',');
        let Some(first) = rest.peek().copied() else { return Ok(out) };
        let name = match first {
            '"' => quoted(&mut rest).ok_or_else(error)?,
            _ => taken(&mut rest, |c| is_blank(c) || c == '='),
        };
        skip(&mut rest, is_blank);
        if rest.next() != Some('=') {
            return Err(error());
        }
        skip(&mut rest, is_blank);
        let mut behind = rest.clone();
        let is_escaped = (rest.peek(), behind.nth(1)) == (Some(&'E'), Some('\''));
        if is_escaped {
            rest.next();
        }
        let (value, quoted) = match rest.peek() {
            Some('\'' | '"') => (quoted(&mut rest).ok_or_else(error)?, true),
            Some(_) => (taken(&mut rest, |c| is_blank(c) || c == ','), false),
            None => return Err(error()),
        };
        out.push(TextSearchOption { name, value, quoted });
    }
}

fn skip(rest: &mut Peekable<Chars<'_>>, test: impl Fn(char) -> bool) {
    while rest.next_if(|c| test(*c)).is_some() {}
}

fn taken(rest: &mut Peekable<Chars<'_>>, ends: impl Fn(char) -> bool) -> String {
    std::iter::from_fn(|| rest.next_if(|c| !ends(*c))).collect()
}

/// A text in quotes, in which two are one, as are two backslashes in single ones. `None` without a closing quote.
fn quoted(rest: &mut Peekable<Chars<'_>>) -> Option<String> {
    let quote = rest.next()?;
    let mut out = String::new();
    loop {
        let c = rest.next()?;
        if c == quote && rest.next_if_eq(&quote).is_none() {
            return Some(out);
        }
        if c == '\\' && quote == '\'' {
            rest.next_if_eq(&'\\');
        }
        out.push(c);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_may_be_quoted() {
        let pairs =
            |text| parse_options(text).map(|all| all.into_iter().map(|o| format!("{}:{}", o.name, o.value)).collect::<Vec<_>>());
        assert_eq!(pairs("A=1, \"b c\" = 'it''s' ,d=\"x\"").unwrap(), ["A:1", "b c:it's", "d:x"]);
        assert_eq!(pairs(" ").unwrap(), [""; 0]);
        for wrong in ["a", "a=", "a='b", "a b=1"] {
            assert!(parse_options(wrong).is_err(), "{wrong}");
        }
    }
}
