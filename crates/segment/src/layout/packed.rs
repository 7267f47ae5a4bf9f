//! Bit-packed integers against a straight line: value `i` is `base + (slope * i >> 16) + bits[i]`, all modulo 2^64.
//!
//! ```text
//! width u8 (0..=56 or 64) | count varint | base signed varint | slope signed varint | bits, lowest first | 8 zero bytes
//! ```
//!
//! The zero bytes (absent when the width is 0) let every value be read by one 8-byte load. A slope of 0 is plain frame of reference; row ids of a
//! bulk load have slope 2^16 and width 0.

use melba_types::bytes::{ByteReader, put_signed, put_varint};

pub(crate) const SLOPE_SHIFT: u32 = 16;
/// Steeper lines are not tried: `slope * i` must stay exact for a row group's rows.
const SLOPE_MAX: i128 = 1 << 46;
const PADDING_BYTES: usize = 8;
/// Values unpacked at a time; 64 of them end at a byte for every width.
const STEP: usize = 64;

/// Of a step, fewer values than this are read one by one.
const UNPACKED_LEAST: usize = 12;

/// Where and how a packed vector lies in its block's content.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packed {
    pub count: usize,
    base: i64,
    slope: i64,
    width: u32,
    /// Offset of the bits.
    at: usize,
}

/// The line and the width that suit some values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fit {
    base: i64,
    slope: i64,
    width: u32,
}

fn width_of(range: u64) -> u32 {
    match 64 - range.leading_zeros() {
        width @ 0..=56 => width,
        _ => 64,
    }
}

#[inline]
fn line(slope: i64, i: usize) -> i64 {
    slope.wrapping_mul(i as i64) >> SLOPE_SHIFT
}

/// Smallest value and how far the greatest is above it.
fn range_above(values: impl Iterator<Item = i64>) -> (i64, u64) {
    let (mut min, mut max) = (i64::MAX, i64::MIN);
    for value in values {
        min = min.min(value);
        max = max.max(value);
    }
    if min > max { (0, 0) } else { (min, max.wrapping_sub(min) as u64) }
}

/// The step of values that all follow from the one before by it: the ids of a bulk load. A chance is taken to say no at once.
fn even_step(values: &[i64]) -> Option<i64> {
    let [first, second, .., last] = *values else { return None };
    let step = second.wrapping_sub(first);
    if last.wrapping_sub(first) != step.wrapping_mul(values.len() as i64 - 1) {
        return None;
    }
    // Without a branch for each, so that the compiler takes several together.
    let uneven = values.windows(2).fold(0, |uneven, pair| uneven | (pair[1].wrapping_sub(pair[0]) ^ step));
    (uneven == 0 && i128::from(step).abs() << SLOPE_SHIFT <= SLOPE_MAX).then_some(step)
}

impl Fit {
    pub fn of(values: &[i64]) -> Fit {
        if let Some(step) = even_step(values) {
            return Fit { base: values[0], slope: step << SLOPE_SHIFT, width: 0 };
        }
        let (base, range) = range_above(values.iter().copied());
        let flat = Fit { base, slope: 0, width: width_of(range) };
        let (Some(&first), Some(&last)) = (values.first(), values.last()) else { return flat };
        if flat.width == 0 || values.len() < 3 {
            return flat;
        }
        let rise = i128::from(last) - i128::from(first);
        let slope = (rise << SLOPE_SHIFT) / (values.len() as i128 - 1);
        // Taking a line away narrows the range by its rise at most: not enough for a bit less?
        let narrowest = i128::from(range) - rise.abs();
        if slope == 0 || slope.abs() > SLOPE_MAX || narrowest >= 1 << (flat.width - 1) {
            return flat;
        }
        let slope = slope as i64;
        let (base, range) = range_above(values.iter().enumerate().map(|(i, v)| v.wrapping_sub(line(slope, i))));
        let width = width_of(range);
        if width < flat.width { Fit { base, slope, width } } else { flat }
    }

    /// Bits a value.
    pub fn width(&self) -> u32 {
        self.width
    }
}

pub(crate) fn encode(values: &[i64], out: &mut Vec<u8>) {
    encode_by(Fit::of(values), values, out);
}

/// Appends values whose fit is known.
pub(crate) fn encode_by(fit: Fit, values: &[i64], out: &mut Vec<u8>) {
    let Fit { base, slope, width } = fit;
    out.push(width as u8);
    put_varint(values.len() as u64, out);
    put_signed(base, out);
    put_signed(slope, out);
    if width == 0 {
        return;
    }
    out.reserve((values.len() * width as usize).div_ceil(8) + PADDING_BYTES);
    let (mut pending, mut bits) = (0u128, 0);
    for (i, value) in values.iter().enumerate() {
        let above = value.wrapping_sub(line(slope, i)).wrapping_sub(base) as u64;
        pending |= u128::from(above) << bits;
        bits += width;
        if bits >= 64 {
            out.extend_from_slice(&(pending as u64).to_le_bytes());
            pending >>= 64;
            bits -= 64;
        }
    }
    out.extend_from_slice(&(pending as u64).to_le_bytes()[..bits.div_ceil(8) as usize]);
    out.extend_from_slice(&[0; PADDING_BYTES]);
}

/// A type that packed integers are decoded to.
pub(crate) trait Word: Copy {
    fn from_word(word: i64) -> Self;
}

macro_rules! word {
    ($($ty:ty: $word:ident => $from:expr;)*) => {
        $(impl Word for $ty {
            #[inline(always)]
            fn from_word($word: i64) -> Self {
                $from
            }
        })*
    };
}

word! {
    bool: word => word != 0;
    u8: word => word as u8;
    i16: word => word as i16;
    i32: word => word as i32;
    u32: word => word as u32;
    i64: word => word;
    u64: word => word as u64;
    f32: word => f32::from_bits(word as u32);
    f64: word => f64::from_bits(word as u64);
}

impl Packed {
    /// Reads the head of a packed vector and steps over its bits.
    pub fn parse(reader: &mut ByteReader<'_>) -> Option<Packed> {
        let width = u32::from(reader.u8()?);
        if width > 56 && width != 64 {
            return None;
        }
        let count = reader.length()?;
        let base = reader.signed()?;
        let slope = reader.signed()?;
        let at = reader.position();
        if count > u32::MAX as usize {
            return None;
        }
        if width > 0 {
            reader.take((count * width as usize).div_ceil(8) + PADDING_BYTES)?;
        }
        Some(Packed { count, base, slope, width, at })
    }

    #[inline]
    fn bits(&self, bytes: &[u8], i: usize) -> u64 {
        let bit = i * self.width as usize;
        word_at(bytes, self.at + (bit >> 3)) >> (bit & 7) & (u64::MAX >> (64 - self.width))
    }

    /// Value `i`; `bytes` is the content that `parse` read.
    #[inline]
    pub fn get(&self, bytes: &[u8], i: usize) -> i64 {
        assert!(i < self.count, "value {i} of {}", self.count);
        let bits = if self.width == 0 { 0 } else { self.bits(bytes, i) };
        self.base.wrapping_add(line(self.slope, i)).wrapping_add(bits as i64)
    }

    /// Appends values `start..start + n`.
    pub fn decode<T: Word>(&self, bytes: &[u8], start: usize, n: usize, out: &mut Vec<T>) {
        assert!(start + n <= self.count, "values {start}+{n} of {}", self.count);
        out.reserve(n);
        if self.width == 0 {
            let (base, slope) = (self.base, self.slope);
            match slope {
                0 => out.resize(out.len() + n, T::from_word(base)),
                _ => out.extend((start..start + n).map(|i| T::from_word(base.wrapping_add(line(slope, i))))),
            }
            return;
        }
        let end = start + n;
        let mut at = start;
        let unpack = unpacker(self.width);
        let mut step = [0u64; STEP];
        while at < end {
            let first = at - at % STEP;
            let to = (first + STEP).min(end);
            // The last values have no whole step behind them.
            if to - at < UNPACKED_LEAST || first + STEP > self.count {
                out.extend((at..to).map(|i| T::from_word(self.get(bytes, i))));
            } else {
                let from = self.at + first * self.width as usize / 8;
                unpack(&bytes[from..from + STEP / 8 * self.width as usize + PADDING_BYTES], &mut step);
                let step = &step[at - first..to - first];
                match self.slope {
                    0 => out.extend(step.iter().map(|&bits| T::from_word(self.base.wrapping_add(bits as i64)))),
                    slope => {
                        out.extend(step.iter().enumerate().map(|(j, &bits)| {
                            T::from_word(self.base.wrapping_add(line(slope, at + j)).wrapping_add(bits as i64))
                        }))
                    }
                }
            }
            at = to;
        }
    }
}

/// The eight bytes from `at` on. Not `copy_from_slice`, which is a call for each value in builds without LTO.
#[inline(always)]
fn word_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + PADDING_BYTES].try_into().map_or(0, u64::from_le_bytes)
}

/// Unpacks 64 values of `W` bits; `bytes` holds them and 8 more.
fn unpack_step<const W: usize>(bytes: &[u8], out: &mut [u64; STEP]) {
    let mask = u64::MAX >> (64 - W);
    for (eight, target) in out.chunks_exact_mut(8).enumerate() {
        let bytes = &bytes[eight * W..eight * W + W + PADDING_BYTES];
        for (j, target) in target.iter_mut().enumerate() {
            let bit = j * W;
            *target = word_at(bytes, bit >> 3) >> (bit & 7) & mask;
        }
    }
}

/// The unpacking loop compiled for a width.
fn unpacker(width: u32) -> fn(&[u8], &mut [u64; STEP]) {
    macro_rules! table {
        ($($w:literal)*) => {
            match width {
                $($w => unpack_step::<$w>,)*
                _ => unpack_step::<64>,
            }
        };
    }
    table!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(values: &[i64]) -> usize {
        let mut bytes = vec![0xAA; 3];
        encode(values, &mut bytes);
        let mut reader = ByteReader::new(&bytes);
        reader.take(3).unwrap();
        let packed = Packed::parse(&mut reader).unwrap();
        assert_eq!(reader.remaining(), 0);
        for (start, end) in [(0, values.len()), (values.len() / 3, values.len() / 3 * 2), (values.len().min(1), values.len())] {
            let mut out: Vec<i64> = vec![7];
            packed.decode(&bytes, start, end - start, &mut out);
            assert_eq!(&out[1..], &values[start..end]);
        }
        for (i, &value) in values.iter().enumerate() {
            assert_eq!(packed.get(&bytes, i), value);
        }
        bytes.len() - 3
    }

    #[test]
    fn every_width_comes_back() {
        let mut x = 1u64;
        for width in 0..=64u32 {
            let mask = if width == 0 { 0 } else { u64::MAX >> (64 - width) };
            let values: Vec<i64> = (0..333)
                .map(|_| {
                    x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    ((x >> 7 ^ x << 30) & mask) as i64
                })
                .collect();
            check(&values);
        }
        check(&[]);
        check(&[i64::MIN, i64::MAX, 0, -1]);
        check(&[i64::MIN, 0, i64::MAX]);
    }

    #[test]
    fn lines_cost_nothing() {
        let ids: Vec<i64> = (1_000_000_007..1_000_065_543).collect();
        assert!(check(&ids) < 16);
        let times: Vec<i64> = (0..10_000).map(|i| 700_000_000_000_000 + i * 1_000_003 + i % 7).collect();
        assert!(check(&times) < 10_000, "about four bits a value");
    }
}
