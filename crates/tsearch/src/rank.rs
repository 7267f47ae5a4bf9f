//! ts_rank, and what ts_rank_cd (`cover`) shares with it.
//!
//! The formulas and their widths of floats are PostgreSQL's (tsrank.c).

use melba_fmgr::ScalarFn;
use melba_types::tsquery::{Binary, TsNode, TsOperand, TsQuery};
use melba_types::tsvector::{Lexeme, LexemePosition, PLACE_MAX, TsVector};
use melba_types::{Datum, Result, bail, limits};

use crate::matching::lexemes;
use crate::query_io::query;
use crate::vector_io::vector;

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("ts_rank_wttf", |_, a| rank(&weights(&a[0])?, &a[1], &a[2], a[3].as_i32())),
    ("ts_rank_wtt", |_, a| rank(&weights(&a[0])?, &a[1], &a[2], 0)),
    ("ts_rank_ttf", |_, a| rank(&WEIGHTS, &a[0], &a[1], a[2].as_i32())),
    ("ts_rank_tt", |_, a| rank(&WEIGHTS, &a[0], &a[1], 0)),
];

/// Of D, C, B and A.
pub type Weights = [f32; 4];

pub const WEIGHTS: Weights = [0.1, 0.2, 0.4, 1.0];

/// Bits of the argument normalization.
pub mod normalization {
    pub const LOG_LENGTH: i32 = 1;
    pub const LENGTH: i32 = 2;
    pub const EXTENT_DISTANCE: i32 = 4;
    pub const LEXEMES: i32 = 8;
    pub const LOG_LEXEMES: i32 = 16;
    pub const BELOW_ONE: i32 = 32;
}

/// The weights of an array argument.
pub fn weights(array: &Datum) -> Result<Weights> {
    let array = array.as_array();
    if array.dims.len() != 1 {
        bail!(ARRAY_SUBSCRIPT_ERROR, "array of weight must be one-dimensional");
    }
    if array.elements.len() < WEIGHTS.len() {
        bail!(ARRAY_SUBSCRIPT_ERROR, "array of weight is too short");
    }
    if array.elements.iter().any(Datum::is_null) {
        bail!(NULL_VALUE_NOT_ALLOWED, "array of weight must not contain nulls");
    }
    let mut out = WEIGHTS;
    for (weight, element) in out.iter_mut().zip(&array.elements) {
        let given = element.as_f32();
        if given >= 0.0 {
            *weight = given;
        }
        if *weight > 1.0 {
            bail!(INVALID_PARAMETER_VALUE, "weight out of range");
        }
    }
    Ok(out)
}

/// Places of all lexemes; one without places counts once.
pub fn length(document: TsVector<'_>) -> usize {
    document.iter().map(|lexeme| lexeme.positions().len().max(1)).sum()
}

fn rank(weights: &Weights, document: &Datum, condition: &Datum, method: i32) -> Result<Datum> {
    let document = vector(document);
    let Some(query) = query(condition).filter(|_| !document.is_empty()) else { return Ok(Datum::Float4(0.0)) };
    let is_and = matches!(query.node(), TsNode::Binary(Binary::And | Binary::Phrase(_), ..));
    let operands = distinct_operands(query);
    let rank = if is_and && operands.len() > 1 {
        rank_and(weights, document, &operands)?
    } else {
        rank_or(weights, document, &operands)?
    };
    Ok(Datum::Float4(normalized(if rank < 0.0 { 1e-20 } else { rank }, document, method)))
}

fn normalized(mut rank: f32, document: TsVector<'_>, method: i32) -> f32 {
    let lexemes = document.len();
    if method & normalization::LOG_LENGTH != 0 {
        rank = (f64::from(rank) / (((length(document) + 1) as f64).ln() / 2f64.ln())) as f32;
    }
    if method & normalization::LENGTH != 0 {
        rank /= length(document) as f32;
    }
    if method & normalization::LEXEMES != 0 {
        rank /= lexemes as f32;
    }
    if method & normalization::LOG_LEXEMES != 0 {
        rank = (f64::from(rank) / (((lexemes + 1) as f64).ln() / 2f64.ln())) as f32;
    }
    if method & normalization::BELOW_ONE != 0 {
        rank /= rank + 1.0;
    }
    rank
}

/// The operands in the order of their texts, each text once.
fn distinct_operands(query: TsQuery<'_>) -> Vec<TsOperand<'_>> {
    let mut operands: Vec<TsOperand<'_>> = query.operands().collect();
    operands.sort_by(|a, b| a.text.cmp(b.text));
    operands.dedup_by(|a, b| a.text == b.text);
    operands
}

/// How much two words with this distance count.
fn closeness(distance: i32) -> f32 {
    if distance > 100 {
        return 1e-30;
    }
    (1.0 / (1.005 + 0.05 * (f64::from(distance as f32) / 1.5 - 2.0).exp())) as f32
}

/// The places of a lexeme; one without places is behind all others.
fn places(lexeme: Lexeme<'_>) -> (Vec<LexemePosition>, bool) {
    match lexeme.has_positions() {
        true => (lexeme.positions().collect(), true),
        false => (vec![LexemePosition::new(u32::from(PLACE_MAX), 0)], false),
    }
}

/// Words that are near to each other count more.
fn rank_and(weights: &Weights, document: TsVector<'_>, operands: &[TsOperand<'_>]) -> Result<f32> {
    let weight = |position: LexemePosition| weights[usize::from(position.weight())];
    let mut rank = -1f32;
    let mut before: Vec<(Vec<LexemePosition>, bool)> = Vec::new();
    for operand in operands {
        let mut last = None;
        for lexeme in lexemes(document, *operand) {
            let (own, known) = places(lexeme);
            for (others, others_known) in &before {
                limits::tick()?;
                for a in &own {
                    for b in others {
                        let distance = (i32::from(a.place()) - i32::from(b.place())).abs();
                        if distance == 0 && known && *others_known {
                            continue;
                        }
                        let distance = if distance == 0 { i32::from(PLACE_MAX) + 1 } else { distance };
                        let current = f64::from(weight(*a) * weight(*b) * closeness(distance)).sqrt() as f32;
                        rank = match rank < 0.0 {
                            true => current,
                            false => (1.0 - (1.0 - f64::from(rank)) * (1.0 - f64::from(current))) as f32,
                        };
                    }
                }
            }
            last = Some((own, known));
        }
        before.extend(last);
    }
    Ok(rank)
}

/// Each word counts by its weights, more so the more often it is there.
fn rank_or(weights: &Weights, document: TsVector<'_>, operands: &[TsOperand<'_>]) -> Result<f32> {
    /// The sum of 1 / n² for all n.
    const SQUARES: f64 = 1.644_934_066_85;
    let mut rank = 0f32;
    for operand in operands {
        for lexeme in lexemes(document, *operand) {
            limits::tick()?;
            let none = [LexemePosition::new(0, 0)];
            let own: Vec<LexemePosition> = if lexeme.has_positions() { lexeme.positions().collect() } else { none.to_vec() };
            let (mut sum, mut greatest, mut at_greatest) = (0f32, -1f32, 0);
            for (at, position) in own.iter().enumerate() {
                let weight = weights[usize::from(position.weight())];
                let at = at as i32 + 1;
                sum += weight / (at * at) as f32;
                if weight > greatest {
                    (greatest, at_greatest) = (weight, at);
                }
            }
            let own_rank = greatest + sum - greatest / (at_greatest * at_greatest) as f32;
            rank = (f64::from(rank) + f64::from(own_rank) / SQUARES) as f32;
        }
    }
    Ok(if operands.is_empty() { rank } else { rank / operands.len() as f32 })
}
