//! Loops over many words without a branch. They are compiled for processors with AVX2, too, and chosen when the server runs: that takes a
//! third of the time for the least and the greatest word, and half for sums (docs/measurements/olap.md).

use multiversion::multiversion;

/// The greatest of some words.
#[multiversion(targets("x86_64+avx2"))]
pub(super) fn greatest(words: &[i64]) -> Option<i64> {
    best_of(words, |a, b| if b > a { b } else { a })
}

/// The least of some words.
#[multiversion(targets("x86_64+avx2"))]
pub(super) fn least(words: &[i64]) -> Option<i64> {
    best_of(words, |a, b| if b < a { b } else { a })
}

/// The sum of at most 2^32 words.
#[multiversion(targets("x86_64+avx2"))]
pub(super) fn sum(words: &[i64]) -> i128 {
    // The halves of a word that was made positive, which do not overflow.
    let (mut low, mut high) = (0u64, 0u64);
    for word in words {
        let above = (*word as u64) ^ (1 << 63);
        low += above & 0xFFFF_FFFF;
        high += above >> 32;
    }
    (i128::from(high) << 32) + i128::from(low) - ((words.len() as i128) << 63)
}

/// The best of some values. Several are kept at once: to keep one, each comparison would wait for the one before.
#[inline(always)]
pub(super) fn best_of<T: Copy>(values: &[T], better: impl Fn(T, T) -> T) -> Option<T> {
    const KEPT: usize = 16;
    let (all, rest) = values.as_chunks::<KEPT>();
    let Some(mut kept) = all.first().copied() else { return rest.iter().copied().reduce(better) };
    for some in all {
        // Not zipped, which is a call for each in builds without LTO.
        for i in 0..KEPT {
            kept[i] = better(kept[i], some[i]);
        }
    }
    kept.into_iter().chain(rest.iter().copied()).reduce(better)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_words_has_its_extremes_and_its_sum() {
        let words = (0..100).map(|i: i64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64));
        let words: Vec<i64> = words.chain([i64::MAX, i64::MAX, i64::MIN, -1, 0]).collect();
        for some in (0..=words.len()).map(|n| &words[..n]) {
            assert_eq!((least(some), greatest(some)), (some.iter().copied().min(), some.iter().copied().max()));
            assert_eq!(sum(some), some.iter().map(|word| i128::from(*word)).sum::<i128>());
        }
        assert_eq!(sum(&[i64::MIN; 1000]), i128::from(i64::MIN) * 1000);
    }
}
