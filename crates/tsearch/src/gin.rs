//! GIN's tsvector_ops, and GiST's, whose indexes are kept in the same form.
//!
//! The keys of a vector are its lexemes. Weights and places are checked for the rows found.

use melba_fmgr::Session;
use melba_fmgr::gin::{GinKey, GinQuery, GinSupport};
use melba_types::key::KeyColumn;
use melba_types::tsquery::{Binary, TsNode, TsQuery};
use melba_types::{Datum, Result, limits};

use crate::query_io::query;
use crate::vector_io::vector;

const SUPPORT: GinSupport = GinSupport {
    extract_value: |_, value| Ok(vector(value).iter().map(|lexeme| GinKey::Key(key(lexeme.text))).collect()),
    extract_query: demanded,
};

pub const CLASSES: &[(&str, GinSupport)] = &[("gin_extract_tsvector", SUPPORT), ("gtsvector_compress", SUPPORT)];

/// A key that is not the beginning of another: a lexeme has no NUL.
fn key(lexeme: &[u8]) -> Vec<u8> {
    [lexeme, &[0]].concat()
}

/// All operators are `@@` by another name. The empty query is satisfied by no row.
fn demanded(_: &KeyColumn, _: i16, value: &Datum, _: &dyn Session) -> Result<GinQuery> {
    query(value).map_or(Ok(GinQuery::Or(Vec::new())), keys_of)
}

/// What a row must have: of NOT nothing is known.
fn keys_of(query: TsQuery<'_>) -> Result<GinQuery> {
    limits::check_stack()?;
    limits::tick()?;
    Ok(match query.node() {
        TsNode::Operand(operand) if operand.prefix => GinQuery::Prefix(operand.text.to_vec()),
        TsNode::Operand(operand) => GinQuery::Key(GinKey::Key(key(operand.text))),
        TsNode::Not(_) => GinQuery::ALL,
        TsNode::Binary(operator, left, right) => match (operator, keys_of(left)?, keys_of(right)?) {
            (Binary::Or, left, right) if left != GinQuery::ALL && right != GinQuery::ALL => match (left, right) {
                (GinQuery::Or(parts), part) | (part, GinQuery::Or(parts)) => GinQuery::Or(with(parts, part)),
                (left, right) => GinQuery::Or(vec![left, right]),
            },
            (Binary::Or, ..) => GinQuery::ALL,
            (_, left, right) if right == GinQuery::ALL => left,
            (_, left, right) if left == GinQuery::ALL => right,
            (_, GinQuery::And(parts), part) | (_, part, GinQuery::And(parts)) => GinQuery::And(with(parts, part)),
            (_, left, right) => GinQuery::And(vec![left, right]),
        },
    })
}

/// A list with one part more: a chain of operators becomes a list, which does not nest.
fn with(mut parts: Vec<GinQuery>, part: GinQuery) -> Vec<GinQuery> {
    parts.push(part);
    parts
}
