//! Whether a document satisfies a query, and where.
//!
//! The semantics are those of PostgreSQL's TS_execute and TS_phrase_execute: an operand may be known to be there without its
//! places (a stripped tsvector), which makes a phrase uncertain.

use melba_types::tsquery::{Binary, TsNode, TsOperand, TsQuery};
use melba_types::tsvector::{Lexeme, TsVector};
use melba_types::{Result, limits};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    No,
    Yes,
    /// The operands are there; their places are not known.
    Maybe,
}

/// Where a part of a query is satisfied: the places of its last lexemes.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Ascending.
    pub at: Vec<u32>,
    /// It is satisfied everywhere but there.
    pub negated: bool,
    /// Lexemes that a match spans, less one.
    pub width: u32,
}

/// A document as queries see it.
pub trait Searched {
    /// Whether it has an operand.
    fn has(&self, operand: TsOperand<'_>) -> Match;
    /// The same, with the places, which are not empty for `Yes`.
    fn places(&self, operand: TsOperand<'_>, places: &mut Vec<u32>) -> Match;
}

/// The number of an operand among all of its query: the one that stands at the same place of the query, in whose order they are.
pub fn number_of(operands: &[TsOperand<'_>], operand: TsOperand<'_>) -> Option<usize> {
    operands.binary_search_by_key(&operand.text.as_ptr(), |other| other.text.as_ptr()).ok()
}

/// Whether a document satisfies a query. A phrase over lexemes without places is not satisfied.
///
/// # Errors
/// 54001 for a query that nests too deeply.
pub fn matches(query: TsQuery<'_>, document: &impl Searched) -> Result<bool> {
    limits::check_stack()?;
    limits::tick()?;
    match query.node() {
        TsNode::Operand(operand) => {
            check_scan(operand)?;
            Ok(document.has(operand) != Match::No)
        }
        TsNode::Not(of) => Ok(!matches(of, document)?),
        TsNode::Binary(Binary::And, left, right) => Ok(matches(left, document)? && matches(right, document)?),
        TsNode::Binary(Binary::Or, left, right) => Ok(matches(left, document)? || matches(right, document)?),
        TsNode::Binary(Binary::Phrase(_), ..) => Ok(phrase(query, document)?.0 == Match::Yes),
    }
}

/// Called before an operand is searched: a prefix may be that of all lexemes.
fn check_scan(operand: TsOperand<'_>) -> Result<()> {
    if operand.prefix { limits::check_interrupt() } else { Ok(()) }
}

/// Which positions of two lists to keep.
#[derive(Clone, Copy)]
struct Keep {
    left: bool,
    right: bool,
    both: bool,
}

const ALL: Keep = Keep { left: true, right: true, both: true };
const LEFT: Keep = Keep { left: true, right: false, both: false };
const RIGHT: Keep = Keep { left: false, right: true, both: false };
const BOTH: Keep = Keep { left: false, right: false, both: true };

/// Merges two ascending lists, each moved to the right by an offset.
fn merge(keep: Keep, left: (&[u32], u32), right: (&[u32], u32)) -> Vec<u32> {
    let mut l = left.0.iter().map(|at| at.saturating_add(left.1)).peekable();
    let mut r = right.0.iter().map(|at| at.saturating_add(right.1)).peekable();
    let mut out = Vec::new();
    loop {
        match (l.peek().copied(), r.peek().copied()) {
            (None, None) => return out,
            (Some(a), Some(b)) if a == b => {
                out.extend(keep.both.then_some(a));
                l.next();
                r.next();
            }
            (Some(a), b) if b.is_none_or(|b| a < b) => {
                out.extend(keep.left.then_some(a));
                l.next();
            }
            (_, b) => {
                out.extend(b.filter(|_| keep.right));
                r.next();
            }
        }
    }
}

/// Whether and where a document satisfies a query, whose places count.
pub fn phrase(query: TsQuery<'_>, document: &impl Searched) -> Result<(Match, Places)> {
    limits::check_stack()?;
    limits::tick()?;
    let nowhere = (Match::No, Places::default());
    Ok(match query.node() {
        TsNode::Operand(operand) => {
            check_scan(operand)?;
            let mut places = Places::default();
            (document.places(operand, &mut places.at), places)
        }
        TsNode::Not(of) => match phrase(of, document)? {
            (Match::No, places) => (Match::Yes, Places { at: Vec::new(), negated: true, width: places.width }),
            (Match::Yes, places) if places.at.is_empty() && places.negated => nowhere,
            (Match::Yes, places) => (Match::Yes, Places { negated: !places.negated, ..places }),
            maybe => maybe,
        },
        TsNode::Binary(Binary::Or, left, right) => either(phrase(left, document)?, phrase(right, document)?),
        TsNode::Binary(operator, left, right) => {
            let left = phrase(left, document)?;
            if left.0 == Match::No {
                return Ok(nowhere);
            }
            let right = phrase(right, document)?;
            match (left.0, right.0) {
                (_, Match::No) => nowhere,
                (Match::Yes, Match::Yes) => both(operator, &left.1, &right.1),
                _ => (Match::Maybe, Places::default()),
            }
        }
    })
}

/// Both parts of AND or of a phrase. Those of AND end at the same place: the narrower one is moved to the end of the wider one.
fn both(operator: Binary, left: &Places, right: &Places) -> (Match, Places) {
    let (width, offsets) = match operator {
        Binary::Phrase(distance) => {
            let offset = right.width.saturating_add(u32::from(distance));
            (offset.saturating_add(left.width), (offset, 0))
        }
        _ => aligned(left, right),
    };
    let merged = |keep| merge(keep, (&left.at, offsets.0), (&right.at, offsets.1));
    match (left.negated, right.negated) {
        (true, true) => (Match::Yes, Places { at: merged(ALL), negated: true, width }),
        (true, false) => found(merged(RIGHT), width),
        (false, true) => found(merged(LEFT), width),
        (false, false) => found(merged(BOTH), width),
    }
}

fn either(left: (Match, Places), right: (Match, Places)) -> (Match, Places) {
    let (l, r) = match (left.0, right.0) {
        (Match::No, Match::No) => return (Match::No, Places::default()),
        (Match::Maybe, _) | (_, Match::Maybe) => return (Match::Maybe, Places::default()),
        (Match::No, _) => (Places::default(), right.1),
        (_, Match::No) => (left.1, Places::default()),
        _ => (left.1, right.1),
    };
    let (width, offsets) = aligned(&l, &r);
    let merged = |keep| merge(keep, (&l.at, offsets.0), (&r.at, offsets.1));
    let negated = |at| (Match::Yes, Places { at, negated: true, width });
    match (l.negated, r.negated) {
        (true, true) => negated(merged(BOTH)),
        (true, false) => negated(merged(LEFT)),
        (false, true) => negated(merged(RIGHT)),
        (false, false) => found(merged(ALL), width),
    }
}

/// The width of the wider one, and the offsets that move both to its end.
fn aligned(left: &Places, right: &Places) -> (u32, (u32, u32)) {
    let width = left.width.max(right.width);
    (width, (width - left.width, width - right.width))
}

fn found(at: Vec<u32>, width: u32) -> (Match, Places) {
    let is_found = if at.is_empty() { Match::No } else { Match::Yes };
    (is_found, Places { at, negated: false, width })
}

/// Where the parts of a query that all must be there are: a list for each part of AND, alternatives united.
/// `None` when the document does not satisfy the query.
pub fn locations(query: TsQuery<'_>, document: &impl Searched) -> Result<Option<Vec<Places>>> {
    limits::check_stack()?;
    limits::tick()?;
    Ok(match query.node() {
        TsNode::Operand(operand) => {
            check_scan(operand)?;
            let mut places = Places::default();
            (document.places(operand, &mut places.at) == Match::Yes).then(|| vec![places])
        }
        TsNode::Not(of) => match locations(of, document)? {
            None => Some(Vec::new()),
            Some(_) => None,
        },
        TsNode::Binary(Binary::And, left, right) => {
            let Some(mut all) = locations(left, document)? else { return Ok(None) };
            let Some(more) = locations(right, document)? else { return Ok(None) };
            all.extend(more);
            Some(all)
        }
        TsNode::Binary(Binary::Or, left, right) => {
            let (left, right) = (locations(left, document)?, locations(right, document)?);
            if left.is_none() && right.is_none() {
                return Ok(None);
            }
            Some(alternatives(left.unwrap_or_default(), right.unwrap_or_default())?)
        }
        TsNode::Binary(Binary::Phrase(_), ..) => match phrase(query, document)? {
            (Match::Yes, places) if places.negated => Some(Vec::new()),
            (Match::Yes, places) => Some(vec![places]),
            _ => None,
        },
    })
}

/// `(a & b) | (c & d)` as `(a | c) & (a | d) & (b | c) & (b | d)`.
fn alternatives(left: Vec<Places>, right: Vec<Places>) -> Result<Vec<Places>> {
    if left.is_empty() || right.is_empty() {
        return Ok(if left.is_empty() { right } else { left });
    }
    limits::check_request(left.len().saturating_mul(right.len()).saturating_mul(size_of::<Places>()))?;
    let mut out = Vec::with_capacity(left.len() * right.len());
    for l in &left {
        for r in &right {
            limits::tick()?;
            out.push(Places { at: merge(ALL, (&l.at, 0), (&r.at, 0)), negated: false, width: l.width.max(r.width) });
        }
    }
    Ok(out)
}

impl Searched for TsVector<'_> {
    fn has(&self, operand: TsOperand<'_>) -> Match {
        let is_match = |lexeme: Lexeme<'_>| {
            let has_weight = || lexeme.positions().any(|position| operand.has_weight(position.weight()));
            // Weights of a stripped vector are not known: it has all of them.
            operand.weights == 0 || !lexeme.has_positions() || has_weight()
        };
        let found = lexemes(*self, operand).any(is_match);
        if found { Match::Yes } else { Match::No }
    }

    fn places(&self, operand: TsOperand<'_>, places: &mut Vec<u32>) -> Match {
        for lexeme in lexemes(*self, operand) {
            if !lexeme.has_positions() {
                places.clear();
                return Match::Maybe;
            }
            let counted = lexeme.positions().filter(|position| operand.has_weight(position.weight()));
            places.extend(counted.map(|position| u32::from(position.place())));
        }
        if operand.prefix {
            places.sort_unstable();
            places.dedup();
        }
        if places.is_empty() { Match::No } else { Match::Yes }
    }
}

/// The lexemes of a vector that an operand names.
pub fn lexemes<'a>(vector: TsVector<'a>, operand: TsOperand<'a>) -> impl Iterator<Item = Lexeme<'a>> {
    let (start, end) = match vector.find(operand.text) {
        Ok(at) if !operand.prefix => (at, at + 1),
        Err(_) if !operand.prefix => (0, 0),
        Ok(at) | Err(at) => (at, vector.len()),
    };
    (start..end).map(move |at| vector.get(at)).take_while(move |lexeme| lexeme.text.starts_with(operand.text))
}
