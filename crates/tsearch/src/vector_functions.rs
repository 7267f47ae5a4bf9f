//! Functions and operators of tsvector.

use std::cmp::Ordering;
use std::sync::Arc;

use melba_fmgr::{ScalarFn, SetFn, comparison_table};
use melba_types::tsvector::{Lexeme, LexemePosition, TsVector, TsVectorBuilder, sort_key};
use melba_types::{Array, ArrayDim, Datum, Oid, Result, bail, err, oids};

use crate::matching::matches;
use crate::query_io::query;
use crate::vector_io::{build, check_word, finish, is_full, vector};
use crate::words::weight_letter;

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("tsvector_length", |_, a| Ok(Datum::Int4(vector(&a[0]).len() as i32))),
    ("tsvector_strip", |_, a| mapped(vector(&a[0]), |lexeme| Some((lexeme, Vec::new())))),
    ("tsvector_setweight", |_, a| {
        let weight = weight(a[1].as_char())?;
        mapped(vector(&a[0]), |lexeme| Some((lexeme, weighted(lexeme, weight))))
    }),
    ("tsvector_setweight_by_filter", |_, a| {
        let (weight, mut wanted) = (weight(a[1].as_char())?, texts(&a[2]));
        wanted.sort_unstable();
        let is_wanted = |lexeme: Lexeme<'_>| {
            wanted.binary_search_by(|text| text.as_deref().map(str::as_bytes).cmp(&Some(lexeme.text))).is_ok()
        };
        mapped(vector(&a[0]), |lexeme| {
            Some((lexeme, if is_wanted(lexeme) { weighted(lexeme, weight) } else { lexeme.positions().collect() }))
        })
    }),
    ("tsvector_concat", |_, a| concat(vector(&a[0]), vector(&a[1]))),
    ("tsvector_delete_str", |_, a| without(&a[0], &[Some(a[1].as_str().into())])),
    ("tsvector_delete_arr", |_, a| without(&a[0], &texts(&a[1]))),
    ("tsvector_filter", |_, a| filter(&a[0], &a[1])),
    ("tsvector_to_array", |_, a| Ok(array(oids::TEXT, vector(&a[0]).iter().map(|lexeme| Datum::text(lexeme.str())).collect()))),
    ("array_to_tsvector", |_, a| from_array(&a[0])),
    ("ts_match_vq", |_, a| is_match(&a[0], &a[1])),
    ("ts_match_qv", |_, a| is_match(&a[1], &a[0])),
];

pub const SETS: &[(&str, SetFn)] = &[("tsvector_unnest", |_, a| {
    let rows: Vec<Vec<Datum>> = vector(&a[0]).iter().map(unnested).collect();
    Ok(Box::new(rows.into_iter().map(Ok)))
})];

comparison_table! {
    COMPARISONS:
    compare =>
        "tsvector_eq", "tsvector_ne", "tsvector_lt", "tsvector_le", "tsvector_gt", "tsvector_ge", "tsvector_cmp";
}

fn compare(a: &Datum, b: &Datum) -> Ordering {
    compare_by(sort_key, a, b)
}

/// Compares two values by their sort keys.
pub fn compare_by(sort_key: fn(&[u8], &mut Vec<u8>), a: &Datum, b: &Datum) -> Ordering {
    let key = |value: &Datum| {
        let mut key = Vec::new();
        sort_key(value.as_bytes(), &mut key);
        key
    };
    if a.as_bytes() == b.as_bytes() { Ordering::Equal } else { key(a).cmp(&key(b)) }
}

fn is_match(document: &Datum, condition: &Datum) -> Result<Datum> {
    query(condition).map_or(Ok(false), |query| matches(query, &vector(document))).map(Datum::Bool)
}

/// A vector with the lexemes and positions that a function returns.
fn mapped<'a>(vector: TsVector<'a>, map: impl Fn(Lexeme<'a>) -> Option<(Lexeme<'a>, Vec<LexemePosition>)>) -> Result<Datum> {
    let mut builder = TsVectorBuilder::default();
    for (lexeme, positions) in vector.iter().filter_map(map) {
        builder.push(lexeme.text, positions);
    }
    finish(builder)
}

fn weighted(lexeme: Lexeme<'_>, weight: u8) -> Vec<LexemePosition> {
    lexeme.positions().map(|position| position.with_weight(weight)).collect()
}

/// A weight by its letter.
fn weight(letter: u8) -> Result<u8> {
    crate::words::weight_of(char::from(letter)).ok_or_else(|| match letter {
        b' '..0x7f => err!(INVALID_PARAMETER_VALUE, "unrecognized weight: \"{}\"", char::from(letter)),
        _ => err!(INVALID_PARAMETER_VALUE, "unrecognized weight: \"\\{letter:03o}\""),
    })
}

/// The elements of a text[] argument, `None` for nulls.
fn texts(array: &Datum) -> Vec<Option<Arc<str>>> {
    let element = |d: &Datum| match d {
        Datum::Text(text) => Some(text.clone()),
        _ => None,
    };
    array.as_array().elements.iter().map(element).collect()
}

/// An array of one dimension.
pub fn array(element_type: Oid, elements: Vec<Datum>) -> Datum {
    let dims = match elements.len() {
        0 => Vec::new(),
        length => vec![ArrayDim { length: length as i32, lower_bound: 1 }],
    };
    Datum::Array(Arc::new(Array { element_type, dims, elements }))
}

fn without(document: &Datum, unwanted: &[Option<Arc<str>>]) -> Result<Datum> {
    let mut unwanted: Vec<&[u8]> = unwanted.iter().flatten().map(|text| text.as_bytes()).collect();
    unwanted.sort_unstable();
    mapped(vector(document), |lexeme| {
        let is_kept = unwanted.binary_search(&lexeme.text).is_err();
        is_kept.then(|| (lexeme, lexeme.positions().collect()))
    })
}

/// Only the positions with some weights, and lexemes that have such.
fn filter(document: &Datum, weights: &Datum) -> Result<Datum> {
    let mut wanted = 0;
    for letter in &weights.as_array().elements {
        let Datum::Char(letter) = letter else { bail!(NULL_VALUE_NOT_ALLOWED, "weight array may not contain nulls") };
        wanted |= 1 << weight(*letter)?;
    }
    mapped(vector(document), |lexeme| {
        let kept: Vec<LexemePosition> = lexeme.positions().filter(|position| wanted & 1 << position.weight() != 0).collect();
        (!kept.is_empty()).then_some((lexeme, kept))
    })
}

fn from_array(elements: &Datum) -> Result<Datum> {
    let elements = texts(elements);
    let mut lexemes = Vec::with_capacity(elements.len());
    for element in &elements {
        let Some(text) = element else { bail!(NULL_VALUE_NOT_ALLOWED, "lexeme array may not contain nulls") };
        if text.is_empty() {
            bail!(ZERO_LENGTH_CHARACTER_STRING, "lexeme array may not contain empty strings");
        }
        check_word(text.len())?;
        lexemes.push((text.to_string(), Vec::new()));
    }
    build(lexemes)
}

/// Both vectors; places of the second one count from the last of the first one.
fn concat(first: TsVector<'_>, second: TsVector<'_>) -> Result<Datum> {
    let last = first.iter().filter_map(|lexeme| lexeme.positions().next_back()).map(LexemePosition::place).max();
    let last = u32::from(last.unwrap_or(0));
    let append = |lexeme: Lexeme<'_>, positions: &mut Vec<LexemePosition>| {
        for position in lexeme.positions() {
            if is_full(positions) {
                break;
            }
            positions.push(LexemePosition::new(u32::from(position.place()) + last, position.weight()));
        }
    };
    let mut builder = TsVectorBuilder::default();
    let (mut i, mut j) = (0, 0);
    while i < first.len() || j < second.len() {
        let order = match (i < first.len(), j < second.len()) {
            (true, true) => first.get(i).text.cmp(second.get(j).text),
            (true, false) => Ordering::Less,
            _ => Ordering::Greater,
        };
        let mut positions = Vec::new();
        let text = if order.is_le() { first.get(i).text } else { second.get(j).text };
        if order.is_le() {
            positions.extend(first.get(i).positions());
            i += 1;
        }
        if order.is_ge() {
            append(second.get(j), &mut positions);
            j += 1;
        }
        builder.push(text, positions);
    }
    finish(builder)
}

fn unnested(lexeme: Lexeme<'_>) -> Vec<Datum> {
    let text = Datum::text(lexeme.str());
    if !lexeme.has_positions() {
        return vec![text, Datum::Null, Datum::Null];
    }
    let places = lexeme.positions().map(|position| Datum::Int2(position.place() as i16)).collect();
    let weights = lexeme.positions().map(|position| Datum::text(weight_letter(position.weight()).to_string())).collect();
    vec![text, array(oids::INT2, places), array(oids::TEXT, weights)]
}
