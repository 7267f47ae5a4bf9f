//! query_int: integers with `!`, `&` and `|`. A value is held as its text form, which is read where it is used.

use std::fmt::Write;

use melba_fmgr::{TypeContext, TypeIo};
use melba_types::limits::{check_nesting, check_stack, tick};
use melba_types::{Datum, DbError, Oid, Result, bail, err, oids};

pub const TYPES: &[(Oid, TypeIo)] = &[(oids::QUERY_INT, TypeIo { input, output, receive, send })];

/// An expression over integers: whether an array has them.
#[derive(Debug)]
pub enum IntQuery {
    Element(i32),
    Not(Box<IntQuery>),
    /// Two or more.
    And(Vec<IntQuery>),
    /// Two or more.
    Or(Vec<IntQuery>),
}

fn input(_: &TypeContext<'_>, text: &str) -> Result<Datum> {
    let mut shown = String::new();
    show(&read(text)?, true, &mut shown)?;
    // The form shown nests more than the text does.
    read(&shown)?;
    Ok(Datum::text(shown))
}

fn output(_: &TypeContext<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(value.as_str().as_bytes());
    Ok(())
}

fn receive(_: &TypeContext<'_>, _: &[u8]) -> Result<Datum> {
    bail!(UNDEFINED_FUNCTION, "no binary input function available for type query_int")
}

fn send(_: &TypeContext<'_>, _: &Datum, _: &mut Vec<u8>) -> Result<()> {
    bail!(UNDEFINED_FUNCTION, "no binary output function available for type query_int")
}

/// # Errors
/// 42601 for a text that is no query.
pub fn read(text: &str) -> Result<IntQuery> {
    let mut reader = Reader { text: text.as_bytes(), at: 0 };
    let query = reader.branches()?;
    if reader.peek().is_some() { Err(syntax_error()) } else { Ok(query) }
}

fn syntax_error() -> DbError {
    err!(SYNTAX_ERROR, "syntax error")
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    /// The next byte that is no space.
    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at) == Some(&b' ') {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn branches(&mut self) -> Result<IntQuery> {
        self.list(b'|', Reader::factors, IntQuery::Or)
    }

    fn factors(&mut self) -> Result<IntQuery> {
        self.list(b'&', Reader::factor, IntQuery::And)
    }

    /// One part, or several with an operator between them. They are no chain, which would nest as deep as the text is long.
    fn list(
        &mut self,
        operator: u8,
        part: fn(&mut Self) -> Result<IntQuery>,
        join: fn(Vec<IntQuery>) -> IntQuery,
    ) -> Result<IntQuery> {
        let first = part(self)?;
        if !self.take(operator) {
            return Ok(first);
        }
        let mut parts = vec![first, part(self)?];
        while self.take(operator) {
            parts.push(part(self)?);
        }
        Ok(join(parts))
    }

    fn factor(&mut self) -> Result<IntQuery> {
        check_nesting()?;
        tick()?;
        if self.take(b'!') {
            return Ok(IntQuery::Not(Box::new(self.factor()?)));
        }
        if self.take(b'(') {
            let query = self.branches()?;
            return if self.take(b')') { Ok(query) } else { Err(syntax_error()) };
        }
        self.element()
    }

    /// A number; one with a zero before it is octal, as C reads it.
    fn element(&mut self) -> Result<IntQuery> {
        /// Characters at most.
        const LENGTH_MAX: usize = 15;
        let is_negative = self.take(b'-');
        if !is_negative && !self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            return Err(syntax_error());
        }
        let start = self.at;
        self.at += self.text[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let digits = &self.text[start..self.at];
        if digits.len() + usize::from(is_negative) > LENGTH_MAX {
            return Err(syntax_error());
        }
        let radix = if digits.first() == Some(&b'0') { 8 } else { 10 };
        // What is no digit ends the number.
        let digits = digits.iter().map_while(|byte| char::from(*byte).to_digit(radix));
        let value = digits.fold(0i64, |value, digit| value * i64::from(radix) + i64::from(digit));
        let value = if is_negative { -value } else { value };
        i32::try_from(value).map(IntQuery::Element).map_err(|_| syntax_error())
    }
}

fn show(query: &IntQuery, is_top: bool, out: &mut String) -> Result<()> {
    check_stack()?;
    match query {
        IntQuery::Element(element) => {
            // Writing to a String does not fail.
            let _ = write!(out, "{element}");
        }
        IntQuery::Not(inner) => {
            let is_element = matches!(**inner, IntQuery::Element(_));
            out.push_str(if is_element { "!" } else { "!( " });
            show(inner, !is_element, out)?;
            out.push_str(if is_element { "" } else { " )" });
        }
        IntQuery::And(parts) => {
            for (at, part) in parts.iter().enumerate() {
                out.push_str(if at > 0 { " & " } else { "" });
                show(part, false, out)?;
            }
        }
        IntQuery::Or(parts) => {
            // As PostgreSQL's operators, which have two operands each.
            let pairs = parts.len() - usize::from(is_top);
            (1..pairs).for_each(|_| out.push_str("( "));
            for (at, part) in parts.iter().enumerate() {
                out.push_str(if at > 0 { " | " } else { "" });
                show(part, false, out)?;
                out.push_str(if (1..pairs).contains(&at) { " )" } else { "" });
            }
        }
    }
    Ok(())
}

/// Whether a set, in order, satisfies a query.
pub fn is_satisfied(query: &Datum, set: &[i32]) -> Result<bool> {
    Ok(holds(&read(query.as_str())?, set))
}

fn holds(query: &IntQuery, set: &[i32]) -> bool {
    match query {
        IntQuery::Element(element) => set.binary_search(element).is_ok(),
        IntQuery::Not(inner) => !holds(inner, set),
        IntQuery::And(parts) => parts.iter().all(|part| holds(part, set)),
        IntQuery::Or(parts) => parts.iter().any(|part| holds(part, set)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_shown_with_the_parentheses_that_they_need() {
        let cases = [
            (" 1 ", "1"),
            ("!1|!2", "!1 | !2"),
            ("!(!1|2)", "!( !1 | 2 )"),
            ("1|2&3", "1 | 2 & 3"),
            ("(1|2)&3", "( 1 | 2 ) & 3"),
            ("1|2|3", "( 1 | 2 ) | 3"),
            ("1|2|3|4", "( ( 1 | 2 ) | 3 ) | 4"),
            ("!(1|2|3)&4", "!( ( 1 | 2 ) | 3 ) & 4"),
            ("(1|2|3)&4", "( ( 1 | 2 ) | 3 ) & 4"),
            ("1|(2|3)", "1 | ( 2 | 3 )"),
            ("1&(2&(4&(5|!6)))", "1 & 2 & 4 & ( 5 | !6 )"),
            ("!!-1", "!( !-1 )"),
            ("010", "8"),
            ("-", "0"),
        ];
        for (text, expected) in cases {
            let mut shown = String::new();
            show(&read(text).unwrap(), true, &mut shown).unwrap();
            assert_eq!(shown, expected, "{text}");
        }
        for text in ["", "1 2", "1#2", "(1", "1)", "1&", "foo", "4294967296", "--1"] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_long_query_does_not_nest() {
        for operator in ["&", "|"] {
            let text = ["1"; 200_000].join(operator);
            assert!(is_satisfied(&Datum::text(&*text), &[1]).unwrap());
        }
        assert!(read(&"!".repeat(1_000_000)).is_err());
    }
}
