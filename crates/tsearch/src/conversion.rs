//! to_tsvector, to_tsquery and their kin.

use melba_catalog::Catalog;
use melba_fmgr::{CallInfo, ScalarFn, Session};
use melba_types::tsquery::{Binary, TsQuery};
use melba_types::tsvector::TsVector;
use melba_types::{Datum, Oid, Result};

use crate::config::{Config, current};
use crate::document::Document;
use crate::matching::matches;
use crate::query_parser::{QueryParser, Syntax, parse};

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("get_current_ts_config", |c, _| current(c.session).map(|oid| Datum::Oid(oid.0))),
    ("to_tsvector", |c, a| to_tsvector(c.session, current(c.session)?, a[0].as_str())),
    ("to_tsvector_byid", |c, a| to_tsvector(c.session, Oid(a[0].as_oid()), a[1].as_str())),
    ("to_tsquery", |c, a| of_current(c, a, STANDARD)),
    ("to_tsquery_byid", |c, a| of_config(c, a, STANDARD)),
    ("plainto_tsquery", |c, a| of_current(c, a, PLAIN)),
    ("plainto_tsquery_byid", |c, a| of_config(c, a, PLAIN)),
    ("phraseto_tsquery", |c, a| of_current(c, a, PHRASE)),
    ("phraseto_tsquery_byid", |c, a| of_config(c, a, PHRASE)),
    ("websearch_to_tsquery", |c, a| of_current(c, a, WEB)),
    ("websearch_to_tsquery_byid", |c, a| of_config(c, a, WEB)),
    ("ts_match_tt", |c, a| {
        let query = of_current(c, &a[1..], PLAIN)?;
        is_match(c.session, a[0].as_str(), &query)
    }),
    ("ts_match_tq", |c, a| is_match(c.session, a[0].as_str(), &a[1])),
];

/// How a query's text is read, and what is between the lexemes of one word.
type Reading = (Syntax, Binary);

const STANDARD: Reading = (Syntax::Standard, Binary::Phrase(1));
const PLAIN: Reading = (Syntax::Plain, Binary::And);
const PHRASE: Reading = (Syntax::Plain, Binary::Phrase(1));
const WEB: Reading = (Syntax::Web, Binary::Phrase(1));

fn of_current(call: &CallInfo<'_>, args: &[Datum], reading: Reading) -> Result<Datum> {
    to_tsquery(call.session, current(call.session)?, args[0].as_str(), reading)
}

fn of_config(call: &CallInfo<'_>, args: &[Datum], reading: Reading) -> Result<Datum> {
    to_tsquery(call.session, Oid(args[0].as_oid()), args[1].as_str(), reading)
}

/// The configuration of an OID for a session.
pub fn config(session: &dyn Session, oid: Oid) -> Result<std::sync::Arc<Config>> {
    let catalog: &Catalog = session.catalog();
    Config::of_oid(catalog, oid)
}

/// The tsvector of a text.
///
/// # Errors
/// 54000 when it is too long; those of the configuration.
pub fn to_tsvector(session: &dyn Session, of: Oid, text: &str) -> Result<Datum> {
    let mut document = Document::default();
    document.add(session, &*config(session, of)?, text)?;
    document.into_vector()
}

fn to_tsquery(session: &dyn Session, of: Oid, text: &str, (syntax, between): Reading) -> Result<Datum> {
    let config = config(session, of)?;
    parse(Some(session), text, syntax, &mut |parser, word, weights, prefix| {
        push_word(parser, session, &config, (word, weights, prefix), between)
    })
}

/// Appends the lexemes of a word with operators between them. Stop words among them keep their places.
fn push_word(
    parser: &mut QueryParser<'_>,
    session: &dyn Session,
    config: &Config,
    (word, weights, prefix): (&str, u8, bool),
    between: Binary,
) -> Result<()> {
    let mut document = Document::default();
    document.add(session, config, word)?;
    if document.len() == 0 {
        parser.query().stop();
        return Ok(());
    }
    let (mut last, mut count) = (0, 0);
    for (lexeme, place) in document.words() {
        while last > 0 && last + 1 < place {
            parser.query().stop();
            if count > 0 {
                parser.query().binary(between);
            }
            (last, count) = (last + 1, count + 1);
        }
        last = place;
        parser.operand(lexeme, weights, prefix)?;
        if count > 0 {
            parser.query().binary(between);
        }
        count += 1;
    }
    Ok(())
}

fn is_match(session: &dyn Session, text: &str, query: &Datum) -> Result<Datum> {
    let Some(query) = TsQuery::new(query.as_bytes()) else { return Ok(Datum::Bool(false)) };
    let document = to_tsvector(session, current(session)?, text)?;
    matches(query, &TsVector::new(document.as_bytes())).map(Datum::Bool)
}
