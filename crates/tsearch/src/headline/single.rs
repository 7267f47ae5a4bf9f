//! A headline that is one part of a document.

use melba_types::Result;

use super::options::Options;
use super::{Cover, Covers, HeadlineWord, beginning, show};

/// A headline around a cover.
struct Candidate {
    part: Cover,
    /// Words of the query in it.
    interesting: i32,
    has_cover: bool,
    ends_well: bool,
}

pub(super) fn choose(words: &mut [HeadlineWord<'_>], covers: &mut Covers<'_>, options: &Options) -> Result<()> {
    if options.shows_all {
        if let Some(last) = words.len().checked_sub(1) {
            show(words, (0, last));
        }
        return Ok(());
    }
    let mut best: Option<Candidate> = None;
    while let Some(cover) = covers.next(words)? {
        let found = candidate(words, cover, options);
        let is_better = best.as_ref().is_none_or(|best| {
            let key = |c: &Candidate| (c.has_cover, c.interesting);
            key(&found) > key(best) || key(&found) == key(best) && found.ends_well && !best.ends_well
        });
        if is_better {
            best = Some(found);
        }
    }
    if let Some(part) = best.map(|best| best.part).or_else(|| beginning(words, options)) {
        show(words, part);
    }
    Ok(())
}

/// Words of a part, by what counts.
#[derive(Clone, Copy, Default)]
struct Count {
    words: i32,
    interesting: i32,
}

impl Count {
    fn add(&mut self, word: &HeadlineWord<'_>) {
        self.words += i32::from(word.counts());
        self.interesting += i32::from(word.is_interesting());
    }

    fn remove(&mut self, word: &HeadlineWord<'_>) {
        self.words -= i32::from(word.counts());
        self.interesting -= i32::from(word.is_interesting());
    }
}

/// A cover that is widened, first to the right, or cut.
fn candidate(words: &[HeadlineWord<'_>], (first, last): Cover, options: &Options) -> Candidate {
    let mut count = Count::default();
    let (mut start, mut end, mut at) = (first, first, first);
    while at <= last && count.words < options.words_max {
        count.add(&words[at]);
        end = at;
        at += 1;
    }
    if count.words < options.words_max {
        end = widen_right(words, (at - 1, last), options, &mut count, end);
        if count.words < options.words_min {
            start = widen_left(words, first, options, &mut count);
        }
    } else {
        end = cut(words, at.min(last), options, &mut count, end);
    }
    Candidate {
        part: (start, end),
        interesting: count.interesting,
        has_cover: start <= first && end >= last,
        ends_well: !words[end].is_bad_end(options),
    }
}

/// Goes on from the last word of a cover to a good end; returns it.
fn widen_right(words: &[HeadlineWord<'_>], (from, last): Cover, options: &Options, count: &mut Count, mut end: usize) -> usize {
    for (at, word) in words.iter().enumerate().skip(from) {
        if count.words >= options.words_max {
            break;
        }
        if at > last {
            count.add(word);
        }
        end = at;
        if !word.is_bad_end(options) && count.words >= options.words_min {
            break;
        }
    }
    end
}

/// Goes back before a cover; returns the first word.
fn widen_left(words: &[HeadlineWord<'_>], first: usize, options: &Options, count: &mut Count) -> usize {
    for at in (0..first).rev() {
        count.add(&words[at]);
        if count.words >= options.words_max || !words[at].is_bad_end(options) && count.words >= options.words_min {
            return at;
        }
    }
    0
}

/// Takes words away up to a good end; returns it.
fn cut(words: &[HeadlineWord<'_>], mut at: usize, options: &Options, count: &mut Count, mut end: usize) -> usize {
    while count.words > options.words_min && words[at].is_bad_end(options) && at > 0 {
        count.remove(&words[at]);
        at -= 1;
        end = at;
    }
    end
}
