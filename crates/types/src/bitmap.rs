//! Bits by row.

/// One bit a row; for validity, 1 means "not null".
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bitmap {
    words: Vec<u64>,
    len: usize,
}

impl Bitmap {
    pub fn filled(len: usize, value: bool) -> Bitmap {
        let word = if value { u64::MAX } else { 0 };
        Bitmap { words: vec![word; len.div_ceil(64)], len }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub fn get(&self, i: usize) -> bool {
        debug_assert!(i < self.len);
        self.words[i >> 6] >> (i & 63) & 1 != 0
    }

    #[inline]
    pub fn set(&mut self, i: usize, value: bool) {
        debug_assert!(i < self.len);
        let bit = 1u64 << (i & 63);
        if value {
            self.words[i >> 6] |= bit;
        } else {
            self.words[i >> 6] &= !bit;
        }
    }

    /// The bits at some places.
    pub fn take(&self, indices: &[u32]) -> Bitmap {
        let mut out = Bitmap::filled(indices.len(), true);
        for (to, &from) in indices.iter().enumerate() {
            if !self.get(from as usize) {
                out.set(to, false);
            }
        }
        out
    }

    /// Sets the bits that are set in `other`, which is as long.
    pub fn unite(&mut self, other: &Bitmap) {
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word |= other);
    }

    pub fn push(&mut self, value: bool) {
        if self.len & 63 == 0 {
            self.words.push(0);
        }
        self.len += 1;
        // The word may hold stale ones from `filled`, so both values are written.
        self.set(self.len - 1, value);
    }

    /// Appends `n` equal bits.
    pub fn extend_filled(&mut self, n: usize, value: bool) {
        let word = if value { u64::MAX } else { 0 };
        self.extend_words(std::iter::repeat_n(word, n.div_ceil(64)), 0, n);
    }

    /// Appends `n` bits: those of `words`, lowest first, from bit `skip` (under 64) of the first one.
    pub fn extend_words(&mut self, words: impl Iterator<Item = u64>, skip: usize, n: usize) {
        let mut left = n;
        let mut skip = skip;
        for word in words {
            let bits = (64 - skip).min(left);
            if bits == 0 {
                break;
            }
            let word = (word >> skip) & if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
            let shift = self.len & 63;
            if shift == 0 {
                self.words.push(word);
            } else {
                let last = self.len >> 6;
                self.words[last] = self.words[last] & ((1 << shift) - 1) | word << shift;
                if shift + bits > 64 {
                    self.words.push(word >> (64 - shift));
                }
            }
            self.len += bits;
            left -= bits;
            skip = 0;
        }
        assert_eq!(left, 0, "too few words for {n} bits");
    }

    /// Forgets the bits from `len` on.
    pub fn truncate(&mut self, len: usize) {
        if len >= self.len {
            return;
        }
        self.words.truncate(len.div_ceil(64));
        if let Some(last) = self.words.last_mut()
            && !len.is_multiple_of(64)
        {
            *last &= u64::MAX >> (64 - len % 64);
        }
        self.len = len;
    }

    /// The bits, 64 a word, lowest first; those beyond `len` are arbitrary.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Memory in use.
    pub fn memory_bytes(&self) -> usize {
        self.words.capacity() * 8
    }

    pub fn count_ones(&self) -> usize {
        let full = self.len / 64;
        let mut n: usize = self.words[..full].iter().map(|w| w.count_ones() as usize).sum();
        if !self.len.is_multiple_of(64) {
            n += (self.words[full] & ((1u64 << (self.len % 64)) - 1)).count_ones() as usize;
        }
        n
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bitmaps_grow_by_words_at_any_offset() {
        let words = [0xDEAD_BEEF_0123_4567, 0x0F0F_F0F0_AAAA_5555, 0x8000_0000_0000_0001];
        let bit = |i: usize| words[i >> 6] >> (i & 63) & 1 != 0;
        for before in [0, 1, 63, 64, 65] {
            for (skip, n) in [(0, 192), (5, 100), (63, 1), (63, 129), (0, 64), (17, 0)] {
                let mut bitmap = Bitmap::filled(before, true);
                bitmap.extend_words(words.iter().copied(), skip, n);
                bitmap.extend_filled(70, true);
                let expected = (0..before).map(|_| true).chain((skip..skip + n).map(bit)).chain((0..70).map(|_| true));
                assert!((0..bitmap.len()).map(|i| bitmap.get(i)).eq(expected), "before {before} skip {skip} n {n}");
            }
        }
    }
}
