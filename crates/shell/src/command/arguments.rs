//! A command's arguments: words, in quotes where they have spaces, with variables.

use crate::scan::{identifier, literal};
use crate::variables::Variables;

/// `'...'` allows `''`, `\n`, `\t`, `\\` and similar escapes; `"..."` stays unchanged, with its quotes: it is a name of SQL.
///
/// # Errors
/// A quote is not closed.
pub fn split(text: &str, variables: &Variables) -> Result<Vec<String>, String> {
    let mut arguments = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let mut argument = String::new();
        loop {
            match rest.chars().next() {
                None => break,
                Some(c) if c.is_whitespace() => break,
                Some('\'') => rest = quoted(&rest[1..], &mut argument)?,
                Some('"') => {
                    let end = rest[1..].find('"').ok_or("unterminated quoted string")? + 2;
                    argument.push_str(&rest[..end]);
                    rest = &rest[end..];
                }
                Some(':') => rest = variable(rest, variables, &mut argument),
                Some(c) => {
                    argument.push(c);
                    rest = &rest[c.len_utf8()..];
                }
            }
        }
        arguments.push(argument);
        rest = rest.trim_start();
    }
    Ok(arguments)
}

/// After the opening quote; returns the text after the closing one.
fn quoted<'a>(text: &'a str, into: &mut String) -> Result<&'a str, String> {
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '\'' if text[at + 1..].starts_with('\'') => {
                into.push('\'');
                characters.next();
            }
            '\'' => return Ok(&text[at + 1..]),
            '\\' => match characters.next() {
                Some((_, 'n')) => into.push('\n'),
                Some((_, 't')) => into.push('\t'),
                Some((_, 'r')) => into.push('\r'),
                Some((_, c)) => into.push(c),
                None => break,
            },
            c => into.push(c),
        }
    }
    Err("unterminated quoted string".to_owned())
}

/// `:name`, `:'name'`, `:"name"`; unchanged without such a variable.
fn variable<'a>(text: &'a str, variables: &Variables, into: &mut String) -> &'a str {
    let rest = &text[1..];
    let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"'));
    let (name, length) = match quote {
        Some(quote) => match rest[1..].find(quote) {
            Some(length) => (&rest[1..1 + length], length + 2),
            None => ("", 0),
        },
        None => {
            let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            (&rest[..length], length)
        }
    };
    match (variables.get(name), quote) {
        (Some(value), Some('\'')) => into.push_str(&literal(value)),
        (Some(value), Some(_)) => into.push_str(&identifier(value)),
        (Some(value), None) => into.push_str(value),
        (None, _) => {
            into.push(':');
            return rest;
        }
    }
    &rest[length..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_variables_make_arguments() {
        let variables = Variables::from([("v".to_owned(), "a b".to_owned())]);
        let of = |text: &str| split(text, &variables).expect("it is right");
        assert_eq!(of("  a 'b c' \"d e\".f  g'h'"), ["a", "b c", "\"d e\".f", "gh"]);
        assert_eq!(of("'it''s\\n\\\\' :v :'v' :\"v\" :no ::v x"), ["it's\n\\", "a b", "'a b'", "\"a b\"", ":no", ":a b", "x"]);
        assert_eq!(of(""), Vec::<String>::new());
        assert!(split("'a", &variables).is_err());
    }
}
