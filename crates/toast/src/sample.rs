//! Recognising data that no general codec shrinks (images, archives, encrypted or already compressed values).

/// Bytes looked at, as pieces spread over the value.
const SAMPLE_BYTES: usize = 4096;
const PIECES: usize = 8;
/// Shorter values are cheaper to try than to judge.
const VALUE_BYTES_MIN: usize = 512;

/// Whether compressing `value` is most likely useless: its sampled bytes are spread as random ones are.
///
/// The measure is the collision count of byte values, which for random bytes is the lowest possible: with `n` bytes sampled
/// it expects `n * (n - 1) / 256` ordered pairs of equal bytes. Anything with structure (text, code, tables of numbers) has at least
/// one and a half times as many. False answers cost density (true) or time (false), never correctness.
pub fn is_incompressible(value: &[u8]) -> bool {
    if value.len() < VALUE_BYTES_MIN {
        return false;
    }
    let mut counts = [0u32; 256];
    let mut sampled = 0u64;
    let mut count = |piece: &[u8]| {
        for &byte in piece {
            counts[byte as usize] += 1;
        }
        sampled += piece.len() as u64;
    };
    if value.len() <= SAMPLE_BYTES {
        count(value);
    } else {
        let piece_bytes = SAMPLE_BYTES / PIECES;
        let stride = (value.len() - piece_bytes) / (PIECES - 1);
        for piece in 0..PIECES {
            count(&value[piece * stride..piece * stride + piece_bytes]);
        }
    }
    let pairs: u64 = counts.iter().map(|&c| u64::from(c) * u64::from(c.saturating_sub(1))).sum();
    let expected = sampled * (sampled - 1) / 256;
    pairs * 4 < expected * 5
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
    }
}
