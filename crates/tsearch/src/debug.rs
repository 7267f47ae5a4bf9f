//! What parsers and dictionaries do: ts_parse, ts_token_type, ts_lexize, ts_debug.

use melba_catalog::text_search::DEFAULT_PARSER;
use melba_fmgr::{CallInfo, ScalarFn, Session, SetFn};
use melba_types::{Datum, DbError, Oid, Result, err, oids};

use crate::config::{current, dictionary};
use crate::dictionary::{Dictionary, Lexized};
use crate::parser::{Parser, TOKEN_TYPES};
use crate::vector_functions::array;

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[("ts_lexize", |c, a| {
    let dictionary = dictionary(c.session.catalog(), Oid(a[0].as_oid()))?;
    Ok(lexemes(&dictionary.lexize(a[1].as_str())))
})];

type Rows = Box<dyn Iterator<Item = Result<Vec<Datum>>> + Send>;

pub const SETS: &[(&str, SetFn)] = &[
    ("ts_token_type_byid", |_, a| token_types(Oid(a[0].as_oid()))),
    ("ts_token_type_byname", |c, a| token_types(parser_named(c.session, a[0].as_str())?)),
    ("ts_parse_byid", |_, a| tokens(Oid(a[0].as_oid()), a[1].as_str())),
    ("ts_parse_byname", |c, a| tokens(parser_named(c.session, a[0].as_str())?, a[1].as_str())),
    ("ts_debug_6183", |c, a| debug(c, Oid(a[0].as_oid()), a[1].as_str())),
    ("ts_debug_6184", |c, a| debug(c, current(c.session)?, a[0].as_str())),
];

fn rows(rows: Vec<Vec<Datum>>) -> Result<Rows> {
    Ok(Box::new(rows.into_iter().map(Ok)))
}

fn lexemes(lexized: &Lexized<'_>) -> Datum {
    match lexized {
        Lexized::Unknown => Datum::Null,
        Lexized::StopWord => array(oids::TEXT, Vec::new()),
        Lexized::Lexeme(lexeme) => array(oids::TEXT, vec![Datum::text(&**lexeme)]),
    }
}

/// The parser of a name, which may be qualified.
fn parser_named(session: &dyn Session, name: &str) -> Result<Oid> {
    let names = melba_catalog::regs::parse_qualified_name(name)?;
    let (schema, bare) = match &names[..] {
        [bare] => (None, bare),
        [.., schema, bare] => (session.catalog().namespace_by_name(schema).map(|n| n.oid), bare),
        [] => return Err(err!(INVALID_NAME, "invalid name syntax")),
    };
    let path = if names.len() > 1 { schema.into_iter().collect() } else { session.search_path() };
    let missing = || err!(UNDEFINED_OBJECT, "text search parser \"{}\" does not exist", names.join("."));
    session.catalog().find_text_search_parser(&path, bare).ok_or_else(missing)
}

fn check_parser(parser: Oid) -> Result<()> {
    match parser {
        DEFAULT_PARSER => Ok(()),
        _ => Err(DbError::internal(format!("cache lookup failed for text search parser {parser}"))),
    }
}

fn token_types(parser: Oid) -> Result<Rows> {
    check_parser(parser)?;
    let row = |(at, (name, description)): (usize, &(&str, &str))| {
        vec![Datum::Int4(at as i32 + 1), Datum::text(*name), Datum::text(*description)]
    };
    rows(TOKEN_TYPES.iter().enumerate().map(row).collect())
}

fn tokens(parser: Oid, text: &str) -> Result<Rows> {
    check_parser(parser)?;
    let (mut parser, mut out) = (Parser::new(text), Vec::new());
    while let Some(token) = parser.next()? {
        out.push(vec![Datum::Int4(token.ty as i32), Datum::text(token.text)]);
    }
    rows(out)
}

/// The tokens of a text, the dictionaries of their types, and what the first one that knows a token makes of it.
fn debug(call: &CallInfo<'_>, of: Oid, text: &str) -> Result<Rows> {
    let catalog = call.session.catalog();
    let Some(config) = catalog.text_search_config(of) else { return rows(Vec::new()) };
    let (mut parser, mut out) = (Parser::new(text), Vec::new());
    while let Some(token) = parser.next()? {
        let ty = token.ty as i32;
        let of_type = config.dictionaries(ty);
        let dictionaries = of_type.iter().map(|oid| dictionary(catalog, *oid)).collect::<Result<Vec<Dictionary>>>()?;
        let mut lexized = of_type.iter().zip(dictionaries.iter().map(|dictionary| dictionary.lexize(token.text)));
        let first = lexized.clone().next();
        let found = lexized.find(|(_, lexized)| *lexized != Lexized::Unknown).or(first);
        let (alias, description) = TOKEN_TYPES[ty as usize - 1];
        let asked = of_type.iter().map(|oid| Datum::Oid(oid.0)).collect();
        out.push(vec![
            Datum::text(alias),
            Datum::text(description),
            Datum::text(token.text),
            array(oids::REGDICTIONARY, asked),
            found.as_ref().map_or(Datum::Null, |(oid, _)| Datum::Oid(oid.0)),
            found.as_ref().map_or(Datum::Null, |(_, lexized)| lexemes(lexized)),
        ]);
    }
    rows(out)
}
