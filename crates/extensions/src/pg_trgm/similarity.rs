//! How similar texts are by their trigrams.

use std::collections::HashMap;

use melba_types::Result;
use melba_types::case::lower;
use melba_types::limits::{self, Ticker};

use super::trigrams::{Occurrence, Trigram, occurrences, signed, trigrams};

/// The share of the trigrams of two texts that both have, from 0 to 1.
///
/// # Errors
/// Those of `trigrams`.
pub fn similarity(one: &str, other: &str) -> Result<f32> {
    let (one, other) = (trigrams(one, lower)?, trigrams(other, lower)?);
    if one.is_empty() || other.is_empty() {
        return Ok(0.0);
    }
    Ok(ratio(common(&one, &other), one.len(), other.len()))
}

/// How many are in both sets, which are in order.
fn common(one: &[Trigram], other: &[Trigram]) -> usize {
    let (mut found, mut rest) = (0, other.iter().peekable());
    for trigram in one {
        while rest.next_if(|next| signed(**next) < signed(*trigram)).is_some() {}
        found += usize::from(rest.next_if_eq(&trigram).is_some());
    }
    found
}

fn ratio(common: usize, one: usize, other: usize) -> f32 {
    common as f32 / (one + other - common) as f32
}

/// The greatest similarity of a text to an extent of another, by PostgreSQL's search: an extent that ends at each place in turn, and
/// begins where its similarity is best among those left by the searches before.
#[derive(Clone, Copy)]
pub struct ExtentSearch {
    /// An extent consists of whole words.
    pub strict: bool,
    /// A similarity that ends the search.
    pub enough: Option<f64>,
}

impl ExtentSearch {
    /// # Errors
    /// Those of `trigrams`, and those of a statement that is cancelled.
    pub fn similarity(self, wanted: &str, text: &str) -> Result<f32> {
        let wanted = trigrams(wanted, lower)?;
        let all = occurrences(text)?;
        limits::check_memory(all.len() * size_of::<usize>())?;
        let (mut numbers, mut ids) = (HashMap::new(), Vec::with_capacity(all.len()));
        for occurrence in limits::ticked(&all) {
            let next = numbers.len();
            ids.push(*numbers.entry(occurrence?.trigram).or_insert(next));
        }
        let mut is_wanted = vec![false; numbers.len()];
        for trigram in &wanted {
            numbers.get(trigram).into_iter().for_each(|id| is_wanted[*id] = true);
        }
        let last = vec![None; numbers.len()];
        Extent { search: self, wanted: wanted.len(), all: &all, ids, is_wanted, last, counts: Counts::default(), begin: None }
            .best()
    }

    fn is_enough(self, similarity: f32) -> bool {
        self.enough.is_some_and(|enough| f64::from(similarity) >= enough)
    }
}

/// Distinct trigrams of an extent: those that are wanted, and all.
#[derive(Clone, Copy, Default)]
struct Counts {
    common: usize,
    distinct: usize,
}

struct Extent<'a> {
    search: ExtentSearch,
    /// Distinct trigrams of the text that is searched for.
    wanted: usize,
    all: &'a [Occurrence],
    /// Each occurrence's trigram as a number.
    ids: Vec<usize>,
    is_wanted: Vec<bool>,
    /// Where a trigram occurs last in the extent.
    last: Vec<Option<usize>>,
    counts: Counts,
    /// Where the extent begins.
    begin: Option<usize>,
}

impl Extent<'_> {
    fn best(&mut self) -> Result<f32> {
        let mut best = 0f32;
        let mut ticker = Ticker::new();
        self.begin = self.search.strict.then_some(0);
        for at in 0..self.ids.len() {
            let id = self.ids[at];
            if self.begin.is_some() || self.is_wanted[id] {
                if self.last[id].is_none() {
                    self.counts.distinct += 1;
                    self.counts.common += usize::from(self.is_wanted[id]);
                }
                self.last[id] = Some(at);
            }
            if !(if self.search.strict { self.all[at].ends_word } else { self.is_wanted[id] }) {
                continue;
            }
            let begin = *self.begin.get_or_insert(at);
            ticker.work(at - begin + 1)?;
            best = best.max(self.shorten(begin, at));
            if self.search.is_enough(best) {
                break;
            }
        }
        Ok(best)
    }

    /// Moves the beginning of the extent that ends at `end` to where its similarity is best; returns it.
    fn shorten(&mut self, begin: usize, end: usize) -> f32 {
        let of = |counts: Counts| ratio(counts.common, self.wanted, counts.distinct);
        let mut best = of(self.counts);
        let (mut chosen, mut rest) = ((begin, self.counts), self.counts);
        for at in begin..=end {
            if !self.search.strict || self.all[at].starts_word {
                let similarity = of(rest);
                if similarity > best {
                    best = similarity;
                    chosen = (at, rest);
                }
                if self.search.is_enough(best) {
                    break;
                }
            }
            let id = self.ids[at];
            if self.last[id] == Some(at) {
                rest.distinct -= 1;
                rest.common -= usize::from(self.is_wanted[id]);
            }
        }
        self.begin = Some(chosen.0);
        self.counts = chosen.1;
        for at in begin..chosen.0 {
            let last = &mut self.last[self.ids[at]];
            if *last == Some(at) {
                *last = None;
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_similar_to_a_part_of_a_text() {
        let search = |strict| ExtentSearch { strict, enough: None };
        assert_eq!(similarity("word", "two words").unwrap(), 0.363_636_37);
        assert_eq!(search(false).similarity("word", "two words").unwrap(), 0.8);
        assert_eq!(search(true).similarity("word", "two words").unwrap(), 0.571_428_6);
        assert_eq!(search(false).similarity("", "a").unwrap(), 0.0);
        assert_eq!(search(true).similarity("", "a").unwrap(), 0.0);
    }
}
