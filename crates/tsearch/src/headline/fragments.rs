//! A headline of several fragments (MaxFragments).

use melba_types::{Result, limits};

use super::options::Options;
use super::{Cover, Covers, HeadlineWord, beginning, show};

/// A part of a cover with at most MaxWords words, which begins and ends with words of the query.
struct Fragment {
    part: Cover,
    words: i32,
    interesting: i32,
    /// It was chosen, or overlaps with one that was.
    is_done: bool,
}

pub(super) fn choose(words: &mut [HeadlineWord<'_>], covers: &mut Covers<'_>, options: &Options) -> Result<()> {
    let mut fragments = Vec::new();
    while let Some((mut first, last)) = covers.next(words)? {
        while first <= last {
            limits::tick()?;
            let fragment = fragment(words, (first, last), options);
            first = fragment.part.1 + 1;
            fragments.push(fragment);
        }
    }
    let mut chosen = 0;
    while chosen < options.fragments_max {
        let open = fragments.iter_mut().filter(|fragment| !fragment.is_done);
        // The most words of the query, then the fewest words, then the first one.
        let Some(best) = open.min_by_key(|fragment| (-fragment.interesting, fragment.words)) else { break };
        best.is_done = true;
        let part = widened(words, best, options);
        show(words, part);
        for fragment in &mut fragments {
            let (first, last) = fragment.part;
            fragment.is_done |= first <= part.1 && last >= part.0;
        }
        chosen += 1;
    }
    if chosen == 0
        && let Some(part) = beginning(words, options)
    {
        show(words, part);
    }
    Ok(())
}

/// The first fragment of a part.
fn fragment(words: &[HeadlineWord<'_>], (first, last): Cover, options: &Options) -> Fragment {
    let start = (first..=last).find(|at| words[*at].is_interesting()).unwrap_or(last);
    let (mut count, mut interesting, mut at) = (0, 0, start);
    while at <= last && count < options.words_max {
        count += i32::from(words[at].counts());
        interesting += i32::from(words[at].is_interesting());
        at += 1;
    }
    let mut end = last;
    if last > at {
        end = at;
        while end > start && !words[end].is_interesting() {
            count -= i32::from(words[end].counts());
            end -= 1;
        }
    }
    Fragment { part: (start, end), words: count, interesting, is_done: false }
}

/// A fragment with the words around it, on both sides, up to good ends.
fn widened(words: &[HeadlineWord<'_>], fragment: &Fragment, options: &Options) -> Cover {
    let (start, end) = fragment.part;
    let mut count = fragment.words;
    if count >= options.words_max {
        return fragment.part;
    }
    let stretch = (options.words_max - count) / 2;
    let (mut added, mut first) = (0, start);
    for at in (0..start).rev() {
        if added >= stretch || words[at].shown {
            break;
        }
        added += i32::from(words[at].counts());
        first = at;
    }
    count += added;
    while first < start && words[first].is_bad_end(options) {
        count -= i32::from(words[first].counts());
        first += 1;
    }
    let mut last = end;
    for (at, word) in words.iter().enumerate().skip(end + 1) {
        if count >= options.words_max || word.shown {
            break;
        }
        count += i32::from(word.counts());
        last = at;
    }
    while last > end && words[last].is_bad_end(options) {
        last -= 1;
    }
    (first, last)
}
