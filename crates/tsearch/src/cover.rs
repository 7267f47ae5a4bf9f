//! ts_rank_cd: ranks documents by their covers, the shortest parts that satisfy a query.
//!
//! As PostgreSQL's calc_rank_cd, after Clarke, Cormack and Tudhope, "Relevance Ranking for One to Three Term Queries" (1999).

use melba_fmgr::ScalarFn;
use melba_types::tsquery::{TsOperand, TsQuery};
use melba_types::tsvector::{LexemePosition, TsVector};
use melba_types::{Datum, Result, limits};

use crate::matching::{Match, Searched, lexemes, matches, number_of};
use crate::query_io::query;
use crate::rank::{WEIGHTS, Weights, length, normalization, weights};
use crate::vector_io::vector;

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("ts_rankcd_wttf", |_, a| rank(&weights(&a[0])?, &a[1], &a[2], a[3].as_i32())),
    ("ts_rankcd_wtt", |_, a| rank(&weights(&a[0])?, &a[1], &a[2], 0)),
    ("ts_rankcd_ttf", |_, a| rank(&WEIGHTS, &a[0], &a[1], a[2].as_i32())),
    ("ts_rankcd_tt", |_, a| rank(&WEIGHTS, &a[0], &a[1], 0)),
];

fn rank(weights: &Weights, document: &Datum, condition: &Datum, method: i32) -> Result<Datum> {
    let Some(query) = query(condition) else { return Ok(Datum::Float4(0.0)) };
    cover_rank(weights, vector(document), query, method).map(Datum::Float4)
}

/// A place of a document with the operands that are there, by their numbers.
struct Entry {
    position: LexemePosition,
    operands: Vec<usize>,
}

/// A part of a document: entries from one to another.
struct Cover {
    first: usize,
    last: usize,
}

/// The places of a query's operands between two entries.
struct Seen<'a> {
    operands: &'a [TsOperand<'a>],
    /// Ascending, by operand.
    places: Vec<Vec<u32>>,
}

impl<'a> Seen<'a> {
    fn new(operands: &'a [TsOperand<'a>]) -> Seen<'a> {
        Seen { operands, places: vec![Vec::new(); operands.len()] }
    }

    fn clear(&mut self) {
        self.places.iter_mut().for_each(Vec::clear);
    }

    /// `backward`: entries come from the last one to the first one.
    fn add(&mut self, entry: &Entry, backward: bool) {
        let place = u32::from(entry.position.place());
        for operand in &entry.operands {
            let places = &mut self.places[*operand];
            let nearest = if backward { places.first() } else { places.last() };
            if nearest != Some(&place) {
                let at = if backward { 0 } else { places.len() };
                places.insert(at, place);
            }
        }
    }

    fn of(&self, operand: TsOperand<'_>) -> &[u32] {
        number_of(self.operands, operand).map_or(&[], |number| &self.places[number])
    }
}

impl Searched for Seen<'_> {
    fn has(&self, operand: TsOperand<'_>) -> Match {
        if self.of(operand).is_empty() { Match::No } else { Match::Yes }
    }

    fn places(&self, operand: TsOperand<'_>, places: &mut Vec<u32>) -> Match {
        places.extend_from_slice(self.of(operand));
        self.has(operand)
    }
}

/// The rank of a document.
///
/// # Errors
/// 54001 for a query that nests too deeply.
fn cover_rank(weights: &Weights, document: TsVector<'_>, query: TsQuery<'_>, method: i32) -> Result<f32> {
    let operands: Vec<TsOperand<'_>> = query.operands().collect();
    let entries = entries(document, &operands)?;
    if entries.is_empty() {
        return Ok(0.0);
    }
    let mut seen = Seen::new(&operands);
    let (mut rank, mut sum_of_nearness, mut last_middle, mut count) = (0f64, 0f64, 0f64, 0);
    let mut from = 0;
    while let Some((cover, next)) = cover(&entries, query, &mut seen, from)? {
        let place = |at: usize| i32::from(entries[at].position.place());
        let (start, end) = (place(cover.first), place(cover.last));
        let inverse = |entry: &Entry| 1.0 / f64::from(weights[usize::from(entry.position.weight())]);
        let inverse_sum: f64 = entries[cover.first..=cover.last].iter().fold(0.0, |sum, entry| sum + inverse(entry));
        let between = (cover.last - cover.first) as i32;
        let noise = match end - start - between {
            // Places behind the last one are one place.
            noise if noise < 0 => between / 2,
            noise => noise,
        };
        rank += f64::from(between + 1) / inverse_sum / f64::from(1 + noise);
        let middle = f64::from(start + end) / 2.0;
        if count > 0 && middle > last_middle {
            sum_of_nearness += 1.0 / (middle - last_middle);
        }
        (last_middle, count, from) = (middle, count + 1, next);
    }
    Ok(normalized(rank, document, method, (count, sum_of_nearness)) as f32)
}

fn normalized(mut rank: f64, document: TsVector<'_>, method: i32, (covers, nearness): (i32, f64)) -> f64 {
    if method & normalization::LOG_LENGTH != 0 {
        rank /= ((length(document) + 1) as f64).ln();
    }
    if method & normalization::LENGTH != 0 {
        rank /= length(document) as f64;
    }
    if method & normalization::EXTENT_DISTANCE != 0 && covers > 0 && nearness > 0.0 {
        rank /= f64::from(covers) / nearness;
    }
    if method & normalization::LEXEMES != 0 {
        rank /= document.len() as f64;
    }
    if method & normalization::LOG_LEXEMES != 0 {
        rank /= ((document.len() + 1) as f64).ln() / 2f64.ln();
    }
    if method & normalization::BELOW_ONE != 0 {
        rank /= rank + 1.0;
    }
    rank
}

/// The places of the operands in a document, in order.
fn entries(document: TsVector<'_>, operands: &[TsOperand<'_>]) -> Result<Vec<Entry>> {
    let mut found = Vec::new();
    for (number, operand) in operands.iter().enumerate() {
        for lexeme in lexemes(document, *operand) {
            limits::tick()?;
            let counted = lexeme.positions().filter(|position| operand.has_weight(position.weight()));
            found.extend(counted.map(|position| (position, lexeme.text.as_ptr() as usize, number)));
        }
    }
    found.sort_by_key(|(position, lexeme, _)| (position.place(), position.weight(), *lexeme));
    let same = |a: &(LexemePosition, usize, usize), b: &(LexemePosition, usize, usize)| a.0 == b.0 && a.1 == b.1;
    let entry = |same: &[(LexemePosition, usize, usize)]| Entry {
        position: same[0].0,
        operands: same.iter().map(|(_, _, number)| *number).collect(),
    };
    Ok(found.chunk_by(same).map(entry).collect())
}

/// The next cover from an entry on, and where to search on: from the first entry by which the query is satisfied back to the last
/// one from which it is.
fn cover(entries: &[Entry], query: TsQuery<'_>, seen: &mut Seen<'_>, mut from: usize) -> Result<Option<(Cover, usize)>> {
    loop {
        let Some(last) = first_end(entries, query, seen, from)? else { return Ok(None) };
        seen.clear();
        let mut first = last;
        loop {
            limits::tick()?;
            seen.add(&entries[first], true);
            if matches(query, seen)? {
                return Ok(Some((Cover { first, last }, first + 1)));
            }
            if first == from {
                break;
            }
            first -= 1;
        }
        from += 1;
    }
}

/// The first entry by which the query is satisfied.
fn first_end(entries: &[Entry], query: TsQuery<'_>, seen: &mut Seen<'_>, from: usize) -> Result<Option<usize>> {
    seen.clear();
    for (at, entry) in entries.iter().enumerate().skip(from) {
        limits::tick()?;
        seen.add(entry, false);
        if matches(query, seen)? {
            // A place 0 is none.
            return Ok((entry.position.place() > 0).then_some(at));
        }
    }
    Ok(None)
}
