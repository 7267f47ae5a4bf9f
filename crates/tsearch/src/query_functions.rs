//! Functions and operators of tsquery.

use std::cmp::Ordering;
use std::collections::HashSet;

use melba_fmgr::{ScalarFn, comparison_table, io};
use melba_types::tsquery::{Binary, TsNode, TsQuery, sort_key};
use melba_types::{Datum, Result, limits};

use crate::query_io::{put, query};
use crate::query_parser::checked_distance;
use crate::vector_functions::compare_by;

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("tsquery_numnode", |_, a| Ok(Datum::Int4(query(&a[0]).map_or(0, |query| query.items().count() as i32)))),
    ("tsquery_and", |_, a| join(a, Binary::And)),
    ("tsquery_or", |_, a| join(a, Binary::Or)),
    ("tsquery_phrase", |_, a| join(a, Binary::Phrase(1))),
    ("tsquery_phrase_distance", |_, a| join(a, Binary::Phrase(checked_distance(a[2].as_i32())?))),
    ("tsquery_not", |_, a| Ok(query(&a[0]).map_or_else(|| a[0].clone(), |query| Datum::bytes(query.negated())))),
    ("tsq_mcontains", |_, a| Ok(Datum::Bool(contains(&a[0], &a[1])))),
    ("tsq_mcontained", |_, a| Ok(Datum::Bool(contains(&a[1], &a[0])))),
    ("tsquerytree", |_, a| {
        let Some(query) = query(&a[0]) else { return Ok(Datum::text("")) };
        let Some(demanded) = demanded(query)? else { return Ok(Datum::text("T")) };
        let (mut out, bytes) = (Vec::new(), demanded);
        TsQuery::new(&bytes).map_or(Ok(()), |query| put(query, &mut out))?;
        io::into_string(out).map(Datum::text)
    }),
];

comparison_table! {
    COMPARISONS:
    compare => "tsquery_eq", "tsquery_ne", "tsquery_lt", "tsquery_le", "tsquery_gt", "tsquery_ge", "tsquery_cmp";
}

fn compare(a: &Datum, b: &Datum) -> Ordering {
    compare_by(sort_key, a, b)
}

/// Two queries with an operator between; of an empty one and another, the other.
fn join(args: &[Datum], operator: Binary) -> Result<Datum> {
    match (query(&args[0]), query(&args[1])) {
        (Some(left), Some(right)) => left.join(operator, right).map(Datum::bytes),
        (None, _) => Ok(args[1].clone()),
        _ => Ok(args[0].clone()),
    }
}

/// Whether one query has all lexemes of another.
fn contains(outer: &Datum, inner: &Datum) -> bool {
    let lexemes = |value| query(value).into_iter().flat_map(TsQuery::operands).map(|operand| operand.text);
    let outer: HashSet<&[u8]> = lexemes(outer).collect();
    lexemes(inner).all(|text| outer.contains(text))
}

/// The part of a query without NOT, which an index can search for; `None` when nothing is left.
fn demanded(query: TsQuery<'_>) -> Result<Option<Vec<u8>>> {
    limits::check_stack()?;
    Ok(match query.node() {
        TsNode::Operand(_) => Some(query.bytes().to_vec()),
        TsNode::Not(_) => None,
        TsNode::Binary(operator, left, right) => match (demanded(left)?, demanded(right)?) {
            (Some(left), Some(right)) => match (TsQuery::new(&left), TsQuery::new(&right)) {
                (Some(left), Some(right)) => Some(left.join(operator, right)?),
                _ => None,
            },
            (left, right) => left.or(right).filter(|_| operator != Binary::Or),
        },
    })
}
