//! Type names in text, as regtype and to_regtype take them: `integer`, `character varying(10)[]`, `public."T"`.

use melba_types::limits::Ticker;
use melba_types::{Oid, Result, bail, err, oids};

use super::NameScope;
use super::names::{is_space, truncate};
use crate::snapshot::Catalog;

#[derive(Clone, Debug, PartialEq)]
enum Token {
    /// A name, and whether it was quoted.
    Name(String, bool),
    Number(String),
    Symbol(char),
}

fn tokens(text: &str) -> Result<Vec<Token>> {
    let mut out = Vec::new();
    let mut ticker = Ticker::new();
    let mut rest = text.trim_start_matches(is_space);
    while let Some(c) = rest.chars().next() {
        ticker.step()?;
        if c == '"' {
            let mut name = String::new();
            let mut after = &rest[1..];
            loop {
                ticker.step()?;
                let Some((part, tail)) = after.split_once('"') else {
                    bail!(SYNTAX_ERROR, "unterminated quoted identifier at or near \"{}\"", rest);
                };
                name.push_str(part);
                after = tail;
                let Some(tail) = after.strip_prefix('"') else { break };
                name.push('"');
                after = tail;
            }
            out.push(Token::Name(truncate(name), true));
            rest = after;
        } else if c.is_ascii_digit() || c == '-' {
            let end = rest[1..].find(|c: char| !c.is_ascii_digit()).map_or(rest.len(), |e| e + 1);
            out.push(Token::Number(rest[..end].to_owned()));
            rest = &rest[end..];
        } else if c.is_alphabetic() || c == '_' {
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).unwrap_or(rest.len());
            out.push(Token::Name(truncate(rest[..end].to_ascii_lowercase()), false));
            rest = &rest[end..];
        } else {
            out.push(Token::Symbol(c));
            rest = &rest[c.len_utf8()..];
        }
        rest = rest.trim_start_matches(is_space);
    }
    Ok(out)
}

struct Parser<'a> {
    text: &'a str,
    tokens: &'a [Token],
}

impl Parser<'_> {
    fn word(&mut self, word: &str) -> bool {
        let found = matches!(self.tokens.first(), Some(Token::Name(name, false)) if name == word);
        if found {
            self.tokens = &self.tokens[1..];
        }
        found
    }

    fn symbol(&mut self, symbol: char) -> bool {
        let found = self.tokens.first() == Some(&Token::Symbol(symbol));
        if found {
            self.tokens = &self.tokens[1..];
        }
        found
    }

    fn name(&mut self) -> Result<(String, bool)> {
        match self.tokens.split_first() {
            Some((Token::Name(name, quoted), rest)) => {
                self.tokens = rest;
                Ok((name.clone(), *quoted))
            }
            _ => Err(self.error()),
        }
    }

    fn error(&self) -> melba_types::DbError {
        let near = match self.tokens.first() {
            Some(Token::Name(name, _)) => name.clone(),
            Some(Token::Number(number)) => number.clone(),
            Some(Token::Symbol(symbol)) => symbol.to_string(),
            None => return err!(SYNTAX_ERROR, "syntax error at end of input"),
        };
        err!(SYNTAX_ERROR, "syntax error at or near \"{near}\"").context(format!("invalid type name \"{}\"", self.text))
    }

    /// `(10, 2)`, whose numbers do not matter to a type's OID.
    fn modifiers(&mut self) -> Result<()> {
        if self.symbol('(') {
            loop {
                match self.tokens.split_first() {
                    Some((Token::Number(_) | Token::Name(..), rest)) => self.tokens = rest,
                    _ => return Err(self.error()),
                }
                if self.symbol(')') {
                    break;
                }
                if !self.symbol(',') {
                    return Err(self.error());
                }
            }
        }
        Ok(())
    }

    /// `WITH TIME ZONE` or `WITHOUT TIME ZONE` or nothing.
    fn with_time_zone(&mut self) -> Result<bool> {
        let with = self.word("with");
        if (with || self.word("without")) && !(self.word("time") && self.word("zone")) {
            return Err(self.error());
        }
        Ok(with)
    }

    /// A type that SQL's grammar names, rather than pg_type.
    fn standard(&mut self, word: &str) -> Result<Option<Oid>> {
        let ty = match word {
            "int" | "integer" => oids::INT4,
            "smallint" => oids::INT2,
            "bigint" => oids::INT8,
            "real" => oids::FLOAT4,
            "boolean" => oids::BOOL,
            "dec" | "decimal" | "numeric" => oids::NUMERIC,
            "double" if self.word("precision") => oids::FLOAT8,
            "float" => {
                let short =
                    matches!(self.tokens, [Token::Symbol('('), Token::Number(n), ..] if n.parse::<u32>().is_ok_and(|n| n <= 24));
                if short { oids::FLOAT4 } else { oids::FLOAT8 }
            }
            "bit" => {
                if self.word("varying") {
                    oids::VARBIT
                } else {
                    oids::BIT
                }
            }
            "varchar" => oids::VARCHAR,
            "national" if !(self.word("character") || self.word("char")) => return Err(self.error()),
            "national" | "character" | "char" | "nchar" => {
                if self.word("varying") {
                    oids::VARCHAR
                } else {
                    oids::BPCHAR
                }
            }
            "time" | "timestamp" => {
                self.modifiers()?;
                match (word, self.with_time_zone()?) {
                    ("time", false) => oids::TIME,
                    ("time", true) => oids::TIMETZ,
                    (_, false) => oids::TIMESTAMP,
                    (_, true) => oids::TIMESTAMPTZ,
                }
            }
            "interval" => {
                let field = |p: &mut Self| ["year", "month", "day", "hour", "minute", "second"].iter().any(|f| p.word(f));
                if field(self) && self.word("to") && !field(self) {
                    return Err(self.error());
                }
                oids::INTERVAL
            }
            _ => return Ok(None),
        };
        Ok(Some(ty))
    }
}

/// The type that a text names.
///
/// # Errors
/// 42601 when it is no type name, 42704 when there is no such type.
pub fn parse_type(catalog: &Catalog, text: &str, within: &NameScope<'_>) -> Result<Oid> {
    let tokens = tokens(text)?;
    let mut parser = Parser { text, tokens: &tokens };
    if parser.tokens.is_empty() || parser.word("setof") {
        bail!(SYNTAX_ERROR, "invalid type name \"{}\"", text);
    }
    let (first, quoted) = parser.name()?;
    let qualified = parser.tokens.first() == Some(&Token::Symbol('.'));
    let standard = if quoted || qualified { None } else { parser.standard(&first)? };
    let mut names = vec![first];
    if standard.is_none() {
        while parser.symbol('.') {
            names.push(parser.name()?.0);
        }
    }
    parser.modifiers()?;
    let mut is_array = parser.word("array");
    while parser.symbol('[') {
        is_array = true;
        if let Some(Token::Number(_)) = parser.tokens.first() {
            parser.tokens = &parser.tokens[1..];
        }
        if !parser.symbol(']') {
            return Err(parser.error());
        }
    }
    if !parser.tokens.is_empty() {
        return Err(parser.error());
    }
    let ty = match standard {
        Some(ty) => ty,
        None => type_named(catalog, &names, within, is_array)?,
    };
    if !is_array {
        return Ok(ty);
    }
    // An array's array is the array itself; a domain over an array has its own.
    let array = catalog.array_of(ty).or_else(|| catalog.array_element(ty).map(|_| ty));
    array.ok_or_else(|| err!(UNDEFINED_OBJECT, "type \"{}[]\" does not exist", names.join(".")))
}

fn type_named(catalog: &Catalog, names: &[String], within: &NameScope<'_>, is_array: bool) -> Result<Oid> {
    let found = match names {
        [name] => within.path.iter().find_map(|n| catalog.type_by_name(*n, name)),
        [.., schema, name] => match within.schema(catalog, schema)? {
            Some(namespace) => catalog.type_by_name(namespace, name),
            None => bail!(UNDEFINED_SCHEMA, "schema \"{schema}\" does not exist"),
        },
        [] => None,
    };
    let name = names.join(".") + if is_array { "[]" } else { "" };
    match found {
        Some(ty) if !ty.defined && !is_array => Err(err!(UNDEFINED_OBJECT, "type \"{name}\" is only a shell")),
        Some(ty) if ty.defined => Ok(ty.oid),
        _ => Err(err!(UNDEFINED_OBJECT, "type \"{name}\" does not exist")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classes::PG_CATALOG;

    #[test]
    fn types_are_read_as_sql_writes_them() {
        let c = Catalog::default();
        let within = NameScope { path: &[PG_CATALOG], user: crate::classes::POSTGRES_ROLE, temporary: Oid::INVALID };
        let ty = |text| parse_type(&c, text, &within);
        for (text, oid) in [
            ("int", oids::INT4),
            ("Double Precision", oids::FLOAT8),
            ("character varying(10)[]", oids::VARCHAR_ARRAY),
            ("timestamp (3) with time zone", oids::TIMESTAMPTZ),
            ("char", oids::BPCHAR),
            ("\"char\"", oids::CHAR),
            ("numeric(10,2)[3][]", oids::NUMERIC_ARRAY),
            ("pg_catalog._int4", oids::INT4_ARRAY),
            ("interval day to second(3)", oids::INTERVAL),
            ("float(10)", oids::FLOAT4),
            ("text array", oids::TEXT_ARRAY),
        ] {
            assert_eq!(ty(text).expect(text), oid, "{text}");
        }
        for (text, state) in [("", "42601"), ("int int", "42601"), ("nope", "42704"), ("a.b", "3F000"), ("int[", "42601")] {
            assert_eq!(ty(text).expect_err(text).sqlstate().to_string(), state, "{text}");
        }
    }
}
