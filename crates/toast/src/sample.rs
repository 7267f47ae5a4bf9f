//! Recognising data that no general codec shrinks (images, archives, encrypted or already compressed values).

use crate::lz4;

/// Bytes sampled, as pieces spread over the value.
const SAMPLE_BYTES: usize = 4096;
/// The first look: most values show in so few bytes that they are not random.
const GLANCE_BYTES: usize = 512;
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
    // Twice as many pairs are twenty standard deviations away from random bytes.
    let mut buffer = [0; SAMPLE_BYTES];
    if excess(sample(value, GLANCE_BYTES, &mut buffer)) >= 2.0 {
        return false;
    }
    let sample = sample(value, SAMPLE_BYTES, &mut buffer);
    excess(sample) < 1.25 && !repeats(sample)
}

/// How many times as many pairs of equal bytes there are as random bytes have.
fn excess(sample: &[u8]) -> f64 {
    let mut counts = [0u32; 256];
    for &byte in sample {
        counts[usize::from(byte)] += 1;
    }
    let pairs: u64 = counts.iter().map(|&c| u64::from(c) * u64::from(c.saturating_sub(1))).sum();
    let sampled = sample.len() as f64;
    pairs as f64 * 256.0 / (sampled * (sampled - 1.0))
}

/// `bytes` bytes of a value: all of it if it has no more, or pieces spread over it.
fn sample<'a>(value: &'a [u8], bytes: usize, buffer: &'a mut [u8; SAMPLE_BYTES]) -> &'a [u8] {
    if value.len() <= bytes {
        return value;
    }
    let piece_bytes = bytes / PIECES;
    let stride = (value.len() - piece_bytes) / (PIECES - 1);
    for (i, piece) in buffer[..bytes].chunks_exact_mut(piece_bytes).enumerate() {
        piece.copy_from_slice(&value[i * stride..][..piece_bytes]);
    }
    &buffer[..bytes]
}

/// Whether lz4 makes the sample smaller.
fn repeats(sample: &[u8]) -> bool {
    let mut out = [0; SAMPLE_BYTES];
    // A sample that does not fit has not become smaller.
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
