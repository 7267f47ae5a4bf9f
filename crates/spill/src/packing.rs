//! The beginnings of keys as words.
//!
//! The values of each byte of the keys are known: a byte with `n` values is a digit to base `n`, and the digits of as many bytes
//! as fit make a number. Bytes that are the same in all keys take no room, and a word holds 19 digits of decimal numbers.

/// Bytes considered.
const WIDTH: usize = 32;

/// Which values the first bytes of some keys have. Behind a key's end they are 0.
pub(super) struct Span {
    least: [u8; WIDTH],
    most: [u8; WIDTH],
    shortest: usize,
    longest: usize,
}

impl Default for Span {
    /// Of no keys.
    fn default() -> Span {
        Span { least: [u8::MAX; WIDTH], most: [0; WIDTH], shortest: usize::MAX, longest: 0 }
    }
}

impl Span {
    pub fn of<'a>(keys: impl Iterator<Item = &'a [u8]>) -> Span {
        let mut span = Span::default();
        for key in keys {
            for ((least, most), byte) in span.least.iter_mut().zip(&mut span.most).zip(key) {
                *least = (*least).min(*byte);
                *most = (*most).max(*byte);
            }
            span.shortest = span.shortest.min(key.len());
            span.longest = span.longest.max(key.len());
        }
        span
    }

    /// Of the keys of both.
    pub fn with(self, other: Span) -> Span {
        Span {
            least: std::array::from_fn(|i| self.least[i].min(other.least[i])),
            most: std::array::from_fn(|i| self.most[i].max(other.most[i])),
            shortest: self.shortest.min(other.shortest),
            longest: self.longest.max(other.longest),
        }
    }

    /// The least value of a byte, and how many there may be from it on.
    fn values(&self, at: usize) -> (u8, u64) {
        let least = if at < self.shortest { self.least[at] } else { 0 };
        (least, u64::from(self.most[at].saturating_sub(least)) + 1)
    }
}

/// How keys become words of the same order. No key may be the beginning of another.
pub(super) struct Packing {
    weights: [u64; WIDTH],
    /// The number of all the least values together.
    base: u64,
    /// How many bytes of a key are in its word.
    pub bytes: usize,
    /// Keys with equal words are equal.
    pub is_exact: bool,
}

impl Packing {
    pub fn new(span: &Span) -> Packing {
        let (mut words, mut bytes) = (1u128, 0);
        while bytes < span.longest.min(WIDTH) {
            words *= u128::from(span.values(bytes).1);
            if words > 1 << u64::BITS {
                break;
            }
            bytes += 1;
        }
        let (mut weights, mut base, mut weight) = ([0; WIDTH], 0u64, 1u64);
        for at in (0..bytes).rev() {
            let (least, count) = span.values(at);
            weights[at] = weight;
            base = base.wrapping_add(weight.wrapping_mul(u64::from(least)));
            weight = weight.wrapping_mul(count);
        }
        Packing { weights, base, bytes, is_exact: bytes >= span.longest }
    }

    /// The word of a key.
    #[inline]
    pub fn pack(&self, key: &[u8]) -> u64 {
        // A byte of the same value in all keys may be more than its weight allows; the base takes away as much.
        let digits = self.weights.iter().zip(key).map(|(weight, byte)| weight.wrapping_mul(u64::from(*byte)));
        digits.fold(0, u64::wrapping_add).wrapping_sub(self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(keys: &[&[u8]]) -> (Vec<u64>, bool, usize) {
        let (a, b) = keys.split_at(keys.len() / 2);
        let packing = Packing::new(&Span::of(a.iter().copied()).with(Span::of(b.iter().copied())));
        (keys.iter().map(|key| packing.pack(key)).collect(), packing.is_exact, packing.bytes)
    }

    #[test]
    fn words_have_the_order_of_their_keys() {
        // Of the first byte there is one value, of the second three, of the third those from 0, which is an end, to 9.
        assert_eq!(packed(&[b"x10\0", b"x11\0", b"x29\0", b"x3\0"]), (vec![48, 49, 115, 116], true, 4));
        assert_eq!(packed(&[]), (vec![], true, 0));
        assert_eq!(packed(&[b"same"]), (vec![0], true, 4));
        // Nine bytes of all values do not fit.
        let (low, high) = ([0; 9], [u8::MAX; 9]);
        assert_eq!(packed(&[&low, &high, &[0, 0, 0, 0, 0, 0, 0, 1, 0]]), (vec![0, u64::MAX, 1], false, 8));
        // Too many are the same for any to be seen.
        let long = [7; WIDTH + 1];
        assert_eq!(packed(&[&long, &[&long[..], &[8]].concat()]), (vec![0, 0], false, WIDTH));
    }
}
