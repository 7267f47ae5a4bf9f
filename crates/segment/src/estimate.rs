//! Combines the statistics of many chunks of a column: the number of distinct values, and their range.
//!
//! Chunks keep a count of distinct values each, not a sketch that could be merged. How much their values overlap follows from their
//! bounds: counts of chunks beside each other add up; chunks over the same range are samples of one set.

use melba_types::key::{self, KeyColumn, KeyType};
use melba_types::{Datum, Kind};

use crate::statistics::{Bounds, Statistics, number_of};

/// Chunks that cover a value less often than this, on average, lie beside each other.
const BESIDE_EACH_OTHER: f64 = 1.5;
/// With fewer chunks, the values between a chunk's bounds are too many to count as evenly spread.
const ORDERED_CHUNKS_MIN: usize = 8;
/// A chunk with more distinct values a row than this tells nothing about their total number.
const UNIQUE_SHARE: f64 = 0.98;
/// Digits, letters: a bound with one of a class says that the column has the others, too (PostgreSQL's convert_string_to_scalar).
const CLASSES: [(u8, u8); 3] = [(b'0', b'9'), (b'A', b'Z'), (b'a', b'z')];

/// Where a value lies in the order of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Point<'a> {
    Number(f64),
    Bytes(&'a [u8]),
}

/// A column of all segments of a tree.
#[derive(Clone, Debug)]
pub struct ColumnEstimate {
    /// Rows of the chunks, all versions of them.
    pub rows: f64,
    /// Share of them that is null.
    pub null_share: f64,
    /// Distinct values, at most one a row that is not null.
    pub distinct: f64,
    /// The common beginning of all byte strings.
    prefix: Vec<u8>,
    alphabet: Alphabet,
    spans: Vec<Span>,
    /// The chunks are of segments, whose rows lie beside each other.
    is_of_segments: bool,
}

/// The bytes of strings behind their common prefix, which are the digits of their places.
#[derive(Clone, Copy, Debug)]
struct Alphabet {
    first: u8,
    last: u8,
}

/// The values of one chunk: assumed to be evenly spread between two places.
#[derive(Clone, Copy, Debug)]
struct Span {
    min: f64,
    max: f64,
    values: f64,
}

/// Bounds of a chunk before byte strings have a place.
enum Ends<'a> {
    Numbers(f64, f64),
    Bytes(&'a [u8], &'a [u8]),
}

impl ColumnEstimate {
    /// Of the chunks of a column of `kind`, and of what a sample says of other rows (`chunks_of_sample`): rows of each with its
    /// statistics.
    pub fn new<'a>(
        kind: Kind,
        chunks: impl Iterator<Item = (u64, &'a Statistics)>,
        sampled: impl Iterator<Item = (u64, &'a Statistics)>,
    ) -> ColumnEstimate {
        let mut chunks = chunks.peekable();
        let is_of_segments = chunks.peek().is_some();
        let chunks = chunks.chain(sampled);
        let (mut rows, mut nulls) = (0, 0);
        let mut ends = Vec::new();
        let mut counts = Vec::new();
        for (chunk_rows, statistics) in chunks {
            rows += chunk_rows;
            nulls += statistics.nulls;
            let values = chunk_rows.saturating_sub(statistics.nulls) as f64;
            if values > 0.0 {
                counts.push((values, statistics.distinct as f64));
                ends.extend(ends_of(kind, &statistics.bounds).map(|ends| (ends, values)));
            }
        }
        let prefix = common_prefix(&ends);
        let alphabet =
            if kind == Kind::Text { Alphabet::of_texts(&ends, prefix.len()) } else { Alphabet { first: 0, last: u8::MAX } };
        let place_of = |bytes: &[u8]| alphabet.place_of(&bytes[prefix.len()..]);
        let spans: Vec<Span> = ends.iter().map(|(ends, values)| ends.span(place_of, *values)).collect();
        let known = if spans.len() == counts.len() { &spans[..] } else { &[] };
        ColumnEstimate {
            rows: rows as f64,
            null_share: if rows == 0 { 0.0 } else { nulls as f64 / rows as f64 },
            distinct: distinct(kind, &counts, known),
            prefix: prefix.to_vec(),
            alphabet,
            spans,
            is_of_segments,
        }
    }

    /// The share of the values that lie below a point; `None` when the column's chunks have no bounds of that form.
    pub fn share_below(&self, point: Point<'_>) -> Option<f64> {
        let place = match point {
            Point::Number(number) => number,
            Point::Bytes(bytes) => match bytes.strip_prefix(&self.prefix[..]) {
                Some(rest) => self.alphabet.place_of(rest),
                None if *bytes < self.prefix[..] => return Some(0.0),
                None => return Some(1.0),
            },
        };
        let values: f64 = self.spans.iter().map(|span| span.values).sum();
        let below: f64 = self.spans.iter().map(|span| span.values * span.share_below(place)).sum();
        (values > 0.0).then(|| below / values)
    }

    /// How many different beginnings of `characters` characters the values may have: at most the number of values.
    pub fn distinct_beginnings(&self, characters: usize) -> f64 {
        // A character has as many bytes at least; more of them would only make more beginnings.
        let digits = characters.saturating_sub(self.prefix.len()).min(i32::MAX as usize) as i32;
        if self.spans.is_empty() { self.distinct } else { self.alphabet.base().powi(digits).min(self.distinct) }
    }

    /// Whether the values lie in no order in the table, and are numbers with more than `places` places for each.
    pub fn is_sparse(&self, places: f64) -> bool {
        let width = extent(&self.spans).map_or(0.0, |(min, max)| max - min);
        width > self.distinct * places && depth(&self.spans, self.spans.len()) >= BESIDE_EACH_OTHER
    }

    /// Whether many chunks have their values beside each other: shares of ranges are known well.
    pub fn is_ordered(&self) -> bool {
        self.is_of_segments && self.spans.len() >= ORDERED_CHUNKS_MIN && depth(&self.spans, self.spans.len()) < BESIDE_EACH_OTHER
    }

    /// Whether no value can be at a point.
    pub fn excludes(&self, point: Point<'_>) -> bool {
        let place = match point {
            Point::Number(number) => number,
            Point::Bytes(bytes) => match bytes.strip_prefix(&self.prefix[..]) {
                Some(rest) => self.alphabet.place_of(rest),
                None => return !self.spans.is_empty(),
            },
        };
        !self.spans.is_empty() && self.spans.iter().all(|span| place < span.min || place > span.max)
    }
}

impl Ends<'_> {
    fn span(&self, place_of: impl Fn(&[u8]) -> f64, values: f64) -> Span {
        match self {
            Ends::Numbers(min, max) => Span { min: *min, max: *max, values },
            Ends::Bytes(min, max) => Span { min: place_of(min), max: place_of(max), values },
        }
    }
}

impl Alphabet {
    /// That of texts with these bounds, without the first bytes that all have.
    fn of_texts(ends: &[(Ends<'_>, f64)], prefix: usize) -> Alphabet {
        let bounds = ends.iter().flat_map(|(ends, _)| match ends {
            Ends::Bytes(min, max) => [&min[prefix..], &max[prefix..]],
            Ends::Numbers(..) => [&[][..], &[]],
        });
        let (first, last) = bounds.flatten().fold((u8::MAX, 0), |(first, last), byte| (first.min(*byte), last.max(*byte)));
        let met = CLASSES.iter().filter(|class| first <= class.1 && last >= class.0);
        met.fold(Alphabet { first, last }, |all, class| Alphabet { first: all.first.min(class.0), last: all.last.max(class.1) })
    }

    fn base(self) -> f64 {
        f64::from(self.last.saturating_sub(self.first)) + 1.0
    }

    /// The fraction with a string's bytes as digits.
    fn place_of(self, bytes: &[u8]) -> f64 {
        let base = self.base();
        let mut unit = 1.0;
        let mut place = 0.0;
        // More digits than an f64 holds add nothing.
        for byte in bytes.iter().take(f64::MANTISSA_DIGITS as usize) {
            unit /= base;
            let digit = f64::from(*byte) - f64::from(self.first);
            place += unit * digit.clamp(0.0, base - 1.0);
        }
        place
    }
}

impl Span {
    fn share_below(&self, place: f64) -> f64 {
        if place <= self.min {
            0.0
        } else if place > self.max {
            1.0
        } else {
            (place - self.min) / (self.max - self.min)
        }
    }
}

fn ends_of(kind: Kind, bounds: &Bounds) -> Option<Ends<'_>> {
    match (kind, bounds) {
        (_, Bounds::Words { min, max }) => Some(Ends::Numbers(number_of(kind, *min), number_of(kind, *max))),
        (Kind::Numeric, Bounds::Bytes { min, max, .. }) => Some(Ends::Numbers(numeric_of_key(min)?, numeric_of_key(max)?)),
        (Kind::Text | Kind::Bytes | Kind::Uuid, Bounds::Bytes { min, max, .. }) => Some(Ends::Bytes(min, max)),
        _ => None,
    }
}

/// The number whose memcomparable key this is; `None` when the bound was cut.
fn numeric_of_key(key: &[u8]) -> Option<f64> {
    let column = KeyColumn { ty: KeyType::Plain(Kind::Numeric), descending: false, nulls_first: false };
    let (Datum::Numeric(value), _) = key::decode(&column, key)? else { return None };
    Some(value.to_f64()).filter(|v| v.is_finite())
}

fn common_prefix<'a>(ends: &[(Ends<'a>, f64)]) -> &'a [u8] {
    let mut all = ends.iter().flat_map(|(ends, _)| match ends {
        Ends::Bytes(min, max) => [Some(*min), Some(*max)],
        Ends::Numbers(..) => [None, None],
    });
    let mut all = all.by_ref().flatten();
    let Some(first) = all.next() else { return &[] };
    all.fold(first, |prefix, other| &prefix[..prefix.iter().zip(other).take_while(|(a, b)| a == b).count()])
}

/// `counts`: values of each chunk, and how many of them are distinct; `spans`: of the same chunks, or none.
fn distinct(kind: Kind, counts: &[(f64, f64)], spans: &[Span]) -> f64 {
    let values: f64 = counts.iter().map(|(values, _)| values).sum();
    if let [(_, distinct)] = counts {
        return *distinct;
    }
    let depth = depth(spans, counts.len());
    let all = if depth < BESIDE_EACH_OTHER {
        counts.iter().map(|(_, distinct)| distinct).sum::<f64>() / depth
    } else {
        distinct_of_samples(counts) * counts.len() as f64 / depth
    };
    let is_integer = matches!(kind, Kind::Bool | Kind::Int2 | Kind::Int4 | Kind::Int8 | Kind::Char);
    let most = extent(spans).filter(|_| is_integer).map_or(values, |(min, max)| values.min(max - min + 1.0));
    all.min(most)
}

/// The least and the greatest place.
fn extent(spans: &[Span]) -> Option<(f64, f64)> {
    spans.iter().map(|span| (span.min, span.max)).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
}

/// How many of some chunks cover a value; `spans`: those of all or none of them.
fn depth(spans: &[Span], chunks: usize) -> f64 {
    match extent(spans) {
        Some((min, max)) if max > min => {
            (spans.iter().map(|span| span.max - span.min).sum::<f64>() / (max - min)).clamp(1.0, chunks as f64)
        }
        _ => chunks as f64,
    }
}

/// The size of a set from which each chunk's values were drawn at random: D with the sum of D * (1 - exp(-values / D)) = distinct values.
/// All chunks count together: those of few rows, and errors of their counts, say little by themselves.
fn distinct_of_samples(counts: &[(f64, f64)]) -> f64 {
    let (values, distinct) = counts.iter().fold((0.0, 0.0), |sum, count| (sum.0 + count.0, sum.1 + count.1));
    if distinct >= values * UNIQUE_SHARE {
        return f64::INFINITY;
    }
    let met = |set: f64| counts.iter().map(|(values, _)| set * (1.0 - (-values / set).exp())).sum::<f64>();
    // The fewest are those of one chunk.
    let (mut low, mut high) = (counts.iter().map(|count| count.1).fold(1.0, f64::max), values * 64.0);
    for _ in 0..30 {
        let middle = (low + high) / 2.0;
        if met(middle) < distinct { low = middle } else { high = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_chunks<'a>(kind: Kind, chunks: impl Iterator<Item = (u64, &'a Statistics)>) -> ColumnEstimate {
        ColumnEstimate::new(kind, chunks, std::iter::empty())
    }

    fn ints(chunks: &[Vec<i64>]) -> ColumnEstimate {
        let statistics: Vec<Statistics> =
            chunks.iter().map(|c| Statistics::of_words(Kind::Int4, c, 0, &mut Vec::new())).collect();
        of_chunks(Kind::Int4, chunks.iter().zip(&statistics).map(|(c, s)| (c.len() as u64, s)))
    }

    #[track_caller]
    fn about(found: f64, wanted: f64) {
        assert!((found / wanted - 1.0).abs() < 0.1, "{found}, not about {wanted}");
    }

    /// Draws without a pattern.
    fn draws(n: usize, of: u64, seed: u64) -> Vec<i64> {
        (0..n as u64).map(|i| (crate::hash::hash_word(i ^ seed << 32) % of) as i64).collect()
    }

    #[test]
    fn distinct_values_of_chunks_beside_each_other_add_up() {
        let chunks: Vec<Vec<i64>> = (0..10).map(|c| (0..10_000).map(|i| c * 2_500 + i / 4).collect()).collect();
        about(ints(&chunks).distinct, 25_000.0);
        assert!(!ints(&chunks).is_sparse(0.5));
    }

    #[test]
    fn distinct_values_of_overlapping_chunks_are_those_of_a_sample() {
        for of in [100, 10_000, 30_000, 200_000] {
            let chunks: Vec<Vec<i64>> = (0..20).map(|c| draws(30_000, of, c + 1)).collect();
            about(ints(&chunks).distinct, of as f64);
            assert!(ints(&chunks).is_sparse(0.5) && !ints(&chunks).is_sparse(2.0));
        }
    }

    #[test]
    fn a_chunk_of_few_rows_says_little_of_the_others() {
        let chunks: Vec<Vec<i64>> = (0..20).map(|c| draws(if c == 19 { 50 } else { 30_000 }, 100_000, c + 1)).collect();
        about(ints(&chunks).distinct, 100_000.0);
    }

    #[test]
    fn a_key_has_as_many_values_as_rows() {
        let chunks: Vec<Vec<i64>> = (0..10).map(|c| (0..10_000).map(|i| i * 10 + c).collect()).collect();
        about(ints(&chunks).distinct, 100_000.0);
        // One of ten places has a value in each chunk, and all have one in some.
        assert!(!ints(&chunks).is_sparse(2.0));
    }

    #[test]
    fn shares_follow_the_bounds_of_chunks() {
        // Half of the values below 100, the others up to 10,000.
        let estimate = ints(&[(0..100).collect(), (0..100).map(|i| 100 + i * 99).collect()]);
        about(estimate.share_below(Point::Number(50.0)).unwrap(), 0.25);
        about(estimate.share_below(Point::Number(5_000.0)).unwrap(), 0.75);
        assert_eq!(estimate.share_below(Point::Number(-1.0)), Some(0.0));
        assert_eq!(estimate.share_below(Point::Number(1e9)), Some(1.0));
        assert!(estimate.excludes(Point::Number(-1.0)) && !estimate.excludes(Point::Number(500.0)));
    }

    #[test]
    fn strings_have_places_behind_their_common_prefix() {
        let bounds = Bounds::Bytes { min: b"Customer#0000"[..].into(), max: b"Customer#9999"[..].into(), cut: false };
        let statistics = Statistics { nulls: 0, distinct: 10_000, bounds };
        let estimate = of_chunks(Kind::Text, [(10_000, &statistics)].into_iter());
        let below = estimate.share_below(Point::Bytes(b"Customer#4999")).unwrap();
        assert!((0.35..0.55).contains(&below), "{below}");
        assert_eq!(estimate.share_below(Point::Bytes(b"Buyer")), Some(0.0));
        assert_eq!(estimate.share_below(Point::Bytes(b"Dealer")), Some(1.0));
        assert!(estimate.excludes(Point::Bytes(b"Dealer")));
    }

    #[test]
    fn ranges_of_digits_are_in_proportion() {
        let bounds = Bounds::Bytes { min: b"13000000012"[..].into(), max: b"13999999921"[..].into(), cut: false };
        let statistics = Statistics { nulls: 0, distinct: 10_000, bounds };
        let estimate = of_chunks(Kind::Text, [(10_000, &statistics)].into_iter());
        let below = |point: &str| estimate.share_below(Point::Bytes(point.as_bytes())).unwrap();
        about(below("13199999999") - below("13100000000"), 0.1);
        about(below("13100999999") - below("13100000000"), 0.001);
        about(below("138") - below("130"), 0.8);
        about(estimate.distinct_beginnings(4), 100.0);
        assert_eq!((estimate.distinct_beginnings(2), estimate.distinct_beginnings(11)), (1.0, 10_000.0));
    }

    #[test]
    fn numerics_have_places() {
        let numeric = |v: &str| Datum::Numeric(melba_types::Numeric::parse(v).unwrap());
        let bounds = Bounds::of_datums(Kind::Numeric, &numeric("-10.5"), &numeric("29.5"));
        let statistics = Statistics { nulls: 10, distinct: 20, bounds };
        let estimate = of_chunks(Kind::Numeric, [(40, &statistics)].into_iter());
        about(estimate.share_below(Point::Number(-0.5)).unwrap(), 0.25);
        assert_eq!((estimate.null_share, estimate.distinct), (0.25, 20.0));
    }
}
