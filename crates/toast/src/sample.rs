//! Recognising data that no general codec shrinks (images, archives, encrypted or already compressed values).

use std::borrow::Cow;

use crate::lz4;

/// Bytes looked at, as pieces spread over the value.
const SAMPLE_BYTES: usize = 4096;
const PIECES: usize = 8;
/// Shorter values are cheaper to try than to judge.
const VALUE_BYTES_MIN: usize = 512;

/// Whether compressing `value` is most likely useless: its sampled bytes are spread as random ones are, and do not repeat.
///
/// The first measure is the collision count of byte values, which for random bytes is the lowest possible: with `n` bytes sampled
/// it expects `n * (n - 1) / 256` ordered pairs of equal bytes. Anything with structure (text, code, tables of numbers) has at least
/// one and a half times as many. Where there are not, a fast codec tries the sample: bytes may be spread evenly and repeat all the
/// same. False answers cost density (true) or time (false), never correctness.
pub fn is_incompressible(value: &[u8]) -> bool {
    if value.len() < VALUE_BYTES_MIN {
        return false;
    }
    let sample = sample(value);
    let mut counts = [0u32; 256];
    for &byte in &*sample {
        counts[usize::from(byte)] += 1;
    }
    let sampled = sample.len() as u64;
    let pairs: u64 = counts.iter().map(|&c| u64::from(c) * u64::from(c.saturating_sub(1))).sum();
    let expected = sampled * (sampled - 1) / 256;
    pairs * 4 < expected * 5 && !repeats(&sample)
}

/// The value, or pieces spread over it.
fn sample(value: &[u8]) -> Cow<'_, [u8]> {
    if value.len() <= SAMPLE_BYTES {
        return Cow::Borrowed(value);
    }
    let piece_bytes = SAMPLE_BYTES / PIECES;
    let stride = (value.len() - piece_bytes) / (PIECES - 1);
    Cow::Owned((0..PIECES).flat_map(|piece| &value[piece * stride..][..piece_bytes]).copied().collect())
}

/// Whether lz4 makes the sample smaller.
fn repeats(sample: &[u8]) -> bool {
    let mut out = [0; SAMPLE_BYTES];
    // What does not fit has not become smaller.
    lz4::compress(sample, &mut out[..sample.len()]).is_ok_and(|bytes| bytes < sample.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(n: usize) -> Vec<u8> {
        let mut x = 0x9E37_79B9_7F4A_7C15u64;
        (0..n)
            .map(|_| {
                x ^= x << 13;
                x ^= x >> 7;
                x ^= x << 17;
                (x >> 32) as u8
            })
            .collect()
    }

    #[test]
    fn noise_is_and_text_is_not() {
        assert!(is_incompressible(&noise(600)));
        assert!(is_incompressible(&noise(100_000)));
        let text = b"Never asserted, always measured: 12,345 pages of HTML. ".repeat(200);
        assert!(!is_incompressible(&text));
        assert!(!is_incompressible(&text[..512]));
        // Little-endian numbers: half the bytes are random.
        let numbers: Vec<u8> = noise(8000).chunks(2).flat_map(|p| [p[0], p[1], 0, 0]).collect();
        assert!(!is_incompressible(&numbers));
        assert!(!is_incompressible(&noise(100)));
        // All bytes equally often, each several times in a row.
        let runs: Vec<u8> = (0..100_000).map(|i| (i / 7 % 251) as u8).collect();
        assert!(!is_incompressible(&runs));
    }
}
